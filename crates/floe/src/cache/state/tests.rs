//! Tests of what is cached, for how long, and that no order of events restores stale items.

use floe_store::Value;
use floe_store::env::{Random, SeededRandom};

use super::*;

const TTL: Duration = Duration::from_secs(300);
const START: Timestamp = Timestamp::from_millis(1_000_000);

/// The size of a slot of these tests without an item.
const EMPTY_SLOT_BYTES: usize = SLOT_BYTES + 2 + 2;

fn options(bytes_max: usize) -> CacheOptions {
    CacheOptions::new().ttl(TTL).bytes_max(bytes_max)
}

fn state() -> CacheState {
    CacheState::new(options(1 << 20))
}

/// A key of four bytes.
fn key(n: u32) -> Item {
    Item::new().with("id", format!("{n:02}"))
}

fn item(n: u32, version: u64) -> Item {
    key(n).with("v", version)
}

fn found(item: &Item) -> Option<CachedItem> {
    CachedItem::item(item, options(1 << 20))
}

fn fill(state: &mut CacheState, n: u32, version: u64) {
    let read = state.begin_read(START, false);
    state.fill(read, "T", &key(n), found(&item(n, version)));
}

fn put(state: &mut CacheState, n: u32, version: u64) {
    state.begin_write("T", &key(n));
    state.end_write("T", &key(n), START, found(&item(n, version)));
}

#[track_caller]
fn assert_hit(state: &mut CacheState, n: u32, version: u64) {
    let hit = Lookup::Hit(Some(item(n, version)));
    assert_eq!(state.lookup("T", &key(n), START), hit);
}

#[track_caller]
fn assert_miss(state: &mut CacheState, n: u32, written_recently: bool) {
    let miss = Lookup::Miss { written_recently };
    assert_eq!(state.lookup("T", &key(n), START), miss);
}

#[test]
fn least_recently_used_slot_is_evicted_first() {
    let bytes_max = 10 * (EMPTY_SLOT_BYTES + item_size(&item(0, 1)));
    let mut state = CacheState::new(options(bytes_max));
    for n in 0..10 {
        fill(&mut state, n, 1);
    }
    assert_eq!((state.stats().items, state.stats().bytes), (10, bytes_max));
    // Lookups and fills count as use.
    assert_hit(&mut state, 0, 1);
    fill(&mut state, 1, 2);
    fill(&mut state, 10, 1);
    fill(&mut state, 11, 1);
    assert_eq!((state.stats().items, state.stats().bytes), (10, bytes_max));
    assert_miss(&mut state, 2, false);
    assert_miss(&mut state, 3, false);
    for (n, version) in [(0, 1), (1, 2), (4, 1), (9, 1), (10, 1), (11, 1)] {
        assert_hit(&mut state, n, version);
    }
}

#[test]
fn bytes_count_keys_and_items_and_return_to_zero() {
    let mut state = state();
    fill(&mut state, 1, 1);
    assert_eq!(
        state.stats().bytes,
        EMPTY_SLOT_BYTES + item_size(&item(1, 1))
    );
    fill(&mut state, 1, 1_000_000_007);
    let large = item_size(&item(1, 1_000_000_007));
    assert_eq!(state.stats().bytes, EMPTY_SLOT_BYTES + large);
    let read = state.begin_read(START, false);
    state.fill(read, "T", &key(2), Some(CachedItem::ABSENT));
    assert_eq!(
        state.stats().bytes,
        EMPTY_SLOT_BYTES + large + EMPTY_SLOT_BYTES
    );
    assert_eq!(state.stats().items, 2);
    put(&mut state, 1, 1);
    assert_eq!(
        state.stats().bytes,
        2 * EMPTY_SLOT_BYTES + item_size(&item(1, 1))
    );
    state.invalidate("T", &key(1), START);
    assert_eq!(
        (state.stats().bytes, state.stats().items),
        (2 * EMPTY_SLOT_BYTES, 1)
    );
    state.clear();
    assert_eq!((state.stats().bytes, state.stats().items), (0, 0));
    assert!(state.tables.is_empty() && state.order.is_empty());
}

#[test]
fn item_larger_than_an_eighth_is_not_cached_and_replaces_the_old_one() {
    let options = options(8 * (EMPTY_SLOT_BYTES + 100));
    let sized = |bytes: usize| key(1).with("v", "x".repeat(bytes - 5));
    let mut state = CacheState::new(options);
    for (bytes, is_cached) in [(100, true), (101, false), (100, true), (5000, false)] {
        let large = sized(bytes);
        let read = state.begin_read(START, false);
        state.fill(read, "T", &key(1), CachedItem::item(&large, options));
        let is_hit = state.lookup("T", &key(1), START) == Lookup::Hit(Some(large));
        assert_eq!(is_hit, is_cached, "bytes={bytes}");
        assert_eq!(state.stats().items, usize::from(is_cached), "bytes={bytes}");
    }
}

#[test]
fn zero_size_or_zero_ttl_disables_caching() {
    for options in [options(0), options(1 << 20).ttl(Duration::ZERO)] {
        let mut state = CacheState::new(options);
        fill(&mut state, 1, 1);
        assert_miss(&mut state, 1, false);
        put(&mut state, 1, 2);
        assert_miss(&mut state, 1, false);
    }
}

#[test]
fn cached_items_expire_after_the_ttl() {
    let (mut state, just_before) = (state(), TTL - Duration::from_millis(1));
    fill(&mut state, 1, 1);
    put(&mut state, 2, 1);
    let read = state.begin_read(START, false);
    state.fill(read, "T", &key(3), Some(CachedItem::ABSENT));
    for (n, expected) in [(1, Some(item(1, 1))), (2, Some(item(2, 1))), (3, None)] {
        let lookup = state.lookup("T", &key(n), START.plus(just_before));
        assert_eq!(lookup, Lookup::Hit(expected));
        // By then, replicas have what this process wrote.
        let lookup = state.lookup("T", &key(n), START.plus(TTL));
        let written_recently = false;
        assert_eq!(lookup, Lookup::Miss { written_recently });
    }
}

#[test]
fn clock_set_back_does_not_extend_the_ttl() {
    let mut state = state();
    fill(&mut state, 1, 1);
    let earlier = Timestamp::from_millis(START.as_millis() - 1);
    let lookup = state.lookup("T", &key(1), earlier);
    assert_eq!(lookup, Lookup::Hit(Some(item(1, 1))));
    let lookup = state.lookup("T", &key(1), Timestamp::from_millis(0));
    assert!(matches!(lookup, Lookup::Miss { .. }));
}

#[test]
fn keys_compare_by_value_type_and_table() {
    let mut state = state();
    let id = |value: Value| Item::new().with("id", value);
    let number = |text: &str| id(Value::N(text.parse().unwrap()));
    let read = state.begin_read(START, false);
    state.fill(read, "T", &number("1"), found(&number("1")));
    for same in ["1", "1.0", "10e-1"] {
        let lookup = state.lookup("T", &number(same), START);
        assert_eq!(lookup, Lookup::Hit(Some(number("1"))));
    }
    for (table, other) in [("T", id("1".into())), ("T2", number("1"))] {
        let lookup = state.lookup(table, &other, START);
        assert!(matches!(lookup, Lookup::Miss { .. }), "{table} {other:?}");
    }
}

#[test]
fn read_fills_only_slots_not_written_since_it_began() {
    let mut state = state();
    let before = state.begin_read(START, true);
    state.begin_write("T", &key(1));
    let during = state.begin_read(START, true);
    state.fill(before, "T", &key(1), found(&item(1, 1)));
    state.fill(during, "T", &key(1), found(&item(1, 1)));
    assert_miss(&mut state, 1, true);
    state.end_write("T", &key(1), START, found(&item(1, 2)));
    for old in [before, during] {
        state.fill(old, "T", &key(1), found(&item(1, 1)));
        assert_hit(&mut state, 1, 2);
    }
    let after = state.begin_read(START, true);
    state.fill(after, "T", &key(1), found(&item(1, 3)));
    assert_hit(&mut state, 1, 3);
    state.begin_write("T", &key(1));
    assert_miss(&mut state, 1, true);
}

#[test]
fn result_of_the_later_read_wins() {
    let mut state = state();
    let [first, second] = [(); 2].map(|()| state.begin_read(START, false));
    state.fill(second, "T", &key(1), found(&item(1, 2)));
    state.fill(first, "T", &key(1), found(&item(1, 1)));
    assert_hit(&mut state, 1, 2);
}

#[test]
fn eventual_read_does_not_fill_a_recently_written_slot() {
    let mut state = state();
    state.begin_write("T", &key(1));
    state.end_write("T", &key(1), START, None);
    assert_miss(&mut state, 1, true);
    fill(&mut state, 1, 1);
    assert_miss(&mut state, 1, true);
    let read = state.begin_read(START, true);
    state.fill(read, "T", &key(1), found(&item(1, 2)));
    fill(&mut state, 1, 1);
    assert_hit(&mut state, 1, 2);
}

#[test]
fn overlapping_writes_cache_nothing() {
    for swapped in [false, true] {
        let mut state = state();
        state.begin_write("T", &key(1));
        state.begin_write("T", &key(1));
        let (first, second) = if swapped { (2, 1) } else { (1, 2) };
        state.end_write("T", &key(1), START, found(&item(1, first)));
        // A third write overlaps with the second.
        state.begin_write("T", &key(1));
        state.end_write("T", &key(1), START, found(&item(1, second)));
        assert_miss(&mut state, 1, true);
        state.end_write("T", &key(1), START, found(&item(1, 3)));
        assert_miss(&mut state, 1, true);
        put(&mut state, 1, 4);
        assert_hit(&mut state, 1, 4);
    }
}

#[test]
fn evicted_write_still_blocks_older_reads() {
    let mut state = CacheState::new(options(10 * EMPTY_SLOT_BYTES));
    let old = state.begin_read(START, false);
    state.begin_write("T", &key(1));
    // A slot with a write in flight is not evicted.
    for n in 20..40 {
        state.invalidate("T", &key(n), START);
    }
    assert_miss(&mut state, 1, true);
    state.end_write("T", &key(1), START, None);
    for n in 40..60 {
        state.invalidate("T", &key(n), START);
    }
    assert_miss(&mut state, 1, false);
    state.fill(old, "T", &key(1), Some(CachedItem::ABSENT));
    assert_miss(&mut state, 1, false);
    let new = state.begin_read(START, false);
    state.fill(new, "T", &key(1), Some(CachedItem::ABSENT));
    assert_eq!(state.lookup("T", &key(1), START), Lookup::Hit(None));
}

#[test]
fn dropped_table_ignores_reads_and_writes_in_flight() {
    let mut state = state();
    fill(&mut state, 1, 1);
    put(&mut state, 2, 1);
    let read = state.begin_read(START, true);
    state.begin_write("T", &key(3));
    state.drop_table("T");
    assert_miss(&mut state, 1, false);
    assert_miss(&mut state, 2, false);
    state.fill(read, "T", &key(1), found(&item(1, 1)));
    assert_miss(&mut state, 1, false);
    state.end_write("T", &key(3), START, found(&item(3, 1)));
    assert_miss(&mut state, 3, true);
}

#[test]
fn changed_table_key_drops_the_table() {
    let mut state = state();
    fill(&mut state, 1, 1);
    assert_eq!(state.key_names("T").as_deref(), Some(&["id".into()][..]));
    // A derived key that matches changes nothing; one that does not match drops the table.
    state.confirm_key("T", &key(1), false);
    assert_hit(&mut state, 1, 1);
    let names = ["sort", "id"].map(Name::from);
    state.learn_key("T", names.iter());
    assert_miss(&mut state, 1, false);
    let both = key(1).with("sort", 1);
    state.confirm_key("T", &both, true);
    assert_eq!(state.key_names("T").map(|names| names.len()), Some(2));
    state.confirm_key("T", &key(1), false);
    assert_eq!(state.key_names("T"), None);
}

/// Random events on a few keys of a store that numbers the versions of each item. In any order, the cache never returns
/// a version older than one whose write was acknowledged.
struct EventSimulation {
    random: SeededRandom,
    state: CacheState,
    /// Whether eventual reads may come from a replica that is behind.
    has_replica: bool,
    keys: usize,
    /// The version of each item, and the newest acknowledged one.
    stored: [u64; KEYS],
    acknowledged: [u64; KEYS],
    reads: Vec<(usize, EngineRead, Option<u64>)>,
    writes: Vec<(usize, Option<u64>)>,
    hits: u64,
}

const KEYS: usize = 12;

impl EventSimulation {
    fn new(seed: u64, bytes_max: usize, keys: usize, has_replica: bool) -> Self {
        Self {
            random: SeededRandom::new(seed),
            state: CacheState::new(options(bytes_max)),
            has_replica,
            keys,
            stored: [0; KEYS],
            acknowledged: [0; KEYS],
            reads: Vec::new(),
            writes: Vec::new(),
            hits: 0,
        }
    }

    fn below(&self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    fn step(&mut self) {
        // Lower keys more often than higher ones.
        let n = self.below(1 + self.below(self.keys));
        match self.below(8) {
            0 | 1 => self.lookup(n),
            2 if self.reads.len() < 4 => {
                let read = self.state.begin_read(START, true);
                self.reads.push((n, read, None));
            }
            3 => self.observe(),
            4 => self.end_read(),
            5 if self.writes.len() < 3 => {
                self.state.begin_write("T", &key(n as u32));
                self.writes.push((n, None));
            }
            6 => self.apply(),
            7 => self.end_write(),
            _ => {}
        }
    }

    fn lookup(&mut self, n: usize) {
        match self.state.lookup("T", &key(n as u32), START) {
            Lookup::Hit(shown) => {
                let version = shown.and_then(|item| item.get("v")?.as_n()?.to_u64());
                let (version, acknowledged) = (version.unwrap_or(0), self.acknowledged[n]);
                assert!(version >= acknowledged, "n={n} {version} < {acknowledged}");
                self.hits += 1;
            }
            Lookup::Miss { written_recently } => {
                let read = self.state.begin_read(START, written_recently);
                self.reads.push((n, read, None));
            }
        }
    }

    /// A read observes the item, at a moment between its beginning and its end.
    fn observe(&mut self) {
        if self.reads.is_empty() {
            return;
        }
        let at = self.below(self.reads.len());
        let (n, read, _) = self.reads[at];
        let newest = self.stored[n];
        let behind = if self.has_replica && !read.consistent {
            self.random.next_u64() % (newest + 1)
        } else {
            0
        };
        self.reads[at].2 = Some(newest - behind);
    }

    fn end_read(&mut self) {
        if let Some(at) = self.reads.iter().position(|(.., seen)| seen.is_some()) {
            let (n, read, seen) = self.reads.swap_remove(at);
            let found = seen.and_then(|version| match version {
                0 => Some(CachedItem::ABSENT),
                version => found(&item(n as u32, version)),
            });
            self.state.fill(read, "T", &key(n as u32), found);
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

    /// A write is acknowledged, or cancelled before or after it was applied.
    fn end_write(&mut self) {
        if self.writes.is_empty() {
            return;
        }
        let (n, version) = self.writes.swap_remove(self.below(self.writes.len()));
        let acknowledged = version.filter(|_| self.below(4) > 0);
        let found = acknowledged.and_then(|version| found(&item(n as u32, version)));
        self.state.end_write("T", &key(n as u32), START, found);
        self.acknowledged[n] = self.acknowledged[n].max(acknowledged.unwrap_or(0));
    }
}

#[test]
fn lookups_never_return_less_than_acknowledged_in_any_order() {
    const ITEM: usize = EMPTY_SLOT_BYTES + 2 + 2 + 1 + 2;
    // With room for all keys and stale replicas; and with too little room, where an evicted key is read as stored.
    for (bytes_max, keys, has_replica) in [
        (1 << 20, 2, true),
        (1 << 20, KEYS, true),
        (8 * ITEM, KEYS, false),
    ] {
        let (mut hits, mut evicted) = (0, 0);
        for seed in 0..500 {
            let mut events = EventSimulation::new(seed, bytes_max, keys, has_replica);
            for _ in 0..500 {
                events.step();
            }
            hits += events.hits;
            let is_evicted = |n: &usize| {
                events.acknowledged[*n] > 0 && !events.state.contains("T", &key(*n as u32))
            };
            evicted += (0..keys).filter(is_evicted).count();
        }
        assert!(hits > 1000, "hits={hits}");
        assert_eq!(evicted > 0, bytes_max < 1 << 20, "{evicted}");
    }
}
