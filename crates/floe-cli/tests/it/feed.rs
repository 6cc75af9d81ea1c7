//! `floe feed`.

use floe::Error;
use floe::events::feed::{Consumer, Handled, Partition};
use floe::events::{EventData, Expected, Recorded, StreamName};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::world::{Ended, Running, append, block_on, connected, run, with_store};

/// A directory with a feed of three batches: `Cart-1`, `Cart-2` with `Order-1`, `Cart-1`.
struct World(TempDir);

impl World {
    fn new() -> Self {
        let world = Self(tempfile::tempdir().unwrap());
        for appends in [
            &[("Cart-1", &[r#"{"n":1}"#, "{\n}"][..])][..],
            &[("Cart-2", &["{}"]), ("Order-1", &["not JSON"])],
            &[("Cart-1", &["{}"])],
        ] {
            with_store(world.0.path(), async |store| {
                for (stream, bodies) in appends {
                    append(&store, stream, bodies).await;
                }
            });
            world.run("indexer", &["--once"]).succeeded();
        }
        world
    }

    fn run(&self, command: &str, arguments: &[&str]) -> Ended {
        let mut words: Vec<&str> = command.split(' ').collect();
        words.extend(["--table", "shop", "--data", self.0.path().to_str().unwrap()]);
        words.extend(arguments);
        run(&words)
    }

    /// What a command prints, by lines.
    fn lines(&self, command: &str, arguments: &[&str]) -> Vec<String> {
        let ended = self.run(command, arguments).succeeded();
        ended.stdout.lines().map(str::to_owned).collect()
    }

    fn json(&self, command: &str, arguments: &[&str]) -> Vec<Value> {
        let lines = self.lines(command, arguments);
        let parse = |line: &String| serde_json::from_str(line).unwrap();
        lines.iter().map(parse).collect()
    }

    /// Lets a group handle everything but `Cart-1` from its second event on.
    fn consume(&self, group: &str) {
        with_store(self.0.path(), async |store| {
            let consumer = Consumer::new(store, group, Partition::FIRST).tries_max(1);
            let handle = async |stream: StreamName, events: Vec<Recorded>| {
                let is_bad = |event: &Recorded| stream.as_str() == "Cart-1" && event.index > 0;
                match events.iter().position(is_bad) {
                    None => Ok::<_, Error>(Handled::All),
                    Some(0) => Err(floe_store::Error::validation("no \"room\"").into()),
                    Some(place) => Ok(Handled::UpTo(events[place].index)),
                }
            };
            consumer.run_until_caught_up(handle).await.unwrap();
        });
    }
}

const STANDINGS: &str = "group  partition  checkpoint  events behind  seconds  parked";

#[test]
fn the_status_tells_how_far_each_group_has_come() {
    let world = World::new();
    let lines = world.lines("feed status", &[]);
    let partitions = [
        "events  shop",
        "feed    shop-index",
        "",
        "partition  epoch  tail",
        "        0      0  0@3",
        "",
    ];
    assert_eq!(lines[..6], partitions);
    assert_eq!(lines[6..], ["no group has stored a checkpoint"]);
    world.consume("mail");
    world
        .run(
            "feed checkpoint",
            &["--group", "late", "--set", "0@1", "--yes"],
        )
        .succeeded();
    let lines = world.lines("feed status", &[]);
    assert_eq!(lines[..6], partitions);
    assert_eq!(lines[6], STANDINGS);
    let late = "late           0  0@1                     3  ";
    assert!(
        lines[7].starts_with(late) && lines[7].ends_with("  0"),
        "{lines:?}"
    );
    let done = "mail           0  0@3                     0        0       1";
    assert_eq!(lines[8..], [done]);
    let mut status = world.json("feed status", &["--json"]);
    // How long ago the oldest came depends on the machine.
    let age = status[0]["groups"][0]["lag_seconds"].take();
    assert!(age.is_u64(), "{age}");
    let group = |group: &str, checkpoint: &str, lag: u32, age: Option<u64>, parked: u32| {
        json!({"group": group, "partition": 0, "checkpoint": checkpoint, "lag_events": lag,
            "lag_seconds": age, "parked": parked})
    };
    let expected = json!({
        "table": "shop",
        "index": "shop-index",
        "partitions": [{"partition": 0, "epoch": 0, "tail": "0@3"}],
        "groups": [group("late", "0@1", 3, None, 0), group("mail", "0@3", 0, Some(0), 1)],
    });
    assert_eq!(status, [expected]);
}

#[test]
fn what_is_parked_is_told_with_the_reason() {
    let world = World::new();
    assert_eq!(world.lines("feed parked", &[]), [""; 0]);
    world.consume("mail");
    let parked = world.lines("feed parked", &[]);
    assert_eq!(parked.len(), 2);
    assert_eq!(parked[0], "group  partition  stream  from  to  reason");
    let expected = "mail           0  Cart-1     1   3  ";
    assert!(
        parked[1].starts_with(expected) && parked[1].contains(r#"no "room""#),
        "{parked:?}"
    );
    let parked = world.json("feed parked", &["--json", "--group", "mail"]);
    assert_eq!(parked[0]["stream"], "Cart-1");
    assert_eq!(
        (&parked[0]["index"], &parked[0]["end"]),
        (&json!(1), &json!(3))
    );
    assert_eq!(world.lines("feed parked", &["--group", "other"]), [""; 0]);
}

#[test]
fn a_checkpoint_is_moved_if_that_is_meant() {
    let world = World::new();
    world.consume("mail");
    let show = ["--group", "mail"];
    let moved = |to: &str| {
        let arguments = [&show[..], &["--set", to, "--yes"]].concat();
        let ended = world.run("feed checkpoint", &arguments).succeeded();
        (ended.stderr, ended.stdout)
    };
    let tells = |shown: &str, checkpoint: &str, lag: u32| {
        let place =
            format!("{STANDINGS}\nmail           0  {checkpoint}                     {lag}  ");
        assert!(
            shown.starts_with(&place) && shown.ends_with("  1\n"),
            "{shown}"
        );
    };
    let (asked, shown) = moved("0@1");
    assert_eq!(
        asked,
        "floe: moving group=mail partition=0 from=0@3 to=0@1\n"
    );
    tells(&shown, "0@1", 3);
    tells(&moved("start").1, "0@0", 5);
    tells(&moved("tail").1, "0@3", 0);
    // A number is a checkpoint as it is stored.
    tells(&moved("2").1, "0@2", 1);

    for (arguments, words) in [
        (&["--set", "start"][..], &["nothing was moved", "--yes"][..]),
        (
            &["--set", "0@4", "--yes"],
            &["after the end of the feed", "place=0@4 tail=0@3"],
        ),
        (&["--set", "1@0", "--yes"], &["after the end of the feed"]),
        (
            &["--set", "soon", "--yes"],
            &["not a place, such as 1@57, start or tail"],
        ),
        (&["--yes"], &["--set"]),
        (
            &["--partition", "1"],
            &["the feed has no such partition: partition=1 partitions=1"],
        ),
    ] {
        let arguments = [&show[..], arguments].concat();
        world.run("feed checkpoint", &arguments).failed(2, words);
    }
    let shown = world.lines("feed checkpoint", &show).join("\n") + "\n";
    tells(&shown, "0@2", 1);
    let json = world.json("feed checkpoint", &["--group", "mail", "--json"]);
    assert_eq!(json[0]["checkpoint"], "0@2");
    world
        .run("feed checkpoint", &["--group", "a_b"])
        .failed(2, &["it has no _"]);
}

#[test]
fn a_place_is_one_of_a_partition() {
    let folder = tempfile::tempdir().unwrap();
    with_store(folder.path(), async |store| {
        for id in 0..8 {
            append(&store, &format!("Cart-{id}"), &["{}"]).await;
        }
    });
    let world = World(folder);
    world
        .run("indexer", &["--once", "--partitions", "2"])
        .succeeded();
    let set = ["--group", "mail", "--yes", "--set"];
    let refused = world.run("feed checkpoint", &[&set[..], &["0@1"]].concat());
    refused.failed(
        2,
        &["a place is one of a partition: partitions=2", "--partition"],
    );
    let all = world.lines("feed checkpoint", &[&set[..], &["tail"]].concat());
    let tail = |line: &&String| line.contains("  0@1                     0  ");
    assert_eq!(
        (all.len(), all.iter().filter(tail).count()),
        (3, 2),
        "{all:?}"
    );
    let one = [&set[..], &["0@0", "--partition", "1"]].concat();
    let one = world.lines("feed checkpoint", &one);
    assert!(one[1].starts_with("mail           1  0@0  "), "{one:?}");
    let both: usize = ["0", "1"]
        .map(|partition| world.lines("feed read", &["--partition", partition]).len())
        .iter()
        .sum();
    assert_eq!(both, 8);
}

#[test]
fn a_feed_is_read_as_lines() {
    let world = World::new();
    let lines = world.lines("feed read", &["--from", "0@1"]);
    let expected = [
        "0@2     Cart-2                   0  Added",
        "0@2     Order-1                  0  Added",
        "0@3     Cart-1                   2  Added",
    ];
    assert_eq!(lines, expected);
    let spans = world.json("feed read", &["--json"]);
    let span = |checkpoint: &str, stream: &str, index: u32, count: usize| {
        json!({"partition": 0, "checkpoint": checkpoint, "stream": stream, "index": index,
            "types": vec!["Added"; count]})
    };
    let expected = [
        span("0@1", "Cart-1", 0, 2),
        span("0@2", "Cart-2", 0, 1),
        span("0@2", "Order-1", 0, 1),
        span("0@3", "Cart-1", 2, 1),
    ];
    assert_eq!(spans, expected);
    let some = |arguments: &[&str]| world.json("feed read", &[arguments, &["--json"]].concat());
    assert_eq!(some(&["--from", "0@2"]), expected[3..]);
    assert_eq!(some(&["--from", "tail"]), [Value::Null; 0]);
    assert_eq!(some(&["--category", "Order"]), expected[2..3]);
    // Batches stay whole.
    assert_eq!(some(&["--max", "1"]), expected[..1]);
    assert_eq!(some(&["--max", "2"]), expected[..1]);
    assert_eq!(some(&["--max", "3"]), expected[..3]);
    assert_eq!(some(&["--max", "1", "--from", "0@1"]), expected[1..3]);

    let mut events = some(&["--events"]);
    for event in &mut events {
        let time = event.as_object_mut().unwrap().remove("time_ms");
        assert!(time.unwrap().as_u64().unwrap() > 1_600_000_000_000);
    }
    let event = |checkpoint: &str, stream: &str, index: u32, body: Value| {
        let mut event = json!({"partition": 0, "checkpoint": checkpoint, "stream": stream, "index": index,
            "type": "Added"});
        let object = event.as_object_mut().unwrap();
        object.extend(body.as_object().unwrap().clone());
        event
    };
    let expected = [
        event("0@1", "Cart-1", 0, json!({"data": {"n": 1}})),
        event("0@1", "Cart-1", 1, json!({"data": {}})),
        event("0@2", "Cart-2", 0, json!({"data": {}})),
        event("0@2", "Order-1", 0, json!({"data_base64": "bm90IEpTT04="})),
        event("0@3", "Cart-1", 2, json!({"data": {}})),
    ];
    assert_eq!(events, expected);
    world
        .run("feed read", &["--partition", "1"])
        .failed(2, &["partition=1"]);
    world
        .run("feed read", &["--from", "x"])
        .failed(2, &["not a place"]);
}

#[test]
fn a_feed_is_followed_until_one_is_told_to_stop() {
    let (_server, endpoint) = Running::server();
    let arguments = ["--endpoint", &endpoint, "--table", "shop"];
    let index = || {
        let once = [&["indexer", "--once"][..], &arguments].concat();
        run(&once).succeeded();
    };
    block_on(async {
        let store = connected(&endpoint).await;
        append(&store, "Cart-1", &["{}"]).await;
    });
    index();
    let follow = [&["feed", "read", "--follow"][..], &arguments].concat();
    let mut following = Running::start(&follow);
    assert!(following.line.contains("Cart-1"), "{}", following.line);
    block_on(async {
        let store = connected(&endpoint).await;
        append(&store, "Cart-2", &["{}"]).await;
    });
    index();
    assert!(following.next_line().contains("Cart-2"));
    following.stop(Signal::INT).succeeded();
}

#[test]
fn events_are_told_with_what_comes_beside_them() {
    let folder = tempfile::tempdir().unwrap();
    with_store(folder.path(), async |store| {
        let event = EventData::new("Added", "{}").meta(r#"{"by":"me"}"#);
        let event = event.correlation("c1").causation("c0");
        let stream = StreamName::parse("Cart-1").unwrap();
        store.append(&stream, Expected::New, [event]).await.unwrap();
    });
    let world = World(folder);
    world.run("indexer", &["--once"]).succeeded();
    let event = &world.json("feed read", &["--events", "--json"])[0];
    assert_eq!(event["meta"], json!({"by": "me"}));
    assert_eq!(
        (&event["correlation_id"], &event["causation_id"]),
        (&json!("c1"), &json!("c0"))
    );
}

#[test]
fn without_a_feed_there_is_nothing_to_tell() {
    let folder = tempfile::tempdir().unwrap();
    with_store(folder.path(), async |_| ());
    let world = World(folder);
    for command in ["feed status", "feed parked", "feed read"] {
        let words = [
            "there is no index table: table=shop-index",
            "`floe indexer` makes it",
        ];
        world.run(command, &[]).failed(1, &words);
    }
    let help = run(&["feed", "--help"]).succeeded().stdout;
    for word in ["status", "checkpoint", "parked", "read", "epoch@offset"] {
        assert!(help.contains(word), "{help}");
    }
    assert_eq!(run(&["feed"]).code, Some(2));
}

/// What others keep under the same category is theirs.
#[test]
fn checkpoints_of_other_programs_are_passed_over() {
    let world = World::new();
    with_store(world.0.path(), async |store| {
        let index = store.feed_index();
        for name in ["0_mail", "0_7", "a_b_c"] {
            let stream = StreamName::parse(&format!("$ReaderCheckpoint-{name}")).unwrap();
            let started = EventData::new("Checkpointed", r#"{"config":{"checkpointFreqS":5}}"#);
            index
                .append(&stream, Expected::New, [started])
                .await
                .unwrap();
        }
    });
    world.consume("mail");
    let ended = world.run("feed status", &[]).succeeded();
    assert_eq!(ended.stdout.lines().count(), 8, "{ended:?}");
    assert!(ended.stderr.contains("$ReaderCheckpoint-0_7"), "{ended:?}");
    world.run("feed parked", &[]).succeeded();
}
