//! Durations on the command line: a number and a unit.

use std::time::Duration;

/// Parses a positive duration such as `500ms`, `30m` or `7d`.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_ms = match text.strip_prefix(digits) {
        Some("ms") => Some(1),
        Some("s") => Some(1_000),
        Some("m") => Some(60_000),
        Some("h") => Some(3_600_000),
        Some("d") => Some(86_400_000),
        _ => None,
    };
    let count = digits.parse::<u32>().ok();
    let count = count.filter(|count| *count > 0 && !digits.starts_with('+'));
    let time = unit_ms.zip(count);
    time.map(|(unit_ms, count)| Duration::from_millis(unit_ms * u64::from(count)))
        .ok_or_else(|| "not a duration, such as 500ms, 1s, 30m, 24h or 7d".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_is_a_positive_integer_with_a_unit() {
        for (text, seconds) in [
            ("1s", 1),
            ("2m", 120),
            ("24h", 24 * 3600),
            ("7d", 7 * 24 * 3600),
            ("4294967295d", 4_294_967_295 * 86_400),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)));
        }
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        for text in [
            "",
            "1",
            "s",
            "0s",
            "0d",
            "-1s",
            "+1s",
            "1.5s",
            "1w",
            "1 s",
            "99999999999s",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
