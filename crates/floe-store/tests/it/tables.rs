//! ListTables, UpdateTimeToLive and tags.

use floe_store::op::{ListTables, UpdateTags, UpdateTimeToLive};
use floe_store::table::FIVE_YEARS_SECS;
use floe_store::{Item, Timestamp, Value};

use crate::{as_constraint_error, expect, simple, text};

#[test]
fn expiry_is_enabled_and_disabled() {
    let on = |table: &str, name: &str| UpdateTimeToLive::enable(table, name);
    let off = |table: &str, name: &str| UpdateTimeToLive::disable(table, name);
    let expiring = on("Simple", "until").apply(&simple()).unwrap();
    assert_eq!(expiring.ttl_attribute, Some("until".into()));
    let other = "TimeToLive is active on a different AttributeName: current AttributeName is until";
    expect(
        on("Simple", "until").check(&expiring),
        "TimeToLive is already enabled",
    );
    expect(on("Simple", "other").check(&expiring), other);
    expect(off("Simple", "other").check(&expiring), other);
    expect(
        off("Simple", "until").check(&simple()),
        "TimeToLive is already disabled",
    );
    assert_eq!(off("Simple", "until").apply(&expiring), Ok(simple()));
    let fault = |name: &str, constraint: &str| {
        as_constraint_error(&format!(
            "Value '{name}' at 'timeToLiveSpecification.attributeName' failed to satisfy \
             constraint: Member must have length {constraint}"
        ))
    };
    expect(on("Simple", &text(255)).validate(), "");
    expect(
        on("Simple", "").validate(),
        &fault("", "greater than or equal to 1"),
    );
    expect(
        on("Simple", &text(256)).validate(),
        &fault(&text(256), "less than or equal to 255"),
    );
}

#[test]
fn expiry_times_older_than_five_years_are_ignored() {
    let table = UpdateTimeToLive::enable("Simple", "until")
        .apply(&simple())
        .unwrap();
    let now = 2_000_000_000;
    let expired = |until: Value| {
        table.expired(
            &Item::new().with("until", until),
            Timestamp::from_millis(now * 1000),
        )
    };
    assert!(expired(now.into()));
    assert!(!expired((now + 1).into()));
    assert!(expired((now - FIVE_YEARS_SECS).into()));
    assert!(!expired((now - FIVE_YEARS_SECS - 1).into()));
    assert!(!expired(now.to_string().into()));
    assert!(!table.expired(&Item::new(), Timestamp::from_millis(now * 1000)));
    assert!(!simple().expired(&Item::new().with("until", 1), Timestamp::from_millis(now)));
}

#[test]
fn tags_are_added_and_removed() {
    let request = |add: &[(&str, &str)], remove: &[&str]| UpdateTags {
        table_name: "Simple".to_owned(),
        add: add
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
        remove: remove.iter().map(|key| (*key).to_owned()).collect(),
    };
    let tagged = request(&[("a", "1"), ("b", "2")], &[])
        .apply(&simple())
        .unwrap();
    let changed = request(&[("b", "3")], &["a", "none"])
        .apply(&tagged)
        .unwrap();
    assert_eq!(changed.tags, [("b".to_owned(), "3".to_owned())].into());
    expect(
        request(&[], &[]).validate(),
        "Atleast one Tag needs to be provided as Input.",
    );
    let key = |key: &str| format!("The Tag Key provided is invalid, Key: {key}");
    let value = |value: &str| format!("The Tag Value provided is invalid, Value: {value}");
    for (tag, expected) in [
        ((text(1), text(0)), String::new()),
        ((text(128), text(256)), String::new()),
        (
            ("größe ж_.:/=+-@1".to_owned(), "ж ".to_owned()),
            String::new(),
        ),
        ((text(0), text(0)), key("")),
        ((text(129), text(0)), key(&text(129))),
        (("a!".to_owned(), text(0)), key("a!")),
        ((text(1), text(257)), value(&text(257))),
        ((text(1), "a\"".to_owned()), value("a\"")),
        (
            ("aws:x".to_owned(), text(0)),
            "Tag Key cannot be prefixed with aws:, Key: aws:x".to_owned(),
        ),
    ] {
        expect(request(&[(&tag.0, &tag.1)], &[]).validate(), &expected);
    }
    expect(request(&[], &["!"]).validate(), &key("!"));
    let many: Vec<String> = (0..51).map(|n| n.to_string()).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|key| (key.as_str(), "")).collect();
    let limit = "Number of Tags exceed the current limit for the provided ResourceArn";
    expect(request(&many, &[]).validate(), limit);
    let full = request(&many[..50], &[]).apply(&simple()).unwrap();
    expect(request(&[("more", "")], &[]).apply(&full), limit);
    expect(request(&[("more", "")], &["0"]).apply(&full), "");
}

#[test]
fn tables_are_listed_in_pages() {
    let list = |start: Option<&str>, limit: Option<usize>| ListTables {
        start_after: start.map(str::to_owned),
        limit,
    };
    let names = ["Ann", "Bob", "Cid"];
    let page = |start, limit| {
        let page = list(start, limit).page(names);
        (
            page.table_names.join(" "),
            page.last_name.unwrap_or_default(),
        )
    };
    let owned = |(names, last): (&str, &str)| (names.to_owned(), last.to_owned());
    assert_eq!(page(None, None), owned(("Ann Bob Cid", "")));
    assert_eq!(page(None, Some(2)), owned(("Ann Bob", "Bob")));
    // A page that ends with the last table is the last page.
    assert_eq!(page(None, Some(3)), owned(("Ann Bob Cid", "")));
    assert_eq!(page(Some("Bob"), Some(2)), owned(("Cid", "")));
    assert_eq!(page(Some("Bo"), Some(1)), owned(("Bob", "Bob")));
    assert_eq!(page(Some("Zoe"), None), owned(("", "")));
    let many: Vec<String> = (0..101).map(|n| format!("table{n:03}")).collect();
    assert_eq!(list(None, None).page(&many).table_names.len(), 100);

    let fault = |limit: usize, constraint: &str| {
        as_constraint_error(&format!(
            "Value '{limit}' at 'limit' failed to satisfy constraint: Member must have value \
             {constraint}"
        ))
    };
    expect(list(None, Some(1)).validate(), "");
    expect(list(None, Some(100)).validate(), "");
    expect(
        list(None, Some(0)).validate(),
        &fault(0, "greater than or equal to 1"),
    );
    expect(
        list(None, Some(101)).validate(),
        &fault(101, "less than or equal to 100"),
    );
    expect(
        list(Some("a"), None).validate(),
        &as_constraint_error(
            "Value 'a' at 'exclusiveStartTableName' failed to satisfy constraint: Member must have \
             length greater than or equal to 3",
        ),
    );
}
