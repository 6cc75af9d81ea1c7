//! A proxy between a client and a server of DynamoDB's protocol that cuts connections, on request.
//!
//! [`FaultEngine`](crate::fault::FaultEngine) plays a network inside the process. Here is a real one: what a client
//! over HTTP does when a connection breaks, and what has become of its request then, shows only on a socket.
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
//! Requests are numbered from 1 as they come in whole. Whether one is cut follows from the seed and its number, so
//! that the same requests in the same order are cut in the same places. The operation is that of the header
//! `X-Amz-Target`.

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

use crate::fault::dice;
use crate::lock::lock;

/// Where a connection breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cut {
    /// Before the server has seen the request.
    Before,
    /// After the server has done what was asked, and before the client has seen anything of the answer.
    After,
    /// In the middle of the answer.
    Inside,
    /// The server has done what was asked, and the answer does not come until the client gives up.
    Silence,
    /// The request reaches the server only after the client has given up.
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

/// How many requests are cut, and where: of all, so many in one.
#[derive(Clone)]
#[must_use = "connections are cut only by a proxy"]
pub struct Cuts {
    seed: u64,
    rates: BTreeMap<Cut, f64>,
    filter: Option<Filter>,
}

impl Cuts {
    /// No cuts but those of [`Proxy::script`].
    pub fn none() -> Self {
        Self::seeded(0)
    }

    /// No cuts yet; those to come follow from the seed.
    pub fn seeded(seed: u64) -> Self {
        Self {
            seed,
            rates: BTreeMap::new(),
            filter: None,
        }
    }

    /// Cuts so many of all requests there.
    pub fn rate(mut self, cut: Cut, rate: f64) -> Self {
        self.rates.insert(cut, rate);
        self
    }

    /// Cuts only operations for which this holds, as `PutItem`.
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
        let strikes = |cut: &Cut| {
            let rate = self.rates.get(cut).copied().unwrap_or_default();
            dice::comes_true(rate, dice::roll(self.seed, &[number, *cut as u64]))
        };
        Cut::ALL.into_iter().find(strikes)
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
pub struct Strike {
    /// The number of the request.
    pub number: u64,
    /// The operation, as `PutItem`.
    pub operation: String,
    /// Where.
    pub cut: Cut,
}

/// A proxy that listens on a port of its own, until it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    control: Arc<Control>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Passes on to this server what comes, and cuts some of it.
    ///
    /// # Errors
    ///
    /// When there is no port to listen on.
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

    /// Where it listens, as the endpoint of an AWS SDK.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next request of that operation is cut there. Several for the same operation strike one after the other.
    pub fn script(&self, operation: &str, cut: Cut) {
        let mut scripts = lock(&self.control.scripts);
        let script = scripts.entry(operation.to_owned()).or_default();
        script.push_back(cut);
    }

    /// How many requests have come in.
    pub fn requests(&self) -> u64 {
        self.control.requests.load(Ordering::SeqCst)
    }

    /// The requests that were cut, in their order.
    pub fn strikes(&self) -> Vec<Strike> {
        lock(&self.control.strikes).clone()
    }

    /// Waits until everything that was held back has been delivered.
    pub async fn settled(&self) {
        loop {
            // Waiting begins before looking, so that no word is missed.
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

/// What a proxy decides by, and what it remembers.
#[derive(Debug)]
struct Control {
    server: SocketAddr,
    cuts: Cuts,
    scripts: Mutex<BTreeMap<String, VecDeque<Cut>>>,
    requests: AtomicU64,
    strikes: Mutex<Vec<Strike>>,
    /// How many requests and answers are held back.
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
            strikes: Mutex::default(),
            held: AtomicUsize::new(0),
            delivered: Notify::new(),
        }
    }

    /// Counts a request, and says where it is cut.
    fn decide(&self, operation: &str) -> Option<Cut> {
        let number = self.requests.fetch_add(1, Ordering::SeqCst) + 1;
        let mut scripts = lock(&self.scripts);
        let scripted = scripts.get_mut(operation).and_then(VecDeque::pop_front);
        drop(scripts);
        let cut = scripted.or_else(|| self.cuts.decide(number, operation))?;
        let strike = Strike {
            number,
            operation: operation.to_owned(),
            cut,
        };
        lock(&self.strikes).push(strike);
        Some(cut)
    }

    /// Holds something back until what this returns is dropped.
    fn hold(&self) -> Held<'_> {
        self.held.fetch_add(1, Ordering::SeqCst);
        Held(self)
    }
}

/// Something that is held back.
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
    fn the_same_seed_cuts_the_same_requests() {
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
        let struck = cuts(1).into_iter().flatten().count();
        assert!((120..240).contains(&struck), "{struck}");
    }

    #[test]
    fn a_filter_spares_operations() {
        let cuts = Cuts::seeded(1)
            .rate(Cut::Before, 1.0)
            .only(|operation| operation != "GetItem");
        assert_eq!(cuts.decide(1, "GetItem"), None);
        assert_eq!(cuts.decide(2, "PutItem"), Some(Cut::Before));
    }

    #[test]
    fn scripts_come_before_the_dice() {
        let control = Control::new((Ipv4Addr::LOCALHOST, 1).into(), Cuts::none());
        lock(&control.scripts).insert("PutItem".to_owned(), [Cut::Late, Cut::Inside].into());
        assert_eq!(control.decide("GetItem"), None);
        assert_eq!(control.decide("PutItem"), Some(Cut::Late));
        assert_eq!(control.decide("PutItem"), Some(Cut::Inside));
        assert_eq!(control.decide("PutItem"), None);
        let strikes = lock(&control.strikes).clone();
        assert_eq!(strikes.iter().map(|s| s.number).collect::<Vec<_>>(), [2, 3]);
    }
}
