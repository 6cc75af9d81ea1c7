//! Requests about single items, queries and scans.

use floe_store::Result;
use floe_store::op::{GetItem, GetItemOutput, Page, Query, Scan, WriteItem, WriteItemOutput};

use super::Operations;

impl Operations {
    pub(crate) async fn get_item(&self, input: GetItem) -> Result<GetItemOutput> {
        input.validate()?;
        self.read(|| self.client.get_item(&input)).await
    }

    pub(crate) async fn write_item(&self, input: WriteItem) -> Result<WriteItemOutput> {
        input.validate()?;
        // DynamoDB's protocol has no token for single writes, and dropping it would break its guarantee.
        let has_token = input.token().is_some();
        self.require(!has_token, "tokens for single writes")?;
        self.write(|| self.client.write_item(&input)).await
    }

    pub(crate) async fn query(&self, input: Query) -> Result<Page> {
        input.validate()?;
        self.read(|| self.client.query(&input)).await
    }

    pub(crate) async fn scan(&self, input: Scan) -> Result<Page> {
        input.validate()?;
        self.read(|| self.client.scan(&input)).await
    }
}
