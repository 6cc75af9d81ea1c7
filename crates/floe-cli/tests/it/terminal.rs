//! Output on a terminal: fitted to its width, with styles, and questions before something is deleted.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::support::{ProgramOutput, Store, floe, spawn};

/// A terminal: the side of the user, and the side of programs.
struct Terminal {
    user: File,
    program: File,
}

impl Terminal {
    fn new(columns: u16) -> Self {
        let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&user).unwrap();
        unlockpt(&user).unwrap();
        let name = ptsname(&user, Vec::new()).unwrap();
        let program = File::options()
            .read(true)
            .write(true)
            .custom_flags(rustix::fs::OFlags::NOCTTY.bits().cast_signed())
            .open(OsStr::from_bytes(name.to_bytes()))
            .unwrap();
        let size = Winsize {
            ws_row: 24,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&program, size).unwrap();
        Self {
            user: user.into(),
            program,
        }
    }

    fn program(&self) -> Stdio {
        self.program.try_clone().unwrap().into()
    }

    /// What programs have printed, when all have exited.
    fn printed(self) -> String {
        let Self { mut user, program } = self;
        drop(program);
        let (mut printed, mut buffer) = (Vec::new(), [0; 4096]);
        // The end is an error: no program has the terminal open any more.
        while let Ok(count) = user.read(&mut buffer)
            && count > 0
        {
            printed.extend(&buffer[..count]);
        }
        String::from_utf8(printed).unwrap().replace("\r\n", "\n")
    }
}

/// What a command prints on a terminal of this width.
#[track_caller]
fn prints(store: &Store, columns: u16, environment: &[(&str, &str)], words: &[&str]) -> String {
    let terminal = Terminal::new(columns);
    let mut command = floe(&[words, &store.option()].concat());
    command
        .envs(environment.iter().copied())
        .stdout(terminal.program());
    let mut child = spawn(command);
    let printed = terminal.printed();
    assert!(child.wait().unwrap().success(), "{printed}");
    printed
}

/// A store with items that have long and wide texts.
fn with_notes() -> Store {
    let store = Store::directory();
    store.prints(&["table", "create", "notes", "--key", "city:S"]);
    for (city, note) in [("東京", "x".repeat(100)), ("Oslo", "🛷".repeat(50))] {
        let item = format!(r#"{{"city":"{city}","n":7,"note":"{note}"}}"#);
        store.prints(&["item", "put", "notes", "--item", &item]);
    }
    store
}

#[test]
fn tables_are_fitted_to_the_terminal_only() {
    let store = with_notes();
    let scan = ["scan", "notes"];
    let (text, sleds) = ("x".repeat(100), "🛷".repeat(50));
    let whole = [
        "city  n  note".to_owned(),
        format!("Oslo  7  {sleds}"),
        format!("東京  7  {text}"),
    ];
    let sorted = |printed: &str| {
        let mut lines: Vec<String> = printed.lines().map(str::to_owned).collect();
        lines[1..].sort();
        lines
    };
    assert_eq!(sorted(&store.prints(&scan)), whole);
    assert_eq!(sorted(&prints(&store, 109, &[], &scan)), whole);
    // The width of the terminal counts, not a fixed one; and a sled is two columns wide.
    assert_eq!(
        sorted(&prints(&store, 30, &[], &scan)),
        [
            "city  n  note".to_owned(),
            format!("Oslo  7  {}…", "🛷".repeat(10)),
            format!("東京  7  {}…", "x".repeat(20)),
        ]
    );
}

#[test]
fn rows_are_lists_on_a_narrow_terminal() {
    let store = with_notes();
    let key = [
        "--key-condition",
        "city = :c",
        "--values",
        r#"{":c":"東京"}"#,
    ];
    let query = [&["query", "notes"][..], &key].concat();
    let expected = format!("city  東京\nn     7\nnote  {}\n", "x".repeat(100));
    assert_eq!(prints(&store, 18, &[], &query), expected);
}

#[test]
fn names_are_bold_unless_the_environment_forbids_it() {
    let store = with_notes();
    let count = ["table", "list"];
    let is_bold = |environment: &[(&str, &str)]| {
        let printed = prints(&store, 80, environment, &count);
        let bold = printed.starts_with("\u{1b}[1mtable\u{1b}[0m");
        assert_eq!(bold, printed.contains('\u{1b}'), "{printed}");
        bold
    };
    assert!(is_bold(&[("TERM", "xterm")]));
    assert!(is_bold(&[("TERM", "xterm"), ("NO_COLOR", "")]));
    assert!(!is_bold(&[("TERM", "xterm"), ("NO_COLOR", "1")]));
    assert!(!is_bold(&[("TERM", "dumb")]));
    assert!(!is_bold(&[]));
    assert!(!store.prints(&count).contains('\u{1b}'));
}

#[test]
fn failures_are_red_on_a_terminal() {
    for (environment, begin) in [
        (
            &[("TERM", "xterm")][..],
            "\u{1b}[1m\u{1b}[31mfloe:\u{1b}[0m there is no",
        ),
        (&[("TERM", "xterm"), ("NO_COLOR", "1")], "floe: there is no"),
    ] {
        let terminal = Terminal::new(80);
        let mut command = floe(&["table", "list", "--data", "/nowhere"]);
        command
            .envs(environment.iter().copied())
            .stderr(terminal.program());
        let mut child = spawn(command);
        let printed = terminal.printed();
        assert_eq!(child.wait().unwrap().code(), Some(1));
        assert!(printed.starts_with(begin), "{printed:?}");
    }
}

/// Runs a command whose question is answered at a terminal.
fn answered(store: &Store, words: &[&str], answer: &str) -> ProgramOutput {
    let mut terminal = Terminal::new(80);
    let mut command = floe(&[words, &store.option()].concat());
    command.stdin(terminal.program());
    let child = spawn(command);
    terminal.user.write_all(answer.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    ProgramOutput {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn deletion_is_confirmed_after_store_region_and_table_are_printed() {
    for store in Store::both() {
        let store = store.with_orders();
        let [_, place] = store.option().map(str::to_owned);
        let region = if store.is_directory() {
            "local"
        } else {
            "us-east-1"
        };
        let facts = format!("store={place} region={region} table=orders items=3");
        let delete = ["table", "delete", "orders"];
        let refused = answered(&store, &delete, "n\n");
        refused.assert_failure(2, &["nothing was deleted, not confirmed", &facts]);
        let question = format!("floe: deleting a table: {facts}: continue? [y/N] ");
        assert!(refused.stderr.starts_with(&question), "{refused:?}");
        // Without a terminal, the same facts are printed.
        store
            .run(&delete)
            .assert_failure(2, &["nothing was deleted, confirm with --yes", &facts]);

        store.prints(&["events", "create"]);
        store.prints(&["events", "append", "Cart-1", "--type", "Added"]);
        let facts =
            format!("store={place} region={region} table=events stream=Cart-1 before=1 version=1");
        let prune = ["events", "prune", "Cart-1", "--before", "1"];
        answered(&store, &prune, "\n").assert_failure(2, &["nothing was deleted", &facts]);
        store.prints(&["indexer", "--once"]);
        let facts = format!("store={place} region={region} table=events-index");
        let set = ["feed", "checkpoint", "--group", "mail", "--set", "tail"];
        answered(&store, &set, "no\n").assert_failure(2, &["nothing was moved", &facts]);

        let deleted = answered(&store, &delete, "y\n").assert_success();
        assert_eq!(deleted.stdout, "deleted: table=orders items=3\n");
    }
}
