//! Keeps secrets from other users of the machine: out of the process list, and in private files.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::Path;

use crate::{Failure, Result, note};

/// The command that takes a secret.
const COMMAND: &str = "serve";

/// The flag for the secret.
const FLAG: &str = "--secret-key";

/// The environment variable that is read instead of the flag.
pub(super) const VARIABLE: &str = "FLOE_SECRET_KEY";

/// Moves a secret from the arguments of this process into its environment, which other users cannot see. Re-executes the
/// program in the same process, so this must run first.
pub(super) fn hide() {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let Some(secret) = take_secret(&mut arguments) else {
        return;
    };
    note(&format!(
        "other users of this machine can see a secret on the command line: set {VARIABLE} or use --keys instead of {FLAG}"
    ));
    restart(&arguments, &secret);
}

/// Removes the flag and its secret. Does not change arguments that are rejected later: without a secret, or with two.
fn take_secret(arguments: &mut Vec<OsString>) -> Option<OsString> {
    if arguments.get(1)? != COMMAND {
        return None;
    }
    let options = arguments.iter().position(|word| word == "--");
    let options = arguments.get(..options.unwrap_or(arguments.len()))?;
    let mut found = options.iter().enumerate().filter(|(_, word)| is_flag(word));
    let (at, word) = found.next()?;
    if found.next().is_some() {
        return None;
    }
    let (secret, words) = if word == FLAG {
        (options.get(at + 1)?.clone(), 2)
    } else {
        (attached(word)?, 1)
    };
    if secret.is_empty() {
        return None;
    }
    arguments.drain(at..at + words);
    Some(secret)
}

fn is_flag(word: &OsStr) -> bool {
    let rest = word.as_encoded_bytes().strip_prefix(FLAG.as_bytes());
    rest.is_some_and(|rest| matches!(rest, [] | [b'=', ..]))
}

/// The secret in `--secret-key=SECRET`. `None` if it is not UTF-8, which is rejected later.
fn attached(word: &OsStr) -> Option<OsString> {
    let rest = word.to_str()?.strip_prefix(FLAG)?;
    rest.strip_prefix('=').map(OsString::from)
}

/// Re-executes the program with other arguments. Returns only on failure.
#[cfg(unix)]
fn restart(arguments: &[OsString], secret: &OsStr) {
    use std::os::unix::process::CommandExt;

    let Some((name, rest)) = arguments.split_first() else {
        return;
    };
    let error = match std::env::current_exe() {
        Ok(program) => std::process::Command::new(program)
            .arg0(name)
            .args(rest)
            .env(VARIABLE, secret)
            .exec(),
        Err(error) => error,
    };
    note(&format!(
        "the secret remains visible on the command line: {error}"
    ));
}

#[cfg(not(unix))]
fn restart(_: &[OsString], _: &OsStr) {}

/// Reads a file of secrets. Rejects files that other users can read, and anything but regular files.
pub(super) fn read_private(path: &Path) -> Result<String> {
    let failed = |error| {
        let shown = path.display();
        Failure::failed(format!("the keys cannot be read: {error}: path={shown}"))
    };
    // Checked before opening, because opening a pipe waits for its writer, and after, because the path may have been replaced.
    check_private(path, &std::fs::metadata(path).map_err(failed)?)?;
    let mut file = File::open(path).map_err(failed)?;
    check_private(path, &file.metadata().map_err(failed)?)?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

fn check_private(path: &Path, metadata: &Metadata) -> Result {
    let shown = path.display();
    if !metadata.is_file() {
        return Err(Failure::failed(format!(
            "the keys are not in a regular file: path={shown}"
        )));
    }
    if let Some(mode) = exposed_mode(metadata) {
        return Err(Failure::failed(format!(
            "other users of this machine can read the keys: path={shown} mode={mode:04o}; run `chmod 600 {shown}`"
        )));
    }
    Ok(())
}

/// The mode of a file, if its group or other users have access.
#[cfg(unix)]
fn exposed_mode(metadata: &Metadata) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;

    let mode = metadata.permissions().mode() & 0o7777;
    (mode & 0o077 != 0).then_some(mode)
}

#[cfg(not(unix))]
fn exposed_mode(_: &Metadata) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The secret removed from a command line, and the remaining line.
    fn take(line: &str) -> (Option<String>, String) {
        let mut arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let secret = take_secret(&mut arguments);
        let secret = secret.map(|secret| secret.into_string().unwrap());
        let left = arguments.join(OsStr::new(" "));
        (secret, left.into_string().unwrap())
    }

    #[test]
    fn secret_is_removed_in_both_forms() {
        for line in [
            "floe serve --access-key a --secret-key x --memory",
            "floe serve --access-key a --secret-key=x --memory",
        ] {
            let left = "floe serve --access-key a --memory".to_owned();
            assert_eq!(take(line), (Some("x".to_owned()), left));
        }
        let (secret, _) = take("floe serve --secret-key=a=b");
        assert_eq!(secret.as_deref(), Some("a=b"));
    }

    #[test]
    fn other_command_lines_are_unchanged() {
        for line in [
            "floe",
            "floe serve --memory",
            "floe serve --secret-key",
            "floe serve --secret-key=",
            "floe serve --secret-keys x",
            "floe serve --secret-key x --secret-key=y",
            "floe serve -- --secret-key x",
            "floe table list --secret-key x",
        ] {
            assert_eq!(take(line), (None, line.to_owned()));
        }
    }
}
