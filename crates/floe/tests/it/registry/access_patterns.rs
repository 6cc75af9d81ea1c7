//! The access patterns of the seed: their results and their requests.

use floe::registry::{Published, Status};
use floe_store::Timestamp;
use floe_store::capacity::Units;

use super::support::{Build, DAY, Layer, World, build, layer, numbers};

#[tokio::test]
async fn get_latest_arn_in_region_for_package() {
    let world = World::new().await;
    world.publish("eu-west-1", "numpy", 3).await;
    world.publish("us-east-1", "numpy", 1).await;
    let latest = world.layers.latest(("eu-west-1", "numpy")).await.unwrap();
    let latest = latest.unwrap();
    assert_eq!(latest.value.arn, "arn:eu-west-1:numpy:2");
    assert_eq!((latest.number, latest.status), (3, Some(Status::Latest)));
    assert_eq!(
        world.recording.take(),
        [r#"GetItem klayers {"pk": "lyr#eu-west-1.numpy", "sk": "lyrVrsn0#"}"#]
    );
    let none = world.layers.latest(("eu-west-1", "scipy")).await.unwrap();
    assert_eq!(none, None);
}

#[tokio::test]
async fn get_latest_package_for_all_regions() {
    let world = World::new().await;
    for region in ["eu-west-1", "us-east-1", "ap-south-1"] {
        world.publish(region, "numpy", 2).await;
        world.publish(region, "scipy", 1).await;
    }
    let latest = world.layers.latest_of_all(Layer::BY_PACKAGE, "numpy");
    let latest = latest.await.unwrap();
    let mut regions: Vec<_> = latest.iter().map(|layer| &*layer.value.region).collect();
    regions.sort_unstable();
    assert_eq!(regions, ["ap-south-1", "eu-west-1", "us-east-1"]);
    assert!(latest.iter().all(|layer| layer.number == 2));
    // It reads three of the nine versions, the latest ones of the package, which take one half unit.
    let spent = world.meter.take();
    assert_eq!((spent.requests, spent.read), (1, Units::halves(1)));
    assert_eq!(world.requests(), ["Query"]);
}

#[tokio::test]
async fn get_all_deployed_layers_in_region() {
    let world = World::new().await;
    world.publish("eu-west-1", "numpy", 3).await;
    world.publish("eu-west-1", "scipy", 1).await;
    world.publish("us-east-1", "numpy", 2).await;
    world
        .layers
        .retire(("eu-west-1", "numpy"), 1)
        .await
        .unwrap();
    world.clear_records();
    let deployed = world.layers.deployed_in(Layer::BY_REGION, "eu-west-1");
    let deployed = deployed.await.unwrap();
    let mut found: Vec<_> = deployed
        .iter()
        .map(|layer| (&*layer.value.package, layer.number, layer.status.unwrap()))
        .collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            ("numpy", 2, Status::Deprecated),
            ("numpy", 3, Status::Latest),
            ("scipy", 1, Status::Latest)
        ]
    );
    let spent = world.meter.take();
    assert_eq!((spent.requests, spent.read), (1, Units::halves(1)));
    assert_eq!(world.requests(), ["Query"]);
}

#[tokio::test]
async fn get_latest_requirements_for_package() {
    let world = World::new().await;
    for requirements in ["numpy==1", "numpy==2"] {
        let build = build("numpy", requirements);
        world.builds.publish(&build).await.unwrap();
    }
    world.clear_records();
    let latest = world.builds.latest("numpy").await.unwrap().unwrap();
    assert_eq!(latest.value.requirements, "numpy==2");
    assert_eq!(latest.hash.unwrap().len(), 64);
    assert_eq!(
        world.recording.take(),
        [r#"GetItem klayers {"pk": "bldVrsn0#", "sk": "pckg#numpy"}"#]
    );
}

#[tokio::test]
async fn get_latest_requirements_for_all_packages() {
    let world = World::new().await;
    for (package, requirements) in [("scipy", "1"), ("numpy", "1"), ("numpy", "2")] {
        let build = build(package, requirements);
        world.builds.publish(&build).await.unwrap();
    }
    // An alias is not listed.
    world.builds.set_alias("numpy", "lts", 1).await.unwrap();
    world.clear_records();
    let latest = world.builds.latest_of_groups().await.unwrap();
    let found: Vec<_> = latest
        .iter()
        .map(|build| (&*build.value.package, build.number))
        .collect();
    assert_eq!(found, [("numpy", 2), ("scipy", 1)]);
    let spent = world.meter.take();
    assert_eq!((spent.requests, spent.read), (1, Units::whole(1)));
    assert_eq!(world.requests(), ["Query"]);
}

#[tokio::test]
async fn when_deleting() {
    let world = World::new().await;
    world.publish("eu", "numpy", 3).await;
    assert!(world.layers.retire(("eu", "numpy"), 1).await.unwrap());
    assert_eq!(world.requests(), ["BatchGetItem", "UpdateItem"]);
    assert!(!world.layers.retire(("eu", "numpy"), 1).await.unwrap());
    assert_eq!(
        world.requests(),
        ["BatchGetItem"],
        "a second call changes nothing"
    );
    let retired = world.layers.version(("eu", "numpy"), 1).await.unwrap();
    let retired = retired.unwrap();
    assert_eq!((retired.status, retired.expires), (None, None));
    assert_eq!(retired.deleted, Some(world.test.now()));
    assert_eq!(retired.value.arn, "arn:eu:numpy:0");
    assert!(!retired.is_deployed());
    let listed = world.index("region-status", "rgn", "eu").await;
    assert_eq!(listed, ["lyrVrsn#v0000000002", "lyrVrsn#v0000000003"]);
}

#[tokio::test]
async fn when_inserting_layer() {
    let world = World::new().await;
    let first = world.layers.publish(&layer("eu", "numpy", "arn:1")).await;
    assert_eq!(first, Ok(1));
    assert_eq!(world.requests(), ["GetItem", "TransactWriteItems"]);
    let second = world.layers.publish(&layer("eu", "numpy", "arn:2")).await;
    assert_eq!(second, Ok(2));
    let requests = world.recording.take();
    assert_eq!(requests.len(), 2, "{requests:#?}");
    let commit = &requests[1];
    for action in [
        r#"UpdateItem klayers {"pk": "lyr#eu.numpy", "sk": "lyrVrsn#v0000000001"} SET "#,
        r#"PutItem klayers {"arn": "arn:2""#,
        r#""sk": "lyrVrsn#v0000000002"} IF attribute_not_exists(pk)"#,
        r#""sk": "lyrVrsn0#"} IF attribute_exists(pk) AND lyrVrsn = 1"#,
    ] {
        assert!(commit.contains(action), "{action} is not in {commit}");
    }
    let before = world.layers.version(("eu", "numpy"), 1).await.unwrap();
    let before = before.unwrap();
    assert_eq!(before.status, Some(Status::Deprecated));
    let month = world.test.now().plus(30 * DAY);
    assert_eq!(before.expires.unwrap().as_secs(), month.as_secs());
}

#[tokio::test]
async fn when_inserting_build() {
    let world = World::new().await;
    assert_eq!(world.builds.publish(&build("numpy", "1")).await, Ok(1));
    assert_eq!(world.builds.publish(&build("numpy", "2")).await, Ok(2));
    let requests = world.recording.take();
    assert_eq!(requests[3].matches("klayers").count(), 2, "{}", requests[3]);
    // Builds have no status, so earlier versions do not change.
    let before = world.builds.version("numpy", 1).await.unwrap().unwrap();
    assert_eq!((before.status, before.expires), (None, None));
    assert!(before.is_deployed());
}

#[tokio::test]
async fn unchanged_content_is_not_published_again() {
    let world = World::new().await;
    let numpy = layer("eu", "numpy", "arn:1");
    let published = world.layers.publish_if_changed(&numpy).await;
    assert_eq!(published, Ok(Published::New(1)));
    world.clear_records();
    // If a field is declared as the hash, only that field counts.
    let same = Layer {
        arn: "arn:2".to_owned(),
        ..numpy.clone()
    };
    let published = world.layers.publish_if_changed(&same).await;
    assert_eq!(published, Ok(Published::Unchanged(1)));
    assert_eq!(world.requests(), ["GetItem"]);
    let other = Layer {
        hash: "other".to_owned(),
        ..same
    };
    let published = world.layers.publish_if_changed(&other).await;
    assert_eq!(published, Ok(Published::New(2)));
    // A retired version is not compared with.
    world.layers.retire(&other, 2).await.unwrap();
    world.layers.retire(&other, 1).await.unwrap();
    let published = world.layers.publish_if_changed(&other).await;
    assert_eq!(published, Ok(Published::New(3)));
    // Without a hash field, the whole content counts.
    let scipy = build("scipy", "1");
    assert!(
        world
            .builds
            .publish_if_changed(&scipy)
            .await
            .unwrap()
            .is_new()
    );
    assert!(
        !world
            .builds
            .publish_if_changed(&scipy)
            .await
            .unwrap()
            .is_new()
    );
    let scipy = build("scipy", "2");
    assert!(
        world
            .builds
            .publish_if_changed(&scipy)
            .await
            .unwrap()
            .is_new()
    );
}

#[tokio::test]
async fn history_of_layers_is_queried_in_both_directions() {
    let world = World::new().await;
    world.publish("eu", "numpy", 12).await;
    world.publish("eu", "numpy2", 1).await;
    world.layers.retire(("eu", "numpy"), 3).await.unwrap();
    world.clear_records();
    let history = world.layers.history(("eu", "numpy"));
    assert_eq!(
        numbers(&history.collect().await.unwrap()),
        (1..=12).collect::<Vec<_>>()
    );
    assert_eq!(world.requests(), ["Query"]);
    let first = world
        .layers
        .history(("eu", "numpy"))
        .newest_first()
        .limit(5);
    let first = first.page().await.unwrap();
    assert_eq!(numbers(&first.rows), [12, 11, 10, 9, 8]);
    let next = world
        .layers
        .history(("eu", "numpy"))
        .newest_first()
        .limit(50);
    let next = next.after(first.next.unwrap()).page().await.unwrap();
    assert_eq!(numbers(&next.rows), [7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(next.next, None);
    assert_eq!(world.requests(), ["Query", "Query"]);
    assert!(!next.rows[4].is_deployed(), "version 3 is retired");
}

#[tokio::test]
async fn history_of_builds_is_read_by_number_in_both_directions() {
    let world = World::new().await;
    for at in 0..120 {
        let build = build("numpy", &at.to_string());
        world.builds.publish(&build).await.unwrap();
    }
    world.builds.retire("numpy", 7).await.unwrap();
    world.clear_records();
    let history = world.builds.history("numpy").collect().await.unwrap();
    assert_eq!(numbers(&history), (1..=120).collect::<Vec<_>>());
    assert_eq!(
        world.requests(),
        ["GetItem", "BatchGetItem", "GetItem", "BatchGetItem"]
    );
    let page = world.builds.history("numpy").newest_first().limit(2);
    let page = page.page().await.unwrap();
    assert_eq!(numbers(&page.rows), [120, 119]);
    let next = world.builds.history("numpy").newest_first().limit(3);
    let next = next.after(page.next.unwrap()).page().await.unwrap();
    assert_eq!(numbers(&next.rows), [118, 117, 116]);
    assert_eq!(
        world.requests(),
        ["GetItem", "BatchGetItem", "BatchGetItem"]
    );
    let none = world.builds.history("scipy").page().await.unwrap();
    assert_eq!((none.rows.len(), none.next), (0, None));
}

#[tokio::test]
async fn cursor_is_valid_for_its_own_history_only() {
    let world = World::new().await;
    world.publish("eu", "numpy", 3).await;
    let history = world.layers.history(("eu", "numpy")).limit(1);
    let cursor = history.page().await.unwrap().next.unwrap();
    let others = [
        world.layers.history(("us", "numpy")),
        world.layers.history(("eu", "numpy")).newest_first(),
    ];
    for other in others {
        let error = other.after(cursor.clone()).page().await.unwrap_err();
        assert_eq!(error.kind(), floe::ErrorKind::InvalidCursor);
    }
    let own = world.layers.history(("eu", "numpy")).after(cursor);
    assert_eq!(numbers(&own.page().await.unwrap().rows), [2, 3]);
}

#[tokio::test]
async fn as_of_returns_the_latest_version_at_a_time() {
    let world = World::new().await;
    let start = world.test.now();
    let at = |days: u32| start.plus(days * DAY);
    // Version 1 on day 0, 2 on day 10, 3 on day 20, which is retired on day 30.
    for _ in 0..3 {
        world.publish("eu", "numpy", 1).await;
        world.test.advance(10 * DAY);
    }
    world.layers.retire(("eu", "numpy"), 3).await.unwrap();
    world.clear_records();
    let as_of = async |time: Timestamp| {
        let version = world.layers.as_of(("eu", "numpy"), time).await.unwrap();
        version.map(|version| version.number)
    };
    assert_eq!(
        as_of(Timestamp::from_millis(start.as_millis() - 1)).await,
        None
    );
    assert_eq!(world.requests(), ["Query"]);
    for (day, number) in [
        (0, 1),
        (9, 1),
        (10, 2),
        (19, 2),
        (20, 3),
        (29, 3),
        (30, 2),
        (99, 2),
    ] {
        assert_eq!(as_of(at(day)).await, Some(number), "day {day}");
    }
    // A retirement makes the previous version the latest again, from then on.
    world.layers.retire(("eu", "numpy"), 2).await.unwrap();
    world.test.advance(20 * DAY);
    assert_eq!(as_of(at(35)).await, Some(1), "version 2 is retired");
    world.layers.retire(("eu", "numpy"), 1).await.unwrap();
    assert_eq!(as_of(at(49)).await, Some(1));
    assert_eq!(as_of(at(50)).await, None);
}

#[tokio::test]
async fn as_of_returns_the_latest_build_at_a_time() {
    let world = World::new().await;
    let start = world.test.now();
    for requirements in ["1", "2"] {
        let build: Build = build("numpy", requirements);
        world.builds.publish(&build).await.unwrap();
        world.test.advance(DAY);
    }
    world.clear_records();
    let first = world.builds.as_of("numpy", start).await.unwrap().unwrap();
    assert_eq!(first.value.requirements, "1");
    assert_eq!(world.requests(), ["GetItem", "BatchGetItem"]);
}
