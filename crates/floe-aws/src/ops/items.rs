//! The operations on one item.

use floe_store::Result;
use floe_store::op::{GetItem, GetItemOutput, WriteItem, WriteItemOutput};

use crate::AwsEngine;
use crate::retry::Effect;

impl AwsEngine {
    pub(crate) async fn get_one(&self, input: GetItem) -> Result<GetItemOutput> {
        input.validate()?;
        let send = || self.client.get_item(&input);
        self.retry.run(Effect::None, send).await
    }

    pub(crate) async fn write_one(&self, input: WriteItem) -> Result<WriteItemOutput> {
        input.validate()?;
        // The protocol has no place for it, and to leave it out would break what it promises.
        let has_token = input.token().is_some();
        self.need(!has_token, "tokens for single writes")?;
        let send = || self.client.write_item(&input);
        self.retry.run(Effect::EachTime, send).await
    }
}
