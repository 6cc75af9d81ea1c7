//! Tests of the record of the items that a body has used.

use floe_store::Number;

use super::*;
use crate::model::Model;
use crate::model::field::Addition;

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

fn size(change: Change, value: i64) -> RowReport {
    let field = FieldReport {
        attribute: "size",
        is_read: false,
        read_only: false,
        change,
        value: Ok(Some(Value::from(value))),
        model: "Thing",
        field: "size",
    };
    RowReport {
        fields: vec![field],
        is_deleted: false,
    }
}

fn incremented(amount: i64) -> Change {
    Change::Incremented(Addition {
        amount: Number::from(amount),
        base: Number::from(0),
        min: None,
        max: None,
    })
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

async fn find(items: Items<'_>, id: i64, stored: Option<Item>) -> Result<ItemState> {
    match items.reserve(Thing::SCHEMA, &key(id)).await? {
        Ok(reservation) => reservation.fill(stored),
        Err(known) => Ok(known),
    }
}

#[tokio::test]
async fn items_used_before_are_found_in_small_and_large_sessions() {
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
async fn abandoned_read_can_be_repeated() {
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
async fn repeated_read_returns_all_changes() {
    let session = Session::default();
    let items = items(&session, true);
    let known = find(items, 1, Some(item(1, 5))).await.unwrap();
    let seen = items.row_created(known.slot);
    items.row_dropped(known.slot, seen, size(incremented(2), 7));
    let known = find(items, 1, None).await.unwrap();
    assert_eq!(known.item, Some(item(1, 7)));
    let seen = items.row_created(known.slot);
    items.row_dropped(known.slot, seen, size(incremented(3), 10));
    let entries = finish(&session).unwrap();
    let [entry] = entries.as_slice() else {
        panic!("{entries:?}");
    };
    let [field] = entry.fields.as_slice() else {
        panic!("{entry:?}");
    };
    assert_eq!(field.change, incremented(5));
    assert_eq!(field.value, Ok(Some(Value::from(10))));
}

#[tokio::test]
async fn two_live_rows_cannot_both_change_the_item() {
    let session = Session::default();
    let items = items(&session, true);
    let slot = find(items, 1, Some(item(1, 5))).await.unwrap().slot;
    let (first, second) = (items.row_created(slot), items.row_created(slot));
    items.row_dropped(slot, first, size(Change::Written, 6));
    items.row_dropped(slot, second, size(Change::Written, 6));
    assert_eq!(finish(&session).unwrap_err().kind(), ErrorKind::InvalidUse);
}

#[tokio::test]
async fn only_a_single_live_row_can_change_the_item() {
    let session = Session::default();
    let items = items(&session, true);
    let slot = find(items, 1, Some(item(1, 5))).await.unwrap().slot;
    let (first, second) = (items.row_created(slot), items.row_created(slot));
    items.row_dropped(slot, first, size(Change::Written, 6));
    items.row_dropped(slot, second, RowReport::default());
    assert_eq!(finish(&session).unwrap().len(), 1);
}

#[tokio::test]
async fn concurrent_read_of_the_same_item_waits() {
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
        reading.fill(Some(item(1, 5))).unwrap()
    };
    let (known, _) = tokio::join!(find(items, 1, None), read);
    assert_eq!(known.unwrap().item, Some(item(1, 5)));
}

#[tokio::test]
async fn items_cannot_be_used_after_the_body_has_ended() {
    let session = Session::default();
    let items = items(&session, false);
    assert!(finish(&session).unwrap().is_empty());
    let error = find(items, 1, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
    let error = items
        .record_new(Thing::SCHEMA, &key(1), item(1, 1))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
}
