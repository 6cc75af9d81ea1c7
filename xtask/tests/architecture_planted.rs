//! Tests that the checker of `cargo xtask tidy` finds faults planted in small source trees, and reports nothing else.

use xtask::tidy::check::{self, REACHED};
use xtask::tidy::report::Report;
use xtask::tidy::rules::{CodeLinesMax, Dependencies, OnlyIn, Rules, Separation, Word};
use xtask::tidy::text::{DOCUMENTED, LINTED, READABLE};
use xtask::tidy::workspace::Workspace;

type Files<'f> = &'f [(&'f str, &'f str)];

fn run(rules: &Rules, files: Files<'_>) -> Report {
    check::check(&Workspace::of_library("lab", files), rules)
}

/// Returns the cycles of a tree: the parent, the modules, and the shortest cycle with the location of each edge.
fn cycles(files: Files<'_>) -> Vec<String> {
    let report = run(&Rules::default(), files);
    assert_eq!(report.faults, [], "{files:?}");
    let cycles = report.cycles.iter().map(|cycle| cycle.summary());
    cycles.collect()
}

fn check_cycle(files: Files<'_>, expected: &str) {
    assert_eq!(cycles(files), [expected], "{files:?}");
}

fn check_no_cycle(files: Files<'_>) {
    assert_eq!(cycles(files), [""; 0], "{files:?}");
}

#[test]
fn cycle_is_found() {
    check_cycle(
        &[
            ("lib.rs", "mod a;\nmod b;\nmod c;"),
            ("a.rs", "use crate::b::B;\npub struct A(B);"),
            ("b.rs", "pub struct B;\n\nfn f(a: &super::a::A) {}"),
            ("c.rs", "use crate::a::A;\nuse crate::b::B;"),
        ],
        "cycle lab: a b\n  \
           a -> b (2): crates/lab/src/a.rs:1: crate::b::B\n  \
           b -> a (1): crates/lab/src/b.rs:3: super::a::A",
    );
}

#[test]
fn shortest_cycle_is_printed() {
    check_cycle(
        &[(
            "lib.rs",
            "mod a { pub use super::b::x; }\nmod b { pub use super::c::x; use super::d; }\n\
             mod c { pub use super::a::x; }\nmod d { use super::b; }",
        )],
        "cycle lab: a b c d\n  \
           b -> d (1): crates/lab/src/lib.rs:2: super::d\n  \
           d -> b (1): crates/lab/src/lib.rs:4: super::b",
    );
}

#[test]
fn cycle_among_the_children_of_a_module_is_found() {
    check_cycle(
        &[
            ("lib.rs", "mod outer;"),
            ("outer.rs", "mod a;\nmod b;"),
            (
                "outer/a.rs",
                "fn f() { super::b::g() }\npub(super) fn f2() {}",
            ),
            ("outer/b.rs", "pub(super) fn g() { crate::outer::a::f2() }"),
        ],
        "cycle lab outer: a b\n  \
           a -> b (1): crates/lab/src/outer/a.rs:1: super::b::g\n  \
           b -> a (1): crates/lab/src/outer/b.rs:1: crate::outer::a::f2",
    );
}

#[test]
fn reference_is_an_edge_between_the_enclosing_siblings() {
    check_cycle(
        &[(
            "lib.rs",
            "mod a { mod deep { use crate::b::inner::I; pub struct D; } pub use deep::D; }\n\
             mod b { pub mod inner { pub struct I; } use crate::a::D; }",
        )],
        "cycle lab: a b\n  \
           a -> b (1): crates/lab/src/lib.rs:1: crate::b::inner::I\n  \
           b -> a (1): crates/lab/src/lib.rs:2: crate::a::D",
    );
}

#[test]
fn reexport_resolves_to_the_defining_module() {
    // Through the root, under another name, and through a glob.
    for path in [
        "crate::B",
        "crate::Renamed",
        "super::all::B",
        "crate::all::*",
    ] {
        let a = format!("use {path};\npub struct A;");
        let cycles = cycles(&[
            (
                "lib.rs",
                "mod a;\nmod all;\nmod b;\npub use b::B;\npub use b::B as Renamed;",
            ),
            ("a.rs", &a),
            ("all.rs", "pub use super::b::*;"),
            ("b.rs", "pub struct B(super::a::A);"),
        ]);
        assert_eq!(cycles.len(), 1, "{path}: {cycles:?}");
        assert!(
            cycles.concat().starts_with("cycle lab: a"),
            "{path}: {cycles:?}"
        );
    }
}

#[test]
fn name_from_a_glob_resolves_to_the_defining_module() {
    check_cycle(
        &[(
            "lib.rs",
            "use b::B;\nmod a { use super::*;\nfn f() -> B { B } pub struct A; }\n\
             mod b { pub struct B; fn f(_: crate::a::A) {} }",
        )],
        "cycle lab: a b\n  \
           a -> b (2): crates/lab/src/lib.rs:3: B\n  \
           b -> a (1): crates/lab/src/lib.rs:4: crate::a::A",
    );
}

#[test]
fn module_and_item_with_the_same_name_are_distinguished() {
    check_no_cycle(&[(
        "lib.rs",
        "mod run { pub fn run() {} }\nmod a { use crate::run; fn f() { run() } }\n\
         mod run_all { use crate::a; }\nuse run::run;",
    )]);
}

#[test]
fn paths_in_macros_are_found() {
    let call = "fn f() { assert!(x == crate::b::LIMIT) }";
    let imported = "use super::b;\nfn f() { println!(\"{}\", b::LIMIT) }";
    let body = "macro_rules! m { ($x:expr) => { $crate::b::LIMIT + $x } }";
    let used = "macro_rules! m { () => { use $crate::{b::LIMIT, c}; } }";
    let text = "#[serde(with = \"crate::b::text\")]\nstruct S;";
    for a in [call, imported, body, used, text] {
        let cycles = cycles(&[
            ("lib.rs", "mod a;\nmod b;\nmod c {}"),
            ("a.rs", &format!("pub struct A;\n{a}")),
            (
                "b.rs",
                "pub const LIMIT: crate::a::A = crate::a::A;\nmod text {}",
            ),
        ]);
        assert_eq!(cycles.len(), 1, "{a}: {cycles:?}");
    }
}

#[test]
fn macro_resolves_to_the_defining_module() {
    check_cycle(
        &[(
            "lib.rs",
            "mod a { macro_rules! shout { () => {} } pub(crate) use shout; fn f() { crate::b::g() } }\n\
             mod b { pub fn g() { crate::a::shout!() } }",
        )],
        "cycle lab: a b\n  \
           a -> b (1): crates/lab/src/lib.rs:1: crate::b::g\n  \
           b -> a (1): crates/lab/src/lib.rs:2: crate::a::shout",
    );
}

#[test]
fn variable_with_the_name_of_a_macro_is_not_a_macro() {
    check_no_cycle(&[(
        "lib.rs",
        "mod a { macro_rules! sum { () => {} } pub fn f() {} }\n\
         mod b { use crate::a::f; macro_rules! m { () => { let sum = 1; g(sum) } } }\n\
         mod c { use crate::b; }",
    )]);
    check_no_cycle(&[(
        "lib.rs",
        "mod a { use crate::b; macro_rules! sum { () => {} } }\nmod b { fn f() { m!(sum) } }",
    )]);
}

#[test]
fn functions_of_a_type_resolve_to_the_module_of_their_impl_block() {
    for call in ["self.send()", "Self::send(self)", "Session::send(self)"] {
        let session =
            format!("pub struct Session;\nimpl Session {{ pub fn commit(&self) {{ {call} }} }}");
        let cycles = cycles(&[
            ("lib.rs", "mod send;\nmod session;"),
            ("session.rs", &session),
            (
                "send.rs",
                "use super::session::Session;\nimpl Session { pub fn send(&self) {} }",
            ),
        ]);
        assert_eq!(cycles.len(), 1, "{call}: {cycles:?}");
    }
}

#[test]
fn parents_and_children_are_not_siblings() {
    let files: Files<'_> = &[
        ("lib.rs", "mod a;"),
        ("a.rs", "mod child;\npub use child::C;\npub struct A;"),
        ("a/child.rs", "use super::A;\npub struct C(A);"),
    ];
    check_no_cycle(files);
    assert_eq!(run(&Rules::default(), files).child_to_parent, 2);
}

#[test]
fn test_code_is_excluded_from_cycles() {
    for test in [
        "#[cfg(test)]\nmod tests { use crate::b::B; }",
        "#[cfg(all(test, unix))]\nuse crate::b::B;",
        "#[test]\nfn t() { crate::b::B; }",
        "fn f() { #[cfg(test)]\ncrate::b::check(); }",
        "fn f() { #[cfg(test)]\nlet b = crate::b::B; }",
        "fn f(x: X) { match x { #[cfg(test)]\nX::T => crate::b::f(), _ => () } }",
        "struct S { #[cfg(test)]\nb: crate::b::B }",
        "impl A { #[cfg(test)]\nfn f() { crate::b::f() } }",
    ] {
        let a = format!("pub struct A;\n{test}");
        check_no_cycle(&[
            ("lib.rs", "mod a;\nmod b;"),
            ("a.rs", &a),
            ("b.rs", "use crate::a::A;"),
        ]);
    }
}

const NO_STORE: Rules = Rules {
    only_in: &[OnlyIn {
        rule: "only kv names the store",
        words: &[Word::Crate("fjall"), Word::Path("Instant::now")],
        within: &["crates/lab/src/"],
        allowed: &["crates/lab/src/kv.rs"],
        in_tests: false,
    }],
    ..EMPTY
};

const EMPTY: Rules = Rules {
    separations: &[],
    only_in: &[],
    dependencies: &[],
    compiled_by_tests: &[],
    code_lines_max: None,
    documented: &[],
    surface: None,
    without_lint_table: None,
};

const KV: (&str, &str) = (
    "kv.rs",
    "pub use fjall::Slice;\npub(crate) use std::time::Instant;",
);

/// Returns the lines of `a.rs` that violate the rule.
fn lines_at_fault(a: &str) -> Vec<usize> {
    let report = run(&NO_STORE, &[("lib.rs", "mod a;\nmod kv;"), ("a.rs", a), KV]);
    let lines = report.faults.iter().map(|fault| {
        assert_eq!(fault.rule, "only kv names the store", "{a}");
        assert_eq!(fault.file, "crates/lab/src/a.rs", "{a}");
        fault.line
    });
    lines.collect()
}

#[test]
fn violation_after_test_code_is_found() {
    let a = "#[cfg(test)]\nmod tests { use fjall::A; }\n#[cfg(test)]\nfn t() { fjall::b() }\n\
             fn f() { fjall::c() }\n#[cfg(any(test, feature = \"x\"))]\nfn g() { fjall::d() }";
    assert_eq!(lines_at_fault(a), [5, 7]);
}

#[test]
fn violation_is_found_in_every_form() {
    for a in [
        "use fjall::Keyspace;",
        "use fjall as store;",
        "extern crate fjall;",
        "fn f() { vec![::fjall::open()] }",
        "macro_rules! m { () => { fjall::open() } }",
        "fn f() { m!(deep[in fjall::open()]) }",
        "fn f(x: &dyn Fn() -> Vec<fjall::Slice>) {}",
        "use crate::kv::Slice;",
        "#[derive(fjall::Store)] struct S;",
        "fn f() { std::time::Instant::now(); }",
        "fn f() { crate::kv::Instant::now(); }",
        "fn f() { tokio::time::Instant::now(); }",
        "fn f() { let now = g(std::time::Instant::now); }",
    ] {
        assert_eq!(lines_at_fault(a), [1], "{a}");
    }
    assert_eq!(
        lines_at_fault("use std::time::Instant as Clock;\nfn f() { Clock::now() }"),
        [2]
    );
    assert_eq!(
        lines_at_fault("use std::time::*;\nfn f() { Instant::now() }"),
        [2]
    );
}

#[test]
fn similar_code_is_not_a_violation() {
    for a in [
        "// fjall::open()",
        "/// As [`fjall::open`].\nstruct S;",
        "const S: &str = \"fjall::open\";",
        "fn f(fjall: u8) -> u8 { fjall }",
        "mod fjall { pub fn open() {} }\nfn f() { fjall::open() }",
        "fn f(i: std::time::Instant) {}",
        "struct Instant; impl Instant { fn now() {} }\nfn f() { Instant::now() }",
    ] {
        assert_eq!(lines_at_fault(a), [0; 0], "{a}");
    }
}

#[test]
fn unused_allowance_is_a_fault() {
    let report = run(&NO_STORE, &[("lib.rs", "mod kv;"), ("kv.rs", "")]);
    assert_eq!(
        report.faults_of("only kv names the store"),
        ["crates/lab/src/kv.rs:0: is allowed but names nothing of it: only kv names the store"]
    );
}

#[test]
fn unfinished_code_is_found_in_tests_too() {
    const RULES: Rules = Rules {
        only_in: &[OnlyIn {
            rule: "done",
            words: &[
                Word::Macro("todo"),
                Word::Attribute("ignore"),
                Word::Path("thread::sleep"),
                Word::NameEnd("_le_bytes"),
            ],
            within: &[""],
            allowed: &[],
            in_tests: true,
        }],
        ..EMPTY
    };
    for code in [
        "fn f() { todo!() }",
        "fn f() { std::todo!() }",
        "fn f() { run(|| vec![todo!()]) }",
        "#[cfg(test)] mod tests { #[test] #[ignore] fn t() {} }",
        "#[test] #[ignore = \"slow\"] fn t() {}",
        "#[cfg_attr(windows, ignore)] fn t() {}",
        "m! { #[ignore] fn t() {} }",
        "#[cfg(test)] mod tests { fn t() { std::thread::sleep(x) } }",
        "use std::thread; #[test] fn t() { thread::sleep(x) }",
        "fn f() { x.to_le_bytes() }",
        "fn f() { vec![x.to_le_bytes()] }",
        "fn f() { u32::from_le_bytes(x) }",
    ] {
        let report = run(&RULES, &[("lib.rs", code)]);
        assert_eq!(report.faults_of("done").len(), 1, "{code}");
    }
}

#[test]
fn patterns_that_name_each_other_are_reported() {
    const RULES: Rules = Rules {
        separations: &[Separation {
            rule: "apart",
            package: "lab",
            from: &["model", "graph"],
            to: &["model", "graph"],
        }],
        ..EMPTY
    };
    let report = run(
        &RULES,
        &[
            (
                "lib.rs",
                "mod db;\nmod graph;\nmod model;\npub use model::Field;",
            ),
            ("db.rs", "use crate::{graph, model};"),
            ("graph.rs", "mod new;\nmod old;"),
            (
                "graph/new.rs",
                "#[cfg(test)]\nuse crate::model;\nfn f(_: crate::Field) {}",
            ),
            ("graph/old.rs", "use crate::model::Field;\nuse super::new;"),
            ("model.rs", "pub struct Field;\nuse self::Field as F;"),
        ],
    );
    let found = [
        "crates/lab/src/graph/new.rs:3: names crate::Field of model: apart",
        "crates/lab/src/graph/old.rs:1: names crate::model::Field of model: apart",
    ];
    assert_eq!(report.faults_of("apart"), found);
    assert!(
        report
            .figures(std::time::Duration::ZERO)
            .contains(" layer_faults=2 ")
    );
}

#[test]
fn unreached_file_is_found() {
    let report = run(
        &EMPTY,
        &[
            (
                "lib.rs",
                "mod a;\n#[path = \"other/b.rs\"]\nmod b;\nmod c;\nmod missing;",
            ),
            ("a/mod.rs", "mod inner;"),
            ("a/inner.rs", "mod nested { mod leaf; }"),
            ("a/inner/nested/leaf.rs", ""),
            ("other/b.rs", "mod sibling;"),
            ("other/sibling.rs", "#[cfg(test)]\nmod tests;"),
            ("other/sibling/tests.rs", ""),
            ("c.rs", "fn (\n\n"),
            ("lost.rs", "1\n2\n3\n"),
        ],
    );
    assert_eq!(report.unseen_lines, 5);
    let faults = report.faults_of(REACHED);
    let starts = [
        "crates/lab/src/c.rs:0: cannot be parsed: line 1: ",
        "crates/lab/src/lib.rs:4: the file of module c is missing or cannot be parsed: ",
        "crates/lab/src/lib.rs:5: the file of module missing is missing or cannot be parsed: ",
        "crates/lab/src/lost.rs:0: cannot be parsed: ",
    ];
    assert_eq!(faults.len(), starts.len(), "{faults:?}");
    for (fault, start) in faults.iter().zip(starts) {
        assert!(fault.starts_with(start), "{fault}");
    }
}

#[test]
fn unreached_file_counts_with_all_its_lines() {
    let report = run(&EMPTY, &[("lib.rs", ""), ("lost.rs", "fn f() {\n}\n")]);
    assert_eq!(report.unseen_lines, 2);
    let expected = format!("crates/lab/src/lost.rs:0: no target reaches these 2 lines: {REACHED}");
    assert_eq!(report.faults_of(REACHED), [expected]);
}

#[test]
fn whole_files_are_checked() {
    const RULES: Rules = Rules {
        dependencies: &[Dependencies {
            rule: "alone",
            package: "absent",
            among: "",
            allowed: &[],
        }],
        code_lines_max: Some(CodeLinesMax {
            lines: 2,
            within: &["crates/"],
            exempt: &["limits.rs"],
        }),
        documented: &["crates/"],
        without_lint_table: Some(&[]),
        ..EMPTY
    };
    let report = run(
        &RULES,
        &[
            ("lib.rs", "//! The lab.\nmod a;\nmod limits;"),
            (
                "a.rs",
                "// Not a doc.\n#[cfg(test)]\nmod tests {\n}\n// Comment.\nfn f() {\n}\nstruct S;",
            ),
            ("limits.rs", "//! Limits.\nfn f() {\n}\nstruct S;"),
        ],
    );
    assert_eq!(report.faults_of(DOCUMENTED).len(), 1);
    let expected = format!("crates/lab/src/a.rs:0: 3 lines of code, at most 2: {READABLE}");
    assert_eq!(report.faults_of(READABLE), [expected]);
    assert_eq!(report.faults_of(LINTED).len(), 1);
    assert_eq!(report.faults_of("alone").len(), 1);
}

#[test]
fn banned_words_and_unclear_test_names_are_counted() {
    // Built from parts, so that this file does not contain the words.
    let (banned, verb) = (["no", "body"].concat(), ["Te", "lls"].concat());
    let code = format!(
        "// {verb}: {banned}_waits, {banned}.\nfn {banned}() {{}}\n\
         #[cfg(test)]\nmod tests {{\n#[test]\nfn who_waits() {{}}\n#[test]\nfn reader_waits() {{}}\n}}"
    );
    let report = run(&EMPTY, &[("lib.rs", &code)]);
    assert_eq!((report.banned_words, report.riddle_tests), (4, 1));
    let lines: Vec<_> = report
        .language_faults
        .iter()
        .map(|fault| fault.line)
        .collect();
    assert_eq!(lines, [1, 1, 1, 2, 6]);
}

#[test]
fn public_surface_is_counted() {
    const RULES: Rules = Rules {
        surface: Some("lab"),
        ..EMPTY
    };
    let code = "pub mod a { pub struct A; struct B; pub(crate) fn c() {} mod d { pub fn e() {} } }\n\
                mod f { pub struct F; pub struct G; }\n\
                pub use f::{F, G as H};\nuse a::A;\n#[cfg(test)]\npub mod tests {}";
    let surface = run(&RULES, &[("lib.rs", code)]).surface;
    assert_eq!((surface.modules, surface.items), (1, 3));
}
