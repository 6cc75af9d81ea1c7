//! The life of one package, from its first build to the tombstone of its first layer.

use floe::registry::Status;

use super::expiry::{changes, noting};
use super::support::{DAY, Layer, Notes, World, build, layer, numbers};

#[tokio::test]
async fn the_life_of_a_package() {
    let world = World::new().await;
    let (layers, builds, deleted) = (&world.layers, &world.builds, Notes::default());
    let router = noting(&world, &deleted);

    // A package is built, and deployed to two regions.
    let first = build("numpy", "numpy==1.0");
    assert_eq!(builds.publish(&first).await, Ok(1));
    for region in ["eu-west-1", "us-east-1"] {
        let layer = layer(region, "numpy", &format!("arn:{region}:numpy:1"));
        assert_eq!(layers.publish(&layer).await, Ok(1));
    }
    let latest = layers.latest_of_all(Layer::BY_PACKAGE, "numpy");
    assert_eq!(latest.await.unwrap().len(), 2);

    // The next day nothing has changed, so there is nothing to do.
    world.test.advance(DAY);
    let published = builds.publish_if_changed(&first).await.unwrap();
    assert!(!published.is_new());

    // Then there is a new version, which is deployed to one of them.
    world.test.advance(DAY);
    let second = build("numpy", "numpy==2.0");
    assert!(builds.publish_if_changed(&second).await.unwrap().is_new());
    let new = layer("eu-west-1", "numpy", "arn:eu-west-1:numpy:2");
    assert_eq!(layers.publish(&new).await, Ok(2));
    let arn = layers.latest(("eu-west-1", "numpy")).await.unwrap();
    assert_eq!(arn.unwrap().value.arn, "arn:eu-west-1:numpy:2");

    // The first is deprecated there: it can still be used, for a while.
    let deployed = layers.deployed_in(Layer::BY_REGION, "eu-west-1");
    let deployed = deployed.await.unwrap();
    let found: Vec<_> = deployed.iter().map(|l| (l.number, l.status)).collect();
    assert_eq!(
        found,
        [(1, Some(Status::Deprecated)), (2, Some(Status::Latest))]
    );

    // After a month its time has come. Nobody sees it any more, though the store has it still.
    world.test.advance(30 * DAY);
    let gone_since = world.test.now();
    let deployed = layers.deployed_in(Layer::BY_REGION, "eu-west-1");
    assert_eq!(numbers(&deployed.await.unwrap()), [2]);

    // The store removes it some time later, the router is told, and the real layer is deleted.
    world.test.advance(2 * DAY);
    world.sweep();
    let delivery = router.deliver(&changes(&*world.engine).await).await;
    assert!(delivery.failures.is_empty(), "{delivery:?}");
    assert_eq!(deleted.take(), ["1 arn:eu-west-1:numpy:1"]);

    // Its tombstone stays. Everything else is as it was.
    let history = layers.history(("eu-west-1", "numpy")).collect().await;
    let history = history.unwrap();
    assert_eq!(numbers(&history), [1, 2]);
    assert_eq!(history[0].deleted, Some(gone_since));
    assert_eq!(history[0].value.arn, "arn:eu-west-1:numpy:1");
    assert!(history[1].is_deployed());
    let elsewhere = layers.latest(("us-east-1", "numpy")).await.unwrap();
    assert!(
        elsewhere.unwrap().is_deployed(),
        "the latest does not expire"
    );
    let requirements = builds.latest("numpy").await.unwrap().unwrap();
    assert_eq!(requirements.value.requirements, "numpy==2.0");
    let before = layers.as_of(("eu-west-1", "numpy"), floe_testkit::time::TestEnv::START);
    assert_eq!(before.await.unwrap().unwrap().number, 1);
}
