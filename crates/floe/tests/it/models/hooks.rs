//! Hooks that panic: the commit stands, and the other hooks run.

use std::sync::{Arc, Mutex};

use super::stage;
use super::support::{Player, player};
use floe::{Db, Error, ErrorKind, Model, Outcome, Tx};

type Notes = Arc<Mutex<Vec<String>>>;

/// Registers hooks of which the first two panic: one when it is called, one after it has waited.
fn register(tx: &Tx, notes: &Notes) {
    tx.on_post_commit(|_| -> std::future::Ready<()> { panic!("when called") });
    tx.on_post_commit(async |_| {
        tokio::task::yield_now().await;
        panic!("later");
    });
    let notes = notes.clone();
    tx.on_post_commit(async move |outcome| {
        let note = match outcome {
            Outcome::Committed => "committed".to_owned(),
            Outcome::Failed(error) => format!("{:?}", error.kind()),
        };
        notes.lock().unwrap().push(note);
    });
}

async fn db() -> Db {
    let db = Db::with_engine(stage::engine());
    db.ensure_tables(&[Player::SCHEMA]).await.unwrap();
    db
}

#[tokio::test]
async fn panicking_hook_neither_skips_later_hooks_nor_reaches_the_caller() {
    let (db, notes) = (db().await, Notes::default());
    let body = async |tx: &Tx| {
        register(tx, &notes);
        tx.create(player("a", 1)).map(drop)
    };
    db.transact(body).await.unwrap();
    assert_eq!(*notes.lock().unwrap(), ["committed"]);
    let read = async |tx: &Tx| Ok::<_, Error>(*tx.get::<Player>("a").await?.unwrap().level);
    assert_eq!(db.transact(read).await.unwrap(), 1);
}

#[tokio::test]
async fn panicking_hook_does_not_hide_the_error_of_the_transaction() {
    let (db, notes) = (db().await, Notes::default());
    let body = async |tx: &Tx| {
        register(tx, &notes);
        tx.create(player("a", -1)).map(drop)
    };
    let error = db.transact(body).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidField);
    assert_eq!(*notes.lock().unwrap(), ["Aborted"]);
}
