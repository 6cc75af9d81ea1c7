//! Names and lists that are refused before the store below sees them.

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

fn check_refused(data: &Path, path: &str) {
    let message = check_files(data).unwrap_err().to_string();
    assert!(message.contains(path), "{message}");
}

#[test]
fn names_that_are_not_of_the_store_are_refused_with_their_path() {
    for name in [
        "keyspaces/lost+found/",
        "keyspaces/5/",
        "keyspaces/1/tables/.nfs000123",
        "keyspaces/1/tables/lost+found/",
        "keyspaces/2/video.mp4",
        "notes.jnl",
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
        check_refused(dir.path(), name.trim_end_matches('/'));
        assert!(path.exists());
    }
}

#[test]
fn names_that_the_store_below_ignores_are_ignored() {
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

#[cfg(unix)]
#[test]
fn links_are_refused() {
    for name in ["keyspaces/lost", "keyspaces/9", "keyspaces/3/tables/77"] {
        let dir = store();
        std::os::unix::fs::symlink("/nowhere", dir.path().join(name)).unwrap();
        check_refused(dir.path(), name);
    }
}

#[test]
fn missing_files_are_refused() {
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
        check_refused(dir.path(), "missing");
    }
}

#[test]
fn damaged_lists_are_refused() {
    let dir = store();
    let folder = dir.path().join("keyspaces/1");
    let list = current_list(&folder).unwrap();
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
