//! `floe serve`, run as a user does.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

pub(crate) fn floe(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_floe"));
    command
        .args(arguments)
        .env_remove("FLOE_ACCESS_KEY")
        .env_remove("FLOE_SECRET_KEY")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A running server; killed when dropped.
pub(crate) struct Serving {
    pub(crate) child: Child,
    stdout: BufReader<ChildStdout>,
    line: String,
    address: SocketAddr,
}

impl Serving {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_command(floe(&[&["serve", "--listen", "0"], arguments].concat()))
    }

    pub(crate) fn start_command(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1);
        let address = address.and_then(|rest| rest.split(' ').next());
        let address = address.and_then(|address| address.parse().ok());
        let Some(address) = address else {
            let mut stderr = String::new();
            child.stderr.unwrap().read_to_string(&mut stderr).unwrap();
            panic!("{line:?} {stderr}");
        };
        Self {
            child,
            stdout,
            line,
            address,
        }
    }

    pub(crate) fn on(path: &Path) -> Self {
        Self::start(&["--data", path.to_str().unwrap()])
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the server to exit. Returns the exit code, and the output after the first line.
    pub(crate) fn end(mut self) -> (Option<i32>, String, String) {
        let status = self.child.wait().unwrap();
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.stdout.read_to_string(&mut stdout).unwrap();
        let mut pipe = self.child.stderr.take().unwrap();
        pipe.read_to_string(&mut stderr).unwrap();
        (status.code(), stdout, stderr)
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        let within = Duration::from_secs(30);
        stream.set_read_timeout(Some(within)).unwrap();
        stream
    }

    pub(crate) fn call(&self, operation: &str, body: &str) -> String {
        let mut stream = self.connect();
        stream
            .write_all(request(operation, body).as_bytes())
            .unwrap();
        read_response(&mut stream)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A request that closes the connection.
fn request(operation: &str, body: &str) -> String {
    format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Amz-Target: DynamoDB_20120810.{operation}\r\n\
         X-Amz-Date: 20150830T123600Z\r\nContent-Type: application/x-amz-json-1.0\r\nAuthorization: AWS4-HMAC-SHA256 \
         Credential=a/20150830/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn read_response(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

pub(crate) const TABLE: &str = r#"{"TableName":"things","KeySchema":[{"AttributeName":"p","KeyType":"HASH"}],
    "AttributeDefinitions":[{"AttributeName":"p","AttributeType":"S"}],"BillingMode":"PAY_PER_REQUEST"}"#;

#[test]
fn server_prints_its_address_and_stops_on_signal() {
    for signal in [Signal::INT, Signal::TERM] {
        let serving = Serving::start(&["--memory"]);
        let expected = format!(
            "floe: serving DynamoDB on http://{} (in memory)\n",
            serving.address
        );
        assert_eq!(serving.line, expected);
        assert!(serving.address.ip().is_loopback());
        let response = serving.call("ListTables", "{}");
        assert!(response.ends_with(r#"{"TableNames":[]}"#), "{response}");
        serving.signal(signal);
        let (code, stdout, stderr) = serving.end();
        assert_eq!((code, stdout.as_str()), (Some(0), ""), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[test]
fn requests_in_progress_are_finished_before_exit() {
    let serving = Serving::start(&["--memory"]);
    let mut stream = serving.connect();
    let text = request("ListTables", "{}");
    let (start, rest) = text.split_at(text.len() - 1);
    stream.write_all(start.as_bytes()).unwrap();
    // A response on another connection shows that the server has accepted this one.
    serving.call("ListTables", "{}");
    serving.signal(Signal::INT);
    while TcpStream::connect(serving.address).is_ok() {}
    stream.write_all(rest.as_bytes()).unwrap();
    let response = read_response(&mut stream);
    assert!(response.ends_with(r#"{"TableNames":[]}"#), "{response}");
    assert!(response.contains("connection: close"), "{response}");
    assert_eq!(serving.end().0, Some(0));
}

#[test]
fn second_ctrl_c_exits_immediately() {
    let serving = Serving::start(&["--memory"]);
    let mut stream = serving.connect();
    stream.write_all(b"POST / HTTP/1.1\r\n").unwrap();
    serving.call("ListTables", "{}");
    serving.signal(Signal::INT);
    while TcpStream::connect(serving.address).is_ok() {}
    serving.signal(Signal::INT);
    assert_eq!(serving.end().0, Some(130));
}

#[test]
fn acknowledged_writes_survive_kill() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let serving = Serving::on(&path);
    assert!(
        serving
            .line
            .ends_with(&format!("(data: {})\n", path.display()))
    );
    let made = serving.call("CreateTable", TABLE);
    assert!(made.starts_with("HTTP/1.1 200"), "{made}");
    for number in 0..20 {
        let item = format!(r#"{{"TableName":"things","Item":{{"p":{{"S":"{number}"}}}}}}"#);
        let put = serving.call("PutItem", &item);
        assert!(put.starts_with("HTTP/1.1 200"), "{put}");
    }
    serving.signal(Signal::KILL);
    assert_eq!(serving.end().0, None);
    let serving = Serving::on(&path);
    let found = serving.call("Scan", r#"{"TableName":"things","Select":"COUNT"}"#);
    assert!(found.contains(r#""Count":20"#), "{found}");
    serving.signal(Signal::TERM);
    assert_eq!(serving.end().0, Some(0));
}

/// The warning that the program prints first.
const WARNING: &str = "floe: other users of this machine can see a secret on the command line";

/// The exit code and the one-line error of a program.
fn failure(output: &Output) -> (Option<i32>, String) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let lines = stderr.lines().filter(|line| !line.starts_with(WARNING));
    let stderr = lines.collect::<Vec<_>>().join("\n");
    assert!(output.stdout.is_empty());
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    (output.status.code(), stderr)
}

pub(crate) fn check_refused(arguments: &[&str], code: i32, words: &[&str]) {
    let (found, stderr) = failure(&floe(arguments).output().unwrap());
    assert_eq!(found, Some(code), "{arguments:?}: {stderr}");
    assert!(stderr.starts_with("floe: "), "{stderr}");
    for word in words {
        assert!(stderr.contains(word), "{arguments:?}: {stderr}");
    }
}

#[test]
fn usage_error_is_reported_in_one_line() {
    let cases: [(&[&str], &[&str]); 16] = [
        (&["srve"], &["'srve'", "'serve'"]),
        (&["serve"], &["--data <DIR>|--memory"]),
        (
            &["serve", "--memory", "--data", "x"],
            &["cannot be used with"],
        ),
        (
            &["serve", "--memory", "--bogus"],
            &["--bogus", "floe serve --help"],
        ),
        (
            &["serve", "--memory", "--listen", "nowhere"],
            &["127.0.0.1:8000"],
        ),
        (
            &["serve", "--memory", "--listen", "1.2.3.4:x"],
            &["expected a port or an address and port"],
        ),
        (
            &["serve", "--memory", "--access-key", "a"],
            &["--secret-key"],
        ),
        (
            &["serve", "--memory", "--secret-key", "a"],
            &["--access-key"],
        ),
        (
            &["serve", "--memory", "--access-key", "a", "--secret-key", ""],
            &["cannot be empty"],
        ),
        (
            &["serve", "--memory", "--durability", "none"],
            &["sync, relaxed"],
        ),
        (
            &["serve", "--memory", "--cors", "app"],
            &["https://app.example.com"],
        ),
        (
            &["serve", "--memory", "--max-connections", "0"],
            &["0 is not in 1.."],
        ),
        (
            &["serve", "--memory", "--stream-retention", "0h"],
            &["not a duration, such as"],
        ),
        (
            &["serve", "--memory", "--stream-retention", "1"],
            &["not a duration, such as"],
        ),
        (
            &["serve", "--memory", "--disk-reserve", "1"],
            &["--disk-reserve", "cannot be used with", "--memory"],
        ),
        (
            &["serve", "--data", "x", "--disk-reserve", "1GB"],
            &["--disk-reserve", "1GB"],
        ),
    ];
    for (arguments, words) in cases {
        check_refused(arguments, 2, words);
    }
}

#[test]
fn public_address_requires_keys_or_insecure() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let data = ["serve", "--data", path.to_str().unwrap()];
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let arguments = [&data[..], &["--listen", listen]].concat();
        check_refused(&arguments, 2, &["FLOE_SECRET_KEY", "--insecure", listen]);
    }
    assert!(!path.exists(), "nothing is created before the check");
    for allowed in [
        &["--insecure"][..],
        &["--access-key", "a", "--secret-key", "b"],
    ] {
        let arguments = [&["serve", "--memory", "--listen", "0.0.0.0:0"], allowed].concat();
        let serving = Serving::start_command(floe(&arguments));
        assert!(serving.address.ip().is_unspecified());
    }
}

#[test]
fn unavailable_store_or_address_is_reported_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let serving = Serving::on(folder.path());
    check_refused(
        &["serve", "--listen", "0", "--data", path],
        1,
        &["the directory is in use: process=", "--data"],
    );
    drop(serving);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = listener.local_addr().unwrap().to_string();
    check_refused(
        &["serve", "--memory", "--listen", &listen],
        1,
        &[&listen, "in use", "--listen"],
    );
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    check_refused(
        &["serve", "--data", file.to_str().unwrap()],
        1,
        &["not a directory"],
    );
}

#[test]
fn keys_are_read_from_the_environment() {
    let mut command = floe(&["serve", "--memory", "--listen", "0"]);
    command
        .env("FLOE_ACCESS_KEY", "a")
        .env("FLOE_SECRET_KEY", "secret-b");
    let serving = Serving::start_command(command);
    let response = serving.call("ListTables", "{}");
    assert!(response.contains("Signature expired: "), "{response}");
    drop(serving);

    let mut help = floe(&["serve", "--help"]);
    let help = help.env("FLOE_SECRET_KEY", "secret-b").output().unwrap();
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    assert!(help.contains("FLOE_SECRET_KEY") && !help.contains("secret-b"));
}

#[test]
fn help_and_version_are_printed() {
    for (arguments, words) in [
        (&["--help"][..], "serve"),
        (&["help", "serve"], "--allow-host"),
        (&["serve", "-h"], "--cors"),
        (&["serve", "-h"], "--stream-retention <DURATION>"),
        (&["serve", "-h"], "[default: 256, or an eighth"),
        (&["--version"], "floe 0."),
    ] {
        let output = floe(arguments).output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && stdout.contains(words),
            "{stdout}"
        );
    }
    let output = floe(&[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Usage: floe"));
}

#[test]
fn metrics_are_exposed_on_request() {
    let metrics = |arguments: &[&str]| {
        let serving = Serving::start(arguments);
        serving.call("ListTables", "{}");
        let mut stream = serving.connect();
        let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        read_response(&mut stream)
    };
    let printed = metrics(&["--memory", "--metrics"]);
    let line = r#"floe_requests_total{operation="ListTables",outcome="ok"} 1"#;
    assert!(printed.contains(line), "{printed}");
    assert!(!metrics(&["--memory"]).contains("floe_"));
}

#[test]
fn stream_retention_and_disk_reserve_can_be_set() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let retention = ["--stream-retention", "7d"];
    for arguments in [
        &[&["--memory"][..], &retention].concat(),
        &[&["--data", path, "--disk-reserve", "1"][..], &retention].concat(),
    ] {
        let serving = Serving::start(arguments);
        let response = serving.call("CreateTable", TABLE);
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    }
}

#[test]
fn health_check_returns_ready() {
    let serving = Serving::start(&["--memory"]);
    let mut stream = serving.connect();
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let response = read_response(&mut stream);
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    assert!(response.ends_with("\r\n\r\nready"), "{response}");
}
