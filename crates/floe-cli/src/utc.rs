//! Dates and times in UTC, as text.

use floe_store::Timestamp;

/// Formats a date and time: `2026-11-17 09:30:00`.
pub(super) fn date_time(timestamp: Timestamp) -> String {
    let text = timestamp.to_iso();
    let seconds = text.get(..19).unwrap_or_default();
    seconds.replacen('T', " ", 1)
}

/// Formats a date: `2026-11-17`.
pub(super) fn date(timestamp: Timestamp) -> String {
    let text = timestamp.to_iso();
    text.get(..10).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leap_days_are_formatted() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_400, "2000-02-29 00:00:00"),
            (1_709_251_199, "2024-02-29 23:59:59"),
            (1_795_000_000, "2026-11-18 11:06:40"),
            (4_107_542_400, "2100-03-01 00:00:00"),
        ] {
            assert_eq!(date_time(Timestamp::from_millis(seconds * 1000)), expected);
        }
    }
}
