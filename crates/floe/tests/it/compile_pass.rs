//! Where a transaction body can be written, and what it can contain. The main check is that this file compiles; the
//! tests also check the results.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::support;
use floe::{Attribute, Db, Error, ErrorKind, Model, Tx};
use support::{Player, player};

/// A database with players `a` of level 1 and `b` of level 2.
async fn db() -> Db {
    let db = Db::memory().unwrap();
    db.ensure_tables(&[Player::SCHEMA, Guild::SCHEMA])
        .await
        .unwrap();
    let create = async |tx: &Tx| {
        tx.create(player("a", 1))?;
        tx.create(player("b", 2))?;
        tx.create(guild("bears"))?;
        Ok::<_, Error>(())
    };
    db.transact(create).await.unwrap();
    db
}

#[derive(Clone, Debug, PartialEq, Model)]
struct Guild {
    #[model(key)]
    name: String,
    #[model(default)]
    members: u32,
}

fn guild(name: &str) -> Guild {
    Guild {
        name: name.to_owned(),
        members: 0,
    }
}

async fn level(db: &Db, id: &str) -> i64 {
    let level = async |tx: &Tx| Ok::<_, Error>(*tx.get::<Player>(id).await?.unwrap().level);
    db.transact(level).await.unwrap()
}

/// Compiles only for futures that are `Send`.
fn send<F: Future + Send>(future: F) -> F {
    future
}

// Helpers: a function can be a body itself, or be called by one.

async fn add(tx: &Tx, id: &str, levels: i64) -> Result<i64, Error> {
    let mut player = tx.get::<Player>(id).await?.unwrap();
    player.level += levels;
    Ok(*player.level)
}

/// Calls another helper, and is called by bodies and helpers.
async fn add_to_both(tx: &Tx, levels: i64) -> Result<i64, Error> {
    let a = add(tx, "a", levels).await?;
    let b = add(tx, "b", levels).await?;
    Ok(a + b)
}

/// Works for every model.
async fn exists<M: Model>(tx: &Tx, key: impl floe::model::IntoKey<M>) -> Result<bool, Error> {
    Ok(tx.get::<M>(key).await?.is_some())
}

/// Returns a row, which borrows the transaction.
async fn found<'tx, M: Model>(
    tx: &'tx Tx,
    key: floe::Key<M>,
) -> Result<Option<M::Row<'tx>>, AppError> {
    tx.get(key).await.map_err(AppError::from)
}

/// Takes a row.
fn promote(player: &mut support::PlayerRow<'_>) -> Result<(), Error> {
    player.level.increment_by(10)
}

// An error of the application.

#[derive(Debug)]
enum AppError {
    Floe(Error),
    NoSuchPlayer(String),
    Number(std::num::ParseIntError),
}

impl From<Error> for AppError {
    fn from(error: Error) -> Self {
        Self::Floe(error)
    }
}

impl From<std::num::ParseIntError> for AppError {
    fn from(error: std::num::ParseIntError) -> Self {
        Self::Number(error)
    }
}

impl fmt::Display for AppError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Floe(error) => error.fmt(f),
            Self::NoSuchPlayer(id) => write!(f, "no such player: id={id}"),
            Self::Number(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AppError {}

#[tokio::test]
async fn in_a_spawned_task() {
    let db = db().await;
    let task = tokio::spawn({
        let db = db.clone();
        async move {
            let id = String::from("a");
            db.transact(async |tx| add(tx, &id, 1).await).await
        }
    });
    assert_eq!(task.await.unwrap().unwrap(), 2);
}

#[tokio::test]
async fn in_a_spawned_task_with_options_and_everything_borrowed() {
    let db = Arc::new(db().await);
    let task = tokio::spawn({
        let db = Arc::clone(&db);
        async move {
            let (ids, levels) = (vec!["a".to_owned(), "b".to_owned()], 3);
            let options = db.tx().retries(5).label("both");
            let body = async |tx: &Tx| {
                for id in &ids {
                    add(tx, id, levels).await?;
                }
                Ok::<_, Error>(ids.len())
            };
            options.run(body).await
        }
    });
    assert_eq!(task.await.unwrap().unwrap(), 2);
    assert_eq!((level(&db, "a").await, level(&db, "b").await), (4, 5));
}

trait Levels {
    fn add(&self, id: &str, levels: i64) -> impl Future<Output = Result<i64, Error>> + Send;
}

struct Service {
    db: Db,
    factor: i64,
}

impl Levels for Service {
    async fn add(&self, id: &str, levels: i64) -> Result<i64, Error> {
        self.db
            .transact(async |tx| add(tx, id, levels * self.factor).await)
            .await
    }
}

/// A generic caller knows only that the future is `Send`.
async fn add_in_a_task<L: Levels + Send + Sync + 'static>(levels: L) -> i64 {
    let task = tokio::spawn(async move { levels.add("a", 2).await });
    task.await.unwrap().unwrap()
}

#[tokio::test]
async fn in_a_method_of_a_trait_whose_future_is_send() {
    let db = db().await;
    assert_eq!(add_in_a_task(Service { db, factor: 10 }).await, 21);
}

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

trait DynLevels: Send + Sync {
    fn add<'a>(&'a self, id: &'a str, levels: i64) -> Boxed<'a, Result<i64, Error>>;
}

impl DynLevels for Service {
    fn add<'a>(&'a self, id: &'a str, levels: i64) -> Boxed<'a, Result<i64, Error>> {
        Box::pin(async move {
            let body = async |tx: &Tx| add(tx, id, levels * self.factor).await;
            self.db.transact(body).await
        })
    }
}

#[tokio::test]
async fn in_a_method_of_a_trait_object() {
    let (db, factor) = (db().await, 100);
    let levels: Arc<dyn DynLevels> = Arc::new(Service { db, factor });
    let task = tokio::spawn(async move { levels.add("a", 1).await });
    assert_eq!(task.await.unwrap().unwrap(), 101);
}

#[tokio::test]
async fn in_a_stored_closure() {
    let db = db().await;
    let handler: Box<dyn Fn(i64) -> Boxed<'static, Result<i64, Error>> + Send + Sync> = {
        let db = db.clone();
        Box::new(move |levels| {
            let db = db.clone();
            Box::pin(async move { db.transact(async |tx| add(tx, "a", levels).await).await })
        })
    };
    assert_eq!(tokio::spawn(handler(1)).await.unwrap().unwrap(), 2);
    assert_eq!(tokio::spawn(handler(2)).await.unwrap().unwrap(), 4);
}

#[tokio::test]
async fn with_concurrent_reads() {
    let db = db().await;
    let body = async |tx: &Tx| {
        let (a, b, bears) = tokio::try_join!(
            tx.get::<Player>("a"),
            tx.get::<Player>("b"),
            tx.get::<Guild>("bears"),
        )?;
        let (mut a, b, mut bears) = (a.unwrap(), b.unwrap(), bears.unwrap());
        a.level.set(*a.level + *b.level)?;
        bears.members += 2;
        Ok::<_, Error>(*bears.members)
    };
    assert_eq!(send(db.transact(body)).await.unwrap(), 2);
    // Helpers too, each with its own rows.
    let body = async |tx: &Tx| tokio::try_join!(add(tx, "a", 1), add(tx, "b", 1));
    assert_eq!(send(db.transact(body)).await.unwrap(), (4, 3));
}

#[tokio::test]
async fn with_an_error_of_the_application() {
    let db = db().await;
    let rename = async |id: &str, levels: &str| {
        db.transact(async |tx| {
            let levels: i64 = levels.parse()?;
            let player = tx.get::<Player>(id).await?;
            let mut player = player.ok_or_else(|| AppError::NoSuchPlayer(id.to_owned()))?;
            player.level.set(levels)?;
            Ok::<_, AppError>(*player.level)
        })
        .await
    };
    assert_eq!(rename("a", "7").await.unwrap(), 7);
    assert!(matches!(rename("a", "x").await, Err(AppError::Number(_))));
    assert!(matches!(rename("z", "7").await, Err(AppError::NoSuchPlayer(id)) if id == "z"));
    let error = rename("a", "-7").await.unwrap_err();
    assert!(matches!(error, AppError::Floe(error) if error.kind() == ErrorKind::InvalidField));
    assert_eq!(level(&db, "a").await, 7);
}

#[tokio::test]
async fn with_a_boxed_error() {
    type AnyError = Box<dyn std::error::Error + Send + Sync>;
    let db = db().await;
    let body = async |tx: &Tx| {
        let levels: i64 = "4".parse()?;
        Ok::<_, AnyError>(add(tx, "a", levels).await?)
    };
    assert_eq!(send(db.transact(body)).await.unwrap(), 5);
}

#[tokio::test]
async fn with_helpers() {
    let db = db().await;
    assert_eq!(db.transact(async |tx| add(tx, "a", 1).await).await, Ok(2));
    let nested = db.transact(async |tx| add_to_both(tx, 1).await);
    assert_eq!(send(nested).await, Ok(6));
    // A function that borrows nothing but the transaction is a body.
    async fn reset(tx: &Tx) -> Result<(), Error> {
        tx.get::<Player>("a").await?.unwrap().level.overwrite(0)
    }
    send(db.transact(reset)).await.unwrap();
    assert_eq!(level(&db, "a").await, 0);
}

#[tokio::test]
async fn with_helpers_for_every_model() {
    let db = db().await;
    let body = async |tx: &Tx| {
        let found = exists::<Player>(tx, "a").await? && exists::<Guild>(tx, "bears").await?;
        Ok::<_, Error>((found, exists::<Guild>(tx, "wolves").await?))
    };
    assert_eq!(send(db.transact(body)).await, Ok((true, false)));
    // Generic functions: the caller chooses the model.
    async fn put<M: Model + Clone>(db: &Db, value: &M) -> Result<(), Error> {
        db.transact(async |tx| tx.create(value.clone()).map(drop))
            .await
    }
    send(put(&db, &guild("wolves"))).await.unwrap();
    assert_eq!(db.transact(body).await, Ok((true, true)));
}

#[tokio::test]
async fn with_rows_passed_to_and_from_helpers() {
    let db = db().await;
    let body = async |tx: &Tx| {
        let mut player = found(tx, Player::key("a")?).await?.unwrap();
        promote(&mut player)?;
        // The row is held across an await and changed afterwards.
        let other = found(tx, Player::key("b")?).await?.unwrap();
        player.level.increment_by(*other.level)?;
        Ok::<_, AppError>(())
    };
    send(db.transact(body)).await.unwrap();
    assert_eq!(level(&db, "a").await, 13);
}

#[tokio::test]
async fn with_values_returned() {
    let db = db().await;
    let body = async |tx: &Tx| {
        let player = tx.get::<Player>("a").await?.unwrap();
        let levels: Vec<i64> = vec![*player.level, 5];
        Ok::<_, Error>((player.id.to_string(), levels, player.guild.clone()))
    };
    let (id, levels, guild) = send(db.transact(body)).await.unwrap();
    assert_eq!((id.as_str(), levels, guild), ("a", vec![1, 5], None));
}

#[tokio::test]
async fn with_a_clone_that_moves_into_a_task() {
    let db = db().await;
    let names = Arc::new(vec!["a".to_owned(), "b".to_owned()]);
    // The block around the transaction owns the clone; the body borrows it in every attempt.
    let task = tokio::spawn({
        let names = Arc::clone(&names);
        async move {
            let body = async |tx: &Tx| {
                let mut sum = 0;
                for name in names.iter() {
                    sum += add(tx, name, 1).await?;
                }
                Ok::<_, Error>(sum)
            };
            db.transact(body).await
        }
    });
    assert_eq!(task.await.unwrap(), Ok(5));
    assert_eq!(names.len(), 2);
}

#[tokio::test]
async fn with_a_clone_that_moves_into_a_block_of_the_body() {
    let db = db().await;
    let name = "a".to_owned();
    let body = async |tx: &Tx| {
        let own = name.clone();
        let levels = tokio::spawn(async move { i64::try_from(own.len()) });
        add(tx, &name, levels.await.unwrap().unwrap()).await
    };
    assert_eq!(send(db.transact(body)).await, Ok(2));
}

#[tokio::test]
async fn with_a_clone_for_each_attempt() {
    let db = db().await;
    let value = player("c", 3);
    let create = db.transact(async |tx| tx.create(value.clone()).map(drop));
    send(create).await.unwrap();
    assert_eq!(level(&db, "c").await, value.level);
}

#[tokio::test]
async fn with_a_hook_that_moves_its_captures() {
    let db = db().await;
    let (sender, mut outcomes) = tokio::sync::mpsc::unbounded_channel();
    let body = async |tx: &Tx| {
        let sender = sender.clone();
        tx.on_post_commit(async move |outcome| sender.send(outcome).unwrap());
        add(tx, "a", 1).await
    };
    send(db.transact(body)).await.unwrap();
    assert_eq!(outcomes.recv().await, Some(floe::Outcome::Committed));
}

/// Works for every field type, and borrows the field across an await.
async fn peeked<T: Attribute + Clone + Send + Sync + 'static>(field: &floe::Field<T>) -> T {
    tokio::task::yield_now().await;
    field.peek().clone()
}

#[tokio::test]
async fn with_fields_borrowed_across_an_await() {
    let db = db().await;
    let body = async |tx: &Tx| {
        let player = tx.get::<Player>("a").await?.unwrap();
        Ok::<_, Error>((peeked(&player.level).await, peeked(&player.guild).await))
    };
    assert_eq!(send(db.transact(body)).await, Ok((1, None)));
}
