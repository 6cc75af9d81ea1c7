//! Opening a directory with damaged files: it opens or is refused with an error, and what opens can be
//! read to the end. Never a panic, never a hang.
//!
//! The input is a list of changes to the files of a small store: which file, where, and what.

#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use floe_local::{LocalEngine, Options};
use floe_store::op::{PutItem, Scan};
use floe_store::table::{KeyKind, Projection, StreamView};
use floe_store::{Engine, Item, TableDef};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

fuzz_target!(|data: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let store = folder.path().join("store");
    copy(template(), &store);
    let files = files(&store);
    for change in data.chunks_exact(6) {
        damage(&files, change);
    }
    runtime().block_on(read_everything(&store));
});

fn runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime")
    })
}

fn options() -> Options {
    Options::new().background(false)
}

/// A store with a table, an index and a stream, flushed to files in part.
fn template() -> &'static Path {
    static TEMPLATE: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = TEMPLATE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("store");
        runtime().block_on(fill(&path)).expect("a store");
        // The fuzzer aborts in its panic hook; a panic that the engine turns into an error is none.
        std::panic::set_hook(Box::new(|_| {}));
        (folder, path)
    });
    path
}

async fn fill(path: &Path) -> floe_store::Result<()> {
    let engine = LocalEngine::open_with(path, options())?;
    let table = TableDef::builder("Things", "id", KeyKind::S)
        .global_index("by_n", [("n", KeyKind::N)], [("id", KeyKind::S)], Projection::All)
        .stream(StreamView::NewAndOldImages)
        .build()?;
    engine.create_table(table.into()).await?;
    for n in 0..50 {
        let item = Item::new().with("id", format!("item-{n}")).with("n", n % 7);
        engine.write_item(PutItem::new("Things", item).into()).await?;
    }
    engine.close()?;
    drop(engine);
    // What was only in the journal is written to files by a backup, which is a store of its own.
    let engine = LocalEngine::open_with(path, options())?;
    let copy = path.with_extension("copy");
    engine.backup(&copy)?;
    engine.close()?;
    drop(engine);
    fs::remove_dir_all(path).expect("the first store");
    fs::rename(copy, path).expect("the copy");
    let engine = LocalEngine::open_with(path, options())?;
    for n in 50..60 {
        let item = Item::new().with("id", format!("item-{n}")).with("n", n % 7);
        engine.write_item(PutItem::new("Things", item).into()).await?;
    }
    engine.close()
}

/// Copies a directory; journals without the zeros that were set aside for them.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            let mut bytes = fs::read(entry.path()).expect("a file");
            if target.extension().is_some_and(|e| e == "jnl") {
                let used = bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
                bytes.truncate(used + 64);
            }
            fs::write(target, bytes).expect("a file");
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a directory").flatten() {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

fn damage(files: &[PathBuf], change: &[u8]) {
    let [file, kind, high, low, byte, length] = *change else {
        return;
    };
    let path = &files[usize::from(file) % files.len()];
    let Ok(mut bytes) = fs::read(path) else {
        return;
    };
    let at = usize::from(u16::from_be_bytes([high, low])).min(bytes.len());
    let end = (at + usize::from(length)).min(bytes.len());
    match kind % 5 {
        0 => bytes[at..end].fill(byte),
        1 => bytes[at..end].iter_mut().for_each(|b| *b ^= byte),
        2 => bytes.truncate(at),
        3 => drop(bytes.splice(at..at, std::iter::repeat_n(byte, usize::from(length)))),
        _ => {
            let _gone = fs::remove_file(path);
            return;
        }
    }
    fs::write(path, bytes).expect("a file");
}

async fn read_everything(store: &Path) {
    let Ok(engine) = LocalEngine::open_with(store, options()) else {
        return;
    };
    for index in [None, Some("by_n".to_owned())] {
        let mut scan = Scan::new("Things");
        scan.index_name = index;
        while let Ok(page) = engine.scan(scan.clone()).await {
            scan.start_key = page.last_key;
            if scan.start_key.is_none() {
                break;
            }
        }
    }
    let _examined = engine.doctor(false);
    let item = Item::new().with("id", "new").with("n", 1);
    let _written = engine.write_item(PutItem::new("Things", item).into()).await;
    let _closed = engine.close();
}
