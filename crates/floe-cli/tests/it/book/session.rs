//! The shell of a reader: runs the commands of a page one after the other; servers and followers keep running.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};

use tempfile::TempDir;

use super::page::Command;
use super::stage;
use crate::support;

/// The address of servers on the pages.
const ADDRESS: &str = "http://127.0.0.1:8000";

/// Set in the environment of the process that runs the reader's program.
const READER_PROGRAM: &str = "FLOE_BOOK_PROGRAM";

fn spawn(mut process: Process) -> Child {
    process
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    support::spawn(process)
}

/// A process that keeps running; killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Whether this process runs the reader's program.
pub(crate) fn is_reader_program() -> bool {
    std::env::var_os(READER_PROGRAM).is_some()
}

/// Runs the program of `ten-minutes.md` in a directory. Returns its output.
pub(crate) fn run_reader_program(folder: &Path) -> Result<String, String> {
    let mut process = Process::new(std::env::current_exe().unwrap());
    process
        .args([
            "--exact",
            "book::ten_minutes_program_can_be_run_twice",
            "--nocapture",
        ])
        .env(READER_PROGRAM, "1")
        .current_dir(folder);
    let output = spawn(process).wait_with_output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let printed = stdout
        .lines()
        .find_map(|line| line.find("tea left").map(|at| line[at..].to_owned()));
    match (output.status.success(), printed) {
        (true, Some(printed)) => Ok(printed),
        _ => Err(stdout + &String::from_utf8_lossy(&output.stderr)),
    }
}

/// The shell of a page, in a temporary directory.
pub(crate) struct Session {
    page: String,
    folder: TempDir,
    /// The address of the last started server.
    address: Option<String>,
    /// The endpoint in the environment of commands.
    endpoint: Option<String>,
    running: Vec<Running>,
}

impl Session {
    pub(crate) fn new(page: &str) -> Self {
        let mut session = Self {
            page: page.to_owned(),
            folder: tempfile::tempdir().unwrap(),
            address: None,
            endpoint: None,
            running: Vec::new(),
        };
        match page {
            "docs/guides/graph.md" | "docs/moving/rynodb.md" => {
                stage::graphs(&session.folder.path().join("data"));
            }
            "docs/guides/registry.md" => stage::registry(&session.folder.path().join("data")),
            "docs/operating-the-feed.md" => session.stage_feed(),
            _ => {}
        }
        session
    }

    /// Starts a server in place of Amazon DynamoDB, with a feed and a group that has parked a stream.
    fn stage_feed(&mut self) {
        self.start(&["serve", "--memory", "--listen", "0"]).unwrap();
        let address = self.address.clone().unwrap();
        stage::feed(&address, || {
            let words = [
                "indexer",
                "--table",
                "shop",
                "--once",
                "--endpoint",
                &address,
            ];
            self.finish(&words).unwrap();
        });
        self.endpoint = Some(address);
    }

    /// Runs a command of `floe` or the reader's program. `None` for other commands.
    pub(crate) fn run(&mut self, command: &Command) -> Option<Result<(), String>> {
        if (self.page.as_str(), command.line.as_str()) == ("docs/ten-minutes.md", "cargo run") {
            let actual = run_reader_program(self.folder.path()).map(|line| vec![line]);
            return Some(actual.and_then(|actual| compare(&actual, &command.printed)));
        }
        let line = command
            .line
            .replace("cargo run --release --bin floe --", "floe");
        let words = line.strip_prefix("floe ")?;
        let address = self.address.as_deref().unwrap_or(ADDRESS);
        let words = words.replace(ADDRESS, address);
        let words = words.split(' ').map(|word| word.trim_matches('\''));
        let mut words: Vec<&str> = words.collect();
        let is_endless = match words.first() {
            Some(&"serve") => true,
            Some(&"indexer") => !words.contains(&"--once"),
            _ => words.contains(&"--follow"),
        };
        if words.contains(&"--set") && !words.contains(&"--yes") {
            // The reader confirms at the terminal.
            words.push("--yes");
        }
        Some(if is_endless {
            self.start_and_compare(&words, command)
        } else {
            self.finish(&words).and_then(|(stdout, stderr)| {
                let expected = command.printed.iter();
                let expected = expected.filter(|line| !line.ends_with(" continue? [y/N] y"));
                let expected: Vec<String> = expected.cloned().collect();
                let actual = if command.is_console {
                    [stderr, stdout].concat()
                } else {
                    stdout
                };
                compare(&actual, &expected)
            })
        })
    }

    fn floe(&self, words: &[&str]) -> Process {
        let mut process = Process::new(env!("CARGO_BIN_EXE_floe"));
        process
            .args(words)
            .env_clear()
            .current_dir(self.folder.path());
        if let Some(endpoint) = &self.endpoint {
            process.env("FLOE_ENDPOINT", endpoint);
        }
        process
    }

    /// Runs a command to its end. Returns the lines of standard output and standard error.
    fn finish(&self, words: &[&str]) -> Result<(Vec<String>, Vec<String>), String> {
        let output = spawn(self.floe(words)).wait_with_output().unwrap();
        let lines = |bytes: &[u8]| -> Vec<String> {
            let text = String::from_utf8_lossy(bytes);
            text.lines().map(str::to_owned).collect()
        };
        let (stdout, stderr) = (lines(&output.stdout), lines(&output.stderr));
        if output.status.success() {
            Ok((stdout, stderr))
        } else {
            Err(format!("{:?} {stdout:?} {stderr:?}", output.status))
        }
    }

    /// Starts a command that keeps running, and compares the first line of its output.
    fn start_and_compare(&mut self, words: &[&str], command: &Command) -> Result<(), String> {
        let is_server = words.first() == Some(&"serve");
        let free_port: &[&str] = if is_server && !words.contains(&"--listen") {
            &["--listen", "0"]
        } else {
            &[]
        };
        let printed = self.start(&[words, free_port].concat())?;
        match command.printed.first() {
            Some(expected) => compare(&[printed], std::slice::from_ref(expected)),
            None => Ok(()),
        }
    }

    fn start(&mut self, words: &[&str]) -> Result<String, String> {
        let mut child = spawn(self.floe(words));
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        if line.is_empty() {
            let output = child.wait_with_output().unwrap();
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        child.stdout = Some(stdout.into_inner());
        self.running.push(Running(child));
        if words.first() == Some(&"serve") {
            let address = line.split(' ').find(|word| word.starts_with("http://"));
            self.address = address.map(str::to_owned);
        }
        Ok(line.trim_end().to_owned())
    }
}

/// Compares the output with the output on the page, if the page shows any.
fn compare(actual: &[String], expected: &[String]) -> Result<(), String> {
    let masked =
        |lines: &[String]| -> Vec<String> { lines.iter().map(|line| mask(line)).collect() };
    if expected.is_empty() || masked(actual) == masked(expected) {
        Ok(())
    } else {
        Err(format!("expected={expected:#?} actual={actual:#?}"))
    }
}

/// A line without its numbers and the location of the store, which differ between runs.
fn mask(line: &str) -> String {
    let line = match line.strip_prefix("floe: indexing ") {
        Some(rest) => rest.split(" (").next().unwrap_or(rest),
        None => line,
    };
    let mut masked = String::new();
    for c in line.chars() {
        if !c.is_ascii_digit() {
            masked.push(c);
        } else if !masked.ends_with('0') {
            masked.push('0');
        }
    }
    masked
}

#[test]
fn only_numbers_and_locations_are_masked() {
    assert_eq!(mask("tail=3@112 age=4"), "tail=0@0 age=0");
    assert_eq!(mask("http://127.0.0.1:8000"), "http://0.0.0.0:0");
    assert_eq!(mask("floe: indexing a into b (name: 0, x)"), "a into b");
    assert!(compare(&["tea left: 8".to_owned()], &["tea: 8".to_owned()]).is_err());
}
