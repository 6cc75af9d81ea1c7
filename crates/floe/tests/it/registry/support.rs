//! The test registries: layers and builds, in one table.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use floe::registry::{Version, Versions};
use floe::{Db, Registry};
use floe_local::{LocalEngine, Options};
use floe_store::expr::KeyCondition;
use floe_store::op::{GetItem, PutItem, Query, Scan};
use floe_store::{Capabilities, Engine, Env, Item};
use floe_testkit::fault::{FaultEngine, Faults};
use floe_testkit::meter::MeteredEngine;
use floe_testkit::record::RecordingEngine;
use floe_testkit::time::TestEnv;

use super::no_time::NoTime;

pub(crate) const TABLE: &str = "klayers";
pub(crate) const DAY: Duration = Duration::from_secs(86_400);

/// A layer of a package in a region. The partition key is the group.
#[derive(Clone, Debug, PartialEq, Registry)]
#[registry(
    table = "klayers",
    pk = "lyr#{region}.{package}",
    sk = "lyrVrsn#v{version}",
    latest = "lyrVrsn0#",
    version = "lyrVrsn",
    published = "crtdDt",
    status = "dplySts",
    expires = "exDt",
    deleted = "deleted_date",
    retention = "30d",
    index(name = "package-status", key = package),
    index(name = "region-status", key = region)
)]
pub(crate) struct Layer {
    #[registry(rename = "rgn")]
    pub region: String,
    #[registry(rename = "pckg")]
    pub package: String,
    pub arn: String,
    #[registry(rename = "requirementsHsh", hash)]
    pub hash: String,
}

/// A build of a package. The partition key is the version.
#[derive(Clone, Debug, PartialEq, Registry)]
#[registry(
    table = "klayers",
    pk = "bld#v{version}",
    sk = "pckg#{package}",
    latest = "bldVrsn0#",
    version = "bldVrsn",
    published = "crtdDt"
)]
pub(crate) struct Build {
    #[registry(rename = "pckg")]
    pub package: String,
    #[registry(rename = "requirements.txt")]
    pub requirements: String,
}

pub(crate) fn layer(region: &str, package: &str, arn: &str) -> Layer {
    Layer {
        region: region.to_owned(),
        package: package.to_owned(),
        arn: arn.to_owned(),
        hash: format!("hash of {arn}"),
    }
}

pub(crate) fn build(package: &str, requirements: &str) -> Build {
    Build {
        package: package.to_owned(),
        requirements: requirements.to_owned(),
    }
}

/// Test registries of layers and builds, with a manual clock.
pub(crate) struct World {
    pub db: Db,
    pub layers: Versions<'static, Layer>,
    pub builds: Versions<'static, Build>,
    pub test: TestEnv,
    /// Measures consumed capacity.
    pub meter: Arc<MeteredEngine>,
    /// Records requests.
    pub recording: Arc<RecordingEngine>,
    /// Injects faults: rejected requests and lost responses.
    pub faults: Arc<FaultEngine>,
    /// The engine without wrappers.
    pub engine: Arc<LocalEngine>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Capabilities::all()).await
    }

    pub(crate) async fn with(capabilities: Capabilities) -> Self {
        Self::of(1, Faults::seeded(7), capabilities).await
    }

    /// Creates the registries on an engine with these faults, which claims these capabilities.
    pub(crate) async fn of(seed: u64, faults: Faults, capabilities: Capabilities) -> Self {
        let test = TestEnv::seeded(seed);
        let options = Options::new().env(test.env.clone()).background(false);
        let engine = Arc::new(LocalEngine::memory_with(options).unwrap());
        let faults = Arc::new(FaultEngine::new(engine.clone(), faults));
        let recording = Arc::new(RecordingEngine::new(faults.clone()).claiming(capabilities));
        let meter = Arc::new(MeteredEngine::new(recording.clone()));
        let env = Env::manual(test.clock.clone(), seed + 1);
        let db = Db::with_parts(meter.clone(), env, Arc::new(NoTime));
        faults.pause();
        db.ensure_registries(&[Layer::SCHEMA, Build::SCHEMA])
            .await
            .unwrap();
        faults.resume();
        let world = Self {
            layers: db.registry(),
            builds: db.registry(),
            db,
            test,
            meter,
            recording,
            faults,
            engine,
        };
        world.clear_records();
        world
    }

    /// Publishes `count` versions of a layer.
    pub(crate) async fn publish(&self, region: &str, package: &str, count: u64) {
        for at in 0..count {
            let arn = format!("arn:{region}:{package}:{at}");
            let layer = layer(region, package, &arn);
            self.layers.publish(&layer).await.unwrap();
        }
        self.clear_records();
    }

    /// Discards the recorded requests and capacity.
    pub(crate) fn clear_records(&self) {
        self.recording.take();
        self.meter.take();
    }

    /// The names of the requests since the last call, in order.
    pub(crate) fn requests(&self) -> Vec<String> {
        let requests = self.recording.take().into_iter();
        requests
            .map(|request| request.split(' ').next().unwrap().to_owned())
            .collect()
    }

    /// Lets the store remove expired items.
    pub(crate) fn sweep(&self) {
        while self.engine.run_background_once().unwrap() {}
    }

    pub(crate) async fn item(&self, pk: &str, sk: &str) -> Option<Item> {
        let key = Item::new().with("pk", pk).with("sk", sk);
        let get = GetItem::new(TABLE, key);
        self.engine.get_item(get).await.unwrap().item
    }

    pub(crate) async fn put(&self, item: Item) {
        let put = PutItem::new(TABLE, item);
        self.engine.write_item(put.into()).await.unwrap();
    }

    /// All items except the descriptions of the registries.
    pub(crate) async fn items(&self) -> Vec<Item> {
        let mut items = self.engine.scan(Scan::new(TABLE)).await.unwrap().items;
        items.retain(|item| !item.contains("_registry"));
        items
    }

    /// The sort keys of all entries of an index with a key.
    pub(crate) async fn index(&self, index: &str, attribute: &str, key: &str) -> Vec<String> {
        let query = Query::new(TABLE, KeyCondition::partition(attribute, key)).index(index);
        let items = self.engine.query(query).await.unwrap().items;
        let keys = items.iter().map(|item| item.get("sk").unwrap());
        keys.map(|key| key.as_s().unwrap().to_owned()).collect()
    }
}

/// The numbers of versions, in order.
pub(crate) fn numbers<R>(versions: &[Version<R>]) -> Vec<u64> {
    versions.iter().map(|version| version.number).collect()
}

/// Records the calls of handlers, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallLog(pub Arc<Mutex<Vec<String>>>);

impl CallLog {
    pub(crate) fn add(&self, note: impl Into<String>) {
        self.0.lock().unwrap().push(note.into());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// All capabilities, but responses can be lost, as over a network.
pub(crate) fn lossy() -> Capabilities {
    let mut capabilities = Capabilities::all();
    capabilities.loses_responses = true;
    capabilities
}
