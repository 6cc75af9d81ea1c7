//! The kinds of directories: not stores, stores with a stray file, and directories that can become stores.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::super::tree;

/// The expected outcome of opening a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    /// The directory is rejected, and nothing in it changes.
    Refused,
    /// The directory is a store with a stray file, which is kept. The store is opened with all its items, or rejected
    /// with the path of the file.
    Kept,
    /// The directory becomes a store.
    Accepted,
}

/// A kind of directory.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) expect: Expect,
    /// The name of the stray file or directory, for [`Expect::Kept`].
    stray: &'static str,
    /// Creates the directory at [`Site::dir`].
    pub(super) make: fn(&Site<'_>) -> io::Result<()>,
}

impl Kind {
    /// Returns the path of the stray file.
    pub(super) fn stray(&self, site: &Site<'_>) -> io::Result<Option<PathBuf>> {
        Ok(match self.name {
            "store_nfs_file" => site.tables()?.map(|tables| tables.join(self.stray)),
            _ => Some(site.dir.join("data/keyspaces").join(self.stray)),
        })
    }

    /// Whether a message names an entry of the directory, or the kind of file at its path.
    pub(super) fn is_named(&self, site: &Site<'_>, message: &str) -> bool {
        let message = message.replace(&site.dir.display().to_string(), "");
        if self.expect == Expect::Kept {
            return message.contains(self.stray);
        }
        let entries = fs::read_dir(&site.dir).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let words = ["FORMAT", "a file", "ot a directory", "format="];
        let words = words.into_iter().map(str::to_owned);
        // Of a dangling link, a message can only say that it exists.
        let link = site.dir.is_symlink().then(|| "exists".to_owned());
        let words = words.chain(link);
        names.chain(words).any(|name| message.contains(&name))
    }
}

/// The paths of a trial.
pub(super) struct Site<'a> {
    /// The directory to open.
    pub(super) dir: PathBuf,
    /// Another directory, the target of links.
    pub(super) elsewhere: PathBuf,
    /// A closed store with items, to copy.
    pub(super) store: &'a Path,
}

impl Site<'_> {
    fn folder(&self, name: &str) -> io::Result<()> {
        fs::create_dir_all(self.dir.join(name))
    }

    fn file(&self, name: impl AsRef<Path>, content: &str) -> io::Result<()> {
        let path = self.dir.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, content)
    }

    /// Creates a link to a new file in the other directory.
    fn link_to_file(&self, name: &str) -> io::Result<()> {
        let target = self.elsewhere.join("precious.txt");
        fs::write(&target, "precious")?;
        self.folder("")?;
        symlink(target, self.dir.join(name))
    }

    /// Creates a folder with files in the other directory.
    fn files_elsewhere(&self) -> io::Result<PathBuf> {
        let folder = self.elsewhere.join("folder");
        fs::create_dir_all(folder.join("2024"))?;
        fs::write(folder.join("2024/january.csv"), "1,2,3")?;
        fs::write(folder.join("notes.txt"), "mine")?;
        Ok(folder)
    }

    /// Copies the store or a part of it.
    fn store(&self, part: &str, target: &str) -> io::Result<()> {
        tree::copy(&self.store.join(part), &self.dir.join(target))
    }

    /// The first folder of sorted files in the store.
    fn tables(&self) -> io::Result<Option<PathBuf>> {
        tree::find_folder(&self.dir, "tables")
    }
}

const fn foreign(name: &'static str, make: fn(&Site<'_>) -> io::Result<()>) -> Kind {
    Kind {
        name,
        expect: Expect::Refused,
        stray: "",
        make,
    }
}

const fn store_with(
    name: &'static str,
    stray: &'static str,
    make: fn(&Site<'_>) -> io::Result<()>,
) -> Kind {
    Kind {
        name,
        expect: Expect::Kept,
        stray,
        make,
    }
}

const fn control(name: &'static str, make: fn(&Site<'_>) -> io::Result<()>) -> Kind {
    Kind {
        name,
        expect: Expect::Accepted,
        stray: "",
        make,
    }
}

/// All kinds.
pub(super) const KINDS: &[Kind] = &[
    foreign("train_data", |site| {
        site.file("data/train/set.csv", "a,b\n1,2\n")?;
        site.file("train.py", "print(1)")
    }),
    foreign("data_with_files", |site| {
        site.file("data/train/set.csv", "a,b\n1,2\n")
    }),
    foreign("data_empty_and_file", |site| {
        site.folder("data")?;
        site.file("notes.txt", "mine")
    }),
    foreign("data_is_file", |site| site.file("data", "not a folder")),
    foreign("data_is_link", |site| {
        let folder = site.files_elsewhere()?;
        site.folder("")?;
        symlink(folder, site.dir.join("data"))
    }),
    foreign("data_is_dangling_link", |site| {
        site.folder("")?;
        symlink(site.elsewhere.join("nothing"), site.dir.join("data"))
    }),
    foreign("store_without_format", |site| {
        site.store("", "")?;
        fs::remove_file(site.dir.join("FORMAT"))
    }),
    foreign("store_without_format_and_lock", |site| {
        site.store("data", "data")
    }),
    foreign("store_with_damaged_format", |site| {
        site.store("", "")?;
        site.file("FORMAT", "floe-l\u{0}cal 1\n")
    }),
    foreign("store_with_empty_format", |site| {
        site.store("", "")?;
        site.file("FORMAT", "")
    }),
    foreign("store_of_newer_format", |site| {
        site.store("", "")?;
        site.file("FORMAT", "floe-local 99\n")
    }),
    foreign("format_foreign", |site| {
        site.file("FORMAT", "A4, landscape\n")
    }),
    foreign("format_is_folder", |site| {
        site.file("FORMAT/letter.txt", "Dear")
    }),
    foreign("format_is_link", |site| site.link_to_file("FORMAT")),
    foreign("format_new_only", |site| {
        site.file("FORMAT.new", "a draft\n")
    }),
    foreign("lock_only", |site| {
        site.file("LOCK", "held by another program\n")
    }),
    foreign("lock_is_link", |site| site.link_to_file("LOCK")),
    foreign("lock_is_folder", |site| site.file("LOCK/owner", "me")),
    foreign("relaxed_and_file", |site| {
        site.file("RELAXED", "")?;
        site.file("notes.txt", "mine")
    }),
    foreign("leveldb", |site| {
        site.file("CURRENT", "MANIFEST-000001\n")?;
        site.file("LOCK", "")?;
        site.file("LOG", "2024/01/01 opened\n")?;
        site.file("MANIFEST-000001", "leveldb.BytewiseComparator")?;
        site.file("000005.ldb", "sorted")
    }),
    foreign("rocksdb", |site| {
        site.file("CURRENT", "MANIFEST-000004\n")?;
        site.file("LOCK", "")?;
        site.file("IDENTITY", "1b4e28ba")?;
        site.file("OPTIONS-000007", "[Version]\n")?;
        site.file("000012.sst", "sorted")
    }),
    foreign("sqlite", |site| {
        site.file("app.db", "SQLite format 3\u{0}")?;
        site.file("app.db-wal", "")
    }),
    foreign("postgres", |site| {
        site.file("PG_VERSION", "16\n")?;
        site.folder("base")?;
        site.folder("pg_wal")
    }),
    foreign("git_repository", |site| {
        site.file(".git/HEAD", "ref: refs/heads/main\n")?;
        site.folder(".git/objects")?;
        site.file(".gitignore", "data/\n")
    }),
    foreign("cargo_project", |site| {
        site.file("Cargo.toml", "[package]\nname = \"x\"\n")?;
        site.file("src/main.rs", "fn main() {}\n")?;
        site.file("data/fixture.json", "{}")
    }),
    foreign("home", |site| {
        site.file(".bashrc", "export A=1\n")?;
        site.file(".ssh/config", "Host *\n")?;
        site.folder("Documents")?;
        let ssh = site.dir.join(".ssh");
        fs::set_permissions(ssh, Permissions::from_mode(0o700))
    }),
    foreign("dotfile_only", |site| site.file(".keep", "")),
    foreign("link_only", |site| site.link_to_file("shortcut")),
    foreign("dangling_link_only", |site| {
        site.folder("")?;
        symlink(site.elsewhere.join("nothing"), site.dir.join("shortcut"))
    }),
    foreign("fifo", |site| {
        site.folder("")?;
        fifo(&site.dir.join("queue"))
    }),
    foreign("format_is_fifo", |site| {
        site.folder("")?;
        fifo(&site.dir.join("FORMAT"))
    }),
    foreign("tables_tree", |site| site.file("tables/0", "rows")),
    foreign("fjall_at_the_top", |site| site.store("data", "")),
    foreign("store_nested", |site| site.store("", "inner")),
    foreign("named_like_the_format", |site| {
        site.file("floe-local", "floe-local 1\n")
    }),
    foreign("marker_without_content", |site| {
        site.file(".floe-new/thesis.txt", "chapter one")
    }),
    foreign("unfinished_copy_with_files", |site| {
        site.file("LOCK", "4711")?;
        site.file("data/0.jnl", "torn")?;
        site.file("data/thesis.txt", "chapter one")
    }),
    foreign("path_is_file", |site| {
        fs::write(&site.dir, "a report, not a folder")
    }),
    foreign("path_is_link", |site| {
        symlink(site.files_elsewhere()?, &site.dir)
    }),
    foreign("path_is_dangling_link", |site| {
        symlink(site.elsewhere.join("nothing/here"), &site.dir)
    }),
    foreign("name_not_utf8", |site| {
        site.file(OsStr::from_bytes(b"caf\xe9.txt"), "latin-1")
    }),
    foreign("data_name_not_utf8", |site| {
        site.file(Path::new("data").join(OsStr::from_bytes(b"\xff\xfe")), "")
    }),
    foreign("keyspaces_with_lost_found", |site| {
        site.folder("keyspaces/lost+found")
    }),
    foreign("read_only_file", |site| {
        site.file("data/archive.bin", "frozen")?;
        let path = site.dir.join("data/archive.bin");
        fs::set_permissions(path, Permissions::from_mode(0o400))
    }),
    store_with("store_lost_found", "lost+found", |site| {
        site.store("", "")?;
        site.folder("data/keyspaces/lost+found")
    }),
    store_with("store_stray_link", "backup-of-1", |site| {
        site.store("", "")?;
        let target = site.files_elsewhere()?;
        site.folder("data/keyspaces")?;
        symlink(target, site.dir.join("data/keyspaces/backup-of-1"))
    }),
    store_with("store_nfs_file", ".nfs000123", |site| {
        site.store("", "")?;
        match site.tables()? {
            Some(tables) => fs::write(tables.join(".nfs000123"), "held open"),
            None => Ok(()),
        }
    }),
    store_with("store_keyspace_twice", "01", |site| {
        site.store("", "")?;
        site.file("data/keyspaces/01/thesis.txt", "chapter one")
    }),
    store_with("store_keyspace_with_sign", "+2", |site| {
        site.store("", "")?;
        site.file("data/keyspaces/+2/thesis.txt", "chapter one")
    }),
    store_with("store_blobs", "3/blobs/5", |site| {
        site.store("", "")?;
        site.file("data/keyspaces/3/blobs/5", "precious")
    }),
    store_with("store_file_like_a_list", "1/v2024", |site| {
        site.store("", "")?;
        site.file("data/keyspaces/1/v2024", "the year")
    }),
    store_with("store_list_with_zero", "2/v06", |site| {
        site.store("", "")?;
        site.file("data/keyspaces/2/v06", "June")
    }),
    store_with("store_file_like_a_table", "1/tables/20240101", |site| {
        site.store("", "")?;
        site.file("data/keyspaces/1/tables/20240101", "a day")
    }),
    store_with("store_table_with_zero", "4/tables/03", |site| {
        site.store("", "")?;
        site.file("data/keyspaces/4/tables/03", "March")
    }),
    control("empty", |site| site.folder("")),
    control("lost_found_only", |site| {
        site.folder("lost+found")?;
        let path = site.dir.join("lost+found");
        fs::set_permissions(path, Permissions::from_mode(0o700))
    }),
    control("missing", |_| Ok(())),
];

/// Creates a named pipe. Opening it blocks.
fn fifo(path: &Path) -> io::Result<()> {
    let folder = File::open(path.parent().unwrap_or(path))?;
    let name = path.file_name().unwrap_or_default();
    let mode = rustix::fs::Mode::from_raw_mode(0o644);
    Ok(rustix::fs::mknodat(
        folder,
        name,
        rustix::fs::FileType::Fifo,
        mode,
        0,
    )?)
}
