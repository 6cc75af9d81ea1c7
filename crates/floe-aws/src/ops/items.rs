//! The operations on one item, and pages of queries and scans.

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
        // The protocol has no place for it, and to leave it out would break what it promises.
        let has_token = input.token().is_some();
        self.need(!has_token, "tokens for single writes")?;
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
