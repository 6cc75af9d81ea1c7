//! `floe serve`: a server of DynamoDB's protocol, on a directory or in memory.

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
    ACCOUNT, Failure, Result, Signals, health, multi_thread_runtime, note, note_recovery,
    parse_duration, print_status, secrets, validated, without_scheme,
};

/// Task polls between two checks of the sockets. One poll may run a whole scan, and with tokio's default of 61 a new request
/// would wait too long.
const EVENT_INTERVAL: u32 = 8;

/// Serve DynamoDB's protocol, for any AWS SDK in any language
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe serve --memory
  floe serve --data ./orders --listen 9000
  FLOE_SECRET_KEY=… floe serve --data /var/lib/floe --listen 0.0.0.0:8000 --access-key app

Then point any AWS SDK or the AWS CLI at it; if the server has no keys, it accepts any credentials:
  aws dynamodb list-tables --endpoint-url http://127.0.0.1:8000

GET /healthz returns 200 (ready or read-only), or 503 while writes are refused; the reason is logged to standard error.

If built with the feature otlp, the server exports spans and metrics of its requests to OTEL_EXPORTER_OTLP_ENDPOINT.

Ctrl-C stops the server after the requests in progress; a second Ctrl-C stops it immediately.")]
pub(super) struct Serve {
    #[command(flatten)]
    store: Store,

    /// Port, or address and port, to listen on
    ///
    /// An address that other machines can reach requires keys, or --insecure.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8000", value_parser = parse_listen)]
    listen: SocketAddr,

    /// Region in resource names; with keys, signatures for other regions are rejected [default: us-east-1, and all
    /// regions are accepted]
    #[arg(long, value_name = "NAME")]
    region: Option<String>,

    /// When a write is acknowledged
    #[arg(long, value_enum, default_value = "sync", conflicts_with = "memory")]
    durability: DurabilityArg,

    /// Size of the read cache in MB
    #[arg(long, value_name = "MB", default_value = "128")]
    cache_mb: u32,

    /// Retention of change records: 30m, 24h, 7d
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = parse_duration)]
    stream_retention: Duration,

    /// Free disk space in MB below which writes that need space are refused [default: 256, or an eighth of a file
    /// system smaller than 2 GB]
    #[arg(long, value_name = "MB", conflicts_with = "memory")]
    disk_reserve: Option<u32>,

    /// Maximum number of connections; a new one beyond it replaces the one idle for longest
    #[arg(long, value_name = "N", default_value = "4096", value_parser = clap::value_parser!(u32).range(1..))]
    max_connections: u32,

    /// Expose Prometheus metrics at /metrics: requests by operation and outcome, durations, capacity, connections
    ///
    /// They need no signature, and contain no names of tables and no items.
    #[arg(long)]
    metrics: bool,

    #[command(flatten)]
    access: Access,
}

/// The store to serve.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Store {
    /// Directory of the store; created if it does not exist
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Store the data in memory until the server stops
    #[arg(long)]
    memory: bool,
}

/// Access control.
#[derive(Debug, Args)]
#[command(next_help_heading = "Access")]
struct Access {
    /// Accept only requests signed with this access key
    #[arg(
        long,
        value_name = "KEY",
        env = "FLOE_ACCESS_KEY",
        requires = "secret_key"
    )]
    access_key: Option<String>,

    /// Secret of the access key. Prefer FLOE_SECRET_KEY: other users of the machine can see the command line
    ///
    /// A secret on the command line is moved into the environment immediately, and a warning is printed.
    #[arg(
        long,
        value_name = "SECRET",
        env = secrets::VARIABLE,
        hide_env_values = true,
        requires = "access_key"
    )]
    secret_key: Option<String>,

    /// Accept only requests signed with a key from this file, which has an access key and its secret per line
    ///
    /// The file must be readable by its owner only (chmod 600).
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,

    /// Accept unsigned requests from other machines
    #[arg(long)]
    insecure: bool,

    /// Accept requests for this host name, in addition to IP addresses and localhost; *.example.com matches all
    /// subdomains, * all names
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,

    /// Accept requests from web pages of this origin (https://app.example.com); * matches all origins
    #[arg(long, value_name = "ORIGIN", value_parser = parse_origin)]
    cors: Vec<String>,
}

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DurabilityArg {
    /// When it is synced to disk: it survives power loss
    Sync,
    /// When it is in the operating system's cache: it survives a crash of the process
    Relaxed,
}

impl Serve {
    pub(super) fn run(&self) -> Result {
        let options = self.options()?;
        options.check().map_err(|error| exposed_address(&error))?;
        raise_file_limit();
        let runtime = multi_thread_runtime(EVENT_INTERVAL)?;
        let engine = Arc::new(self.open()?);
        let export = Export::begin("floe-serve")?;
        let served = runtime.block_on(Box::pin(self.serve(options, &engine, &export)));
        let closed = engine.close().map_err(Failure::failed);
        export.end();
        served.and(closed)
    }

    async fn serve(&self, options: Options, engine: &Arc<LocalEngine>, export: &Export) -> Result {
        let signals = Signals::new()?;
        let service = Service::new(export.traced(Arc::clone(engine) as _));
        let service = if self.metrics {
            service.with_metrics()
        } else {
            service
        };
        let server = Server::bind(options, service.clone()).await;
        let server = server
            .map_err(|error| Failure::failed(format!("{error}; choose another with --listen")))?;
        service.set_endpoint(server.local_addr().to_string());
        serve_bound(server, &**engine, &self.store.to_string(), signals).await
    }

    fn open(&self) -> Result<LocalEngine> {
        let options = self.store_options();
        let engine = match &self.store.data {
            Some(path) => LocalEngine::open_with(path, options),
            None => LocalEngine::memory_with(options),
        };
        let engine = engine.map_err(|error| open_failure(&error))?;
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

/// Prints the address of a server, and serves until a signal stops it. Logs changes of the engine's health.
pub(super) async fn serve_bound(
    server: Server,
    engine: &dyn Engine,
    detail: &str,
    signals: Signals,
) -> Result {
    print_status(&format!(
        "serving DynamoDB on http://{} ({detail})",
        server.local_addr()
    ))?;
    tokio::select! {
        () = server.serve(Box::pin(signals.stop())) => {}
        () = health::watch(engine, note) => {}
    }
    Ok(())
}

impl Access {
    /// The keys of all options. `None` if requests need no key.
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

/// Reads a file with an access key and its secret per line. Lines that begin with `#` are comments.
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
                return Err(Failure::failed(format!(
                    "expected an access key and its secret: path={shown} line={}",
                    number + 1
                )));
            }
        }
    }
    if pairs.is_empty() {
        return Err(Failure::failed(format!(
            "there are no keys in the file: path={shown}"
        )));
    }
    Ok(pairs)
}

/// Parses a port of the loopback address, or a host and a port.
pub(super) fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok(([127, 0, 0, 1], port).into());
    }
    let mut addresses = text.to_socket_addrs().map_err(|error| {
        format!("expected a port or an address and port, such as 9000 or 127.0.0.1:8000: {error}")
    })?;
    addresses
        .next()
        .ok_or_else(|| "the name has no address".to_owned())
}

/// Parses an origin as browsers send it.
fn parse_origin(text: &str) -> Result<String, String> {
    let is_host = |host: &str| !host.is_empty() && !host.contains(['/', ' ', '*']);
    let is_valid = without_scheme(text).is_some_and(is_host) || text == "*" || text == "null";
    let message = "expected an origin, such as https://app.example.com or http://localhost:3000";
    validated(text, is_valid, message)
}

/// The failure to open a store. Adds a hint if the error has none.
fn open_failure(error: &floe_store::Error) -> Failure {
    let reason = error.to_string();
    Failure::failed(if reason.contains("; ") {
        reason
    } else {
        format!("{reason}; choose another with --data")
    })
}

fn exposed_address(error: &ServeError) -> Failure {
    Failure::usage(format!(
        "{error}; set --access-key and FLOE_SECRET_KEY, or allow it with --insecure"
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
