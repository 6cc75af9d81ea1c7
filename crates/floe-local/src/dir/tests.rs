//! Which directories are opened, created, or rejected and left unchanged.

use super::staging::MARKER_FILE;
use super::*;

/// Creates a fake key-value store with a recognizable file.
fn make(data: &Path) -> Result<()> {
    fs::create_dir(data).unwrap();
    fs::create_dir(data.join("keyspaces")).unwrap();
    fs::write(data.join("0.jnl"), "").unwrap();
    fs::write(data.join("made"), "by the test").unwrap();
    Ok(())
}

fn open(path: &Path) -> Result<Directory> {
    Directory::open(path, make)
}

/// The paths, types and contents of all files below a path.
fn tree(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_dir() {
            found.push((path.clone(), b"directory".to_vec()));
            found.extend(tree(&path));
        } else if kind.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            found.push((path, target.to_string_lossy().into_owned().into_bytes()));
        } else {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

/// Checks that a directory is rejected with a message that contains these words, and is unchanged.
fn check_rejected(dir: &Path, words: &[&str]) {
    let before = tree(dir);
    let message = open(dir).unwrap_err().to_string();
    for word in words {
        assert!(message.contains(word), "{message}");
    }
    assert_eq!(tree(dir), before, "{message}");
}

/// A child process that is being started shares this process's open files.
#[test]
fn lock_is_released_even_if_the_open_file_is_shared() {
    let dir = tempfile::tempdir().unwrap();
    let directory = open(dir.path()).unwrap();
    let shared = directory.lock.as_ref().unwrap().file.0.try_clone().unwrap();
    drop(directory);
    let staging = Staging::create(&dir.path().join("staging")).unwrap();
    let shared_marker = staging.marker.0.try_clone().unwrap();
    drop(staging);
    drop(open(dir.path()).unwrap());
    assert!(
        Staging::find(&dir.path().join("staging"))
            .unwrap()
            .is_some()
    );
    drop((shared, shared_marker));
}

#[test]
fn directory_in_use_is_rejected_with_the_process_id() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path()).unwrap();
    let message = open(dir.path()).unwrap_err().to_string();
    let process = format!("process={}", std::process::id());
    assert!(
        message.contains("in use") && message.contains(&process),
        "{message}"
    );
    drop(first);
    open(dir.path()).unwrap();
}

#[test]
fn foreign_data_folder_is_rejected_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let train = dir.path().join("data/train");
    fs::create_dir_all(&train).unwrap();
    fs::write(train.join("set.csv"), "1").unwrap();
    check_rejected(dir.path(), &["data/", "no FORMAT", "--salvage"]);
    fs::write(dir.path().join("README"), "mine").unwrap();
    check_rejected(dir.path(), &["no FORMAT"]);
}

#[test]
fn store_without_its_format_file_is_rejected_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()).unwrap());
    fs::remove_file(dir.path().join(FORMAT_FILE)).unwrap();
    check_rejected(dir.path(), &["no FORMAT", "--salvage"]);
}

#[test]
fn directory_with_foreign_files_is_rejected() {
    for name in [
        "notes.txt",
        ".bashrc",
        "FORMAT.new",
        "SEAL",
        "RELAXED",
        "data",
    ] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(name), "mine").unwrap();
        check_rejected(dir.path(), &[name]);
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(LOCK_FILE), "an appointment").unwrap();
    check_rejected(dir.path(), &["found=LOCK"]);
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join(STAGING_DIR)).unwrap();
    fs::write(dir.path().join(STAGING_DIR).join("thesis"), "mine").unwrap();
    check_rejected(dir.path(), &[STAGING_DIR]);
}

#[test]
fn unsupported_and_damaged_formats_are_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let format = dir.path().join(FORMAT_FILE);
    for (text, words) in [
        ("floe-local 99\n", "format=99"),
        ("floe-local 1\n", "older version"),
        ("floe-local 2", "damaged"),
        ("something else", "damaged"),
        ("", "damaged"),
        ("floe-local 2\n", "no data/"),
    ] {
        fs::write(&format, text).unwrap();
        check_rejected(dir.path(), &[words]);
    }
    fs::remove_file(&format).unwrap();
    fs::create_dir(&format).unwrap();
    check_rejected(dir.path(), &["not a file"]);
}

#[test]
fn empty_directory_and_root_of_a_file_system_become_a_store() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join(LOST_AND_FOUND)).unwrap();
    fs::write(dir.path().join(LOCK_FILE), "123").unwrap();
    let store = open(dir.path()).unwrap();
    assert!(store.data().join("made").exists());
    assert!(!dir.path().join(STAGING_DIR).exists());
    assert!(Directory::is_store(dir.path()).unwrap());
}

#[test]
fn unfinished_store_is_created_again() {
    let dir = tempfile::tempdir().unwrap();
    let failed = Directory::open(dir.path(), |data| {
        make(data)?;
        Err(Error::Storage("killed".to_owned()))
    });
    failed.unwrap_err();
    assert!(dir.path().join(STAGING_DIR).join("data/made").exists());
    open(dir.path()).unwrap();
    assert!(!dir.path().join(STAGING_DIR).exists());
    assert!(dir.path().join("data/made").exists());
}

#[test]
fn creation_continues_after_a_crash_between_any_two_steps() {
    for step in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        let staging = Staging::create(&dir.path().join(STAGING_DIR)).unwrap();
        if step >= 1 {
            make(&staging.data()).unwrap();
        }
        if step >= 2 {
            staging.complete().unwrap();
        }
        if step >= 3 {
            fs::rename(staging.data(), dir.path().join(DATA_DIR)).unwrap();
        }
        if step >= 4 {
            let from = staging.path().join(FORMAT_FILE);
            fs::rename(from, dir.path().join(FORMAT_FILE)).unwrap();
        }
        drop(staging);
        let store = open(dir.path()).unwrap();
        assert!(store.data().join("made").exists(), "step={step}");
        assert!(Directory::is_store(dir.path()).unwrap(), "step={step}");
    }
}

#[test]
fn only_leftovers_of_floe_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()).unwrap());
    let staging = Staging::create(&dir.path().join(STAGING_DIR)).unwrap();
    staging.complete().unwrap();
    drop(staging);
    drop(open(dir.path()).unwrap());
    assert!(!dir.path().join(STAGING_DIR).exists());
    let foreign = dir.path().join(STAGING_DIR).join("thesis");
    fs::create_dir(dir.path().join(STAGING_DIR)).unwrap();
    fs::write(&foreign, "mine").unwrap();
    drop(open(dir.path()).unwrap());
    assert!(foreign.exists());
}

/// The process that creates a store holds the lock of its marker, which an inspection must not take away.
#[test]
fn inspection_does_not_disturb_the_creation_of_a_store() {
    let dir = tempfile::tempdir().unwrap();
    let inspected = || {
        let before = tree(dir.path());
        let content = inspect(dir.path()).unwrap();
        assert_eq!(tree(dir.path()), before);
        content
    };
    let made = Directory::open(dir.path(), |data| {
        assert_eq!(inspected(), Content::Nothing);
        let message = open(dir.path()).unwrap_err().to_string();
        assert!(message.contains("in use"), "{message}");
        make(data)?;
        assert_eq!(inspected(), Content::Nothing);
        Ok(())
    });
    drop(made.unwrap());
    assert_eq!(inspected(), Content::Store);
    assert!(!dir.path().join(STAGING_DIR).exists());
}

#[test]
fn concurrent_creators_of_a_store_are_serialized() {
    for round in 0..100 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        let opened: Vec<Result<Directory>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| open(&path))).collect();
            threads.into_iter().map(|it| it.join().unwrap()).collect()
        });
        let rejected: Vec<_> = opened.iter().filter_map(|it| it.as_ref().err()).collect();
        assert_eq!(rejected.len(), 3, "round={round} {rejected:?}");
        for error in rejected {
            assert!(error.to_string().contains("in use"), "{error}");
        }
        assert!(path.join("data/made").exists() && !path.join(STAGING_DIR).exists());
    }
}

#[test]
fn foreign_or_used_staging_directory_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new");
    let first = Staging::create(&path).unwrap();
    let message = Staging::create(&path).unwrap_err().to_string();
    assert!(message.contains("another process"), "{message}");
    drop(first);
    fs::write(path.join("left"), "behind").unwrap();
    let again = Staging::create(&path).unwrap();
    assert!(!path.join("left").exists());
    again.remove().unwrap();
    assert!(!path.exists());

    fs::create_dir(&path).unwrap();
    fs::write(path.join("data"), "mine").unwrap();
    let message = Staging::create(&path).unwrap_err().to_string();
    assert!(message.contains("did not create"), "{message}");
    assert!(path.join("data").exists());
    fs::write(path.join(MARKER_FILE), "not the marker").unwrap();
    assert!(Staging::create(&path).is_err());
    fs::write(path.join(MARKER_FILE), "").unwrap();
    assert!(Staging::create(&path).is_err());
    assert!(path.join("data").exists());
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn directories_and_files_are_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        let store = open(&path).unwrap();
        store.seal().unwrap();
        store.set_relaxed(true).unwrap();
        assert_eq!(mode(&path), 0o700);
        for name in [LOCK_FILE, FORMAT_FILE, SEAL_FILE, RELAXED_FILE] {
            assert_eq!(mode(&path.join(name)), 0o600, "{name}");
        }
    }

    #[test]
    fn lock_file_is_made_private_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, lock) = (dir.path().join("store"), dir.path().join("store/LOCK"));
        drop(open(&path).unwrap());
        fs::set_permissions(&lock, fs::Permissions::from_mode(0o666)).unwrap();
        drop(open(&path).unwrap());
        assert_eq!(mode(&lock), 0o600);
        let victim = dir.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        fs::remove_file(&lock).unwrap();
        symlink(&victim, &lock).unwrap();
        assert!(open(&path).is_err());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    }

    /// A link with one of floe's file names may point to anything.
    #[test]
    fn nothing_is_written_through_links() {
        for is_hard in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let (path, victim) = (dir.path().join("store"), dir.path().join("victim"));
            let link = |name: &str| {
                let link = path.join(name);
                if is_hard {
                    fs::hard_link(&victim, link).unwrap();
                } else {
                    symlink(&victim, link).unwrap();
                }
            };
            fs::write(&victim, "precious").unwrap();
            let store = open(&path).unwrap();
            link(SEAL_FILE_NEW);
            link(RELAXED_FILE);
            store.seal().unwrap();
            store.set_relaxed(true).unwrap();
            assert!(store.is_relaxed());
            store.set_relaxed(false).unwrap();
            assert!(!store.is_relaxed());
            assert!(
                fs::symlink_metadata(path.join(SEAL_FILE))
                    .unwrap()
                    .is_file()
            );
            store.check_seal().unwrap();
            drop(store);
            fs::remove_file(path.join(LOCK_FILE)).unwrap();
            link(LOCK_FILE);
            let message = open(&path).unwrap_err().to_string();
            assert!(message.contains(LOCK_FILE), "{message}");
            assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        }
        let dir = tempfile::tempdir().unwrap();
        let (path, nowhere) = (dir.path().join("store"), dir.path().join("nowhere"));
        let store = open(&path).unwrap();
        symlink(&nowhere, path.join(RELAXED_FILE)).unwrap();
        store.set_relaxed(true).unwrap();
        assert!(store.is_relaxed() && !nowhere.exists());
    }

    #[test]
    fn removed_and_replaced_directories_are_detected() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("store"), dir.path().join("other"));
        let store = open(&path).unwrap();
        let is_in_place = || store.is_in_place(|| Some(1));
        assert!(is_in_place());
        fs::rename(&path, &other).unwrap();
        assert!(!is_in_place());
        let second = open(&path).unwrap();
        assert!(!is_in_place());
        drop(second);
        fs::rename(path.join(DATA_DIR), other.join("aside")).unwrap();
        fs::remove_dir_all(&path).unwrap();
        fs::rename(&other, &path).unwrap();
        assert!(is_in_place());
        // The data of another store, and then the right one again.
        let data = path.join(DATA_DIR);
        fs::rename(&data, &other).unwrap();
        fs::rename(path.join("aside"), &data).unwrap();
        assert!(!is_in_place());
        store.seal().unwrap_err();
        fs::remove_dir_all(&data).unwrap();
        assert!(!is_in_place());
        fs::rename(&other, &data).unwrap();
        assert!(is_in_place());
        store.seal().unwrap();
    }

    #[test]
    fn removed_and_replaced_files_are_detected() {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path()).unwrap();
        let data = store.data();
        let (journal, aside) = (data.join("0.jnl"), dir.path().join("aside"));
        assert!(store.is_in_place(|| Some(1)));
        for name in ["0.jnl", "keyspaces"] {
            fs::rename(data.join(name), &aside).unwrap();
            assert!(!store.is_in_place(|| Some(1)), "{name}");
            store.seal().unwrap_err();
            fs::rename(&aside, data.join(name)).unwrap();
            assert!(store.is_in_place(|| Some(1)), "{name}");
        }
        fs::rename(&journal, &aside).unwrap();
        fs::write(&journal, "").unwrap();
        assert!(!store.is_in_place(|| Some(1)));
        fs::rename(&aside, &journal).unwrap();
        // The key-value store closes a journal, creates another one, and removes the first.
        fs::write(data.join("1.jnl"), "").unwrap();
        assert!(store.is_in_place(|| Some(2)));
        fs::remove_file(&journal).unwrap();
        assert!(!store.is_in_place(|| Some(2)));
        assert!(store.is_in_place(|| Some(1)));
        fs::rename(data.join("1.jnl"), &journal).unwrap();
        assert!(!store.is_in_place(|| Some(1)));
        assert!(!dir.path().join(SEAL_FILE).exists());
    }
}
