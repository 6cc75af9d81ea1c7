//! The iteration order of Java's hash tables, which is visible in DynamoDB's responses.
//!
//! The hash of an entry selects its bucket. Buckets are listed in order, and entries of a bucket in insertion order.
//! The number of buckets is a power of two, doubled when the table is three quarters full.

use floe_store::Number;

/// Default number of buckets.
const BUCKETS: usize = 16;

/// Sorts names in the order of a `HashMap` created with the right capacity.
pub(super) fn sort_as_map<T>(entries: &mut [T], name: impl Fn(&T) -> &str) {
    let buckets = entries.len().max(1).next_power_of_two();
    sort(entries, buckets, |entry| text_hash(name(entry)));
}

/// Sorts numbers, given in ascending order, in the order of a `HashSet`.
pub(super) fn sort_as_set(numbers: &mut [Number]) {
    sort(numbers, BUCKETS, number_hash);
}

fn sort<T>(entries: &mut [T], mut buckets: usize, hash: impl Fn(&T) -> u32) {
    while entries.len() * 4 > buckets * 3 {
        buckets *= 2;
    }
    let bucket = |hash: u32| (hash ^ (hash >> 16)) as usize & (buckets - 1);
    entries.sort_by_key(|entry| bucket(hash(entry)));
}

/// `String.hashCode`
fn text_hash(text: &str) -> u32 {
    let add = |hash: u32, unit: u16| hash.wrapping_mul(31).wrapping_add(unit.into());
    text.encode_utf16().fold(0, add)
}

/// `BigDecimal.hashCode`, of a number without trailing zeros.
fn number_hash(number: &Number) -> u32 {
    let (negative, coefficient, exponent) = number.to_parts();
    let words = [96, 64, 32, 0].map(|shift| (coefficient >> shift) as u32);
    let words = words.iter().skip_while(|word| **word == 0);
    let hash = words.fold(0_u32, |hash, word| {
        hash.wrapping_mul(31).wrapping_add(*word)
    });
    let hash = if negative { hash.wrapping_neg() } else { hash };
    hash.wrapping_mul(31)
        .wrapping_add_signed(exponent.wrapping_neg())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_like_a_hash_map() {
        // DynamoDB lists the attributes of an item in this order.
        let mut names = ["b", "bin", "l", "m", "nul", "pk", "ss"];
        sort_as_map(&mut names, |name| name);
        assert_eq!(names, ["ss", "b", "nul", "bin", "pk", "l", "m"]);
        let mut one = ["x"];
        sort_as_map(&mut one, |name| name);
        assert_eq!(one, ["x"]);
        sort_as_map(&mut [] as &mut [&str], |name| name);
    }

    #[test]
    fn numbers_are_sorted_like_a_hash_set() {
        let mut numbers: Vec<Number> = [
            "-99999999999999999999999999999999999999",
            "-10",
            "-1",
            "-0.5",
            "0",
            "1e-130",
            "0.5",
            "2.5",
            "5",
            "7",
            "8",
            "9",
            "10",
            "25",
            "33",
            "100",
            "1000",
            "12345678901234567890",
        ]
        .map(|text| text.parse().unwrap())
        .to_vec();
        sort_as_set(&mut numbers);
        // Java lists them in this order.
        let listed: Vec<Number> = [
            "0",
            "1e-130",
            "-99999999999999999999999999999999999999",
            "25",
            "2.5",
            "12345678901234567890",
            "9",
            "8",
            "-0.5",
            "7",
            "5",
            "0.5",
            "1000",
            "100",
            "-1",
            "10",
            "-10",
            "33",
        ]
        .map(|text| text.parse().unwrap())
        .to_vec();
        assert_eq!(numbers, listed);
    }

    #[test]
    fn hashes_equal_those_of_java() {
        assert_eq!(text_hash("hello"), 99_162_322);
        assert_eq!(text_hash("é😀"), 1_996_812);
        for (text, hash) in [
            ("0", 0_i32),
            ("1", 31),
            ("-1", -31),
            // 1 × 10², so the scale is -2.
            ("100", 29),
            ("2.5", 776),
            ("-0.5", -154),
            ("12345678901234567890", -1_876_408_962),
            ("-99999999999999999999999999999999999999", 427_198_386),
        ] {
            let number: Number = text.parse().unwrap();
            assert_eq!(number_hash(&number), hash as u32, "number={text}");
        }
    }
}
