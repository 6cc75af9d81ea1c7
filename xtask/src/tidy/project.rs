//! The rules of this project, as tables. ARCHITECTURE.md describes them.

use super::rules::{CodeLinesMax, Dependencies, OnlyIn, Rules, Separation, Word};

/// The manifests whose packages are checked.
pub const MANIFESTS: &[&str] = &["Cargo.toml", "fuzz/Cargo.toml"];

/// The rules.
pub const RULES: Rules = Rules {
    separations: SEPARATIONS,
    only_in: ONLY_IN,
    dependencies: DEPENDENCIES,
    compiled_by_tests: &["/tests/ui/"],
    code_lines_max: Some(CodeLinesMax {
        lines: 600,
        within: &["crates/"],
        // Catalogues may be longer.
        exempt: &["limits.rs", "reserved.rs"],
    }),
    documented: &["crates/", "xtask/", "verify/", "examples/", "benches/"],
    surface: Some("floe"),
    without_lint_table: Some(&["floe-fuzz"]),
};

const PATTERNS: &[&str] = &["model", "events", "graph", "registry"];
/// The router of changes uses models, for its own state, and the registry, whose versions expire.
const PATTERNS_AND_ROUTER: &[&str] = &["model", "events", "graph", "registry", "changes"];
const KERNEL: &[&str] = &[
    "attribute",
    "cache",
    "cursor",
    "delivery",
    "key",
    "request",
    "tables",
    "telemetry",
    "tx",
    "watched",
];

const SEPARATIONS: &[Separation] = &[
    Separation {
        rule: "the kernel names no pattern",
        package: "floe",
        from: KERNEL,
        to: PATTERNS_AND_ROUTER,
    },
    Separation {
        rule: "patterns name no other pattern",
        package: "floe",
        from: PATTERNS,
        to: PATTERNS_AND_ROUTER,
    },
    Separation {
        rule: "the router names models and the registry only",
        package: "floe",
        from: &["changes"],
        to: &["events", "graph"],
    },
];

const DEPENDENCIES: &[Dependencies] = &[
    Dependencies {
        rule: "floe-store depends on no runtime, storage or SDK",
        package: "floe-store",
        among: "",
        allowed: &["base64", "smol_str"],
    },
    Dependencies {
        rule: "engines depend on floe-store only",
        package: "floe-local",
        among: "floe",
        allowed: &["floe-store"],
    },
    Dependencies {
        rule: "engines depend on floe-store only",
        package: "floe-aws",
        among: "floe",
        allowed: &["floe-store"],
    },
];

const ONLY_IN: &[OnlyIn] = &[
    OnlyIn {
        rule: "floe-store does no I/O",
        words: &[
            Word::Path("std::fs"),
            Word::Path("std::net"),
            Word::Path("std::process"),
            Word::Path("std::thread"),
        ],
        within: &["crates/floe-store/src/"],
        allowed: &[],
        in_tests: false,
    },
    OnlyIn {
        rule: "only kv names the key-value store",
        words: &[
            Word::Crate("fjall"),
            Word::Crate("imbl"),
            Word::Crate("lsm_tree"),
            Word::Crate("sfa"),
        ],
        within: &["crates/"],
        allowed: &[
            "crates/floe-local/src/kv.rs",
            "crates/floe-local/src/kv/",
            // Checks the store's files before it opens them.
            "crates/floe-local/src/files",
        ],
        in_tests: false,
    },
    OnlyIn {
        rule: "only layout and file formats encode bytes",
        words: &[
            Word::NameEnd("_be_bytes"),
            Word::NameEnd("_le_bytes"),
            Word::NameEnd("encode_ordered"),
            Word::NameEnd("encode_compact"),
        ],
        within: &["crates/floe-local/src/"],
        allowed: &[
            "crates/floe-local/src/layout",
            // The formats of the key-value store, and the table id that prefixes its keys.
            "crates/floe-local/src/journal",
            "crates/floe-local/src/files",
            "crates/floe-local/src/kv",
            "crates/floe-local/src/fuzzing.rs",
        ],
        in_tests: false,
    },
    OnlyIn {
        rule: "only env reads the clock and generates random numbers",
        words: &[
            Word::Path("SystemTime::now"),
            Word::Path("Instant::now"),
            Word::Path("RandomState"),
            Word::Crate("getrandom"),
            Word::Crate("rand"),
            Word::Crate("fastrand"),
            Word::Path("Uuid::new_v4"),
            Word::Path("Uuid::now_v7"),
        ],
        within: &["crates/"],
        allowed: &["crates/floe-store/src/env.rs"],
        in_tests: false,
    },
    OnlyIn {
        rule: "only floe-aws/src/convert names the SDK",
        words: &[
            Word::Crates("aws_s"),
            Word::Crate("aws_config"),
            Word::Crate("aws_credential_types"),
        ],
        within: &["crates/"],
        allowed: &["crates/floe-aws/src/convert/"],
        in_tests: false,
    },
    OnlyIn {
        rule: "serde_json is not used for the wire protocol",
        words: &[Word::Crate("serde_json")],
        within: &["crates/"],
        // Exports, JSON fields, JSON Schema, event bodies, descriptions of registries and Lambda events are JSON text
        // by definition, and not the wire protocol.
        allowed: &[
            "crates/floe-local/src/export",
            "crates/floe/src/attribute",
            "crates/floe/src/changes/",
            "crates/floe/src/delivery/stream/",
            "crates/floe/src/model/",
            "crates/floe/src/events/support.rs",
            "crates/floe/src/events/feed/",
            "crates/floe/src/registry/describe",
            "crates/floe/src/tables/",
        ],
        in_tests: false,
    },
    OnlyIn {
        rule: "only db names an engine",
        words: &[Word::Crate("floe_local"), Word::Crate("floe_aws")],
        within: &["crates/floe/src/"],
        allowed: &["crates/floe/src/db.rs"],
        in_tests: false,
    },
    OnlyIn {
        rule: "the protocol server names no pattern",
        words: &[Word::Crate("floe")],
        within: &["crates/floe-server/src/"],
        allowed: &[],
        in_tests: false,
    },
    OnlyIn {
        rule: "no code is unfinished or ignored",
        words: &[
            Word::Macro("todo"),
            Word::Macro("unimplemented"),
            Word::Macro("dbg"),
            Word::Attribute("ignore"),
        ],
        within: &[""],
        allowed: &[],
        in_tests: true,
    },
    OnlyIn {
        rule: "no thread sleeps",
        words: &[Word::Path("thread::sleep")],
        within: &[""],
        // The key-value store does not report when it has caught up, so the engine polls it.
        allowed: &["crates/floe-local/src/kv/disk.rs"],
        in_tests: true,
    },
    OnlyIn {
        rule: "code is not included as text",
        words: &[Word::Macro("include")],
        within: &[""],
        allowed: &[],
        in_tests: true,
    },
];
