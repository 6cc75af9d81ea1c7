//! Indexes defined by functions from an entity to its keys.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use floe_store::{Item, Name, Value};

use crate::error::Result;
use crate::graph::keys::{IndexKey, IndexKeyRef, ToIndexKey};
use crate::graph::node::{Entity, Node, check_names};
use crate::graph::stored::IndexedKeys;

/// An index: a function from an entity to the keys that find it.
///
/// An entity and its entries are written in one transaction. If it has more keys than fit, about ninety in all its
/// indexes, the entity is written first and its entries follow in steps. Until they are complete, not every key finds
/// the entity; after a crash, [`resume`](crate::graph::Graph::resume) completes them. Unique keys are always claimed
/// together with the entity, so more of them than fit are [`TooLarge`](crate::ErrorKind::TooLarge).
///
/// ```
/// use floe::Entity;
/// use floe::graph::{Emit, MapIndex};
///
/// #[derive(Entity)]
/// struct Article { id: String, title: String, tags: Vec<String> }
///
/// enum ByTag {}
///
/// impl MapIndex for ByTag {
///     type Of = Article;
///     type Key = String;
///     const NAME: &'static str = "by_tag";
///     const VERSION: u64 = 1;
///
///     fn map(article: &Article, emit: &mut Emit<String>) {
///         for tag in &article.tags {
///             emit.key(tag.to_lowercase());
///         }
///     }
/// }
/// ```
pub trait MapIndex: 'static {
    /// The indexed entity type.
    type Of: Entity;

    /// The type of its keys: text or numbers.
    type Key: IndexKeyRef;

    /// The name of the index.
    const NAME: &'static str;

    /// The version of the function. When the function changes, raise it, and [rebuild](crate::graph::Graph::rebuild)
    /// the index as soon as no program with the old function is running: such a program would write entries of the old
    /// function.
    const VERSION: u64 = 1;

    /// Whether a key belongs to at most one entity of a scope.
    const UNIQUE: bool = false;

    /// Emits the keys of an entity: none, one or more.
    fn map(of: &Self::Of, emit: &mut Emit<Self::Key>);
}

/// Collects the keys that a function emits. Duplicate keys result in one entry.
#[derive(Debug)]
pub struct Emit<K> {
    emitted: Emitted,
    key: PhantomData<fn(K)>,
}

/// The keys of an entity in an index, with the attributes that are copied into the entries.
pub(crate) type Emitted = BTreeMap<IndexKey, Item>;

impl<K: ToIndexKey> Emit<K> {
    fn new() -> Self {
        Self {
            emitted: Emitted::new(),
            key: PhantomData,
        }
    }

    /// Emits a key.
    pub fn key(&mut self, key: K) {
        self.emitted.entry(key.to_index_key()).or_default();
    }

    /// Emits a key, and copies attributes into its entry, so that queries of the index return them.
    pub fn key_with<N: Into<Name>, V: Into<Value>>(
        &mut self,
        key: K,
        attributes: impl IntoIterator<Item = (N, V)>,
    ) {
        let entry = self.emitted.entry(key.to_index_key()).or_default();
        entry.extend(attributes);
    }
}

type Map = Arc<dyn Fn(&Node) -> Result<Emitted> + Send + Sync>;

/// The definition of an index: from a [`MapIndex`], or of untyped entities.
#[derive(Clone)]
pub struct IndexDef {
    pub(crate) name: String,
    pub(crate) type_name: String,
    pub(crate) version: u64,
    pub(crate) is_unique: bool,
    map: Map,
}

impl IndexDef {
    /// Defines an index of untyped entities.
    pub fn new(
        name: impl Into<String>,
        type_name: impl Into<String>,
        version: u64,
        map: impl Fn(&Node, &mut Emit<IndexKey>) + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            type_name: type_name.into(),
            version,
            is_unique: false,
            map: Arc::new(move |node| {
                let mut emit = Emit::new();
                map(node, &mut emit);
                Ok(emit.emitted)
            }),
        }
    }

    /// Returns the definition of a [`MapIndex`].
    pub fn of<I: MapIndex>() -> Self {
        Self {
            name: I::NAME.to_owned(),
            type_name: I::Of::TYPE.to_owned(),
            version: I::VERSION,
            is_unique: I::UNIQUE,
            map: Arc::new(|node| {
                let mut emit = Emit::new();
                I::map(&I::Of::from_node(node)?, &mut emit);
                Ok(emit.emitted)
            }),
        }
    }

    /// Makes keys unique: each belongs to at most one entity of a scope.
    #[must_use]
    pub const fn unique(mut self) -> Self {
        self.is_unique = true;
        self
    }

    /// The keys in the form that the entity stores.
    pub(crate) fn indexed_keys(&self, emitted: &Emitted) -> IndexedKeys {
        IndexedKeys {
            version: self.version,
            is_unique: self.is_unique,
            keys: emitted.keys().map(|key| key.as_str().to_owned()).collect(),
        }
    }

    /// The entries of an entity.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if a key is invalid, or the entity does not match the type.
    pub(crate) fn emitted(&self, node: &Node) -> Result<Emitted> {
        let emitted = (self.map)(node)?;
        for (key, attributes) in &emitted {
            key.check(&self.name)?;
            check_names(attributes)?;
        }
        Ok(emitted)
    }
}

impl fmt::Debug for IndexDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexDef")
            .field("name", &self.name)
            .field("type_name", &self.type_name)
            .field("version", &self.version)
            .field("is_unique", &self.is_unique)
            .finish_non_exhaustive()
    }
}
