//! Two processes that create a staging directory at the same path. Each one opens the marker separately, as two
//! processes do, so that their locks exclude each other.

use super::*;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.tmp");
    (folder, path)
}

/// Writes a file to the directory, like a store that is being created.
fn fill(staging: &Staging, text: &str) {
    fs::create_dir(staging.data()).unwrap();
    fs::write(staging.data().join("file"), text).unwrap();
}

fn content(store: &Path) -> String {
    fs::read_to_string(store.join(DATA_DIR).join("file")).unwrap()
}

#[test]
fn creator_that_loses_its_marker_yields_to_the_other_process() {
    let (_folder, path) = folder();
    let mut other = None;
    let made = Staging::create_with(&path, &mut || {
        let staging = Staging::create(&path).unwrap();
        fill(&staging, "other");
        other = Some(staging);
    });
    let message = made.unwrap_err().to_string();
    assert!(message.contains("another process"), "{message}");
    assert_eq!(content(&path), "other");
    other.unwrap().remove().unwrap();
    assert!(!path.exists());
}

#[test]
fn published_or_removed_marker_is_not_mistaken_for_the_new_one() {
    for is_published in [true, false] {
        let (folder, path) = folder();
        let target = folder.path().join("store");
        let mut is_first = true;
        let made = Staging::create_with(&path, &mut || {
            if std::mem::take(&mut is_first) {
                let staging = Staging::create(&path).unwrap();
                fill(&staging, "other");
                if is_published {
                    staging.publish(&target).unwrap();
                } else {
                    staging.remove().unwrap();
                }
            }
        });
        let made = made.unwrap();
        fill(&made, "mine");
        if is_published {
            assert_eq!(content(&target), "other");
            assert!(!target.join(MARKER_FILE).exists());
        }
        assert_eq!(content(&path), "mine");
        made.remove().unwrap();
        assert_eq!(target.exists(), is_published);
    }
}

#[test]
fn replaced_directory_is_neither_removed_nor_published() {
    let (folder, path) = folder();
    let first = Staging::create(&path).unwrap();
    fill(&first, "first");
    fs::rename(&path, folder.path().join("aside")).unwrap();
    let second = Staging::create(&path).unwrap();
    fill(&second, "second");
    let target = folder.path().join("store");
    first.publish(&target).unwrap_err();
    assert!(!target.exists());
    let message = first.remove().unwrap_err().to_string();
    assert!(message.contains("replaced"), "{message}");
    assert_eq!(content(&path), "second");
    second.publish(&target).unwrap();
    assert_eq!(content(&target), "second");
}

#[test]
fn publishing_succeeds_if_the_marker_was_removed_by_an_opened_store() {
    let (folder, path) = folder();
    let (staging, target) = (Staging::create(&path).unwrap(), folder.path().join("store"));
    fs::remove_file(path.join(MARKER_FILE)).unwrap();
    staging.publish(&target).unwrap_err();
    drop(staging);
    fs::remove_dir_all(&path).unwrap();

    let staging = Staging::create(&path).unwrap();
    staging.publish(&target).unwrap();
    remove_marker(&target).unwrap();
    fs::write(target.join(MARKER_FILE), "a note of the user").unwrap();
    remove_marker(&target).unwrap();
    assert!(target.join(MARKER_FILE).exists());
}

#[test]
fn reading_the_state_takes_no_lock_and_changes_nothing() {
    let (_folder, path) = folder();
    assert_eq!(Staging::state(&path).unwrap(), StagingState::Unfinished);
    fs::create_dir(&path).unwrap();
    assert_eq!(Staging::state(&path).unwrap(), StagingState::Unfinished);
    let staging = Staging::create(&path).unwrap();
    fill(&staging, "x");
    assert_eq!(Staging::state(&path).unwrap(), StagingState::Unfinished);
    staging.complete().unwrap();
    fs::rename(staging.data(), path.with_extension("data")).unwrap();
    assert_eq!(Staging::state(&path).unwrap(), StagingState::Moved);
    drop(staging);
    assert_eq!(Staging::state(&path).unwrap(), StagingState::Moved);
    let taken = Staging::find(&path).unwrap().unwrap();
    assert_eq!(Staging::state(&path).unwrap(), StagingState::Moved);
    taken.remove().unwrap();
}

/// Every intermediate state of the creation must be recognized as floe's own.
#[test]
fn partly_written_marker_is_accepted() {
    let (_folder, path) = folder();
    let made = Staging::create_with(&path, &mut || {
        assert_eq!(Staging::state(&path).unwrap(), StagingState::Unfinished);
    });
    drop(made.unwrap());
    for length in 0..MARKER.len() {
        fs::write(path.join(MARKER_FILE), &MARKER[..length]).unwrap();
        assert_eq!(Staging::state(&path).unwrap(), StagingState::Unfinished);
        assert!(Staging::find(&path).unwrap().is_some());
    }
    fs::write(path.join("thesis"), "mine").unwrap();
    Staging::state(&path).unwrap_err();
    Staging::find(&path).unwrap_err();
    assert!(path.join("thesis").exists());
}

#[test]
fn only_one_of_many_creators_publishes() {
    let (folder, path) = folder();
    let target = folder.path().join("store");
    for round in 0..200 {
        let published: Vec<bool> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|n| {
                    let (path, target) = (&path, &target);
                    scope.spawn(move || {
                        let Ok(staging) = Staging::create(path) else {
                            return false;
                        };
                        let text = format!("{round}-{n}");
                        fill(&staging, &text);
                        let is_published = !target.exists() && staging.publish(target).is_ok();
                        if is_published {
                            assert_eq!(content(target), text);
                        } else {
                            staging.remove().unwrap();
                        }
                        is_published
                    })
                })
                .collect();
            threads.into_iter().map(|it| it.join().unwrap()).collect()
        });
        let count = published.iter().filter(|it| **it).count();
        assert_eq!(count, 1, "round={round}");
        assert!(!path.exists() && !target.join(MARKER_FILE).exists());
        fs::remove_dir_all(&target).unwrap();
    }
}
