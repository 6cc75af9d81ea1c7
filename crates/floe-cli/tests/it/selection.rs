//! Which store a command uses, and hints that fit the command and its store.

use std::process::Command;

use crate::support::{ProgramOutput, Running, Store, floe, run, run_command};

/// A command in an environment with credentials and a region of AWS, whose requests go to this server.
fn in_aws(endpoint: &str, words: &[&str]) -> Command {
    let mut command = floe(words);
    command.envs([
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ]);
    command
}

#[test]
fn amazon_is_used_only_if_an_option_requests_it() {
    let store = Store::server().with_orders();
    let [_, endpoint] = store.option();
    let list = ["table", "list", "--names"];
    let listed = |option: &[&str]| -> ProgramOutput {
        run_command(in_aws(endpoint, &[&list[..], option].concat()))
    };
    listed(&[]).assert_failure(2, &["no store is selected", "--aws for Amazon DynamoDB"]);
    listed(&["--table-prefix", "x"]).assert_failure(2, &["no store is selected"]);
    for option in [&["--aws"][..], &["--region", "us-east-1"]] {
        assert_eq!(listed(option).assert_success().stdout, "orders\n");
    }
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    let profile = "[profile shop]\nregion = us-east-1\naws_access_key_id = key\naws_secret_access_key = secret\n";
    std::fs::write(&config, profile).unwrap();
    let mut command = floe(&[&list[..], &["--profile", "shop"]].concat());
    command
        .env("AWS_ENDPOINT_URL", endpoint)
        .env("AWS_CONFIG_FILE", &config);
    assert_eq!(run_command(command).assert_success().stdout, "orders\n");

    for option in [["--data", "."], ["--endpoint", "http://127.0.0.1:1"]] {
        listed(&[&["--aws"][..], &option].concat()).assert_failure(2, &["cannot be used with"]);
    }
    let delete = in_aws(endpoint, &["table", "delete", "orders", "--aws"]);
    run_command(delete).assert_failure(
        2,
        &["store=aws account=100000000001 region=us-east-1 table=orders items=3"],
    );
}

#[test]
fn region_must_be_known_for_amazon() {
    let mut command = floe(&["table", "list", "--aws"]);
    command.env("AWS_EC2_METADATA_DISABLED", "true");
    run_command(command).assert_failure(
        1,
        &["no region is configured", "; check --region and --profile"],
    );
}

#[test]
fn endpoint_in_the_environment_is_named_in_a_conflict() {
    let mut command = floe(&["table", "list", "--data", "."]);
    command.env("FLOE_ENDPOINT", "http://127.0.0.1:8000");
    run_command(command).assert_failure(
        2,
        &[
            "cannot be used with",
            "; FLOE_ENDPOINT is set in the environment; see floe table list",
        ],
    );
    let both = [
        "table",
        "list",
        "--data",
        ".",
        "--endpoint",
        "http://127.0.0.1:8000",
    ];
    let output = run(&both);
    output.assert_failure(2, &["cannot be used with"]);
    assert!(!output.stderr.contains("FLOE_ENDPOINT"), "{output:?}");
}

#[test]
fn hint_for_a_directory_in_use_fits_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let _server = Running::start(&["serve", "--data", data, "--listen", "0"]);
    for (words, hint) in [
        (
            &["table", "list"][..],
            "; if `floe serve` has it open, use --endpoint instead of --data",
        ),
        (
            &["backup", "/nowhere/at/all"],
            "; stop the process that has it open",
        ),
        (&["doctor"], "; stop the process that has it open"),
    ] {
        let output = run(&[words, &["--data", data]].concat());
        output.assert_failure(1, &["the directory is in use", hint]);
    }
}

#[test]
fn hint_for_a_missing_directory_fits_the_command() {
    for (words, hint) in [
        (
            &["restore", "/nowhere", "--data", "/nowhere/else"][..],
            "; `floe backup` creates a backup",
        ),
        (
            &[
                "table", "create", "orders", "--key", "id:S", "--data", "/nowhere",
            ],
            "; --new creates a store",
        ),
        (
            &["scan", "x", "--data", "/nowhere"],
            "; `floe serve --data` and `floe demo --data` create a store",
        ),
    ] {
        run(words).assert_failure(1, &["there is no such directory: path=/nowhere", hint]);
    }
}

#[test]
fn missing_event_table_is_reported_with_the_command_that_creates_it() {
    let store = Store::directory();
    for words in [
        &["events", "stats"][..],
        &["feed", "status"],
        &["indexer", "--once"],
    ] {
        let output = store.run(words);
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.stderr.contains("`floe "), "{output:?}");
    }
    store
        .run(&["events", "stats"])
        .assert_failure(1, &["or create it with `floe events create`"]);
}
