//! Getting several items, of several models, at once.

use floe_store::Item;
use floe_store::limits::{BATCH_GET_ITEMS_MAX, TRANSACT_ITEMS_MAX};
use floe_store::op::{TransactGet, TransactGetItems};

use super::Tx;
use super::gather::{self, Request};
use super::session::Origin;
use crate::error::{Error, ErrorKind, Result};
use crate::model::key::EncodedKey;
use crate::model::schema::Schema;
use crate::model::{Key, Model};

/// Several keys: a tuple of keys of different models, or an array or vector of keys of one.
pub trait Keys {
    /// The rows, each `None` if the item is not there.
    type Rows<'tx>;

    /// Which items.
    #[doc(hidden)]
    fn items(&self) -> Vec<(&'static Schema, EncodedKey)>;

    /// The rows of what was found, in the order of the keys.
    #[doc(hidden)]
    fn rows<'tx>(&self, tx: &'tx Tx, found: &mut Found) -> Result<Self::Rows<'tx>>;
}

/// What was found, in the order of the keys.
#[doc(hidden)]
#[derive(Debug)]
pub struct Found(std::vec::IntoIter<(usize, Option<Item>)>);

impl Found {
    fn next<'tx, M: Model>(&mut self, tx: &'tx Tx) -> Result<Option<M::Row<'tx>>> {
        match self.0.next() {
            Some((slot, item)) => tx.settle_row::<M>(slot, item),
            None => Ok(None),
        }
    }
}

impl<M: Model> Keys for Vec<Key<M>> {
    type Rows<'tx> = Vec<Option<M::Row<'tx>>>;

    fn items(&self) -> Vec<(&'static Schema, EncodedKey)> {
        self.iter()
            .map(|key| (M::SCHEMA, key.encoded().clone()))
            .collect()
    }
    fn rows<'tx>(&self, tx: &'tx Tx, found: &mut Found) -> Result<Self::Rows<'tx>> {
        self.iter().map(|_| found.next::<M>(tx)).collect()
    }
}

impl<M: Model, const LEN: usize> Keys for [Key<M>; LEN] {
    type Rows<'tx> = [Option<M::Row<'tx>>; LEN];

    fn items(&self) -> Vec<(&'static Schema, EncodedKey)> {
        self.iter()
            .map(|key| (M::SCHEMA, key.encoded().clone()))
            .collect()
    }
    fn rows<'tx>(&self, tx: &'tx Tx, found: &mut Found) -> Result<Self::Rows<'tx>> {
        let mut failure = None;
        let rows = std::array::from_fn(|_| match found.next::<M>(tx) {
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
    ($(($($model:ident $place:tt),+))*) => {$(
        impl<$($model: Model),+> Keys for ($(Key<$model>,)+) {
            type Rows<'tx> = ($(Option<$model::Row<'tx>>,)+);

            fn items(&self) -> Vec<(&'static Schema, EncodedKey)> {
                vec![$(($model::SCHEMA, self.$place.encoded().clone())),+]
            }
            fn rows<'tx>(&self, tx: &'tx Tx, found: &mut Found) -> Result<Self::Rows<'tx>> {
                Ok(($(found.next::<$model>(tx)?,)+))
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

/// Reads all keys: at one moment if consistent, else in batches.
pub(super) async fn get_many<'tx, K: Keys>(
    tx: &'tx Tx,
    keys: K,
    consistent: bool,
) -> Result<K::Rows<'tx>> {
    let items = keys.items();
    if consistent && items.len() > TRANSACT_ITEMS_MAX {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!(
                "too many items for one snapshot; read them eventually, or in parts: items={} \
                 max={TRANSACT_ITEMS_MAX}",
                items.len()
            ),
        ));
    }
    let mut slots = Vec::with_capacity(items.len());
    for (schema, key) in &items {
        match tx.session().enter(schema, key, Origin::Pending) {
            Ok(slot) => slots.push(slot),
            Err(error) => {
                slots.into_iter().for_each(|slot| tx.session().forget(slot));
                return Err(error);
            }
        }
    }
    let requests: Vec<Request> = items
        .iter()
        .map(|(schema, key)| Request {
            table: schema.table,
            key: key.to_item(),
            consistent,
        })
        .collect();
    let read = match consistent {
        true => snapshot(tx, &requests).await,
        false => batches(tx, &requests).await,
    };
    match read {
        Ok(found) => {
            let found: Vec<_> = slots.into_iter().zip(found).collect();
            keys.rows(tx, &mut Found(found.into_iter()))
        }
        Err(error) => {
            slots.into_iter().for_each(|slot| tx.session().forget(slot));
            Err(tx.note(error))
        }
    }
}

async fn snapshot(tx: &Tx, requests: &[Request]) -> Result<Vec<Option<Item>>> {
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    let gets = requests
        .iter()
        .map(|request| TransactGet::new(request.table, request.key.clone()));
    let request = TransactGetItems::new(gets);
    Ok(tx.db().engine().transact_get_items(request).await?.items)
}

async fn batches(tx: &Tx, requests: &[Request]) -> Result<Vec<Option<Item>>> {
    let mut found = Vec::with_capacity(requests.len());
    for some in requests.chunks(BATCH_GET_ITEMS_MAX) {
        found.extend(gather::batch_get(&**tx.db().engine(), some).await?);
    }
    Ok(found)
}
