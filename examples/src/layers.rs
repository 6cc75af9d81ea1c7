//! The registry of Lambda layers: builds of packages and their layers in regions, in one table.
//!
//! A layer is published in versions. The pointer to the latest version moves in the same commit; the previous version
//! is deprecated, and expires after a month. An expired version leaves a tombstone, and the router calls a handler that
//! deletes the real layer. Two sparse indexes list the deployed versions.
//!
//! `cargo run -p floe-examples --bin layers`

#![expect(clippy::print_stdout, reason = "the program prints its results")]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use floe::changes::{ChangeConsumer, Expired, Router, consumer};
use floe::db::TokioTimer;
use floe::registry::Status;
use floe::{Db, Registry};
use floe_examples::{Fallible, arguments, claim};
use floe_local::{LocalEngine, Options};
use floe_store::env::{Clock, ManualClock};
use floe_store::{Env, Timestamp};

const USAGE: &str = "\
Usage: cargo run -p floe-examples --bin layers

A registry of Lambda layers: versions, the latest one in each region, deployed versions, and the expiry of old ones.";

const DAY: Duration = Duration::from_secs(86_400);

/// A layer of a package in a region. The partition key is the group, and the sort key the version.
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

/// A build of a package. The partition key is the version, so that all pointers to latest versions share a partition.
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

/// The database, with a manual clock, so that a month passes at once.
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
    deploy_next_version(&world).await?;
    set_alias_and_retire(&world).await?;
    expire_after_a_month(&world).await
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

/// Packages are built and deployed to two regions. Unchanged packages are not built again.
async fn build_and_deploy(world: &World) -> Fallible {
    let (builds, layers) = (world.db.registry::<Build>(), world.db.registry::<Layer>());
    for new in [build("numpy", "numpy==1.0"), build("scipy", "scipy==1.0")] {
        let built = builds.publish_if_changed(&new).await?;
        claim(built.is_new(), "a new package is built")?;
        let again = builds.publish_if_changed(&new).await?;
        claim(!again.is_new(), "an unchanged package is not built again")?;
    }
    let latest = builds.latest_of_groups().await?;
    println!("{} packages are built.", latest.len());
    claim(latest.len() == 2, "one query returns all of them")?;
    for region in ["eu-west-1", "us-east-1"] {
        let number = layers.publish(&layer(region, "numpy", 1)).await?;
        claim(number == 1, "numbers begin with 1 in each region")?;
    }
    let everywhere = layers.latest_of_all(Layer::BY_PACKAGE, "numpy").await?;
    println!("numpy is deployed to {} regions.", everywhere.len());
    claim(everywhere.len() == 2, "the index lists all regions")
}

/// A new build and its layer are published in one commit. The previous layer is deprecated.
async fn deploy_next_version(world: &World) -> Fallible {
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
    claim(latest.number == number, "the pointer refers to it")?;
    let deployed = layers.deployed_in(Layer::BY_REGION, "eu-west-1").await?;
    let states: Vec<_> = deployed.iter().map(|l| (l.number, l.status)).collect();
    let expected = [(1, Some(Status::Deprecated)), (2, Some(Status::Latest))];
    claim(states == expected, "the previous version is still usable")?;
    let yesterday = Timestamp::from_millis(world.clock.now().as_millis() - 1);
    let before = layers.as_of(("eu-west-1", "numpy"), yesterday).await?;
    let before = before.ok_or("there was a latest version")?;
    claim(before.number == 1, "it was the latest until today")
}

/// A version that must stay gets an alias, and a faulty version is retired.
async fn set_alias_and_retire(world: &World) -> Fallible {
    let (layers, numpy) = (world.db.registry::<Layer>(), ("us-east-1", "numpy"));
    layers.set_alias(numpy, "lts", 1).await?;
    layers.publish(&layer("us-east-1", "numpy", 2)).await?;
    let lts = layers.by_alias(numpy, "lts").await?;
    let lts = lts.ok_or("the alias has a version")?;
    claim(
        lts.expires.is_none(),
        "a version with an alias does not expire",
    )?;
    layers.publish(&layer("us-east-1", "numpy", 3)).await?;
    claim(layers.retire(numpy, 3).await?, "it was deployed")?;
    claim(!layers.retire(numpy, 3).await?, "it is no longer deployed")?;
    let latest = layers.latest(numpy).await?;
    let latest = latest.ok_or("there is a latest version")?.number;
    println!("Version 3 is retired in us-east-1: the latest is {latest} again.");
    claim(latest == 2, "the previous version is the latest again")
}

/// The deprecated version expires: the real layer is deleted, and a tombstone stays.
async fn expire_after_a_month(world: &World) -> Fallible {
    let deleted = Arc::new(Mutex::new(Vec::new()));
    let deletions = deleted.clone();
    let router = Router::new().on_expired::<Layer>(&world.db, move |expired: Expired<Layer>| {
        let deletions = deletions.clone();
        async move {
            let arn = expired.version.value.arn;
            println!("Deleting {arn}.");
            deletions
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(arn);
            Ok(())
        }
    });
    let consumer = ChangeConsumer::new(&world.db, "layers", router);
    // From here on, the consumer has a stored position in the change stream.
    consumer.run_until_caught_up().await?;
    world.clock.advance(31 * DAY);
    while world.engine.run_background_once()? {}
    consumer.run_until_caught_up().await?;
    let deleted = std::mem::take(&mut *deleted.lock().unwrap_or_else(PoisonError::into_inner));
    let expected = [layer("eu-west-1", "numpy", 1).arn];
    claim(deleted == expected, "the handler was called once")?;
    let layers = world.db.registry::<Layer>();
    let history = layers.history(("eu-west-1", "numpy")).collect().await?;
    for version in &history {
        let state = if version.deleted.is_some() {
            "deleted"
        } else {
            "deployed"
        };
        println!("Version {} is {state}.", version.number);
    }
    let is_deleted: Vec<_> = history.iter().map(|v| v.deleted.is_some()).collect();
    claim(is_deleted == [true, false], "its tombstone stays")?;
    let deployed = layers.deployed_in(Layer::BY_REGION, "us-east-1").await?;
    claim(
        deployed.len() == 2,
        "the latest version and the one with an alias stay",
    )
}
