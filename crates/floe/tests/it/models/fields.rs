//! Fields that are read-only, printed, or absent in two ways.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::stage;
use floe::{Db, Error, ErrorKind, Model, Tx};
use floe_testkit::record::RecordingEngine;

#[derive(Clone, Debug, PartialEq, Model)]
struct Ticket {
    #[model(key)]
    id: String,
    #[model(read_only, default = 5)]
    batch: i64,
    seats: i64,
    note: Option<String>,
}

fn ticket(id: &str) -> Ticket {
    Ticket {
        id: id.to_owned(),
        batch: 5,
        seats: 1,
        note: None,
    }
}

async fn world() -> (Db, Arc<RecordingEngine>) {
    let recording = Arc::new(RecordingEngine::new(stage::engine()));
    let db = Db::with_engine(recording.clone());
    db.ensure_tables(&[Ticket::SCHEMA, Document::SCHEMA])
        .await
        .unwrap();
    for id in ["a", "b"] {
        let create = async |tx: &Tx| tx.create(ticket(id)).map(drop);
        db.transact(create).await.unwrap();
    }
    recording.take();
    (db, recording)
}

#[tokio::test]
async fn change_of_a_read_only_field_is_refused_at_once() {
    let (db, _) = world().await;
    let body = async |tx: &Tx| {
        let mut ticket = tx.get::<Ticket>("a").await?.unwrap();
        let refused = [
            ticket.batch.set(6).unwrap_err(),
            ticket.batch.set(5).unwrap_err(),
            ticket.batch.overwrite(6).unwrap_err(),
            ticket.batch.increment_by(1).unwrap_err(),
        ];
        for error in refused {
            assert_eq!(error.kind(), ErrorKind::InvalidField);
            assert_eq!(error.field(), Some("batch"));
            assert!(
                error.to_string().starts_with("the field is read-only"),
                "{error}"
            );
        }
        assert_eq!(ticket.batch, 5);
        ticket.seats.set(2)
    };
    db.transact(body).await.unwrap();
}

#[tokio::test]
async fn read_only_field_of_a_new_item_can_be_set() {
    let (db, _) = world().await;
    let body = async |tx: &Tx| {
        tx.create(ticket("new"))?.batch.set(6)?;
        let mut other = tx.get_or_create(ticket("other")).await?;
        other.batch.increment_by(2)
    };
    db.transact(body).await.unwrap();
    let body = async |tx: &Tx| {
        let keys = (Ticket::key("new")?, Ticket::key("other")?);
        let (new, other) = tx.get_many(keys).await?;
        Ok::<_, Error>((*new.unwrap().batch, *other.unwrap().batch))
    };
    assert_eq!(db.transact(body).await.unwrap(), (6, 7));
}

#[tokio::test]
async fn printed_field_is_locked() {
    let (db, recording) = world().await;
    let body = async |tx: &Tx| {
        let mut ticket = tx.get::<Ticket>("a").await?.unwrap();
        if format!("{:?}", ticket.seats) == "1" {
            ticket.note.set(Some("one".to_owned()))?;
        }
        Ok::<_, Error>(())
    };
    db.transact(body).await.unwrap();
    let sent = recording.take();
    assert!(
        sent[1].ends_with("IF seats = 1 AND attribute_not_exists(note)"),
        "{}",
        sent[1]
    );
}

#[tokio::test]
async fn printed_row_is_locked_as_a_whole() {
    let (db, recording) = world().await;
    let body = async |tx: &Tx| {
        let mut ticket = tx.get::<Ticket>("a").await?.unwrap();
        let text = format!("{ticket:?}");
        ticket.note.overwrite(Some(text))
    };
    db.transact(body).await.unwrap();
    let sent = recording.take();
    assert!(sent[1].contains("batch = 5 AND seats = 1"), "{}", sent[1]);
}

type Tags = BTreeSet<String>;

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Inner {
    given: Option<Option<i64>>,
}

#[derive(Clone, Debug, PartialEq, Model)]
struct Document {
    #[model(key)]
    id: String,
    lists: Vec<Option<Tags>>,
    #[model(serde)]
    inner: Inner,
}

fn document() -> Document {
    Document {
        id: "d".to_owned(),
        lists: vec![None, Some(Tags::from(["x".to_owned()]))],
        inner: Inner { given: None },
    }
}

#[tokio::test]
async fn values_that_would_be_read_back_as_absent_are_refused() {
    let (db, _) = world().await;
    let create = async |tx: &Tx| tx.create(document()).map(drop);
    db.transact(create).await.unwrap();
    let body = async |tx: &Tx| Ok::<_, Error>(tx.get::<Document>("d").await?.unwrap().to_model());
    assert_eq!(db.transact(body).await.unwrap(), document());
    let empty_set = Document {
        lists: vec![Some(Tags::new())],
        ..document()
    };
    let nested_none = Document {
        inner: Inner { given: Some(None) },
        ..document()
    };
    for (value, field) in [(empty_set, "lists[0]"), (nested_none, "inner.given")] {
        let create = async |tx: &Tx| tx.create(value.clone()).map(drop);
        let error = db.transact(create).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidField, "{error}");
        assert_eq!(error.field(), Some(field), "{error}");
        assert!(error.to_string().contains("read back as `None`"), "{error}");
    }
}
