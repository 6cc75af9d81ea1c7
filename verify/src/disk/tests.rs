//! Tests of each rule on hand-written traces. The traces use the binary format, so that its parser is tested too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::*;

const A: u64 = 2;
const B: u64 = 3;
const DIR: u64 = 4;
const BOTH: [DirModel; 2] = [DirModel::Ext4, DirModel::Strict];
const SEEDS: std::ops::Range<u64> = 0..200;

/// Writes records in the format of the shim.
struct Records(Vec<u8>);

impl Records {
    /// A process that starts on an empty directory.
    fn new() -> Self {
        Self::found().start()
    }

    /// A process that starts on a directory with content.
    fn found() -> Self {
        Self(b"FLOETRC1".to_vec())
    }

    fn put(mut self, op: u8, names: [(u64, &str); 2], file: u64, value: u64, data: &[u8]) -> Self {
        let [(dir, name), (to_dir, to_name)] = names;
        self.0.extend([op, 0, 0, 0]);
        for len in [name.len(), to_name.len(), data.len()] {
            self.0.extend((len as u32).to_le_bytes());
        }
        for word in [file, dir, to_dir, value] {
            self.0.extend(word.to_le_bytes());
        }
        self.0.extend(name.as_bytes());
        self.0.extend(to_name.as_bytes());
        self.0.extend(data);
        self
    }

    fn entry(self, op: u8, dir: u64, name: &str, file: u64) -> Self {
        self.put(op, [(dir, name), (0, "")], file, 0, b"")
    }

    fn file(self, op: u8, file: u64, value: u64, data: &[u8]) -> Self {
        self.put(op, [(0, ""), (0, "")], file, value, data)
    }

    fn found_file(self, name: &str, file: u64, data: &[u8]) -> Self {
        self.entry(2, 1, name, file).file(3, file, 0, data)
    }

    fn start(self) -> Self {
        self.file(4, 1, 0, b"")
    }

    fn create(self, name: &str, file: u64) -> Self {
        self.entry(5, 1, name, file)
    }

    fn mkdir(self, name: &str, file: u64) -> Self {
        self.entry(6, 1, name, file)
    }

    fn link(self, name: &str, file: u64) -> Self {
        self.entry(7, 1, name, file)
    }

    fn rename(self, from: &str, to: &str, file: u64) -> Self {
        self.put(8, [(1, from), (1, to)], file, 0, b"")
    }

    fn unlink(self, name: &str, file: u64) -> Self {
        self.entry(9, 1, name, file)
    }

    fn write(self, file: u64, offset: u64, data: &[u8]) -> Self {
        self.file(10, file, offset, data)
    }

    fn truncate(self, file: u64, len: u64) -> Self {
        self.file(11, file, len, b"")
    }

    fn sync(self, file: u64) -> Self {
        self.file(12, file, 0, b"")
    }

    fn sync_data(self, file: u64) -> Self {
        self.file(13, file, 0, b"")
    }

    fn sync_all(self) -> Self {
        self.file(14, 1, 0, b"")
    }

    fn sync_fails(self, file: u64) -> Self {
        self.file(16, file, 2, b"")
    }

    fn mark(self, bytes: &[u8]) -> Self {
        self.file(15, 0, 0, bytes)
    }

    fn trace(&self) -> Trace {
        Trace::parse(self.0.as_slice()).expect("the trace is well formed")
    }
}

/// Paths below a directory, with the bytes of files.
pub(crate) type Tree = BTreeMap<String, Option<Vec<u8>>>;

pub(crate) fn tree(root: &Path) -> Tree {
    let mut found = Tree::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap();
            let content = path.is_file().then(|| fs::read(&path).unwrap());
            found.insert(name.to_owned(), content);
            if path.is_dir() {
                open.push(path);
            }
        }
    }
    found
}

fn files(expected: &[(&str, &[u8])]) -> Tree {
    let owned = |(name, bytes): &(&str, &[u8])| ((*name).to_owned(), Some(bytes.to_vec()));
    expected.iter().map(owned).collect()
}

fn found(disk: &Disk<'_>, seed: u64, loss: Loss) -> Tree {
    let target = tempfile::tempdir().unwrap();
    disk.materialise(target.path(), seed, loss).unwrap();
    tree(target.path())
}

/// Returns the state after the whole trace.
fn crash(records: &Records, model: DirModel, loss: Loss) -> Tree {
    let trace = records.trace();
    let disk = Disk::replay(&trace, model, trace.len()).unwrap();
    found(&disk, 0, loss)
}

/// Returns all possible states after the whole trace, over many seeds.
fn outcomes(records: &Records, model: DirModel) -> BTreeSet<Tree> {
    let trace = records.trace();
    let disk = Disk::replay(&trace, model, trace.len()).unwrap();
    SEEDS.map(|seed| found(&disk, seed, Loss::Random)).collect()
}

/// Returns the possible contents of one file; `None` if it is missing.
fn contents(records: &Records, name: &str) -> BTreeSet<Option<Vec<u8>>> {
    let outcomes = outcomes(records, DirModel::Ext4);
    let content = |mut tree: Tree| tree.remove(name).flatten();
    outcomes.into_iter().map(content).collect()
}

/// A file that existed, with its name, before the start.
fn old_file(data: &[u8]) -> Records {
    Records::found().found_file("a", A, data).start()
}

#[test]
fn content_found_at_the_start_survives() {
    let records = Records::found()
        .entry(1, 1, "d", DIR)
        .entry(2, DIR, "a", A)
        .file(11, A, 5, b"")
        .file(3, A, 0, b"old")
        .entry(2, DIR, "again", A)
        .start();
    let mut expected = files(&[("d/a", b"old\0\0"), ("d/again", b"old\0\0")]);
    expected.insert("d".into(), None);
    for model in BOTH {
        assert_eq!(crash(&records, model, Loss::All), expected);
        assert_eq!(
            outcomes(&records, model),
            BTreeSet::from([expected.clone()])
        );
    }
}

#[test]
fn synced_write_survives() {
    for records in [
        old_file(b"").write(A, 0, b"new").sync(A),
        old_file(b"").write(A, 0, b"new").sync_data(A),
        old_file(b"").write(A, 0, b"new").sync_all(),
    ] {
        let expected = files(&[("a", b"new")]);
        assert_eq!(crash(&records, DirModel::Strict, Loss::All), expected);
        assert_eq!(
            outcomes(&records, DirModel::Strict),
            BTreeSet::from([expected])
        );
    }
}

#[test]
fn unsynced_write_may_be_lost() {
    let records = old_file(b"old").write(A, 0, b"new");
    for model in BOTH {
        assert_eq!(crash(&records, model, Loss::All), files(&[("a", b"old")]));
        assert_eq!(crash(&records, model, Loss::None), files(&[("a", b"new")]));
    }
    let expected = [Some(b"old".to_vec()), Some(b"new".to_vec())];
    assert_eq!(contents(&records, "a"), BTreeSet::from(expected));
}

#[test]
fn sync_covers_only_earlier_writes_of_its_file() {
    let records = old_file(b"")
        .write(A, 0, b"one")
        .sync(A)
        .write(A, 3, b"two");
    assert_eq!(
        crash(&records, DirModel::Strict, Loss::All),
        files(&[("a", b"one")])
    );
    let other = old_file(b"").create("b", B).write(B, 0, b"two").sync(A);
    assert_eq!(
        crash(&other, DirModel::Strict, Loss::All),
        files(&[("a", b"")])
    );
}

#[test]
fn unsynced_writes_are_lost_in_any_order() {
    let records = old_file(b"..").write(A, 0, b"1").write(A, 1, b"2");
    let found = contents(&records, "a");
    for expected in [b"..", b"1.", b".2", b"12"] {
        assert!(found.contains(&Some(expected.to_vec())), "{expected:?}");
    }
    assert_eq!(found.len(), 4);
}

#[test]
fn write_is_torn_at_sector_boundaries() {
    let old = [b'o'; 2048];
    let records = old_file(&old).write(A, 100, &[b'n'; 1500]);
    let found = contents(&records, "a");
    let mut torn = 0;
    for content in found.iter().flatten() {
        assert_eq!(content.len(), 2048);
        let sectors = [100..512, 512..1024, 1024..1536, 1536..1600];
        let kept = sectors.map(|sector| content[sector].to_vec());
        for sector in &kept {
            assert!(sector.iter().all(|byte| *byte == sector[0]), "{sector:?}");
        }
        torn += usize::from(kept.iter().any(|sector| sector[0] != kept[0][0]));
        assert!(
            content[..100]
                .iter()
                .chain(&content[1600..])
                .all(|byte| *byte == b'o')
        );
    }
    assert!(torn >= 8, "torn={torn}");
}

#[test]
fn lost_extension_leaves_a_short_file_or_zeros() {
    let records = old_file(b"old").write(A, 3, b"new");
    let expected: [&[u8]; 3] = [b"old", b"old\0\0\0", b"oldnew"];
    let expected = expected.map(|content| Some(content.to_vec()));
    assert_eq!(contents(&records, "a"), BTreeSet::from(expected));
    assert_eq!(
        crash(&records, DirModel::Strict, Loss::All),
        files(&[("a", b"old")])
    );
}

#[test]
fn gap_before_a_kept_write_is_zeros() {
    let records = old_file(b"").write(A, 0, b"lost").write(A, 4, b"kept");
    assert!(contents(&records, "a").contains(&Some(b"\0\0\0\0kept".to_vec())));
}

#[test]
fn truncation_is_durable_after_a_sync() {
    let pending = old_file(b"long content").truncate(A, 4);
    let expected: [&[u8]; 2] = [b"long content", b"long"];
    let expected = expected.map(|content| Some(content.to_vec()));
    assert_eq!(contents(&pending, "a"), BTreeSet::from(expected));
    let extended = old_file(b"long content")
        .truncate(A, 4)
        .truncate(A, 6)
        .sync_data(A);
    assert_eq!(
        crash(&extended, DirModel::Strict, Loss::All),
        files(&[("a", b"long\0\0")])
    );
}

#[test]
fn truncation_across_pages_clears_the_removed_bytes() {
    let records = old_file(&[b'x'; 10_000])
        .truncate(A, 5_000)
        .truncate(A, 9_000)
        .sync(A);
    let mut expected = vec![b'x'; 5_000];
    expected.resize(9_000, 0);
    assert_eq!(
        crash(&records, DirModel::Strict, Loss::All),
        files(&[("a", &expected)])
    );
}

#[test]
fn synced_new_file_has_its_name_only_on_ext4() {
    let records = Records::new()
        .create("a", A)
        .write(A, 0, b"new")
        .sync_data(A);
    let named = files(&[("a", b"new")]);
    assert_eq!(crash(&records, DirModel::Ext4, Loss::All), named);
    assert_eq!(crash(&records, DirModel::Strict, Loss::All), Tree::new());
    let expected = BTreeSet::from([Tree::new(), named.clone()]);
    assert_eq!(outcomes(&records, DirModel::Strict), expected);
    assert_eq!(crash(&records.sync(1), DirModel::Strict, Loss::All), named);
}

#[test]
fn name_may_survive_without_its_data() {
    let records = Records::new().create("a", A).write(A, 0, b"new").sync(1);
    for model in BOTH {
        assert_eq!(crash(&records, model, Loss::All), files(&[("a", b"")]));
    }
}

#[test]
fn rename_is_durable_after_a_sync_of_its_directory() {
    let before = old_file(b"old")
        .create("tmp", B)
        .write(B, 0, b"new")
        .sync(B)
        .sync(1)
        .rename("tmp", "a", B);
    let old = files(&[("a", b"old"), ("tmp", b"new")]);
    let new = files(&[("a", b"new")]);
    for model in BOTH {
        assert_eq!(crash(&before, model, Loss::All), old);
        assert_eq!(crash(&before, model, Loss::None), new);
        let either = BTreeSet::from([old.clone(), new.clone()]);
        assert_eq!(outcomes(&before, model), either);
    }
    let after = before.sync(1);
    for model in BOTH {
        assert_eq!(crash(&after, model, Loss::All), new);
        assert_eq!(outcomes(&after, model), BTreeSet::from([new.clone()]));
    }
}

#[test]
fn sync_of_a_renamed_file_keeps_the_rename_only_on_ext4() {
    let records = old_file(b"old").rename("a", "b", A).sync(A);
    let new = files(&[("b", b"old")]);
    assert_eq!(crash(&records, DirModel::Ext4, Loss::All), new);
    let old = files(&[("a", b"old")]);
    assert_eq!(crash(&records, DirModel::Strict, Loss::All), old);
}

#[test]
fn rename_between_directories_is_durable_after_both_are_synced() {
    let moved = |records: Records| records.put(8, [(1, "a"), (DIR, "a")], A, 0, b"");
    let found = Records::found().found_file("a", A, b"old");
    let records = moved(found.entry(1, 1, "d", DIR).start()).sync(DIR);
    let mut old = files(&[("a", b"old")]);
    let mut new = files(&[("d/a", b"old")]);
    old.insert("d".into(), None);
    new.insert("d".into(), None);
    assert_eq!(crash(&records, DirModel::Strict, Loss::All), old);
    assert_eq!(crash(&records, DirModel::Ext4, Loss::All), new);
    let both = BTreeSet::from([old, new.clone()]);
    assert_eq!(outcomes(&records, DirModel::Strict), both);
    assert_eq!(crash(&records.sync(1), DirModel::Strict, Loss::All), new);
}

#[test]
fn writes_after_a_rename_apply_to_the_renamed_file() {
    let records = old_file(b"old")
        .rename("a", "b", A)
        .write(A, 3, b"er")
        .sync(A)
        .sync(1);
    for model in BOTH {
        assert_eq!(crash(&records, model, Loss::All), files(&[("b", b"older")]));
    }
}

#[test]
fn unlinked_file_may_return_until_its_directory_is_synced() {
    let records = old_file(b"old").unlink("a", A).write(A, 0, b"new");
    for model in BOTH {
        assert_eq!(crash(&records, model, Loss::All), files(&[("a", b"old")]));
        assert_eq!(crash(&records, model, Loss::None), Tree::new());
        assert!(outcomes(&records, model).contains(&files(&[("a", b"new")])));
    }
    let records = records.sync(1);
    for model in BOTH {
        assert_eq!(crash(&records, model, Loss::All), Tree::new());
    }
}

#[test]
fn reused_name_refers_to_the_new_file() {
    let records = old_file(b"old")
        .unlink("a", A)
        .create("a", B)
        .write(B, 0, b"new")
        .sync(B);
    assert_eq!(
        crash(&records, DirModel::Ext4, Loss::All),
        files(&[("a", b"new")])
    );
    assert_eq!(
        crash(&records, DirModel::Strict, Loss::All),
        files(&[("a", b"old")])
    );
}

#[test]
fn file_is_lost_with_its_directory() {
    let records = Records::new()
        .mkdir("d", DIR)
        .entry(5, DIR, "a", A)
        .write(A, 0, b"new")
        .sync(A)
        .sync(DIR);
    let mut kept = files(&[("d/a", b"new")]);
    kept.insert("d".into(), None);
    assert_eq!(crash(&records, DirModel::Strict, Loss::All), Tree::new());
    assert_eq!(crash(&records, DirModel::Ext4, Loss::All), kept);
    assert_eq!(crash(&records.sync(1), DirModel::Strict, Loss::All), kept);
}

#[test]
fn link_is_a_second_name_of_the_file() {
    let records = old_file(b"old")
        .link("b", A)
        .sync(1)
        .write(A, 0, b"new")
        .sync(A);
    let trace = records.trace();
    let disk = Disk::replay(&trace, DirModel::Strict, trace.len()).unwrap();
    let target = tempfile::tempdir().unwrap();
    disk.materialise(target.path(), 0, Loss::All).unwrap();
    assert_eq!(tree(target.path()), files(&[("a", b"new"), ("b", b"new")]));
    fs::write(target.path().join("a"), b"one file").unwrap();
    assert_eq!(fs::read(target.path().join("b")).unwrap(), b"one file");
}

#[test]
fn name_changes_are_kept_in_order_only_on_ext4() {
    let records = Records::new().create("a", A).create("b", B);
    let [none, a, b, both] = [&[][..], &["a"], &["b"], &["a", "b"]].map(|names: &[&str]| {
        let empty = |name: &&str| (String::from(*name), Some(Vec::new()));
        names.iter().map(empty).collect::<Tree>()
    });
    let in_order = BTreeSet::from([none.clone(), a.clone(), both.clone()]);
    assert_eq!(outcomes(&records, DirModel::Ext4), in_order);
    let any = BTreeSet::from([none, a, b, both]);
    assert_eq!(outcomes(&records, DirModel::Strict), any);
}

#[test]
fn writes_before_a_failed_sync_are_not_covered_by_the_next() {
    let records = old_file(b"...")
        .write(A, 0, b"1")
        .sync_fails(A)
        .write(A, 1, b"2")
        .sync(A);
    assert_eq!(
        crash(&records, DirModel::Ext4, Loss::All),
        files(&[("a", b".2.")])
    );
    assert_eq!(
        crash(&records, DirModel::Ext4, Loss::None),
        files(&[("a", b"12.")])
    );
    let expected = [b".2.", b"12."].map(|content| Some(content.to_vec()));
    assert_eq!(contents(&records, "a"), BTreeSet::from(expected));
}

#[test]
fn renames_before_a_failed_sync_are_not_covered_by_the_next() {
    let records = old_file(b"old").rename("a", "b", A).sync_fails(1).sync(1);
    for model in BOTH {
        assert_eq!(crash(&records, model, Loss::All), files(&[("a", b"old")]));
    }
}

#[test]
fn marks_before_the_cut_are_available() {
    let records = Records::new().mark(b"one").create("a", A).mark(b"two");
    let trace = records.trace();
    assert_eq!((trace.start(), trace.len()), (1, 4));
    let mut disk = Disk::new(&trace, DirModel::Ext4);
    let mut seen = Vec::new();
    for cut in 0..=trace.len() {
        disk.advance(cut).unwrap();
        seen.push(disk.marks().len());
    }
    assert_eq!(seen, [0, 0, 1, 1, 2]);
    let [one, two] = disk.marks() else {
        panic!("expected two marks");
    };
    assert_eq!((one.record, one.bytes), (1, b"one".as_slice()));
    assert_eq!((two.record, two.bytes), (3, b"two".as_slice()));
}

#[test]
fn advancing_equals_replaying() {
    let records = old_file(b"old").write(A, 0, b"1").sync(A).write(A, 1, b"2");
    let trace = records.trace();
    let mut advanced = Disk::new(&trace, DirModel::Strict);
    for cut in trace.start()..=trace.len() {
        advanced.advance(cut).unwrap();
        let fresh = Disk::replay(&trace, DirModel::Strict, cut).unwrap();
        for loss in [Loss::All, Loss::Random, Loss::None] {
            assert_eq!(found(&advanced, 7, loss), found(&fresh, 7, loss));
        }
    }
}

#[test]
fn equal_seeds_give_equal_states_and_damage_is_counted() {
    let records = old_file(&[b'o'; 4096])
        .write(A, 0, &[b'n'; 4096])
        .create("b", B);
    let trace = records.trace();
    let disk = Disk::replay(&trace, DirModel::Strict, trace.len()).unwrap();
    let mut torn = 0;
    for seed in SEEDS {
        assert_eq!(
            found(&disk, seed, Loss::Random),
            found(&disk, seed, Loss::Random)
        );
        let target = tempfile::tempdir().unwrap();
        let damage = disk.materialise(target.path(), seed, Loss::Random).unwrap();
        assert_eq!(damage.edits_kept + damage.edits_torn + damage.edits_lost, 1);
        assert_eq!(damage.names_kept + damage.names_lost, 1);
        assert_eq!(damage.names_kept == 1, target.path().join("b").exists());
        torn += damage.edits_torn;
    }
    assert!(torn > 0);
}

#[test]
fn nonempty_target_is_rejected() {
    let trace = Records::new().trace();
    let disk = Disk::replay(&trace, DirModel::Ext4, trace.len()).unwrap();
    let target = tempfile::tempdir().unwrap();
    fs::write(target.path().join("mine"), b"").unwrap();
    let error = disk.materialise(target.path(), 0, Loss::All).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
}

#[test]
fn cuts_are_distinct_and_in_order() {
    let records = (0..100).fold(Records::new(), |records, _| records.mark(b"x"));
    let trace = records.trace();
    let cuts = trace.cuts(1, 30);
    assert_eq!(cuts.len(), 30);
    assert!(cuts.is_sorted_by(|a, b| a < b));
    assert!(
        cuts.iter()
            .all(|cut| (trace.start()..=trace.len()).contains(cut))
    );
    assert_ne!(cuts, trace.cuts(2, 30));
    assert_eq!(trace.cuts(1, 1000).len(), 101);
}

#[test]
fn faults_and_refused_calls_are_reported() {
    let records = old_file(b"").mark(b"").file(16, A, 0, b"");
    let records = records.file(17, 0, 0, b"O_TMPFILE").sync_fails(A);
    let trace = records.trace();
    assert_eq!(trace.first_fault(), Some(4));
    assert_eq!(trace.refused().collect::<Vec<_>>(), ["O_TMPFILE"]);
    assert_eq!(Records::new().trace().first_fault(), None);
}

#[test]
fn incomplete_last_record_is_dropped() {
    let whole = Records::new().create("a", A).write(A, 0, b"data");
    for missing in 1..(48 + 4) {
        let bytes = &whole.0[..whole.0.len() - missing];
        assert_eq!(Trace::parse(bytes).unwrap().len(), 2, "missing={missing}");
    }
}

#[test]
fn damaged_traces_are_rejected() {
    let reading = [
        (Records(Vec::new()), "not a trace"),
        (Records(b"FLOETRC2".to_vec()), "not a trace"),
        (Records::found(), "has no start record"),
        (Records::new().file(99, A, 0, b""), "unknown operation"),
        (Records::new().create("..", A), "not a file name"),
        (Records::new().create("a/b", A), "not a file name"),
        (Records::new().create("", A), "not a file name"),
        (
            Records::new().write(A, u64::MAX, b"x"),
            "offset out of range",
        ),
        (Records::new().truncate(A, u64::MAX), "offset out of range"),
    ];
    for (records, expected) in reading {
        let error = Trace::parse(records.0.as_slice()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let replaying = [
        (Records::new().write(A, 0, b"x"), "changes an unknown file"),
        (Records::new().rename("a", "b", A), "names an unknown file"),
        (
            Records::new().entry(5, DIR, "a", A),
            "uses an unknown directory",
        ),
        (Records::new().sync(A), "syncs an unknown file"),
    ];
    for (records, expected) in replaying {
        let trace = records.trace();
        let error = Disk::replay(&trace, DirModel::Ext4, trace.len()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}
