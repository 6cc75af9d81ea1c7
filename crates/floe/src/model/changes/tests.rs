//! Tests of what a session knows of the items that a body has touched.

use floe_store::Number;

use super::*;
use crate::model::Model;

#[derive(floe_derive::Model)]
#[model(crate = "crate")]
struct Thing {
    #[model(key)]
    id: i64,
    size: i64,
}

fn key(id: i64) -> EncodedKey {
    Thing::key(id).unwrap().encoded().clone()
}

fn item(id: i64, size: i64) -> Item {
    Thing { id, size }.to_item().unwrap()
}

fn size(change: Change, value: i64) -> Report {
    let field = FieldReport {
        attribute: "size",
        is_read: false,
        read_only: false,
        change,
        value: Ok(Some(Value::from(value))),
        model: "Thing",
        field: "size",
    };
    Report {
        fields: vec![field],
        is_deleted: false,
    }
}

fn items(session: &Session, caches_rows: bool) -> Items<'_> {
    Items {
        session,
        caches_rows,
    }
}

fn finish(session: &Session) -> Result<Vec<Entry>> {
    session.take::<ModelChanges>().finish()
}

async fn find(items: Items<'_>, id: i64, stored: Option<Item>) -> Result<Known> {
    match items.reserve(Thing::SCHEMA, &key(id)).await? {
        Ok(reservation) => Ok(reservation.settle(stored)),
        Err(known) => Ok(known),
    }
}

#[tokio::test]
async fn items_are_found_again_however_many_there_are() {
    let session = Session::default();
    let items = items(&session, false);
    for id in 0..40 {
        find(items, id, None).await.unwrap();
        for known in 0..=id {
            let error = find(items, known, None).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::FetchedTwice);
        }
    }
}

#[tokio::test]
async fn a_read_that_is_given_up_can_be_made_again() {
    let session = Session::default();
    let items = items(&session, false);
    for id in 0..40 {
        drop(items.reserve(Thing::SCHEMA, &key(id)).await.unwrap());
        find(items, id, None).await.unwrap();
        let error = find(items, id, None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FetchedTwice);
    }
    let entries = finish(&session).unwrap();
    let missing = entries
        .iter()
        .filter(|entry| matches!(entry.origin, Origin::Missing));
    assert_eq!(missing.count(), 40);
}

#[tokio::test]
async fn what_is_got_again_has_all_changes() {
    let session = Session::default();
    let items = items(&session, true);
    let known = find(items, 1, Some(item(1, 5))).await.unwrap();
    let seen = items.hand_out(known.slot);
    items.hand_in(
        known.slot,
        seen,
        size(Change::Incremented(Number::from(2)), 7),
    );
    let known = find(items, 1, None).await.unwrap();
    assert_eq!(known.item, Some(item(1, 7)));
    let seen = items.hand_out(known.slot);
    items.hand_in(
        known.slot,
        seen,
        size(Change::Incremented(Number::from(3)), 10),
    );
    let entries = finish(&session).unwrap();
    let [entry] = entries.as_slice() else {
        panic!("{entries:?}");
    };
    let [field] = entry.fields.as_slice() else {
        panic!("{entry:?}");
    };
    assert_eq!(field.change, Change::Incremented(Number::from(5)));
    assert_eq!(field.value, Ok(Some(Value::from(10))));
}

#[tokio::test]
async fn two_rows_held_at_once_cannot_both_change_the_item() {
    let session = Session::default();
    let items = items(&session, true);
    let slot = find(items, 1, Some(item(1, 5))).await.unwrap().slot;
    let (first, second) = (items.hand_out(slot), items.hand_out(slot));
    items.hand_in(slot, first, size(Change::Written, 6));
    items.hand_in(slot, second, size(Change::Written, 6));
    assert_eq!(finish(&session).unwrap_err().kind(), ErrorKind::InvalidUse);
}

#[tokio::test]
async fn one_of_two_rows_held_at_once_can_change_the_item() {
    let session = Session::default();
    let items = items(&session, true);
    let slot = find(items, 1, Some(item(1, 5))).await.unwrap().slot;
    let (first, second) = (items.hand_out(slot), items.hand_out(slot));
    items.hand_in(slot, first, size(Change::Written, 6));
    items.hand_in(slot, second, Report::default());
    assert_eq!(finish(&session).unwrap().len(), 1);
}

#[tokio::test]
async fn who_asks_for_an_item_that_is_being_read_waits() {
    let session = Session::default();
    let items = items(&session, true);
    let reading = items
        .reserve(Thing::SCHEMA, &key(1))
        .await
        .unwrap()
        .ok()
        .unwrap();
    let read = async {
        tokio::task::yield_now().await;
        reading.settle(Some(item(1, 5)))
    };
    let (known, _) = tokio::join!(find(items, 1, None), read);
    assert_eq!(known.unwrap().item, Some(item(1, 5)));
}

#[tokio::test]
async fn nothing_can_be_touched_once_the_run_has_ended() {
    let session = Session::default();
    let items = items(&session, false);
    assert!(finish(&session).unwrap().is_empty());
    let error = find(items, 1, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
    let error = items
        .enter_new(Thing::SCHEMA, &key(1), item(1, 1))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
}
