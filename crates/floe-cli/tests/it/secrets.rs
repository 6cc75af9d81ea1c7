//! Secrets of `floe serve`: on the command line, in the environment, and in files.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::Signal;

use crate::serve::{Serving, check_refused, floe};

/// Writes a file that only its owner can read.
fn write_private(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

/// The arguments in the process list.
#[cfg(target_os = "linux")]
fn command_line(serving: &Serving) -> String {
    let path = format!("/proc/{}/cmdline", serving.child.id());
    let words = std::fs::read(path).unwrap();
    String::from_utf8(words).unwrap().replace('\0', " ")
}

#[cfg(target_os = "linux")]
#[test]
fn secret_on_the_command_line_is_hidden() {
    for secret in [
        &["--secret-key", "top-secret"][..],
        &["--secret-key=top-secret"],
    ] {
        let serving = Serving::start(&[&["--memory", "--access-key", "a"], secret].concat());
        let line = command_line(&serving);
        let expected = "serve --listen 0 --memory --access-key a ";
        assert!(line.ends_with(expected), "{line}");
        let response = serving.call("ListTables", "{}");
        assert!(response.contains("Signature expired: "), "{response}");
        serving.signal(Signal::TERM);
        let (code, _, stderr) = serving.end();
        assert_eq!(code, Some(0));
        let warning = "floe: other users of this machine can see a secret on the command line: set FLOE_SECRET_KEY or \
                       use --keys instead of --secret-key";
        let warnings = stderr.lines().filter(|line| *line == warning);
        assert_eq!(warnings.count(), 1, "{stderr}");
        assert!(!stderr.contains("top-secret"), "{stderr}");
    }
}

#[test]
fn secret_in_the_environment_needs_no_warning() {
    let mut command = floe(&["serve", "--memory", "--listen", "0", "--access-key", "a"]);
    command.env("FLOE_SECRET_KEY", "secret-b");
    let serving = Serving::start_command(command);
    serving.signal(Signal::TERM);
    let (code, _, stderr) = serving.end();
    assert_eq!(code, Some(0));
    assert!(!stderr.contains("other users"), "{stderr}");
}

#[test]
fn keys_are_read_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    let keys = path.to_str().unwrap();
    write_private(&path, "# the app\nAPP secret\n\nOPS  other\n");
    let serving = Serving::start(&["--memory", "--keys", keys]);
    let response = serving.call("ListTables", "{}");
    assert!(response.contains("Signature expired: "), "{response}");
    drop(serving);
    for (text, words) in [
        ("", "there are no keys"),
        ("a\n", "line=1"),
        ("a b\nc d e\n", "line=2"),
    ] {
        write_private(&path, text);
        check_refused(&["serve", "--memory", "--keys", keys], 1, &[words]);
    }
    check_refused(
        &["serve", "--memory", "--keys", "/nowhere"],
        1,
        &["the keys cannot be read"],
    );
}

#[test]
fn keys_that_other_users_can_read_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    let keys = path.to_str().unwrap();
    let serve = ["serve", "--memory", "--keys", keys];
    write_private(&path, "APP secret\n");
    for (mode, shown) in [(0o644, "0644"), (0o640, "0640"), (0o604, "0604")] {
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let mode = format!("path={keys} mode={shown}");
        let advice = format!("chmod 600 {keys}");
        check_refused(&serve, 1, &[&mode, &advice]);
    }
    std::fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
    drop(Serving::start(&serve[1..]));
}

#[test]
fn keys_must_be_in_a_regular_file() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().to_str().unwrap();
    for path in [directory, "/dev/null"] {
        check_refused(
            &["serve", "--memory", "--keys", path],
            1,
            &["not in a regular file", path],
        );
    }
}
