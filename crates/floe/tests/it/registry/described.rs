//! Registries without a struct: their stored descriptions, and calls by description.

use std::sync::Arc;

use floe::changes::Watched;
use floe::registry::{Registry, RegistrySchema, Status, Versions};
use floe::{Db, ErrorKind};
use floe_store::op::PutItem;
use floe_store::{Item, Set, Text, Value};

use super::read_only::ReadOnly;
use super::support::{Build, DAY, Layer, TABLE, World, build, layer, numbers};

const NUMPY: [(&str, &str); 2] = [("region", "eu"), ("package", "numpy")];

/// The item of a layer.
fn layer_item(region: &str, package: &str, arn: &str) -> Item {
    Item::new()
        .with("rgn", region)
        .with("pckg", package)
        .with("arn", arn)
        .with("requirementsHsh", format!("hash of {arn}").as_str())
}

async fn described(world: &World, name: &str) -> Versions<'static, Item> {
    let all = world.db.described_registries(TABLE).await.unwrap();
    let schema = all.into_iter().find(|schema| schema.name == name);
    world.db.registry_described(schema.unwrap())
}

#[tokio::test]
async fn descriptions_are_stored_in_the_table() {
    let world = World::new().await;
    let found = world.db.described_registries(TABLE).await.unwrap();
    assert_eq!(found, [Build::SCHEMA, Layer::SCHEMA]);
    let again = world.db.described_registries(TABLE).await.unwrap();
    assert!(
        std::ptr::eq(found[0], again[0]),
        "one schema for each description"
    );
    let item = world.item("_registry#", "_registry#Layer#").await.unwrap();
    assert_eq!(
        item.get("_registry"),
        Some(&Value::from(Layer::SCHEMA.describe()))
    );
    assert_eq!(item.len(), 3);
    let missing = world.db.described_registries("none").await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Table);
}

#[tokio::test]
async fn ensure_registries_rewrites_a_different_description() {
    let world = World::new().await;
    let ensure = async || {
        let schemas = [Layer::SCHEMA, Build::SCHEMA];
        world.db.ensure_registries(&schemas).await.unwrap();
        world.requests()
    };
    assert_eq!(ensure().await, ["DescribeTable", "BatchGetItem"]);
    let twice = [Layer::SCHEMA, Layer::SCHEMA];
    world.db.ensure_registries(&twice).await.unwrap();
    assert_eq!(world.requests(), ["DescribeTable", "GetItem"]);
    let old = world.item("_registry#", "_registry#Layer#").await.unwrap();
    world.put(old.with("_registry", "{}")).await;
    let broken = world.db.described_registries(TABLE).await.unwrap_err();
    assert_eq!(broken.kind(), ErrorKind::Table);
    assert!(
        broken.to_string().contains("sk=_registry#Layer#"),
        "{broken}"
    );
    world.clear_records();
    assert_eq!(ensure().await, ["DescribeTable", "BatchGetItem", "PutItem"]);
    assert_eq!(
        world.db.described_registries(TABLE).await.unwrap()[1],
        Layer::SCHEMA
    );
}

#[tokio::test]
async fn ensure_registries_ignores_missing_permission_to_describe() {
    let world = World::new().await;
    let key = Item::new()
        .with("pk", "_registry#")
        .with("sk", "_registry#Layer#");
    world.put(key.with("_registry", "as it was")).await;
    let db = Db::with_engine(Arc::new(ReadOnly(world.engine.clone())));
    let schemas = [Layer::SCHEMA, Build::SCHEMA];
    db.ensure_registries(&schemas).await.unwrap();
    let item = world.item("_registry#", "_registry#Layer#").await.unwrap();
    assert_eq!(item.get("_registry"), Some(&Value::from("as it was")));
}

#[tokio::test]
async fn description_is_not_read_as_a_version() {
    let world = World::new().await;
    let item = world.item("_registry#", "_registry#Layer#").await.unwrap();
    assert!(!Layer::recognises(&item) && !Build::recognises(&item));
    assert_eq!(world.builds.latest_of_groups().await.unwrap(), []);
    world.publish("eu", "numpy", 2).await;
    world.builds.publish(&build("numpy", "a")).await.unwrap();
    assert_eq!(world.builds.latest_of_groups().await.unwrap().len(), 1);
    let history = world.layers.history(("eu", "numpy")).collect();
    assert_eq!(numbers(&history.await.unwrap()), [1, 2]);
    world.test.advance(DAY * 60);
    world.sweep();
    assert!(world.item("_registry#", "_registry#Layer#").await.is_some());
}

#[tokio::test]
async fn versions_published_by_description_equal_those_of_the_struct() {
    let world = World::new().await;
    let layers = described(&world, "Layer").await;
    let arn = |n: u64| format!("arn:{n}");
    assert_eq!(
        world.layers.publish(&layer("eu", "numpy", &arn(1))).await,
        Ok(1)
    );
    assert_eq!(
        layers.publish(&layer_item("eu", "numpy", &arn(2))).await,
        Ok(2)
    );
    assert_eq!(
        world.layers.publish(&layer("eu", "numpy", &arn(3))).await,
        Ok(3)
    );
    let all = world
        .layers
        .history(("eu", "numpy"))
        .collect()
        .await
        .unwrap();
    let statuses: Vec<_> = all.iter().map(|version| version.status).collect();
    let (old, new) = (Some(Status::Deprecated), Some(Status::Latest));
    assert_eq!(statuses, [old, old, new]);
    assert_eq!(all[1].value, layer("eu", "numpy", "arn:2"));
    assert!(all[0].expires == all[1].expires && all[0].expires.is_some());

    // Both compute the same content hash.
    let same = layer_item("eu", "numpy", &arn(3));
    assert!(!layers.publish_if_changed(&same).await.unwrap().is_new());
    let group = layers.group(&NUMPY).unwrap();
    assert_eq!(
        layers.latest(&group).await.unwrap().unwrap().value,
        layer_item("eu", "numpy", "arn:3")
    );
    assert_eq!(layers.retire(&group, 3).await, Ok(true));
    assert_eq!(
        world
            .layers
            .latest(("eu", "numpy"))
            .await
            .unwrap()
            .unwrap()
            .number,
        2
    );
}

/// Without a hash field, the hash covers all fields.
#[tokio::test]
async fn hashes_by_description_equal_those_of_the_struct() {
    let world = World::new().await;
    let builds = described(&world, "Build").await;
    let item = Item::new()
        .with("pckg", "numpy")
        .with("requirements.txt", "a==1");
    assert_eq!(world.builds.publish(&build("numpy", "a==1")).await, Ok(1));
    assert!(!builds.publish_if_changed(&item).await.unwrap().is_new());
    assert_eq!(builds.publish(&item).await, Ok(2));
    let same = build("numpy", "a==1");
    let again = world.builds.publish_if_changed(&same).await;
    assert!(!again.unwrap().is_new());
    let all = world.builds.history("numpy").collect().await.unwrap();
    assert_eq!(all[0].hash, all[1].hash);
}

#[tokio::test]
async fn fields_are_validated() {
    let world = World::new().await;
    let layers = described(&world, "Layer").await;
    let item = layer_item("eu", "numpy", "arn:1");
    for (item, expected) in [
        (item.clone().with("arn", 7), "expected=S actual=N"),
        (
            item.clone().with("size", 7),
            "the registry has no field with this attribute",
        ),
        (item.clone().with("dplySts", "latest"), "field=dplySts"),
        (item.clone().with("pk", "lyr#us.numpy"), "field=pk"),
        (item.clone().with("rgn", ""), "cannot be empty"),
        (Item::new().with("rgn", "eu"), "the attribute is missing"),
        (
            item.clone()
                .with("rgn", Value::Ss(Set::new([Text::from("eu")]).unwrap())),
            "expected=S actual=SS",
        ),
    ] {
        let error = layers.publish(&item).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidField);
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
    assert_eq!(world.items().await.len(), 0);
    for names in [
        &[("region", "eu")][..],
        &[("region", "eu"), ("packet", "numpy")],
        &[("region", "eu"), ("rgn", "eu")],
        &[("region", "eu"), ("arn", "x")],
        &[("region", "eu"), ("package", "")],
    ] {
        let error = layers.group(names).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidField, "{error}");
    }
    // Fields can also be given by attribute.
    let by_attribute = layers.group(&[("pckg", "numpy"), ("rgn", "eu")]);
    assert_eq!(by_attribute.unwrap().as_str(), "lyr#eu.numpy");
}

#[tokio::test]
async fn lists_are_read_by_field_names() {
    let world = World::new().await;
    for (region, package) in [("eu", "numpy"), ("eu", "scipy"), ("us", "numpy")] {
        world.publish(region, package, 2).await;
    }
    let layers = described(&world, "Layer").await;
    world.clear_records();
    let count = async |names: &[(&str, &str)]| layers.latest_named(names).await.unwrap().len();
    assert_eq!(count(&NUMPY).await, 1);
    assert_eq!(world.requests(), ["GetItem"]);
    assert_eq!(count(&[("package", "numpy")]).await, 2);
    assert_eq!(count(&[("region", "eu")]).await, 2);
    assert_eq!(count(&[("region", "eu"), ("package", "none")]).await, 0);
    assert_eq!(world.requests(), ["Query", "Query", "GetItem"]);
    let deployed = layers.deployed_named(&[("region", "eu")]).await.unwrap();
    assert_eq!(deployed.len(), 4);
    let one = layers.deployed_named(&NUMPY).await.unwrap();
    assert_eq!(
        numbers(&one),
        [1, 2],
        "queried by one name, filtered by the other"
    );
    let none = layers.latest_named(&[]).await.unwrap_err();
    assert_eq!(none.kind(), ErrorKind::InvalidUse);
    assert!(
        none.to_string().contains("indexes_by=package,region"),
        "{none}"
    );

    let builds = described(&world, "Build").await;
    for package in ["numpy", "scipy"] {
        world.builds.publish(&build(package, "a")).await.unwrap();
    }
    assert_eq!(builds.latest_named(&[]).await.unwrap().len(), 2);
    let none = builds
        .deployed_named(&[("package", "numpy")])
        .await
        .unwrap_err();
    assert!(none.to_string().contains("indexes_by=none"), "{none}");
}

#[tokio::test]
async fn groups_of_another_registry_are_rejected() {
    let world = World::new().await;
    let (layers, builds) = (
        described(&world, "Layer").await,
        described(&world, "Build").await,
    );
    let group = builds.group(&[("package", "numpy")]).unwrap();
    let refused = layers.latest(&group).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidUse, "{refused}");
    let refused = layers.history(&group).collect().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidUse, "{refused}");
}

#[tokio::test]
async fn described_registry_works_in_a_transaction() {
    let world = World::new().await;
    let schema = RegistrySchema::from_description(&Layer::SCHEMA.describe()).unwrap();
    let published = world.db.transact(async |tx| {
        let layers = tx.registry_described(schema);
        layers.publish(&layer_item("eu", "numpy", "arn:1")).await?;
        let typed = tx.registry::<Layer>();
        typed.publish(&layer("eu", "numpy", "arn:2")).await?;
        let latest = layers.latest(layers.group(&NUMPY)?).await?;
        Ok::<_, floe::Error>(latest.map(|latest| latest.number))
    });
    assert_eq!(published.await.unwrap(), Some(2));
    let history = world.layers.history(("eu", "numpy")).collect();
    assert_eq!(numbers(&history.await.unwrap()), [1, 2]);
}

/// The table was created by other means, and its descriptions name the original table.
#[tokio::test]
async fn copied_table_is_read_by_its_descriptions() {
    let world = World::new().await;
    world.publish("eu", "numpy", 1).await;
    let mut copy = floe::registry::registry_tables(&[Layer::SCHEMA, Build::SCHEMA]).unwrap();
    copy[0].name = "copy".into();
    world.db.ensure_definitions(copy, DAY).await.unwrap();
    for item in floe_store::Engine::scan(&*world.engine, floe_store::op::Scan::new(TABLE))
        .await
        .unwrap()
        .items
    {
        let put = PutItem::new("copy", item);
        world.db.engine().write_item(put.into()).await.unwrap();
    }
    let found = world.db.described_registries("copy").await.unwrap();
    assert_eq!((found[1].name, found[1].table), ("Layer", "copy"));
    let layers = world.db.registry_described(found[1]);
    assert_eq!(
        layers.publish(&layer_item("eu", "numpy", "arn:2")).await,
        Ok(2)
    );
    let kept = world.layers.latest(("eu", "numpy")).await.unwrap().unwrap();
    assert_eq!(kept.number, 1, "the original table is unchanged");
}
