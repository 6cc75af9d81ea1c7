//! Changes of the graph inside of a transaction. Calls outside of one run in a transaction of their own.

use floe_store::Item;

use super::changes::Known;
use super::compile::missing;
use super::delete;
use super::key::{EntityKey, Place};
use super::node::{Node, check_names, merge};
use super::read::Reads;
use super::rearrange::{self, ListChange};
use super::rebuild;
use super::stored::Stored;
use crate::error::{Error, ErrorKind, Result};
use crate::tx::Tx;

/// A change of the graph.
pub(super) enum Op<'o> {
    Create(Node),
    /// Merges into what is there.
    Update(Node),
    /// Merges into what is there, or creates it.
    Upsert(Node),
    /// Replaces what is there, or creates it.
    Set(Node),
    /// Makes new attributes of old ones.
    Modify(EntityKey, Modify<'o>),
    Delete(EntityKey),
    List {
        subject: EntityKey,
        predicate: String,
        change: ListChange,
    },
}

/// A function from an entity to what it becomes.
pub(super) type Modify<'o> = &'o (dyn Fn(Node) -> Result<Node> + Send + Sync);

/// What a change has done.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Done {
    /// How many entities were deleted, or edges added or removed.
    pub(super) count: u64,
    pub(super) edges: u64,
    /// The entity as it is then.
    pub(super) node: Option<Node>,
}

/// A transaction, and the scope in which it works.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    pub(super) tx: &'a Tx,
    pub(super) scope: &'a str,
}

impl Op<'_> {
    pub(super) async fn apply(&self, tx: &Tx, scope: &str) -> Result<Done> {
        let work = Work { tx, scope };
        match self {
            Self::Create(node) => work.create(node).await,
            Self::Update(node) => work.update(node).await,
            Self::Upsert(node) => work.upsert(node).await,
            Self::Set(node) => work.set(node).await,
            Self::Modify(key, modify) => work.modify(key, *modify).await,
            Self::Delete(key) => delete::delete(&work, key).await,
            Self::List {
                subject,
                predicate,
                change,
            } => rearrange::change(&work, subject, predicate, change).await,
        }
    }
}

impl<'a> Work<'a> {
    pub(super) fn reads(&self) -> Reads<'a> {
        Reads {
            db: self.tx.db(),
            tx: Some(self.tx),
        }
    }

    pub(super) fn place(&self, key: &EntityKey) -> Result<Place> {
        Place::new(self.scope, key.clone())
    }

    /// The entity as the transaction sees it.
    pub(super) async fn load(&self, place: &Place) -> Result<Option<Stored>> {
        let session = self.tx.session();
        if let Some(known) = session.graph(|changes| known(changes.known(place)))? {
            return Ok(known);
        }
        let read = self.reads().entity(place).await?;
        session.graph(|changes| {
            changes.settle(place, read);
            known(changes.known(place)).flatten()
        })
    }

    /// The entity, which is there.
    pub(super) async fn require(&self, place: &Place) -> Result<Stored> {
        self.load(place).await?.ok_or_else(|| missing(place))
    }

    async fn create(&self, node: &Node) -> Result<Done> {
        let place = self.prepared(node).await?;
        let session = self.tx.session();
        session.graph(|changes| changes.create(&place, node.clone()))??;
        Ok(Done::default())
    }

    async fn update(&self, node: &Node) -> Result<Done> {
        let place = self.prepared(node).await?;
        let mut old = self.require(&place).await?.node;
        merge(&mut old.attributes, &node.attributes);
        self.put(&place, old)
    }

    async fn upsert(&self, node: &Node) -> Result<Done> {
        let place = self.prepared(node).await?;
        match self.load(&place).await? {
            Some(Stored { node: mut old, .. }) => {
                merge(&mut old.attributes, &node.attributes);
                self.put(&place, old)
            }
            None => self.create(node).await,
        }
    }

    async fn set(&self, node: &Node) -> Result<Done> {
        let place = self.prepared(node).await?;
        match self.load(&place).await? {
            Some(_) => self.put(&place, node.clone()),
            None => self.create(node).await,
        }
    }

    async fn modify(&self, key: &EntityKey, modify: Modify<'_>) -> Result<Done> {
        let place = self.place(key)?;
        let old = self.require(&place).await?.node;
        let new = modify(old)?;
        if new.key != *key {
            return Err(Error::new(
                ErrorKind::InvalidUse,
                format!(
                    "the key of an entity cannot change: old={key} new={}",
                    new.key
                ),
            ));
        }
        self.prepared(&new).await?;
        self.put(&place, new.clone())?;
        Ok(Done {
            node: Some(new),
            ..Done::default()
        })
    }

    fn put(&self, place: &Place, node: Node) -> Result<Done> {
        let session = self.tx.session();
        session.graph(|changes| changes.update(place, node))?;
        Ok(Done::default())
    }

    /// Checks an entity before it is written, and that its indexes are known.
    async fn prepared(&self, node: &Node) -> Result<Place> {
        check_names(&node.attributes)?;
        check_nesting(&node.attributes)?;
        let place = self.place(&node.key)?;
        rebuild::begin(&self.reads(), self.scope, node.key.type_name()).await?;
        Ok(place)
    }
}

/// Values nest to a limit, which the store would refuse without a word on where.
fn check_nesting(attributes: &Item) -> Result<()> {
    let max = floe_store::limits::NESTING_LEVELS_MAX;
    match attributes.iter().find(|(_, value)| value.depth() > max) {
        Some((name, _)) => Err(super::key::invalid(
            name,
            &format!("values nest too deep: levels_max={max}"),
        )),
        None => Ok(()),
    }
}

/// `None` if it has to be read.
fn known(known: Known) -> Option<Option<Stored>> {
    match known {
        Known::Unread => None,
        Known::Absent => Some(None),
        Known::Present(stored) => Some(Some(*stored)),
    }
}
