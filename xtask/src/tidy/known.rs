//! What is not yet as the rules want it. An entry that is no longer needed fails the check.

use super::rules::{Known, KnownCycle};

/// Faults that are there today.
pub const FAULTS: &[Known] = &[
    Known {
        rule: "patterns name no other pattern",
        word: "model",
        why: "keys, documents and invalid values are those of models",
        files: &[
            "crates/floe/src/changes/consumer/parked.rs",
            "crates/floe/src/changes/consumer/position.rs",
            "crates/floe/src/changes/consumer/stored.rs",
            "crates/floe/src/changes/outbox.rs",
            "crates/floe/src/changes/router.rs",
            "crates/floe/src/changes/watched.rs",
            "crates/floe/src/changes/work.rs",
        ],
    },
    Known {
        rule: "patterns name no other pattern",
        word: "model",
        why: "the deadline of making tables is a constant of models",
        files: &[
            "crates/floe/src/events/feed/settings.rs",
            "crates/floe/src/events/store.rs",
        ],
    },
    Known {
        rule: "patterns name no other pattern",
        word: "model",
        why: "pages, documents and the making of tables are those of models",
        files: &[
            "crates/floe/src/graph/keys.rs",
            "crates/floe/src/graph/list.rs",
            "crates/floe/src/graph/list/plan.rs",
            "crates/floe/src/graph/query/all.rs",
            "crates/floe/src/graph/query/lookup.rs",
            "crates/floe/src/graph/query/referrers.rs",
            "crates/floe/src/graph/schema.rs",
        ],
    },
    Known {
        rule: "patterns name no other pattern",
        word: "changes",
        why: "the handler of what has expired is registered with the router by the registry",
        files: &[
            "crates/floe/src/registry.rs",
            "crates/floe/src/registry/tombstone.rs",
        ],
    },
    Known {
        rule: "patterns name no other pattern",
        word: "model",
        why: "attributes, expiry, pages and the description of tables are those of models",
        files: &[
            "crates/floe/src/registry.rs",
            "crates/floe/src/registry/content.rs",
            "crates/floe/src/registry/deployed.rs",
            "crates/floe/src/registry/describe.rs",
            "crates/floe/src/registry/describe/checks.rs",
            "crates/floe/src/registry/describe/words.rs",
            "crates/floe/src/registry/described.rs",
            "crates/floe/src/registry/group.rs",
            "crates/floe/src/registry/history.rs",
            "crates/floe/src/registry/schema.rs",
            "crates/floe/src/registry/stored.rs",
            "crates/floe/src/registry/tables.rs",
            "crates/floe/src/registry/version.rs",
            "crates/floe/src/registry/work.rs",
        ],
    },
];

/// Cycles that are there today.
pub const CYCLES: &[KnownCycle] = &[
    KnownCycle {
        package: "floe-bench (bin floe-bench)",
        parent: "wire",
        modules: &["plan", "process"],
    },
    KnownCycle {
        package: "floe",
        parent: "changes",
        modules: &["consumer", "telemetry"],
    },
    KnownCycle {
        package: "floe",
        parent: "changes::consumer",
        modules: &["run", "turn"],
    },
    KnownCycle {
        package: "floe",
        parent: "events",
        modules: &["access", "decider"],
    },
    KnownCycle {
        package: "floe",
        parent: "events",
        modules: &["load", "send", "sync"],
    },
    KnownCycle {
        package: "floe",
        parent: "events::feed",
        modules: &["reader", "telemetry"],
    },
    KnownCycle {
        package: "floe",
        parent: "graph::delete",
        modules: &["job", "removal"],
    },
    KnownCycle {
        package: "floe",
        parent: "model",
        modules: &["changes", "compile", "part", "row"],
    },
    KnownCycle {
        package: "floe",
        parent: "registry",
        modules: &["changes", "compile"],
    },
    KnownCycle {
        package: "floe",
        parent: "registry",
        modules: &["group", "key"],
    },
    KnownCycle {
        package: "floe",
        parent: "registry",
        modules: &["history", "work"],
    },
    KnownCycle {
        package: "floe",
        parent: "registry",
        modules: &["stored", "version"],
    },
    KnownCycle {
        package: "floe",
        parent: "telemetry",
        modules: &["engine", "metrics"],
    },
    KnownCycle {
        package: "floe",
        parent: "tx",
        modules: &["commit", "part"],
    },
    KnownCycle {
        package: "floe-store",
        parent: "",
        modules: &[
            "capacity",
            "engine",
            "env",
            "error",
            "expr",
            "item",
            "key_length",
            "limits",
            "op",
            "size",
            "table",
            "value",
        ],
    },
    KnownCycle {
        package: "floe-store",
        parent: "op",
        modules: &["create_table", "schema"],
    },
    KnownCycle {
        package: "floe-store",
        parent: "op",
        modules: &[
            "delete_item",
            "fingerprint",
            "put_item",
            "transact_write_items",
            "update_item",
            "write_item",
        ],
    },
    KnownCycle {
        package: "floe-store",
        parent: "op",
        modules: &["plan", "query", "scan"],
    },
    KnownCycle {
        package: "floe-local",
        parent: "",
        modules: &[
            "apply",
            "background",
            "changes",
            "commit",
            "engine",
            "expire",
            "fresh",
            "gate",
            "jobs",
            "mirror",
            "queue",
            "tokens",
        ],
    },
    KnownCycle {
        package: "floe-local",
        parent: "",
        modules: &["kv", "layout"],
    },
    KnownCycle {
        package: "floe-local",
        parent: "doctor",
        modules: &["compare", "repair", "table"],
    },
    KnownCycle {
        package: "floe-server",
        parent: "",
        modules: &[
            "accept",
            "connection",
            "guard",
            "http",
            "metrics",
            "options",
            "service",
            "sigv4",
            "wire",
        ],
    },
    KnownCycle {
        package: "floe-server",
        parent: "wire",
        modules: &["parameter", "read", "refusal", "write"],
    },
    KnownCycle {
        package: "floe-server",
        parent: "wire::table",
        modules: &["members", "settings"],
    },
    KnownCycle {
        package: "floe-testkit",
        parent: "fault",
        modules: &["records", "streams"],
    },
    KnownCycle {
        package: "floe-testkit",
        parent: "history::isolation",
        modules: &["cycles", "explain", "graph", "index", "versions"],
    },
    KnownCycle {
        package: "floe-testkit",
        parent: "model",
        modules: &["changes", "state"],
    },
    KnownCycle {
        package: "floe-derive",
        parent: "",
        modules: &["checks", "fields", "parse", "rules"],
    },
    KnownCycle {
        package: "floe-derive",
        parent: "event",
        modules: &["checks", "parse"],
    },
    KnownCycle {
        package: "floe-derive",
        parent: "registry",
        modules: &["checks", "parse"],
    },
    KnownCycle {
        package: "floe-cli",
        parent: "",
        modules: &["indexer", "lambda"],
    },
    KnownCycle {
        package: "floe-cli",
        parent: "feed",
        modules: &["read", "tail"],
    },
    KnownCycle {
        package: "floe-verify (bin floe-verify)",
        parent: "checks",
        modules: &["audit", "directory", "replay"],
    },
    KnownCycle {
        package: "floe-verify (bin floe-verify)",
        parent: "checks",
        modules: &[
            "bit_rot",
            "expiry",
            "feed",
            "foreign",
            "graph",
            "hostile",
            "io_errors",
            "role",
            "soak",
            "tables",
            "writer",
        ],
    },
    KnownCycle {
        package: "floe-verify (bin floe-verify)",
        parent: "checks::feed",
        modules: &["careless", "consume"],
    },
];
