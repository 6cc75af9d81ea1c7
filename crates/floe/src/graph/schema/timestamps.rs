//! Timestamps as the graph stores them: ISO 8601 with six fractional digits.
//!
//! The clock has milliseconds. The last three digits are a counter, so that updates in the same millisecond keep their
//! order, and the update time of an entity never decreases.

use std::sync::atomic::{AtomicU64, Ordering};

use floe_store::Timestamp;

/// Generates strictly increasing timestamps.
#[derive(Debug, Default)]
pub(crate) struct Timestamps(AtomicU64);

impl Timestamps {
    /// The present time, but later than all timestamps generated before and than `after`.
    pub(crate) fn next(&self, now: Timestamp, after: Option<&str>) -> String {
        let floor = after.and_then(micros).map_or(0, |micros| micros + 1);
        let now = now.as_millis().saturating_mul(1000).max(floor);
        let later = |last: u64| Some(now.max(last + 1));
        let last = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
        let last = last.unwrap_or_else(|last| last);
        text(now.max(last + 1))
    }
}

fn text(micros: u64) -> String {
    let millis = Timestamp::from_millis(micros / 1000).to_iso();
    let millis = millis.trim_end_matches('Z');
    format!("{millis}{:03}Z", micros % 1000)
}

fn micros(text: &str) -> Option<u64> {
    let millis = Timestamp::from_iso(text)?.as_millis();
    let (_, fraction) = text.trim_end_matches('Z').rsplit_once('.')?;
    let beyond: String = fraction.chars().skip(3).take(3).collect();
    Some(millis * 1000 + format!("{beyond:0<3}").parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_in_one_millisecond_increase() {
        let timestamps = Timestamps::default();
        let now = Timestamp::from_millis(1_795_000_000_123);
        let made: Vec<_> = (0..2000).map(|_| timestamps.next(now, None)).collect();
        assert!(made.windows(2).all(|two| two[0] < two[1]));
        assert!(made[0].ends_with(".123000Z"), "{}", made[0]);
        assert!(made[1].ends_with(".123001Z"), "{}", made[1]);
    }

    #[test]
    fn timestamp_is_later_than_the_stored_one() {
        let now = Timestamp::from_millis(1_795_000_000_000);
        let others = "2099-01-01T00:00:00.000999Z";
        let next = Timestamps::default().next(now, Some(others));
        assert_eq!(next, "2099-01-01T00:00:00.001000Z");
        let short = Timestamps::default().next(now, Some("2099-01-01T00:00:00.5Z"));
        assert_eq!(short, "2099-01-01T00:00:00.500001Z");
    }
}
