//! The life cycle of one package, from its first build to the tombstone of its first layer.

use floe::registry::Status;

use super::expiry::{changes, recording_router};
use super::support::{CallLog, DAY, Layer, World, build, layer, numbers};

#[tokio::test]
async fn life_cycle_of_a_package() {
    let world = World::new().await;
    let (layers, builds, deleted) = (&world.layers, &world.builds, CallLog::default());
    let router = recording_router(&world, &deleted);

    // A package is built, and deployed to two regions.
    let first = build("numpy", "numpy==1.0");
    assert_eq!(builds.publish(&first).await, Ok(1));
    for region in ["eu-west-1", "us-east-1"] {
        let layer = layer(region, "numpy", &format!("arn:{region}:numpy:1"));
        assert_eq!(layers.publish(&layer).await, Ok(1));
    }
    let latest = layers.latest_of_all(Layer::BY_PACKAGE, "numpy");
    assert_eq!(latest.await.unwrap().len(), 2);

    // The next day, the build is unchanged.
    world.test.advance(DAY);
    let published = builds.publish_if_changed(&first).await.unwrap();
    assert!(!published.is_new());

    // A new version is built, and deployed to one of the regions.
    world.test.advance(DAY);
    let second = build("numpy", "numpy==2.0");
    assert!(builds.publish_if_changed(&second).await.unwrap().is_new());
    let new = layer("eu-west-1", "numpy", "arn:eu-west-1:numpy:2");
    assert_eq!(layers.publish(&new).await, Ok(2));
    let arn = layers.latest(("eu-west-1", "numpy")).await.unwrap();
    assert_eq!(arn.unwrap().value.arn, "arn:eu-west-1:numpy:2");

    // The first version is deprecated there, and still usable.
    let deployed = layers.deployed_in(Layer::BY_REGION, "eu-west-1");
    let deployed = deployed.await.unwrap();
    let found: Vec<_> = deployed.iter().map(|l| (l.number, l.status)).collect();
    assert_eq!(
        found,
        [(1, Some(Status::Deprecated)), (2, Some(Status::Latest))]
    );

    // After a month it has expired. No list contains it, although the store has not removed it.
    world.test.advance(30 * DAY);
    let expired_at = world.test.now();
    let deployed = layers.deployed_in(Layer::BY_REGION, "eu-west-1");
    assert_eq!(numbers(&deployed.await.unwrap()), [2]);

    // The store removes it later, and the handler deletes the real layer.
    world.test.advance(2 * DAY);
    world.sweep();
    let delivery = router.deliver(&changes(&*world.engine).await).await;
    assert!(delivery.failures.is_empty(), "{delivery:?}");
    assert_eq!(deleted.take(), ["1 arn:eu-west-1:numpy:1"]);

    // The tombstone stays. Everything else is unchanged.
    let history = layers.history(("eu-west-1", "numpy")).collect().await;
    let history = history.unwrap();
    assert_eq!(numbers(&history), [1, 2]);
    assert_eq!(history[0].deleted, Some(expired_at));
    assert_eq!(history[0].value.arn, "arn:eu-west-1:numpy:1");
    assert!(history[1].is_deployed());
    let elsewhere = layers.latest(("us-east-1", "numpy")).await.unwrap();
    assert!(
        elsewhere.unwrap().is_deployed(),
        "the latest version does not expire"
    );
    let requirements = builds.latest("numpy").await.unwrap().unwrap();
    assert_eq!(requirements.value.requirements, "numpy==2.0");
    let before = layers.as_of(("eu-west-1", "numpy"), floe_testkit::time::TestEnv::START);
    assert_eq!(before.await.unwrap().unwrap().number, 1);
}
