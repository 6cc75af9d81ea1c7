//! Calendar dates in UTC, and timestamps as ISO 8601 text.
//!
//! Text is written in UTC with milliseconds, and parsed with any number of digits and any offset.

use crate::env::Timestamp;
use crate::text::Text;

const MILLIS_PER_DAY: i64 = 86_400_000;

impl Timestamp {
    /// Formats the time as `2026-11-17T09:30:00.123Z`.
    pub fn to_iso(self) -> Text {
        let millis = i64::try_from(self.as_millis()).unwrap_or(i64::MAX);
        let (year, month, day) = date_from_days(millis / MILLIS_PER_DAY);
        let (seconds, millis) = (millis / 1000 % 86_400, millis % 1000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let mut text = *b"0000-00-00T00:00:00.000Z";
        for (end, mut number) in [
            (4, year),
            (7, month),
            (10, day),
            (13, hour),
            (16, minute),
            (19, second),
            (23, millis),
        ] {
            // Hand-written because every event has a timestamp, and `format!` would take most of the time.
            for digit in text.iter_mut().take(end).rev() {
                if number == 0 || !digit.is_ascii_digit() {
                    break;
                }
                *digit = b'0' + (number % 10) as u8;
                number /= 10;
            }
        }
        Text::from(str::from_utf8(&text).unwrap_or_default())
    }

    /// Parses a time. Returns `None` for malformed text and for times before 1970.
    pub fn from_iso(text: &str) -> Option<Self> {
        let (date, rest) = text.split_once('T')?;
        let mut date = date.split('-');
        let (year, month, day) = (date.next()?, date.next()?, date.next()?);
        let day = days_since_epoch(number(year)?, number(month)?, number(day)?)?;
        let zone = rest.find(['Z', '+', '-'])?;
        let (time, zone) = rest.split_at(zone);
        let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
        let mut time = time.split(':');
        let (hour, minute) = (number(time.next()?)?, number(time.next()?)?);
        let second = number(time.next().unwrap_or("0"))?;
        if time.next().is_some() || date.next().is_some() || hour > 24 || minute > 59 || second > 60
        {
            return None;
        }
        let seconds = day * 86_400 + hour * 3600 + minute * 60 + second;
        let millis = (seconds - offset_seconds(zone)?) * 1000 + millis_of(fraction)?;
        u64::try_from(millis).ok().map(Self::from_millis)
    }
}

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar.
///
/// ```
/// use floe_store::calendar::{date_from_days, days_since_epoch};
///
/// assert_eq!(days_since_epoch(2000, 2, 29), Some(11_016));
/// assert_eq!(date_from_days(11_016), (2000, 2, 29));
/// ```
pub const fn days_since_epoch(year: i64, month: i64, day: i64) -> Option<i64> {
    if month < 1 || month > 12 || day < 1 || day > 31 {
        return None;
    }
    // Years start in March here, so that the leap day is the last day of a year.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// Returns the year, month and day this many days after 1970-01-01.
pub const fn date_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

fn number(text: &str) -> Option<i64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    (digits && text.len() <= 4).then(|| text.parse().ok())?
}

/// Returns the milliseconds of a fraction of a second, truncating finer digits.
fn millis_of(fraction: &str) -> Option<i64> {
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(3);
    Some(digits.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
}

fn offset_seconds(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let (sign, rest) = match zone.strip_prefix('+') {
        Some(rest) => (1, rest),
        None => (-1, zone.strip_prefix('-')?),
    };
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_round_trip_through_iso_text() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_001, "2000-02-29T00:00:00.001Z"),
            (1_794_907_800_123, "2026-11-17T09:30:00.123Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
        ] {
            let time = Timestamp::from_millis(millis);
            assert_eq!(time.to_iso(), text);
            assert_eq!(Timestamp::from_iso(text), Some(time));
        }
        for day in (0..60_000).step_by(7) {
            let time = Timestamp::from_millis(day * 86_400_000 + 1);
            assert_eq!(Timestamp::from_iso(&time.to_iso()), Some(time));
        }
    }

    #[test]
    fn dates_round_trip_through_day_numbers() {
        for day in (-200_000..3_000_000).step_by(7) {
            let (year, month, of_month) = date_from_days(day);
            assert_eq!(days_since_epoch(year, month, of_month), Some(day));
        }
        assert_eq!(date_from_days(47_541), (2100, 3, 1));
    }

    #[test]
    fn parses_other_precisions_and_offsets() {
        let time = Timestamp::from_millis(1_794_907_800_123);
        for text in [
            "2026-11-17T09:30:00.1234567+00:00",
            "2026-11-17T11:30:00.1234567+02:00",
            "2026-11-17T04:00:00.123-05:30",
        ] {
            assert_eq!(Timestamp::from_iso(text), Some(time), "{text}");
        }
        let whole = Timestamp::from_millis(1_794_907_800_000);
        assert_eq!(Timestamp::from_iso("2026-11-17T09:30:00Z"), Some(whole));
        assert_eq!(Timestamp::from_iso("2026-11-17T09:30:00.0Z"), Some(whole));
    }

    #[test]
    fn rejects_malformed_and_impossible_times() {
        for text in [
            "",
            "2026",
            "2026-11-17",
            "2026-11-17T09:30:00",
            "2026-13-17T09:30:00Z",
            "2026-11-17T09:61:00Z",
            "2026-11-17T09:30:00.Z",
            "2026-11-17T09:30:00.1x3Z",
            "2026-11-17T09:30:00+2:99",
            "1969-12-31T23:59:59Z",
            "2026-11-17-1T09:30:00Z",
            "x026-11-17T09:30:00Z",
            "2026-11-17T09:30:00:00Z",
        ] {
            assert_eq!(Timestamp::from_iso(text), None, "{text}");
        }
    }
}
