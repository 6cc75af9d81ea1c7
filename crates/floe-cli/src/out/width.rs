//! The display width of text: how many columns of a terminal it takes.
//!
//! Characters of East Asian scripts and emoji take two columns, combining marks none. The ranges are those of Unicode 16
//! (EastAsianWidth W and F; the marks of common scripts). A sequence of emoji joined to one picture counts as one emoji,
//! as current terminals show it.

/// Ranges of characters that take two columns.
const WIDE: &[(u32, u32)] = &[
    (0x1100, 0x115f),
    (0x231a, 0x231b),
    (0x2329, 0x232a),
    (0x23e9, 0x23ec),
    (0x23f0, 0x23f0),
    (0x23f3, 0x23f3),
    (0x25fd, 0x25fe),
    (0x2614, 0x2615),
    (0x2630, 0x2637),
    (0x2648, 0x2653),
    (0x267f, 0x267f),
    (0x268a, 0x268f),
    (0x2693, 0x2693),
    (0x26a1, 0x26a1),
    (0x26aa, 0x26ab),
    (0x26bd, 0x26be),
    (0x26c4, 0x26c5),
    (0x26ce, 0x26ce),
    (0x26d4, 0x26d4),
    (0x26ea, 0x26ea),
    (0x26f2, 0x26f3),
    (0x26f5, 0x26f5),
    (0x26fa, 0x26fa),
    (0x26fd, 0x26fd),
    (0x2705, 0x2705),
    (0x270a, 0x270b),
    (0x2728, 0x2728),
    (0x274c, 0x274c),
    (0x274e, 0x274e),
    (0x2753, 0x2755),
    (0x2757, 0x2757),
    (0x2795, 0x2797),
    (0x27b0, 0x27b0),
    (0x27bf, 0x27bf),
    (0x2b1b, 0x2b1c),
    (0x2b50, 0x2b50),
    (0x2b55, 0x2b55),
    (0x2e80, 0x303e),
    (0x3041, 0x3247),
    (0x3250, 0xa4cf),
    (0xa960, 0xa97c),
    (0xac00, 0xd7a3),
    (0xf900, 0xfaff),
    (0xfe10, 0xfe19),
    (0xfe30, 0xfe6b),
    (0xff01, 0xff60),
    (0xffe0, 0xffe6),
    (0x16fe0, 0x18d08),
    (0x1aff0, 0x1b2fb),
    (0x1d300, 0x1d376),
    (0x1f004, 0x1f004),
    (0x1f0cf, 0x1f0cf),
    (0x1f18e, 0x1f18e),
    (0x1f191, 0x1f19a),
    (0x1f200, 0x1f320),
    (0x1f32d, 0x1f335),
    (0x1f337, 0x1f37c),
    (0x1f37e, 0x1f393),
    (0x1f3a0, 0x1f3ca),
    (0x1f3cf, 0x1f3d3),
    (0x1f3e0, 0x1f3f0),
    (0x1f3f4, 0x1f3f4),
    (0x1f3f8, 0x1f43e),
    (0x1f440, 0x1f440),
    (0x1f442, 0x1f4fc),
    (0x1f4ff, 0x1f53d),
    (0x1f54b, 0x1f54e),
    (0x1f550, 0x1f567),
    (0x1f57a, 0x1f57a),
    (0x1f595, 0x1f596),
    (0x1f5a4, 0x1f5a4),
    (0x1f5fb, 0x1f64f),
    (0x1f680, 0x1f6c5),
    (0x1f6cc, 0x1f6cc),
    (0x1f6d0, 0x1f6d2),
    (0x1f6d5, 0x1f6df),
    (0x1f6eb, 0x1f6ec),
    (0x1f6f4, 0x1f6fc),
    (0x1f7e0, 0x1f7f0),
    (0x1f90c, 0x1f93a),
    (0x1f93c, 0x1f945),
    (0x1f947, 0x1f9ff),
    (0x1fa70, 0x1faf8),
    (0x20000, 0x3fffd),
];

/// Ranges of characters that take no column of their own: combining marks, joiners, variation selectors. They take
/// precedence over [`WIDE`].
const ZERO: &[(u32, u32)] = &[
    (0x0300, 0x036f),
    (0x0483, 0x0489),
    (0x0591, 0x05bd),
    (0x05bf, 0x05bf),
    (0x05c1, 0x05c2),
    (0x05c4, 0x05c5),
    (0x05c7, 0x05c7),
    (0x0610, 0x061a),
    (0x061c, 0x061c),
    (0x064b, 0x065f),
    (0x0670, 0x0670),
    (0x06d6, 0x06dc),
    (0x06df, 0x06e4),
    (0x06e7, 0x06e8),
    (0x06ea, 0x06ed),
    (0x0900, 0x0902),
    (0x093a, 0x093a),
    (0x093c, 0x093c),
    (0x0941, 0x0948),
    (0x094d, 0x094d),
    (0x0951, 0x0957),
    (0x0e31, 0x0e31),
    (0x0e34, 0x0e3a),
    (0x0e47, 0x0e4e),
    (0x1160, 0x11ff),
    (0x1ab0, 0x1aff),
    (0x1dc0, 0x1dff),
    (0x200b, 0x200f),
    (0x202a, 0x202e),
    (0x2060, 0x206f),
    (0x20d0, 0x20f0),
    (0x302a, 0x302d),
    (0x3099, 0x309a),
    (0xfe00, 0xfe0f),
    (0xfe20, 0xfe2f),
    (0xfeff, 0xfeff),
    (0xe0000, 0xe0fff),
];

/// Joins the emoji around it to one picture.
const JOINER: char = '\u{200d}';

/// Shows the character before it as an emoji, which takes two columns.
const EMOJI_SELECTOR: char = '\u{fe0f}';

/// The skin tones of the emoji before them.
const SKIN_TONES: std::ops::RangeInclusive<char> = '\u{1f3fb}'..='\u{1f3ff}';

/// The number of columns that text takes.
pub(super) fn width(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    columns(text).map(|(_, columns)| columns).sum()
}

/// The characters of a text, each with the number of columns that it adds.
pub(super) fn columns(text: &str) -> impl Iterator<Item = (char, usize)> {
    let (mut before, mut shown) = (None, 0);
    text.chars().map(move |c| {
        let added = match (before, c) {
            (Some(JOINER), _) => 0,
            (Some(_), c) if shown == 2 && SKIN_TONES.contains(&c) => 0,
            (_, EMOJI_SELECTOR) => usize::from(shown == 1),
            (_, c) => char_width(c),
        };
        before = Some(c);
        // A mark leaves the character that it belongs to.
        if added > 0 {
            shown = if c == EMOJI_SELECTOR { 2 } else { added };
        }
        (c, added)
    })
}

fn char_width(c: char) -> usize {
    if c.is_ascii() || !(contains(ZERO, c) || contains(WIDE, c)) {
        1
    } else if contains(ZERO, c) {
        0
    } else {
        2
    }
}

/// Whether one of the sorted ranges contains a character.
fn contains(ranges: &[(u32, u32)], c: char) -> bool {
    let c = u32::from(c);
    let after = ranges.partition_point(|(first, _)| *first <= c);
    after
        .checked_sub(1)
        .and_then(|at| ranges.get(at))
        .is_some_and(|(_, last)| c <= *last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_counts_columns_of_a_terminal() {
        for (text, columns) in [
            ("", 0),
            ("sled", 4),
            ("Müller…", 7),
            ("e\u{301}", 1),
            ("東京", 4),
            ("서울", 4),
            ("ｆｕｌｌ", 8),
            ("が", 2),
            ("か\u{3099}", 2),
            ("🛷", 2),
            ("👍🏽", 2),
            ("👩‍🚀", 2),
            ("👨‍👩‍👧", 2),
            ("❤", 1),
            ("❤️", 2),
            ("🇳🇴", 2),
            ("a\u{200b}b", 2),
        ] {
            assert_eq!(width(text), columns, "{text:?}");
        }
    }

    #[test]
    fn ranges_are_sorted() {
        for ranges in [WIDE, ZERO] {
            assert!(ranges.iter().all(|(first, last)| first <= last));
            assert!(ranges.is_sorted_by(|one, other| one.1 < other.0));
        }
    }
}
