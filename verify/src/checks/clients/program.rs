//! Runs a client program and parses its output.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::super::tool;
use super::server::{ACCESS_KEY, REGION, SECRET_KEY};
use crate::Failure;

/// A program that runs longer counts as hanging.
const DEADLINE: Duration = Duration::from_secs(600);
/// Maximum number of bytes kept of a program's standard error.
const STDERR_BYTES_MAX: u64 = 4 << 20;

/// The result of a client's run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Number of scenarios announced.
    pub(super) planned: usize,
    /// Number of scenarios that passed.
    pub(super) passed: usize,
    /// Number of comparisons made.
    pub(super) checks: u64,
    /// Failed scenarios, with the reason.
    pub(super) failed: Vec<String>,
    /// Number of kills of the server that the client requested.
    pub(super) kills: u64,
}

impl Outcome {
    /// Adds the result of another run.
    pub(super) fn add(&mut self, other: Self) {
        self.planned += other.planned;
        self.passed += other.passed;
        self.checks += other.checks;
        self.failed.extend(other.failed);
        self.kills += other.kills;
    }

    fn record(&mut self, line: Line) {
        match line {
            Line::Planned(count) => self.planned += count,
            Line::Passed { checks: 0, name } => {
                let failed = format!("{name}: the scenario made no checks");
                self.failed.push(failed);
            }
            Line::Passed { checks, .. } => {
                self.passed += 1;
                self.checks += checks;
            }
            Line::Failed(failed) => self.failed.push(failed),
            Line::Kill | Line::Other(_) => {}
        }
    }
}

/// A line that a program prints.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// The number of scenarios that follow.
    Planned(usize),
    /// A scenario passed.
    Passed { name: String, checks: u64 },
    /// A scenario failed.
    Failed(String),
    /// A request to kill the server.
    Kill,
    /// Anything else.
    Other(String),
}

impl Line {
    fn parse(text: &str) -> Self {
        Self::parse_known(text).unwrap_or_else(|| Self::Other(text.to_owned()))
    }

    fn parse_known(text: &str) -> Option<Self> {
        if text == "request=kill" {
            return Some(Self::Kill);
        }
        if let Some(count) = text.strip_prefix("scenarios=") {
            return count.parse().ok().map(Self::Planned);
        }
        let (name, result) = text.strip_prefix("scenario=")?.split_once(" result=")?;
        if let Some(why) = result.strip_prefix("failed why=") {
            return Some(Self::Failed(format!("{name}: {why}")));
        }
        let (checks, _) = result.strip_prefix("ok checks=")?.split_once(' ')?;
        Some(Self::Passed {
            name: name.to_owned(),
            checks: checks.parse().ok()?,
        })
    }
}

/// Sets the environment variables that clients read, and removes those of the user.
pub(super) fn environment(command: &mut Command) {
    let ours = std::env::vars_os().map(|(name, _)| name);
    for name in ours.filter(|name| name.to_string_lossy().starts_with("AWS_")) {
        command.env_remove(name);
    }
    command
        .env("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        .env("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
        .env("AWS_DEFAULT_REGION", REGION)
        .env("AWS_REGION", REGION)
        // No metadata service exists here, and some clients wait for it.
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("AWS_CONFIG_FILE", "/dev/null")
        .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
        .env("NO_PROXY", "127.0.0.1")
        // No bytecode files between the sources, and UTF-8 in every locale.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONUTF8", "1");
}

/// Runs a program to its end. Calls `kill` when the program requests it.
pub(super) fn run(
    mut command: Command,
    mut kill: impl FnMut() -> Result<(), Failure>,
) -> Result<Outcome, Failure> {
    environment(&mut command);
    let mut program = Program::start(&mut command)?;
    let deadline = Instant::now() + DEADLINE;
    let mut outcome = Outcome::default();
    while let Some(line) = program.receive(deadline)? {
        if line == Line::Kill {
            kill()?;
            program.send("restarted");
            outcome.kills += 1;
        }
        outcome.record(line);
    }
    let (status, stderr) = program.end()?;
    let ran = outcome.passed + outcome.failed.len();
    let is_consistent = status.success() == outcome.failed.is_empty();
    if outcome.planned != ran || ran == 0 || !is_consistent {
        let (name, stderr) = (tool::name(&command), tool::last_lines(&stderr));
        let planned = outcome.planned;
        let message = format!("{name} broke off: {status} planned={planned} ran={ran}: {stderr}");
        return Err(Failure::Broken(message));
    }
    Ok(outcome)
}

/// A running program. Dropping it kills the process.
struct Program {
    process: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Line>,
    stderr: Receiver<String>,
}

impl Program {
    fn start(command: &mut Command) -> Result<Self, Failure> {
        let process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let cannot =
            |error| Failure::Broken(format!("cannot run {}: {error}", tool::name(command)));
        let mut process = process.map_err(cannot)?;
        let (sender, lines) = mpsc::channel();
        if let Some(stdout) = process.stdout.take() {
            let mut output = BufReader::new(stdout).lines().map_while(Result::ok);
            std::thread::spawn(move || output.all(|line| sender.send(Line::parse(&line)).is_ok()));
        }
        let (sender, stderr) = mpsc::channel();
        if let Some(output) = process.stderr.take() {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                // Output read before the pipe broke is kept.
                drop(output.take(STDERR_BYTES_MAX).read_to_end(&mut bytes));
                drop(sender.send(String::from_utf8_lossy(&bytes).into_owned()));
            });
        }
        Ok(Self {
            stdin: process.stdin.take(),
            process,
            lines,
            stderr,
        })
    }

    /// Returns the next line, or `None` if the program has closed its output.
    fn receive(&self, deadline: Instant) -> Result<Option<Line>, Failure> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(Failure::broken("a client hangs")),
        }
    }

    /// Sends a line to the program. An error means that it has ended, which its status shows later.
    fn send(&mut self, line: &str) {
        if let Some(stdin) = &mut self.stdin {
            drop(writeln!(stdin, "{line}").and_then(|()| stdin.flush()));
        }
    }

    fn end(&mut self) -> Result<(std::process::ExitStatus, String), Failure> {
        let status = self.process.wait()?;
        Ok((status, self.stderr.recv().unwrap_or_default()))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Both fail only if the process has ended already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed_and_counted() {
        let passed = |checks| Line::Passed {
            name: "items".to_owned(),
            checks,
        };
        let cases = [
            ("scenarios=7", Line::Planned(7)),
            ("scenario=items result=ok checks=12 ms=3", passed(12)),
            (
                "scenario=items result=failed why=\"not so\"",
                Line::Failed("items: \"not so\"".to_owned()),
            ),
            ("request=kill", Line::Kill),
            ("hello", Line::Other("hello".to_owned())),
            ("scenarios=many", Line::Other("scenarios=many".to_owned())),
        ];
        for (text, line) in cases {
            assert_eq!(Line::parse(text), line);
        }
        let mut outcome = Outcome::default();
        outcome.record(passed(3));
        outcome.record(passed(0));
        assert_eq!((outcome.passed, outcome.checks), (1, 3));
        assert_eq!(outcome.failed, ["items: the scenario made no checks"]);
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn kill_requests_of_a_program_are_executed() {
        let script = "echo scenarios=2; echo request=kill; read reply; test \"$reply\" = restarted
            echo scenario=one result=ok checks=$((4 + $?)) ms=1; echo scenario=two result=failed why=x; exit 1";
        let mut killed = 0;
        let outcome = run(shell(script), || {
            killed += 1;
            Ok(())
        });
        let expected = Outcome {
            planned: 2,
            passed: 1,
            checks: 4,
            failed: vec!["two: x".to_owned()],
            kills: 1,
        };
        assert_eq!(outcome.unwrap(), expected);
        assert_eq!(killed, 1);
    }

    #[test]
    fn incomplete_runs_are_failures() {
        let one = "echo scenarios=1; echo scenario=one result=ok checks=1 ms=1";
        let cases = [
            "exit 0".to_owned(),
            "echo scenarios=2; echo scenario=one result=ok checks=1 ms=1".to_owned(),
            format!("{one}; echo the cause >&2; exit 3"),
        ];
        for script in cases {
            let broken = run(shell(&script), || Ok(()));
            assert!(matches!(broken, Err(Failure::Broken(_))), "{script}");
        }
        assert!(run(shell(one), || Ok(())).is_ok());
    }
}
