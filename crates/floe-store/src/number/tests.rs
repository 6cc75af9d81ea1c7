//! Tables of DynamoDB's behaviour, then random numbers compared with a simple model.

use std::collections::HashSet;

use super::*;
use crate::env::{Random as _, SeededRandom};

fn number(text: &str) -> Number {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn ordered(number: Number) -> Vec<u8> {
    let mut bytes = Vec::new();
    number.encode_ordered(&mut bytes);
    bytes
}

fn compact(number: Number) -> Vec<u8> {
    let mut bytes = Vec::new();
    number.encode_compact(&mut bytes);
    bytes
}

// Text

#[test]
fn prints_numbers_as_dynamodb_does() {
    let check = |written: &str, printed: &str| {
        let number = number(written);
        assert_eq!(number.to_string(), printed, "{written}");
        assert_eq!(printed.parse(), Ok(number), "{written}");
    };
    for unchanged in ["0", "1", "123", "-5", "10", "3.14159", "-273.15", "0.001"] {
        check(unchanged, unchanged);
    }
    for (written, printed) in [
        ("007", "7"),
        ("001.23", "1.23"),
        ("00", "0"),
        ("+3", "3"),
        ("+0.0", "0"),
        ("-0", "0"),
        ("-0.000", "0"),
        ("1.00", "1"),
        ("1.10", "1.1"),
        ("100.000", "100"),
        (".5", "0.5"),
        ("-.5", "-0.5"),
        ("+.5", "0.5"),
        ("5.", "5"),
        ("5.e1", "50"),
        (".5e1", "5"),
        ("1e3", "1000"),
        ("1E+3", "1000"),
        ("1E5", "100000"),
        ("1e00000000000000000000003", "1000"),
        ("-3e2", "-300"),
        ("1.5E2", "150"),
        ("123e-2", "1.23"),
        ("+1e-2", "0.01"),
        ("1.0e-1", "0.1"),
        ("1e-20", "0.00000000000000000001"),
        ("0e5", "0"),
        ("0.0e126", "0"),
        ("9223372036854775808", "9223372036854775808"),
        ("18446744073709551616000", "18446744073709551616000"),
        ("00000000000000000000000000000000000000000000000001", "1"),
        ("1.00000000000000000000000000000000000000000000000000", "1"),
        (
            "31415926535897932384626433832795028841e3",
            "31415926535897932384626433832795028841000",
        ),
        (
            "314159265358979323846.26433832795028841",
            "314159265358979323846.26433832795028841",
        ),
    ] {
        check(written, printed);
    }
    check("1e125", &format!("1{}", "0".repeat(125)));
    check("-1e-130", &format!("-0.{}1", "0".repeat(129)));
    let nines = "9".repeat(38);
    check(
        &format!("{nines}e88"),
        &format!("{nines}{}", "0".repeat(88)),
    );
    check(
        &format!("-{nines}e-167"),
        &format!("-0.{}{nines}", "0".repeat(129)),
    );
}

#[test]
fn range_of_zero_is_checked_as_if_its_last_digit_were_one() {
    for text in ["0e125", "-0", "0.0e126", "0e-130", "000.000"] {
        assert_eq!(number(text), Number::ZERO, "{text}");
    }
    for (text, error) in [
        ("0e126", NumberError::Overflow),
        ("-0.00e99999999999", NumberError::Overflow),
        ("0e-131", NumberError::Underflow),
        ("0.0e-130", NumberError::Underflow),
        ("0e-99999999999999999999999", NumberError::Malformed),
    ] {
        assert_eq!(text.parse::<Number>(), Err(error), "{text}");
    }
}

#[test]
fn rejects_malformed_numbers() {
    for text in [
        "",
        "+",
        "-",
        ".",
        "-.",
        "e2",
        "+e2",
        ".e2",
        "1e",
        "1e+",
        "1e-",
        "1e+-2",
        "1e2.5",
        "1e1e1",
        "++5",
        "+-5",
        "-+5",
        "1+2",
        "1-",
        "1.2.3",
        "1..2",
        "abc",
        "1a",
        "a1",
        "0x1",
        "0x5",
        "1_000",
        "1,000",
        "NaN",
        "-NaN",
        "nan",
        "Infinity",
        "-Infinity",
        "inf",
        " 1",
        "1 ",
        "1 5",
        "\t1",
        "1\n",
        "1e 5",
        "1\0",
        "١",
        "１",
        "1e٣",
        "0e",
        "0x",
        "0e1x",
        "0e99999999999999999999x",
    ] {
        assert_eq!(
            text.parse::<Number>(),
            Err(NumberError::Malformed),
            "{text:?}"
        );
    }
}

#[test]
fn rejects_numbers_out_of_range() {
    use NumberError::{Malformed, Overflow, TooManyDigits, Underflow};
    for (text, error) in [
        ("123456789012345678901234567890123456789", TooManyDigits),
        ("-1.23456789012345678901234567890123456789", TooManyDigits),
        ("314159265358979323846.264338327950288419", TooManyDigits),
        ("100000000000000000000000000000000000001e-60", TooManyDigits),
        ("1e126", Overflow),
        ("-1e126", Overflow),
        ("11e125", Overflow),
        ("10e125", Overflow),
        ("1e-131", Underflow),
        ("-1e-131", Underflow),
        ("0.9e-130", Underflow),
        ("1e999999999999", Overflow),
        ("1e-999999999999", Underflow),
        ("10e9223372036854775807", Overflow),
        ("0.01e-9223372036854775808", Underflow),
        // DynamoDB parses exponents into 64 bits and reports larger ones as malformed.
        ("1e9223372036854775808", Malformed),
        ("1e-9223372036854775809", Malformed),
    ] {
        assert_eq!(text.parse::<Number>(), Err(error), "{text}");
    }
    assert_eq!(number("0.1e126"), number("1e125"));
    assert_eq!(number("10e-131"), number("1e-130"));
}

#[test]
fn parses_very_long_text() {
    const LENGTH: usize = 1_000_000;
    let zeros = "0".repeat(LENGTH);
    for (text, result) in [
        (zeros.clone(), Ok(Number::ZERO)),
        (format!("{zeros}1"), Ok(Number::from(1))),
        (format!("1.{zeros}"), Ok(Number::from(1))),
        (format!("1{zeros}e-{LENGTH}"), Ok(Number::from(1))),
        (format!("0.{zeros}1e{}", LENGTH + 1), Ok(Number::from(1))),
        (format!("1e{zeros}2"), Ok(Number::from(100))),
        (format!("1{zeros}"), Err(NumberError::Overflow)),
        (format!("0.{zeros}1"), Err(NumberError::Underflow)),
        (format!("1{zeros}1"), Err(NumberError::TooManyDigits)),
        ("1".repeat(LENGTH), Err(NumberError::TooManyDigits)),
        (
            format!("{}x", "1".repeat(LENGTH)),
            Err(NumberError::Malformed),
        ),
        (
            format!("1e{}", "9".repeat(LENGTH)),
            Err(NumberError::Malformed),
        ),
    ] {
        let start = &text[..text.len().min(9)];
        assert_eq!(text.parse::<Number>(), result, "{start}…");
    }
}

#[test]
fn error_messages_match_dynamodb() {
    let message = |text: &str| text.parse::<Number>().unwrap_err().message(text);
    assert_eq!(
        message(""),
        "The parameter cannot be converted to a numeric value"
    );
    assert_eq!(
        message("b"),
        "The parameter cannot be converted to a numeric value: b"
    );
    assert_eq!(
        message(&"1".repeat(39)),
        "Attempting to store more than 38 significant digits in a Number"
    );
    assert_eq!(
        message("1e126"),
        "Number overflow. Attempting to store a number with magnitude larger than supported range"
    );
    assert_eq!(
        message("1e-131"),
        "Number underflow. Attempting to store a number with magnitude smaller than supported range"
    );
}

#[test]
fn formats_with_width_and_sign() {
    let number = number("-1.5");
    assert_eq!(
        format!("{number:>7}|{number:<7}|{number:07}|"),
        "   -1.5|-1.5   |-0001.5|"
    );
    assert_eq!(format!("{:+}|{:+}", -number, number), "+1.5|-1.5");
    assert_eq!(format!("{number:?}"), "Number(-1.5)");
    let longest = super::tests::number(&format!("-{}e-167", "9".repeat(38)));
    assert_eq!(longest.to_string().len(), Text::BYTES_MAX);
    assert_eq!(format!("{longest:171}").len(), 171);
}

// Value

#[test]
fn each_number_has_one_representation() {
    let spellings = ["1000", "1e3", "1E+3", "1000.0", "001000", "+1000", "0.1e4"];
    let distinct: HashSet<Number> = spellings.into_iter().map(number).collect();
    assert_eq!(distinct, HashSet::from([Number::from(1000)]));
    assert_eq!(Number::default(), Number::ZERO);
    assert_eq!(size_of::<Option<Number>>(), size_of::<Number>());
}

#[test]
fn sorts_by_value() {
    let ascending = [
        "-9.9999999999999999999999999999999999999e125",
        "-1e125",
        "-12345678901234567890123456789012345678",
        "-100",
        "-99.9",
        "-10",
        "-9.9",
        "-9",
        "-1.01",
        "-1",
        "-0.9",
        "-1.0000000000000000000000000000000000001e-130",
        "-1e-130",
        "0",
        "1e-130",
        "1.0000000000000000000000000000000000001e-130",
        "0.09",
        "0.1",
        "0.11",
        "1",
        "1.0000000000000000000000000000000000001",
        "1.1",
        "9",
        "10",
        "11",
        "99",
        "99.01",
        "100",
        "101",
        "255",
        "256",
        "12345678901234567890123456789012345677",
        "12345678901234567890123456789012345678",
        "1e125",
        "9.9999999999999999999999999999999999999e125",
    ]
    .map(number);
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            assert_eq!(a.cmp(b), i.cmp(&j), "{a} and {b}");
            assert_eq!(
                ordered(*a).cmp(&ordered(*b)),
                i.cmp(&j),
                "bytes of {a} and {b}"
            );
        }
    }
}

#[test]
fn size_bytes_matches_dynamodb() {
    for (text, bytes) in [
        ("0", 1),
        ("-0", 1),
        ("1", 2),
        ("12", 2),
        ("27", 2),
        ("-27", 3),
        ("123", 3),
        ("461", 3),
        ("1234", 3),
        ("12345", 4),
        ("123456", 4),
        ("1234567890123456789", 11),
        ("12345678901234567890123456789012345678", 20),
        ("0042", 2),
        ("100", 2),
        ("1010", 3),
        ("0.0000001", 2),
        ("1E125", 2),
        ("1E-100", 2),
        ("1.5", 3),
        ("15", 2),
        ("1.200", 3),
        ("1.234", 4),
        ("3.14159", 5),
        ("100.5", 4),
        ("0.15", 2),
        ("-42", 3),
        ("-12345", 5),
        ("-1E125", 3),
        ("-0.15", 3),
        ("120", 3),
        ("1200", 2),
        ("0.015", 3),
        ("1.2345678901234567890123456789012345678", 21),
        ("-1.2345678901234567890123456789012345678", 21),
        ("-12345678901234567890123456789012345678", 21),
    ] {
        assert_eq!(number(text).size_bytes(), bytes, "{text}");
    }
}

#[test]
fn counts_significant_digits() {
    for (text, digits) in [
        ("0", 0),
        ("7", 1),
        ("-1000", 1),
        ("1.02", 3),
        ("10200", 3),
        ("1e-130", 1),
    ] {
        assert_eq!(number(text).digits(), digits, "{text}");
    }
    assert_eq!(number(&"9".repeat(38)).digits(), 38);
}

// Conversions

#[test]
fn converts_integers_exactly() {
    for value in [
        0,
        1,
        -1,
        10,
        -100,
        255,
        i64::MAX,
        i64::MIN,
        1_000_000_000_000_000_000,
    ] {
        let number = Number::from(value);
        assert_eq!(number.to_i64(), Some(value));
        assert_eq!(number.to_i128(), Some(value.into()));
        assert_eq!(number.to_u64(), u64::try_from(value).ok());
        assert_eq!(number.to_string(), value.to_string());
        assert_eq!(number.is_negative(), value < 0);
    }
    assert_eq!(Number::from(u64::MAX).to_u64(), Some(u64::MAX));
    assert_eq!(Number::from(u64::MAX).to_i64(), None);
    assert_eq!(Number::from(i8::MIN), Number::from(-128_i16));
    assert_eq!(Number::from(200_u8), Number::from(200_u32));
    for text in ["0.5", "1e39", "1e125", "1e-130"] {
        assert_eq!(number(text).to_i128(), None, "{text}");
    }
    assert_eq!(number("1e38").to_i128(), Some(10_i128.pow(38)));
    assert_eq!(number("2e38").to_i128(), None);
    assert_eq!(
        number("-17014118346046923173168730371588410572e1").to_i128(),
        Some(i128::MIN + 8)
    );
}

#[test]
fn converts_128_bit_integers_that_fit() {
    let largest = 10_u128.pow(38) - 1;
    assert_eq!(
        Number::try_from(largest).unwrap().to_string(),
        largest.to_string()
    );
    assert_eq!(Number::try_from(largest + 1), Ok(number("1e38")));
    assert_eq!(
        Number::try_from(largest + 2),
        Err(NumberError::TooManyDigits)
    );
    assert_eq!(Number::try_from(u128::MAX), Err(NumberError::TooManyDigits));
    assert_eq!(Number::try_from(i128::MIN), Err(NumberError::TooManyDigits));
    assert_eq!(Number::try_from(-50_i128), Ok(Number::from(-50)));
    assert_eq!(Number::try_from(0_i128), Ok(Number::ZERO));
}

#[test]
fn converts_floats_via_their_shortest_text() {
    for (value, text) in [
        (0.0, "0"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (0.1 + 0.2, "0.30000000000000004"),
        (-1.5e-7, "-0.00000015"),
        (1e22, "10000000000000000000000"),
        (9_007_199_254_740_993.0, "9007199254740992"),
    ] {
        let number = Number::try_from(value).unwrap();
        assert_eq!(number.to_string(), text);
        assert_eq!(number.to_f64(), value);
    }
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(Number::try_from(value), Err(NumberError::Malformed));
    }
    assert_eq!(Number::try_from(f64::MAX), Err(NumberError::Overflow));
    assert_eq!(
        Number::try_from(f64::MIN_POSITIVE),
        Err(NumberError::Underflow)
    );
    assert_eq!(
        number("12345678901234567890123456789012345678").to_f64(),
        1.234_567_890_123_456_8e37
    );
    assert_eq!(number("-1e-130").to_f64(), -1e-130);
}

// Arithmetic

#[test]
fn sums_and_differences_are_exact_or_an_error() {
    use NumberError::{Overflow, Underflow};
    let nines = "9".repeat(38);
    for (a, b, sum) in [
        ("1", "2", Ok("3")),
        ("0.1", "0.2", Ok("0.3")),
        ("99", "1", Ok("100")),
        ("100", "-0.01", Ok("99.99")),
        ("5", "-5", Ok("0")),
        ("-5", "3", Ok("-2")),
        ("0", "-7", Ok("-7")),
        ("-7", "0", Ok("-7")),
        (
            "1",
            "10000000000000000000000",
            Ok("10000000000000000000001"),
        ),
        ("9e125", "9e124", Ok("9.9e125")),
        ("1e37", "1", Ok("10000000000000000000000000000000000001")),
        ("1e38", "-1", Ok(&nines)),
        (&nines, "1", Ok("1e38")),
        ("1e38", "1", Err(Overflow)),
        ("1e50", "1", Err(Overflow)),
        ("1e50", "-1", Err(Overflow)),
        ("1e125", "1e-130", Err(Overflow)),
        ("9e125", "9e125", Err(Overflow)),
        ("-9e125", "-1e125", Err(Overflow)),
        ("1.1e-130", "-1e-130", Err(Underflow)),
        ("1.1e-130", "-1.1e-130", Ok("0")),
    ] {
        let (a, b) = (number(a), number(b));
        let sum = sum.map(number);
        assert_eq!(a.checked_add(b), sum, "{a} + {b}");
        assert_eq!(b.checked_add(a), sum, "{b} + {a}");
        assert_eq!(a.checked_sub(-b), sum, "{a} - {}", -b);
    }
    assert_eq!(Number::from(3).checked_neg(), Ok(Number::from(-3)));
    assert_eq!(Number::ZERO.checked_neg(), Ok(Number::ZERO));
}

// Encodings

#[test]
fn ordered_encoding_has_documented_bytes() {
    for (text, bytes) in [
        ("0", &[0x80, 0x00][..]),
        ("1", &[0xC1, 2]),
        ("99", &[0xC1, 198]),
        ("100", &[0xC2, 2]),
        ("1.5", &[0xC1, 3, 100]),
        ("1234", &[0xC2, 25, 68]),
        ("9999999999", &[0xC5, 199, 199, 199, 199, 198]),
        ("-1", &[0x3E, 0xFD]),
        ("-1.5", &[0x3E, 0xFC, 0x9B]),
        ("1e-130", &[0x80, 2]),
        ("-1e-130", &[0x7F, 0xFD]),
        ("1e125", &[0xFF, 20]),
        ("-1e125", &[0x00, 0xEB]),
    ] {
        assert_eq!(ordered(number(text)), bytes, "{text}");
        assert_eq!(
            Number::decode_ordered(bytes),
            Some((number(text), bytes.len())),
            "{text}"
        );
    }
    let longest = number("-1.2345678901234567890123456789012345678");
    assert_eq!(ordered(longest).len(), 21);
}

#[test]
fn ordered_decoding_rejects_noncanonical_bytes() {
    let full = [&[0xC1][..], &[199; 18], &[198]].concat();
    assert_eq!(Number::decode_ordered(&full).unwrap().1, 20, "38 digits");
    for (bytes, why) in [
        (&[][..], "nothing"),
        (&[0xC1], "no pair"),
        (&[0xC1, 3], "no last pair"),
        (&[0xC1, 0], "zero as a number"),
        (&[0x7F, 0xFF], "negative zero"),
        (&[0x3E, 0xFF], "negative zero with another exponent"),
        (&[0x80, 0x01, 0x02], "leading zero pair"),
        (&[0xC1, 1, 2], "leading zero pair"),
        (&[0xC1, 3, 0], "trailing zero pair"),
        (&[0xC1, 200], "pair above 99"),
        (&[0xC1, 201, 2], "pair above 99"),
        (&[0xC1, 3, 254], "pair above 99"),
        (&[&[0xC1][..], &[199; 19], &[20]].concat(), "39 digits"),
        (&[&[0xC1][..], &[3; 19], &[2]].concat(), "39 digits"),
        (
            &[&[0xC1][..], &[69, 5], &[199; 17], &[198]].concat(),
            "39 digits close to 2^128",
        ),
        (&[&[0xC1][..], &[3; 20], &[2]].concat(), "21 pairs"),
    ] {
        assert_eq!(Number::decode_ordered(bytes), None, "{why}");
    }
}

#[test]
fn ordered_decoding_rejects_coefficients_beyond_128_bits() {
    // The highest digits of 2^128 - 1, which ends in 1455, and a last pair that exceeds it.
    for (digits, last) in [
        ("34028236692093846346337460743176821145", 90),
        ("03402823669209384634633746074317682114", 99),
    ] {
        let mut bytes = vec![0xC1];
        bytes.extend((0..19).map(|i| digits[2 * i..2 * i + 2].parse::<u8>().unwrap() * 2 + 1));
        bytes.push(last * 2);
        assert_eq!(Number::decode_ordered(&bytes), None);
    }
}

#[test]
fn compact_encoding_has_documented_bytes() {
    for (text, bytes) in [
        ("0", &[0x00][..]),
        ("1", &[0x01, 1]),
        ("255", &[0x01, 255]),
        ("256", &[0x02, 0, 1]),
        ("65535", &[0x02, 255, 255]),
        ("-7", &[0x81, 7]),
        ("1000", &[0x21, 3, 1]),
        ("19.99", &[0x22, 0xFE, 0xCF, 0x07]),
        ("-1e-128", &[0xA1, 0x80, 1]),
        ("1e-129", &[0x41, 0, 1]),
        ("1e-130", &[0x41, 1, 1]),
        ("1e125", &[0x21, 125, 1]),
    ] {
        assert_eq!(compact(number(text)), bytes, "{text}");
        assert_eq!(
            Number::decode_compact(bytes),
            Some((number(text), bytes.len())),
            "{text}"
        );
    }
    let longest = number(&format!("-{}e-167", "9".repeat(38)));
    assert_eq!(compact(longest).len(), 18);
}

#[test]
fn compact_decoding_rejects_noncanonical_bytes() {
    for (bytes, why) in [
        (&[][..], "nothing"),
        (&[0x80], "negative zero"),
        (&[0x20, 1], "zero with an exponent"),
        (&[0x01], "no coefficient"),
        (&[0x02, 1], "truncated coefficient"),
        (&[0x21, 1], "exponent only"),
        (&[0x21], "no exponent"),
        (&[0x01, 0], "zero as a number"),
        (&[0x02, 1, 0], "high zero byte"),
        (&[0x01, 10], "trailing zero"),
        (&[0x21, 0, 1], "explicit exponent 0"),
        (&[0x61, 1, 1], "form 3"),
        (&[0x21, 126, 1], "too large"),
        (&[0x21, 125, 11], "too large"),
        (&[0x41, 2, 1], "too small"),
        (&[0x41, 255, 1], "too small"),
        (&[&[0x11][..], &[1; 17]].concat(), "17 bytes"),
        (&[&[0x10][..], &[0xFF; 16]].concat(), "39 digits"),
        (
            &[&[0x10][..], &(10_u128.pow(38) + 1).to_le_bytes()].concat(),
            "39 digits",
        ),
        (
            &[&[0x10][..], &(10_u128.pow(38) - 10).to_le_bytes()].concat(),
            "trailing zero",
        ),
    ] {
        assert_eq!(Number::decode_compact(bytes), None, "{why}");
    }
}

#[test]
fn decoded_short_inputs_encode_to_the_same_bytes() {
    for head in 0..=255_u8 {
        for first in 0..=255_u8 {
            for second in [
                0, 1, 2, 3, 9, 10, 100, 126, 127, 128, 198, 199, 200, 254, 255,
            ] {
                check_decoded(&[head, first, second]);
            }
        }
    }
}

/// Checks that decodable input encodes to the same bytes.
fn check_decoded(bytes: &[u8]) {
    if let Some((number, taken)) = Number::decode_ordered(bytes) {
        assert_eq!(ordered(number), bytes[..taken], "ordered {bytes:?}");
        assert_eq!(number.to_string().parse(), Ok(number), "ordered {bytes:?}");
    }
    if let Some((number, taken)) = Number::decode_compact(bytes) {
        assert_eq!(compact(number), bytes[..taken], "compact {bytes:?}");
        assert_eq!(number.to_string().parse(), Ok(number), "compact {bytes:?}");
    }
}

// Helpers

#[test]
fn counts_digits_and_strips_zeros_at_every_power() {
    for exponent in 0..=38 {
        let power = 10_u128.pow(exponent);
        assert_eq!(decimal_digits(power), exponent + 1);
        assert_eq!(decimal_digits(power - 1), exponent);
        assert_eq!(strip_zeros(power), (1, exponent));
        assert_eq!(
            strip_zeros(power + 1),
            if exponent == 0 {
                (2, 0)
            } else {
                (power + 1, 0)
            }
        );
    }
    for bits in 0..128 {
        let value = 1_u128 << bits;
        assert_eq!(decimal_digits(value) as usize, value.to_string().len());
        assert_eq!(
            decimal_digits(value - 1 + value) as usize,
            (value - 1 + value).to_string().len()
        );
    }
}

// Random numbers compared with a simple model

struct Random(SeededRandom);

impl Random {
    const fn new(seed: u64) -> Self {
        Self(SeededRandom::new(seed))
    }

    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// A decimal written out in full, least significant digit first, from 10^-170 to 10^129.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Model {
    negative: bool,
    digits: Vec<u8>,
}

impl Model {
    const PLACES: usize = 170;
    const LENGTH: usize = 300;

    /// `digits` start with the most significant one; the last one has the power 10^`exponent`.
    fn new(negative: bool, digits: &[u8], exponent: i32) -> Self {
        let mut all = vec![0; Self::LENGTH];
        let start = (exponent + Self::PLACES as i32) as usize;
        for (place, digit) in digits.iter().rev().enumerate() {
            all[start + place] = *digit;
        }
        Self {
            negative,
            digits: all,
        }
        .without_negative_zero()
    }

    /// A random number in range, with few or many digits and any magnitude.
    fn random(random: &mut Random) -> Self {
        if random.below(50) == 0 {
            return Self::new(false, &[], 0);
        }
        let count = match random.below(3) {
            0 => 1 + random.below(4),
            1 => 1 + random.below(38),
            _ => 36 + random.below(3),
        };
        let mut digits: Vec<u8> = (0..count)
            .map(|_| random.pick(&[0, 1, 5, 9, 2, 7]))
            .collect();
        digits[0] = 1 + random.below(9) as u8;
        let magnitude = match random.below(4) {
            0 => random.below(256) as i32 - 130,
            1 => random.pick(&[-130, -129, 124, 125]),
            2 => count as i32 - 1,
            _ => random.below(12) as i32 - 4,
        };
        Self::new(random.below(2) == 0, &digits, magnitude - count as i32 + 1)
    }

    /// A number that differs slightly from this one, or not at all.
    fn near(&self, random: &mut Random) -> Self {
        let mut near = self.clone();
        match random.below(4) {
            0 => near.negative = !near.negative,
            1 => {
                let low = near
                    .digits
                    .iter()
                    .position(|d| *d != 0)
                    .unwrap_or(Self::PLACES);
                near.digits[low] = random.below(10) as u8;
            }
            2 => near.digits.rotate_right(1),
            _ => {}
        }
        let near = near.without_negative_zero();
        if near.fits().is_ok() {
            near
        } else {
            self.clone()
        }
    }

    fn without_negative_zero(mut self) -> Self {
        self.negative &= self.digits.iter().any(|digit| *digit != 0);
        self
    }

    fn fits(&self) -> Result<(), NumberError> {
        let nonzero = |digit: &u8| *digit != 0;
        let Some(top) = self.digits.iter().rposition(nonzero) else {
            return Ok(());
        };
        let bottom = self.digits.iter().position(nonzero).unwrap();
        match top as i32 - Self::PLACES as i32 {
            _ if top - bottom >= 38 => Err(NumberError::Overflow),
            126.. => Err(NumberError::Overflow),
            ..=-131 => Err(NumberError::Underflow),
            _ => Ok(()),
        }
    }

    fn text(&self) -> String {
        let digits: String = self
            .digits
            .iter()
            .rev()
            .map(|d| char::from(b'0' + d))
            .collect();
        let (whole, fraction) = digits.split_at(Self::LENGTH - Self::PLACES);
        let (whole, fraction) = (
            whole.trim_start_matches('0'),
            fraction.trim_end_matches('0'),
        );
        let sign = if self.negative { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        let whole = if whole.is_empty() { "0" } else { whole };
        format!("{sign}{whole}{point}{fraction}")
    }

    /// The same value in a different notation.
    fn respelled(&self, random: &mut Random) -> String {
        let digits: String = self
            .digits
            .iter()
            .rev()
            .map(|d| char::from(b'0' + d))
            .collect();
        let point = random.below(Self::LENGTH as u64 + 1) as usize;
        let (whole, fraction) = digits.split_at(point);
        let exponent = (Self::LENGTH - Self::PLACES) as i64 - point as i64;
        let sign = if self.negative {
            "-"
        } else {
            random.pick(&["", "+"])
        };
        format!(
            "{sign}{whole}.{fraction}{}{exponent}",
            random.pick(&["e", "E"])
        )
    }

    fn cmp_magnitude(&self, other: &Self) -> Ordering {
        self.digits.iter().rev().cmp(other.digits.iter().rev())
    }

    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.cmp_magnitude(other),
            (true, true) => other.cmp_magnitude(self),
            (self_negative, other_negative) => other_negative.cmp(&self_negative),
        }
    }

    fn add(&self, other: &Self) -> Self {
        let (large, small) = match self.cmp_magnitude(other) {
            Ordering::Less => (other, self),
            _ => (self, other),
        };
        let sign = if large.negative == small.negative {
            1
        } else {
            -1
        };
        let mut carry = 0;
        let digits = large.digits.iter().zip(&small.digits).map(|(a, b)| {
            let sum = *a as i8 + sign * *b as i8 + carry;
            carry = sum.div_euclid(10);
            sum.rem_euclid(10) as u8
        });
        let digits = digits.collect();
        Self {
            negative: large.negative,
            digits,
        }
        .without_negative_zero()
    }
}

#[test]
fn random_numbers_round_trip_through_text_and_bytes() {
    let mut random = Random::new(0x9E37_79B9_7F4A_7C15);
    for _ in 0..10_000 {
        let model = Model::random(&mut random);
        let text = model.text();
        let number = number(&text);
        assert_eq!(number.to_string(), text);
        // With this many decimal places, zero itself is out of range.
        if !number.is_zero() {
            assert_eq!(model.respelled(&mut random).parse(), Ok(number), "{text}");
        }
        let float: f64 = text.parse().unwrap();
        assert_eq!(number.to_f64(), float, "{text}");

        for (bytes, decode) in [
            (ordered(number), Number::decode_ordered as fn(&[u8]) -> _),
            (compact(number), Number::decode_compact),
        ] {
            assert_eq!(decode(&bytes), Some((number, bytes.len())), "{text}");
            let followed = [&bytes[..], &[random.next() as u8]].concat();
            assert_eq!(decode(&followed), Some((number, bytes.len())), "{text}");
            for length in 0..bytes.len() {
                assert_eq!(decode(&bytes[..length]), None, "{text} cut to {length}");
            }
        }
    }
}

#[test]
fn random_numbers_sort_like_the_model() {
    let mut random = Random::new(0xD1B5_4A32_D192_ED03);
    for _ in 0..10_000 {
        let a = Model::random(&mut random);
        let b = match random.below(2) {
            0 => Model::random(&mut random),
            _ => a.near(&mut random),
        };
        let (x, y) = (number(&a.text()), number(&b.text()));
        assert_eq!(x.cmp(&y), a.cmp(&b), "{x} and {y}");
        assert_eq!(x == y, a == b, "{x} and {y}");
        // Key parts that follow must not affect the order.
        let (mut left, mut right) = (ordered(x), ordered(y));
        assert_eq!(left.cmp(&right), a.cmp(&b), "bytes of {x} and {y}");
        left.push(random.next() as u8);
        right.push(random.next() as u8);
        if x != y {
            assert_eq!(
                left.cmp(&right),
                a.cmp(&b),
                "bytes of {x} and {y} in a longer key"
            );
        }
    }
}

#[test]
fn random_sums_match_the_model() {
    let mut random = Random::new(0x2545_F491_4F6C_DD1D);
    let mut outcomes = [0; 3];
    for _ in 0..10_000 {
        let a = Model::random(&mut random);
        let mut b = match random.below(2) {
            0 => Model::random(&mut random),
            _ => a.near(&mut random),
        };
        let (x, y) = (number(&a.text()), number(&b.text()));
        let mut check = |result: Result<Number, NumberError>, model: Model, operation: &str| {
            let expected = model.fits().map(|()| number(&model.text()));
            assert_eq!(result, expected, "{x} {operation} {y}");
            outcomes[match expected {
                Ok(_) => 0,
                Err(NumberError::Overflow) => 1,
                Err(_) => 2,
            }] += 1;
        };
        check(x.checked_add(y), a.add(&b), "+");
        b.negative = !b.negative;
        check(
            x.checked_sub(y),
            a.add(&b.clone().without_negative_zero()),
            "-",
        );
    }
    // The run is meaningful only if every outcome occurred often.
    assert!(outcomes.iter().all(|count| *count > 50), "{outcomes:?}");
}

#[test]
fn decoded_random_bytes_encode_to_the_same_bytes() {
    let mut random = Random::new(0x94D0_49BB_1331_11EB);
    for _ in 0..200_000 {
        let mut bytes = [0; 24];
        bytes.fill_with(|| random.next() as u8);
        bytes[0] = random.pick(&[0xC1, 0x3E, 0x80, 0x7F, 0x10, 0x22, 0x90, 0x50, bytes[0]]);
        // Bytes that look like pairs, so that long ordered encodings occur.
        if random.below(2) == 0 {
            let flip = if bytes[0] < 0x80 { 0xFF } else { 0x00 };
            let count = 1 + random.below(21) as usize;
            for byte in &mut bytes[1..=count] {
                *byte = (2 * random.below(100) as u8 + 1) ^ flip;
            }
            bytes[count] ^= 1;
        }
        check_decoded(&bytes);
    }
}
