//! What a call sees: entities and edges, and in a transaction, as it has changed them.

mod leaving;

use std::collections::BTreeMap;

use super::handle::Graph;
use super::keys::Place;
use super::stored::{Edge, Stored};
use crate::error::Result;

impl Graph<'_> {
    /// One entity; `None` if it is not there or on its way out.
    pub(super) async fn load_place(&self, place: &Place) -> Result<Option<Stored>> {
        let Some(tx) = self.tx else {
            let stored = self.reads().entity(place).await?;
            return Ok(stored.filter(|stored| !stored.is_leaving));
        };
        let work = self.work(tx);
        let stored = work.load(place).await?;
        work.changes(|changes| changes.watch(place))?;
        Ok(stored)
    }

    /// Any number of entities, also those on their way out.
    pub(super) async fn load_places(&self, places: &[Place]) -> Result<BTreeMap<Place, Stored>> {
        let Some(tx) = self.tx else {
            return self.reads().entities(places).await;
        };
        let work = self.work(tx);
        let is_unread = |place: &&Place| matches!(work.changes(|c| c.known(place)), Ok(None));
        let unread: Vec<Place> = places.iter().filter(is_unread).cloned().collect();
        let mut read = self.reads().entities(&unread).await?;
        work.changes(|changes| {
            for place in &unread {
                changes.settle(place, read.remove(place));
            }
            let mut found = BTreeMap::new();
            for place in places {
                changes.watch(place);
                let known = changes.known(place).flatten();
                let known = known.or_else(|| changes.leaving(place).cloned());
                found.extend(known.map(|stored| (place.clone(), stored)));
            }
            found
        })
    }

    /// The outgoing edges of a subject; in a transaction, with those that it has changed.
    pub(super) async fn outgoing(
        &self,
        subject: &Place,
        predicate: Option<&str>,
    ) -> Result<Vec<Edge>> {
        let Some(tx) = self.tx else {
            return self.reads().outgoing(subject, predicate, None).await;
        };
        let work = self.work(tx);
        work.load(subject).await?;
        let stored = self.reads().outgoing(subject, predicate, None).await?;
        work.changes(|changes| {
            changes.watch_list(subject);
            changes.outgoing(subject, predicate, stored)
        })?
    }
}
