//! Deleting in one transaction: the entity, its edges in both directions, its entries, and what goes with it.
//!
//! The condition of the deletion names how many edges lead to the entity. That number is kept in the entity itself and
//! changes with every edge in the same commit, because the index of reversed edges is behind at times: an edge that it
//! does not show yet would stay.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use floe_store::Item;
use floe_store::limits::BATCH_GET_ITEMS_MAX;

use super::key::{EntityKey, Place};
use super::read::Reads;
use super::relation::OnDelete;
use super::stored::{Edge, PREDICATE_KEY, SUBJECT_KEY, Stored};
use super::work::{Done, Work};
use crate::error::{Error, ErrorKind, Result};
use crate::request::Backoff;

/// How often the index of reversed edges is asked until it has caught up.
pub(super) const LAG_TRIES: u32 = 20;

/// An entity that is to go, with its edges.
struct Goes {
    outgoing: Vec<Edge>,
    incoming: Vec<Edge>,
}

pub(super) async fn delete(work: &Work<'_>, key: &EntityKey) -> Result<Done> {
    let root = work.place(key)?;
    let session = work.tx.session();
    if session.graph(|changes| changes.is_created(&root))? {
        return Err(Error::new(
            ErrorKind::InvalidUse,
            format!("the transaction creates this entity: entity={root}"),
        ));
    }
    if work.load(&root).await?.is_none() {
        session.graph(|changes| changes.watch(&root))?;
        return Ok(Done::default());
    }
    let goes = closure(work, root).await?;
    check_restrictions(&goes)?;
    let count = goes.len() as u64;
    session.graph(|changes| {
        let mut edges = BTreeSet::new();
        for (place, goes) in goes {
            changes.delete(&place);
            for edge in goes.outgoing.into_iter().chain(goes.incoming) {
                edges.insert((edge.subject.clone(), edge.predicate_key()?));
                changes.remove_edge(work.scope, edge, false)?;
            }
        }
        Ok::<_, Error>(Done {
            count,
            edges: edges.len() as u64,
            ..Done::default()
        })
    })?
}

/// The entity and all that goes with it.
async fn closure(work: &Work<'_>, root: Place) -> Result<BTreeMap<Place, Goes>> {
    let max = work.tx.db().engine().capabilities().transact_items_max;
    let schema = work.tx.db().graph_schema();
    let (mut found, mut queue, mut items) = (BTreeMap::new(), vec![root.clone()], 0);
    while let Some(place) = queue.pop() {
        if found.contains_key(&place) {
            continue;
        }
        let Some(stored) = work.load(&place).await? else {
            continue;
        };
        // Which entries it has, only its entries tell.
        if stored.is_behind {
            return Err(too_wide(&place, max));
        }
        let goes = Goes {
            outgoing: outgoing(work, &place, max).await?,
            incoming: incoming(work, &place, &stored, max).await?,
        };
        items += 1 + goes.outgoing.len() + goes.incoming.len();
        if items > max {
            return Err(too_wide(&root, max));
        }
        for edge in &goes.outgoing {
            let (from, to) = (edge.subject.type_name(), edge.object.type_name());
            if schema.owns(from, &edge.predicate, to) {
                queue.push(work.place(&edge.object)?);
            }
        }
        for edge in &goes.incoming {
            let (from, to) = (edge.subject.type_name(), edge.object.type_name());
            if schema.on_delete(from, &edge.predicate, to) == OnDelete::Cascade {
                queue.push(work.place(&edge.subject)?);
            }
        }
        found.insert(place, goes);
    }
    Ok(found)
}

async fn outgoing(work: &Work<'_>, place: &Place, max: usize) -> Result<Vec<Edge>> {
    let stored = work.reads().outgoing(place, None, Some(max + 1)).await?;
    let session = work.tx.session();
    session.graph(|changes| changes.outgoing(place, None, stored))?
}

async fn incoming(
    work: &Work<'_>,
    place: &Place,
    stored: &Stored,
    max: usize,
) -> Result<Vec<Edge>> {
    if stored.incoming > max as u64 {
        return Err(too_wide(place, max));
    }
    let found = incoming_of(&work.reads(), place, stored.incoming).await;
    let found = found.map_err(|error| match error.kind() {
        ErrorKind::TransactionFailed => work.tx.retry(error),
        _ => error,
    })?;
    let session = work.tx.session();
    session.graph(|changes| changes.incoming(place, found))
}

/// All edges that lead to an entity, which says that there are so many. They are asked for until there are.
///
/// # Errors
///
/// [`TransactionFailed`](ErrorKind::TransactionFailed) when the index does not show them.
pub(super) async fn incoming_of(
    reads: &Reads<'_>,
    place: &Place,
    expected: u64,
) -> Result<Vec<Edge>> {
    let mut tries = 0;
    loop {
        let found = match expected {
            0 => Vec::new(),
            _ => reads.incoming(place, None).await?,
        };
        // Some may have been removed since, and others not have come yet. The conditions of the commit notice both, but
        // a refusal has none.
        let is_certain =
            found.len() as u64 == expected && !found.iter().any(|edge| edge.is_holding);
        let found = match is_certain {
            true => found,
            false => still_there(reads, &place.scope, found).await?,
        };
        if found.len() as u64 >= expected {
            return Ok(found);
        }
        tries += 1;
        if tries > LAG_TRIES {
            return Err(lagging(place, expected, found.len()));
        }
        let pause = Backoff::resync().pause(tries, reads.db.env().next_u64());
        reads.db.timer().sleep(pause).await;
    }
}

/// Those of the edges that are in the table.
pub(super) async fn still_there(
    reads: &Reads<'_>,
    scope: &str,
    edges: Vec<Edge>,
) -> Result<Vec<Edge>> {
    let table = reads.schema().relationships();
    let mut there = Vec::new();
    for some in edges.chunks(BATCH_GET_ITEMS_MAX) {
        let keys = some.iter().map(|edge| edge.key_item(scope));
        let keys: Vec<Item> = keys.collect::<Result<_>>()?;
        let found: HashSet<Item> = reads
            .batch(&table, keys.clone())
            .await?
            .iter()
            .map(|item| item.pick(&[SUBJECT_KEY, PREDICATE_KEY]))
            .collect();
        let some = some.iter().zip(keys);
        there.extend(
            some.filter(|(_, key)| found.contains(key))
                .map(|(edge, _)| edge.clone()),
        );
    }
    Ok(there)
}

/// Refuses a deletion while something refers to what goes that does not go itself.
fn check_restrictions(goes: &BTreeMap<Place, Goes>) -> Result<()> {
    for (place, of_place) in goes {
        let stays = |edge: &&Edge| {
            let subject = Place {
                scope: place.scope.clone(),
                key: edge.subject.clone(),
            };
            edge.is_holding && !goes.contains_key(&subject)
        };
        if let Some(edge) = of_place.incoming.iter().find(stays) {
            return Err(restricted(place, Some(edge)));
        }
    }
    Ok(())
}

pub(super) fn restricted(place: &Place, edge: Option<&Edge>) -> Error {
    let referrer = edge.map_or_else(
        || "unknown".to_owned(),
        |edge| format!("{} predicate={}", edge.subject, edge.predicate),
    );
    Error::new(
        ErrorKind::Restricted,
        format!("the entity is referred to: entity={place} by={referrer}"),
    )
}

pub(super) fn lagging(place: &Place, expected: u64, actual: usize) -> Error {
    Error::new(
        ErrorKind::TransactionFailed,
        format!(
            "the index of reversed edges is behind, or the number of edges is wrong, which Graph::check tells: \
             entity={place} expected={expected} actual={actual}"
        ),
    )
}

fn too_wide(place: &Place, max: usize) -> Error {
    Error::new(
        ErrorKind::TooLarge,
        format!(
            "the deletion does not fit into one transaction; outside of one, Graph::delete does it in steps: \
             entity={place} items_max={max}"
        ),
    )
}
