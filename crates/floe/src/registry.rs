//! The versioned registry: groups of numbered versions, a pointer to the latest, lists of what is deployed, and expiry.
//!
//! ```
//! use floe::{Db, Error, Registry};
//!
//! /// A layer of a package in a region. Versions stay for 30 days once there is a later one.
//! #[derive(Clone, Debug, PartialEq, Registry)]
//! #[registry(
//!     table = "klayers",
//!     pk = "lyr#{region}.{package}",
//!     sk = "lyrVrsn#v{version}",
//!     latest = "lyrVrsn0#",
//!     status = "dplySts",
//!     expires = "exDt",
//!     retention = "30d",
//!     index(name = "package-status", key = package),
//!     index(name = "region-status", key = region)
//! )]
//! struct Layer {
//!     #[registry(rename = "rgn")]
//!     region: String,
//!     #[registry(rename = "pckg")]
//!     package: String,
//!     arn: String,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let db = Db::memory()?;
//! db.ensure_registries(&[Layer::SCHEMA]).await?;
//! let layers = db.registry::<Layer>();
//!
//! let layer = |arn: &str| Layer { region: "eu".into(), package: "numpy".into(), arn: arn.into() };
//! assert_eq!(layers.publish(&layer("arn:1")).await?, 1);
//! assert_eq!(layers.publish(&layer("arn:2")).await?, 2);
//! assert!(!layers.publish_if_changed(&layer("arn:2")).await?.is_new());
//!
//! let latest = layers.latest(("eu", "numpy")).await?.expect("published");
//! assert_eq!((latest.number, latest.value), (2, layer("arn:2")));
//! let everywhere = layers.latest_of_all(Layer::BY_PACKAGE, "numpy").await?;
//! assert_eq!(everywhere.len(), 1);
//! let deployed = layers.deployed_in(Layer::BY_REGION, "eu").await?;
//! assert_eq!(deployed.len(), 2, "the latest and the deprecated");
//!
//! layers.retire(("eu", "numpy"), 2).await?;
//! assert_eq!(layers.latest(("eu", "numpy")).await?.expect("the one before").number, 1);
//! assert_eq!(layers.history(("eu", "numpy")).collect().await?.len(), 2);
//! # Ok(())
//! # }
//! ```
//!
//! # One change, one commit
//!
//! A call that changes something is one transaction: the new version, the one before it, and the pointer. It holds if the
//! pointer is as it was read; otherwise it is made again. So two who publish at once get two numbers, and an answer that
//! was lost is settled, never applied twice. [`Tx::registry`] makes the same calls part of a larger transaction, beside
//! models, streams and the graph: there they see what those before them have changed, while lists, histories and
//! [`as_of`](Versions::as_of) tell what is committed.
//!
//! # The life of a version
//!
//! | | status | expiry | deletion |
//! |---|---|---|---|
//! | published | `latest` | | |
//! | a later one is published | `deprecated` | after the retention, unless it is pinned or an alias leads to it | |
//! | retired, or expired and [buried](tombstone) | | | the moment |
//!
//! One whose time has come is gone at once for every list, and reads as deleted, however long the store takes to remove
//! it. What is gone stays in the history, and is never deployed again. Numbers are never given twice. If the latest
//! version is retired, the newest before it that is still deployed is the latest again; if there is none, there is no
//! latest.
//!
//! # What is where
//!
//! | module | what it holds |
//! |---|---|
//! | [`group`] | what has versions |
//! | [`version`] | a version, as it is read |
//! | [`history`], [`deployed`] | reading many of them |
//! | [`tombstone`] | what is done when a version has expired |
//! | [`tables`] | making the tables |
//! | [`schema`], [`describe`] | the description that the derive makes, as a constant and as text |
//! | [`described`], [`content`] | registries without a struct |

pub(crate) mod changes;
mod compile;
pub mod content;
pub mod deployed;
pub mod describe;
pub mod described;
pub mod group;
mod hash;
pub mod history;
mod keys;
mod reads;
pub mod schema;
mod status;
mod stored;
#[doc(hidden)]
pub mod support;
pub mod tables;
pub mod tombstone;
pub mod version;
mod work;

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use floe_store::{Item, Timestamp};

pub use content::Content;
pub use deployed::RegistryIndex;
pub use group::{Group, IntoGroup};
pub use history::History;
pub use keys::VERSION_MAX;
pub use schema::RegistrySchema;
pub use status::Status;
pub use tables::{registry_infrastructure, registry_tables};
pub use version::Version;

use crate::attribute::Attribute;
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::tx::{Tx, TxOptions};
use crate::watched::Watched;
use changes::Changes;
use keys::{GroupPlace, Place};
use reads::Reads;
use stored::Facts;
use work::{Done, Op, Work};

/// How often a change is tried again because somebody else was faster. Each time somebody has published, retired, pinned
/// or moved an alias in the same group: so many can do so at once without any of them failing.
const RETRIES: u32 = 100;
/// How often an alias is followed that is moved meanwhile.
const FOLLOWED_MAX: u32 = 10;

/// A struct whose values are published in versions. Derived, not written by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a registry",
    label = "not a registry",
    note = "add `#[derive(floe::Registry)]`"
)]
pub trait Registry: Watched + Sync {
    /// What is known of the registry when the program is compiled.
    const SCHEMA: &'static RegistrySchema;

    /// The group of a value.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when a name cannot be in a key.
    fn group(&self) -> Result<Group<Self>>;

    /// All fields, as they are stored.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when a field has no form in the store.
    fn to_attributes(&self) -> Result<Item>;

    /// The value of a stored version.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when it is of another form.
    fn from_item(item: &Item) -> Result<Self>;
}

/// A registry whose partition key is the version, so that the pointers of all groups are one partition. Derived.
#[diagnostic::on_unimplemented(
    message = "the latest versions of `{Self}` are not in one partition",
    label = "each group is a partition of its own",
    note = "put `{{version}}` into `pk`, or ask by an index: `latest_of_all`"
)]
pub trait LatestTogether: Registry {}

/// The versions of a registry: see the [module](self). In a transaction, all calls are part of it.
pub struct Versions<'tx, R> {
    db: Db,
    tx: Option<&'tx Tx>,
    schema: &'static RegistrySchema,
    retention: Option<Duration>,
    registry: PhantomData<fn() -> R>,
}

/// What [`publish_if_changed`](Versions::publish_if_changed) has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// A version of this number was published.
    New(u64),
    /// The latest version, of this number, has the same content.
    Unchanged(u64),
}

impl Published {
    /// The number of the version with this content.
    pub const fn number(self) -> u64 {
        match self {
            Self::New(number) | Self::Unchanged(number) => number,
        }
    }

    /// Whether a version was published.
    pub const fn is_new(self) -> bool {
        matches!(self, Self::New(_))
    }
}

impl Db {
    /// The versions of a registry.
    pub fn registry<R: Registry>(&self) -> Versions<'static, R> {
        Versions::new(self.clone(), None, R::SCHEMA)
    }
}

impl Tx {
    /// The versions of a registry, as part of the transaction.
    pub fn registry<R: Registry>(&self) -> Versions<'_, R> {
        Versions::new(self.db().clone(), Some(self), R::SCHEMA)
    }

    /// The versions of a registry that is known by its description, as part of the transaction.
    pub fn registry_described(&self, schema: &'static RegistrySchema) -> Versions<'_, Item> {
        Versions::new(self.db().clone(), Some(self), schema)
    }
}

impl<R> Clone for Versions<'_, R> {
    fn clone(&self) -> Self {
        Self {
            db: self.db.clone(),
            ..*self
        }
    }
}

impl<R> fmt::Debug for Versions<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Versions")
            .field("registry", &self.schema.name)
            .finish_non_exhaustive()
    }
}

impl<'tx, R: Content> Versions<'tx, R> {
    fn new(db: Db, tx: Option<&'tx Tx>, schema: &'static RegistrySchema) -> Self {
        Self {
            db,
            tx,
            schema,
            retention: schema.retention_secs.map(Duration::from_secs),
            registry: PhantomData,
        }
    }

    /// The same, with deprecated versions that stay so long. Those that are deprecated already keep their time.
    #[must_use]
    pub const fn retention(mut self, retention: Duration) -> Self {
        self.retention = Some(retention);
        self
    }

    /// Publishes a value as the next version of its group, and tells its number. It is the latest; the version that was is
    /// deprecated, and goes after the retention.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when it cannot be stored,
    /// [`TooLarge`](crate::ErrorKind::TooLarge) when it is too large or there are no numbers left,
    /// [`Conflict`](crate::ErrorKind::Conflict) when others have written to the table past the registry.
    pub async fn publish(&self, value: &R) -> Result<u64> {
        Ok(self.publish_how(value, false).await?.number)
    }

    /// Publishes a value, unless the latest version has the same content by its hash. In a transaction, that the latest
    /// still has is checked when it commits.
    ///
    /// # Errors
    ///
    /// As for [`publish`](Self::publish).
    pub async fn publish_if_changed(&self, value: &R) -> Result<Published> {
        let done = self.publish_how(value, true).await?;
        Ok(if done.is_changed {
            Published::New(done.number)
        } else {
            Published::Unchanged(done.number)
        })
    }

    async fn publish_how(&self, value: &R, if_changed: bool) -> Result<Done> {
        let content = value.attributes_in(self.schema)?;
        let hash = hash::content_hash(self.schema, &content);
        let op = Op::Publish {
            content,
            hash,
            if_changed,
        };
        let group = value.group_in(self.schema)?.place;
        self.run(&group, &op).await
    }

    /// The latest version, if any is deployed: one request.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when a name cannot be in a key, or what is stored is of another
    /// form, [`Store`](crate::ErrorKind::Store) when the store cannot answer.
    pub async fn latest(&self, group: impl IntoGroup<R>) -> Result<Option<Version<R>>> {
        let group = self.place(group)?;
        let pointer = self.load(&group, &group.pointer()).await?;
        let version = pointer.map(|pointer| Version::of_pointer(self.schema, &pointer, self.now()));
        Ok(version.transpose()?.flatten())
    }

    /// The version of a number, also one that is gone.
    ///
    /// # Errors
    ///
    /// As for [`latest`](Self::latest).
    pub async fn version(
        &self,
        group: impl IntoGroup<R>,
        number: u64,
    ) -> Result<Option<Version<R>>> {
        let group = self.place(group)?;
        self.load_version(&group, number).await
    }

    /// The version that an alias leads to.
    ///
    /// # Errors
    ///
    /// As for [`latest`](Self::latest).
    pub async fn by_alias(
        &self,
        group: impl IntoGroup<R>,
        alias: &str,
    ) -> Result<Option<Version<R>>> {
        let group = self.place(group)?;
        let place = group.alias(alias)?;
        for _ in 0..FOLLOWED_MAX {
            let item = self.load(&group, &place).await?;
            let number = item.map(|item| Facts::of(self.schema, &item)).transpose()?;
            let Some(number) = number.and_then(|facts| facts.number) else {
                return Ok(None);
            };
            // It may have been moved meanwhile, and what it led to be gone.
            let version = self.load_version(&group, number).await?;
            if version.is_some() || self.tx.is_some() {
                return Ok(version);
            }
        }
        Ok(None)
    }

    /// The versions of a group, also those that are gone, by their numbers.
    pub fn history(&self, group: impl IntoGroup<R>) -> History<'_, R> {
        let group = group.into_group();
        History::new(self.reads(), group.and_then(|group| self.own(group)))
    }

    /// The version that was the latest at a moment, if any was.
    ///
    /// # Errors
    ///
    /// As for [`latest`](Self::latest).
    pub async fn as_of(
        &self,
        group: impl IntoGroup<R>,
        moment: Timestamp,
    ) -> Result<Option<Version<R>>> {
        self.history(group).as_of(moment).await
    }

    /// The latest versions of all groups that have this name, as far as the index knows.
    ///
    /// # Errors
    ///
    /// As for [`latest`](Self::latest).
    pub async fn latest_of_all<K: Attribute>(
        &self,
        index: RegistryIndex<R, K>,
        name: impl Into<K>,
    ) -> Result<Vec<Version<R>>> {
        self.listed_by(index, &name.into(), Some(Status::Latest))
            .await
    }

    /// All versions that are deployed in groups of this name, the latest and the deprecated, as far as the index knows.
    ///
    /// # Errors
    ///
    /// As for [`latest`](Self::latest).
    pub async fn deployed_in<K: Attribute>(
        &self,
        index: RegistryIndex<R, K>,
        name: impl Into<K>,
    ) -> Result<Vec<Version<R>>> {
        self.listed_by(index, &name.into(), None).await
    }

    async fn listed_by<K: Attribute>(
        &self,
        index: RegistryIndex<R, K>,
        name: &K,
        status: Option<Status>,
    ) -> Result<Vec<Version<R>>> {
        let (schema, index) = (self.schema, index.index);
        let key = deployed::index_key(schema, index, name)?;
        deployed::deployed(self.reads(), (schema, index), key, status).await
    }

    /// The latest versions of all groups, in the order of the groups' keys: one query.
    ///
    /// # Errors
    ///
    /// As for [`latest`](Self::latest).
    pub async fn latest_of_groups(&self) -> Result<Vec<Version<R>>>
    where
        R: LatestTogether,
    {
        deployed::latest_of_groups(self.reads(), self.schema).await
    }

    /// Retires a version: it has no status any more, so it leaves the lists of what is deployed, and it has the moment of
    /// its deletion. It stays in the history. Tells whether it was deployed: to retire what is retired, or has expired,
    /// changes nothing.
    ///
    /// If it was the latest, the newest before it that is still deployed is the latest again, and does not expire.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when there is none of this number,
    /// [`Restricted`](crate::ErrorKind::Restricted) when an alias leads to it.
    pub async fn retire(&self, group: impl IntoGroup<R>, number: u64) -> Result<bool> {
        self.change(group, &Op::Retire(number)).await
    }

    /// Keeps a version from expiring. Tells whether it was not pinned before.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when it is not deployed.
    pub async fn pin(&self, group: impl IntoGroup<R>, number: u64) -> Result<bool> {
        let is_pinned = true;
        self.change(group, &Op::Pin { number, is_pinned }).await
    }

    /// Lets a version go that was pinned: if it is deprecated it goes after the retention, counted from now. Tells whether
    /// it was pinned.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when it is not deployed.
    pub async fn unpin(&self, group: impl IntoGroup<R>, number: u64) -> Result<bool> {
        let is_pinned = false;
        self.change(group, &Op::Pin { number, is_pinned }).await
    }

    /// Has an alias lead to a version, from wherever it led. The version does not expire while it does; the one it led to
    /// goes after the retention, counted from now, if it is deprecated and nothing else holds it. Tells whether the alias
    /// has moved.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when the version is not deployed,
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when the name of the alias cannot be in a key.
    pub async fn set_alias(
        &self,
        group: impl IntoGroup<R>,
        alias: &str,
        number: u64,
    ) -> Result<bool> {
        let (name, to) = (alias.to_owned(), Some(number));
        self.change(group, &Op::Alias { name, to }).await
    }

    /// Removes an alias. Tells whether there was one.
    ///
    /// # Errors
    ///
    /// As for [`set_alias`](Self::set_alias).
    pub async fn remove_alias(&self, group: impl IntoGroup<R>, alias: &str) -> Result<bool> {
        let (name, to) = (alias.to_owned(), None);
        self.change(group, &Op::Alias { name, to }).await
    }

    async fn change(&self, group: impl IntoGroup<R>, op: &Op) -> Result<bool> {
        Ok(self.run(&self.place(group)?, op).await?.is_changed)
    }

    /// A group of this registry: those of described ones have one type.
    fn own(&self, group: Group<R>) -> Result<Group<R>> {
        if group.place.is_of(self.schema) {
            return Ok(group);
        }
        let (what, registry) = ("the group is one of another registry", self.schema.name);
        let message = format!("{what}: group={group:?} registry={registry}");
        Err(Error::new(ErrorKind::InvalidUse, message))
    }

    fn place(&self, group: impl IntoGroup<R>) -> Result<GroupPlace> {
        Ok(self.own(group.into_group()?)?.place)
    }

    fn now(&self) -> Timestamp {
        self.db.engine().now()
    }

    fn reads(&self) -> Reads<'_> {
        Reads::of_registry(&self.db, self.tx)
    }

    /// An item, on which the transaction depends from now on.
    async fn load(&self, group: &GroupPlace, place: &Place) -> Result<Option<Item>> {
        let item = self.reads().load_one(group, place).await?;
        if let Some(tx) = self.tx {
            let session = tx.session();
            session.with(|changes: &mut Changes| changes.watch(place))?;
        }
        Ok(item)
    }

    async fn load_version(&self, group: &GroupPlace, number: u64) -> Result<Option<Version<R>>> {
        let item = self.load(group, &group.version(number)).await?;
        item.map(|item| Version::of_item(self.schema, &item, self.now()))
            .transpose()
    }

    const fn work<'a>(&self, tx: &'a Tx, group: &'a GroupPlace) -> Work<'a> {
        Work {
            tx,
            group,
            retention: self.retention,
        }
    }

    async fn run(&self, group: &GroupPlace, op: &Op) -> Result<Done> {
        if let Some(tx) = self.tx {
            return self.work(tx, group).apply(op).await;
        }
        let options = TxOptions::of_pattern(&self.db, "registry", RETRIES);
        let body = async |tx: &Tx| self.work(tx, group).apply(op).await;
        options.run(body).await
    }
}
