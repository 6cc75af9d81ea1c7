//! `floe feed`.

use floe::Error;
use floe::events::feed::{FeedConsumer, Handled, Partition};
use floe::events::{EventData, Expected, Recorded, StreamName};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{ProgramOutput, Running, append, block_on, connected, run, with_store};

/// A directory with a feed of three batches: `Cart-1`, `Cart-2` with `Order-1`, `Cart-1`.
struct FeedFixture(TempDir);

impl FeedFixture {
    fn new() -> Self {
        let feed = Self(tempfile::tempdir().unwrap());
        for appends in [
            &[("Cart-1", &[r#"{"n":1}"#, "{\n}"][..])][..],
            &[("Cart-2", &["{}"]), ("Order-1", &["not JSON"])],
            &[("Cart-1", &["{}"])],
        ] {
            with_store(feed.0.path(), async |store| {
                for (stream, bodies) in appends {
                    append(&store, stream, bodies).await;
                }
            });
            feed.run("indexer", &["--once"]).assert_success();
        }
        feed
    }

    fn run(&self, command: &str, arguments: &[&str]) -> ProgramOutput {
        let mut words: Vec<&str> = command.split(' ').collect();
        words.extend(["--table", "shop", "--data", self.0.path().to_str().unwrap()]);
        words.extend(arguments);
        run(&words)
    }

    /// The lines that a command prints.
    fn lines(&self, command: &str, arguments: &[&str]) -> Vec<String> {
        let output = self.run(command, arguments).assert_success();
        output.stdout.lines().map(str::to_owned).collect()
    }

    fn json(&self, command: &str, arguments: &[&str]) -> Vec<Value> {
        let lines = self.lines(command, arguments);
        let parse = |line: &String| serde_json::from_str(line).unwrap();
        lines.iter().map(parse).collect()
    }

    /// Runs a group whose handler fails at `Cart-1` from its second event on.
    fn consume(&self, group: &str) {
        with_store(self.0.path(), async |store| {
            let consumer = FeedConsumer::new(store, group, Partition::FIRST).attempts_max(1);
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

const PROGRESS_HEADER: &str = "group  partition  checkpoint  events behind  seconds  parked";

#[test]
fn status_prints_the_progress_of_each_group() {
    let feed = FeedFixture::new();
    let lines = feed.lines("feed status", &[]);
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
    feed.consume("mail");
    feed.run(
        "feed checkpoint",
        &["--group", "late", "--set", "0@1", "--yes"],
    )
    .assert_success();
    let lines = feed.lines("feed status", &[]);
    assert_eq!(lines[..6], partitions);
    assert_eq!(lines[6], PROGRESS_HEADER);
    let late = "late           0  0@1                     3  ";
    assert!(
        lines[7].starts_with(late) && lines[7].ends_with("  0"),
        "{lines:?}"
    );
    let done = "mail           0  0@3                     0        0       1";
    assert_eq!(lines[8..], [done]);
    let mut status = feed.json("feed status", &["--json"]);
    // The age of the oldest event depends on the machine.
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
fn parked_streams_are_listed_with_their_errors() {
    let feed = FeedFixture::new();
    assert_eq!(feed.lines("feed parked", &[]), [""; 0]);
    feed.consume("mail");
    let parked = feed.lines("feed parked", &[]);
    assert_eq!(parked.len(), 2);
    assert_eq!(parked[0], "group  partition  stream  from  to  reason");
    let expected = "mail           0  Cart-1     1   3  ";
    assert!(
        parked[1].starts_with(expected) && parked[1].contains(r#"no "room""#),
        "{parked:?}"
    );
    let parked = feed.json("feed parked", &["--json", "--group", "mail"]);
    assert_eq!(parked[0]["stream"], "Cart-1");
    assert_eq!(
        (&parked[0]["index"], &parked[0]["end"]),
        (&json!(1), &json!(3))
    );
    assert_eq!(feed.lines("feed parked", &["--group", "other"]), [""; 0]);
}

#[test]
fn checkpoint_is_moved_only_if_confirmed() {
    let feed = FeedFixture::new();
    feed.consume("mail");
    let show = ["--group", "mail"];
    let moved = |to: &str| {
        let arguments = [&show[..], &["--set", to, "--yes"]].concat();
        let output = feed.run("feed checkpoint", &arguments).assert_success();
        (output.stderr, output.stdout)
    };
    let check = |shown: &str, checkpoint: &str, lag: u32| {
        let expected = format!(
            "{PROGRESS_HEADER}\nmail           0  {checkpoint}                     {lag}  "
        );
        assert!(
            shown.starts_with(&expected) && shown.ends_with("  1\n"),
            "{shown}"
        );
    };
    let (stderr, shown) = moved("0@1");
    assert_eq!(
        stderr,
        "floe: moving group=mail partition=0 from=0@3 to=0@1\n"
    );
    check(&shown, "0@1", 3);
    check(&moved("start").1, "0@0", 5);
    check(&moved("tail").1, "0@3", 0);
    // A number is a checkpoint in its stored form.
    check(&moved("2").1, "0@2", 1);

    for (arguments, words) in [
        (&["--set", "start"][..], &["nothing was moved", "--yes"][..]),
        (
            &["--set", "0@4", "--yes"],
            &["after the end of the feed", "checkpoint=0@4 tail=0@3"],
        ),
        (&["--set", "1@0", "--yes"], &["after the end of the feed"]),
        (
            &["--set", "soon", "--yes"],
            &["expected a checkpoint such as 1@57, start or tail"],
        ),
        (&["--yes"], &["--set"]),
        (
            &["--partition", "1"],
            &["the feed has no such partition: partition=1 partitions=1"],
        ),
    ] {
        let arguments = [&show[..], arguments].concat();
        feed.run("feed checkpoint", &arguments)
            .assert_failure(2, words);
    }
    let shown = feed.lines("feed checkpoint", &show).join("\n") + "\n";
    check(&shown, "0@2", 1);
    let json = feed.json("feed checkpoint", &["--group", "mail", "--json"]);
    assert_eq!(json[0]["checkpoint"], "0@2");
    feed.run("feed checkpoint", &["--group", "a_b"])
        .assert_failure(2, &["cannot be empty or contain _"]);
}

#[test]
fn setting_a_checkpoint_requires_a_partition() {
    let folder = tempfile::tempdir().unwrap();
    with_store(folder.path(), async |store| {
        for id in 0..8 {
            append(&store, &format!("Cart-{id}"), &["{}"]).await;
        }
    });
    let feed = FeedFixture(folder);
    feed.run("indexer", &["--once", "--partitions", "2"])
        .assert_success();
    let set = ["--group", "mail", "--yes", "--set"];
    let refused = feed.run("feed checkpoint", &[&set[..], &["0@1"]].concat());
    refused.assert_failure(
        2,
        &[
            "a checkpoint belongs to one partition: partitions=2",
            "--partition",
        ],
    );
    let all = feed.lines("feed checkpoint", &[&set[..], &["tail"]].concat());
    let tail = |line: &&String| line.contains("  0@1                     0  ");
    assert_eq!(
        (all.len(), all.iter().filter(tail).count()),
        (3, 2),
        "{all:?}"
    );
    let one = [&set[..], &["0@0", "--partition", "1"]].concat();
    let one = feed.lines("feed checkpoint", &one);
    assert!(one[1].starts_with("mail           1  0@0  "), "{one:?}");
    let both: usize = ["0", "1"]
        .map(|partition| feed.lines("feed read", &["--partition", partition]).len())
        .iter()
        .sum();
    assert_eq!(both, 8);
}

#[test]
fn read_prints_spans_and_events() {
    let feed = FeedFixture::new();
    let lines = feed.lines("feed read", &["--from", "0@1"]);
    let expected = [
        "0@2     Cart-2                   0  Added",
        "0@2     Order-1                  0  Added",
        "0@3     Cart-1                   2  Added",
    ];
    assert_eq!(lines, expected);
    let spans = feed.json("feed read", &["--json"]);
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
    let some = |arguments: &[&str]| feed.json("feed read", &[arguments, &["--json"]].concat());
    assert_eq!(some(&["--from", "0@2"]), expected[3..]);
    assert_eq!(some(&["--from", "tail"]), [Value::Null; 0]);
    assert_eq!(some(&["--category", "Order"]), expected[2..3]);
    // Batches are never split.
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
    feed.run("feed read", &["--partition", "1"])
        .assert_failure(2, &["partition=1"]);
    feed.run("feed read", &["--from", "x"])
        .assert_failure(2, &["expected a checkpoint"]);
}

#[test]
fn follow_prints_new_events_until_stopped() {
    let (_server, endpoint) = Running::server();
    let arguments = ["--endpoint", &endpoint, "--table", "shop"];
    let index = || {
        let once = [&["indexer", "--once"][..], &arguments].concat();
        run(&once).assert_success();
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
    following.stop(Signal::INT).assert_success();
}

#[test]
fn events_are_printed_with_metadata_and_correlation() {
    let folder = tempfile::tempdir().unwrap();
    with_store(folder.path(), async |store| {
        let event = EventData::new("Added", "{}").meta(r#"{"by":"me"}"#);
        let event = event.correlation("c1").causation("c0");
        let stream = StreamName::parse("Cart-1").unwrap();
        store.append(&stream, Expected::New, [event]).await.unwrap();
    });
    let feed = FeedFixture(folder);
    feed.run("indexer", &["--once"]).assert_success();
    let event = &feed.json("feed read", &["--events", "--json"])[0];
    assert_eq!(event["meta"], json!({"by": "me"}));
    assert_eq!(
        (&event["correlation_id"], &event["causation_id"]),
        (&json!("c1"), &json!("c0"))
    );
}

#[test]
fn missing_feed_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    with_store(folder.path(), async |_| ());
    let feed = FeedFixture(folder);
    for command in ["feed status", "feed parked", "feed read"] {
        let words = [
            "there is no feed: the index table does not exist: table=shop-index",
            "`floe indexer` creates it",
        ];
        feed.run(command, &[]).assert_failure(1, &words);
    }
    let help = run(&["feed", "--help"]).assert_success().stdout;
    for word in ["status", "checkpoint", "parked", "read", "epoch@offset"] {
        assert!(help.contains(word), "{help}");
    }
    assert_eq!(run(&["feed"]).code, Some(2));
}

#[test]
fn checkpoints_of_other_programs_are_ignored() {
    let feed = FeedFixture::new();
    with_store(feed.0.path(), async |store| {
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
    feed.consume("mail");
    let output = feed.run("feed status", &[]).assert_success();
    assert_eq!(output.stdout.lines().count(), 8, "{output:?}");
    assert!(
        output.stderr.contains("$ReaderCheckpoint-0_7"),
        "{output:?}"
    );
    feed.run("feed parked", &[]).assert_success();
}
