//! Increments beside other writers: no sum that the field cannot hold is ever stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::no_time::NoTime;
use super::stage;
use floe::{Db, Error, ErrorKind, Model, Tx};
use floe_store::expr::{Path, Update};
use floe_store::op::UpdateItem;
use floe_store::{Capabilities, Engine, Env, Number};
use floe_testkit::record::RecordingEngine;

#[derive(Clone, Debug, PartialEq, Model)]
struct Gauge {
    #[model(key)]
    id: String,
    small: u8,
    #[model(min = -10, max = 100)]
    bounded: i64,
    #[model(custom = even)]
    even: i64,
    ratio: f64,
    narrow: f32,
    #[model(max = 5)]
    points: Option<i64>,
    #[model(default = 3)]
    lives: u8,
    exact: Number,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the derive passes a reference"
)]
fn even(value: &i64) -> Result<(), String> {
    let is_even = value % 2 == 0;
    is_even
        .then_some(())
        .ok_or_else(|| "the value is odd".to_owned())
}

fn gauge() -> Gauge {
    Gauge {
        id: "g".to_owned(),
        small: 250,
        bounded: 90,
        even: 2,
        ratio: 0.1,
        narrow: 1.5,
        points: None,
        lives: 3,
        exact: Number::from(1),
    }
}

struct World {
    db: Db,
    /// The same table without recording, for the other writer.
    other: Db,
    recording: Arc<RecordingEngine>,
}

async fn world(capabilities: Capabilities) -> World {
    let engine: Arc<dyn Engine> = stage::engine();
    let other = Db::with_engine(engine.clone());
    other.ensure_tables(&[Gauge::SCHEMA]).await.unwrap();
    let create = async |tx: &Tx| tx.create(gauge()).map(drop);
    other.transact(create).await.unwrap();
    let recording = Arc::new(RecordingEngine::new(engine).claiming(capabilities));
    let db = Db::with_parts(recording.clone(), Env::system(), Arc::new(NoTime));
    World {
        db,
        other,
        recording,
    }
}

impl World {
    async fn stored(&self) -> Gauge {
        let body = async |tx: &Tx| Ok::<_, Error>(tx.get::<Gauge>("g").await?.unwrap().to_model());
        self.other.transact(body).await.unwrap()
    }

    async fn change(&self, change: fn(&mut GaugeRow<'_>) -> Result<(), Error>) {
        let other = self.other.clone();
        let changed = tokio::spawn(async move {
            let body = async |tx: &Tx| change(&mut tx.get::<Gauge>("g").await?.unwrap());
            other.transact(body).await
        });
        changed.await.unwrap().unwrap();
    }

    /// Runs `ours`, while another writer makes its change between the first run of the body and the commit. Returns the
    /// number of runs.
    async fn race(
        &self,
        ours: fn(&mut GaugeRow<'_>) -> Result<(), Error>,
        theirs: fn(&mut GaugeRow<'_>) -> Result<(), Error>,
    ) -> (Result<(), Error>, u32) {
        let runs = AtomicU32::new(0);
        let body = async |tx: &Tx| {
            let run = runs.fetch_add(1, Ordering::Relaxed);
            ours(&mut tx.get::<Gauge>("g").await?.unwrap())?;
            if run == 0 {
                self.change(theirs).await;
            }
            Ok::<_, Error>(())
        };
        let result = self.db.transact(body).await;
        (result, runs.into_inner())
    }
}

const ENGINES: [fn() -> Capabilities; 2] = [Capabilities::all, Capabilities::dynamodb];

#[tokio::test]
async fn concurrent_increments_never_exceed_the_type() {
    for capabilities in ENGINES {
        let world = world(capabilities()).await;
        let add = |gauge: &mut GaugeRow<'_>| gauge.small.increment_by(4);
        let (result, runs) = world.race(add, add).await;
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidField, "{error}");
        assert_eq!(error.field(), Some("small"));
        assert_eq!((world.stored().await.small, runs), (254, 2));
    }
}

#[tokio::test]
async fn concurrent_increments_never_exceed_max() {
    let world = world(Capabilities::all()).await;
    let add = |gauge: &mut GaugeRow<'_>| gauge.bounded.increment_by(6);
    let (result, runs) = world.race(add, add).await;
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidField, "{error}");
    assert_eq!((world.stored().await.bounded, runs), (96, 2));
}

#[tokio::test]
async fn concurrent_decrements_never_fall_below_min() {
    let world = world(Capabilities::all()).await;
    let subtract = |gauge: &mut GaugeRow<'_>| gauge.bounded.increment_by(-60);
    let (result, runs) = world.race(subtract, subtract).await;
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidField, "{error}");
    assert_eq!((world.stored().await.bounded, runs), (30, 2));
}

#[tokio::test]
async fn increments_within_the_bounds_do_not_conflict() {
    let world = world(Capabilities::all()).await;
    let add = |gauge: &mut GaugeRow<'_>| gauge.bounded.increment_by(5);
    let (result, runs) = world.race(add, add).await;
    result.unwrap();
    assert_eq!((world.stored().await.bounded, runs), (100, 1));
}

#[tokio::test]
async fn increment_under_a_custom_constraint_locks_the_field() {
    let world = world(Capabilities::all()).await;
    let add = |gauge: &mut GaugeRow<'_>| gauge.even.increment_by(2);
    let (result, runs) = world.race(add, add).await;
    result.unwrap();
    assert_eq!((world.stored().await.even, runs), (6, 2));
}

#[tokio::test]
async fn lost_increment_names_the_field() {
    let world = world(Capabilities::all()).await;
    let body = async |tx: &Tx| {
        let mut gauge = tx.get::<Gauge>("g").await?.unwrap();
        gauge.bounded.increment_by(6)?;
        drop(gauge);
        world.change(|gauge| gauge.bounded.set(100)).await;
        Ok::<_, Error>(())
    };
    let error = world.db.tx().retries(0).run(body).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TransactionFailed);
    assert!(error.to_string().contains("fields=bounded"), "{error}");
}

#[tokio::test]
async fn several_rows_share_one_bound() {
    let world = world(Capabilities::all()).await;
    let body = async |tx: &Tx| {
        for _ in 0..2 {
            let mut gauge = tx.get::<Gauge>("g").await?.unwrap();
            gauge.small.increment_by(2)?;
        }
        Ok::<_, Error>(())
    };
    world.db.tx().cache_rows().run(body).await.unwrap();
    let sent = world.recording.take();
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert!(sent[1].contains("SET small = small + 4"), "{}", sent[1]);
    assert!(sent[1].ends_with("IF small <= 251"), "{}", sent[1]);
}

#[tokio::test]
async fn floats_and_decimals_are_incremented_by_the_store() {
    let world = world(Capabilities::all()).await;
    let add = |gauge: &mut GaugeRow<'_>| {
        gauge.ratio.increment_by(0.2)?;
        gauge.narrow.increment_by(1.25)?;
        gauge.exact.increment_by("0.05".parse().unwrap())
    };
    let (result, runs) = world.race(add, add).await;
    result.unwrap();
    let stored = world.stored().await;
    assert_eq!(runs, 1);
    // The store adds decimals, so the sum is exact.
    assert!((stored.ratio - 0.5).abs() < f64::EPSILON, "{stored:?}");
    assert!((stored.narrow - 4.0).abs() < f32::EPSILON, "{stored:?}");
    assert_eq!(stored.exact, "1.1".parse().unwrap());
}

#[tokio::test]
async fn row_sees_the_sum_that_the_store_computes() {
    let world = world(Capabilities::all()).await;
    let body = async |tx: &Tx| {
        let mut gauge = tx.get::<Gauge>("g").await?.unwrap();
        gauge.ratio.increment_by(0.2)?;
        Ok::<_, Error>(*gauge.ratio)
    };
    let seen = world.db.transact(body).await.unwrap();
    assert_eq!(seen.to_bits(), world.stored().await.ratio.to_bits());
}

#[tokio::test]
async fn float_amounts_without_a_stored_form_are_refused() {
    let world = world(Capabilities::all()).await;
    for amount in [f64::NAN, f64::INFINITY, f64::MAX] {
        let body = async |tx: &Tx| {
            let mut gauge = tx.get::<Gauge>("g").await?.unwrap();
            gauge.ratio.increment_by(amount)
        };
        let error = world.db.transact(body).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidField, "{error}");
    }
    let overflow = async |tx: &Tx| {
        let mut gauge = tx.get::<Gauge>("g").await?.unwrap();
        gauge.narrow.increment_by(f32::MAX)?;
        gauge.narrow.increment_by(f32::MAX)
    };
    let error = world.db.transact(overflow).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidField, "{error}");
}

#[tokio::test]
async fn absent_optional_number_counts_as_zero() {
    let world = world(Capabilities::all()).await;
    let add = |gauge: &mut GaugeRow<'_>| gauge.points.increment_by(2);
    let (result, runs) = world.race(add, add).await;
    result.unwrap();
    assert_eq!((world.stored().await.points, runs), (Some(4), 1));
    let (result, _) = world.race(add, |gauge| gauge.points.set(None)).await;
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidField, "{error}");
}

#[tokio::test]
async fn removed_optional_number_is_read_again() {
    let world = world(Capabilities::all()).await;
    world.change(|gauge| gauge.points.set(Some(1))).await;
    let add = |gauge: &mut GaugeRow<'_>| gauge.points.increment_by(2);
    let (result, runs) = world.race(add, |gauge| gauge.points.set(None)).await;
    result.unwrap();
    assert_eq!((world.stored().await.points, runs), (Some(2), 2));
}

#[tokio::test]
async fn default_is_the_base_of_an_absent_number() {
    let world = world(Capabilities::all()).await;
    let key = Gauge::key("g").unwrap().encoded().to_item();
    let remove = UpdateItem::new("Gauge", key, Update::new().remove(Path::attribute("lives")));
    let removed = world.other.engine().write_item(remove.into()).await;
    removed.unwrap();
    let add = |gauge: &mut GaugeRow<'_>| gauge.lives.increment_by(1);
    let (result, runs) = world.race(add, add).await;
    result.unwrap();
    assert_eq!((world.stored().await.lives, runs), (5, 1));
}
