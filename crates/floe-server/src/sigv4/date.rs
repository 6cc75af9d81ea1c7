//! Times of signed requests: `20150830T123600Z`, or the format of the `Date` header.

use std::fmt;

use floe_store::calendar::{date_from_days, days_since_epoch};

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// A time in seconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SigningTime(pub(crate) i64);

impl SigningTime {
    /// Parses either format.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::parse_basic(text).or_else(|| Self::parse_http(text))
    }

    /// `20150830T123600Z`.
    fn parse_basic(text: &str) -> Option<Self> {
        let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
        if date.len() != 8 || time.len() != 6 {
            return None;
        }
        let part = |text: &str, from: usize, to: usize| number(text.get(from..to)?);
        let day = days_since_epoch(part(date, 0, 4)?, part(date, 4, 6)?, part(date, 6, 8)?)?;
        Self::at(day, part(time, 0, 2)?, part(time, 2, 4)?, part(time, 4, 6)?)
    }

    /// `Sun, 30 Aug 2015 12:36:00 GMT`.
    fn parse_http(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once(", ")?;
        let mut words = rest.split_whitespace();
        let day = number(words.next()?)?;
        let name = words.next()?;
        let month = MONTHS.iter().position(|month| *month == name)?;
        let year = number(words.next()?)?;
        let mut time = words.next()?.split(':').map(number);
        if words.next()? != "GMT" {
            return None;
        }
        let day = days_since_epoch(year, i64::try_from(month + 1).ok()?, day)?;
        Self::at(day, time.next()??, time.next()??, time.next()??)
    }

    fn at(day: i64, hour: i64, minute: i64, second: i64) -> Option<Self> {
        let is_time = hour < 24 && minute < 60 && second <= 60;
        is_time.then_some(Self(day * 86_400 + hour * 3600 + minute * 60 + second))
    }

    /// Adds seconds.
    pub(crate) const fn plus(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds))
    }
}

impl fmt::Display for SigningTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (day, second) = (self.0.div_euclid(86_400), self.0.rem_euclid(86_400));
        let (year, month, day) = date_from_days(day);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(
            f,
            "{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z"
        )
    }
}

/// Parses a number that consists of digits only.
fn number(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.len() < 6 && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_are_parsed() {
        let time = Some(SigningTime(1_440_938_160));
        assert_eq!(SigningTime::parse("20150830T123600Z"), time);
        assert_eq!(SigningTime::parse("Sun, 30 Aug 2015 12:36:00 GMT"), time);
        assert_eq!(SigningTime(1_440_938_160).to_string(), "20150830T123600Z");
    }

    #[test]
    fn invalid_times_are_rejected() {
        for text in [
            "",
            "201",
            "20150830",
            "20150830T123600",
            "20151330T123600Z",
            "20150830T243600Z",
            "2015083\u{e9}T123600Z",
            "+0150830T123600Z",
            "Sun, 30 Aug 2015 12:36 GMT",
            "Sun, 30 Aug 2015 12:36:00 CET",
            "yesterday, at noon",
        ] {
            assert_eq!(SigningTime::parse(text), None, "{text}");
        }
    }
}
