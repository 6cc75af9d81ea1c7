//! Moments for people: a day and a time of UTC.

use floe_store::Timestamp;

/// The text of a moment: `2026-11-17 09:30:00`.
pub(super) fn text(moment: Timestamp) -> String {
    let seconds = moment.as_secs();
    let day = day(moment);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{day} {hour:02}:{minute:02}:{second:02}")
}

/// The text of a day: `2026-11-17`.
pub(super) fn day(moment: Timestamp) -> String {
    let (year, month, day) = date(moment.as_secs() / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The year, month and day of a number of days since 1970. Years are counted from March on, so that the day that some
/// of them have more is the last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
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
