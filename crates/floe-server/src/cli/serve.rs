//! `floe serve`: DynamoDB's protocol on a directory, or on memory.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use floe_local::{Durability, LocalEngine};

use super::signals::Signals;
use super::telemetry::Export;
use super::{ACCOUNT, Failure, say, secrets};
use crate::accept::{ServeError, Server};
use crate::files;
use crate::limits::Limits;
use crate::options::Options;
use crate::service::Service;
use crate::sigv4::Keys;

const AFTER_HELP: &str = "\
Examples:
  floe serve --memory
  floe serve --data ./orders --listen 9000
  FLOE_SECRET_KEY=… floe serve --data /var/lib/floe --listen 0.0.0.0:8000 --access-key app

Then point any AWS SDK or the AWS CLI to it; without keys, any credentials will do:
  aws dynamodb list-tables --endpoint-url http://127.0.0.1:8000

With OTEL_EXPORTER_OTLP_ENDPOINT, and built with the feature otlp, it exports spans and measurements of its requests.

Ctrl-C finishes what is under way and closes cleanly; a second one ends at once.";

const EVENT_INTERVAL: u32 = 8;

/// Serve DynamoDB's protocol, for any AWS SDK in any language
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[group(skip)]
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
#[group(skip)]
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
    pub(super) fn run(self) -> Result<(), Failure> {
        let options = self.options()?;
        options.check().map_err(|error| exposed(&error))?;
        files::raise_limit();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("floe-worker")
            // How many steps of tasks are taken before the sockets are looked at. A step may be a scan, and who has
            // just sent a request should not have to wait for sixty of them.
            .event_interval(EVENT_INTERVAL)
            .enable_all()
            .build()
            .map_err(|error| {
                Failure::broken(format!("the threads could not be started: {error}"))
            })?;
        let engine = Arc::new(self.open()?);
        let export = Export::begin("floe-serve")?;
        let served = runtime.block_on(self.serve(options, &engine, &export));
        let closed = engine.close().map_err(Failure::broken);
        export.end();
        served.and(closed)
    }

    async fn serve(
        &self,
        options: Options,
        engine: &Arc<LocalEngine>,
        export: &Export,
    ) -> Result<(), Failure> {
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
        serve_bound(server, &self.store.to_string(), signals).await;
        Ok(())
    }

    fn open(&self) -> Result<LocalEngine, Failure> {
        let region = self.region.as_deref().unwrap_or("us-east-1");
        let options = floe_local::Options::new()
            .region(region)
            .account(ACCOUNT)
            .cache_bytes(u64::from(self.cache_mb) << 20)
            .durability(match self.durability {
                DurabilityArg::Sync => Durability::Sync,
                DurabilityArg::Relaxed => Durability::Relaxed,
            });
        let engine = match &self.store.data {
            Some(path) => LocalEngine::open_with(path, options),
            None => LocalEngine::memory_with(options),
        };
        engine.map_err(|error| Failure::broken(format!("{error}; choose another with --data")))
    }

    fn options(&self) -> Result<Options, Failure> {
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

/// Says where a server is, and serves until it is told to stop.
async fn serve_bound(server: Server, what: &str, signals: Signals) {
    say(&format!(
        "serving DynamoDB on http://{} ({what})",
        server.local_addr()
    ));
    server.serve_until(signals.stop()).await;
}

/// Serves on a server that is bound, until it is told to stop.
#[cfg(feature = "cli")]
pub(super) async fn serve_engine(server: Server, what: &str) -> Result<(), Failure> {
    serve_bound(server, what, Signals::new()?).await;
    Ok(())
}

impl Access {
    /// All keys that were given; none if everybody is let in.
    fn keys(&self) -> Result<Option<Keys>, Failure> {
        let mut pairs = Vec::new();
        if let Some(path) = &self.keys {
            pairs = read_keys(path)?;
        }
        pairs.extend(self.access_key.clone().zip(self.secret_key.clone()));
        if pairs
            .iter()
            .any(|(key, secret)| key.is_empty() || secret.is_empty())
        {
            return Err(Failure::usage(
                "an access key and its secret cannot be empty",
            ));
        }
        Ok((!pairs.is_empty()).then(|| Keys::new(pairs)))
    }
}

/// Reads a file with an access key and its secret per line, and lines that begin with `#` between them.
fn read_keys(path: &Path) -> Result<Vec<(String, String)>, Failure> {
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
    let site = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    let is_site = site.is_some_and(|site| !site.is_empty() && !site.contains(['/', ' ', '*']));
    match is_site || text == "*" || text == "null" {
        true => Ok(text.to_owned()),
        false => Err(
            "not an origin, such as https://app.example.com or http://localhost:3000".to_owned(),
        ),
    }
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
