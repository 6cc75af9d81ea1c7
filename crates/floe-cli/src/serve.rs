//! `floe serve`: DynamoDB's protocol on a directory, or on memory.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use floe_local::{Durability, LocalEngine};
use floe_server::{Keys, Limits, Options, ServeError, Server, Service, raise_file_limit};
use floe_store::Engine;

use super::telemetry::Export;
use crate::{
    ACCOUNT, Failure, Result, Signals, checked, health, note, note_recovery, parse_duration, say,
    secrets, site, threads,
};

/// How many steps of tasks are taken before the sockets are looked at. A step may be a scan, and a client that has just sent a
/// request should not have to wait for sixty of them.
const EVENT_INTERVAL: u32 = 8;

/// Serve DynamoDB's protocol, for any AWS SDK in any language
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe serve --memory
  floe serve --data ./orders --listen 9000
  FLOE_SECRET_KEY=… floe serve --data /var/lib/floe --listen 0.0.0.0:8000 --access-key app

Then point any AWS SDK or the AWS CLI to it; without keys, any credentials will do:
  aws dynamodb list-tables --endpoint-url http://127.0.0.1:8000

GET /healthz answers 200 (ready, read-only), and 503 while writes are refused; the reason is logged to the standard error.

With OTEL_EXPORTER_OTLP_ENDPOINT, and built with the feature otlp, it exports spans and measurements of its requests.

Ctrl-C finishes what is under way and closes cleanly; a second one ends at once.")]
pub(super) struct Serve {
    #[command(flatten)]
    store: Store,

    /// Where to listen: a port of this machine, or an address and a port
    ///
    /// An address that other machines can reach needs keys, or --insecure.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8000", value_parser = parse_listen)]
    listen: SocketAddr,

    /// The region that stands in resource names; with keys, signatures for another one are refused [default:
    /// us-east-1, and every region is accepted]
    #[arg(long, value_name = "NAME")]
    region: Option<String>,

    /// When a write is answered: when it is on the disk, or when the system has it
    #[arg(long, value_enum, default_value = "sync", conflicts_with = "memory")]
    durability: DurabilityArg,

    /// Memory for data that was read from the disk
    #[arg(long, value_name = "MB", default_value = "128")]
    cache_mb: u32,

    /// How long change records of streams are kept: 30m, 24h, 7d
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = parse_duration)]
    stream_retention: Duration,

    /// Free disk space in MB below which writes that store more are refused [default: 256, or an eighth of a file
    /// system smaller than 2 GB]
    #[arg(long, value_name = "MB", conflicts_with = "memory")]
    disk_reserve: Option<u32>,

    /// Connections at a time; one more takes the place of the one that has waited longest for its client
    #[arg(long, value_name = "N", default_value = "4096", value_parser = clap::value_parser!(u32).range(1..))]
    max_connections: u32,

    /// Tell figures for Prometheus at /metrics: requests by operation and outcome, times, capacity, connections
    ///
    /// They need no signature, and tell of no table and no item.
    #[arg(long)]
    metrics: bool,

    #[command(flatten)]
    access: Access,
}

/// What is served.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Store {
    /// Keep the data in this directory, which is made if it is not there
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Keep the data in memory, until the program ends
    #[arg(long)]
    memory: bool,
}

/// Who is let in.
#[derive(Debug, Args)]
#[command(next_help_heading = "Who is let in")]
struct Access {
    /// Let in only requests that are signed with this access key
    #[arg(
        long,
        value_name = "KEY",
        env = "FLOE_ACCESS_KEY",
        requires = "secret_key"
    )]
    access_key: Option<String>,

    /// The secret of the access key. Set FLOE_SECRET_KEY instead: other users of the machine can see the command line
    ///
    /// A secret on the command line is moved into the environment at once, and a warning is printed.
    #[arg(
        long,
        value_name = "SECRET",
        env = secrets::VARIABLE,
        hide_env_values = true,
        requires = "access_key"
    )]
    secret_key: Option<String>,

    /// Let in only requests that are signed with a key from this file: an access key and its secret per line
    ///
    /// Only its owner may be able to read the file (chmod 600).
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,

    /// Let everybody in who can reach the address, also from other machines
    #[arg(long)]
    insecure: bool,

    /// Let clients reach the server under this name, besides addresses and localhost; *.example.com is every name
    /// below, * is every name
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,

    /// Let the web pages of this origin use the server (https://app.example.com); * is every page
    #[arg(long, value_name = "ORIGIN", value_parser = parse_origin)]
    cors: Vec<String>,
}

/// When a write is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DurabilityArg {
    /// When it is on the disk: it survives the loss of power
    Sync,
    /// When the system has it: it survives the death of the process
    Relaxed,
}

impl Serve {
    pub(super) fn run(&self) -> Result {
        let options = self.options()?;
        options.check().map_err(|error| exposed(&error))?;
        raise_file_limit();
        let runtime = threads(EVENT_INTERVAL)?;
        let engine = Arc::new(self.open()?);
        let export = Export::begin("floe-serve")?;
        let served = runtime.block_on(Box::pin(self.serve(options, &engine, &export)));
        let closed = engine.close().map_err(Failure::broken);
        export.end();
        served.and(closed)
    }

    async fn serve(&self, options: Options, engine: &Arc<LocalEngine>, export: &Export) -> Result {
        let signals = Signals::new()?;
        let service = Service::new(export.serving(Arc::clone(engine) as _));
        let service = match self.metrics {
            true => service.with_metrics(),
            false => service,
        };
        let server = Server::bind(options, service.clone()).await;
        let server = server
            .map_err(|error| Failure::broken(format!("{error}; choose another with --listen")))?;
        service.set_endpoint(server.local_addr().to_string());
        serve_bound(server, &**engine, &self.store.to_string(), signals).await;
        Ok(())
    }

    fn open(&self) -> Result<LocalEngine> {
        let options = self.store_options();
        let engine = match &self.store.data {
            Some(path) => LocalEngine::open_with(path, options),
            None => LocalEngine::memory_with(options),
        };
        let engine = engine.map_err(|error| unopened(&error))?;
        note_recovery(engine.recovery());
        Ok(engine)
    }

    fn store_options(&self) -> floe_local::Options {
        let region = self.region.as_deref().unwrap_or("us-east-1");
        let options = floe_local::Options::new()
            .region(region)
            .account(ACCOUNT)
            .cache_bytes(u64::from(self.cache_mb) << 20)
            .stream_retention(self.stream_retention)
            .durability(match self.durability {
                DurabilityArg::Sync => Durability::Sync,
                DurabilityArg::Relaxed => Durability::Relaxed,
            });
        match self.disk_reserve {
            Some(megabytes) => options.disk_reserve_bytes(u64::from(megabytes) << 20),
            None => options,
        }
    }

    fn options(&self) -> Result<Options> {
        let access = &self.access;
        let limits = Limits {
            connections_max: usize::try_from(self.max_connections).unwrap_or(usize::MAX),
            ..Limits::default()
        };
        let mut options = Options::new()
            .listen(self.listen)
            .insecure(access.insecure)
            .limits(limits);
        options = self.region.iter().fold(options, Options::region);
        options = access.allow_host.iter().fold(options, Options::allow_host);
        options = access.cors.iter().fold(options, Options::cors);
        options = access.keys()?.into_iter().fold(options, Options::keys);
        Ok(options)
    }
}

/// Says where a server is, and serves until a signal asks it to stop. Logs when its engine refuses writes.
pub(super) async fn serve_bound(server: Server, engine: &dyn Engine, what: &str, signals: Signals) {
    say(&format!(
        "serving DynamoDB on http://{} ({what})",
        server.local_addr()
    ));
    tokio::select! {
        () = server.serve(Box::pin(signals.stop())) => {}
        () = health::watch(engine, note) => {}
    }
}

impl Access {
    /// All keys that were given; none if everybody is let in.
    fn keys(&self) -> Result<Option<Keys>> {
        let path = self.keys.as_deref();
        let mut pairs = path.map(read_keys).transpose()?.unwrap_or_default();
        pairs.extend(self.access_key.clone().zip(self.secret_key.clone()));
        let is_empty = |(key, secret): &(String, String)| key.is_empty() || secret.is_empty();
        if pairs.iter().any(is_empty) {
            return Err(Failure::usage(
                "an access key and its secret cannot be empty",
            ));
        }
        Ok((!pairs.is_empty()).then(|| Keys::new(pairs)))
    }
}

/// Reads a file with an access key and its secret per line, and lines that begin with `#` between them.
fn read_keys(path: &Path) -> Result<Vec<(String, String)>> {
    let shown = path.display();
    let text = secrets::read_private(path)?;
    let mut pairs = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            [] => {}
            [first, ..] if first.starts_with('#') => {}
            [key, secret] => pairs.push((key.to_owned(), secret.to_owned())),
            _ => {
                return Err(Failure::broken(format!(
                    "a line of the keys is not an access key and its secret: path={shown} line={}",
                    number + 1
                )));
            }
        }
    }
    if pairs.is_empty() {
        return Err(Failure::broken(format!(
            "there are no keys in the file: path={shown}"
        )));
    }
    Ok(pairs)
}

/// An address: a port of this machine, or a host and a port.
pub(super) fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok(([127, 0, 0, 1], port).into());
    }
    let mut addresses = text.to_socket_addrs().map_err(|error| {
        format!("not an address and a port, such as 127.0.0.1:8000 or 9000: {error}")
    })?;
    addresses
        .next()
        .ok_or_else(|| "the name has no address".to_owned())
}

/// The origin of a page, as browsers send it.
fn parse_origin(text: &str) -> Result<String, String> {
    let is_site = |site: &str| !site.is_empty() && !site.contains(['/', ' ', '*']);
    let is_fit = site(text).is_some_and(is_site) || text == "*" || text == "null";
    let unfit = "not an origin, such as https://app.example.com or http://localhost:3000";
    checked(text, is_fit, unfit)
}

/// Why a store cannot be opened. Where the reason does not say what to do, another directory is what is left.
fn unopened(error: &floe_store::Error) -> Failure {
    let reason = error.to_string();
    Failure::broken(match reason.contains("; ") {
        true => reason,
        false => format!("{reason}; choose another with --data"),
    })
}

fn exposed(error: &ServeError) -> Failure {
    Failure::usage(format!(
        "{error}; set --access-key and FLOE_SECRET_KEY, or say --insecure if that is meant"
    ))
}

impl std::fmt::Display for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.data {
            Some(path) => write!(f, "data: {}", path.display()),
            None => f.write_str("in memory"),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        serve: Serve,
    }

    fn store_options(arguments: &[&str]) -> String {
        let arguments = ["floe"].iter().chain(arguments);
        let program = Program::try_parse_from(arguments).unwrap();
        format!("{:?}", program.serve.store_options())
    }

    #[test]
    fn retention_and_reserve_reach_the_store() {
        let options = store_options(&["--memory"]);
        assert!(options.contains("stream_retention: 86400s"), "{options}");
        assert!(options.contains("disk_reserve_bytes: None"), "{options}");
        let set = ["--stream-retention", "30m", "--disk-reserve", "3"];
        let options = store_options(&[&["--data", "x"], &set[..]].concat());
        assert!(options.contains("stream_retention: 1800s"), "{options}");
        assert!(
            options.contains("disk_reserve_bytes: Some(3145728)"),
            "{options}"
        );
    }
}
