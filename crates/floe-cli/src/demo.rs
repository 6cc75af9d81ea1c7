//! `floe demo`: a small shop in an embedded store, filled through the patterns, described, and served.

mod shop;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use floe::Db;
use floe_local::LocalEngine;
use floe_server::{Options, ServeError, Server, Service};
use floe_store::env::Stopwatch;

use super::serve::{parse_listen, serve_bound};
use crate::{ACCOUNT, EVENT_INTERVAL, Failure, Result, Signals, print, refuse_file, threads};

/// Where the demo listens, if that is free.
const LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8000);

/// Fill a store through all patterns, tell what was done, and serve it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe demo
  # keep the shop in a directory
  floe demo --data ./shop
  floe demo --no-serve --data ./shop

A shop of models, streams of events, a graph and a registry is filled: each purchase is one commit over the first three, a \
change of a price one over the product and the next version of the price list. Then the store is served over DynamoDB's \
protocol, so that every command of floe, the AWS CLI and any SDK can look at it. Ctrl-C ends it; \
without --data nothing is left behind.")]
pub(super) struct Demo {
    /// Keep the shop in this directory, which must not be there yet or be empty [default: in memory]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Where to listen: a port of this machine, or an address and a port [default: 8000, or any that is free]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen)]
    listen: Option<SocketAddr>,

    /// End when the shop is filled
    #[arg(long, conflicts_with = "listen")]
    no_serve: bool,
}

impl Demo {
    pub(super) fn run(&self) -> Result {
        let runtime = threads(EVENT_INTERVAL)?;
        let engine = Arc::new(self.open()?);
        let done = runtime.block_on(Box::pin(self.show(&engine)));
        done.and(engine.close().map_err(Failure::broken))
    }

    fn open(&self) -> Result<LocalEngine> {
        let options = floe_local::Options::new()
            .region("us-east-1")
            .account(ACCOUNT);
        let Some(path) = &self.data else {
            return LocalEngine::memory_with(options).map_err(Failure::broken);
        };
        refuse_file(path)?;
        let is_used = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        if is_used {
            return Err(Failure::broken(format!(
                "the directory is not empty, and the demo is for a new one: path={}; name another with --data",
                path.display()
            )));
        }
        LocalEngine::open_with(path, options).map_err(Failure::broken)
    }

    async fn show(&self, engine: &Arc<LocalEngine>) -> Result {
        let watch = Stopwatch::start();
        let db = Db::with_engine(Arc::clone(engine) as _);
        let filled = shop::fill(db).await?;
        print(format!(
            "A shop was filled in {} ms, {}.\n",
            watch.elapsed().as_millis(),
            match &self.data {
                Some(path) => format!("in the directory {}", path.display()),
                None => "in memory".to_owned(),
            }
        ));
        filled.print();
        if self.no_serve {
            if let Some(path) = &self.data {
                print_commands(&format!("--data {}", path.display()));
            }
            return Ok(());
        }
        let server = self.bind(engine).await?;
        print_commands(&format!("--endpoint http://{}", server.local_addr()));
        serve_bound(server, &**engine, "Ctrl-C ends it", Signals::new()?).await;
        Ok(())
    }

    /// Takes the address that was asked for, or the usual one, or any that is free.
    async fn bind(&self, engine: &Arc<LocalEngine>) -> Result<Server> {
        let bind = async |address: SocketAddr| {
            let service = Service::new(Arc::clone(engine) as _);
            let server = Server::bind(Options::new().listen(address), service.clone()).await?;
            service.set_endpoint(server.local_addr().to_string());
            Ok::<_, ServeError>(server)
        };
        let asked = self.listen.unwrap_or(LISTEN);
        match bind(asked).await {
            Ok(server) => Ok(server),
            Err(error) if self.listen.is_some() => Err(Failure::broken(format!(
                "{error}; choose another with --listen"
            ))),
            Err(_) => {
                let any = SocketAddr::new(LISTEN.ip(), 0);
                bind(any).await.map_err(Failure::broken)
            }
        }
    }
}

/// Prints how to look at the shop.
fn print_commands(place: &str) {
    print("\nLook at it, from another terminal:");
    for (command, what) in COMMANDS {
        print(format!("\n  # {what}\n  floe {command} {place}"));
    }
}

/// Commands to begin with, and what they show.
const COMMANDS: [(&str, &str); 12] = [
    ("table list", "all tables"),
    ("scan Product", "a model, as its items are stored"),
    (
        "query Purchase --key-condition '#c = :c' --names '{\"#c\":\"_id\"}' --values '{\":c\":\"ada\"}'",
        "what Ada bought",
    ),
    ("events read Account-ada", "what happened, event by event"),
    ("events stats", "streams and events by category"),
    ("feed tail --last 5 --once", "the end of the feed"),
    ("feed verify", "whether the feed tells every event once"),
    (
        "graph related shop customer ada",
        "what Ada leads to in the graph",
    ),
    ("graph lookup shop by_city Oslo", "customers by an index"),
    (
        "registry latest PriceList market=north",
        "what everything costs now",
    ),
    (
        "registry history PriceList market=north",
        "and what it has cost before",
    ),
    ("tables --format terraform", "the tables as code"),
];
