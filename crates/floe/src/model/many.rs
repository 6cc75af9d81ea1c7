//! Reads several items, also of different models, at once.

use std::collections::HashMap;

use floe_store::Item;
use floe_store::limits::{BATCH_GET_ITEMS_MAX, TRANSACT_ITEMS_MAX};
use floe_store::op::{TransactGet, TransactGetItems};

use super::changes::{ItemState, Items, Reservation};
use super::keys::EncodedKey;
use super::schema::Schema;
use super::{Key, Model};
use crate::error::{Error, ErrorKind, Result};
use crate::request::{ItemRequest, batch_get};
use crate::tx::Tx;

/// Several keys: a tuple of keys of different models, or an array or vector of keys of one.
pub trait Keys {
    /// The rows, each `None` if the item does not exist.
    type Rows<'tx>;

    /// The items to read.
    #[doc(hidden)]
    fn items(&self) -> Vec<(&'static Schema, EncodedKey)>;

    /// Returns the rows of the results, in the order of the keys.
    #[doc(hidden)]
    fn rows<'tx>(&self, tx: &'tx Tx, fetched: &mut FetchedItems) -> Result<Self::Rows<'tx>>;
}

/// The results, in the order of the keys.
#[doc(hidden)]
#[derive(Debug)]
pub struct FetchedItems(std::vec::IntoIter<ItemState>);

impl FetchedItems {
    fn next<'tx, M: Model>(&mut self, tx: &'tx Tx) -> Result<Option<M::Row<'tx>>> {
        self.0
            .next()
            .map_or(Ok(None), |known| tx.row_of::<M>(known))
    }
}

fn item<M: Model>(key: &Key<M>) -> (&'static Schema, EncodedKey) {
    (M::SCHEMA, key.encoded().clone())
}

impl<M: Model> Keys for Vec<Key<M>> {
    type Rows<'tx> = Vec<Option<M::Row<'tx>>>;

    fn items(&self) -> Vec<(&'static Schema, EncodedKey)> {
        self.iter().map(item).collect()
    }
    fn rows<'tx>(&self, tx: &'tx Tx, fetched: &mut FetchedItems) -> Result<Self::Rows<'tx>> {
        self.iter().map(|_| fetched.next::<M>(tx)).collect()
    }
}

impl<M: Model, const LEN: usize> Keys for [Key<M>; LEN] {
    type Rows<'tx> = [Option<M::Row<'tx>>; LEN];

    fn items(&self) -> Vec<(&'static Schema, EncodedKey)> {
        self.iter().map(item).collect()
    }
    fn rows<'tx>(&self, tx: &'tx Tx, fetched: &mut FetchedItems) -> Result<Self::Rows<'tx>> {
        let mut failure = None;
        let rows = std::array::from_fn(|_| match fetched.next::<M>(tx) {
            Ok(row) => row,
            Err(error) => {
                failure.get_or_insert(error);
                None
            }
        });
        failure.map_or(Ok(rows), Err)
    }
}

macro_rules! tuples {
    ($(($($model:ident $index:tt),+))*) => {$(
        impl<$($model: Model),+> Keys for ($(Key<$model>,)+) {
            type Rows<'tx> = ($(Option<$model::Row<'tx>>,)+);

            fn items(&self) -> Vec<(&'static Schema, EncodedKey)> {
                vec![$(item(&self.$index)),+]
            }
            fn rows<'tx>(&self, tx: &'tx Tx, fetched: &mut FetchedItems) -> Result<Self::Rows<'tx>> {
                Ok(($(fetched.next::<$model>(tx)?,)+))
            }
        }
    )*};
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
}

/// Reads all keys: as a snapshot if consistent, else in batches.
pub(super) async fn get_many<'tx, K: Keys>(
    tx: &'tx Tx,
    keys: K,
    consistent: bool,
) -> Result<K::Rows<'tx>> {
    let items = keys.items();
    if consistent {
        check_snapshot(tx, items.len())?;
    }
    let states = read_all(tx, &items, consistent).await?;
    keys.rows(tx, &mut FetchedItems(states.into_iter()))
}

fn check_snapshot(tx: &Tx, items: usize) -> Result<()> {
    if !tx.db().engine().capabilities().transactions {
        let what = "the engine has no transactions, which a snapshot of several items needs; use eventual reads";
        return Err(Error::new(ErrorKind::Unsupported, what));
    }
    if items > TRANSACT_ITEMS_MAX {
        let what = "too many items for one snapshot; use eventual reads, or read in parts";
        let message = format!("{what}: items={items} max={TRANSACT_ITEMS_MAX}");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    Ok(())
}

/// Where the result of a key comes from.
enum KeySource<'s> {
    /// By what is read for it.
    Read(Reservation<'s>),
    /// By what the transaction knows.
    Known(ItemState),
    /// As the key at this index, which is the same.
    Same(usize),
}

async fn read_all(
    tx: &Tx,
    items: &[(&'static Schema, EncodedKey)],
    consistent: bool,
) -> Result<Vec<ItemState>> {
    let session = Items::of(tx);
    let mut sources = Vec::with_capacity(items.len());
    let mut requests = Vec::with_capacity(items.len());
    let mut seen = HashMap::new();
    for (at, (schema, key)) in items.iter().enumerate() {
        // Waiting for a read that this call has not sent yet would be a deadlock.
        if session.caches_rows {
            let first = *seen.entry((schema.table, key)).or_insert(at);
            if first < at {
                sources.push(KeySource::Same(first));
                continue;
            }
        }
        sources.push(match session.reserve(schema, key).await? {
            Ok(reservation) => {
                requests.push(ItemRequest {
                    table: schema.table,
                    key: key.to_item(),
                    consistent,
                });
                KeySource::Read(reservation)
            }
            Err(known) => KeySource::Known(known),
        });
    }
    let found = if consistent && !requests.is_empty() {
        snapshot(tx, requests).await
    } else {
        batches(tx, &requests).await
    };
    let mut found = found.map_err(|error| tx.note_error(error))?.into_iter();
    let mut known: Vec<ItemState> = Vec::with_capacity(items.len());
    for (source, (schema, _)) in sources.into_iter().zip(items) {
        let state = match source {
            KeySource::Read(reservation) => {
                let item = found.next().flatten();
                Some(reservation.fill(tx.unexpired(schema, item))?)
            }
            KeySource::Known(known) => Some(known),
            KeySource::Same(first) => known.get(first).cloned(),
        };
        known.extend(state);
    }
    Ok(known)
}

async fn snapshot(tx: &Tx, requests: Vec<ItemRequest<'static>>) -> Result<Vec<Option<Item>>> {
    let requests = requests.into_iter();
    let gets = requests.map(|request| TransactGet::new(request.table, request.key));
    let request = TransactGetItems::new(gets);
    Ok(tx.db().engine().transact_get_items(request).await?.items)
}

async fn batches(tx: &Tx, requests: &[ItemRequest<'static>]) -> Result<Vec<Option<Item>>> {
    let mut found = Vec::with_capacity(requests.len());
    for some in requests.chunks(BATCH_GET_ITEMS_MAX) {
        found.extend(batch_get(tx.db(), some).await?);
    }
    Ok(found)
}
