//! Programs that run, and tables of events for them.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use floe::Db;
use floe::db::ConnectOptions;
use floe::events::{EventData, EventStore, EventStoreOptions, Expected, StreamName};
use rustix::process::{Pid, Signal, kill_process};

/// The program, with an environment that says nothing.
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

/// Held while a directory is open here, and while a program is started: in between, it has all that is open here, and
/// would keep the directory in use.
static OPEN: Mutex<()> = Mutex::new(());

pub(crate) fn spawn(mut command: Command) -> Child {
    let _guard = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    command.spawn().unwrap()
}

/// What a program has come to: its code, and what it has printed.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// It has failed with this code, and one line of these words.
    #[track_caller]
    pub(crate) fn failed(&self, code: i32, words: &[&str]) {
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

pub(crate) fn run(arguments: &[&str]) -> Ended {
    run_command(floe(arguments))
}

pub(crate) fn run_command(command: Command) -> Ended {
    let output = spawn(command).wait_with_output().unwrap();
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A program that goes on until it is told to stop; killed when it is dropped.
pub(crate) struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// What it has said first.
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

    /// A server of an empty store in memory, and its address.
    pub(crate) fn server() -> (Self, String) {
        let server = Self::start(&["serve", "--memory", "--listen", "0"]);
        let address = server.line.split("http://").nth(1).unwrap_or_default();
        let address = address.split(' ').next().unwrap();
        let endpoint = format!("http://{address}");
        (server, endpoint)
    }

    /// What it says next.
    pub(crate) fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    pub(crate) fn stop(self, signal: Signal) -> Ended {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        self.end()
    }

    pub(crate) fn end(mut self) -> Ended {
        let code = self.child.wait().unwrap().code();
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.stdout.read_to_string(&mut stdout).unwrap();
        let mut pipe = self.child.stderr.take().unwrap();
        pipe.read_to_string(&mut stderr).unwrap();
        Ended {
            code,
            stdout,
            stderr,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A runtime for what a test does itself.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}

/// Does something with the events of a directory, which is free again afterwards.
pub(crate) fn with_store<T>(path: &Path, work: impl AsyncFnOnce(EventStore) -> T) -> T {
    with_db(path, async |db| {
        let store = db.event_store(EventStoreOptions::new("shop"));
        store.ensure_table().await.unwrap();
        work(store).await
    })
}

/// Does something with a directory, which is free again afterwards.
pub(crate) fn with_db<T>(path: &Path, work: impl AsyncFnOnce(Db) -> T) -> T {
    let _guard = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    block_on(async { work(Db::open(path).unwrap()).await })
}

/// The events behind a server.
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
    /// What names it on the command line.
    option: [String; 2],
    folder: Option<tempfile::TempDir>,
    _server: Option<Running>,
}

impl Store {
    /// An empty one of each kind.
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

    /// Runs a command on it.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        run(&[arguments, &self.option()].concat())
    }

    /// What a command prints that succeeds.
    #[track_caller]
    pub(crate) fn prints(&self, arguments: &[&str]) -> String {
        self.run(arguments).succeeded().stdout
    }

    /// The lines of JSON that a command prints.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Vec<serde_json::Value> {
        let printed = self.prints(&[arguments, &["--json"]].concat());
        let lines = printed.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The table `orders`, and three items in it.
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
