//! Names and lists that are rejected before the key-value store opens them.

use super::list::Current;
use super::*;
use crate::kv::{Kv, KvOptions};

const OPTIONS: KvOptions = KvOptions {
    cache_bytes: 1 << 20,
    write_buffer_bytes: 1 << 20,
};

fn store() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    drop(Kv::create(dir.path(), &OPTIONS).unwrap());
    check_files(dir.path()).unwrap();
    dir
}

fn check_rejected(data: &Path, path: &str) {
    let message = check_files(data).unwrap_err().to_string();
    assert!(message.contains(path), "{message}");
}

#[test]
fn foreign_names_are_rejected_with_their_path() {
    for name in [
        "keyspaces/lost+found/",
        "keyspaces/5/",
        "keyspaces/1/tables/.nfs000123",
        "keyspaces/1/tables/lost+found/",
        "keyspaces/2/video.mp4",
        "keyspaces/01/",
        "keyspaces/+2/",
        "keyspaces/1/v06",
        "keyspaces/1/v2024",
        "keyspaces/1/tables/03",
        "keyspaces/1/tables/20240101",
        "keyspaces/3/blobs",
        "notes.jnl",
        "00.jnl",
        "7.JNL",
        "8.jnl/",
    ] {
        let dir = store();
        let path = dir.path().join(name);
        if name.ends_with('/') {
            fs::create_dir(&path).unwrap();
        } else {
            fs::write(&path, "x").unwrap();
        }
        check_rejected(dir.path(), name.trim_end_matches('/'));
        assert!(path.exists());
    }
}

#[test]
fn names_that_the_key_value_store_ignores_are_ignored() {
    let dir = store();
    for name in [
        "notes.txt",
        "keyspaces/notes",
        "keyspaces/1/tables/.DS_Store",
        "keyspaces/1/notes",
    ] {
        fs::write(dir.path().join(name), "x").unwrap();
    }
    check_files(dir.path()).unwrap();
    drop(Kv::open(dir.path(), &OPTIONS).unwrap());
    assert!(dir.path().join("keyspaces/1/notes").exists());
}

#[test]
fn large_values_are_rejected_unless_their_folder_is_empty() {
    for name in ["5", "foo", "folder/"] {
        let dir = store();
        let blobs = dir.path().join("keyspaces/3/blobs");
        fs::create_dir(&blobs).unwrap();
        check_files(dir.path()).unwrap();
        drop(Kv::open(dir.path(), &OPTIONS).unwrap());
        if name.ends_with('/') {
            fs::create_dir(blobs.join(name)).unwrap();
        } else {
            fs::write(blobs.join(name), "x").unwrap();
        }
        check_rejected(
            dir.path(),
            &format!("keyspaces/3/blobs/{}", name.trim_end_matches('/')),
        );
    }
}

/// A complete or partial list or sorted file that a crash left is removed by the key-value store.
#[test]
fn leftovers_of_a_crash_are_accepted() {
    let dir = store();
    let meta = dir.path().join("keyspaces/0");
    let list = fs::read(meta.join(format!("v{}", Current::read(&meta).unwrap().number))).unwrap();
    let table = sorted_files(&meta).pop().unwrap().1;
    let table = fs::read(table).unwrap();
    let leftovers = [(meta.join("v999"), list), (meta.join("tables/999"), table)];
    for (path, whole) in leftovers {
        let zeroed = [vec![0; 512], whole[..100].to_vec()].concat();
        let parts = [0, 1, 2, 3, 4, 100, whole.len()];
        let parts = parts.iter().map(|end| whole[..*end].to_vec());
        for left in parts.chain([zeroed]) {
            fs::write(&path, &left).unwrap();
            check_files(dir.path()).unwrap();
            drop(Kv::open(dir.path(), &OPTIONS).unwrap());
            assert!(!path.exists(), "{}", path.display());
        }
    }
}

#[test]
fn missing_and_truncated_sorted_files_are_rejected_with_their_path() {
    let dir = store();
    let (number, path) = sorted_files(&dir.path().join("keyspaces/0")).remove(0);
    let bytes = fs::read(&path).unwrap();
    for kept in [None, Some(0), Some(10), Some(bytes.len() - 1)] {
        match kept {
            None => fs::remove_file(&path).unwrap(),
            Some(kept) => fs::write(&path, &bytes[..kept]).unwrap(),
        }
        check_rejected(dir.path(), &format!("keyspaces/0/tables/{number}"));
        check_rejected(dir.path(), "--salvage");
    }
    fs::write(&path, &bytes).unwrap();
    check_files(dir.path()).unwrap();
}

#[cfg(unix)]
#[test]
fn pipes_are_rejected() {
    for name in ["keyspaces/1/v99", "keyspaces/1/tables/99"] {
        let dir = store();
        let path = dir.path().join(name);
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let cwd = rustix::fs::CWD;
        rustix::fs::mknodat(cwd, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        check_rejected(dir.path(), name);
    }
}

#[cfg(unix)]
#[test]
fn links_are_rejected() {
    for name in [
        "keyspaces/lost",
        "keyspaces/9",
        "keyspaces/3/tables/77",
        "keyspaces/3/v77",
    ] {
        let dir = store();
        std::os::unix::fs::symlink("/nowhere", dir.path().join(name)).unwrap();
        check_rejected(dir.path(), name);
    }
}

#[test]
fn missing_files_are_rejected() {
    for name in [
        "version",
        "keyspaces/0",
        "keyspaces/4",
        "keyspaces/1/current",
        "keyspaces/2/tables",
    ] {
        let dir = store();
        let path = dir.path().join(name);
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap();
        } else {
            fs::remove_file(&path).unwrap();
        }
        check_rejected(dir.path(), "missing");
    }
}

#[test]
fn damaged_lists_are_rejected() {
    let dir = store();
    let folder = dir.path().join("keyspaces/1");
    let list = Current::read(&folder).unwrap();
    for path in [
        folder.join(format!("v{}", list.number)),
        folder.join(CURRENT_FILE),
    ] {
        let bytes = fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            fs::write(&path, &flipped).unwrap();
            assert!(check_files(dir.path()).is_err(), "{} {at}", path.display());
            fs::write(&path, &bytes[..at]).unwrap();
            assert!(check_files(dir.path()).is_err(), "{} {at}", path.display());
        }
        fs::write(&path, &bytes).unwrap();
    }
    check_files(dir.path()).unwrap();
}
