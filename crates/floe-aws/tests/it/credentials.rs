//! Region and credentials come from the options, the environment or the profile.
//!
//! The environment is shared by all tests of a process, so each case runs in a child process: this program, started
//! again with the case in [`CASE`].

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use floe::{Db, ErrorKind, Model, Tx};
use floe_aws::ConnectOptions;
use floe_local::LocalEngine;
use floe_server::{Keys, Server, ServerHandle, Service};
use floe_store::Error;

/// The variable with the case that a child runs.
const CASE: &str = "FLOE_CASE";
/// The variable with the URL of the server.
const URL: &str = "FLOE_URL";

#[derive(Clone, Debug, PartialEq, Model)]
struct Note {
    #[model(key)]
    id: String,
}

/// Starts a server with one key pair and one region.
async fn server() -> ServerHandle {
    let engine = Arc::new(LocalEngine::memory().unwrap());
    let options = floe_server::Options::new()
        .keys(Keys::one("AKIDEXAMPLE", "a secret"))
        .region("eu-central-1");
    let server = Server::bind(options, Service::new(engine)).await.unwrap();
    server.spawn()
}

/// Runs a case in a child process with only these variables.
async fn run(case: &str, environment: &[(&str, &str)]) {
    let server = server().await;
    let home = tempfile::tempdir().unwrap();
    write_profile(home.path());
    let file = |name: &str| home.path().join(name);
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "credentials::child", "--nocapture"])
        .env_clear()
        .env("HOME", home.path())
        .env("AWS_CONFIG_FILE", file("config"))
        .env("AWS_SHARED_CREDENTIALS_FILE", file("credentials"))
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env(CASE, case)
        .env(URL, server.url())
        .envs(environment.iter().copied());
    let ended = tokio::task::spawn_blocking(move || child.output());
    let output = ended.await.unwrap().unwrap();
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

fn write_profile(home: &Path) {
    let config = "[profile shop]\nregion = eu-central-1\n";
    let credentials = "[shop]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = a secret\n";
    std::fs::write(home.join("config"), config).unwrap();
    std::fs::write(home.join("credentials"), credentials).unwrap();
}

/// Runs the case of a child process. Does nothing in the test process itself.
#[tokio::test]
async fn child() {
    let (Ok(case), Ok(url)) = (std::env::var(CASE), std::env::var(URL)) else {
        return;
    };
    let options = ConnectOptions::new().endpoint(url);
    match case.as_str() {
        "works" => works(options).await,
        "profile" => works(options.profile("shop")).await,
        "prefixed" => works(options.profile("shop").table_prefix("dev-")).await,
        "no region" => {
            let error = Db::connect(options).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Store);
            let text = error.to_string();
            assert!(text.starts_with("no region is configured"), "{text}");
        }
        "no credentials" => {
            let db = Db::connect(options.region("eu-central-1")).await.unwrap();
            let error = db.ensure_tables(&[Note::SCHEMA]).await.unwrap_err();
            let cause = error.store_error();
            assert!(matches!(cause, Some(Error::AccessDenied(_))), "{error:?}");
        }
        other => panic!("no such case: {other}"),
    }
}

/// Connects, and sends requests of several kinds.
async fn works(options: ConnectOptions) {
    let db = Db::connect(options).await.unwrap();
    db.ensure_tables(&[Note::SCHEMA]).await.unwrap();
    let id = "a".to_owned();
    let create = async |tx: &Tx| tx.create(Note { id: id.clone() }).map(drop);
    db.transact(create).await.unwrap();
    let found = db.scan::<Note>().all().await.unwrap();
    assert_eq!(found, [Note { id }]);
}

#[tokio::test]
async fn environment_sets_region_and_keys() {
    let environment = [
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "a secret"),
    ];
    run("works", &environment).await;
}

#[tokio::test]
async fn environment_selects_the_profile() {
    run("works", &[("AWS_PROFILE", "shop")]).await;
}

#[tokio::test]
async fn options_select_the_profile() {
    run("profile", &[]).await;
    run("prefixed", &[]).await;
}

#[tokio::test]
async fn connecting_without_region_fails() {
    run("no region", &[]).await;
}

#[tokio::test]
async fn first_request_without_credentials_is_denied() {
    run("no credentials", &[]).await;
}
