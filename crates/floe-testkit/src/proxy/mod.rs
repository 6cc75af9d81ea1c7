//! A proxy between a client and a DynamoDB server that cuts connections on request.
//!
//! [`FaultEngine`](crate::fault::FaultEngine) simulates network failures inside the process. This proxy breaks real
//! connections, to test how an HTTP client reacts and what happened to its request.
//!
//! ```no_run
//! # async fn example(server: std::net::SocketAddr) -> std::io::Result<()> {
//! use floe_testkit::proxy::{Cut, Cuts, Proxy};
//!
//! let proxy = Proxy::start(server, Cuts::seeded(42).rate(Cut::After, 0.1)).await?;
//! println!("point the client to {}", proxy.url());
//! proxy.script("PutItem", Cut::Before);
//! # Ok(())
//! # }
//! ```
//!
//! Complete requests are numbered from 1. The seed and the number decide whether a request is cut, so the same
//! requests in the same order are cut at the same points. The header `X-Amz-Target` names the operation.

mod message;
mod relay;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::fault::random;
use crate::lock::lock;

/// The point at which a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cut {
    /// Before the server receives the request.
    Before,
    /// After the server processed the request, before the client receives any of the response.
    After,
    /// In the middle of the response.
    Inside,
    /// The server processes the request, but the response is withheld until the client gives up.
    Silence,
    /// The request reaches the server only after the client gave up.
    Late,
}

impl Cut {
    const ALL: [Self; 5] = [
        Self::Before,
        Self::After,
        Self::Inside,
        Self::Silence,
        Self::Late,
    ];
}

type Filter = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Which requests are cut: the rate of each cut, from 0 to 1.
#[derive(Clone)]
#[must_use = "connections are cut only by a proxy"]
pub struct Cuts {
    seed: u64,
    rates: BTreeMap<Cut, f64>,
    filter: Option<Filter>,
}

impl Cuts {
    /// Cuts only what [`Proxy::script`] asks for.
    pub fn none() -> Self {
        Self::seeded(0)
    }

    /// No cuts yet; rates added later use this seed.
    pub fn seeded(seed: u64) -> Self {
        Self {
            seed,
            rates: BTreeMap::new(),
            filter: None,
        }
    }

    /// Sets the share of requests that are cut at this point.
    pub fn rate(mut self, cut: Cut, rate: f64) -> Self {
        self.rates.insert(cut, rate);
        self
    }

    /// Cuts only operations for which `filter` returns `true`, for example `PutItem`.
    pub fn only(mut self, filter: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.filter = Some(Arc::new(filter));
        self
    }

    fn decide(&self, number: u64, operation: &str) -> Option<Cut> {
        if self
            .filter
            .as_ref()
            .is_some_and(|filter| !filter(operation))
        {
            return None;
        }
        let is_cut = |cut: &Cut| {
            let rate = self.rates.get(cut).copied().unwrap_or_default();
            random::is_hit(rate, random::value(self.seed, &[number, *cut as u64]))
        };
        Cut::ALL.into_iter().find(is_cut)
    }
}

impl fmt::Debug for Cuts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cuts")
            .field("seed", &self.seed)
            .field("rates", &self.rates)
            .finish_non_exhaustive()
    }
}

/// A request that was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutRequest {
    /// The number of the request.
    pub number: u64,
    /// The operation, as `PutItem`.
    pub operation: String,
    /// The point at which it was cut.
    pub cut: Cut,
}

/// A proxy on a free local port. Dropping it closes the port.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    control: Arc<Control>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Starts a proxy that forwards requests to `server` and cuts some of them.
    ///
    /// # Errors
    ///
    /// If no port is free.
    pub async fn start(server: SocketAddr, cuts: Cuts) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let control = Arc::new(Control::new(server, cuts));
        let accepting = tokio::spawn(relay::accept(listener, control.clone()));
        Ok(Self {
            address,
            control,
            accepting,
        })
    }

    /// The URL of the proxy, to be used as the endpoint of an AWS SDK.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Cuts the next request of this operation. Repeated calls for one operation apply to consecutive requests.
    pub fn script(&self, operation: &str, cut: Cut) {
        let mut scripts = lock(&self.control.scripts);
        let script = scripts.entry(operation.to_owned()).or_default();
        script.push_back(cut);
    }

    /// The number of requests received.
    pub fn requests(&self) -> u64 {
        self.control.requests.load(Ordering::SeqCst)
    }

    /// The requests that were cut, in order.
    pub fn cut_requests(&self) -> Vec<CutRequest> {
        lock(&self.control.cut_requests).clone()
    }

    /// Waits until every withheld request and response is delivered.
    pub async fn wait_until_delivered(&self) {
        loop {
            // Subscribe before reading the count, so that no notification is missed.
            let word = self.control.delivered.notified();
            if self.control.held.load(Ordering::SeqCst) == 0 {
                return;
            }
            word.await;
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// The settings and the state of a proxy.
#[derive(Debug)]
struct Control {
    server: SocketAddr,
    cuts: Cuts,
    scripts: Mutex<BTreeMap<String, VecDeque<Cut>>>,
    requests: AtomicU64,
    cut_requests: Mutex<Vec<CutRequest>>,
    /// The number of withheld requests and responses.
    held: AtomicUsize,
    delivered: Notify,
}

impl Control {
    fn new(server: SocketAddr, cuts: Cuts) -> Self {
        Self {
            server,
            cuts,
            scripts: Mutex::default(),
            requests: AtomicU64::new(0),
            cut_requests: Mutex::default(),
            held: AtomicUsize::new(0),
            delivered: Notify::new(),
        }
    }

    /// Counts a request and decides where it is cut.
    fn decide(&self, operation: &str) -> Option<Cut> {
        let number = self.requests.fetch_add(1, Ordering::SeqCst) + 1;
        let mut scripts = lock(&self.scripts);
        let scripted = scripts.get_mut(operation).and_then(VecDeque::pop_front);
        drop(scripts);
        let cut = scripted.or_else(|| self.cuts.decide(number, operation))?;
        let request = CutRequest {
            number,
            operation: operation.to_owned(),
            cut,
        };
        lock(&self.cut_requests).push(request);
        Some(cut)
    }

    /// Withholds a message until the returned guard is dropped.
    fn hold(&self) -> Held<'_> {
        self.held.fetch_add(1, Ordering::SeqCst);
        Held(self)
    }
}

/// A withheld message.
struct Held<'c>(&'c Control);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::SeqCst);
        self.0.delivered.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_cuts_the_same_requests() {
        let cuts = |seed| {
            let cuts = Cuts::seeded(seed)
                .rate(Cut::Before, 0.2)
                .rate(Cut::After, 0.2);
            (1..500)
                .map(|number| cuts.decide(number, "PutItem"))
                .collect::<Vec<_>>()
        };
        assert_eq!(cuts(1), cuts(1));
        assert_ne!(cuts(1), cuts(2));
        let cut_count = cuts(1).into_iter().flatten().count();
        assert!((120..240).contains(&cut_count), "{cut_count}");
    }

    #[test]
    fn filtered_operations_are_not_cut() {
        let cuts = Cuts::seeded(1)
            .rate(Cut::Before, 1.0)
            .only(|operation| operation != "GetItem");
        assert_eq!(cuts.decide(1, "GetItem"), None);
        assert_eq!(cuts.decide(2, "PutItem"), Some(Cut::Before));
    }

    #[test]
    fn scripted_cuts_take_precedence_over_rates() {
        let control = Control::new((Ipv4Addr::LOCALHOST, 1).into(), Cuts::none());
        lock(&control.scripts).insert("PutItem".to_owned(), [Cut::Late, Cut::Inside].into());
        assert_eq!(control.decide("GetItem"), None);
        assert_eq!(control.decide("PutItem"), Some(Cut::Late));
        assert_eq!(control.decide("PutItem"), Some(Cut::Inside));
        assert_eq!(control.decide("PutItem"), None);
        let cut_requests = lock(&control.cut_requests).clone();
        assert_eq!(
            cut_requests.iter().map(|s| s.number).collect::<Vec<_>>(),
            [2, 3]
        );
    }
}
