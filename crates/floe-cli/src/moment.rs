//! Moments for people: a day and a time of UTC.

use floe_store::Timestamp;

/// The text of a moment: `2026-11-17 09:30:00`.
pub(super) fn text(moment: Timestamp) -> String {
    let text = moment.to_iso();
    let seconds = text.get(..19).unwrap_or_default();
    seconds.replacen('T', " ", 1)
}

/// The text of a day: `2026-11-17`.
pub(super) fn day(moment: Timestamp) -> String {
    let text = moment.to_iso();
    text.get(..10).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_leap_years_and_others() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_400, "2000-02-29 00:00:00"),
            (1_709_251_199, "2024-02-29 23:59:59"),
            (1_795_000_000, "2026-11-18 11:06:40"),
            (4_107_542_400, "2100-03-01 00:00:00"),
        ] {
            assert_eq!(text(Timestamp::from_millis(seconds * 1000)), expected);
        }
    }
}
