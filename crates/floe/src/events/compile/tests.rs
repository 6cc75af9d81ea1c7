//! The computed Tip after an append equals the stored one.

use floe_store::env::SeededRandom;
use floe_store::size::item_size;
use floe_store::{Item, Timestamp};

use super::*;
use crate::events::codec::Compression;
use crate::events::event::EventData;

fn text(random: &SeededRandom, most: u64) -> String {
    "ä".repeat(random.below(most) as usize)
}

fn any_event(random: &SeededRandom) -> EventData {
    let mut event = EventData::new(text(random, 20) + "X", text(random, 200));
    if random.below(3) == 0 {
        event = event.meta(text(random, 300));
    }
    if random.below(3) == 0 {
        event = event.correlation(text(random, 9)).causation("c");
    }
    event
}

fn any_change(random: &SeededRandom, version: u64) -> Change {
    let compression = [Compression::None, Compression::Brotli][random.below(2) as usize];
    let time = Timestamp::from_millis(random.below(1 << 40));
    let events: Vec<_> = (0..random.below(5))
        .map(|_| StoredEvent::new(any_event(random), time, compression))
        .collect();
    let version = version + events.len() as u64;
    let unfolds = (0..random.below(3))
        .map(|_| StoredUnfold::new(any_event(random), version, time, compression));
    Change {
        unfolds: unfolds.collect(),
        events,
        guard: Guard::Version,
    }
}

fn packed(item: &Item) -> Item {
    let mut bytes = Vec::new();
    item.pack_into(&mut bytes);
    Item::from_packed(&bytes).unwrap()
}

/// Returns the Tip after an append, and the calf, if any.
fn applied(append: &StreamAppend<'_>, tip: Option<&Item>) -> (Item, Option<Item>) {
    let mut calf = None;
    for write in append.writes() {
        match write {
            TransactWrite::Put(put) if put.item.get(&INDEX) != Some(&TIP_INDEX.into()) => {
                calf = Some(put.item);
            }
            TransactWrite::Put(put) => return (put.item, calf),
            TransactWrite::Update(update) => {
                return (update.update.apply(tip.unwrap()).unwrap(), calf);
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("an append writes the Tip");
}

/// Makes random appends, each based on the stored Tip or on the computed one.
fn run(seed: u64) {
    let random = SeededRandom::new(seed);
    let stream = StreamName::new("Cart", &seed).unwrap();
    let limits = TipLimits {
        event_bytes_max: 500 + random.below(3000) as usize,
        ..TipLimits::default()
    };
    let (mut tip, mut position): (Option<Item>, Option<StreamPosition>) = (None, None);
    for write in 0..30 {
        let change = any_change(&random, position.as_ref().map_or(0, |p| p.version));
        let etag = Text::from(format!("etag-{write}"));
        let append =
            StreamAppend::new("t", &stream, position.as_ref(), &change, &limits, etag).unwrap();
        let (item, calf) = applied(&append, tip.as_ref());
        let after = append.after;
        let read = StreamPosition::of_tip(&Batch::of_item(packed(&item)).unwrap());
        let size = after.tip.size().unwrap();
        assert_eq!(read.tip.size().unwrap(), size, "seed={seed} write={write}");
        assert_eq!(
            read.tip.lists(),
            after.tip.lists(),
            "seed={seed} write={write}"
        );
        assert_eq!((read.version, &read.etag), (after.version, &after.etag));
        assert_eq!(read.calved_bytes, after.calved_bytes);
        let unfolds = change.unfolds.iter().map(StoredUnfold::size).sum();
        let appended = change.events.len() as u64;
        let bytes = tip_bytes(&stream, &after, appended, size, unfolds);
        assert_eq!(bytes, item_size(&item), "seed={seed} write={write}");
        if let (Some(calf), Some(before)) = (calf, &position) {
            let calf = Batch::of_item(calf).unwrap();
            assert_eq!(calf.events.lists(), before.tip.lists());
            assert_eq!(
                (calf.index, calf.next),
                (before.version - before.tip.len() as u64, before.version)
            );
        }
        tip = Some(item);
        position = Some([after, read][random.below(2) as usize].clone());
    }
}

#[test]
fn computed_tip_equals_the_stored_one_and_its_size() {
    for seed in 0..200 {
        run(seed);
    }
}

#[test]
fn append_that_exceeds_an_item_is_rejected() {
    let stream = StreamName::new("Cart", "a").unwrap();
    let tip_size = |bytes: usize| {
        let event = EventData::new("X", vec![0; bytes]);
        let event = StoredEvent::new(event, Timestamp::default(), Compression::None);
        let change = Change::of_events(vec![event]);
        let etag = Text::from("e");
        let append = StreamAppend::new("t", &stream, None, &change, &TipLimits::default(), etag);
        append.map(|append| item_size(&applied(&append, None).0))
    };
    let overhead = tip_size(100).unwrap() - 100;
    assert_eq!(tip_size(ITEM_BYTES_MAX - overhead), Ok(ITEM_BYTES_MAX));
    let error = tip_size(ITEM_BYTES_MAX - overhead + 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}
