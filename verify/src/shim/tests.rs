//! Tests of the shim on real processes. A test runs itself again as the watched child, so that each test function is
//! both the driver and the workload.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use super::*;
use crate::disk::Trace;

mod faults;
mod fidelity;
mod power;

const CHILD: &str = "FLOE_SHIM_TEST_CHILD";

/// A directory to watch, and a parent folder for the shim's files.
struct TestFolder {
    parent: TempDir,
    shim: Shim,
}

impl TestFolder {
    fn new() -> Self {
        let parent = tempfile::tempdir().unwrap();
        fs::create_dir(parent.path().join("watched")).unwrap();
        let shim = Shim::build().unwrap();
        Self { parent, shim }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.parent.path().join(name)
    }

    fn dir(&self) -> PathBuf {
        self.path("watched")
    }

    fn watch(&self) -> Watch {
        self.shim.watch(self.dir()).count(self.path("counts"))
    }

    fn counts(&self) -> Counts {
        Counts::read(&self.path("counts")).unwrap()
    }

    fn traced(&self) -> Watch {
        let watch = self.watch().trace(self.path("trace"));
        watch.marks(self.path("marks"))
    }

    fn trace(&self) -> Trace {
        Trace::read(&self.path("trace")).unwrap()
    }
}

/// Returns the command that runs `test` as a child in a role.
fn child(module: &str, test: &str, role: &str, watch: &Watch) -> Command {
    let (_, module) = module.split_once("::").unwrap();
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", &format!("{module}::{test}")]);
    command.args(["--nocapture", "--test-threads=1"]);
    command.env(CHILD, role);
    watch.apply(&mut command).unwrap();
    command
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{}\n{stdout}\n{stderr}",
        output.status
    );
    output
}

/// Returns the role of this process if it is a child.
fn role() -> Option<String> {
    env::var(CHILD).ok()
}

/// Returns the watched directory, in a child.
fn own_dir() -> PathBuf {
    env::var_os("FLOE_SHIM_DIR").unwrap().into()
}

fn own_marks() -> fs::File {
    let path = env::var_os("FLOE_SHIM_MARKS").unwrap();
    fs::OpenOptions::new().append(true).open(path).unwrap()
}

#[test]
fn library_is_built_once() {
    let dir = tempfile::tempdir().unwrap();
    let first = Shim::build_in(dir.path(), "cc".as_ref()).unwrap();
    let modified = || fs::metadata(&first.library).unwrap().modified().unwrap();
    let built = modified();
    let again = Shim::build_in(dir.path(), "cc".as_ref()).unwrap();
    assert_eq!(again.library, first.library);
    assert_eq!(modified(), built);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn missing_or_failing_compiler_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let missing = Shim::build_in(dir.path(), "floe-no-such-cc".as_ref()).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(
        missing.to_string().contains("compiler=floe-no-such-cc"),
        "{missing}"
    );
    let failing = Shim::build_in(dir.path(), "false".as_ref()).unwrap_err();
    assert!(
        failing.to_string().contains("does not compile"),
        "{failing}"
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn sources_compile_without_warnings() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in SOURCES {
        fs::write(dir.path().join(name), text).unwrap();
    }
    for (name, _) in SOURCES.iter().filter(|(name, _)| name.ends_with(".c")) {
        let mut cc = Command::new("cc");
        cc.current_dir(dir.path()).args(FLAGS);
        succeed(cc.args(["-Werror", "-Wshadow", "-Wconversion", "-c", name]));
    }
}

#[test]
fn watch_requires_an_existing_directory_and_outside_files() {
    let folder = TestFolder::new();
    let mut command = Command::new("true");
    let missing = folder.shim.watch(folder.path("missing"));
    let error = missing.apply(&mut command).unwrap_err();
    assert!(error.to_string().contains("must exist"), "{error}");
    for inside in ["watched/trace", "watched/../watched/trace"] {
        let watch = folder.watch().trace(folder.path(inside));
        let error = watch.apply(&mut command).unwrap_err();
        assert!(error.to_string().contains("in the watched"), "{error}");
    }
}

#[test]
fn invalid_fault_specification_stops_the_process() {
    let folder = TestFolder::new();
    for spec in [
        "nonsense",
        "write-eio",
        "write-eio:0",
        "write-eio:1:2",
        "write:1",
    ] {
        let mut command = Command::new("true");
        folder.watch().apply(&mut command).unwrap();
        let output = command.env("FLOE_SHIM_FAIL", spec).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(SHIM_EXIT), "{spec}");
        assert!(stderr.contains("FLOE_SHIM_FAIL is not"), "{stderr}");
    }
}

#[test]
fn foreign_counts_and_trace_files_are_rejected() {
    let folder = TestFolder::new();
    for bytes in [&b""[..], b"FLOECNT1", b"FLOECNT2........"] {
        fs::write(folder.path("counts"), bytes).unwrap();
        let error = Counts::read(&folder.path("counts")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }
    let error = Trace::read(&folder.path("counts")).unwrap_err();
    assert!(error.to_string().contains("file="), "{error}");
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_default()
}
