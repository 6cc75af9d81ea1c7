//! The registry of Lambda layers: builds of packages, layers of them in regions, both in one table.
//!
//! A layer is published in versions. The pointer to the latest is moved in the same commit; the version before is
//! deprecated and goes after a month. What is gone stays as a tombstone, and the router tells when the real layer is to be
//! deleted. Two sparse indexes tell what is deployed.
//!
//! `cargo run -p floe-examples --bin layers`

#![expect(clippy::print_stdout, reason = "a program that shows what happens")]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use floe::changes::{Consumer, Expired, Router, consumer};
use floe::db::TokioTimer;
use floe::registry::Status;
use floe::{Db, Registry};
use floe_examples::{Fallible, arguments, claim};
use floe_local::{LocalEngine, Options};
use floe_store::env::{Clock, ManualClock};
use floe_store::{Env, Timestamp};

const USAGE: &str = "\
Usage: cargo run -p floe-examples --bin layers

A registry of Lambda layers: versions, the latest in each region, what is deployed, and what becomes of the old ones.";

const DAY: Duration = Duration::from_secs(86_400);

/// A layer of a package in a region. The partition is the group, and its versions are sorted in it.
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
struct Layer {
    #[registry(rename = "rgn")]
    region: String,
    #[registry(rename = "pckg")]
    package: String,
    arn: String,
}

/// A build of a package. The partition is the version, so that all pointers to the latest are one partition.
#[derive(Clone, Debug, PartialEq, Registry)]
#[registry(
    table = "klayers",
    pk = "bld#v{version}",
    sk = "pckg#{package}",
    latest = "bldVrsn0#",
    version = "bldVrsn",
    published = "crtdDt"
)]
struct Build {
    #[registry(rename = "pckg")]
    package: String,
    #[registry(rename = "requirementsTxt")]
    requirements: String,
    #[registry(rename = "requirementsHsh", hash)]
    hash: String,
}

/// The database, on a clock that the program moves: a month is over in no time.
struct World {
    db: Db,
    engine: Arc<LocalEngine>,
    clock: Arc<ManualClock>,
}

#[tokio::main]
async fn main() -> Fallible {
    if arguments(USAGE, 0)?.is_none() {
        return Ok(());
    }
    let clock = ManualClock::at(Timestamp::from_millis(1_767_225_600_000));
    let env = Env::manual(clock.clone(), 1);
    let options = Options::new().env(env.clone()).background(false);
    let engine = Arc::new(LocalEngine::memory_with(options)?);
    let db = Db::with_parts(engine.clone(), env, Arc::new(TokioTimer));
    db.ensure_registries(&[Layer::SCHEMA, Build::SCHEMA])
        .await?;
    db.ensure_tables(&consumer::SCHEMAS).await?;
    let world = World { db, engine, clock };
    build_and_deploy(&world).await?;
    deploy_the_next(&world).await?;
    keep_and_take_back(&world).await?;
    let_a_month_pass(&world).await
}

fn build(package: &str, requirements: &str) -> Build {
    Build {
        package: package.to_owned(),
        requirements: requirements.to_owned(),
        hash: format!("hash-of-{requirements}"),
    }
}

fn layer(region: &str, package: &str, number: u64) -> Layer {
    Layer {
        region: region.to_owned(),
        package: package.to_owned(),
        arn: format!("arn:aws:lambda:{region}:layer:{package}:{number}"),
    }
}

/// Packages are built, and deployed to two regions. What has not changed is not built again.
async fn build_and_deploy(world: &World) -> Fallible {
    let (builds, layers) = (world.db.registry::<Build>(), world.db.registry::<Layer>());
    for new in [build("numpy", "numpy==1.0"), build("scipy", "scipy==1.0")] {
        let built = builds.publish_if_changed(&new).await?;
        claim(built.is_new(), "a new package is built")?;
        let again = builds.publish_if_changed(&new).await?;
        claim(!again.is_new(), "the same is not built again")?;
    }
    let latest = builds.latest_of_groups().await?;
    println!("{} packages are built.", latest.len());
    claim(latest.len() == 2, "one query tells all of them")?;
    for region in ["eu-west-1", "us-east-1"] {
        let number = layers.publish(&layer(region, "numpy", 1)).await?;
        claim(number == 1, "numbers begin with 1 in each region")?;
    }
    let everywhere = layers.latest_of_all(Layer::BY_PACKAGE, "numpy").await?;
    println!("numpy is deployed to {} regions.", everywhere.len());
    claim(everywhere.len() == 2, "the index knows all regions")
}

/// A new build and its layer are published in one commit. The layer before is deprecated.
async fn deploy_the_next(world: &World) -> Fallible {
    world.clock.advance(DAY);
    let number = world.db.transact(async |tx| {
        let new = build("numpy", "numpy==2.0");
        tx.registry::<Build>().publish(&new).await?;
        let new = layer("eu-west-1", "numpy", 2);
        tx.registry::<Layer>().publish(&new).await
    });
    let number = number.await?;
    let layers = world.db.registry::<Layer>();
    let latest = layers.latest(("eu-west-1", "numpy")).await?;
    let latest = latest.ok_or("there is a latest version")?;
    println!("The latest in eu-west-1 is {}.", latest.value.arn);
    claim(latest.number == number, "the pointer leads to it")?;
    let deployed = layers.deployed_in(Layer::BY_REGION, "eu-west-1").await?;
    let states: Vec<_> = deployed.iter().map(|l| (l.number, l.status)).collect();
    let expected = [(1, Some(Status::Deprecated)), (2, Some(Status::Latest))];
    claim(states == expected, "the one before can still be used")?;
    let yesterday = Timestamp::from_millis(world.clock.now().as_millis() - 1);
    let before = layers.as_of(("eu-west-1", "numpy"), yesterday).await?;
    let before = before.ok_or("there was a latest version")?;
    claim(before.number == 1, "it was the latest until today")
}

/// A version that must stay gets an alias, and one that was a mistake is retired.
async fn keep_and_take_back(world: &World) -> Fallible {
    let (layers, numpy) = (world.db.registry::<Layer>(), ("us-east-1", "numpy"));
    layers.set_alias(numpy, "lts", 1).await?;
    layers.publish(&layer("us-east-1", "numpy", 2)).await?;
    let lts = layers.by_alias(numpy, "lts").await?;
    let lts = lts.ok_or("the alias leads somewhere")?;
    claim(lts.expires.is_none(), "what has an alias does not expire")?;
    layers.publish(&layer("us-east-1", "numpy", 3)).await?;
    claim(layers.retire(numpy, 3).await?, "it was deployed")?;
    claim(!layers.retire(numpy, 3).await?, "and now it is not")?;
    let latest = layers.latest(numpy).await?;
    let latest = latest.ok_or("there is a latest version")?.number;
    println!("Version 3 was a mistake in us-east-1: the latest is {latest} again.");
    claim(latest == 2, "the one before is the latest again")
}

/// What was deprecated expires: the real layer is deleted, and a tombstone stays.
async fn let_a_month_pass(world: &World) -> Fallible {
    let deleted = Arc::new(Mutex::new(Vec::new()));
    let noted = deleted.clone();
    let router = Router::new().on_expired::<Layer>(&world.db, move |expired: Expired<Layer>| {
        let noted = noted.clone();
        async move {
            let arn = expired.version.value.arn;
            println!("Deletes {arn}.");
            noted
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(arn);
            Ok(())
        }
    });
    let consumer = Consumer::new(&world.db, "layers", router);
    // From here on the change stream is kept for it.
    consumer.run_until_caught_up().await?;
    world.clock.advance(31 * DAY);
    while world.engine.run_background_once()? {}
    consumer.run_until_caught_up().await?;
    let deleted = std::mem::take(&mut *deleted.lock().unwrap_or_else(PoisonError::into_inner));
    let expected = [layer("eu-west-1", "numpy", 1).arn];
    claim(deleted == expected, "the handler was told once")?;
    let layers = world.db.registry::<Layer>();
    let history = layers.history(("eu-west-1", "numpy")).collect().await?;
    for version in &history {
        let state = match version.deleted {
            Some(_) => "gone",
            None => "deployed",
        };
        println!("Version {} is {state}.", version.number);
    }
    let is_gone: Vec<_> = history.iter().map(|v| v.deleted.is_some()).collect();
    claim(is_gone == [true, false], "its tombstone stays")?;
    let deployed = layers.deployed_in(Layer::BY_REGION, "us-east-1").await?;
    claim(deployed.len() == 2, "the latest and the alias have stayed")
}
