//! The only source of time and randomness.
//!
//! No other module of Floe reads a clock or generates ids. A test that provides its own [`Env`] controls every
//! timestamp and every id, and a run can be replayed from a seed.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::future::BoxFuture;
use crate::text::Text;

/// A point in time, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The time this many milliseconds after the epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Whole seconds since the epoch, the unit of DynamoDB's expiry attribute.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1000
    }

    /// The time after this duration, saturating at the latest representable time.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis(duration)))
    }

    /// The time elapsed since `earlier`, or zero if that is in the future.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// A source of the current time.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Returns the current time.
    fn now(&self) -> Timestamp;

    /// Returns the time since some point in the life of this process. Monotonic: setting the clock does not affect it.
    fn uptime(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }
}

/// A source of random numbers.
pub trait Random: Send + Sync + fmt::Debug {
    /// Returns the next number.
    fn next_u64(&self) -> u64;
}

/// Waits. A test provides its own timer, so that no test sleeps.
pub trait Timer: Send + Sync {
    /// Completes after this duration.
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()>;
}

/// The time and randomness of an engine.
#[derive(Clone, Debug)]
pub struct Env {
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

impl Env {
    /// The system clock, and random numbers that differ in every process.
    pub fn system() -> Self {
        Self::new(Arc::new(SystemClock), Arc::new(SystemRandom::default()))
    }

    /// A clock that is moved by hand, and random numbers generated from a seed.
    pub fn manual(clock: Arc<ManualClock>, seed: u64) -> Self {
        Self::new(clock, Arc::new(SeededRandom::new(seed)))
    }

    /// An environment from a clock and a source of random numbers.
    pub fn new(clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        Self { clock, random }
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the monotonic time of this process; see [`Clock::uptime`].
    pub fn uptime(&self) -> Duration {
        self.clock.uptime()
    }

    /// Returns the clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Returns a random number.
    pub fn next_u64(&self) -> u64 {
        self.random.next_u64()
    }

    /// Returns a random (version 4) UUID in its usual text form.
    ///
    /// ```
    /// let id = floe_store::Env::system().uuid();
    /// assert_eq!(id.len(), 36);
    /// assert_eq!(&id[14..15], "4");
    /// ```
    pub fn uuid(&self) -> String {
        uuid_text(4, self.next_u64(), self.next_u64()).into()
    }

    /// Returns a UUID (version 7) that sorts by time, to the millisecond, so that entries with consecutive ids are
    /// stored next to each other.
    ///
    /// ```
    /// let env = floe_store::Env::system();
    /// let id = env.ordered_uuid();
    /// assert_eq!(&id[14..15], "7");
    /// assert!(id[..8] <= env.ordered_uuid()[..8]);
    /// ```
    pub fn ordered_uuid(&self) -> Text {
        let high = self.now().as_millis() << 16 | self.next_u64() & 0xffff;
        uuid_text(7, high, self.next_u64())
    }
}

/// The text of a UUID: five groups of hexadecimal digits.
fn uuid_text(version: u64, high: u64, low: u64) -> Text {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let high = high & !0xf000 | version << 12;
    let low = low & (u64::MAX >> 2) | 1 << 63;
    let mut bits = u128::from(high) << 64 | u128::from(low);
    let mut text = [b'-'; 36];
    for (at, letter) in text.iter_mut().enumerate() {
        if !matches!(at, 8 | 13 | 18 | 23) {
            let digit = (bits >> 124) as usize;
            *letter = DIGITS.get(digit).copied().unwrap_or_default();
            bits <<= 4;
        }
    }
    Text::from(str::from_utf8(&text).unwrap_or_default())
}

impl Default for Env {
    fn default() -> Self {
        Self::system()
    }
}

/// The clock of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the only place that reads the clock"
    )]
    fn now(&self) -> Timestamp {
        // A clock set before 1970 reads as 1970.
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        Timestamp::default().plus(since_epoch.unwrap_or_default())
    }
}

/// Measures elapsed real time, for pacing. Code whose results depend on time uses [`Env`] instead.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts measuring.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// A clock that moves only when it is advanced or set.
#[derive(Debug, Default)]
pub struct ManualClock {
    now_millis: AtomicU64,
    /// The sum of all advances; setting the clock does not count.
    uptime_millis: AtomicU64,
}

impl ManualClock {
    /// A clock set to this time.
    pub fn at(time: Timestamp) -> Arc<Self> {
        let clock = Self::default();
        clock.now_millis.store(time.as_millis(), Ordering::SeqCst);
        Arc::new(clock)
    }

    /// Lets this much time pass.
    pub fn advance(&self, by: Duration) {
        self.uptime_millis.fetch_add(millis(by), Ordering::SeqCst);
        self.set_ahead(by);
    }

    /// Sets the clock back without advancing the uptime, like a corrected system clock.
    pub fn set_back(&self, by: Duration) {
        self.now_millis.fetch_sub(millis(by), Ordering::SeqCst);
    }

    /// Sets the clock ahead without advancing the uptime.
    pub fn set_ahead(&self, by: Duration) {
        self.now_millis.fetch_add(millis(by), Ordering::SeqCst);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now_millis.load(Ordering::SeqCst))
    }

    fn uptime(&self) -> Duration {
        Duration::from_millis(self.uptime_millis.load(Ordering::SeqCst))
    }
}

/// Random numbers keyed by the operating system's randomness: unpredictable enough for ids, not for secrets.
#[derive(Debug, Default)]
pub struct SystemRandom {
    keys: RandomState,
    counter: AtomicU64,
}

impl Random for SystemRandom {
    fn next_u64(&self) -> u64 {
        // A keyed hash of a counter never repeats an input within the process.
        let count = self.counter.fetch_add(1, Ordering::Relaxed);
        self.keys.hash_one(count)
    }
}

/// Random numbers generated from a seed (SplitMix64).
#[derive(Debug)]
pub struct SeededRandom(AtomicU64);

impl SeededRandom {
    /// The sequence of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// A number below `bound`, or 0 if the bound is 0.
    pub fn below(&self, bound: u64) -> u64 {
        // The bias of the modulo is at most bound / 2^64, too small to affect a test.
        self.next_u64().checked_rem(bound).unwrap_or(0)
    }

    /// Returns true with probability 1/2.
    pub fn coin(&self) -> bool {
        self.below(2) == 1
    }
}

impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        splitmix64(self.0.fetch_add(STEP, Ordering::Relaxed))
    }
}

/// The increment of SplitMix64's state.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The first output of SplitMix64 for a seed. Every output bit depends on every bit of the seed, so it also serves as a
/// hash.
pub const fn splitmix64(seed: u64) -> u64 {
    let z = seed.wrapping_add(STEP);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_generates_same_ids() {
        let clock = ManualClock::at(Timestamp::from_millis(5));
        let (a, b) = (Env::manual(clock.clone(), 7), Env::manual(clock.clone(), 7));
        assert_eq!(a.uuid(), b.uuid());
        assert_ne!(a.uuid(), Env::manual(clock.clone(), 8).uuid());
        clock.advance(Duration::from_secs(1));
        assert_eq!(a.now().as_millis(), 1005);
    }

    #[test]
    fn uuids_have_version_and_variant_bits() {
        assert_eq!(
            uuid_text(4, 0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210).as_str(),
            "01234567-89ab-4def-bedc-ba9876543210"
        );
        let clock = ManualClock::at(Timestamp::from_millis(0x0123_4567_89ab));
        let env = Env::manual(clock.clone(), 7);
        let id = env.ordered_uuid();
        assert!(id.starts_with("01234567-89ab-7"), "{id}");
        clock.advance(Duration::from_millis(1));
        assert!(id < env.ordered_uuid());
    }

    #[test]
    fn system_uuids_differ() {
        let env = Env::system();
        assert_ne!(env.uuid(), env.uuid());
        assert_ne!(env.uuid(), Env::system().uuid());
    }
}
