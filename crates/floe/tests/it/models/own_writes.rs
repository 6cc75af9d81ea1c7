//! Queries in a transaction that has written before: they see what the transaction sees.

use std::sync::Arc;

use super::stage;
use floe::{Db, Error, ErrorKind, Model, Tx};
use floe_testkit::record::RecordingEngine;

#[derive(Clone, Debug, PartialEq, Model)]
#[model(index(name = "by_color", key(color), sort(size), sparse))]
struct Tile {
    #[model(key)]
    wall: String,
    #[model(sort_key)]
    place: u32,
    size: u32,
    color: Option<String>,
}

fn tile(place: u32, size: u32) -> Tile {
    Tile {
        wall: "w".to_owned(),
        place,
        size,
        color: Some("red".to_owned()),
    }
}

/// Tiles at the places 10, 20, 30 and 40, all red, of the sizes 1 to 4.
async fn world() -> (Db, Arc<RecordingEngine>) {
    let recording = Arc::new(RecordingEngine::new(stage::engine()));
    let db = Db::with_engine(recording.clone());
    db.ensure_tables(&[Tile::SCHEMA]).await.unwrap();
    for n in 1..=4 {
        let create = async |tx: &Tx| tx.create(tile(10 * n, n)).map(drop);
        db.transact(create).await.unwrap();
    }
    recording.take();
    (db, recording)
}

async fn get<'tx>(tx: &'tx Tx, place: u32) -> TileRow<'tx> {
    tx.get::<Tile>(("w", place)).await.unwrap().unwrap()
}

/// Writes an item in each of the ways: 5 and 25 are new, 10 is gone, 20 is blue and large, 40 is new again.
async fn write(tx: &Tx) -> Result<(), Error> {
    tx.create(tile(25, 9))?;
    tx.create(tile(5, 2))?;
    tx.delete(get(tx, 10).await);
    let mut changed = get(tx, 20).await;
    changed.color.set(Some("blue".to_owned()))?;
    changed.size.set(7)?;
    drop(changed);
    tx.delete(get(tx, 40).await);
    tx.create(tile(40, 8)).map(drop)
}

fn places(rows: &[TileRow<'_>]) -> Vec<u32> {
    rows.iter().map(|row| *row.place).collect()
}

#[tokio::test]
async fn query_by_key_sees_the_writes_of_its_transaction() {
    let (db, recording) = world().await;
    let body = async |tx: &Tx| {
        write(tx).await?;
        let all = tx.query::<Tile>(|t| t.wall.eq("w")).all().await?;
        let sizes: Vec<_> = all.iter().map(|row| *row.size).collect();
        let all = (places(&all), sizes);
        let last = tx.query::<Tile>(|t| t.wall.eq("w")).descending();
        let last = places(&last.limit(3).all().await?);
        let range = tx.query::<Tile>(|t| t.wall.eq("w").and(t.place.between(6, 29)));
        let range = places(&range.all().await?);
        let large = tx.query::<Tile>(|t| t.wall.eq("w"));
        let large = places(&large.filter(|t| t.size.gt(6)).all().await?);
        let first = tx.query::<Tile>(|t| t.wall.eq("w")).first().await?;
        Ok::<_, Error>((all, last, range, large, *first.unwrap().place))
    };
    let seen = db.tx().cache_rows().run(body).await.unwrap();
    let expected = (
        (vec![5, 20, 25, 30, 40], vec![2, 7, 9, 3, 8]),
        vec![40, 30, 25],
        vec![20, 25],
        vec![20, 25, 40],
        5,
    );
    assert_eq!(seen, expected);
    // The commit has applied exactly what the queries returned.
    let sent = recording.take();
    let commits = sent.iter().filter(|sent| sent.starts_with("TransactWrite"));
    assert_eq!(commits.count(), 1, "{sent:?}");
    let stored = db.query::<Tile>(|t| t.wall.eq("w")).all().await.unwrap();
    let stored: Vec<_> = stored.iter().map(|tile| (tile.place, tile.size)).collect();
    assert_eq!(stored, [(5, 2), (20, 7), (25, 9), (30, 3), (40, 8)]);
}

#[tokio::test]
async fn query_of_an_index_sees_the_writes_of_its_transaction() {
    let (db, _) = world().await;
    let body = async |tx: &Tx| {
        write(tx).await?;
        let mut seen = Vec::new();
        for color in ["red", "blue", "green"] {
            let found = tx
                .query::<Tile>(|t| t.color.eq(color))
                .index(Tile::BY_COLOR);
            seen.push(places(&found.all().await?));
        }
        let mut colorless = get(tx, 30).await;
        colorless.color.set(None)?;
        drop(colorless);
        let red = tx
            .query::<Tile>(|t| t.color.eq("red"))
            .index(Tile::BY_COLOR);
        seen.push(places(&red.descending().all().await?));
        Ok::<_, Error>(seen)
    };
    let seen = db.tx().cache_rows().run(body).await.unwrap();
    let expected = [vec![5, 30, 40, 25], vec![20], vec![], vec![25, 40, 5]];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn scan_sees_the_writes_of_its_transaction() {
    let (db, _) = world().await;
    let body = async |tx: &Tx| {
        write(tx).await?;
        let mut all = places(&tx.scan::<Tile>().all().await?);
        all.sort_unstable();
        let mut parts = Vec::new();
        for segment in 0..3 {
            let part = tx.scan::<Tile>().segment(segment, 3).all().await?;
            parts.extend(places(&part));
        }
        parts.sort_unstable();
        Ok::<_, Error>((all, parts))
    };
    let (all, parts) = db.tx().cache_rows().run(body).await.unwrap();
    assert_eq!(all, [5, 20, 25, 30, 40]);
    assert_eq!(parts, all);
}

#[tokio::test]
async fn pages_contain_the_writes_of_the_transaction_once() {
    let (db, _) = world().await;
    for limit in 1..=6 {
        for descending in [false, true] {
            let body = async |tx: &Tx| {
                write(tx).await?;
                let (mut seen, mut cursor) = (Vec::new(), None);
                loop {
                    let mut page = tx.query::<Tile>(|t| t.wall.eq("w")).limit(limit);
                    if descending {
                        page = page.descending();
                    }
                    if let Some(cursor) = &cursor {
                        page = page.after(cursor);
                    }
                    let page = page.page().await?;
                    assert!(page.rows.len() <= limit);
                    seen.extend(places(&page.rows));
                    cursor = page.next;
                    if cursor.is_none() {
                        break;
                    }
                }
                // Nothing is written.
                Err::<(), _>(Seen(seen))
            };
            let Err(Seen(mut seen)) = db.tx().cache_rows().run(body).await else {
                panic!("the body aborts");
            };
            if descending {
                seen.reverse();
            }
            assert_eq!(seen, [5, 20, 25, 30, 40], "limit={limit}");
        }
    }
}

/// The places that an aborted body has seen.
#[derive(Debug)]
struct Seen(Vec<u32>);

impl From<Error> for Seen {
    fn from(error: Error) -> Self {
        panic!("{error}")
    }
}

#[tokio::test]
async fn query_that_finds_an_item_written_before_needs_cached_rows() {
    let (db, _) = world().await;
    let body = async |tx: &Tx| {
        tx.create(tile(25, 9))?;
        let before = tx.query::<Tile>(|t| t.wall.eq("w").and(t.place.lt(25)));
        assert_eq!(places(&before.all().await?), [10, 20]);
        let found = tx.query::<Tile>(|t| t.wall.eq("w").and(t.place.ge(25)));
        let found = found.all().await;
        assert_eq!(
            found.map(|_| ()).unwrap_err().kind(),
            ErrorKind::FetchedTwice
        );
        Ok::<_, Error>(())
    };
    db.transact(body).await.unwrap();
}

#[tokio::test]
async fn query_that_may_contain_a_blind_write_is_refused() {
    let (db, _) = world().await;
    for cached in [false, true] {
        let body = async |tx: &Tx| {
            let new = Tile::patch().size(1).color(None);
            tx.create_or_put::<Tile>(("w", 25), Tile::patch(), new)?;
            let beside = tx.query::<Tile>(|t| t.wall.eq("w").and(t.place.lt(25)));
            assert_eq!(places(&beside.all().await?), [10, 20]);
            let error = tx.query::<Tile>(|t| t.wall.eq("w").and(t.place.ge(25)));
            let error = error.all().await.map(drop).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidUse);
            let text = error.to_string();
            assert!(text.contains("written without reading it"), "{text}");
            assert!(text.contains("model=Tile"), "{text}");
            Ok::<_, Error>(())
        };
        let options = db.tx();
        let options = if cached {
            options.cache_rows()
        } else {
            options
        };
        options.run(body).await.unwrap();
    }
}
