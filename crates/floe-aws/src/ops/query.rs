//! Pages of queries and scans.

use floe_store::Result;
use floe_store::op::{Page, Query, Scan};

use crate::AwsEngine;
use crate::retry::Effect;

impl AwsEngine {
    pub(crate) async fn query_page(&self, input: Query) -> Result<Page> {
        input.validate()?;
        self.retry
            .run(Effect::None, || self.client.query(&input))
            .await
    }

    pub(crate) async fn scan_page(&self, input: Scan) -> Result<Page> {
        input.validate()?;
        self.retry
            .run(Effect::None, || self.client.scan(&input))
            .await
    }
}
