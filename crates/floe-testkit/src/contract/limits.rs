//! The limits of items and keys: at the limit and beyond.

use floe_store::expr::{Condition, KeyCondition, KeyOp, Path, Paths, Update};
use floe_store::limits::{
    EXPRESSION_OPERATORS_MAX, IN_OPERANDS_MAX, ITEM_BYTES_MAX, NESTING_LEVELS_MAX,
    PARTITION_KEY_BYTES_MAX, PATH_STEPS_MAX, SORT_KEY_BYTES_MAX,
};
use floe_store::op::{DeleteItem, GetItem, PutItem, Query, UpdateItem};
use floe_store::size::item_size;
use floe_store::table::{KeyKind, Projection};
use floe_store::{Item, TableDef, Value};

use super::fixture::*;

const PARTITION_TOO_LONG: &str = "Size of hashkey has exceeded the maximum size limit of2048 bytes";
const SORT_TOO_LONG: &str =
    "Aggregated size of all range keys has exceeded the size limit of 1024 bytes";

fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

pub(super) fn items_have_at_most_400_kilobytes(t: &mut Fixture) {
    t.create(plain());
    let bare = item_size(&item("a").with("v", ""));
    let largest = item("a").with("v", text(ITEM_BYTES_MAX - bare));
    assert_eq!(item_size(&largest), ITEM_BYTES_MAX);
    t.put("Plain", largest.clone()).unwrap();
    t.assert_item("Plain", largest);
    let larger = item("a").with("v", text(ITEM_BYTES_MAX - bare + 1));
    rejected(t.put("Plain", larger), ITEM_TOO_LARGE);
}

pub(super) fn update_cannot_exceed_the_item_size(t: &mut Fixture) {
    t.create(plain());
    let half = text(ITEM_BYTES_MAX / 2);
    t.fill("Plain", [item("a").with("v", half.clone())]);
    let grow = update_item("Plain", item("a"), "SET w = :w", &values! {"w" => half});
    let detail = "Item size to update has exceeded the maximum allowed size";
    rejected(t.write(grow), detail);
    assert_eq!(t.get("Plain", item("a")).unwrap().len(), 2);
    let fill = text(ITEM_BYTES_MAX / 2 - 100);
    let fits = update_item("Plain", item("a"), "SET w = :w", &values! {"w" => fill});
    t.write(fits).unwrap();
}

pub(super) fn partition_keys_have_at_most_2048_bytes(t: &mut Fixture) {
    t.create(sorted());
    let longest = row(&text(PARTITION_KEY_BYTES_MAX), 1);
    t.put("Sorted", longest.clone()).unwrap();
    assert_eq!(t.get("Sorted", longest.clone()), Some(longest));
    let longer = row(&text(PARTITION_KEY_BYTES_MAX + 1), 1);
    rejections! {
        t.put("Sorted", longer.clone()) => PARTITION_TOO_LONG;
        t.get_item(GetItem::new("Sorted", longer.clone())) => PARTITION_TOO_LONG;
        t.write(DeleteItem::new("Sorted", longer)) => PARTITION_TOO_LONG;
        // Bytes count, not characters.
        t.put("Sorted", row(&"é".repeat(1025), 1)) => PARTITION_TOO_LONG;
    }
}

pub(super) fn sort_keys_have_at_most_1024_bytes(t: &mut Fixture) {
    t.create(sorted_by(KeyKind::B));
    let longest = row("a", vec![7u8; SORT_KEY_BYTES_MAX]);
    t.put("Sorted", longest.clone()).unwrap();
    assert_eq!(t.get("Sorted", longest.clone()), Some(longest));
    let longer = row("a", vec![7u8; SORT_KEY_BYTES_MAX + 1]);
    rejected(t.put("Sorted", longer.clone()), SORT_TOO_LONG);
    rejected(t.get_item(GetItem::new("Sorted", longer)), SORT_TOO_LONG);
}

pub(super) fn index_keys_have_the_same_limits(t: &mut Fixture) {
    t.create(ranged(plain(), KeyKind::S, Projection::All));
    let with = |g: usize, h: usize| item("a").with("g", text(g)).with("h", text(h));
    t.fill("Plain", [with(PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX)]);
    rejections! {
        t.put("Plain", with(PARTITION_KEY_BYTES_MAX + 1, 1)) => PARTITION_TOO_LONG;
        t.put("Plain", with(1, SORT_KEY_BYTES_MAX + 1)) => SORT_TOO_LONG;
    }
}

pub(super) fn query_keys_have_the_same_limits(t: &mut Fixture) {
    t.create(ranged(sorted_by(KeyKind::S), KeyKind::S, Projection::All));
    let of_table = |p: usize, s: KeyOp| partition_where(&text(p), s);
    let of_index = |g: usize, h: usize| {
        let condition = KeyCondition::partition("g", text(g)).and("h", KeyOp::Lt(text(h).into()));
        Query::new("Sorted", condition).index("by_g")
    };
    let (p, s) = (PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX);
    let begins_with = |bytes: usize| KeyOp::BeginsWith(text(bytes).into());
    for query in [of_table(p, begins_with(s)), of_index(p, s)] {
        assert_eq!(t.query(query).unwrap().count, 0);
    }
    for query in [of_table(p + 1, begins_with(1)), of_index(p + 1, 1)] {
        rejected(t.query(query), PARTITION_TOO_LONG);
    }
    for query in [of_table(1, begins_with(s + 1)), of_index(1, s + 1)] {
        rejected(t.query(query), SORT_TOO_LONG);
    }
}

pub(super) fn keys_must_not_be_empty(t: &mut Fixture) {
    t.create(sorted_by(KeyKind::S));
    t.create(TableDef::builder("Binary", "pk", KeyKind::B));
    let empty = |name: &str| {
        format!(
            "The AttributeValue for a key attribute cannot contain an empty string value. Key: {name}"
        )
    };
    rejections! {
        t.put("Sorted", row("", "x")) => &empty("pk");
        t.put("Sorted", row("a", "")) => &empty("sk");
        t.get_item(GetItem::new("Sorted", row("", "x"))) => &empty("pk");
        t.write(DeleteItem::new("Sorted", row("a", ""))) => &empty("sk");
        t.put("Binary", Item::new().with("pk", Vec::<u8>::new()))
            => "The AttributeValue for a key attribute cannot contain an empty binary value. Key: pk";
    }
}

/// A value nested in lists to this number of levels.
fn nested(levels: usize) -> Value {
    (1..levels).fold(Value::from(1), |value, _| Value::L(vec![value]))
}

pub(super) fn values_nest_at_most_32_levels(t: &mut Fixture) {
    t.create(plain());
    let detail = "Nesting Levels have exceeded supported limits";
    let deepest = item("a").with("v", nested(NESTING_LEVELS_MAX));
    t.put("Plain", deepest.clone()).unwrap();
    t.assert_item("Plain", deepest);
    let deeper = item("a").with("v", nested(NESTING_LEVELS_MAX + 1));
    rejected(t.put("Plain", deeper), detail);
    let maps = (0..NESTING_LEVELS_MAX).fold(Value::from(1), |value, _| map([("m", value)]));
    rejected(t.put("Plain", item("a").with("v", maps)), detail);
}

pub(super) fn update_cannot_exceed_the_nesting_limit(t: &mut Fixture) {
    let deepest = list([nested(NESTING_LEVELS_MAX - 1)]);
    t.create_with(plain(), [item("a").with("v", deepest)]);
    let set = |levels: usize| {
        let path = Path::attribute("v").index(0);
        UpdateItem::new("Plain", item("a"), Update::new().set(path, nested(levels)))
    };
    t.write(set(NESTING_LEVELS_MAX - 1)).unwrap();
    let deeper = t.write(set(NESTING_LEVELS_MAX));
    rejected(deeper, "Nesting Levels have exceeded supported limits");
}

pub(super) fn numbers_have_at_most_38_digits(t: &mut Fixture) {
    t.create(plain());
    let longest = [
        "12345678901234567890123456789012345678",
        "-0.12345678901234567890123456789012345678",
        "9.9999999999999999999999999999999999999E+125",
        "-9.9999999999999999999999999999999999999E+125",
        "1E-130",
        "-1E-130",
    ];
    for text in longest {
        let item = item("a").with("n", number(text));
        t.put("Plain", item.clone()).unwrap();
        t.assert_item("Plain", item);
    }
    let rejections = [
        (
            "123456789012345678901234567890123456789",
            "38 significant digits",
        ),
        ("1E+126", "Number overflow"),
        ("1E-131", "Number underflow"),
    ];
    for (text, detail) in rejections {
        let error = text.parse::<floe_store::Number>().unwrap_err();
        assert!(error.to_string().contains(detail), "{text}: {error}");
    }
}

pub(super) fn in_accepts_at_most_100_values(t: &mut Fixture) {
    t.create(plain());
    let put = |count: usize| {
        let choices = (0..count).map(|n| u64::try_from(n).unwrap_or_default());
        PutItem::new("Plain", item("a")).condition(Condition::is_in(Path::from("n"), choices))
    };
    condition_failed(t.write(put(IN_OPERANDS_MAX)));
    let detail = "The IN operator is provided with too many operands; number of operands: 101";
    rejected(t.write(put(IN_OPERANDS_MAX + 1)), detail);
}

pub(super) fn expressions_have_at_most_300_operators(t: &mut Fixture) {
    t.create(plain());
    // Each comparison counts as an operator, and each OR.
    let chain = |comparisons: usize| {
        let one = || Condition::eq(Path::from("n"), 1);
        (1..comparisons).fold(one(), |tree, _| tree.or(one()))
    };
    let comparisons = EXPRESSION_OPERATORS_MAX / 2;
    condition_failed(t.write(PutItem::new("Plain", item("a")).condition(chain(comparisons))));
    rejected(
        t.write(PutItem::new("Plain", item("a")).condition(chain(comparisons + 1))),
        "The expression contains too many operators; operator count: 301",
    );
}

pub(super) fn paths_have_at_most_32_steps(t: &mut Fixture) {
    t.create_with(plain(), [item("a")]);
    let get = |steps: usize| {
        let path = (1..steps).fold(Path::attribute("v"), |path, _| path.field("m"));
        GetItem::new("Plain", item("a")).projection(Paths(vec![path]))
    };
    let output = t.get_item(get(PATH_STEPS_MAX)).unwrap();
    assert_eq!(output.item, Some(Item::new()));
    let detail = "The document path has too many nesting levels; nesting levels: 33";
    rejected(t.get_item(get(PATH_STEPS_MAX + 1)), detail);
}
