//! TransactWriteItems and TransactGetItems.

use floe_store::error::{CancellationCode, CancellationReason};
use floe_store::expr::{Condition, Path, Update};
use floe_store::op::{
    ConditionCheck, DeleteItem, PutItem, TransactGet, TransactGetItems, TransactWrite,
    TransactWriteItems, UpdateItem,
};
use floe_store::size::item_size;
use floe_store::{Error, Item, TableDef, Value};

use crate::{as_constraint_error, expect, expect_code, id, order_key, orders, simple, text};

fn find<'t>(tables: &'t [TableDef]) -> impl Fn(&str) -> Option<&'t TableDef> {
    move |name| tables.iter().find(|table| table.name == name)
}

fn exists() -> Condition {
    Condition::attribute_exists(Path::attribute("id"))
}

fn put(item: Item) -> TransactWrite {
    PutItem::new("Simple", item).into()
}

fn puts(count: usize) -> TransactWriteItems {
    TransactWriteItems::new((0..count).map(|n| put(id(&n.to_string()))))
}

#[test]
fn transaction_accepts_1_to_100_actions() {
    let few = as_constraint_error(
        "Value '[]' at 'transactItems' failed to satisfy constraint: Member must have length \
         greater than or equal to 1",
    );
    let many = as_constraint_error(
        "Value at 'transactItems' failed to satisfy constraint: Member must have length less than \
         or equal to 100",
    );
    let gets = |count: usize| {
        TransactGetItems::new((0..count).map(|n| TransactGet::new("Simple", id(&n.to_string()))))
    };
    for (count, expected) in [(0, few.as_str()), (1, ""), (100, ""), (101, &many)] {
        expect(puts(count).validate(), expected);
        expect(gets(count).validate(), expected);
    }
}

#[test]
fn table_name_faults_are_reported_together_with_their_paths() {
    let check = ConditionCheck::new("b!!", id("a"), exists());
    let request = TransactWriteItems::new([
        put(id("a")),
        UpdateItem::new("x", id("b"), Update::new().remove("v")).into(),
        check.into(),
    ]);
    expect(
        request.validate(),
        "2 validation errors detected: Value 'x' at 'transactItems.2.member.update.tableName' \
         failed to satisfy constraint: Member must have length greater than or equal to 3; Value \
         'b!!' at 'transactItems.3.member.conditionCheck.tableName' failed to satisfy constraint: \
         Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
    );
    // The token is checked first.
    expect(
        request.token(text(37)).validate(),
        &as_constraint_error(&format!(
            "Value '{}' at 'clientRequestToken' failed to satisfy constraint: Member must have \
             length less than or equal to 36",
            text(37)
        )),
    );
    expect(
        TransactGetItems::new([TransactGet::new("x", id("a"))]).validate(),
        &as_constraint_error(
            "Value 'x' at 'transactItems.1.member.get.tableName' failed to satisfy constraint: \
             Member must have length greater than or equal to 3",
        ),
    );
}

#[test]
fn empty_update_in_a_transaction_is_rejected() {
    let idle = UpdateItem::new("Simple", id("a"), Update::new());
    idle.validate().unwrap();
    expect(
        TransactWriteItems::new([put(id("b")), idle.into()]).validate(),
        &as_constraint_error(
            "Value null at 'transactItems.2.member.update.updateExpression' failed to satisfy \
             constraint: Member must not be null",
        ),
    );
}

#[test]
fn static_faults_of_actions_are_reported_in_order() {
    let clash = Update::new().set("a", 1).set("a", 2);
    let update = || UpdateItem::new("Simple", id("b"), clash.clone());
    let clash_message = "Invalid UpdateExpression: Two document paths overlap with each other; must \
                         remove or rewrite one of these paths; path one: [a], path two: [a]";
    let large = put(id("a").with("v", text(409_600)));
    let large_message = "Item size has exceeded the maximum allowed size";
    let validate = |actions: [TransactWrite; 2]| TransactWriteItems::new(actions).validate();
    expect(validate([update().into(), large.clone()]), clash_message);
    expect(validate([large, update().into()]), large_message);
    let nameless = DeleteItem::new("Simple", id("c").with("", 1));
    expect(
        validate([nameless.into(), update().into()]),
        "Empty attribute name",
    );
    let condition = Condition::begins_with(Path::attribute("a"), 1);
    let check = ConditionCheck::new("Simple", id("c"), condition);
    expect(
        validate([check.into(), update().into()]),
        "Invalid ConditionExpression: Incorrect operand type for operator or function; operator or \
         function: begins_with, operand type: N",
    );
}

#[test]
fn transaction_rejects_repeated_items() {
    let tables = [simple(), orders()];
    let check = |actions: Vec<TransactWrite>| TransactWriteItems::new(actions).check(find(&tables));
    let twice = "Transaction request cannot include multiple operations on one item";
    let delete = |id_: &str| DeleteItem::new("Simple", id(id_)).into();
    let update = || UpdateItem::new("Simple", id("a"), Update::new()).into();
    let guard = || ConditionCheck::new("Simple", id("a"), exists()).into();
    expect(check(vec![put(id("a").with("v", 1)), delete("b")]), "");
    expect(check(vec![put(id("a").with("v", 1)), delete("a")]), twice);
    expect(check(vec![guard(), update()]), twice);
    // An invalid key is not a repetition but a reason to cancel; only the first one is reported.
    expect_code(
        check(vec![put(Item::new()), put(Item::new())]),
        "TransactionCanceledException",
        "Transaction cancelled, please refer cancellation reasons for specific reasons [ValidationError, None]",
    );
    expect_code(
        check(vec![PutItem::new("Missing", id("a")).into()]),
        "ResourceNotFoundException",
        "Requested resource not found",
    );
}

#[test]
fn size_of_a_transaction_is_limited_to_4_mb() {
    let tables = [simple()];
    let of = |bytes: &[usize]| {
        let put =
            |(n, bytes): (usize, &usize)| put(id(&format!("{n:02}")).with("v", text(bytes - 5)));
        TransactWriteItems::new(bytes.iter().enumerate().map(put)).check(find(&tables))
    };
    let too_large = "Transaction payload size cannot exceed 4MB. Payload Size: : Transaction payload size \
                     cannot exceed 4MB. Payload Size: 4194305";
    let mut sizes = [400_000; 11];
    sizes[10] = 4 * 1024 * 1024 - 4_000_000;
    expect(of(&sizes), "");
    sizes[10] += 1;
    expect(of(&sizes), too_large);
    expect(TransactGetItems::check_bytes(4 * 1024 * 1024), "");
    expect(
        TransactGetItems::check_bytes(4 * 1024 * 1024 + 1),
        too_large,
    );
    // The values of an update count, the item that it changes does not.
    let update = |n: usize, bytes: usize| {
        let value = Update::new().set("v", text(bytes)).remove("gone");
        UpdateItem::new("Simple", id(&n.to_string()), value)
    };
    let of = |bytes: usize| {
        let updates = (0..10).map(|n| update(n, bytes).into());
        TransactWriteItems::new(updates).check(find(&tables))
    };
    expect(of(419_426), "");
    expect(
        of(419_427).map_err(|_| Error::validation("too large")),
        "too large",
    );
}

#[test]
fn empty_key_rejects_the_whole_transaction() {
    let tables = [simple(), orders()];
    let check = |action: TransactWrite| TransactWriteItems::new([action]).check(find(&tables));
    let empty = "One or more parameter values are not valid. The AttributeValue for a key attribute \
                 cannot contain an empty string value. Key: id";
    expect(check(put(id(""))), empty);
    expect(check(DeleteItem::new("Simple", id("")).into()), empty);
    expect(
        check(PutItem::new("Orders", order_key().with("product", "")).into()),
        "One or more parameter values are not valid. A value specified for a secondary index key is \
         not supported. The AttributeValue for a key attribute cannot contain an empty string \
         value. IndexName: by_product, IndexKey: product",
    );
    // Reads report it as a reason.
    let reads = TransactGetItems::new([TransactGet::new("Simple", id(""))]);
    let reason = CancellationReason::new(CancellationCode::ValidationError, empty);
    assert_eq!(
        reads.check(find(&tables)),
        Err(Error::TransactionCanceled {
            reasons: vec![reason]
        })
    );
}

fn reason(code: CancellationCode, message: &str) -> CancellationReason {
    CancellationReason::new(code, message)
}

#[test]
fn faults_of_an_action_are_cancellation_reasons() {
    let invalid = |message: &str| {
        let message = format!("One or more parameter values were invalid: {message}");
        reason(CancellationCode::ValidationError, &message)
    };
    let mismatch = reason(
        CancellationCode::ValidationError,
        "The provided key element does not match the schema",
    );
    let check = |action: TransactWrite| action.check(&orders());
    let wrong_key = || Item::new().with("customer", "c-1");
    assert_eq!(check(PutItem::new("Orders", order_key()).into()), Ok(()));
    assert_eq!(
        check(PutItem::new("Orders", wrong_key()).into()),
        Err(invalid("Missing the key placed in the item"))
    );
    assert_eq!(
        check(DeleteItem::new("Orders", wrong_key()).into()),
        Err(mismatch.clone())
    );
    assert_eq!(
        check(ConditionCheck::new("Orders", wrong_key(), exists()).into()),
        Err(mismatch)
    );
    let update = UpdateItem::new("Orders", order_key(), Update::new().set("placed", 2));
    assert_eq!(
        check(update.into()),
        Err(invalid(
            "Cannot update attribute placed. This attribute is part of the key"
        ))
    );
    // The request size of an update in a transaction is not limited.
    let large = Update::new().set("v", text(409_600)).remove("w");
    let update = UpdateItem::new("Orders", order_key(), large);
    assert!(update.check(&orders()).is_err());
    assert_eq!(check(update.into()), Ok(()));
}

#[test]
fn update_in_a_transaction_may_fill_an_item() {
    let bare = item_size(&id("a").with("v", ""));
    let update = |bytes: usize| {
        let fill = Update::new().set("v", text(bytes - bare));
        UpdateItem::new("Simple", id("a"), fill)
    };
    let apply = |bytes: usize| {
        let mut action = TransactWrite::from(update(bytes));
        action
            .check(&simple())
            .and_then(|()| action.apply(&simple(), None))
    };
    // The request of the same update outside a transaction is already too large.
    assert!(update(409_600).check(&simple()).is_err());
    let filled = apply(409_600).unwrap().unwrap();
    assert_eq!(item_size(&filled), 409_600);
    let reason = apply(409_601).unwrap_err();
    assert_eq!(reason.code, CancellationCode::ValidationError);
    assert_eq!(
        reason.message.as_deref(),
        Some("Item size to update has exceeded the maximum allowed size")
    );
}

#[test]
fn action_returns_the_new_item_or_a_reason() {
    let old = id("a").with("v", 1);
    let apply = |mut action: TransactWrite, old: Option<&Item>| action.apply(&simple(), old);
    assert_eq!(apply(put(id("a")), Some(&old)), Ok(Some(id("a"))));
    assert_eq!(
        apply(DeleteItem::new("Simple", id("a")).into(), Some(&old)),
        Ok(None)
    );
    let update = UpdateItem::new("Simple", id("a"), Update::new().add("v", 2));
    assert_eq!(
        apply(update.into(), Some(&old)),
        Ok(Some(id("a").with("v", 3)))
    );
    let check = || ConditionCheck::new("Simple", id("a"), exists());
    assert_eq!(apply(check().into(), Some(&old)), Ok(Some(old.clone())));
    let failed = reason(
        CancellationCode::ConditionalCheckFailed,
        "The conditional request failed",
    );
    assert_eq!(apply(check().into(), None), Err(failed.clone()));
    let write = PutItem::new("Simple", id("a"))
        .condition(Condition::attribute_not_exists(Path::attribute("id")))
        .return_old_on_failure();
    assert_eq!(
        apply(write.into(), Some(&old)),
        Err(CancellationReason {
            item: Some(old.clone()),
            ..failed
        })
    );
    let unfit = UpdateItem::new("Simple", id("a"), Update::new().add("id2", 1).add("v", 1));
    let text_value = id("a").with("v", "text");
    assert_eq!(
        apply(unfit.into(), Some(&text_value)),
        Err(reason(
            CancellationCode::ValidationError,
            "An operand in the update expression has an incorrect data type"
        ))
    );
}

#[test]
fn transaction_reads_are_cancelled_for_invalid_keys() {
    let tables = [simple(), orders()];
    let get = |table: &str, key: Item| TransactGet::new(table, key);
    let check = |gets: Vec<TransactGet>| TransactGetItems::new(gets).check(find(&tables));
    expect(
        check(vec![get("Simple", id("a")), get("Orders", order_key())]),
        "",
    );
    let wrong = reason(
        CancellationCode::ValidationError,
        "The provided key element does not match the schema",
    );
    assert_eq!(
        check(vec![get("Simple", id("a")), get("Orders", id("a"))]),
        Err(Error::TransactionCanceled {
            reasons: vec![CancellationReason::none(), wrong]
        })
    );
    expect(
        check(vec![get("Simple", id("a")), get("Simple", id("a"))]),
        "Transaction request cannot include multiple operations on one item",
    );
    expect_code(
        check(vec![get("Orders", id("a")), get("Missing", id("a"))]),
        "ResourceNotFoundException",
        "Requested resource not found",
    );
}

#[test]
fn key_of_an_action_is_extracted() {
    let item = order_key().with("v", Value::Null);
    let put: TransactWrite = PutItem::new("Orders", item).into();
    assert_eq!(put.key(&orders()), Ok(order_key()));
    let check: TransactWrite = ConditionCheck::new("Orders", order_key(), exists()).into();
    assert_eq!(check.key(&orders()), Ok(order_key()));
    let wrong: TransactWrite = DeleteItem::new("Orders", id("a")).into();
    expect(
        wrong.key(&orders()),
        "The provided key element does not match the schema",
    );
}
