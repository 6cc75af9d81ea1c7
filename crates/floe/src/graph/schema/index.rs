//! Indexes made by functions: from an entity to the keys under which it is found.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use floe_store::{Item, Name, Value};

use crate::error::Result;
use crate::graph::keys::{Borrowed, IndexKey, ToIndexKey};
use crate::graph::node::{Entity, Node, check_names};
use crate::graph::stored::IndexedKeys;

/// An index: a function from an entity to the keys under which it is found.
///
/// An entity and its entries are written in one transaction. Where it has more keys than fit, some ninety in all its indexes,
/// the entity is written first and its entries follow in steps: until they are through, which
/// [`resume`](crate::graph::Graph::resume) sees to after a crash, it is not found by all of them. Unique keys are always claimed
/// with the entity, so more of these than fit are [`TooLarge`](crate::ErrorKind::TooLarge).
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
    /// What is indexed.
    type Of: Entity;

    /// What it is indexed by: text or numbers.
    type Key: Borrowed;

    /// The name of the index.
    const NAME: &'static str;

    /// The version of the function. Raise it when the function changes, and [rebuild](crate::graph::Graph::rebuild) the index, once
    /// no program with the old one is running: what such a program changes has entries as of before.
    const VERSION: u64 = 1;

    /// Whether a key belongs to one entity at most, in its scope.
    const UNIQUE: bool = false;

    /// Emits the keys of an entity: none, one or more.
    fn map(of: &Self::Of, emit: &mut Emit<Self::Key>);
}

/// Takes the keys that a function emits. The same key twice is one entry.
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

    /// Emits a key, and copies attributes into the entry, so that a query of the index alone tells them.
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

/// An index as the graph knows it: of a [`MapIndex`], or described for data without types.
#[derive(Clone)]
pub struct IndexDef {
    pub(crate) name: String,
    pub(crate) type_name: String,
    pub(crate) version: u64,
    pub(crate) is_unique: bool,
    map: Map,
}

impl IndexDef {
    /// An index of entities without a Rust type.
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

    /// The index of this type.
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

    /// Lets a key belong to one entity at most, in its scope.
    #[must_use]
    pub const fn unique(mut self) -> Self {
        self.is_unique = true;
        self
    }

    /// The entries of an entity.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when a key cannot be one, or the entity is not of its type.
    /// These keys, as the entity stores them.
    pub(crate) fn indexed_keys(&self, emitted: &Emitted) -> IndexedKeys {
        IndexedKeys {
            version: self.version,
            is_unique: self.is_unique,
            keys: emitted.keys().map(|key| key.as_str().to_owned()).collect(),
        }
    }

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
