//! The store in memory and on disk, side by side.

use super::*;

const OPTIONS: KvOptions = KvOptions {
    cache_bytes: 1 << 20,
    write_buffer_bytes: 1 << 20,
};

/// Runs a check on a store in memory and on one on disk.
fn check(check: impl Fn(&Kv)) {
    check(&Kv::memory());
    let dir = tempfile::tempdir().unwrap();
    check(&Kv::open(dir.path(), &OPTIONS).unwrap());
}

fn commit(kv: &Kv, space: &Space, writes: &[(&[u8], Option<&[u8]>)]) {
    let mut batch = Batch::default();
    for (key, value) in writes {
        batch.push(space, Bytes::from(*key), value.map(Bytes::from));
    }
    kv.commit(batch, Sync::None).unwrap();
}

fn keys(walk: Walk) -> Vec<Vec<u8>> {
    walk.map(|entry| entry.unwrap().0.to_vec()).collect()
}

#[test]
fn a_snapshot_stays_as_it_was() {
    check(|kv| {
        let space = kv.space("a").unwrap();
        commit(kv, &space, &[(b"k", Some(b"1")), (b"gone", Some(b"1"))]);
        let before = kv.snapshot();
        commit(
            kv,
            &space,
            &[(b"k", Some(b"2")), (b"gone", None), (b"new", Some(b"2"))],
        );
        let get = |snapshot: &Snapshot, key: &[u8]| snapshot.get(&space, key).unwrap();
        assert_eq!(get(&before, b"k").as_deref(), Some(&b"1"[..]));
        assert_eq!(get(&before, b"new"), None);
        assert!(get(&before, b"gone").is_some());
        let now = kv.snapshot();
        assert_eq!(get(&now, b"k").as_deref(), Some(&b"2"[..]));
        assert_eq!(get(&now, b"gone"), None);
        assert_eq!(kv.get_latest(&space, b"k").unwrap(), get(&now, b"k"));
    });
}

#[test]
fn walks_go_both_ways_within_bounds() {
    check(|kv| {
        let space = kv.space("a").unwrap();
        let names: Vec<[u8; 2]> = (0..300_u16).map(u16::to_be_bytes).collect();
        let writes: Vec<_> = names
            .iter()
            .map(|key| (&key[..], Some(&b"v"[..])))
            .collect();
        commit(kv, &space, &writes);
        let snapshot = kv.snapshot();
        let key = |n: u16| n.to_be_bytes().to_vec();
        for (bounds, expected) in [
            ((Bound::Unbounded, Bound::Unbounded), 0..300_u16),
            ((Bound::Included(key(5)), Bound::Excluded(key(200))), 5..200),
            ((Bound::Excluded(key(5)), Bound::Included(key(200))), 6..201),
            ((Bound::Included(key(7)), Bound::Excluded(key(7))), 0..0),
            ((Bound::Excluded(key(7)), Bound::Included(key(7))), 0..0),
            ((Bound::Included(key(9)), Bound::Excluded(key(8))), 0..0),
        ] {
            let mut expected: Vec<_> = expected.map(key).collect();
            let forward = snapshot.range(&space, bounds.clone(), Direction::Forward);
            assert_eq!(keys(forward), expected, "{bounds:?}");
            expected.reverse();
            let backward = snapshot.range(&space, bounds.clone(), Direction::Backward);
            assert_eq!(keys(backward), expected, "{bounds:?}");
        }
        let prefix = snapshot.prefix(&space, &[1], Direction::Backward);
        assert_eq!(keys(prefix).len(), 300 - 256);
    });
}

#[test]
fn a_dropped_space_is_gone_and_can_be_made_again() {
    check(|kv| {
        let space = kv.space("a").unwrap();
        commit(kv, &space, &[(b"k", Some(b"1"))]);
        let held = kv.snapshot();
        kv.drop_space("a").unwrap();
        assert_eq!(kv.space_names(), Vec::<String>::new());
        assert!(held.get(&space, b"k").unwrap().is_some());
        let again = kv.space("a").unwrap();
        assert_eq!(kv.snapshot().get(&again, b"k").unwrap(), None);
    });
}

#[test]
fn batches_over_spaces_and_their_durability_survive_opening_again() {
    let dir = tempfile::tempdir().unwrap();
    let kv = Kv::open(dir.path(), &OPTIONS).unwrap();
    let (a, b) = (kv.space("a").unwrap(), kv.space("b").unwrap());
    let mut batch = Batch::default();
    batch.put(&a, &b"k"[..], &b"1"[..]);
    batch.put(&b, &b"k"[..], &b"2"[..]);
    kv.commit(batch, Sync::Data).unwrap();
    drop((a, b));
    drop(kv);
    let kv = Kv::open(dir.path(), &OPTIONS).unwrap();
    let value = |name: &str| {
        let space = kv.find_space(name).unwrap();
        kv.snapshot().get(&space, b"k").unwrap().unwrap().to_vec()
    };
    assert_eq!((value("a"), value("b")), (b"1".to_vec(), b"2".to_vec()));
}

#[test]
fn write_buffers_of_many_spaces_are_bounded_together() {
    let dir = tempfile::tempdir().unwrap();
    let kv = Kv::open(dir.path(), &OPTIONS).unwrap();
    let spaces: Vec<_> = (0..20)
        .map(|n| kv.space(&format!("s{n}")).unwrap())
        .collect();
    let value = [7; 1000];
    for n in 0..400_u32 {
        let mut batch = Batch::default();
        for space in &spaces {
            batch.put(space, &n.to_be_bytes()[..], &value[..]);
        }
        kv.commit(batch, Sync::None).unwrap();
        kv.maintain();
    }
    // 8 MB were written; of those that are not in files yet, only the bound and one look's worth.
    let active = |space: &Space| {
        space
            .keyspace
            .as_ref()
            .unwrap()
            .tree
            .active_memtable()
            .size()
    };
    let buffered: u64 = spaces.iter().map(active).sum();
    assert!(
        buffered <= OPTIONS.write_buffer_bytes * 5 / 4,
        "buffered={buffered}"
    );
    assert_eq!(
        keys(kv.snapshot().prefix(&spaces[3], &[], Direction::Forward)).len(),
        400
    );
}

#[test]
fn the_end_of_a_prefix_is_the_next_key_that_does_not_have_it() {
    assert_eq!(prefix_end(b"ab"), Some(b"ac".to_vec()));
    assert_eq!(prefix_end(&[1, 255, 255]), Some(vec![2]));
    assert_eq!(prefix_end(&[255, 255]), None);
    assert_eq!(prefix_end(&[]), None);
}

/// A store of one sorted file with numbered keys, of which some blocks were damaged, each in the value of
/// one of these keys.
fn damaged_store(dir: &Path, count: u32, damaged: &[u32]) -> (Kv, Space) {
    let value = |n: u32| format!("<value {n:06}>{}", "x".repeat(100)).into_bytes();
    let kv = Kv::open(dir, &OPTIONS).unwrap();
    let space = kv.space("a").unwrap();
    let entries = (0..count).map(|n| Ok((Bytes::from(&n.to_be_bytes()[..]), value(n).into())));
    kv.load(&space, entries).unwrap();
    let keyspace = space.keyspace.as_ref().unwrap();
    let paths: Vec<_> = keyspace
        .tree
        .current_version()
        .iter_tables()
        .map(|table| table.path.to_path_buf())
        .collect();
    let [path] = &paths[..] else {
        panic!("one file was expected: {paths:?}");
    };
    let path = path.clone();
    drop((space, kv));
    let mut bytes = std::fs::read(&path).unwrap();
    for n in damaged {
        let value = value(*n);
        let at = bytes
            .windows(value.len())
            .position(|window| window == value);
        bytes[at.unwrap()] ^= 0x40;
    }
    std::fs::write(&path, bytes).unwrap();
    let kv = Kv::open(dir, &OPTIONS).unwrap();
    let space = kv.find_space("a").unwrap();
    (kv, space)
}

fn number(key: &[u8]) -> u32 {
    u32::from_be_bytes(key.try_into().unwrap())
}

/// Salvages what is within bounds, and compares it with lookups of all keys: everything that can be
/// looked up is there, in order, and everything else is in a gap. Answers how many gaps there are.
fn check_salvage(kv: &Kv, space: &Space, count: u32, bounds: std::ops::Range<u32>) -> usize {
    let snapshot = kv.snapshot();
    let bound = |n: u32| n.to_be_bytes().to_vec();
    let within = (
        Bound::Included(bound(bounds.start)),
        Bound::Excluded(bound(bounds.end)),
    );
    let (mut found, mut gaps) = (Vec::new(), Vec::new());
    for entry in snapshot.salvage(space, within) {
        match entry {
            Ok((key, value)) => found.push((number(&key), value)),
            Err(gap) => gaps.push(gap),
        }
    }
    let mut expected = Vec::new();
    for n in (0..count).filter(|n| bounds.contains(n)) {
        match snapshot.get(space, &n.to_be_bytes()) {
            Ok(value) => expected.extend(value.map(|value| (n, value))),
            Err(_) => {
                let covers = |gap: &Gap| {
                    gap.after.as_ref().is_none_or(|after| number(after) < n)
                        && gap.before.as_ref().is_none_or(|before| n < number(before))
                };
                assert!(gaps.iter().any(covers), "n={n} gaps={gaps:?}");
            }
        }
    }
    assert!(!expected.is_empty());
    assert_eq!(found, expected);
    gaps.len()
}

#[test]
fn everything_around_and_between_damaged_blocks_is_salvaged() {
    for (damaged, gaps) in [
        (&[][..], 0),
        (&[1000], 1),
        (&[0], 1),
        (&[1999], 1),
        (&[300, 1000, 1700], 3),
        // Blocks that follow each other are one gap.
        (&[1000, 1030, 1060, 1090, 1120], 1),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (kv, space) = damaged_store(dir.path(), 2000, damaged);
        let found = check_salvage(&kv, &space, 2000, 0..2000);
        assert_eq!(found, gaps, "{damaged:?}");
        check_salvage(&kv, &space, 2000, 500..1500);
        assert_eq!(check_salvage(&kv, &space, 2000, 1200..1600), 0);
    }
}

#[test]
fn what_was_written_since_is_salvaged_inside_a_gap_too() {
    let dir = tempfile::tempdir().unwrap();
    let (kv, space) = damaged_store(dir.path(), 2000, &[500, 1000]);
    let before = kv.snapshot();
    let key = |n: u32| n.to_be_bytes();
    commit(
        &kv,
        &space,
        &[
            (&key(500), Some(b"new")),
            (&key(1000), None),
            (&key(1500), Some(b"new")),
        ],
    );
    check_salvage(&kv, &space, 2000, 0..2000);
    let newly = |snapshot: &Snapshot| {
        let entries = snapshot.salvage(&space, (Bound::Unbounded, Bound::Unbounded));
        let new = entries
            .filter_map(Result::ok)
            .filter(|(_, v)| **v == b"new"[..]);
        new.map(|(key, _)| number(&key)).collect::<Vec<_>>()
    };
    assert_eq!(newly(&kv.snapshot()), [500, 1500]);
    assert!(newly(&before).is_empty());
}

#[test]
fn a_file_of_which_nothing_can_be_read_is_one_gap() {
    let dir = tempfile::tempdir().unwrap();
    let all: Vec<u32> = (0..200).collect();
    let (kv, space) = damaged_store(dir.path(), 200, &all);
    commit(&kv, &space, &[(&[0xff; 4], Some(b"new"))]);
    let entries = kv
        .snapshot()
        .salvage(&space, (Bound::Unbounded, Bound::Unbounded));
    let entries: Vec<_> = entries.collect();
    let [Err(gap), Ok((key, _))] = &entries[..] else {
        panic!("{entries:?}");
    };
    assert_eq!((&gap.after, &gap.before), (&None, &None));
    assert_eq!(number(key), u32::MAX);
}
