//! Random changes of a registry on an engine with faults, compared with a reference model.

use std::collections::BTreeMap;
use std::time::Duration;

use floe::ErrorKind;
use floe::registry::Published;
use floe_store::env::SeededRandom;
use floe_store::{Capabilities, Timestamp};
use floe_testkit::fault::{Faults, Lag};
use floe_testkit::time::TestEnv;

use super::expiry::{changes, recording_router};
use super::model::{Model, Outcome};
use super::support::{CallLog, Layer, World, layer, lossy};

const GROUP: (&str, &str) = ("eu", "nu.m#py%");
const HOUR: u64 = 3600;

fn faults(seed: u64) -> Faults {
    Faults::seeded(seed)
        .throttle(0.02)
        .conflict(0.02)
        .lost_before(0.02)
        .lost_after(0.03)
        .partial_batches(0.2)
        .index_lag(0.3, Lag::Operations(15))
        .stale_reads(0.3, Lag::Operations(15))
}

async fn world(seed: u64, capabilities: Capabilities) -> World {
    let world = World::of(seed, faults(seed), capabilities).await;
    World {
        layers: world.layers.retention(Duration::from_secs(20 * HOUR)),
        ..world
    }
}

fn kind<T>(result: floe::Result<T>) -> Outcome<T> {
    result.map_err(|error| {
        assert_ne!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
        error.kind()
    })
}

struct Dice(SeededRandom);

impl Dice {
    fn below(&self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    fn name(&self) -> &'static str {
        if self.below(2) == 0 {
            "lts"
        } else {
            "st.able#"
        }
    }
}

/// Makes one random change in the registry and in the model. Returns both results.
async fn change(dice: &Dice, world: &World, model: &mut Model) -> (String, String) {
    let layers = &world.layers;
    let number = dice.below(model.versions.len() as u64 + 2);
    let content = format!("c{}", dice.below(3));
    let value = layer(GROUP.0, GROUP.1, &content);
    match dice.below(12) {
        0..=2 => {
            let (expected, _) = model.publish(&content, false);
            let real = kind(layers.publish(&value).await);
            (
                format!("{real:?}"),
                format!("{:?}", Ok::<_, ErrorKind>(expected)),
            )
        }
        3 => {
            let expected = match model.publish(&content, true) {
                (number, true) => Published::New(number),
                (number, false) => Published::Unchanged(number),
            };
            let real = kind(layers.publish_if_changed(&value).await);
            (
                format!("{real:?}"),
                format!("{:?}", Ok::<_, ErrorKind>(expected)),
            )
        }
        4 | 5 => {
            let real = kind(layers.retire(GROUP, number).await);
            (format!("{real:?}"), format!("{:?}", model.retire(number)))
        }
        6 => {
            let real = kind(layers.pin(GROUP, number).await);
            (
                format!("{real:?}"),
                format!("{:?}", model.pin(number, true)),
            )
        }
        7 => {
            let real = kind(layers.unpin(GROUP, number).await);
            (
                format!("{real:?}"),
                format!("{:?}", model.pin(number, false)),
            )
        }
        8 => {
            let name = dice.name();
            let real = kind(layers.set_alias(GROUP, name, number).await);
            let expected = model.alias(name, Some(number));
            (format!("{real:?}"), format!("{expected:?}"))
        }
        9 => {
            let name = dice.name();
            let real = kind(layers.remove_alias(GROUP, name).await);
            (
                format!("{real:?}"),
                format!("{:?}", model.alias(name, None)),
            )
        }
        10 => {
            let secs = HOUR * (1 + dice.below(12));
            model.now += secs;
            model.expire();
            world.test.advance(Duration::from_secs(secs));
            (String::new(), String::new())
        }
        _ => {
            write_tombstones(world).await;
            (String::new(), String::new())
        }
    }
}

/// Lets the store remove expired versions, and delivers the changes until all tombstones are written.
async fn write_tombstones(world: &World) {
    world.sweep();
    let all = changes(&*world.engine).await;
    let router = recording_router(world, &CallLog::default());
    for _ in 0..20 {
        if router.deliver(&all).await.failures.is_empty() {
            return;
        }
    }
    panic!("the router still fails after 20 deliveries");
}

async fn compare(world: &World, model: &Model, dice: &Dice) {
    let layers = &world.layers;
    let history = layers.history(GROUP).limit(7).collect().await.unwrap();
    assert_eq!(history.len(), model.versions.len());
    let secs = |time: Option<Timestamp>| time.map(Timestamp::as_secs);
    for (version, entry) in history.iter().zip(&model.versions) {
        assert_eq!(version.value.arn, entry.content);
        assert_eq!(version.status, Model::status(entry), "{version:?}");
        assert_eq!(version.expires.map(|e| e.as_secs()), entry.expires);
        assert_eq!(secs(version.deleted), entry.deleted, "{version:?}");
        assert_eq!(version.is_pinned, entry.is_pinned, "{version:?}");
        assert_eq!(version.aliases, entry.aliases);
    }
    let latest = layers.latest(GROUP).await.unwrap();
    let number = latest.as_ref().map(|latest| latest.number);
    assert_eq!(number, model.latest());
    assert_eq!(latest, number.map(|n| history[n as usize - 1].clone()));
    let mut deployed = layers.deployed_in(Layer::BY_REGION, "eu").await.unwrap();
    deployed.sort_by_key(|version| version.number);
    let expected: Vec<_> = history.into_iter().filter(|v| v.is_deployed()).collect();
    assert_eq!(deployed, expected);
    for name in ["lts", "st.able#"] {
        let found = layers.by_alias(GROUP, name).await.unwrap();
        assert_eq!(found.map(|v| v.number), model.aliases.get(name).copied());
    }
    let start = TestEnv::START.as_secs();
    for _ in 0..5 {
        let time = start + dice.below(model.now - start + 1);
        let found = layers
            .as_of(GROUP, Timestamp::from_millis(time * 1000))
            .await;
        let found = found.unwrap().map(|version| version.number);
        assert_eq!(found, model.as_of(time), "at {time}");
    }
}

async fn run(seed: u64, capabilities: Capabilities) {
    let world = world(seed, capabilities).await;
    let dice = Dice(SeededRandom::new(seed));
    let mut model = Model {
        now: TestEnv::START.as_secs(),
        retention: 20 * HOUR,
        ..Model::default()
    };
    let mut results = BTreeMap::new();
    for step in 0..300 {
        let (real, expected) = change(&dice, &world, &mut model).await;
        assert_eq!(real, expected, "seed={seed} step={step}");
        *results.entry(real).or_insert(0) += 1;
        if step % 20 == 19 {
            world.faults.pause();
            write_tombstones(&world).await;
            compare(&world, &model, &dice).await;
            world.faults.resume();
        }
    }
    assert!(results.len() >= 6, "{results:?}");
    assert!(world.faults.faults().len() > 20);
    assert!(model.versions.iter().any(|entry| entry.deleted.is_some()));
}

#[tokio::test]
async fn single_writer_gets_the_results_of_the_model() {
    for seed in 0..8 {
        run(seed, lossy()).await;
    }
}

#[tokio::test]
async fn single_writer_gets_the_results_of_the_model_with_dynamodb_capabilities() {
    for seed in 100..104 {
        run(seed, Capabilities::dynamodb()).await;
    }
}
