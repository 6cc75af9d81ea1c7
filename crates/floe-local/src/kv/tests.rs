//! Tests of the key-value store, in memory and on disk.

use super::*;

const OPTIONS: KvOptions = KvOptions {
    cache_bytes: 1 << 20,
    write_buffer_bytes: 1 << 20,
};

const SPACE: Space = Space::Table(7);

/// Runs a check on a store in memory and on one on disk.
fn check(check: impl Fn(&Kv)) {
    check(&Kv::memory());
    let dir = tempfile::tempdir().unwrap();
    check(&Kv::create(dir.path(), &OPTIONS).unwrap());
}

fn commit(kv: &Kv, space: Space, writes: &[(&[u8], Option<&[u8]>)]) {
    let mut batch = Batch::default();
    for (key, value) in writes {
        batch.push(space, space.key(key), value.map(Bytes::from));
    }
    kv.commit(batch, Sync::None).unwrap();
}

fn keys(range: RangeIter) -> Vec<Vec<u8>> {
    range.map(|entry| entry.unwrap().0.to_vec()).collect()
}

#[test]
fn snapshot_is_immutable() {
    check(|kv| {
        let space = SPACE;
        commit(kv, space, &[(b"k", Some(b"1")), (b"gone", Some(b"1"))]);
        let before = kv.snapshot();
        commit(
            kv,
            space,
            &[(b"k", Some(b"2")), (b"gone", None), (b"new", Some(b"2"))],
        );
        let get = |snapshot: &Snapshot, key: &[u8]| snapshot.get(space, key).unwrap();
        assert_eq!(get(&before, b"k").as_deref(), Some(&b"1"[..]));
        assert_eq!(get(&before, b"new"), None);
        assert!(get(&before, b"gone").is_some());
        let now = kv.snapshot();
        assert_eq!(get(&now, b"k").as_deref(), Some(&b"2"[..]));
        assert_eq!(get(&now, b"gone"), None);
        assert_eq!(kv.get_latest(space, b"k").unwrap(), get(&now, b"k"));
    });
}

#[test]
fn ranges_are_read_in_both_directions_within_bounds() {
    check(|kv| {
        let space = SPACE;
        let names: Vec<[u8; 2]> = (0..300_u16).map(u16::to_be_bytes).collect();
        let writes: Vec<_> = names
            .iter()
            .map(|key| (&key[..], Some(&b"v"[..])))
            .collect();
        commit(kv, space, &writes);
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
            let forward = snapshot.range(space, bounds.clone(), Direction::Forward);
            assert_eq!(keys(forward), expected, "{bounds:?}");
            expected.reverse();
            let backward = snapshot.range(space, bounds.clone(), Direction::Backward);
            assert_eq!(keys(backward), expected, "{bounds:?}");
        }
        let prefix = snapshot.prefix(space, &[1], Direction::Backward);
        assert_eq!(keys(prefix).len(), 300 - 256);
    });
}

#[test]
fn tables_are_isolated_from_each_other() {
    check(|kv| {
        for id in [0, 6, 7, 8, u32::MAX] {
            for key in [&b""[..], b"k", &[255; 300]] {
                commit(kv, Space::Table(id), &[(key, Some(&id.to_be_bytes()))]);
            }
        }
        let snapshot = kv.snapshot();
        let all = || (Bound::Unbounded, Bound::Unbounded);
        for id in [0, 6, 7, 8, u32::MAX] {
            let space = Space::Table(id);
            for direction in [Direction::Forward, Direction::Backward] {
                let found: Vec<_> = snapshot.range(space, all(), direction).collect();
                assert_eq!(found.len(), 3);
                for entry in found {
                    let (key, value) = entry.unwrap();
                    assert_eq!(*value, id.to_be_bytes());
                    assert_eq!(snapshot.get(space, &key).unwrap(), Some(value));
                }
            }
            let behind = (Bound::Excluded(b"k".to_vec()), Bound::Unbounded);
            assert_eq!(
                keys(snapshot.range(space, behind, Direction::Forward)),
                [vec![255; 300]]
            );
        }
        let tables: Vec<_> = snapshot.tables().map(|entry| entry.unwrap().0).collect();
        assert_eq!(tables.len(), 15);
        assert!(tables.is_sorted());
        assert_eq!(snapshot.first_table(0), Ok(Some(0)));
        assert_eq!(snapshot.first_table(1), Ok(Some(6)));
        assert_eq!(snapshot.first_table(9), Ok(Some(u32::MAX)));
    });
}

#[test]
fn table_prefixes_are_ordered_and_prefix_free() {
    let near = |id: u32| id.saturating_sub(2)..=id.saturating_add(2);
    let ids: std::collections::BTreeSet<u32> = [0, 240, 2288, 67_824, 1 << 24, u32::MAX]
        .into_iter()
        .flat_map(near)
        .chain((0..100_000).step_by(37))
        .collect();
    let mut last: Option<TablePrefix> = None;
    for id in ids {
        let prefix = TablePrefix::of(id);
        assert_eq!(
            TablePrefix::parse(&[&prefix, &b"key"[..]].concat()),
            Some((id, u8::try_from(prefix.len()).unwrap()))
        );
        if let Some(last) = last {
            assert!(*last < *prefix && !prefix.starts_with(&last), "{id}");
        }
        last = Some(prefix);
    }
    for damaged in [
        &[][..],
        &[241],
        &[249, 1],
        &[250, 0, 0, 0],
        &[250, 0, 0, 0, 1],
        &[251, 1, 1, 1, 1],
    ] {
        assert_eq!(TablePrefix::parse(damaged), None, "{damaged:?}");
    }
}

#[test]
fn opening_creates_no_keyspaces() {
    let dir = tempfile::tempdir().unwrap();
    let Err(error) = Kv::open(dir.path(), &OPTIONS) else {
        panic!("an empty folder was opened as a store");
    };
    assert!(
        error.to_string().contains("a keyspace is missing"),
        "{error}"
    );
}

#[test]
fn batch_over_several_spaces_survives_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let kv = Kv::create(dir.path(), &OPTIONS).unwrap();
    let spaces = [Space::Meta, Space::Tokens, Space::Table(1), Space::Table(2)];
    let mut batch = Batch::default();
    for (n, space) in spaces.into_iter().enumerate() {
        batch.put(space, b"k", vec![n as u8]);
    }
    kv.commit(batch, Sync::Data).unwrap();
    drop(kv);
    let kv = Kv::open(dir.path(), &OPTIONS).unwrap();
    let value = |space| kv.snapshot().get(space, b"k").unwrap().unwrap().to_vec();
    assert_eq!(spaces.map(value), [[0], [1], [2], [3]]);
}

#[test]
fn write_buffers_are_limited_together() {
    let dir = tempfile::tempdir().unwrap();
    let kv = Kv::create(dir.path(), &OPTIONS).unwrap();
    let spaces = [Space::Meta, Space::Changes, Space::Tokens, SPACE];
    let value = [7; 5000];
    for n in 0..400_u32 {
        let mut batch = Batch::default();
        for space in spaces {
            batch.put(space, n.to_be_bytes(), &value[..]);
        }
        kv.commit(batch, Sync::None).unwrap();
        kv.maintain();
    }
    // 8 MB were written; only the limit and the bytes of one check interval may still be in buffers.
    let buffered = disk(&kv).buffered_bytes();
    assert!(
        buffered <= OPTIONS.write_buffer_bytes * 5 / 4,
        "buffered={buffered}"
    );
    assert_eq!(
        keys(kv.snapshot().prefix(SPACE, &[], Direction::Forward)).len(),
        400
    );
}

fn disk(kv: &Kv) -> &Disk {
    kv.disk.as_ref().expect("expected a store on disk")
}

#[test]
fn dropping_files_of_a_table_keeps_its_neighbors() {
    let dir = tempfile::tempdir().unwrap();
    let kv = Kv::create(dir.path(), &OPTIONS).unwrap();
    let entries = |id: u32| {
        let space = Space::Table(id);
        (0..2000_u32).map(move |n| Ok((space, space.key(&n.to_be_bytes()), vec![7; 500].into())))
    };
    for id in [6, 7, 8] {
        kv.load(entries(id)).unwrap();
    }
    let before = kv.snapshot();
    let count = |snapshot: &Snapshot, id| {
        keys(snapshot.prefix(Space::Table(id), &[], Direction::Forward)).len()
    };
    kv.drop_files(7).unwrap();
    kv.refresh();
    let after = kv.snapshot();
    assert_eq!([6, 7, 8].map(|id| count(&before, id)), [2000, 2000, 2000]);
    assert_eq!([6, 7, 8].map(|id| count(&after, id)), [2000, 0, 2000]);
    drop((before, after, kv));
    let kv = Kv::open(dir.path(), &OPTIONS).unwrap();
    assert_eq!(
        [6, 7, 8].map(|id| count(&kv.snapshot(), id)),
        [2000, 0, 2000]
    );
}

#[test]
fn reopening_removes_uncommitted_batches_only() {
    let dir = tempfile::tempdir().unwrap();
    let kv = Kv::create(dir.path(), &OPTIONS).unwrap();
    for n in 0..10_u8 {
        commit(&kv, SPACE, &[(&[n], Some(b"v"))]);
    }
    // A complete batch of a commit that counts as failed.
    let committed = disk(&kv).committed_below();
    commit(&kv, SPACE, &[(b"failed", Some(b"v"))]);
    disk(&kv).set_committed_below(committed);
    let held = kv.snapshot();
    assert!(matches!(kv.reopen(), Err(Error::Unavailable(_))));
    assert!(held.get(SPACE, &[3]).unwrap().is_some());
    assert!(kv.snapshot().get(SPACE, &[3]).unwrap().is_some());
    drop(held);
    kv.reopen().unwrap();
    assert_eq!(kv.snapshot().get(SPACE, b"failed"), Ok(None));
    commit(&kv, SPACE, &[(b"later", Some(b"v"))]);
    drop(kv);
    let kv = Kv::open(dir.path(), &OPTIONS).unwrap();
    assert_eq!(
        keys(kv.snapshot().prefix(SPACE, &[], Direction::Forward)).len(),
        11
    );
}

#[test]
fn prefix_end_is_the_first_key_after_the_prefix() {
    assert_eq!(prefix_end(b"ab"), Some(b"ac".to_vec()));
    assert_eq!(prefix_end(&[1, 255, 255]), Some(vec![2]));
    assert_eq!(prefix_end(&[255, 255]), None);
    assert_eq!(prefix_end(&[]), None);
}

/// A store with one sorted file of numbered keys. For each key in `damaged`, the block with its value is damaged.
fn damaged_store(dir: &Path, count: u32, damaged: &[u32]) -> (Kv, Space) {
    let value = |n: u32| format!("<value {n:06}>{}", "x".repeat(100)).into_bytes();
    let kv = Kv::create(dir, &OPTIONS).unwrap();
    let entries = (0..count).map(|n| Ok((SPACE, SPACE.key(&n.to_be_bytes()), value(n).into())));
    kv.load(entries).unwrap();
    let paths = crate::files::sorted_files(&dir.join("keyspaces/4"));
    let [(_, path)] = &paths[..] else {
        panic!("expected one file: {paths:?}");
    };
    let path = path.clone();
    drop(kv);
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
    (kv, SPACE)
}

fn number(key: &[u8]) -> u32 {
    u32::from_be_bytes(key.try_into().unwrap())
}

/// Salvages a range, and compares it with lookups of all keys: every key that can be looked up is returned, in order,
/// and every other key is in a gap. Returns the number of gaps.
fn check_salvage(kv: &Kv, space: Space, count: u32, bounds: std::ops::Range<u32>) -> usize {
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
fn everything_outside_damaged_blocks_is_salvaged() {
    for (damaged, gaps) in [
        (&[][..], 0),
        (&[1000], 1),
        (&[0], 1),
        (&[1999], 1),
        (&[300, 1000, 1700], 3),
        // Adjacent blocks are one gap.
        (&[1000, 1030, 1060, 1090, 1120], 1),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (kv, space) = damaged_store(dir.path(), 2000, damaged);
        let found = check_salvage(&kv, space, 2000, 0..2000);
        assert_eq!(found, gaps, "{damaged:?}");
        check_salvage(&kv, space, 2000, 500..1500);
        assert_eq!(check_salvage(&kv, space, 2000, 1200..1600), 0);
    }
}

#[test]
fn later_writes_inside_a_gap_are_salvaged() {
    let dir = tempfile::tempdir().unwrap();
    let (kv, space) = damaged_store(dir.path(), 2000, &[500, 1000]);
    let before = kv.snapshot();
    let key = |n: u32| n.to_be_bytes();
    commit(
        &kv,
        space,
        &[
            (&key(500), Some(b"new")),
            (&key(1000), None),
            (&key(1500), Some(b"new")),
        ],
    );
    check_salvage(&kv, space, 2000, 0..2000);
    let newly = |snapshot: &Snapshot| {
        let entries = snapshot.salvage(space, (Bound::Unbounded, Bound::Unbounded));
        let new = entries
            .filter_map(Result::ok)
            .filter(|(_, v)| **v == b"new"[..]);
        new.map(|(key, _)| number(&key)).collect::<Vec<_>>()
    };
    assert_eq!(newly(&kv.snapshot()), [500, 1500]);
    assert!(newly(&before).is_empty());
}

#[test]
fn unreadable_file_is_one_gap() {
    let dir = tempfile::tempdir().unwrap();
    let all: Vec<u32> = (0..200).collect();
    let (kv, space) = damaged_store(dir.path(), 200, &all);
    commit(&kv, space, &[(&[0xff; 4], Some(b"new"))]);
    let entries = kv
        .snapshot()
        .salvage(space, (Bound::Unbounded, Bound::Unbounded));
    let entries: Vec<_> = entries.collect();
    let [Err(gap), Ok((key, _))] = &entries[..] else {
        panic!("{entries:?}");
    };
    assert_eq!((&gap.after, &gap.before), (&None, &None));
    assert_eq!(number(key), u32::MAX);
}

#[cfg(unix)]
#[test]
fn probe_does_not_write_through_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, victim) = (dir.path().join("data"), dir.path().join("victim"));
    std::fs::write(&victim, "precious").unwrap();
    let kv = Kv::create(&folder, &OPTIONS).unwrap();
    std::os::unix::fs::symlink(&victim, folder.join("probe.tmp")).unwrap();
    let Some(disk) = &kv.disk else {
        panic!("expected a store on disk");
    };
    disk.probe().unwrap();
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    assert!(!folder.join("probe.tmp").exists());
}
