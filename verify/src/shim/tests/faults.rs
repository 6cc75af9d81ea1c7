//! Tests of fault injection: the process sees every kind of failure at every call.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, IoSlice, Read, Write};
use std::os::unix::fs::FileExt;
use std::process::Stdio;

use super::*;

const ROUNDS: usize = 3;
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// The result of a call: a count (0 if it has none) or an errno.
type CallResult = Result<usize, i32>;

fn call_result(result: io::Result<usize>) -> CallResult {
    result.map_err(|error| error.raw_os_error().unwrap_or(-1))
}

/// Makes independent calls of every class, and prints their results to standard output, which the shim ignores.
fn make_calls(dir: &Path) {
    let print = |class: &str, result: io::Result<usize>| {
        println!("\ncall {class} {:?}", call_result(result));
    };
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(dir.join("file"));
    let mut file = file.unwrap();
    print("open", Ok(0));
    for round in 0..ROUNDS {
        let path = |name: &str| dir.join(format!("{name}{round}"));
        print("write", file.write(b"0123456789"));
        print("write", file.write_at(b"01234567", 3));
        let slices = [b"012".as_slice(), b"34567"].map(IoSlice::new);
        print("write", file.write_vectored(&slices));
        print("sync", file.sync_data().map(|()| 0));
        print("sync", file.sync_all().map(|()| 0));
        print("sync", File::open(dir).unwrap().sync_all().map(|()| 0));
        print("truncate", file.set_len(5).map(|()| 0));
        print("open", File::create(path("new")).map(|_| 0));
        print("rename", fs::rename(path("old"), path("moved")).map(|()| 0));
        print("mkdir", fs::create_dir(path("dir")).map(|()| 0));
        print("unlink", fs::remove_file(path("gone")).map(|()| 0));
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

/// Parses the classes and results that the child printed.
fn printed_calls(output: &Output) -> Vec<(String, String)> {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let lines = stdout.lines().filter_map(|line| line.strip_prefix("call "));
    lines
        .map(|line| line.split_once(' ').unwrap())
        .map(|(class, result)| (class.to_owned(), result.to_owned()))
        .collect()
}

/// Returns the expected results with `fault`, given those of a run without faults.
fn expected(baseline: &[(String, String)], fault: Fault) -> Vec<(String, String)> {
    let class = fault.kind.name().split_once('-').unwrap().0;
    let mut nth = 0;
    let inject = |(name, plain): &(String, String)| {
        nth += u64::from(name == class);
        let is_hit = nth == fault.nth || fault.sticky && nth > fault.nth;
        if name != class || !is_hit {
            return (name.clone(), plain.clone());
        }
        let result = match fault.kind {
            FaultKind::WriteShort if nth == fault.nth && plain == "Ok(10)" => Ok(5),
            FaultKind::WriteShort if nth == fault.nth => Ok(4),
            FaultKind::WriteShort | FaultKind::WriteEnospc => Err(ENOSPC),
            _ => Err(EIO),
        };
        (name.clone(), format!("{result:?}"))
    };
    baseline.iter().map(inject).collect()
}

#[test]
fn every_kind_of_fault_hits_every_call() {
    let this = "every_kind_of_fault_hits_every_call";
    if role().is_some() {
        return make_calls(&own_dir());
    }
    let folder = TestFolder::new();
    let run = |watch: &Watch| {
        prepare(&folder.dir());
        printed_calls(&succeed(&mut child(module_path!(), this, "calls", watch)))
    };
    let baseline = run(&folder.watch());
    assert!(baseline.iter().all(|(_, result)| result.starts_with("Ok")));
    let counts = folder.counts();
    let calls = |class: &str| baseline.iter().filter(|(name, _)| name == class).count() as u64;
    let mut runs = 0;
    for kind in FaultKind::ALL {
        let class = kind.name().split_once('-').unwrap().0;
        assert_eq!(counts.points(kind), calls(class), "{}", kind.name());
        for nth in 1..=counts.points(kind) {
            for sticky in [false, true] {
                let fault = Fault { kind, nth, sticky };
                // All other calls need the first open.
                if kind == FaultKind::OpenEio && nth == 1 {
                    continue;
                }
                assert_eq!(
                    run(&folder.watch().fail(fault)),
                    expected(&baseline, fault),
                    "{fault}"
                );
                let later = if sticky { counts.points(kind) - nth } else { 0 };
                assert_eq!(folder.counts().injected, 1 + later, "{fault}");
                runs += 1;
            }
        }
    }
    assert_eq!(runs, 2 * (3 * 9 + 9 + 3 + 4 * 3));
}

#[test]
fn failed_open_is_visible() {
    if role().is_some() {
        let error = File::create(own_dir().join("file")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(EIO));
        return;
    }
    let folder = TestFolder::new();
    let fault = Fault {
        kind: FaultKind::OpenEio,
        nth: 1,
        sticky: false,
    };
    let watch = folder.watch().fail(fault);
    succeed(&mut child(
        module_path!(),
        "failed_open_is_visible",
        "",
        &watch,
    ));
    assert_eq!(folder.counts().injected, 1);
    assert!(!folder.dir().join("file").exists());
}

#[test]
fn failed_write_changes_nothing_and_short_write_half() {
    let this = "failed_write_changes_nothing_and_short_write_half";
    if role().is_some() {
        let mut file = File::create(own_dir().join("file")).unwrap();
        let _ = file.write(b"0123456789");
        return;
    }
    let folder = TestFolder::new();
    let left = [
        (FaultKind::WriteEio, b"".as_slice()),
        (FaultKind::WriteEnospc, b""),
        (FaultKind::WriteShort, b"01234"),
    ];
    for (kind, left) in left {
        let (nth, sticky) = (1, false);
        let watch = folder.watch().fail(Fault { kind, nth, sticky });
        succeed(&mut child(module_path!(), this, "", &watch));
        assert_eq!(read(&folder.dir().join("file")), left, "{}", kind.name());
    }
}

#[test]
fn other_directories_are_not_affected() {
    let this = "other_directories_are_not_affected";
    if let Some(elsewhere) = role() {
        return make_calls(Path::new(&elsewhere));
    }
    let folder = TestFolder::new();
    let elsewhere = folder.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    for kind in FaultKind::ALL {
        prepare(&elsewhere);
        let (nth, sticky) = (1, true);
        let watch = folder.watch().fail(Fault { kind, nth, sticky });
        let role = elsewhere.to_str().unwrap();
        let calls = printed_calls(&succeed(&mut child(module_path!(), this, role, &watch)));
        assert_eq!(calls.len(), 1 + 11 * ROUNDS);
        assert!(
            calls.iter().all(|(_, result)| result.starts_with("Ok")),
            "{calls:?}"
        );
        assert_eq!(folder.counts(), Counts::default());
    }
}

/// Ext4 reuses a freed inode number for the next file at once.
#[test]
fn reused_inode_number_is_another_file() {
    let this = "reused_inode_number_is_another_file";
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
    let folder = TestFolder::new();
    let elsewhere = folder.path("elsewhere");
    let role = elsewhere.to_str().unwrap();
    succeed(&mut child(module_path!(), this, role, &folder.watch()));
    let counts = folder.counts();
    assert_eq!((counts.opens, counts.unlinks, counts.writes), (20, 20, 0));
}

#[test]
fn counts_and_trace_survive_a_kill() {
    let this = "counts_and_trace_survive_a_kill";
    if role().is_some() {
        let mut file = File::create(own_dir().join("file")).unwrap();
        for byte in b"abc" {
            file.write_all(&[*byte]).unwrap();
        }
        file.sync_data().unwrap();
        own_marks().write_all(b"ready").unwrap();
        println!("\nready");
        let waited = std::io::stdin().read(&mut [0]);
        panic!("the process must be killed before standard input ends: {waited:?}");
    }
    let folder = TestFolder::new();
    let mut command = child(module_path!(), this, "", &folder.traced());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "ready"));
    process.kill().unwrap();
    process.wait().unwrap();
    let counts = folder.counts();
    let expected = Counts {
        writes: 3,
        syncs: 1,
        opens: 1,
        ..Counts::default()
    };
    assert_eq!(counts, expected);
    // The start, the creation, three writes, the sync and the mark.
    assert_eq!(folder.trace().len(), 7);
}

#[test]
fn file_created_by_another_process_ends_the_run() {
    let this = "file_created_by_another_process_ends_the_run";
    if role().is_some() {
        println!("\nready");
        let mut line = [0];
        std::io::stdin().read_exact(&mut line).unwrap();
        let opened = OpenOptions::new()
            .write(true)
            .open(own_dir().join("foreign"));
        panic!("the shim should have ended the process: {opened:?}");
    }
    let folder = TestFolder::new();
    let mut command = child(module_path!(), this, "", &folder.traced());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "ready"));
    fs::write(folder.dir().join("foreign"), b"").unwrap();
    process.stdin.take().unwrap().write_all(b"\n").unwrap();
    let output = process.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(SHIM_EXIT));
    assert!(String::from_utf8_lossy(&output.stderr).contains("another process"));
}
