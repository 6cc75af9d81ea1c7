//! Query and Scan: rejected requests, and plans of valid ones.

use floe_store::capacity::Consistency;
use floe_store::expr::{Condition, KeyCondition, KeyOp, Path, Paths};
use floe_store::op::{Query, ReturnedAttributes, Scan, Select};
use floe_store::table::{KeyKind, Projection};
use floe_store::{Item, TableDef, Value};

use crate::{as_constraint_error, expect, id, order_key, orders, simple, text};

fn customer() -> KeyCondition {
    KeyCondition::partition("customer", "c-1")
}

fn query() -> Query {
    Query::new("Orders", customer())
}

fn by_product() -> Query {
    Query::new("Orders", KeyCondition::partition("product", "p")).index("by_product")
}

fn by_state() -> Query {
    query().index("by_state")
}

fn paths(names: &[&str]) -> Paths {
    Paths(names.iter().map(|name| Path::attribute(*name)).collect())
}

fn lists(levels: usize) -> Value {
    (0..levels).fold(Value::from(1), |inner, _| Value::L(vec![inner]))
}

#[test]
fn limit_must_be_at_least_one() {
    let expected = as_constraint_error(
        "Value at 'Limit' failed to satisfy constraint: Member must have value greater than or \
         equal to 1",
    );
    expect(query().limit(1).validate(), "");
    expect(query().limit(0).validate(), &expected);
    expect(Scan::new("Orders").limit(1).validate(), "");
    expect(Scan::new("Orders").limit(0).validate(), &expected);
}

#[test]
fn select_must_match_the_projection() {
    let specific = "Must specify the AttributesToGet or ProjectionExpression when choosing to get \
                    SPECIFIC_ATTRIBUTES";
    let cannot =
        |what: &str| format!("Cannot specify the ProjectionExpression when choosing to get {what}");
    let index = "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName";
    use Select::{AllAttributes, AllProjectedAttributes, Count, SpecificAttributes};
    for (select, projects, on_index, expected) in [
        (SpecificAttributes, false, false, specific.to_owned()),
        (SpecificAttributes, true, false, String::new()),
        (AllAttributes, true, false, cannot("ALL_ATTRIBUTES")),
        (
            AllProjectedAttributes,
            true,
            true,
            cannot("ALL_PROJECTED_ATTRIBUTES"),
        ),
        (Count, true, false, cannot("only the Count")),
        (AllProjectedAttributes, false, false, index.to_owned()),
        (AllProjectedAttributes, false, true, String::new()),
        (Count, false, false, String::new()),
    ] {
        let expected = match expected.as_str() {
            "" => String::new(),
            message => as_constraint_error(message),
        };
        let mut query = query().select(select);
        let mut scan = Scan::new("Orders").select(select);
        if projects {
            (query, scan) = (
                query.projection(paths(&["v"])),
                scan.projection(paths(&["v"])),
            );
        }
        if on_index {
            (query, scan) = (query.index("by_product"), scan.index("by_product"));
        }
        expect(query.validate(), &expected);
        expect(scan.validate(), &expected);
    }
}

#[test]
fn expression_faults_name_their_parameter() {
    let filter = Condition::begins_with(Path::attribute("a"), 1);
    let expected = "Invalid FilterExpression: Incorrect operand type for operator or function; \
                    operator or function: begins_with, operand type: N";
    expect(query().filter(filter.clone()).validate(), expected);
    expect(Scan::new("Orders").filter(filter).validate(), expected);
    let expected = "Invalid ProjectionExpression: Two document paths overlap with each other; must \
                    remove or rewrite one of these paths; path one: [a], path two: [a]";
    expect(query().projection(paths(&["a", "a"])).validate(), expected);
    expect(
        Scan::new("Orders")
            .projection(paths(&["a", "a"]))
            .validate(),
        expected,
    );
}

#[test]
fn query_requires_a_key_condition() {
    let empty = KeyCondition { terms: Vec::new() };
    expect(
        Query::new("Orders", empty).validate(),
        "Either the KeyConditions or KeyConditionExpression parameter must be specified in the \
         request.",
    );
    let twice = customer().and("customer", KeyOp::Gt("c-0".into()));
    expect(
        Query::new("Orders", twice).validate(),
        "Invalid KeyConditionExpression: KeyConditionExpressions must only contain one condition per \
         key",
    );
    // Mismatches with the key are detected only with the table.
    let other = KeyCondition::partition("product", "p");
    expect(Query::new("Orders", other.clone()).validate(), "");
    expect(
        Query::new("Orders", other).check(&orders()),
        "Query condition missed key schema element: customer",
    );
}

#[test]
fn values_of_starting_keys_are_validated() {
    let nesting = "Nesting Levels have exceeded supported limits: Attributes in the item have nested \
                   levels beyond supported limit";
    let deep = Some(order_key().with("v", lists(32)));
    expect(query().start_key(deep.clone()).validate(), nesting);
    expect(Scan::new("Orders").start_key(deep).validate(), nesting);
    let nameless = Some(order_key().with("", 1));
    expect(
        query().start_key(nameless.clone()).validate(),
        "Empty attribute name",
    );
    expect(
        Scan::new("Orders").start_key(nameless).validate(),
        "Empty attribute name",
    );
}

#[test]
fn scan_segments_are_limited_to_a_million() {
    let fault = |path: &str, constraint: &str| {
        as_constraint_error(&format!(
            "Value at '{path}' failed to satisfy constraint: Member must have value {constraint}"
        ))
    };
    let order = || {
        "The Segment parameter is zero-based and must be less than parameter TotalSegments"
            .to_owned()
    };
    for (segment, total, expected) in [
        (0, 1, String::new()),
        (999_999, 1_000_000, String::new()),
        (0, 0, fault("TotalSegments", "greater than or equal to 1")),
        (
            0,
            1_000_001,
            fault("TotalSegments", "less than or equal to 1000000"),
        ),
        (1, 1, order()),
        (5, 4, order()),
        (
            1_000_000,
            1_000_000,
            fault("Segment", "less than or equal to 999999"),
        ),
    ] {
        expect(
            Scan::new("Orders").segment(segment, total).validate(),
            &expected,
        );
    }
    let scan = Scan::new("Orders").segment(1, 4);
    assert_eq!(
        scan.segment
            .unwrap()
            .start_key_in_other_segment()
            .to_string(),
        "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use \
         ExclusiveStartKey with correct Segment. TotalSegments: 4 Segment: 1"
    );
}

#[test]
fn missing_indexes_and_consistent_global_reads_are_rejected() {
    let table = orders();
    expect(
        query().index("nowhere").check(&table),
        "The table does not have the specified index: nowhere",
    );
    expect(
        Scan::new("Simple").index("nowhere").check(&simple()),
        "The table does not have the specified index: nowhere",
    );
    let eventual = "Consistent reads are not supported on global secondary indexes";
    expect(by_product().consistent().check(&table), eventual);
    expect(
        Scan::new("Orders")
            .index("by_product")
            .consistent()
            .check(&table),
        eventual,
    );
    expect(by_state().consistent().check(&table), "");
    expect(query().consistent().check(&table), "");
}

#[test]
fn starting_key_must_have_table_and_index_key() {
    let table = orders();
    let invalid = "The provided starting key is invalid";
    let on_product = || order_key().with("product", "p");
    for (start, on_index, expected) in [
        (order_key(), false, ""),
        (on_product(), true, ""),
        (Item::new(), false, invalid),
        (Item::new().with("customer", "c-1"), false, invalid),
        (on_product(), false, invalid),
        (order_key(), true, invalid),
        (on_product().with("more", 1), true, invalid),
        (
            Item::new().with("customer", "c-1").with("other", 1),
            false,
            invalid,
        ),
        (
            Item::new().with("customer", "c-1").with("placed", "1"),
            false,
            invalid,
        ),
        (
            Item::new().with("customer", "").with("placed", 1),
            false,
            "One or more parameter values are not valid. The AttributeValue for a key attribute \
             cannot contain an empty string value. Key: customer",
        ),
    ] {
        let base = if on_index { by_product() } else { query() };
        expect(base.start_key(Some(start.clone())).check(&table), expected);
        let mut scan = Scan::new("Orders").start_key(Some(start.clone()));
        if on_index {
            scan = scan.index("by_product");
        }
        // A scan of a table with indexes reports types as those of an index.
        let expected = if start.get("placed").is_some_and(|v| v.as_s().is_some()) {
            "One or more parameter values were invalid: Type mismatch for Index Key placed \
             Expected: N Actual: S IndexName: by_product"
        } else {
            expected
        };
        expect(scan.check(&table), expected);
    }
    let wrong_type = Some(Item::new().with("id", 1));
    expect(
        Scan::new("Simple").start_key(wrong_type).check(&simple()),
        invalid,
    );
}

#[test]
fn starting_key_must_be_in_the_range_of_the_query() {
    let table = orders();
    let one_row = "The query can return at most one row and cannot be restarted";
    let predicate = "The provided starting key does not match the range key predicate";
    let outside =
        "The provided starting key is outside query boundaries based on provided conditions";
    let at = |customer: &str, placed: i64| {
        Item::new()
            .with("customer", customer)
            .with("placed", placed)
    };
    let on = |op: KeyOp| customer().and("placed", op);
    for (condition, start, expected) in [
        (customer(), at("c-1", 5), ""),
        (customer(), at("c-2", 5), outside),
        (on(KeyOp::Eq(5.into())), at("c-1", 5), ""),
        (on(KeyOp::Eq(5.into())), at("c-1", 6), predicate),
        (on(KeyOp::Eq(5.into())), at("c-2", 5), one_row),
        (on(KeyOp::Lt(5.into())), at("c-1", 4), ""),
        (on(KeyOp::Lt(5.into())), at("c-1", 5), predicate),
        (on(KeyOp::Le(5.into())), at("c-1", 5), ""),
        (on(KeyOp::Le(5.into())), at("c-1", 6), predicate),
        (on(KeyOp::Gt(5.into())), at("c-1", 6), ""),
        (on(KeyOp::Gt(5.into())), at("c-1", 5), predicate),
        (on(KeyOp::Ge(5.into())), at("c-1", 5), ""),
        (on(KeyOp::Ge(5.into())), at("c-1", 4), predicate),
        (on(KeyOp::Between(5.into(), 7.into())), at("c-1", 5), ""),
        (on(KeyOp::Between(5.into(), 7.into())), at("c-1", 7), ""),
        (
            on(KeyOp::Between(5.into(), 7.into())),
            at("c-1", 8),
            predicate,
        ),
        (on(KeyOp::Gt(5.into())), at("c-2", 6), one_row),
    ] {
        let query = Query::new("Orders", condition.clone()).start_key(Some(start.clone()));
        expect(query.check(&table), expected);
    }
    let alone = Query::new("Simple", KeyCondition::partition("id", "a"));
    expect(
        alone.start_key(Some(id("b"))).check(&simple()),
        "The provided exclusive start key is invalid",
    );
    let state = || customer().and("state", KeyOp::BeginsWith("op".into()));
    let by_state = |state_value: &str| {
        Query::new("Orders", state())
            .index("by_state")
            .start_key(Some(order_key().with("state", state_value)))
    };
    expect(by_state("open").check(&table), "");
    expect(by_state("paid").check(&table), predicate);
}

#[test]
fn starting_key_of_a_multi_attribute_index_is_checked() {
    let table = orders();
    let condition = || {
        KeyCondition::partition("country", "CH")
            .and("city", KeyOp::Eq("Bern".into()))
            .and("street", KeyOp::Eq("Gasse".into()))
            .and("number", KeyOp::Gt(3.into()))
    };
    let start = |country: &str, city: &str, street: &str, number: i64| {
        let key = order_key().with("country", country).with("city", city);
        Some(key.with("street", street).with("number", number))
    };
    let one_row = "The query can return at most one row and cannot be restarted";
    let predicate = "The provided starting key does not match the range key predicate";
    for (start, expected) in [
        (start("CH", "Bern", "Gasse", 4), ""),
        (start("DE", "Bern", "Gasse", 4), one_row),
        (start("CH", "Biel", "Gasse", 4), one_row),
        (start("CH", "Bern", "Weg", 4), predicate),
        (start("CH", "Bern", "Gasse", 3), predicate),
    ] {
        let query = Query::new("Orders", condition())
            .index("by_city")
            .start_key(start);
        expect(query.check(&table), expected);
    }
}

#[test]
fn query_filter_on_key_attributes_is_rejected() {
    let table = orders();
    let filter = |name: &str| Condition::attribute_exists(Path::attribute(name));
    let fault = |name: &str| {
        format!(
            "Filter Expression can only contain non-primary key attributes: Primary key attribute: \
             {name}"
        )
    };
    expect(query().filter(filter("v")).check(&table), "");
    expect(
        query().filter(filter("placed")).check(&table),
        &fault("placed"),
    );
    expect(
        by_product().filter(filter("product")).check(&table),
        &fault("product"),
    );
    expect(by_product().filter(filter("customer")).check(&table), "");
    // A scan may filter by any attribute, but not inside a key.
    expect(
        Scan::new("Orders").filter(filter("customer")).check(&table),
        "",
    );
    let inside = Condition::attribute_exists(Path::attribute("customer").field("x"));
    expect(
        Scan::new("Orders").filter(inside).check(&table),
        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not \
         allowed: Key: customer",
    );
}

#[test]
fn attributes_outside_a_global_index_are_rejected() {
    let table = orders();
    let all = |index: &str| {
        format!(
            "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported \
             for global secondary index {index} because its projection type is not ALL"
        )
    };
    let scan = |index: &str| Scan::new("Orders").index(index);
    let everything = |index: &str| scan(index).select(Select::AllAttributes);
    expect(everything("by_product").check(&table), "");
    expect(everything("by_hash").check(&table), &all("by_hash"));
    expect(everything("by_state").check(&table), "");
    expect(by_product().select(Select::AllAttributes).check(&table), "");
    let hash = Query::new("Orders", KeyCondition::partition("hash", vec![1u8])).index("by_hash");
    expect(
        hash.select(Select::AllAttributes).check(&table),
        &all("by_hash"),
    );

    let invalid = |message: &str| format!("One or more parameter values were invalid: {message}");
    expect(
        scan("by_city")
            .projection(paths(&["name", "customer", "city"]))
            .check(&table),
        "",
    );
    expect(
        scan("by_city")
            .projection(paths(&["name", "v", "w"]))
            .check(&table),
        &invalid("Global secondary index by_city does not project [v, w]"),
    );
    let filter = Condition::eq(Path::attribute("v"), 1);
    expect(scan("by_product").filter(filter.clone()).check(&table), "");
    // A scan treats attributes outside the index as missing; a query rejects them.
    expect(scan("by_city").filter(filter.clone()).check(&table), "");
    let key = KeyCondition::partition("country", "x").and("city", KeyOp::Eq("y".into()));
    let city = Query::new("Orders", key).index("by_city");
    let other = Condition::eq(Path::attribute("w"), Path::attribute("name"));
    expect(
        city.filter(other.and(filter.clone())).check(&table),
        &invalid("Secondary index by_city does not project one or more filter attributes: [v, w]"),
    );
    expect(
        by_state().filter(filter.clone()).check(&table),
        &invalid("Secondary index by_state does not project one or more filter attributes: [v]"),
    );
    // A local index fetches requested attributes that it lacks.
    expect(
        scan("by_state")
            .filter(filter)
            .projection(paths(&["v"]))
            .check(&table),
        "",
    );
}

#[test]
fn plan_determines_returned_attributes_and_fetching() {
    let table = orders();
    let plain = query();
    let counted = query().select(Select::Count);
    let projected = paths(&["v"]);
    let some = query().projection(projected.clone());
    let index = by_product();
    let everything = by_product().select(Select::AllAttributes);
    let local = by_state();
    let local_all = by_state().select(Select::AllAttributes);
    let local_some = by_state().projection(projected.clone());
    let keys = paths(&["placed", "state"]);
    let local_keys = by_state().projection(keys.clone());
    for (query, returned, fetches) in [
        (&plain, ReturnedAttributes::All, false),
        (&counted, ReturnedAttributes::Count, false),
        (&some, ReturnedAttributes::Paths(&projected), false),
        (&index, ReturnedAttributes::Projected, false),
        (&everything, ReturnedAttributes::All, false),
        (&local, ReturnedAttributes::Projected, false),
        (&local_all, ReturnedAttributes::All, true),
        (&local_some, ReturnedAttributes::Paths(&projected), true),
        (&local_keys, ReturnedAttributes::Paths(&keys), false),
    ] {
        let plan = query.plan(&table).unwrap();
        assert_eq!(
            (plan.returned, plan.fetches),
            (returned, fetches),
            "{query:?}"
        );
    }
}

#[test]
fn plan_contains_the_rest_of_the_request() {
    let table = orders();
    let start = order_key();
    let request = Query::new("Orders", customer().and("placed", KeyOp::Le(9.into())))
        .start_key(Some(start.clone()))
        .limit(7)
        .backward()
        .consistent();
    let plan = request.plan(&table).unwrap();
    assert_eq!(plan.start_key, Some(&start));
    assert_eq!((plan.limit, plan.forward), (Some(7), false));
    assert_eq!(plan.consistency, Consistency::Strong);
    assert_eq!(plan.key(), &table.key);
    let range = plan.range.unwrap();
    assert_eq!(range.partition, [Value::from("c-1")]);
    assert_eq!(range.range, Some(KeyOp::Le(9.into())));
    let scan = Scan::new("Orders").index("by_product");
    let plan = scan.plan(&table).unwrap();
    assert_eq!((plan.range.as_ref(), plan.forward), (None, true));
    let parallel = Scan::new("Orders").segment(2, 5);
    let plan_of_part = parallel.plan(&table).unwrap();
    assert_eq!(plan_of_part.segment, parallel.segment);
    assert_eq!(plan.consistency, Consistency::Eventual);
    assert_eq!(plan.key(), &table.index("by_product").unwrap().key);
}

#[test]
fn plan_projects_items_and_returns_the_last_key() {
    let table = orders();
    let item = order_key()
        .with("state", "open")
        .with("product", "p")
        .with("v", 1);
    let plain = query();
    let plan = plain.plan(&table).unwrap();
    assert_eq!(plan.response_item(item.clone()), Some(item.clone()));
    assert_eq!(plan.last_key(&item), order_key());
    let counted = query().select(Select::Count);
    assert_eq!(
        counted.plan(&table).unwrap().response_item(item.clone()),
        None
    );
    let some = query().projection(paths(&["v"]));
    let part = some.plan(&table).unwrap().response_item(item.clone());
    assert_eq!(part, Some(Item::new().with("v", 1)));
    let local = by_state();
    let plan = local.plan(&table).unwrap();
    let entry = order_key().with("state", "open");
    assert_eq!(plan.response_item(item.clone()), Some(entry.clone()));
    assert_eq!(plan.last_key(&item), entry);
    let global = by_product();
    let plan = global.plan(&table).unwrap();
    assert_eq!(plan.last_key(&item), order_key().with("product", "p"));
}

#[test]
fn table_names_are_validated() {
    let short = as_constraint_error(
        "Value 'ab' at 'tableName' failed to satisfy constraint: Member must have length greater \
         than or equal to 3",
    );
    expect(Query::new("ab", customer()).validate(), &short);
    expect(Scan::new("ab").validate(), &short);
    expect(Scan::new(text(255)).validate(), "");
}

#[test]
fn starting_key_of_an_index_without_sort_keys_is_checked() {
    let table = TableDef::builder("Users", "id", KeyKind::S)
        .global_index(
            "by_mail",
            [("mail", KeyKind::S)],
            crate::NO_SORT,
            Projection::All,
        )
        .build()
        .unwrap();
    let query = |start: Item| {
        Query::new("Users", KeyCondition::partition("mail", "a@b"))
            .index("by_mail")
            .start_key(Some(start))
    };
    expect(query(id("u").with("mail", "a@b")).check(&table), "");
    expect(
        query(id("u").with("mail", "c@d")).check(&table),
        "The provided starting key is outside query boundaries based on provided conditions",
    );
}
