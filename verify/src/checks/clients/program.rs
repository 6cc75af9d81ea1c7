//! Runs the program of a client, and takes what it tells.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::super::tool;
use super::server::{ACCESS_KEY, REGION, SECRET_KEY};
use crate::Failure;

/// A program that takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(600);
/// How much of what a program says on its standard error is kept.
const STDERR_BYTES_MAX: u64 = 4 << 20;

/// What a run of a client came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Scenarios that it set out to run.
    pub(super) planned: usize,
    /// Those that went as expected.
    pub(super) passed: usize,
    /// What they compared.
    pub(super) checks: u64,
    /// Those that did not, with the reason.
    pub(super) failed: Vec<String>,
    /// How often it had the server killed.
    pub(super) kills: u64,
}

impl Outcome {
    /// Adds what another run came to.
    pub(super) fn add(&mut self, other: Self) {
        self.planned += other.planned;
        self.passed += other.passed;
        self.checks += other.checks;
        self.failed.extend(other.failed);
        self.kills += other.kills;
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Planned(count) => self.planned += count,
            Line::Passed { checks: 0, name } => {
                let failed = format!("{name}: it checked nothing");
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
    /// How many scenarios there will be.
    Planned(usize),
    /// One went as expected.
    Passed { name: String, checks: u64 },
    /// One did not.
    Failed(String),
    /// The server is to be killed.
    Kill,
    /// Anything else.
    Other(String),
}

impl Line {
    fn parse(text: &str) -> Self {
        Self::parse_known(text).unwrap_or_else(|| Self::Other(text.to_owned()))
    }

    fn parse_known(text: &str) -> Option<Self> {
        if text == "ask=kill" {
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

/// Sets up what clients look for in their environment, and takes away what whoever runs this has there.
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
        // Nobody answers there, and some clients wait for it.
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("AWS_CONFIG_FILE", "/dev/null")
        .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
        .env("NO_PROXY", "127.0.0.1")
        // Nothing is left between the sources, and whatever the locale is, text is UTF-8.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONUTF8", "1");
}

/// Runs a program to its end. `kill` is called when it asks for the server to be killed.
pub(super) fn run(
    mut command: Command,
    mut kill: impl FnMut() -> Result<(), Failure>,
) -> Result<Outcome, Failure> {
    environment(&mut command);
    let mut program = Program::start(&mut command)?;
    let deadline = Instant::now() + DEADLINE;
    let mut outcome = Outcome::default();
    while let Some(line) = program.hear(deadline)? {
        if line == Line::Kill {
            kill()?;
            program.tell("restarted");
            outcome.kills += 1;
        }
        outcome.take(line);
    }
    let (status, stderr) = program.end()?;
    let ran = outcome.passed + outcome.failed.len();
    let is_consistent = status.success() == outcome.failed.is_empty();
    if outcome.planned != ran || ran == 0 || !is_consistent {
        let (name, told) = (tool::name(&command), tool::last_lines(&stderr));
        let planned = outcome.planned;
        let message = format!("{name} broke off: {status} planned={planned} ran={ran}: {told}");
        return Err(Failure::Broken(message));
    }
    Ok(outcome)
}

/// A program that runs. It does not outlive this.
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
            let mut said = BufReader::new(stdout).lines().map_while(Result::ok);
            std::thread::spawn(move || said.all(|line| sender.send(Line::parse(&line)).is_ok()));
        }
        let (sender, stderr) = mpsc::channel();
        if let Some(said) = process.stderr.take() {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                // What it said before the pipe broke is all there is to know.
                drop(said.take(STDERR_BYTES_MAX).read_to_end(&mut bytes));
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

    /// The next line, or none if it has closed its output.
    fn hear(&self, deadline: Instant) -> Result<Option<Line>, Failure> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(Failure::broken("a client hangs")),
        }
    }

    /// Tells it something. One that has ended does not listen, which its status tells later.
    fn tell(&mut self, line: &str) {
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
        // Both fail only when it has ended already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_as_they_are_meant() {
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
            ("ask=kill", Line::Kill),
            ("hello", Line::Other("hello".to_owned())),
            ("scenarios=many", Line::Other("scenarios=many".to_owned())),
        ];
        for (text, line) in cases {
            assert_eq!(Line::parse(text), line);
        }
        let mut outcome = Outcome::default();
        outcome.take(passed(3));
        outcome.take(passed(0));
        assert_eq!((outcome.passed, outcome.checks), (1, 3));
        assert_eq!(outcome.failed, ["items: it checked nothing"]);
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_is_heard_and_answered() {
        let script = "echo scenarios=2; echo ask=kill; read answer; test \"$answer\" = restarted
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
    fn a_program_that_breaks_off_is_no_success() {
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
