//! Runs third-party programs: installers, linters, interpreters.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::{Failure, out};

/// Number of last lines of a failed program's output that are reported: they contain the cause.
const LAST_LINES_MAX: usize = 5;

/// Runs a program to its end.
pub(super) fn run(command: &mut Command) -> Result<Output, Failure> {
    let output = command.stdin(Stdio::null()).output();
    output.map_err(|error| Failure::Broken(format!("cannot run {}: {error}", name(command))))
}

/// Runs a program that must succeed.
pub(crate) fn must_succeed(command: &mut Command) -> Result<Output, Failure> {
    let output = run(command)?;
    if output.status.success() {
        Ok(output)
    } else {
        Err(failed(command, &output))
    }
}

/// Returns the failure of a program, with the end of its standard error.
pub(super) fn failed(command: &Command, output: &Output) -> Failure {
    let stderr = last_lines(&String::from_utf8_lossy(&output.stderr));
    let (name, status) = (name(command), output.status);
    Failure::Broken(format!("{name} failed: {status}: {stderr}"))
}

/// Returns the last lines of a text.
pub(super) fn last_lines(text: &str) -> String {
    let last: Vec<_> = text.lines().rev().take(LAST_LINES_MAX).collect();
    let last: Vec<_> = last.into_iter().rev().collect();
    last.join("\n")
}

/// Returns the file name of a program.
pub(super) fn name(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name();
    name.unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns cargo's target directory.
pub(crate) fn target_folder() -> Result<PathBuf, Failure> {
    let binary = std::env::current_exe()?;
    // The profile's folder is in between: `target/debug/floe-verify`; tests are one level deeper.
    let mut folders = binary.ancestors().skip(1);
    let profile = folders.find(|path| !path.ends_with("deps"));
    let folder = profile.and_then(Path::parent);
    let folder = folder.ok_or_else(|| Failure::broken("cannot find the target directory"))?;
    Ok(folder.to_owned())
}

/// Builds the program `floe` in release mode, and returns its path.
pub(super) fn build_floe() -> Result<PathBuf, Failure> {
    // Cargo sets CARGO for its child processes, so that the same toolchain is used here.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--release", "--bin", "floe"])
        // Named together, both get the same features of their dependencies, and nothing is built twice.
        .args(["--package", "floe-cli", "--package", "floe-verify"])
        .status()?;
    if !status.success() {
        return Err(Failure::broken("cannot build the program floe"));
    }
    Ok(target_folder()?.join("release").join("floe"))
}

/// Installs packages into a folder, unless exactly these versions are installed.
pub(crate) fn install(
    folder: &Path,
    versions: &str,
    what: &str,
    fetch: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let stamp = folder.join("versions");
    if fs::read_to_string(&stamp).is_ok_and(|there| there == versions) {
        return Ok(());
    }
    out::note(&format!("fetching {what}"));
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    fetch()?;
    // Written last, so that an interrupted installation is repeated.
    fs::write(stamp, versions)?;
    Ok(())
}

/// Installs the npm packages that one folder pins into another.
pub(crate) fn npm_ci(pinned: &Path, folder: &Path, what: &str) -> Result<(), Failure> {
    let versions = fs::read_to_string(pinned.join("package-lock.json"))?;
    install(folder, &versions, what, || {
        for file in ["package.json", "package-lock.json"] {
            fs::copy(pinned.join(file), folder.join(file))?;
        }
        let mut fetch = Command::new("npm");
        fetch
            .current_dir(folder)
            .args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]);
        must_succeed(&mut fetch).map(drop)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_lines_of_a_text_are_kept() {
        assert_eq!(last_lines("one\ntwo\n"), "one\ntwo");
        assert_eq!(last_lines("1\n2\n3\n4\n5\n6\n7"), "3\n4\n5\n6\n7");
    }

    #[test]
    fn installed_versions_are_not_fetched_again() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("tool");
        let mut fetched = 0;
        let mut fetch = |versions: &str, fails: bool| {
            let result = install(&folder, versions, "a tool", || {
                fetched += 1;
                fs::write(folder.join(versions), "")?;
                if fails {
                    Err(Failure::broken("no network"))
                } else {
                    Ok(())
                }
            });
            (result.is_ok(), fetched)
        };
        assert_eq!(fetch("1.0", true), (false, 1));
        assert_eq!(fetch("1.0", false), (true, 2));
        assert_eq!(fetch("1.0", false), (true, 2));
        assert_eq!(fetch("1.1", false), (true, 3));
        assert!(!folder.join("1.0").exists(), "the old version is removed");
    }
}
