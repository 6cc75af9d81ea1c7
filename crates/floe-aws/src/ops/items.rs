//! The operations on one item, and pages of queries and scans.

use floe_store::Result;
use floe_store::op::{GetItem, GetItemOutput, Page, Query, Scan, WriteItem, WriteItemOutput};

use super::Operations;
use crate::retry::Effect;

impl Operations {
    pub(crate) async fn get_item(&self, input: GetItem) -> Result<GetItemOutput> {
        input.validate()?;
        let send = || self.client.get_item(&input);
        self.retry.run(Effect::None, send).await
    }

    pub(crate) async fn write_item(&self, input: WriteItem) -> Result<WriteItemOutput> {
        input.validate()?;
        // The protocol has no place for it, and to leave it out would break what it promises.
        let has_token = input.token().is_some();
        self.need(!has_token, "tokens for single writes")?;
        let send = || self.client.write_item(&input);
        self.retry.run(Effect::EachTime, send).await
    }

    pub(crate) async fn query(&self, input: Query) -> Result<Page> {
        input.validate()?;
        let send = || self.client.query(&input);
        self.retry.run(Effect::None, send).await
    }

    pub(crate) async fn scan(&self, input: Scan) -> Result<Page> {
        input.validate()?;
        let send = || self.client.scan(&input);
        self.retry.run(Effect::None, send).await
    }
}
