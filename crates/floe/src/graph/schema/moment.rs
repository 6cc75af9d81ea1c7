//! Moments as the graph stores them: text of ISO 8601 with six digits behind the second.
//!
//! The clock tells milliseconds. The three digits behind them count, so that two updates of the same millisecond keep
//! their order, and an entity never seems to have been updated before it was.

use std::sync::atomic::{AtomicU64, Ordering};

use floe_store::Timestamp;

/// Makes moments, each later than the one before.
#[derive(Debug, Default)]
pub(crate) struct Moments(AtomicU64);

impl Moments {
    /// The present moment: later than all that were made here, and than the one that is given.
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
    fn moments_of_one_millisecond_keep_their_order() {
        let moments = Moments::default();
        let now = Timestamp::from_millis(1_795_000_000_123);
        let made: Vec<_> = (0..2000).map(|_| moments.next(now, None)).collect();
        assert!(made.windows(2).all(|two| two[0] < two[1]));
        assert!(made[0].ends_with(".123000Z"), "{}", made[0]);
        assert!(made[1].ends_with(".123001Z"), "{}", made[1]);
    }

    #[test]
    fn an_update_is_later_than_the_last_one_whoever_made_that() {
        let now = Timestamp::from_millis(1_795_000_000_000);
        let others = "2099-01-01T00:00:00.000999Z";
        let next = Moments::default().next(now, Some(others));
        assert_eq!(next, "2099-01-01T00:00:00.001000Z");
        let short = Moments::default().next(now, Some("2099-01-01T00:00:00.5Z"));
        assert_eq!(short, "2099-01-01T00:00:00.500001Z");
    }
}
