//! New files and directories are private to the user, whatever the umask is.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::serve::Serving;
use crate::support::{ProgramOutput, run_command};

/// A directory and everything below it.
fn tree(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_owned()];
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            found.extend(tree(&entry.unwrap().path()));
        }
    }
    found
}

/// Checks that directories have mode 0700, and files 0600.
#[track_caller]
fn check_private(path: &Path) {
    let found = tree(path);
    for path in &found {
        let mode = std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, expected, "{}: {mode:o}", path.display());
    }
    assert!(!found.is_empty());
}

/// The program, started by a shell whose umask grants all permissions to all users.
fn floe(arguments: &[&str]) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "umask 000 && exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_floe"))
        .args(arguments)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(arguments: &[&str]) -> ProgramOutput {
    run_command(floe(arguments))
}

#[test]
fn stores_backups_and_exports_are_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let text = |name: &str| path(name).to_str().unwrap().to_owned();
    let (data, backup) = (text("data"), text("backup"));
    let (again, export) = (text("again"), text("export"));
    run(&["demo", "--no-serve", "--data", &data]).assert_success();
    run(&["backup", &backup, "--data", &data]).assert_success();
    run(&["restore", &backup, "--data", &again]).assert_success();
    run(&["export", "Product", "--to", &export, "--data", &data]).assert_success();
    for name in ["data", "backup", "again", "export"] {
        check_private(&path(name));
    }
}

#[test]
fn served_store_is_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let data = path.to_str().unwrap();
    let serving = Serving::start_command(floe(&["serve", "--listen", "0", "--data", data]));
    let made = serving.call("CreateTable", crate::serve::TABLE);
    assert!(made.starts_with("HTTP/1.1 200"), "{made}");
    serving.signal(Signal::TERM);
    assert_eq!(serving.end().0, Some(0));
    check_private(&path);
}
