//! Queries by key and index: every operator on every kind of key, compared with a filtered list.

#![expect(clippy::duplicated_attributes, reason = "two indexes may be sparse")]

use std::sync::Arc;
use std::time::Duration;

use floe::model::Expiry;
use floe::model::query::Predicate;
use floe::{Db, Error, ErrorKind, Model, Tx};
use floe_store::env::SeededRandom;
use floe_testkit::fault::{FaultEngine, FaultKind, Faults, Operation};
use floe_testkit::record::RecordingEngine;
use floe_testkit::time::TestEnv;

use super::stage;

#[derive(Clone, Debug, PartialEq, Model)]
#[model(index(name = "by_tag", key(tag), sort(height, color), sparse))]
#[model(index(name = "by_color", key(color), sort(tag), sparse, project(keys)))]
struct Block {
    #[model(key)]
    row: i64,
    #[model(key)]
    shelf: String,
    #[model(sort_key)]
    height: i64,
    #[model(sort_key)]
    part: String,
    color: Option<String>,
    weight: u32,
    tag: String,
    pad: Option<String>,
}

fn block(height: i64, part: &str) -> Block {
    Block {
        row: 1,
        shelf: "a".to_owned(),
        height,
        part: part.to_owned(),
        color: (height % 2 == 0).then(|| "red".to_owned()),
        weight: u32::try_from(height.unsigned_abs()).unwrap(),
        tag: format!("t{part}"),
        pad: None,
    }
}

struct World {
    db: Db,
    recording: Arc<RecordingEngine>,
}

/// Creates blocks on one shelf, in the order of their keys, and a few on others.
async fn world(blocks: &[Block]) -> World {
    let engine = stage::engine();
    let recording = Arc::new(RecordingEngine::new(engine));
    let db = Db::with_engine(recording.clone());
    db.ensure_tables(&[Block::SCHEMA]).await.unwrap();
    let mut others = vec![];
    for (row, shelf) in [(1, "b"), (2, "a"), (-1, "a")] {
        let shelf = shelf.to_owned();
        others.push(Block {
            row,
            shelf,
            ..block(1, "x")
        });
    }
    for some in [blocks, &others].concat().chunks(50) {
        let create = async |tx: &Tx| {
            some.iter()
                .try_for_each(|block| tx.create(block.clone()).map(drop))
        };
        db.transact(create).await.unwrap();
    }
    recording.take();
    World { db, recording }
}

const HEIGHTS: [i64; 11] = [
    -4_000_000_000,
    -1000,
    -10,
    -2,
    -1,
    0,
    1,
    2,
    10,
    99,
    4_000_000_000,
];
const PARTS: [&str; 8] = ["", "\u{1}", " ", "a", "a\u{1}", "ab", "b", "\u{10ffff}"];

fn all_blocks() -> Vec<Block> {
    let mut blocks = Vec::new();
    for height in HEIGHTS {
        for part in PARTS {
            blocks.push(block(height, part));
        }
    }
    blocks
}

type Key = fn(&BlockFields) -> Predicate<Block>;

fn shelf(b: &BlockFields) -> Predicate<Block> {
    b.row.eq(1).and(b.shelf.eq("a"))
}

/// The operators by number, for columns and for plain values.
macro_rules! operators {
    ($column:expr, $n:expr, $low:expr, $high:expr) => {
        match $n {
            0 => $column.eq($low),
            1 => $column.lt($low),
            2 => $column.le($low),
            3 => $column.gt($low),
            4 => $column.ge($low),
            _ => $column.between($low, $high),
        }
    };
}

fn holds<T: Ord>(n: usize, value: &T, low: &T, high: &T) -> bool {
    match n {
        0 => value == low,
        1 => value < low,
        2 => value <= low,
        3 => value > low,
        4 => value >= low,
        _ => low <= value && value <= high,
    }
}

async fn found(db: &Db, key: impl FnOnce(&BlockFields) -> Predicate<Block>) -> Vec<Block> {
    db.query::<Block>(key).all().await.unwrap()
}

#[tokio::test]
async fn every_operator_on_the_first_part_of_the_sort_key() {
    let blocks = all_blocks();
    let world = world(&blocks).await;
    for n in 0..6 {
        for low in HEIGHTS {
            for high in HEIGHTS
                .into_iter()
                .filter(|high| n < 5 || *high >= low)
                .take(if n < 5 { 1 } else { 11 })
            {
                let found = found(&world.db, |b| {
                    shelf(b).and(operators!(b.height, n, low, high))
                })
                .await;
                let wanted: Vec<_> = blocks
                    .iter()
                    .filter(|b| holds(n, &b.height, &low, &high))
                    .cloned()
                    .collect();
                assert_eq!(found, wanted, "operator={n} low={low} high={high}");
            }
        }
    }
}

#[tokio::test]
async fn every_operator_on_the_last_part_of_the_sort_key() {
    let blocks = all_blocks();
    let world = world(&blocks).await;
    for n in 0..6 {
        for low in PARTS {
            for high in PARTS
                .into_iter()
                .filter(|high| n < 5 || *high >= low)
                .take(if n < 5 { 1 } else { 8 })
            {
                let key = |b: &BlockFields| {
                    shelf(b)
                        .and(b.height.eq(-2))
                        .and(operators!(b.part, n, low, high))
                };
                let found = found(&world.db, key).await;
                let wanted: Vec<_> = blocks
                    .iter()
                    .filter(|b| b.height == -2 && holds(n, &b.part.as_str(), &low, &high))
                    .cloned()
                    .collect();
                assert_eq!(found, wanted, "operator={n} low={low:?} high={high:?}");
            }
        }
    }
    for prefix in PARTS {
        let found = found(&world.db, |b| {
            shelf(b).and(b.height.eq(2)).and(b.part.starts_with(prefix))
        })
        .await;
        let wanted: Vec<_> = blocks
            .iter()
            .filter(|b| b.height == 2 && b.part.starts_with(prefix))
            .cloned()
            .collect();
        assert_eq!(found, wanted, "prefix={prefix:?}");
    }
}

#[derive(Clone, Debug, PartialEq, Model)]
struct Word {
    #[model(key)]
    book: i64,
    #[model(sort_key)]
    text: String,
}

#[tokio::test]
async fn every_operator_on_a_sort_key_of_one_part() {
    let db = stage::db();
    db.ensure_tables(&[Word::SCHEMA]).await.unwrap();
    let texts = &PARTS[1..];
    let create = async |tx: &Tx| {
        texts.iter().try_for_each(|text| {
            tx.create(Word {
                book: 7,
                text: (*text).to_owned(),
            })
            .map(drop)
        })
    };
    db.transact(create).await.unwrap();
    for n in 0..6 {
        for low in texts {
            let key = |w: &WordFields| w.book.eq(7).and(operators!(w.text, n, *low, *low));
            let found: Vec<String> = db
                .query::<Word>(key)
                .all()
                .await
                .unwrap()
                .into_iter()
                .map(|w| w.text)
                .collect();
            let wanted: Vec<&str> = texts
                .iter()
                .copied()
                .filter(|text| holds(n, text, low, low))
                .collect();
            assert_eq!(found, wanted, "operator={n} low={low:?}");
        }
    }
    // Nothing is less than the empty text, and every text begins with it.
    let everything = db.query::<Word>(|w| w.book.eq(7).and(w.text.starts_with("")));
    assert_eq!(everything.all().await.unwrap().len(), texts.len());
    let everything = db.query::<Word>(|w| w.book.eq(7).and(w.text.ge("")));
    assert_eq!(everything.all().await.unwrap().len(), texts.len());
}

#[tokio::test]
async fn every_operator_on_an_index_of_several_fields() {
    let blocks = all_blocks();
    let world = world(&blocks).await;
    for n in 0..6 {
        for low in [-10, 2, 99] {
            let high = 10.max(low);
            let key = |b: &BlockFields| b.tag.eq("tab").and(operators!(b.height, n, low, high));
            let query = world.db.query::<Block>(key).index(Block::BY_TAG);
            // Without a color, an item is not in the index.
            let wanted: Vec<_> = blocks
                .iter()
                .filter(|b| b.part == "ab" && b.color.is_some() && holds(n, &b.height, &low, &high))
                .cloned()
                .collect();
            assert_eq!(query.all().await.unwrap(), wanted, "operator={n} low={low}");
        }
    }
    let key: Key = |b| {
        b.tag
            .eq("tab")
            .and(b.height.eq(2))
            .and(b.color.starts_with("r"))
    };
    let exact = world.db.query::<Block>(key).index(Block::BY_TAG);
    assert_eq!(exact.all().await.unwrap(), [block(2, "ab")]);
}

#[tokio::test]
async fn index_with_a_projection_returns_whole_items() {
    let world = world(&all_blocks()).await;
    let key: Key = |b| b.color.eq("red").and(b.tag.eq("tab"));
    let query = world.db.query::<Block>(key).index(Block::BY_COLOR);
    let red: Vec<Block> = query.filter(|b| b.weight.le(10)).all().await.unwrap();
    let mut heights: Vec<_> = red.iter().map(|b| b.height).collect();
    heights.sort_unstable();
    assert_eq!(heights, [-10, -2, 0, 2, 10]);
    let sent = world.recording.take();
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert!(
        sent[0].starts_with("Query") && sent[1].starts_with("BatchGetItem"),
        "{sent:?}"
    );
}

#[tokio::test]
async fn limits_directions_and_filters() {
    let blocks = all_blocks();
    let world = world(&blocks).await;
    let db = &world.db;
    let last = db
        .query::<Block>(shelf)
        .descending()
        .limit(3)
        .all()
        .await
        .unwrap();
    let wanted: Vec<_> = blocks.iter().rev().take(3).cloned().collect();
    assert_eq!(last, wanted);
    assert_eq!(
        db.query::<Block>(shelf).first().await.unwrap().as_ref(),
        blocks.first()
    );
    assert!(
        db.query::<Block>(shelf)
            .limit(0)
            .all()
            .await
            .unwrap()
            .is_empty()
    );
    // A limit counts items that pass the filter, however rare they are.
    let heavy = db
        .query::<Block>(shelf)
        .filter(|b| b.weight.eq(99))
        .limit(5);
    assert_eq!(heavy.all().await.unwrap().len(), 5);
    type Holds = fn(&Block) -> bool;
    let filters: [(Key, Holds); 7] = [
        (|b| b.color.not_exists(), |b| b.color.is_none()),
        (|b| b.color.eq(None), |b| b.color.is_none()),
        (
            |b| b.color.exists().and(b.weight.ne(2)),
            |b| b.color.is_some() && b.weight != 2,
        ),
        (
            |b| b.weight.one_of([1, 10]),
            |b| [1, 10].contains(&b.weight),
        ),
        (
            |b| !b.weight.between(1, 10),
            |b| !(1..=10).contains(&b.weight),
        ),
        (
            |b| b.color.contains("e").or(b.weight.gt(998)),
            |b| b.color.is_some() || b.weight > 998,
        ),
        (|b| b.color.starts_with("r"), |b| b.color.is_some()),
    ];
    for (n, (filter, holds)) in filters.into_iter().enumerate() {
        let found = db.query::<Block>(shelf).filter(filter).all().await.unwrap();
        let wanted: Vec<_> = blocks.iter().filter(|b| holds(b)).cloned().collect();
        assert_eq!(found, wanted, "filter={n}");
    }
}

#[tokio::test]
async fn pages_of_any_size_contain_every_item_once() {
    let blocks = all_blocks();
    let world = world(&blocks).await;
    for limit in [1, 7, 87, 88, 89] {
        for descending in [false, true] {
            let query = || {
                let query = world.db.query::<Block>(shelf).limit(limit);
                if descending {
                    query.descending()
                } else {
                    query
                }
            };
            let mut page = query().page().await.unwrap();
            let mut found = std::mem::take(&mut page.rows);
            while let Some(cursor) = page.next.take() {
                assert!(found.len().is_multiple_of(limit));
                page = query().after(&cursor).page().await.unwrap();
                found.append(&mut page.rows);
            }
            if descending {
                found.reverse();
            }
            assert_eq!(found, blocks, "limit={limit} descending={descending}");
        }
    }
}

#[tokio::test]
async fn pages_of_an_index_continue_after_the_cursor() {
    let blocks = all_blocks();
    let world = world(&blocks).await;
    let query = || {
        let query = world.db.query::<Block>(|b| b.color.eq("red"));
        query.index(Block::BY_COLOR).limit(5)
    };
    let mut page = query().page().await.unwrap();
    let mut found = std::mem::take(&mut page.rows);
    while let Some(cursor) = page.next.take() {
        page = query().after(cursor).page().await.unwrap();
        found.append(&mut page.rows);
    }
    let red = blocks.iter().filter(|b| b.color.is_some());
    assert_eq!(found.len(), red.count());
}

#[tokio::test]
async fn cursor_is_valid_for_its_own_query_only() {
    let world = world(&all_blocks()).await;
    let db = &world.db;
    let cursor = db
        .query::<Block>(shelf)
        .limit(2)
        .page()
        .await
        .unwrap()
        .next
        .unwrap();
    let refused = async |db: &Db, key: Key, cursor: &str| {
        let error = db
            .query::<Block>(key)
            .after(cursor)
            .page()
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidCursor, "{error}");
    };
    refused(db, |b| b.row.eq(1).and(b.shelf.eq("b")), cursor.as_str()).await;
    refused(db, |b| shelf(b).and(b.height.gt(0)), cursor.as_str()).await;
    let error = db
        .query::<Block>(shelf)
        .descending()
        .after(&cursor)
        .page()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidCursor);
    let error = db.scan::<Block>().after(&cursor).page().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidCursor);
    for broken in [
        "",
        "0",
        "zz",
        "é",
        &cursor.as_str()[2..],
        &cursor.as_str().to_uppercase(),
    ] {
        refused(db, shelf, broken).await;
    }
    // Every changed digit is detected.
    for at in 0..cursor.as_str().len() {
        let mut text = cursor.as_str().to_owned();
        let other = if &text[at..=at] == "0" { "1" } else { "0" };
        text.replace_range(at..=at, other);
        refused(db, shelf, &text).await;
    }
    // Another database has another cursor key, unless both get the same one.
    let (one, other) = (
        db.clone().with_cursor_key(b"secret"),
        db.clone().with_cursor_key(b"secret"),
    );
    refused(&one, shelf, cursor.as_str()).await;
    let cursor = one
        .query::<Block>(shelf)
        .limit(2)
        .page()
        .await
        .unwrap()
        .next
        .unwrap();
    let next = other
        .query::<Block>(shelf)
        .limit(1)
        .after(&cursor)
        .all()
        .await
        .unwrap();
    assert_eq!(next, all_blocks()[2..3]);
}

#[tokio::test]
async fn queried_rows_are_tracked_like_fetched_rows() {
    let world = world(&all_blocks()).await;
    let key: Key = |b| shelf(b).and(b.height.eq(2)).and(b.part.le("a"));
    let runs = std::sync::atomic::AtomicU32::new(0);
    let body = async |tx: &Tx| {
        let run = runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut rows = tx.query::<Block>(key).stream()?;
        let mut sum = 0;
        while let Some(mut row) = rows.next().await? {
            sum += *row.weight;
            row.weight += 1;
        }
        if run == 0 {
            let db = world.db.clone();
            tokio::spawn(async move {
                let change = async |tx: &Tx| {
                    let key = Block::key((1, "a", 2, "a"))?;
                    tx.get(key).await?.unwrap().weight += 10;
                    Ok::<_, Error>(())
                };
                db.transact(change).await
            })
            .await
            .unwrap()?;
        }
        Ok::<_, Error>(sum)
    };
    let sum = world.db.tx().initial_backoff_ms(0).run(body).await.unwrap();
    assert_eq!((sum, runs.into_inner()), (2 * 4 + 10, 2));
    let sent = world.recording.take();
    assert!(
        sent.iter()
            .any(|request| request.starts_with("TransactWriteItems")),
        "{sent:?}"
    );
    let weights: Vec<_> = found(&world.db, key)
        .await
        .iter()
        .map(|b| b.weight)
        .collect();
    assert_eq!(weights, [3, 3, 3, 13]);
}

#[tokio::test]
async fn used_rows_are_found_only_with_cached_rows() {
    let world = world(&all_blocks()).await;
    let key: Key = |b| shelf(b).and(b.height.eq(2)).and(b.part.le("\u{1}"));
    let body = async |tx: &Tx| {
        let mut first = tx.get(Block::key((1, "a", 2, ""))?).await?.unwrap();
        first.weight.set(50)?;
        drop(first);
        let second = tx.get(Block::key((1, "a", 2, "\u{1}"))?).await?.unwrap();
        tx.delete(second);
        let rows = tx.query::<Block>(key).all().await?;
        Ok::<_, Error>(rows.iter().map(|row| *row.weight).collect::<Vec<_>>())
    };
    let error = world.db.transact(body).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FetchedTwice);
    assert_eq!(world.db.tx().cache_rows().run(body).await.unwrap(), [50]);
    assert_eq!(found(&world.db, key).await.len(), 1);
}

#[tokio::test]
async fn unsupported_key_conditions_are_rejected() {
    let world = world(&[]).await;
    let cases: [(Key, &str); 8] = [
        (
            |b| b.row.eq(1),
            "a query needs `eq` on every field of the partition key: model=Block table=Block missing=shelf key=row,shelf sort_key=height,part indexes=by_tag,by_color",
        ),
        (
            |b| b.row.gt(1).and(b.shelf.eq("a")),
            "a query needs `eq` on every field of the partition key",
        ),
        (
            |b| shelf(b).and(b.part.eq("x")),
            "the condition is not on a leading field of the key: model=Block table=Block field=part",
        ),
        (
            |b| shelf(b).and(b.height.gt(1)).and(b.part.eq("x")),
            "the condition is not on a leading field of the key",
        ),
        (
            |b| shelf(b).and(b.height.gt(1)).and(b.height.lt(9)),
            "a key field has two conditions; use `between`",
        ),
        (
            |b| shelf(b).and(b.height.ne(1)),
            "a key condition supports only equality, order and prefix; move this condition to `filter`",
        ),
        (
            |b| shelf(b).or(b.height.eq(1)),
            "a key condition is a list of comparisons joined by `and`; move the rest to `filter`",
        ),
        (
            |b| shelf(b).and(b.weight.eq(1)),
            "the condition is not on a leading field of the key: model=Block table=Block field=weight",
        ),
    ];
    for (key, message) in cases {
        let error = world.db.query::<Block>(key).all().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidUse);
        assert!(error.to_string().starts_with(message), "{error}");
    }
    let invalid: [Key; 4] = [
        |b| b.row.eq(1).and(b.shelf.eq("a\0b")),
        |b| shelf(b).and(b.height.between(2, 1)),
        |b| {
            shelf(b)
                .and(b.height.eq(1))
                .and(b.part.gt("x".repeat(1100)))
        },
        |b| shelf(b).and(b.weight.one_of([0_u32; 0])),
    ];
    for key in invalid {
        let error = world.db.query::<Block>(key).all().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidField, "{error}");
    }
    let of_key = world.db.query::<Block>(shelf).filter(|b| b.row.gt(0));
    assert_eq!(
        of_key.all().await.unwrap_err().kind(),
        ErrorKind::InvalidUse
    );
    let indexed = world
        .db
        .query::<Block>(|b| b.tag.eq("x"))
        .index(Block::BY_TAG);
    let error = indexed
        .filter(|b| b.color.eq("red"))
        .all()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
    assert!(world.recording.take().is_empty(), "no request is sent");
}

#[tokio::test]
async fn scan_reads_every_item_once_alone_or_in_segments() {
    let blocks: Vec<_> = (0..500).map(|n| block(n, "x")).collect();
    let world = world(&blocks).await;
    assert_eq!(world.db.scan::<Block>().all().await.unwrap().len(), 503);
    let red = world.db.scan::<Block>().filter(|b| b.color.exists());
    assert_eq!(red.all().await.unwrap().len(), 250);
    let mut heights = Vec::new();
    for segment in 0..4 {
        let mut rows = world
            .db
            .scan::<Block>()
            .segment(segment, 4)
            .stream()
            .unwrap();
        while let Some(block) = rows.next().await.unwrap() {
            heights.push((block.row, block.shelf, block.height));
        }
    }
    heights.sort();
    heights.dedup();
    assert_eq!(heights.len(), 503);
    let indexed = world.db.scan::<Block>().index(Block::BY_COLOR).limit(120);
    assert_eq!(indexed.all().await.unwrap().len(), 120);
    let wrong = world
        .db
        .scan::<Block>()
        .segment(4, 4)
        .all()
        .await
        .unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Store);
}

#[tokio::test]
async fn large_results_take_several_requests() {
    let mut blocks: Vec<_> = (0..40).map(|n| block(n, "x")).collect();
    for block in &mut blocks {
        block.pad = Some("c".repeat(60_000));
    }
    let world = world(&[]).await;
    for block in &blocks {
        let create = async |tx: &Tx| tx.create(block.clone()).map(drop);
        world.db.transact(create).await.unwrap();
    }
    world.recording.take();
    assert_eq!(found(&world.db, shelf).await, blocks);
    let sent = world.recording.take().len();
    assert!(sent > 1, "{sent}");
    let page = world.db.query::<Block>(shelf).page().await.unwrap();
    assert!(page.rows.len() < 40 && page.next.is_some());
    assert_eq!(world.recording.take().len(), 1);
}

#[derive(Clone, Debug, PartialEq, Model)]
#[model(
    table = "Things",
    sort_key = "note",
    index(name = "by_owner", key(owner), project(keys))
)]
struct Note {
    #[model(key)]
    owner: String,
    #[model(sort_key)]
    number: i64,
    #[model(expires)]
    until: Option<Expiry>,
}

#[derive(Clone, Debug, PartialEq, Model)]
#[model(
    table = "Things",
    sort_key = "notebook",
    index(name = "by_owner", key(owner), project(keys))
)]
struct Notebook {
    #[model(key)]
    owner: String,
    #[model(expires)]
    until: Option<Expiry>,
}

#[tokio::test]
async fn queries_in_a_shared_table_return_their_own_unexpired_items() {
    let time = TestEnv::seeded(1);
    let db = Db::with_engine(stage::engine_at(time.env.clone()));
    db.ensure_tables(&[Note::SCHEMA, Notebook::SCHEMA])
        .await
        .unwrap();
    let until = |number: i64| {
        let soon = Expiry::after(time.now(), Duration::from_secs(60));
        (number % 3 == 0).then_some(soon)
    };
    let create = async |tx: &Tx| {
        for number in -5..10 {
            let owner = "Ann".to_owned();
            tx.create(Note {
                owner,
                number,
                until: until(number),
            })?;
        }
        let (owner, until) = ("Ann".to_owned(), until(0));
        tx.create(Notebook { owner, until }).map(drop)
    };
    db.transact(create).await.unwrap();
    let counts = async || {
        let notes = db.query::<Note>(|n| n.owner.eq("Ann")).all().await.unwrap();
        let some = db
            .query::<Note>(|n| n.owner.eq("Ann").and(n.number.lt(0)))
            .all()
            .await
            .unwrap();
        let indexed = db
            .query::<Note>(|n| n.owner.eq("Ann"))
            .index(Note::BY_OWNER);
        let books = db
            .query::<Notebook>(|n| n.owner.eq("Ann"))
            .all()
            .await
            .unwrap();
        let indexed_books = db
            .query::<Notebook>(|n| n.owner.eq("Ann"))
            .index(Notebook::BY_OWNER);
        let scanned = db.scan::<Notebook>().all().await.unwrap();
        [
            notes.len(),
            some.len(),
            indexed.all().await.unwrap().len(),
            db.scan::<Note>().all().await.unwrap().len(),
            books.len(),
            indexed_books.all().await.unwrap().len(),
            scanned.len(),
        ]
    };
    assert_eq!(counts().await, [15, 5, 15, 15, 1, 1, 1]);
    time.clock.advance(Duration::from_secs(61));
    assert_eq!(counts().await, [10, 4, 10, 10, 0, 0, 0]);
}

#[derive(Clone, Debug, PartialEq, Model)]
#[model(sort_key_encoding = "json")]
struct Legacy {
    #[model(key)]
    id: String,
    #[model(sort_key)]
    name: String,
    #[model(sort_key)]
    number: i64,
}

#[tokio::test]
async fn unordered_numbers_in_json_sort_keys_cannot_be_compared() {
    let db = stage::db();
    db.ensure_tables(&[Legacy::SCHEMA]).await.unwrap();
    let create = async |tx: &Tx| {
        for (name, number) in [("a", 2), ("a", 10), ("b", 1)] {
            let (id, name) = ("x".to_owned(), name.to_owned());
            tx.create(Legacy { id, name, number })?;
        }
        Ok::<_, Error>(())
    };
    db.transact(create).await.unwrap();
    let named = db
        .query::<Legacy>(|l| l.id.eq("x").and(l.name.le("a")))
        .all()
        .await
        .unwrap();
    assert_eq!(named.len(), 2);
    let exact = db.query::<Legacy>(|l| l.id.eq("x").and(l.name.eq("a")).and(l.number.eq(10)));
    assert_eq!(exact.all().await.unwrap().len(), 1);
    let ranged = db.query::<Legacy>(|l| l.id.eq("x").and(l.name.eq("a")).and(l.number.gt(2)));
    let error = ranged.all().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
}

#[tokio::test]
async fn throttled_reads_are_retried() {
    let world = world(&all_blocks()).await;
    let faults = Arc::new(FaultEngine::new(
        world.db.engine().clone(),
        Faults::seeded(1),
    ));
    let db = Db::with_engine(faults.clone());
    let throttle = || {
        faults
            .script(Operation::Query, FaultKind::Throttle)
            .unwrap();
    };
    throttle();
    assert_eq!(found(&db, shelf).await.len(), 88);
    // In a transaction the body runs again.
    throttle();
    let runs = std::sync::atomic::AtomicU32::new(0);
    let body = async |tx: &Tx| {
        runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok::<_, Error>(tx.query::<Block>(shelf).all().await?.len())
    };
    assert_eq!(db.tx().initial_backoff_ms(0).run(body).await.unwrap(), 88);
    assert_eq!(runs.into_inner(), 2);
}

#[tokio::test]
async fn random_pages_of_random_queries_match_a_filtered_list() {
    let blocks = all_blocks();
    let world = world(&blocks).await;
    let random = SeededRandom::new(11);
    let pick = |max: usize| usize::try_from(random.below(max as u64)).unwrap();
    for _ in 0..300 {
        let (n, low, high) = (pick(6), HEIGHTS[pick(11)], HEIGHTS[pick(11)]);
        let (low, high) = (low.min(high), low.max(high));
        let (limit, descending, weight) = (1 + pick(20), pick(2) == 1, [0, 3, 1000][pick(3)]);
        let query = || {
            let query = world
                .db
                .query::<Block>(|b| shelf(b).and(operators!(b.height, n, low, high)));
            let query = query.filter(|b| b.weight.ge(weight)).limit(limit);
            if descending {
                query.descending()
            } else {
                query
            }
        };
        let mut wanted: Vec<_> = blocks
            .iter()
            .filter(|b| holds(n, &b.height, &low, &high) && b.weight >= weight)
            .cloned()
            .collect();
        if descending {
            wanted.reverse();
        }
        let mut page = query().page().await.unwrap();
        let mut found = std::mem::take(&mut page.rows);
        while let Some(cursor) = page.next.take() {
            page = query().after(cursor).page().await.unwrap();
            assert!(page.rows.len() <= limit);
            found.append(&mut page.rows);
        }
        assert_eq!(
            found, wanted,
            "operator={n} low={low} high={high} limit={limit}"
        );
    }
}
