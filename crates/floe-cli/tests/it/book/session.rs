//! A shell as the reader of a page has it: commands run one after the other, and what goes on goes on.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};

use tempfile::TempDir;

use super::page::Command;
use super::stage;
use crate::world;

/// Where a server listens for the reader.
const ADDRESS: &str = "http://127.0.0.1:8000";

/// Set for the process that is the program of the reader.
const PLAYED: &str = "FLOE_BOOK_PROGRAM";

fn spawn(mut process: Process) -> Child {
    process
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    world::spawn(process)
}

/// A process that goes on; killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Whether this process is the program of the reader.
pub(crate) fn is_played() -> bool {
    std::env::var_os(PLAYED).is_some()
}

/// Runs the program of `ten-minutes.md` in a folder; what it prints.
pub(crate) fn played(folder: &Path) -> Result<String, String> {
    let mut process = Process::new(std::env::current_exe().unwrap());
    process
        .args([
            "--exact",
            "book::the_program_of_ten_minutes_can_be_run_twice",
            "--nocapture",
        ])
        .env(PLAYED, "1")
        .current_dir(folder);
    let output = spawn(process).wait_with_output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = stdout
        .lines()
        .find_map(|line| line.find("tea left").map(|at| line[at..].to_owned()));
    match (output.status.success(), told) {
        (true, Some(told)) => Ok(told),
        _ => Err(stdout + &String::from_utf8_lossy(&output.stderr)),
    }
}

/// The shell of a page, in a folder of its own.
pub(crate) struct Session {
    page: String,
    folder: TempDir,
    /// Where the server is that was started last.
    address: Option<String>,
    /// What the environment says.
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

    /// A server in place of Amazon DynamoDB, with a feed and a group that has parked a stream.
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

    /// Runs a command, if that is one for here.
    pub(crate) fn run(&mut self, command: &Command) -> Option<Result<(), String>> {
        if (self.page.as_str(), command.line.as_str()) == ("docs/ten-minutes.md", "cargo run") {
            let told = played(self.folder.path()).map(|line| vec![line]);
            return Some(told.and_then(|told| compare(&told, &command.printed)));
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
            // The reader is asked.
            words.push("--yes");
        }
        Some(match is_endless {
            true => self.start_and_compare(&words, command),
            false => self.finish(&words).and_then(|(stdout, stderr)| {
                let printed = command.printed.iter();
                let printed = printed.filter(|line| !line.starts_with("floe: is that meant?"));
                let printed: Vec<String> = printed.cloned().collect();
                let told = match command.is_console {
                    true => [stderr, stdout].concat(),
                    false => stdout,
                };
                compare(&told, &printed)
            }),
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

    /// Runs a command to its end: the lines that it prints, to standard output and to standard error.
    fn finish(&self, words: &[&str]) -> Result<(Vec<String>, Vec<String>), String> {
        let output = spawn(self.floe(words)).wait_with_output().unwrap();
        let lines = |bytes: &[u8]| -> Vec<String> {
            let text = String::from_utf8_lossy(bytes);
            text.lines().map(str::to_owned).collect()
        };
        let (stdout, stderr) = (lines(&output.stdout), lines(&output.stderr));
        match output.status.success() {
            true => Ok((stdout, stderr)),
            false => Err(format!("{:?} {stdout:?} {stderr:?}", output.status)),
        }
    }

    /// Starts a command that goes on, and compares the first line that it prints.
    fn start_and_compare(&mut self, words: &[&str], command: &Command) -> Result<(), String> {
        let is_server = words.first() == Some(&"serve");
        let free_port: &[&str] = match is_server && !words.contains(&"--listen") {
            true => &["--listen", "0"],
            false => &[],
        };
        let told = self.start(&[words, free_port].concat())?;
        match command.printed.first() {
            Some(expected) => compare(&[told], std::slice::from_ref(expected)),
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

/// Compares what was printed with what the page shows, if it shows anything.
fn compare(told: &[String], shown: &[String]) -> Result<(), String> {
    let masked =
        |lines: &[String]| -> Vec<String> { lines.iter().map(|line| mask(line)).collect() };
    match shown.is_empty() || masked(told) == masked(shown) {
        true => Ok(()),
        false => Err(format!("shown={shown:#?} told={told:#?}")),
    }
}

/// A line without its numbers and without where a store is, which differ from run to run.
fn mask(line: &str) -> String {
    let line = match line.strip_prefix("floe: indexing ") {
        Some(rest) => rest.split(" (").next().unwrap_or(rest),
        None => line,
    };
    let mut masked = String::new();
    for letter in line.chars() {
        match letter.is_ascii_digit() {
            true if masked.ends_with('0') => {}
            true => masked.push('0'),
            false => masked.push(letter),
        }
    }
    masked
}

#[test]
fn what_differs_is_masked_and_nothing_else() {
    assert_eq!(mask("tail=3@112 age=4"), "tail=0@0 age=0");
    assert_eq!(mask("http://127.0.0.1:8000"), "http://0.0.0.0:0");
    assert_eq!(mask("floe: indexing a into b (name: 0, x)"), "a into b");
    assert!(compare(&["tea left: 8".to_owned()], &["tea: 8".to_owned()]).is_err());
}
