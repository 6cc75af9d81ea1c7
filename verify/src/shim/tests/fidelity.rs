//! Tests of traces: replayed without loss, a trace results in exactly the directory that the process left.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::thread;

use super::*;
use crate::disk::tests::{Tree, tree};
use crate::disk::{DirModel, Disk, Loss};

const THREADS: usize = 4;
const ROUNDS: usize = 40;

/// Returns the directory after replaying `cut` records.
fn replayed(folder: &TestFolder, cut: usize, loss: Loss) -> Tree {
    let trace = folder.trace();
    let disk = Disk::replay(&trace, DirModel::Strict, cut).unwrap();
    let target = tempfile::tempdir().unwrap();
    disk.materialise(target.path(), 0, loss).unwrap();
    tree(target.path())
}

/// Makes all kinds of changes with the standard library.
fn change_things(dir: &Path, thread: usize) {
    let home = dir.join(format!("thread{thread}"));
    fs::create_dir_all(home.join("deep/deeper")).unwrap();
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.join("log"));
    let mut log = log.unwrap();
    let mut kept = File::create(home.join("kept")).unwrap();
    for round in 0..ROUNDS {
        let name = |kind: &str| home.join(format!("{kind}{}", round % 7));
        let text = format!("{thread} {round} ").repeat(1 + round * 3);
        log.write_all(text.as_bytes()).unwrap();
        kept.write_all_at(text.as_bytes(), (round * 1000) as u64)
            .unwrap();
        kept.try_clone()
            .unwrap()
            .seek(SeekFrom::Start(round as u64))
            .unwrap();
        kept.write_all(b"moved position").unwrap();
        fs::write(name("file"), &text).unwrap();
        fs::copy(name("file"), name("copy")).unwrap();
        fs::rename(name("copy"), home.join("deep").join(format!("{round}"))).unwrap();
        let link = home.join(format!("link{round}"));
        if link.exists() {
            fs::remove_file(&link).unwrap();
        }
        fs::hard_link(name("file"), link).unwrap();
        kept.set_len((40_000 - round * 500) as u64).unwrap();
        if round % 3 == 0 {
            fs::remove_file(name("file")).unwrap();
            kept.sync_all().unwrap();
        }
        if round % 10 == 9 {
            fs::rename(home.join("deep"), home.join("old")).unwrap();
            fs::remove_dir_all(home.join("old")).unwrap();
            fs::create_dir(home.join("deep")).unwrap();
        }
        let mut temporary = tempfile::NamedTempFile::new_in(&home).unwrap();
        temporary.write_all(text.as_bytes()).unwrap();
        temporary.persist(home.join("current")).unwrap();
    }
}

#[test]
fn replay_without_loss_equals_the_directory() {
    let this = "replay_without_loss_equals_the_directory";
    if role().is_some() {
        let dir = own_dir();
        return thread::scope(|scope| {
            for thread in 0..THREADS {
                let dir = &dir;
                scope.spawn(move || change_things(dir, thread));
            }
        });
    }
    let folder = TestFolder::new();
    // The second run starts with the content that the first left.
    for _ in 0..2 {
        let before = tree(&folder.dir());
        succeed(&mut child(module_path!(), this, "", &folder.traced()));
        let trace = folder.trace();
        assert_eq!(replayed(&folder, trace.start(), Loss::All), before);
        assert_eq!(
            replayed(&folder, trace.len(), Loss::None),
            tree(&folder.dir())
        );
        assert!(trace.len() - trace.start() > THREADS * ROUNDS * 10);
    }
}

#[test]
fn calls_outside_the_standard_library_are_traced() {
    let folder = TestFolder::new();
    let source = folder.path("odd_calls.c");
    fs::write(&source, include_str!("../../../shim/tests/odd_calls.c")).unwrap();
    let program = folder.path("odd_calls");
    let mut cc = Command::new("cc");
    succeed(cc.args(["-std=c11", "-O1", "-o"]).args([&program, &source]));
    let mut command = Command::new(&program);
    folder.traced().apply(&mut command).unwrap();
    succeed(command.arg(folder.dir()));

    let trace = folder.trace();
    assert_eq!(
        replayed(&folder, trace.len(), Loss::None),
        tree(&folder.dir())
    );
    let refused: Vec<&str> = trace.refused().collect();
    let expected = [
        "fallocate that changes content",
        "copy_file_range",
        "sendfile",
        "splice",
        "ioctl clone",
        "mmap shared and writable",
        "renameat2 with exchange or whiteout",
        "rename across the border of FLOE_SHIM_DIR",
        "symlink or mknod",
        "symlink or mknod",
        "O_TMPFILE",
    ];
    assert_eq!(refused, expected);
    let disk = Disk::replay(&trace, DirModel::Ext4, trace.len()).unwrap();
    let target = tempfile::tempdir().unwrap();
    disk.materialise(target.path(), 0, Loss::All).unwrap();
    assert_eq!(read(&target.path().join("durable")), b"durable");
}
