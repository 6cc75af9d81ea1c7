//! Transactions.

use floe_store::Result;
use floe_store::op::{
    TransactGetItems, TransactGetItemsOutput, TransactWriteItems, TransactWriteItemsOutput,
};

use super::Operations;
use crate::retry::Effect;

impl Operations {
    pub(crate) async fn transact_get_items(
        &self,
        input: TransactGetItems,
    ) -> Result<TransactGetItemsOutput> {
        input.validate()?;
        self.require(self.capabilities.transactions, "transactions")?;
        self.read(|| self.client.transact_get_items(&input)).await
    }

    pub(crate) async fn transact_write_items(
        &self,
        input: TransactWriteItems,
    ) -> Result<TransactWriteItemsOutput> {
        input.validate()?;
        self.require(self.capabilities.transactions, "transactions")?;
        let effect = match input.token {
            Some(_) => Effect::Once,
            None => Effect::EachTime,
        };
        let send = || self.client.transact_write_items(&input);
        self.retry.run(effect, send).await
    }
}
