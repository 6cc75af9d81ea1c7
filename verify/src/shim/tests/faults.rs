//! Fault mode: every kind at every call is what the process really sees.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, IoSlice, Read, Write};
use std::os::unix::fs::FileExt;
use std::process::Stdio;

use super::*;

const ROUNDS: usize = 3;
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// What a call answered: a count (0 where there is none) or an errno.
type Answer = Result<usize, i32>;

fn answer(result: io::Result<usize>) -> Answer {
    result.map_err(|error| error.raw_os_error().unwrap_or(-1))
}

/// Makes calls of every class, none of which depends on another, and tells
/// their answers on standard output, which the shim leaves alone.
fn make_calls(dir: &Path) {
    let tell = |class: &str, result: io::Result<usize>| {
        println!("\ncall {class} {:?}", answer(result));
    };
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(dir.join("file"));
    let mut file = file.unwrap();
    tell("open", Ok(0));
    for round in 0..ROUNDS {
        let path = |name: &str| dir.join(format!("{name}{round}"));
        tell("write", file.write(b"0123456789"));
        tell("write", file.write_at(b"01234567", 3));
        let slices = [b"012".as_slice(), b"34567"].map(IoSlice::new);
        tell("write", file.write_vectored(&slices));
        tell("sync", file.sync_data().map(|()| 0));
        tell("sync", file.sync_all().map(|()| 0));
        tell("sync", File::open(dir).unwrap().sync_all().map(|()| 0));
        tell("truncate", file.set_len(5).map(|()| 0));
        tell("open", File::create(path("new")).map(|_| 0));
        tell("rename", fs::rename(path("old"), path("moved")).map(|()| 0));
        tell("mkdir", fs::create_dir(path("dir")).map(|()| 0));
        tell("unlink", fs::remove_file(path("gone")).map(|()| 0));
    }
}

fn prepare(dir: &Path) {
    fs::remove_dir_all(dir).unwrap();
    fs::create_dir(dir).unwrap();
    fs::write(dir.join("file"), b"").unwrap();
    for round in 0..ROUNDS {
        fs::write(dir.join(format!("old{round}")), b"").unwrap();
        fs::write(dir.join(format!("gone{round}")), b"").unwrap();
    }
}

/// The classes and answers that the child told.
fn told(output: &Output) -> Vec<(String, String)> {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let lines = stdout.lines().filter_map(|line| line.strip_prefix("call "));
    lines
        .map(|line| line.split_once(' ').unwrap())
        .map(|(class, answer)| (class.to_owned(), answer.to_owned()))
        .collect()
}

/// What `fault` makes of the answers of a run without faults.
fn expected(baseline: &[(String, String)], fault: Fault) -> Vec<(String, String)> {
    let class = fault.kind.name().split_once('-').unwrap().0;
    let mut nth = 0;
    let strike = |(name, plain): &(String, String)| {
        nth += u64::from(name == class);
        let struck = nth == fault.nth || fault.sticky && nth > fault.nth;
        if name != class || !struck {
            return (name.clone(), plain.clone());
        }
        let answer = match fault.kind {
            FaultKind::WriteShort if nth == fault.nth && plain == "Ok(10)" => Ok(5),
            FaultKind::WriteShort if nth == fault.nth => Ok(4),
            FaultKind::WriteShort | FaultKind::WriteEnospc => Err(ENOSPC),
            _ => Err(EIO),
        };
        (name.clone(), format!("{answer:?}"))
    };
    baseline.iter().map(strike).collect()
}

#[test]
fn every_kind_strikes_at_every_call() {
    let this = "every_kind_strikes_at_every_call";
    if role().is_some() {
        return make_calls(&own_dir());
    }
    let stage = Stage::new();
    let run = |watch: &Watch| {
        prepare(&stage.dir());
        told(&succeed(&mut child(module_path!(), this, "calls", watch)))
    };
    let baseline = run(&stage.watch());
    assert!(baseline.iter().all(|(_, answer)| answer.starts_with("Ok")));
    let counts = stage.counts();
    let calls = |class: &str| baseline.iter().filter(|(name, _)| name == class).count() as u64;
    let mut runs = 0;
    for kind in FaultKind::ALL {
        let class = kind.name().split_once('-').unwrap().0;
        assert_eq!(counts.points(kind), calls(class), "{}", kind.name());
        for nth in 1..=counts.points(kind) {
            for sticky in [false, true] {
                let fault = Fault { kind, nth, sticky };
                // The first open is the one that all the others need.
                if kind == FaultKind::OpenEio && nth == 1 {
                    continue;
                }
                assert_eq!(
                    run(&stage.watch().fail(fault)),
                    expected(&baseline, fault),
                    "{fault}"
                );
                let later = if sticky { counts.points(kind) - nth } else { 0 };
                assert_eq!(stage.counts().injected, 1 + later, "{fault}");
                runs += 1;
            }
        }
    }
    assert_eq!(runs, 2 * (3 * 9 + 9 + 3 + 4 * 3));
}

#[test]
fn a_failing_open_is_seen() {
    if role().is_some() {
        let error = File::create(own_dir().join("file")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(EIO));
        return;
    }
    let stage = Stage::new();
    let fault = Fault {
        kind: FaultKind::OpenEio,
        nth: 1,
        sticky: false,
    };
    let watch = stage.watch().fail(fault);
    succeed(&mut child(
        module_path!(),
        "a_failing_open_is_seen",
        "",
        &watch,
    ));
    assert_eq!(stage.counts().injected, 1);
    assert!(!stage.dir().join("file").exists());
}

#[test]
fn a_failed_call_changes_nothing_and_a_short_one_half() {
    let this = "a_failed_call_changes_nothing_and_a_short_one_half";
    if role().is_some() {
        let mut file = File::create(own_dir().join("file")).unwrap();
        let _ = file.write(b"0123456789");
        return;
    }
    let stage = Stage::new();
    let left = [
        (FaultKind::WriteEio, b"".as_slice()),
        (FaultKind::WriteEnospc, b""),
        (FaultKind::WriteShort, b"01234"),
    ];
    for (kind, left) in left {
        let (nth, sticky) = (1, false);
        let watch = stage.watch().fail(Fault { kind, nth, sticky });
        succeed(&mut child(module_path!(), this, "", &watch));
        assert_eq!(read(&stage.dir().join("file")), left, "{}", kind.name());
    }
}

#[test]
fn other_directories_are_left_alone() {
    let this = "other_directories_are_left_alone";
    if let Some(elsewhere) = role() {
        return make_calls(Path::new(&elsewhere));
    }
    let stage = Stage::new();
    let elsewhere = stage.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    for kind in FaultKind::ALL {
        prepare(&elsewhere);
        let (nth, sticky) = (1, true);
        let watch = stage.watch().fail(Fault { kind, nth, sticky });
        let role = elsewhere.to_str().unwrap();
        let told = told(&succeed(&mut child(module_path!(), this, role, &watch)));
        assert_eq!(told.len(), 1 + 11 * ROUNDS);
        assert!(
            told.iter().all(|(_, answer)| answer.starts_with("Ok")),
            "{told:?}"
        );
        assert_eq!(stage.counts(), Counts::default());
    }
}

/// Ext4 gives a freed inode number to the next file at once.
#[test]
fn a_reused_inode_number_is_another_file() {
    let this = "a_reused_inode_number_is_another_file";
    if let Some(elsewhere) = role() {
        for _ in 0..20 {
            let inside = own_dir().join("inside");
            drop(File::create(&inside).unwrap());
            fs::remove_file(&inside).unwrap();
            fs::write(&elsewhere, b"outside").unwrap();
            fs::remove_file(&elsewhere).unwrap();
        }
        return;
    }
    let stage = Stage::new();
    let elsewhere = stage.path("elsewhere");
    let role = elsewhere.to_str().unwrap();
    succeed(&mut child(module_path!(), this, role, &stage.watch()));
    let counts = stage.counts();
    assert_eq!((counts.opens, counts.unlinks, counts.writes), (20, 20, 0));
}

#[test]
fn counts_and_trace_outlive_a_kill() {
    let this = "counts_and_trace_outlive_a_kill";
    if role().is_some() {
        let mut file = File::create(own_dir().join("file")).unwrap();
        for byte in b"abc" {
            file.write_all(&[*byte]).unwrap();
        }
        file.sync_data().unwrap();
        own_marks().write_all(b"ready").unwrap();
        println!("\nready");
        let waited = std::io::stdin().read(&mut [0]);
        panic!("killed before standard input ends {waited:?}");
    }
    let stage = Stage::new();
    let mut command = child(module_path!(), this, "", &stage.traced());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "ready"));
    process.kill().unwrap();
    process.wait().unwrap();
    let counts = stage.counts();
    let expected = Counts {
        writes: 3,
        syncs: 1,
        opens: 1,
        ..Counts::default()
    };
    assert_eq!(counts, expected);
    // The start, the creation, three writes, the sync and the mark.
    assert_eq!(stage.trace().len(), 7);
}

#[test]
fn a_file_made_by_another_process_ends_the_run() {
    let this = "a_file_made_by_another_process_ends_the_run";
    if role().is_some() {
        println!("\nready");
        let mut line = [0];
        std::io::stdin().read_exact(&mut line).unwrap();
        let opened = OpenOptions::new()
            .write(true)
            .open(own_dir().join("foreign"));
        panic!("the shim should have ended the process {opened:?}");
    }
    let stage = Stage::new();
    let mut command = child(module_path!(), this, "", &stage.traced());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "ready"));
    fs::write(stage.dir().join("foreign"), b"").unwrap();
    process.stdin.take().unwrap().write_all(b"\n").unwrap();
    let output = process.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(SHIM_EXIT));
    assert!(String::from_utf8_lossy(&output.stderr).contains("another process"));
}
