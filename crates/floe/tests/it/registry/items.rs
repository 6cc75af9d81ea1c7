//! The stored items, attribute by attribute.

use floe_store::{Item, Set, Text, Value};

use super::support::{DAY, World, build, layer};

const START: &str = "2025-01-01T00:00:00.000Z";

/// The epoch seconds of the start plus a number of days.
fn secs(days: u64) -> u64 {
    1_735_689_600 + days * 86_400
}

fn layer_item(number: u64, sk: &str) -> Item {
    Item::new()
        .with("pk", "lyr#eu-west-1.numpy")
        .with("sk", sk)
        .with("rgn", "eu-west-1")
        .with("pckg", "numpy")
        .with("arn", format!("arn:{number}").as_str())
        .with("requirementsHsh", format!("hash of arn:{number}").as_str())
        .with("lyrVrsn", number)
        .with("crtdDt", START)
}

async fn publish(world: &World, number: u64) {
    let layer = layer("eu-west-1", "numpy", &format!("arn:{number}"));
    assert_eq!(world.layers.publish(&layer).await, Ok(number));
}

async fn layer_of(world: &World, sk: &str) -> Option<Item> {
    world.item("lyr#eu-west-1.numpy", sk).await
}

#[tokio::test]
async fn layer_and_pointer_have_the_documented_attributes() {
    let world = World::new().await;
    publish(&world, 1).await;
    let version = layer_item(1, "lyrVrsn#v0000000001").with("dplySts", "latest");
    assert_eq!(layer_of(&world, "lyrVrsn#v0000000001").await, Some(version));
    let pointer = layer_item(1, "lyrVrsn0#");
    assert_eq!(layer_of(&world, "lyrVrsn0#").await, Some(pointer));
    assert_eq!(world.items().await.len(), 2);
}

#[tokio::test]
async fn deprecated_layer_has_status_and_expiry() {
    let world = World::new().await;
    publish(&world, 1).await;
    publish(&world, 2).await;
    let deprecated = layer_item(1, "lyrVrsn#v0000000001")
        .with("dplySts", "deprecated")
        .with("exDt", secs(30));
    assert_eq!(
        layer_of(&world, "lyrVrsn#v0000000001").await,
        Some(deprecated)
    );
    let pointer = layer_item(2, "lyrVrsn0#");
    assert_eq!(layer_of(&world, "lyrVrsn0#").await, Some(pointer));
    assert_eq!(world.items().await.len(), 3);
}

#[tokio::test]
async fn retirement_moves_the_pointer_to_the_previous_version() {
    let world = World::new().await;
    publish(&world, 1).await;
    publish(&world, 2).await;
    world.test.advance(DAY);
    world
        .layers
        .retire(("eu-west-1", "numpy"), 2)
        .await
        .unwrap();
    let retired =
        layer_item(2, "lyrVrsn#v0000000002").with("deleted_date", "2025-01-02T00:00:00.000Z");
    assert_eq!(layer_of(&world, "lyrVrsn#v0000000002").await, Some(retired));
    let latest = layer_item(1, "lyrVrsn#v0000000001").with("dplySts", "latest");
    assert_eq!(layer_of(&world, "lyrVrsn#v0000000001").await, Some(latest));
    let pointer = layer_item(1, "lyrVrsn0#").with("_last", 2);
    assert_eq!(layer_of(&world, "lyrVrsn0#").await, Some(pointer));
    // The number is not reused.
    world
        .layers
        .retire(("eu-west-1", "numpy"), 1)
        .await
        .unwrap();
    let empty = Item::new()
        .with("pk", "lyr#eu-west-1.numpy")
        .with("sk", "lyrVrsn0#")
        .with("_last", 2);
    assert_eq!(layer_of(&world, "lyrVrsn0#").await, Some(empty));
    assert_eq!(world.layers.latest(("eu-west-1", "numpy")).await, Ok(None));
    publish(&world, 3).await;
    let mut pointer = layer_item(3, "lyrVrsn0#");
    pointer.insert("crtdDt", "2025-01-02T00:00:00.000Z");
    assert_eq!(layer_of(&world, "lyrVrsn0#").await, Some(pointer));
}

#[tokio::test]
async fn tombstone_of_an_expired_layer_has_its_deletion_time() {
    let world = World::new().await;
    publish(&world, 1).await;
    publish(&world, 2).await;
    let removed = layer_of(&world, "lyrVrsn#v0000000001").await.unwrap();
    world.test.advance(31 * DAY);
    world.sweep();
    assert_eq!(layer_of(&world, "lyrVrsn#v0000000001").await, None);
    assert_eq!(world.layers.write_tombstone(&removed).await, Ok(true));
    let tombstone =
        layer_item(1, "lyrVrsn#v0000000001").with("deleted_date", "2025-01-31T00:00:00.000Z");
    assert_eq!(
        layer_of(&world, "lyrVrsn#v0000000001").await,
        Some(tombstone)
    );
}

#[tokio::test]
async fn build_and_pointer_have_the_documented_attributes() {
    let world = World::new().await;
    world
        .builds
        .publish(&build("numpy", "numpy==1"))
        .await
        .unwrap();
    let version = world.item("bld#v0000000001", "pckg#numpy").await.unwrap();
    let hash = version.get("content_hash").and_then(Value::as_s).unwrap();
    let expected = |pk: &str| {
        Item::new()
            .with("pk", pk)
            .with("sk", "pckg#numpy")
            .with("pckg", "numpy")
            .with("requirements.txt", "numpy==1")
            .with("content_hash", hash)
            .with("bldVrsn", 1)
            .with("crtdDt", START)
    };
    assert_eq!(version, expected("bld#v0000000001"));
    let pointer = world.item("bldVrsn0#", "pckg#numpy").await;
    assert_eq!(pointer, Some(expected("bldVrsn0#")));
    world.builds.retire("numpy", 1).await.unwrap();
    let retired = expected("bld#v0000000001").with("deleted_date", START);
    assert_eq!(
        world.item("bld#v0000000001", "pckg#numpy").await,
        Some(retired)
    );
    let empty = Item::new()
        .with("pk", "bldVrsn0#")
        .with("sk", "pckg#numpy")
        .with("_last", 1);
    assert_eq!(world.item("bldVrsn0#", "pckg#numpy").await, Some(empty));
    assert_eq!(world.builds.latest_of_groups().await, Ok(Vec::new()));
}

#[tokio::test]
async fn aliases_and_pins_are_stored_on_version_and_pointer() {
    let world = World::new().await;
    publish(&world, 1).await;
    publish(&world, 2).await;
    let group = ("eu-west-1", "numpy");
    world.layers.set_alias(group, "lts", 2).await.unwrap();
    world.layers.pin(group, 1).await.unwrap();
    let aliases = Value::Ss(Set::new([Text::from("lts")]).unwrap());
    let alias = Item::new()
        .with("pk", "lyr#eu-west-1.numpy")
        .with("sk", "lyrVrsn0#lts")
        .with("lyrVrsn", 2);
    assert_eq!(layer_of(&world, "lyrVrsn0#lts").await, Some(alias));
    let latest = layer_item(2, "lyrVrsn#v0000000002")
        .with("dplySts", "latest")
        .with("_aliases", aliases.clone());
    assert_eq!(layer_of(&world, "lyrVrsn#v0000000002").await, Some(latest));
    let pointer = layer_item(2, "lyrVrsn0#").with("_aliases", aliases);
    assert_eq!(layer_of(&world, "lyrVrsn0#").await, Some(pointer));
    let pinned = layer_item(1, "lyrVrsn#v0000000001")
        .with("dplySts", "deprecated")
        .with("_pinned", true);
    assert_eq!(layer_of(&world, "lyrVrsn#v0000000001").await, Some(pinned));
}

#[tokio::test]
async fn indexes_contain_deployed_versions_only() {
    let world = World::new().await;
    for number in 1..=4 {
        publish(&world, number).await;
    }
    let group = ("eu-west-1", "numpy");
    world.layers.set_alias(group, "lts", 2).await.unwrap();
    world.layers.retire(group, 1).await.unwrap();
    world.layers.retire(group, 4).await.unwrap();
    let expected = ["lyrVrsn#v0000000002", "lyrVrsn#v0000000003"];
    for (index, attribute, key) in [
        ("region-status", "rgn", "eu-west-1"),
        ("package-status", "pckg", "numpy"),
    ] {
        let mut found = world.index(index, attribute, key).await;
        found.sort_unstable();
        assert_eq!(found, expected, "{index}");
    }
}
