//! Moments as they are stored: text of ISO 8601.
//!
//! Written to the millisecond and in UTC. Read with as many digits and in whatever offset others have written them.

use floe_store::{Text, Timestamp};

const MILLIS_PER_DAY: u64 = 86_400_000;

/// The text of a moment: `2026-11-17T09:30:00.123Z`.
pub(crate) fn to_text(moment: Timestamp) -> Text {
    let millis = moment.as_millis();
    let (year, month, day) = date_of(millis / MILLIS_PER_DAY);
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
        // Every event has one, and formatting takes longer than the rest of it.
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

/// The moment of this text, if it is one that can be: not before 1970.
pub(crate) fn from_text(text: &str) -> Option<Timestamp> {
    let (date, rest) = text.split_once('T')?;
    let mut date = date.split('-');
    let (year, month, day) = (date.next()?, date.next()?, date.next()?);
    let day = days_to(number(year)?, number(month)?, number(day)?)?;
    let zone = rest.find(['Z', '+', '-'])?;
    let (time, zone) = rest.split_at(zone);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut time = time.split(':');
    let (hour, minute) = (number(time.next()?)?, number(time.next()?)?);
    let second = number(time.next().unwrap_or("0"))?;
    if time.next().is_some() || date.next().is_some() || hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = day * 86_400 + i64::try_from(hour * 3600 + minute * 60 + second).ok()?;
    let millis = (seconds - offset_seconds(zone)?) * 1000 + millis_of(fraction)?;
    u64::try_from(millis).ok().map(Timestamp::from_millis)
}

fn number(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    (digits && text.len() <= 4).then(|| text.parse().ok())?
}

/// The milliseconds of a fraction of a second; what is finer is left out.
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
    let seconds = i64::try_from(hours * 3600 + minutes * 60).ok()?;
    (hours < 24 && minutes < 60).then_some(sign * seconds)
}

/// How many days lie between 1970-01-01 and a date of the Gregorian calendar.
fn days_to(year: u64, month: u64, day: u64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March, so that the day which some years have is the last one.
    let year = if month <= 2 {
        year.checked_sub(1)?
    } else {
        year
    };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + day_of_year;
    Some(i64::try_from(days).ok()? - 719_468)
}

/// The date so many days after 1970-01-01.
const fn date_of(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year + era * 400;
    (if month <= 2 { year + 1 } else { year }, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_come_back_from_their_text() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_001, "2000-02-29T00:00:00.001Z"),
            (1_794_907_800_123, "2026-11-17T09:30:00.123Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
        ] {
            let moment = Timestamp::from_millis(millis);
            assert_eq!(to_text(moment), text);
            assert_eq!(from_text(text), Some(moment));
        }
        for day in (0..60_000).step_by(7) {
            let moment = Timestamp::from_millis(day * MILLIS_PER_DAY + 1);
            assert_eq!(from_text(&to_text(moment)), Some(moment));
        }
    }

    #[test]
    fn other_dialects_are_read() {
        let moment = Timestamp::from_millis(1_794_907_800_123);
        for text in [
            "2026-11-17T09:30:00.1234567+00:00",
            "2026-11-17T11:30:00.1234567+02:00",
            "2026-11-17T04:00:00.123-05:30",
        ] {
            assert_eq!(from_text(text), Some(moment), "{text}");
        }
        let whole = Timestamp::from_millis(1_794_907_800_000);
        assert_eq!(from_text("2026-11-17T09:30:00Z"), Some(whole));
        assert_eq!(from_text("2026-11-17T09:30:00.0Z"), Some(whole));
    }

    #[test]
    fn what_is_no_moment_is_none() {
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
            assert_eq!(from_text(text), None, "{text}");
        }
    }
}
