//! Edge cases: unusual names, number limits, and inconsistent items.

use floe::registry::VERSION_MAX;
use floe::{Db, ErrorKind, Registry};
use floe_store::Item;

use super::support::{World, build, layer, numbers};

#[derive(Clone, Debug, PartialEq, Registry)]
#[registry(
    table = "klayers",
    pk = "lyr#{region}.{package}",
    sk = "lyrVrsn#v{version}",
    latest = "lyrVrsn0#",
    version = "lyrVrsn",
    status = "dplySts",
    legacy_keys
)]
struct LegacyLayer {
    #[registry(rename = "rgn")]
    region: String,
    #[registry(rename = "pckg")]
    package: String,
}

/// A registry whose groups are identified by numbers.
#[derive(Clone, Debug, PartialEq, Registry)]
#[registry(table = "floors", pk = "f#{house}/{floor}", sk = "v{version}", latest = "latest", status = "s",
    index(name = "by-house", key = house))]
struct Floor {
    house: u32,
    floor: i8,
    #[registry(serde, default)]
    rooms: Vec<String>,
}

const NAMES: [&str; 10] = [
    "a",
    "a.b",
    "a#b",
    "b",
    ".",
    "%",
    "%2E",
    "lyrVrsn0#",
    "ä.ß/🦀",
    " \u{0}\n",
];

#[tokio::test]
async fn names_with_separators_and_unicode_are_separate_groups() {
    let world = World::new().await;
    for region in NAMES {
        for package in NAMES {
            let layer = layer(region, package, "arn");
            assert_eq!(world.layers.publish(&layer).await, Ok(1), "{layer:?}");
            let found = world.layers.latest((region, package)).await.unwrap();
            assert_eq!(found.unwrap().value, layer);
        }
        let found = build(region, "r");
        assert_eq!(world.builds.publish(&found).await, Ok(1), "{region}");
    }
    let builds = world.builds.latest_of_groups().await.unwrap();
    assert_eq!(builds.len(), NAMES.len());
    let group = NAMES.map(|name| world.layers.set_alias(("a", "a"), name, 1));
    for (alias, name) in group.into_iter().zip(NAMES) {
        assert_eq!(alias.await, Ok(true), "{name}");
    }
    let history = world.layers.history(("a", "a")).collect().await.unwrap();
    assert_eq!(numbers(&history), [1], "aliases are not versions");
}

#[tokio::test]
async fn empty_and_too_long_names_are_rejected() {
    let world = World::new().await;
    let error = world.layers.latest(("", "numpy")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidField);
    assert_eq!(
        error.to_string(),
        "a name in a group cannot be empty: model=Layer field=region"
    );
    let error = world.layers.publish(&layer("eu", "", "arn")).await;
    assert_eq!(error.unwrap_err().field(), Some("package"));
    let error = world.layers.history(("eu", "")).page().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidField);
    let longest = "x".repeat(2048 - "lyr#eu.".len());
    assert_eq!(
        world.layers.publish(&layer("eu", &longest, "1")).await,
        Ok(1)
    );
    let error = world.layers.latest(("eu", &*format!("{longest}x"))).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "the key is too long: bytes=2049 bytes_max=2048 model=Layer field=pk"
    );
    let longest = "x".repeat(1024 - "pckg#".len());
    assert_eq!(world.builds.publish(&build(&longest, "1")).await, Ok(1));
    let longer = build(&format!("{longest}x"), "1");
    let error = world.builds.publish(&longer).await.unwrap_err();
    assert_eq!(error.field(), Some("sk"));
    let error = world.layers.set_alias(("eu", "numpy"), "", 1).await;
    assert_eq!(error.unwrap_err().field(), Some("alias"));
    assert_eq!(
        world
            .layers
            .by_alias(("eu", "x"), "")
            .await
            .unwrap_err()
            .field(),
        Some("alias")
    );
}

#[tokio::test]
async fn number_after_the_largest_is_an_error() {
    let world = World::new().await;
    let pointer = Item::new()
        .with("pk", "lyr#eu.numpy")
        .with("sk", "lyrVrsn0#")
        .with("_last", VERSION_MAX - 1);
    world.put(pointer).await;
    let numpy = layer("eu", "numpy", "arn");
    assert_eq!(world.layers.publish(&numpy).await, Ok(VERSION_MAX));
    let error = world.layers.publish(&numpy).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert_eq!(
        error.to_string(),
        "the group has no numbers left: group=Layer(lyr#eu.numpy) last=9999999999 max=9999999999"
    );
    let history = world.layers.history(&numpy).newest_first().limit(1);
    assert_eq!(numbers(&history.page().await.unwrap().rows), [VERSION_MAX]);
}

#[tokio::test]
async fn too_large_version_is_rejected_before_the_commit() {
    let world = World::new().await;
    let large = build("numpy", &"x".repeat(400 * 1024));
    let error = world.builds.publish(&large).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert_eq!(world.requests(), ["GetItem"]);
}

#[tokio::test]
async fn direct_changes_of_the_table_are_detected() {
    let world = World::new().await;
    world.publish("eu", "numpy", 1).await;
    let mut taken = world
        .item("lyr#eu.numpy", "lyrVrsn#v0000000001")
        .await
        .unwrap();
    taken.insert("sk", "lyrVrsn#v0000000002");
    world.put(taken).await;
    let error = world.layers.publish(&layer("eu", "numpy", "x")).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "the next version number is already taken: another program has changed the items of the registry directly: \
         group=Layer(lyr#eu.numpy)"
    );
    world.publish("eu", "scipy", 1).await;
    let mut moved = world
        .item("lyr#eu.scipy", "lyrVrsn#v0000000001")
        .await
        .unwrap();
    moved.insert("dplySts", "deprecated");
    world.put(moved.clone()).await;
    let error = world
        .layers
        .publish(&layer("eu", "scipy", "x"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    moved.insert("dplySts", "gone");
    world.put(moved).await;
    let error = world.layers.version(("eu", "scipy"), 1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidField);
    assert_eq!(error.field(), Some("dplySts"));
}

#[tokio::test]
async fn missing_table_error_names_ensure_registries() {
    let db = Db::memory().unwrap();
    let layers = db.registry::<super::support::Layer>();
    let read = layers.latest(("eu", "numpy")).await.unwrap_err();
    let published = layers
        .publish(&layer("eu", "numpy", "x"))
        .await
        .unwrap_err();
    for error in [read, published] {
        assert_eq!(error.kind(), ErrorKind::Table);
        assert!(error.to_string().contains("ensure_registries"), "{error}");
    }
}

#[tokio::test]
async fn legacy_keys_match_the_seed() {
    let world = World::new().await;
    let layers = world.db.registry::<LegacyLayer>();
    let zope = LegacyLayer {
        region: "eu-west-1".to_owned(),
        package: "zope.interface".to_owned(),
    };
    for number in 1..=12 {
        assert_eq!(layers.publish(&zope).await, Ok(number));
    }
    let pk = "lyr#eu-west-1.zope.interface";
    for sk in ["lyrVrsn#v1", "lyrVrsn#v12", "lyrVrsn0#"] {
        assert!(world.item(pk, sk).await.is_some(), "{sk}");
    }
    // Legacy keys do not sort by number, so the history is read by number.
    world.clear_records();
    let history = layers.history(&zope).collect().await.unwrap();
    assert_eq!(numbers(&history), (1..=12).collect::<Vec<_>>());
    assert_eq!(world.requests(), ["GetItem", "BatchGetItem"]);
    layers.retire(&zope, 12).await.unwrap();
    let latest = layers.latest(("eu-west-1", "zope.interface")).await;
    assert_eq!(latest.unwrap().unwrap().number, 11);
}

#[tokio::test]
async fn groups_can_consist_of_numbers() {
    let db = Db::memory().unwrap();
    db.ensure_registries(&[Floor::SCHEMA]).await.unwrap();
    let floors = db.registry::<Floor>();
    let floor = Floor {
        house: 7,
        floor: -1,
        rooms: vec!["cellar".to_owned()],
    };
    assert_eq!(floors.publish(&floor).await, Ok(1));
    assert_eq!(floors.latest((7, -1)).await.unwrap().unwrap().value, floor);
    let of_house = floors.latest_of_all(Floor::BY_HOUSE, 7_u32).await.unwrap();
    assert_eq!(numbers(&of_house), [1]);
    assert_eq!(floors.latest((71, 1)).await, Ok(None));
}
