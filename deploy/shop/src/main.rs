//! A shop to deploy: in AWS Lambda it is the router of its changes, and elsewhere it writes the template of its deployment.
//!
//! | file | what it holds |
//! |---|---|
//! | `models` | what the shop stores |
//! | `router` | what follows from a change |
//! | `deployment` | the tables, and the functions that follow their changes |
//!
//! `cargo run -p floe-shop` writes `deploy/cloudformation.json`, and `deploy/cdk/tables.json` for the app of the AWS CDK. A
//! test fails when they are not what the models make.

#![forbid(unsafe_code)]

mod deployment;
mod models;
mod router;

use std::fs;

use floe::changes::lambda::{Receiver, Runtime};
use floe::db::ConnectOptions;
use floe::{Db, Error};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    match Runtime::from_env() {
        Ok(runtime) => Ok(serve(&runtime).await?),
        Err(_) => {
            for (path, text) in deployment::files()? {
                fs::write(path, text)?;
            }
            Ok(())
        }
    }
}

/// Routes the changes that Lambda brings.
async fn serve(runtime: &Runtime) -> Result<(), Error> {
    let db = match Db::connect(ConnectOptions::new()).await {
        Ok(db) => db,
        Err(error) => {
            runtime.fail_init(&error.to_string()).await?;
            return Err(error);
        }
    };
    let receiver = Receiver::new(router::router(&db)).db(&db);
    receiver.run_in(runtime).await
}
