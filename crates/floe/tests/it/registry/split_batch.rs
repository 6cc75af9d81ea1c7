//! Another process changes a group between the two halves of a batch read.

use std::sync::{Arc, Mutex, PoisonError};

use floe::registry::Versions;
use floe::{Db, Registry};
use floe_local::LocalEngine;
use floe_store::op::{BatchGetItem, BatchGetItemOutput};
use floe_store::{BoxFuture, Engine, Item, Result, forward_to};

use super::races::check;
use super::support::{Build, Layer, layer};

const GROUP: (&str, &str) = ("eu", "numpy");

/// An engine that returns only the pointer of the next batch, and retires a version before the rest is requested.
struct SplitBatchEngine {
    inner: Arc<dyn Engine>,
    retires: Mutex<Option<(Versions<'static, Layer>, u64)>>,
}

fn is_pointer(key: &Item) -> bool {
    key.iter()
        .any(|(_, value)| value.as_s().is_some_and(|text| text.contains("Vrsn0#")))
}

impl SplitBatchEngine {
    async fn split_batch(&self, mut batch: BatchGetItem) -> Result<BatchGetItemOutput> {
        let retires = self
            .retires
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some((layers, number)) = retires else {
            return self.inner.batch_get_item(batch).await;
        };
        let mut rest = batch.requests.clone();
        for keys in batch.requests.values_mut() {
            keys.keys.retain(is_pointer);
        }
        for keys in rest.values_mut() {
            keys.keys.retain(|key| !is_pointer(key));
        }
        let mut output = self.inner.batch_get_item(batch).await?;
        output.unprocessed = rest;
        // The task acts as another process, outside of the transaction.
        let retired = tokio::spawn(async move { layers.retire(GROUP, number).await });
        assert_eq!(retired.await.unwrap(), Ok(true));
        Ok(output)
    }
}

impl Engine for SplitBatchEngine {
    forward_to!(self.inner; basics, get_item, transact_get_items, write_item, batch_write_item);
    forward_to!(self.inner; transact_write_items, query, scan, tables, streams);

    fn batch_get_item(&self, batch: BatchGetItem) -> BoxFuture<'_, Result<BatchGetItemOutput>> {
        Box::pin(self.split_batch(batch))
    }
}

/// Publishes two versions. The next batch of the returned handle reads the pointer while the second version is the
/// latest, and the version after the first one is the latest again.
async fn two_versions() -> (Versions<'static, Layer>, Versions<'static, Layer>) {
    let inner: Arc<dyn Engine> = Arc::new(LocalEngine::memory().unwrap());
    let other = Db::with_engine(inner.clone());
    other
        .ensure_registries(&[Layer::SCHEMA, Build::SCHEMA])
        .await
        .unwrap();
    let layers: Versions<'static, Layer> = other.registry();
    for arn in ["1", "2"] {
        layers.publish(&layer("eu", "numpy", arn)).await.unwrap();
    }
    let retires = Mutex::new(Some((layers.clone(), 2)));
    let split = Db::with_engine(Arc::new(SplitBatchEngine { inner, retires }));
    (split.registry(), layers)
}

#[tokio::test]
async fn pin_of_a_version_that_became_the_latest_changes_the_pointer() {
    let (split, layers) = two_versions().await;
    assert_eq!(split.pin(GROUP, 1).await, Ok(true));
    check(&layers).await;
    let third = layers.publish(&layer("eu", "numpy", "3")).await;
    assert_eq!(third, Ok(3));
    check(&layers).await;
}

#[tokio::test]
async fn retirement_of_a_version_that_became_the_latest_moves_the_pointer() {
    let (split, layers) = two_versions().await;
    assert_eq!(split.retire(GROUP, 1).await, Ok(true));
    check(&layers).await;
    assert_eq!(layers.latest(GROUP).await, Ok(None));
}
