//! Recorded changes call the same handlers whichever way they arrive: DynamoDB Streams, AWS Lambda, or a consumer.

use floe::Error;
use floe::changes::lambda::{Receiver, read_changes};
use floe::changes::{Cause, Change, Changed, Failure, Inserted, Pattern, Removed, Router, Watched};
use floe_store::{Item, Value};

use super::support::Notes;

const GET_RECORDS: &[u8] = include_bytes!("fixtures/get_records.json");
const LAMBDA_EVENT: &[u8] = include_bytes!("fixtures/lambda_event.json");

/// A layer as another program stores it, with keys that no model has.
#[derive(Clone, Debug)]
struct Layer {
    version: String,
    status: Option<String>,
}

impl Watched for Layer {
    const NAME: &'static str = "Layer";

    fn table() -> &'static str {
        "klayers"
    }

    fn recognises(item: &Item) -> bool {
        let text = |name: &str| item.get(name).and_then(Value::as_s).unwrap_or_default();
        text("pk").starts_with("lyr#") && text("sk").starts_with("lyrVrsn#")
    }

    fn decode(item: &Item) -> Result<Self, Error> {
        let text = |name: &str| item.get(name).and_then(Value::as_s).map(str::to_owned);
        Ok(Self {
            version: text("sk").unwrap_or_default(),
            status: text("dplySts"),
        })
    }
}

fn router(notes: &Notes) -> Router {
    let note = |notes: &Notes| {
        let notes = notes.clone();
        move |text: String| {
            notes.add(text);
            async { Ok::<_, Failure>(()) }
        }
    };
    let (new, changed, gone) = (note(notes), note(notes), note(notes));
    let (rule, large) = (note(notes), note(notes));
    let seed = r#"{"source":["stream"],"detail-type":["REMOVE"],"detail":{"pk_type":["lyr"]}}"#;
    let size = r#"{"detail":{"record":{"dynamodb":{"NewImage":{"size":{"N":[{"numeric":[">",1000000]}]}}}}}}"#;
    Router::new()
        .source("stream")
        .on_inserted::<Layer>(move |a: Inserted<Layer>| new(format!("new {}", a.value.version)))
        .on_changed::<Layer>(move |a: Changed<Layer>| {
            changed(format!("{:?} to {:?}", a.old.status, a.new.status))
        })
        .on_removed::<Layer>(Cause::Expired, move |a: Removed<Layer>| {
            gone(format!("expired {}", a.value.version))
        })
        .matching(Pattern::parse(seed).unwrap(), move |change: Change| {
            rule(format!("rule {}", change.event_id()))
        })
        .matching(Pattern::parse(size).unwrap(), move |change: Change| {
            large(format!("large {}", change.event_id()))
        })
}

const CALLS: [&str; 6] = [
    "new lyrVrsn#v00012",
    "large a1",
    r#"Some("latest") to Some("deprecated")"#,
    "large a2",
    "expired lyrVrsn#v00012",
    "rule a3",
];

#[tokio::test]
async fn recorded_changes_call_the_same_handlers() {
    let notes = Notes::default();
    let streams = Receiver::new(router(&notes)).table("klayers");
    let delivery = streams.receive(GET_RECORDS).await.unwrap();
    assert_eq!((delivery.handled, delivery.skipped), (3, 1));
    assert_eq!(notes.take(), CALLS);
    let lambda = Receiver::new(router(&notes)).table_prefix("prod-");
    let answer = lambda.handle(LAMBDA_EVENT).await.unwrap();
    assert_eq!(answer, r#"{"batchItemFailures":[]}"#);
    assert_eq!(notes.take(), CALLS);
    let by_streams = read_changes(GET_RECORDS).unwrap();
    let by_lambda = read_changes(LAMBDA_EVENT).unwrap();
    for (one, other) in by_streams.iter().zip(&by_lambda) {
        assert_eq!(one.record(), other.record());
    }
    assert_eq!(by_lambda[0].table(), "prod-klayers");
}

#[tokio::test]
async fn failure_reports_its_change_and_the_later_changes_of_the_item() {
    let failing = Router::new().on_changed::<Layer>(async |_| Err(Failure::new("no")));
    let failing = failing.on_removed::<Layer>(Cause::Any, async |_| Ok(()));
    let receiver = Receiver::new(failing).table("klayers");
    let answer = receiver.handle(LAMBDA_EVENT).await.unwrap();
    let (second, third) = ("300000000012345678902", "300000000012345678903");
    assert_eq!(
        answer,
        format!(
            r#"{{"batchItemFailures":[{{"itemIdentifier":"{second}"}},{{"itemIdentifier":"{third}"}}]}}"#
        )
    );
}
