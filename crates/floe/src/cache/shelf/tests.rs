//! What is kept, for how long, and what no order of events can bring back.

use floe_store::Value;
use floe_store::env::{Random, SeededRandom};

use super::*;

const TTL: Duration = Duration::from_secs(300);
const START: Timestamp = Timestamp::from_millis(1_000_000);

/// The bytes of a slot of these tests without an item.
const BARE: usize = SLOT_BYTES + 2 + 2;

fn options(bytes_max: usize) -> CacheOptions {
    CacheOptions::new().ttl(TTL).bytes_max(bytes_max)
}

fn shelf() -> Shelf {
    Shelf::new(options(1 << 20))
}

/// A key of four bytes.
fn key(n: u32) -> Item {
    Item::new().with("id", format!("{n:02}"))
}

fn item(n: u32, version: u64) -> Item {
    key(n).with("v", version)
}

fn found(item: &Item) -> Option<Found> {
    Found::item(item, options(1 << 20))
}

fn fill(shelf: &mut Shelf, n: u32, version: u64) {
    let read = shelf.begin_read(START, false);
    shelf.fill(read, "T", &key(n), found(&item(n, version)));
}

fn put(shelf: &mut Shelf, n: u32, version: u64) {
    shelf.begin_write("T", &key(n));
    shelf.end_write("T", &key(n), START, found(&item(n, version)));
}

#[track_caller]
fn assert_hit(shelf: &mut Shelf, n: u32, version: u64) {
    let hit = Look::Hit(Some(item(n, version)));
    assert_eq!(shelf.look("T", &key(n), START), hit);
}

#[track_caller]
fn assert_miss(shelf: &mut Shelf, n: u32, written_lately: bool) {
    let miss = Look::Miss { written_lately };
    assert_eq!(shelf.look("T", &key(n), START), miss);
}

#[test]
fn the_least_recently_used_goes_first() {
    let room = 10 * (BARE + item_size(&item(0, 1)));
    let mut shelf = Shelf::new(options(room));
    for n in 0..10 {
        fill(&mut shelf, n, 1);
    }
    assert_eq!((shelf.stats().items, shelf.stats().bytes), (10, room));
    // A look and a fill count as use, a look elsewhere does not.
    assert_hit(&mut shelf, 0, 1);
    fill(&mut shelf, 1, 2);
    fill(&mut shelf, 10, 1);
    fill(&mut shelf, 11, 1);
    assert_eq!((shelf.stats().items, shelf.stats().bytes), (10, room));
    assert_miss(&mut shelf, 2, false);
    assert_miss(&mut shelf, 3, false);
    for (n, version) in [(0, 1), (1, 2), (4, 1), (9, 1), (10, 1), (11, 1)] {
        assert_hit(&mut shelf, n, version);
    }
}

#[test]
fn bytes_count_keys_and_items_and_go_back_to_nothing() {
    let mut shelf = shelf();
    fill(&mut shelf, 1, 1);
    assert_eq!(shelf.stats().bytes, BARE + item_size(&item(1, 1)));
    fill(&mut shelf, 1, 1_000_000_007);
    let large = item_size(&item(1, 1_000_000_007));
    assert_eq!(shelf.stats().bytes, BARE + large);
    let read = shelf.begin_read(START, false);
    shelf.fill(read, "T", &key(2), Some(Found::ABSENT));
    assert_eq!(shelf.stats().bytes, BARE + large + BARE);
    assert_eq!(shelf.stats().items, 2);
    put(&mut shelf, 1, 1);
    assert_eq!(shelf.stats().bytes, 2 * BARE + item_size(&item(1, 1)));
    shelf.doubt("T", &key(1), START);
    assert_eq!((shelf.stats().bytes, shelf.stats().items), (2 * BARE, 1));
    shelf.clear();
    assert_eq!((shelf.stats().bytes, shelf.stats().items), (0, 0));
    assert!(shelf.tables.is_empty() && shelf.order.is_empty());
}

#[test]
fn an_item_of_more_than_an_eighth_is_not_kept_and_the_older_one_goes() {
    let options = options(8 * (BARE + 100));
    let sized = |bytes: usize| key(1).with("v", "x".repeat(bytes - 5));
    let mut shelf = Shelf::new(options);
    for (bytes, kept) in [(100, true), (101, false), (100, true), (5000, false)] {
        let large = sized(bytes);
        let read = shelf.begin_read(START, false);
        shelf.fill(read, "T", &key(1), Found::item(&large, options));
        let is_hit = shelf.look("T", &key(1), START) == Look::Hit(Some(large));
        assert_eq!(is_hit, kept, "bytes={bytes}");
        assert_eq!(shelf.stats().items, usize::from(kept), "bytes={bytes}");
    }
}

#[test]
fn nothing_is_kept_without_room_or_time() {
    for options in [options(0), options(1 << 20).ttl(Duration::ZERO)] {
        let mut shelf = Shelf::new(options);
        fill(&mut shelf, 1, 1);
        assert_miss(&mut shelf, 1, false);
        put(&mut shelf, 1, 2);
        assert_miss(&mut shelf, 1, false);
    }
}

#[test]
fn an_answer_lives_as_long_as_it_may() {
    let (mut shelf, just_before) = (shelf(), TTL - Duration::from_millis(1));
    fill(&mut shelf, 1, 1);
    put(&mut shelf, 2, 1);
    let read = shelf.begin_read(START, false);
    shelf.fill(read, "T", &key(3), Some(Found::ABSENT));
    for (n, answer) in [(1, Some(item(1, 1))), (2, Some(item(2, 1))), (3, None)] {
        let look = shelf.look("T", &key(n), START.plus(just_before));
        assert_eq!(look, Look::Hit(answer));
        // By then, what this process wrote is everywhere.
        let look = shelf.look("T", &key(n), START.plus(TTL));
        let written_lately = false;
        assert_eq!(look, Look::Miss { written_lately });
    }
}

#[test]
fn a_clock_that_was_set_back_makes_nothing_live_longer() {
    let mut shelf = shelf();
    fill(&mut shelf, 1, 1);
    let earlier = Timestamp::from_millis(START.as_millis() - 1);
    let look = shelf.look("T", &key(1), earlier);
    assert_eq!(look, Look::Hit(Some(item(1, 1))));
    let look = shelf.look("T", &key(1), Timestamp::from_millis(0));
    assert!(matches!(look, Look::Miss { .. }));
}

#[test]
fn keys_are_equal_by_value_and_apart_by_type_and_table() {
    let mut shelf = shelf();
    let id = |value: Value| Item::new().with("id", value);
    let number = |text: &str| id(Value::N(text.parse().unwrap()));
    let read = shelf.begin_read(START, false);
    shelf.fill(read, "T", &number("1"), found(&number("1")));
    for same in ["1", "1.0", "10e-1"] {
        let look = shelf.look("T", &number(same), START);
        assert_eq!(look, Look::Hit(Some(number("1"))));
    }
    for (table, other) in [("T", id("1".into())), ("T2", number("1"))] {
        let look = shelf.look(table, &other, START);
        assert!(matches!(look, Look::Miss { .. }), "{table} {other:?}");
    }
}

#[test]
fn a_read_fills_only_what_was_not_written_since_it_began() {
    let mut shelf = shelf();
    let before = shelf.begin_read(START, true);
    shelf.begin_write("T", &key(1));
    let during = shelf.begin_read(START, true);
    shelf.fill(before, "T", &key(1), found(&item(1, 1)));
    shelf.fill(during, "T", &key(1), found(&item(1, 1)));
    assert_miss(&mut shelf, 1, true);
    shelf.end_write("T", &key(1), START, found(&item(1, 2)));
    for old in [before, during] {
        shelf.fill(old, "T", &key(1), found(&item(1, 1)));
        assert_hit(&mut shelf, 1, 2);
    }
    let after = shelf.begin_read(START, true);
    shelf.fill(after, "T", &key(1), found(&item(1, 3)));
    assert_hit(&mut shelf, 1, 3);
    shelf.begin_write("T", &key(1));
    assert_miss(&mut shelf, 1, true);
}

#[test]
fn of_two_reads_the_one_that_began_later_stays() {
    let mut shelf = shelf();
    let [first, second] = [(); 2].map(|()| shelf.begin_read(START, false));
    shelf.fill(second, "T", &key(1), found(&item(1, 2)));
    shelf.fill(first, "T", &key(1), found(&item(1, 1)));
    assert_hit(&mut shelf, 1, 2);
}

#[test]
fn an_eventual_read_fills_nothing_that_was_written_lately() {
    let mut shelf = shelf();
    shelf.begin_write("T", &key(1));
    shelf.end_write("T", &key(1), START, None);
    assert_miss(&mut shelf, 1, true);
    fill(&mut shelf, 1, 1);
    assert_miss(&mut shelf, 1, true);
    let read = shelf.begin_read(START, true);
    shelf.fill(read, "T", &key(1), found(&item(1, 2)));
    fill(&mut shelf, 1, 1);
    assert_hit(&mut shelf, 1, 2);
}

#[test]
fn writes_that_overlap_leave_nothing() {
    for swapped in [false, true] {
        let mut shelf = shelf();
        shelf.begin_write("T", &key(1));
        shelf.begin_write("T", &key(1));
        let (first, second) = if swapped { (2, 1) } else { (1, 2) };
        shelf.end_write("T", &key(1), START, found(&item(1, first)));
        // A third meets the second, whether or not it meets the first.
        shelf.begin_write("T", &key(1));
        shelf.end_write("T", &key(1), START, found(&item(1, second)));
        assert_miss(&mut shelf, 1, true);
        shelf.end_write("T", &key(1), START, found(&item(1, 3)));
        assert_miss(&mut shelf, 1, true);
        put(&mut shelf, 1, 4);
        assert_hit(&mut shelf, 1, 4);
    }
}

#[test]
fn a_forgotten_write_still_keeps_older_reads_out() {
    let mut shelf = Shelf::new(options(10 * BARE));
    let old = shelf.begin_read(START, false);
    shelf.begin_write("T", &key(1));
    // A write on its way is not pushed out.
    for n in 20..40 {
        shelf.doubt("T", &key(n), START);
    }
    assert_miss(&mut shelf, 1, true);
    shelf.end_write("T", &key(1), START, None);
    for n in 40..60 {
        shelf.doubt("T", &key(n), START);
    }
    assert_miss(&mut shelf, 1, false);
    shelf.fill(old, "T", &key(1), Some(Found::ABSENT));
    assert_miss(&mut shelf, 1, false);
    let new = shelf.begin_read(START, false);
    shelf.fill(new, "T", &key(1), Some(Found::ABSENT));
    assert_eq!(shelf.look("T", &key(1), START), Look::Hit(None));
}

#[test]
fn a_dropped_table_keeps_nothing_of_what_had_begun() {
    let mut shelf = shelf();
    fill(&mut shelf, 1, 1);
    put(&mut shelf, 2, 1);
    let read = shelf.begin_read(START, true);
    shelf.begin_write("T", &key(3));
    shelf.drop_table("T");
    assert_miss(&mut shelf, 1, false);
    assert_miss(&mut shelf, 2, false);
    shelf.fill(read, "T", &key(1), found(&item(1, 1)));
    assert_miss(&mut shelf, 1, false);
    shelf.end_write("T", &key(3), START, found(&item(3, 1)));
    assert_miss(&mut shelf, 3, true);
}

#[test]
fn a_table_with_another_key_is_another_table() {
    let mut shelf = shelf();
    fill(&mut shelf, 1, 1);
    assert_eq!(shelf.key_names("T").as_deref(), Some(&["id".into()][..]));
    // A key that was made of what is known says nothing new if it fits, and all is wrong if not.
    shelf.confirm_key("T", &key(1), false);
    assert_hit(&mut shelf, 1, 1);
    let names = ["sort", "id"].map(Name::from);
    shelf.learn_key("T", names.iter());
    assert_miss(&mut shelf, 1, false);
    let both = key(1).with("sort", 1);
    shelf.confirm_key("T", &both, true);
    assert_eq!(shelf.key_names("T").map(|names| names.len()), Some(2));
    shelf.confirm_key("T", &key(1), false);
    assert_eq!(shelf.key_names("T"), None);
}

/// Random events on a few keys of a store that numbers the versions of each item. Whatever the order, the
/// shelf never shows a version older than one whose write was answered.
struct Events {
    random: SeededRandom,
    shelf: Shelf,
    /// Whether eventual reads may come from a replica that is behind.
    has_replica: bool,
    keys: usize,
    /// The version of each item, and the newest one that was answered.
    stored: [u64; KEYS],
    answered: [u64; KEYS],
    reads: Vec<(usize, Read, Option<u64>)>,
    writes: Vec<(usize, Option<u64>)>,
    hits: u64,
}

const KEYS: usize = 12;

impl Events {
    fn new(seed: u64, bytes_max: usize, keys: usize, has_replica: bool) -> Self {
        Self {
            random: SeededRandom::new(seed),
            shelf: Shelf::new(options(bytes_max)),
            has_replica,
            keys,
            stored: [0; KEYS],
            answered: [0; KEYS],
            reads: Vec::new(),
            writes: Vec::new(),
            hits: 0,
        }
    }

    fn below(&self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    fn step(&mut self) {
        // Some keys more often than others.
        let n = self.below(1 + self.below(self.keys));
        match self.below(8) {
            0 | 1 => self.look(n),
            2 if self.reads.len() < 4 => {
                let read = self.shelf.begin_read(START, true);
                self.reads.push((n, read, None));
            }
            3 => self.see(),
            4 => self.end_read(),
            5 if self.writes.len() < 3 => {
                self.shelf.begin_write("T", &key(n as u32));
                self.writes.push((n, None));
            }
            6 => self.apply(),
            7 => self.end_write(),
            _ => {}
        }
    }

    fn look(&mut self, n: usize) {
        match self.shelf.look("T", &key(n as u32), START) {
            Look::Hit(shown) => {
                let version = shown.and_then(|item| item.get("v")?.as_n()?.to_u64());
                let (version, answered) = (version.unwrap_or(0), self.answered[n]);
                assert!(version >= answered, "n={n} {version} < {answered}");
                self.hits += 1;
            }
            Look::Miss { written_lately } => {
                let read = self.shelf.begin_read(START, written_lately);
                self.reads.push((n, read, None));
            }
        }
    }

    /// A read sees the item, at some moment between its beginning and its end.
    fn see(&mut self) {
        if self.reads.is_empty() {
            return;
        }
        let at = self.below(self.reads.len());
        let (n, read, _) = self.reads[at];
        let newest = self.stored[n];
        let behind = match self.has_replica && !read.consistent {
            true => self.random.next_u64() % (newest + 1),
            false => 0,
        };
        self.reads[at].2 = Some(newest - behind);
    }

    fn end_read(&mut self) {
        if let Some(at) = self.reads.iter().position(|(.., seen)| seen.is_some()) {
            let (n, read, seen) = self.reads.swap_remove(at);
            let found = seen.and_then(|version| match version {
                0 => Some(Found::ABSENT),
                version => found(&item(n as u32, version)),
            });
            self.shelf.fill(read, "T", &key(n as u32), found);
        }
    }

    fn apply(&mut self) {
        if !self.writes.is_empty() {
            let at = self.below(self.writes.len());
            let (n, version) = &mut self.writes[at];
            if version.is_none() {
                self.stored[*n] += 1;
                *version = Some(self.stored[*n]);
            }
        }
    }

    /// A write is answered, or cancelled before or after it was applied.
    fn end_write(&mut self) {
        if self.writes.is_empty() {
            return;
        }
        let (n, version) = self.writes.swap_remove(self.below(self.writes.len()));
        let answer = version.filter(|_| self.below(4) > 0);
        let found = answer.and_then(|version| found(&item(n as u32, version)));
        self.shelf.end_write("T", &key(n as u32), START, found);
        self.answered[n] = self.answered[n].max(answer.unwrap_or(0));
    }
}

#[test]
fn no_order_of_events_shows_less_than_was_answered() {
    const ITEM: usize = BARE + 2 + 2 + 1 + 2;
    // With room for all and replicas that are behind; and with too little room, where a key that was pushed
    // out is read as the store has it.
    for (bytes_max, keys, has_replica) in [
        (1 << 20, 2, true),
        (1 << 20, KEYS, true),
        (8 * ITEM, KEYS, false),
    ] {
        let (mut hits, mut pushed_out) = (0, 0);
        for seed in 0..500 {
            let mut events = Events::new(seed, bytes_max, keys, has_replica);
            for _ in 0..500 {
                events.step();
            }
            hits += events.hits;
            let is_lost =
                |n: &usize| events.answered[*n] > 0 && !events.shelf.knows("T", &key(*n as u32));
            pushed_out += (0..keys).filter(is_lost).count();
        }
        assert!(hits > 1000, "hits={hits}");
        assert_eq!(pushed_out > 0, bytes_max < 1 << 20, "{pushed_out}");
    }
}
