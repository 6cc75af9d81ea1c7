//! Key ranges.

use std::ops::Bound;

/// The bounds of a range of keys.
pub(crate) type KeyBounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The bounds of all keys with this prefix.
pub(crate) fn prefix_bounds(prefix: &[u8]) -> KeyBounds {
    (
        Bound::Included(prefix.to_vec()),
        prefix_end(prefix).map_or(Bound::Unbounded, Bound::Excluded),
    )
}

/// The first key after all keys with this prefix; `None` if there is no such key.
pub(crate) fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let keep = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut end = prefix.get(..=keep)?.to_vec();
    *end.last_mut()? += 1;
    Some(end)
}

pub(super) fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// Whether the bounds contain no key. Ordered maps panic on such bounds.
pub(super) fn is_empty_range(start: Bound<&[u8]>, end: Bound<&[u8]>) -> bool {
    match (start, end) {
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (
            Bound::Included(start) | Bound::Excluded(start),
            Bound::Included(end) | Bound::Excluded(end),
        ) => start >= end,
        _ => false,
    }
}
