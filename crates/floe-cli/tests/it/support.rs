//! Runs the program, and prepares stores for it.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use floe::Db;
use floe::db::ConnectOptions;
use floe::events::{EventData, EventStore, EventStoreOptions, Expected, StreamName};
use rustix::process::{Pid, Signal, kill_process};

/// The program, with an empty environment.
pub(crate) fn floe(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_floe"));
    command
        .args(arguments)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Held while this process has a directory open, and while it starts a program: between fork and exec, the child has all open
/// files of this process, and would keep the directory locked.
static OPEN: Mutex<()> = Mutex::new(());

pub(crate) fn spawn(mut command: Command) -> Child {
    let _guard = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    command.spawn().unwrap()
}

/// The exit code and the output of a program.
#[derive(Debug)]
pub(crate) struct ProgramOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl ProgramOutput {
    #[track_caller]
    pub(crate) fn assert_success(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// The program failed with this code, and its last line contains these words.
    #[track_caller]
    pub(crate) fn assert_failure(&self, code: i32, words: &[&str]) {
        assert_eq!(
            (self.code, self.stdout.as_str()),
            (Some(code), ""),
            "{self:?}"
        );
        let last = self.stderr.lines().last().unwrap_or_default();
        for word in words {
            assert!(last.contains(word), "{word:?} is not in {self:?}");
        }
    }
}

pub(crate) fn run(arguments: &[&str]) -> ProgramOutput {
    run_command(floe(arguments))
}

pub(crate) fn run_command(command: Command) -> ProgramOutput {
    let output = spawn(command).wait_with_output().unwrap();
    ProgramOutput {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A program that runs until it is stopped; killed when dropped.
pub(crate) struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// The first line of its output.
    pub(crate) line: String,
}

impl Running {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = spawn(floe(arguments));
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        Self {
            child,
            stdout,
            line,
        }
    }

    /// A server of an empty store in memory, and its URL.
    pub(crate) fn server() -> (Self, String) {
        let server = Self::start(&["serve", "--memory", "--listen", "0"]);
        let address = server.line.split("http://").nth(1).unwrap_or_default();
        let address = address.split(' ').next().unwrap();
        let endpoint = format!("http://{address}");
        (server, endpoint)
    }

    /// The next line of its output.
    pub(crate) fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    pub(crate) fn stop(self, signal: Signal) -> ProgramOutput {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        self.end()
    }

    pub(crate) fn end(mut self) -> ProgramOutput {
        let code = self.child.wait().unwrap().code();
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.stdout.read_to_string(&mut stdout).unwrap();
        let mut pipe = self.child.stderr.take().unwrap();
        pipe.read_to_string(&mut stderr).unwrap();
        ProgramOutput {
            code,
            stdout,
            stderr,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Runs a future of the test.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}

/// Runs a closure on the event store of a directory, and closes the directory.
pub(crate) fn with_store<T>(path: &Path, run: impl AsyncFnOnce(EventStore) -> T) -> T {
    with_db(path, async |db| {
        let store = db.event_store(EventStoreOptions::new("shop"));
        store.ensure_table().await.unwrap();
        run(store).await
    })
}

/// Runs a closure on a directory, and closes it.
pub(crate) fn with_db<T>(path: &Path, run: impl AsyncFnOnce(Db) -> T) -> T {
    let _guard = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    block_on(async { run(Db::open(path).unwrap()).await })
}

/// The event store of a server.
pub(crate) async fn connected(endpoint: &str) -> EventStore {
    let db = Db::connect(ConnectOptions::local(endpoint)).await.unwrap();
    let store = db.event_store(EventStoreOptions::new("shop"));
    store.ensure_table().await.unwrap();
    store
}

pub(crate) async fn append(store: &EventStore, stream: &str, bodies: &[&str]) {
    let stream = StreamName::parse(stream).unwrap();
    let events = bodies.iter().map(|body| EventData::new("Added", *body));
    let appended = store.append(&stream, Expected::Any, events);
    appended.await.unwrap();
}

/// A store that commands are run on: a directory, or a server.
pub(crate) struct Store {
    /// The option that selects it on the command line.
    option: [String; 2],
    folder: Option<tempfile::TempDir>,
    _server: Option<Running>,
}

impl Store {
    /// An empty store of each kind.
    pub(crate) fn both() -> [Self; 2] {
        [Self::directory(), Self::server()]
    }

    pub(crate) fn directory() -> Self {
        let folder = tempfile::tempdir().unwrap();
        with_db(folder.path(), async |_| ());
        let path = folder.path().to_str().unwrap().to_owned();
        Self {
            option: ["--data".to_owned(), path],
            folder: Some(folder),
            _server: None,
        }
    }

    pub(crate) fn server() -> Self {
        let (server, endpoint) = Running::server();
        Self {
            option: ["--endpoint".to_owned(), endpoint],
            folder: None,
            _server: Some(server),
        }
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.folder.is_some()
    }

    pub(crate) fn option(&self) -> [&str; 2] {
        [&self.option[0], &self.option[1]]
    }

    /// Runs a command on the store.
    pub(crate) fn run(&self, arguments: &[&str]) -> ProgramOutput {
        run(&[arguments, &self.option()].concat())
    }

    /// The standard output of a command, which must succeed.
    #[track_caller]
    pub(crate) fn prints(&self, arguments: &[&str]) -> String {
        self.run(arguments).assert_success().stdout
    }

    /// The JSON lines that a command prints.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Vec<serde_json::Value> {
        let printed = self.prints(&[arguments, &["--json"]].concat());
        let lines = printed.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Creates the table `orders` with three items.
    pub(crate) fn with_orders(self) -> Self {
        let index = "by_product=product:S,quantity:N";
        let create = [
            "table",
            "create",
            "orders",
            "--key",
            "customer:S",
            "--sort",
            "placed:N",
        ];
        self.prints(&[&create[..], &["--index", index]].concat());
        for (placed, product, quantity) in [(1, "sled", 2), (2, "rope", 10), (10, "sled", 1)] {
            let item = format!(
                r#"{{"customer":"ada","placed":{placed},"product":"{product}","quantity":{quantity}}}"#
            );
            self.prints(&["item", "put", "orders", "--item", &item]);
        }
        self
    }
}
