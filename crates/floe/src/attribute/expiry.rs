//! The expiry time of an item, in whole seconds as DynamoDB requires.

use std::time::Duration;

use floe_store::{Timestamp, Value};
use serde_json::{Value as Json, json};

use super::{Attribute, FieldKind, Invalid, mismatch, missing, scalar};

/// The expiry time of an item, in seconds since 1970.
///
/// An item is expired from that second on, even if the store has not removed it yet.
///
/// ```
/// use std::time::Duration;
/// use floe::attribute::Expiry;
/// use floe_store::Timestamp;
///
/// let now = Timestamp::from_millis(1_000_000);
/// let expiry = Expiry::after(now, Duration::from_secs(60));
/// assert_eq!(expiry.as_secs(), 1060);
/// assert!(!expiry.is_past(now));
/// assert!(expiry.is_past(now.plus(Duration::from_secs(60))));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Expiry(u64);

impl Expiry {
    /// This many seconds after 1970.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs)
    }

    /// At this time, rounded up to a whole second: never earlier.
    pub const fn at(moment: Timestamp) -> Self {
        Self(moment.as_millis().div_ceil(1000))
    }

    /// This long after `now`.
    pub fn after(now: Timestamp, duration: Duration) -> Self {
        Self::at(now.plus(duration))
    }

    /// Seconds since 1970.
    pub const fn as_secs(self) -> u64 {
        self.0
    }

    /// Whether the item is expired at `now`.
    pub const fn is_past(self, now: Timestamp) -> bool {
        self.0 <= now.as_secs()
    }
}

impl From<Timestamp> for Expiry {
    fn from(moment: Timestamp) -> Self {
        Self::at(moment)
    }
}

scalar!(Expiry, Number, "N",
json!({"type": "integer", "minimum": 0, "description": "seconds since 1970"}),
|own| Ok(Value::from(own.0)),
Value::N(number) => number.to_u64().map(Self).ok_or_else(|| {
    Invalid::new(format!("the number is not a time in seconds: value={number}"))
}));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiry_is_rounded_up() {
        let expiry = |millis| Expiry::at(Timestamp::from_millis(millis)).as_secs();
        assert_eq!(
            [expiry(0), expiry(1), expiry(1000), expiry(1001)],
            [0, 1, 1, 2]
        );
    }

    #[test]
    fn expiry_is_past_from_its_second_on() {
        let expiry = Expiry::from_secs(1000);
        assert!(!expiry.is_past(Timestamp::from_millis(999_999)));
        assert!(expiry.is_past(Timestamp::from_millis(1_000_000)));
    }

    #[test]
    fn maximum_duration_does_not_overflow() {
        let expiry = Expiry::after(Timestamp::from_millis(5), Duration::MAX);
        assert!(!expiry.is_past(Timestamp::from_millis(u64::MAX - 1_000_000)));
    }

    #[test]
    fn expiry_is_stored_as_a_number_of_seconds() {
        let stored = Value::from(1000);
        assert_eq!(Expiry::from_secs(1000).to_value(), Ok(Some(stored.clone())));
        assert_eq!(
            Expiry::from_value(Some(&stored)),
            Ok(Expiry::from_secs(1000))
        );
        assert!(Expiry::from_value(None).is_err());
        assert!(Expiry::from_value(Some(&Value::from(-1))).is_err());
        assert!(Expiry::from_value(Some(&Value::from("1000"))).is_err());
    }
}
