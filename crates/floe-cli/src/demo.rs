//! `floe demo`: fills an embedded store with a small shop through all patterns, prints a summary, and serves it.

mod shop;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use floe::Db;
use floe_local::LocalEngine;
use floe_server::{Options, ServeError, Server, Service};
use floe_store::env::Stopwatch;

use super::serve::{parse_listen, serve_bound};
use crate::{
    ACCOUNT, EVENT_INTERVAL, Failure, Result, Signals, check_not_file, multi_thread_runtime, print,
};

/// The default address.
const LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8000);

/// Fill a store with example data of all patterns, and serve it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe demo
  # store the shop in a directory
  floe demo --data ./shop
  floe demo --no-serve --data ./shop

The demo fills a shop with models, event streams, a graph and a registry. Each purchase is one commit over the first three; a \
price change is one commit over the product and the next version of the price list. The store is then served over DynamoDB's \
protocol, so that you can explore it with floe, the AWS CLI and any SDK. Ctrl-C stops the server. Without --data, nothing is \
stored on disk.")]
pub(super) struct Demo {
    /// Directory of the store; must not exist, or be empty [default: in memory]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Port, or address and port, to listen on [default: 8000, or any free port]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen)]
    listen: Option<SocketAddr>,

    /// Exit when the shop is filled
    #[arg(long, conflicts_with = "listen")]
    no_serve: bool,
}

impl Demo {
    pub(super) fn run(&self) -> Result {
        self.check_address()?;
        let runtime = multi_thread_runtime(EVENT_INTERVAL)?;
        let engine = Arc::new(self.open()?);
        let result = runtime.block_on(Box::pin(self.fill_and_serve(&engine)));
        result.and(engine.close().map_err(Failure::failed))
    }

    /// Fails if the requested address is in use, before a store is created and filled.
    fn check_address(&self) -> Result {
        let Some(listen) = self.listen else {
            return Ok(());
        };
        let bound = TcpListener::bind(listen).map(drop);
        bound.map_err(|source| bind_failure(&ServeError::Bind { listen, source }))
    }

    fn open(&self) -> Result<LocalEngine> {
        let options = floe_local::Options::new()
            .region("us-east-1")
            .account(ACCOUNT);
        let Some(path) = &self.data else {
            return LocalEngine::memory_with(options).map_err(Failure::failed);
        };
        check_not_file(path, "choose another with --data")?;
        let is_not_empty =
            std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        if is_not_empty {
            return Err(Failure::failed(format!(
                "the directory is not empty: path={}; choose another with --data",
                path.display()
            )));
        }
        LocalEngine::open_with(path, options).map_err(Failure::failed)
    }

    async fn fill_and_serve(&self, engine: &Arc<LocalEngine>) -> Result {
        let watch = Stopwatch::start();
        let db = Db::with_engine(Arc::clone(engine) as _);
        let filled = shop::fill(db).await?;
        print(format!(
            "Filled a shop in {} ms, {}.\n",
            watch.elapsed().as_millis(),
            match &self.data {
                Some(path) => format!("in directory {}", path.display()),
                None => "in memory".to_owned(),
            }
        ))?;
        filled.print()?;
        if self.no_serve {
            return match &self.data {
                Some(path) => print_commands(&format!("--data {}", path.display())),
                None => Ok(()),
            };
        }
        let server = self.bind(engine).await?;
        print_commands(&format!("--endpoint http://{}", server.local_addr()))?;
        serve_bound(server, &**engine, "stop with Ctrl-C", Signals::new()?).await
    }

    /// Listens on the requested address; without one, on the default address or any free port.
    async fn bind(&self, engine: &Arc<LocalEngine>) -> Result<Server> {
        let bind = async |address: SocketAddr| {
            let service = Service::new(Arc::clone(engine) as _);
            let server = Server::bind(Options::new().listen(address), service.clone()).await?;
            service.set_endpoint(server.local_addr().to_string());
            Ok::<_, ServeError>(server)
        };
        match bind(self.listen.unwrap_or(LISTEN)).await {
            Ok(server) => Ok(server),
            Err(error) if self.listen.is_some() => Err(bind_failure(&error)),
            Err(_) => {
                let any = SocketAddr::new(LISTEN.ip(), 0);
                bind(any).await.map_err(Failure::failed)
            }
        }
    }
}

/// Prints commands to explore the shop with.
fn print_commands(store_option: &str) -> Result {
    print("\nExplore it from another terminal:")?;
    COMMANDS.iter().try_for_each(|(command, description)| {
        print(format!(
            "\n  # {description}\n  floe {command} {store_option}"
        ))
    })
}

fn bind_failure(error: &ServeError) -> Failure {
    Failure::failed(format!("{error}; choose another with --listen"))
}

/// Example commands, and what they print.
const COMMANDS: [(&str, &str); 12] = [
    ("table list", "all tables"),
    ("scan Product", "the stored items of a model"),
    (
        "query Purchase --key-condition '#c = :c' --names '{\"#c\":\"_id\"}' --values '{\":c\":\"ada\"}'",
        "purchases of Ada",
    ),
    ("events read Account-ada", "the events of a stream"),
    ("events stats", "number of streams and events by category"),
    (
        "feed tail --last 5 --once",
        "the last five events of the feed",
    ),
    ("feed verify", "check that the feed has every event once"),
    (
        "graph related shop customer ada",
        "products that Ada bought, from the graph",
    ),
    (
        "graph lookup shop by_city Oslo",
        "customers in Oslo, from an index",
    ),
    (
        "registry latest PriceList market=north",
        "the current price list",
    ),
    (
        "registry history PriceList market=north",
        "all versions of the price list",
    ),
    (
        "tables --format terraform",
        "the tables as infrastructure code",
    ),
];
