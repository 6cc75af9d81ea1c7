//! The router: which handlers and sinks a change goes to.
//!
//! ```
//! use floe::changes::{Cause, Pattern, Removed, Router};
//! use floe::Model;
//!
//! #[derive(Model)]
//! #[model(stream)]
//! struct Session { #[model(key)] id: String, user: String }
//!
//! let router = Router::new()
//!     .on_removed::<Session>(Cause::Expired, async |removed: Removed<Session>| {
//!         println!("{} was logged out", removed.value.user);
//!         Ok(())
//!     })
//!     .matching(Pattern::parse(r#"{ "detail-type": ["INSERT"] }"#)?, async |change| {
//!         println!("new: {:?}", change.keys());
//!         Ok(())
//!     });
//! assert_eq!(router.handlers().collect::<Vec<_>>(), ["expired Session", "matching"]);
//! # Ok::<(), floe::Error>(())
//! ```
//!
//! Several handlers may want the same change. Each is done with it once: if one fails, it alone is tried again. Handlers
//! have names, by which a parked change remembers which of them it waits for; a name that would be there twice gets a
//! number, and [`named`](Router::named) gives another one.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use floe_store::op::ChangeKind;
use floe_store::{BoxFuture, Item};

use super::change::{Cause, Change};
use super::envelope::Envelope;
use super::handler::{Changed, Failure, Handled, Handler, Inserted, Removed};
use super::outbox::{Message, OutboxRecord, Topics};
use super::pattern::Pattern;
use super::sink::Sink;
use crate::db::Db;
use crate::delivery::{Timeout, guard};
use crate::model::Model;
use crate::watched::Watched;

/// Where changes go: handlers by type, by pattern and by topic, and sinks.
///
/// Cheap to clone: copies share the handlers.
#[derive(Clone, Default)]
#[must_use = "a router does nothing until it is given changes"]
pub struct Router {
    pub(super) routes: Vec<Route>,
    /// What patterns and sinks see as the source, if it is not the name of the table.
    source: Option<Arc<str>>,
    pub(super) outbox: OutboxEnd,
}

/// What becomes of a record of the outbox when all its messages are delivered.
#[derive(Clone, Default)]
pub(super) enum OutboxEnd {
    /// Whoever runs the router removes it, if there is a database to do so.
    #[default]
    Removed,
    /// It is removed from this database.
    RemovedFrom(Db),
    /// It stays.
    Kept,
}

/// A handler or sink, and what it is for.
#[derive(Clone)]
pub(super) struct Route {
    pub(super) name: String,
    /// The table whose changes it wants, if it wants no others.
    pub(super) table: Option<&'static str>,
    /// Whether it needs the item before, and after the change.
    pub(super) needs: Needs,
    pub(super) target: Target,
}

/// The images that a handler cannot do without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    pub(super) old: bool,
    pub(super) new: bool,
}

impl Needs {
    /// What a record of this kind tells of.
    fn of(kind: ChangeKind) -> Self {
        Self {
            old: kind != ChangeKind::Insert,
            new: kind != ChangeKind::Remove,
        }
    }
}

#[derive(Clone)]
pub(super) enum Target {
    /// What takes changes, and which.
    Change(Arc<dyn TakesChange>),
    /// What takes messages of the outbox, and of which topics.
    Outbox(Topics, Arc<dyn Handler<Message>>),
}

/// What takes changes.
pub(super) trait TakesChange: Send + Sync {
    /// Whether it wants a change.
    fn wants(&self, envelope: &Envelope) -> bool;

    /// Handles a change that it wants.
    fn take(&self, envelope: &Envelope) -> BoxFuture<'_, Handled>;

    /// Makes lasting what it has taken.
    fn flush(&self) -> BoxFuture<'_, Handled> {
        Box::pin(async { Ok(()) })
    }
}

impl Router {
    /// A router to nowhere.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls the handler for each value of this type that is inserted.
    pub fn on_inserted<T: Watched>(
        self,
        handler: impl AsyncFn(Inserted<T>) -> Handled + Handler<Inserted<T>>,
    ) -> Self {
        let read = |change: &Change| {
            Ok(Inserted {
                value: decode(change, change.new_image())?,
                change: change.clone(),
            })
        };
        let kind = (ChangeKind::Insert, Cause::Any);
        self.typed::<T, _>("inserted", kind, read, handler)
    }

    /// Calls the handler for each value of this type that is changed.
    pub fn on_changed<T: Watched>(
        self,
        handler: impl AsyncFn(Changed<T>) -> Handled + Handler<Changed<T>>,
    ) -> Self {
        let read = |change: &Change| {
            Ok(Changed {
                old: decode(change, change.old_image())?,
                new: decode(change, change.new_image())?,
                change: change.clone(),
            })
        };
        let kind = (ChangeKind::Modify, Cause::Any);
        self.typed::<T, _>("changed", kind, read, handler)
    }

    /// Calls the handler for each value of this type that is removed, for this cause.
    pub fn on_removed<T: Watched>(
        self,
        cause: Cause,
        handler: impl AsyncFn(Removed<T>) -> Handled + Handler<Removed<T>>,
    ) -> Self {
        let read = |change: &Change| {
            Ok(Removed {
                value: decode(change, change.old_image())?,
                change: change.clone(),
            })
        };
        let kind = (ChangeKind::Remove, cause);
        self.typed::<T, _>(cause.as_str(), kind, read, handler)
    }

    /// Calls the handler for each change that the pattern matches.
    pub fn matching(
        self,
        pattern: Pattern,
        handler: impl AsyncFn(Change) -> Handled + Handler<Change>,
    ) -> Self {
        let target = Target::Change(Arc::new(Matching { pattern, handler }));
        self.with("matching".to_owned(), None, Needs::default(), target)
    }

    /// Sends each change that the pattern matches to a [sink](super::sink).
    pub fn forward(self, pattern: Pattern, sink: impl Sink) -> Self {
        let target = Target::Change(Arc::new(Forwarded { pattern, sink }));
        self.with("forward".to_owned(), None, Needs::default(), target)
    }

    /// Calls the handler for each message of the [outbox](super::outbox) of these topics: one (`"player.joined"`), or all
    /// that begin so (`"player.*"`).
    pub fn outbox(
        self,
        topics: impl Into<Topics>,
        handler: impl AsyncFn(Message) -> Handled + Handler<Message>,
    ) -> Self {
        let topics = topics.into();
        let name = format!("outbox {topics}");
        let table = Some(OutboxRecord::SCHEMA.table);
        let needs = Needs::of(ChangeKind::Insert);
        self.with(
            name,
            table,
            needs,
            Target::Outbox(topics, Arc::new(handler)),
        )
    }

    /// Gives the handler that was added last another name. Names are stored with parked changes: who renames or removes a
    /// handler cannot replay those.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        if let Some(mut route) = self.routes.pop() {
            route.name = self.free_name(name.into());
            self.routes.push(route);
        }
        self
    }

    setters! {
        /// What patterns and sinks see as the source, instead of the name of the table.
        pub fn source(source: impl Into<Arc<str>>) => source = Some(source.into());

        /// Removes each record of the outbox from this database when all its messages are delivered. A
        /// [consumer](super::consumer) does so from its own without being told.
        pub fn remove_outbox_from(db: &Db) => outbox = OutboxEnd::RemovedFrom(db.clone());

        /// Leaves the records of the outbox where they are when they are delivered.
        pub fn keep_outbox() => outbox = OutboxEnd::Kept;
    }

    /// The names of the handlers and sinks, in their order.
    pub fn handlers(&self) -> impl Iterator<Item = &str> {
        self.routes.iter().map(|route| route.name.as_str())
    }

    /// The tables whose changes are asked for by type or by topic.
    pub fn tables(&self) -> BTreeSet<&'static str> {
        self.routes.iter().filter_map(|route| route.table).collect()
    }

    /// Whether records of the outbox are removed once they are delivered.
    pub(crate) const fn removes_outbox(&self) -> bool {
        !matches!(self.outbox, OutboxEnd::Kept)
    }

    /// The images that the handlers of a table's changes need.
    pub(super) fn needs(&self, table: &str) -> Needs {
        let routes = self
            .routes
            .iter()
            .filter(|route| route.table == Some(table));
        routes.fold(Needs::default(), |needs, route| Needs {
            old: needs.old || route.needs.old,
            new: needs.new || route.needs.new,
        })
    }

    fn typed<T: Watched, A: Send + 'static>(
        self,
        what: &str,
        (kind, cause): (ChangeKind, Cause),
        read: fn(&Change) -> Result<A, Failure>,
        handler: impl Handler<A>,
    ) -> Self {
        let target = Typed {
            table: T::table(),
            kind,
            cause,
            recognises: T::recognises,
            read,
            handler,
        };
        let name = format!("{what} {}", T::NAME);
        let target = Target::Change(Arc::new(target));
        self.with(name, Some(T::table()), Needs::of(kind), target)
    }

    fn with(
        mut self,
        name: String,
        table: Option<&'static str>,
        needs: Needs,
        target: Target,
    ) -> Self {
        let name = self.free_name(name);
        self.routes.push(Route {
            name,
            table,
            needs,
            target,
        });
        self
    }

    /// The name, with a number if it is taken.
    fn free_name(&self, name: String) -> String {
        let is_taken = |name: &str| self.handlers().any(|taken| taken == name);
        if !is_taken(&name) {
            return name;
        }
        let mut numbered = (2..).map(|number: u64| format!("{name} {number}"));
        numbered.find(|name| !is_taken(name)).unwrap_or(name)
    }

    /// The envelope in which patterns and sinks see a change.
    pub(super) fn envelope(&self, change: &Change) -> Envelope {
        let source = self.source.as_ref().unwrap_or(change.table_name());
        Envelope::new(source.clone(), change.clone())
    }

    /// Makes lasting what sinks have taken.
    pub(super) async fn flush(&self, timeout: Option<Timeout<'_>>) -> Handled {
        for route in &self.routes {
            if let Target::Change(target) = &route.target {
                guard(timeout, async { target.flush().await }).await??;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let handlers: Vec<&str> = self.handlers().collect();
        f.debug_struct("Router")
            .field("handlers", &handlers)
            .finish_non_exhaustive()
    }
}

/// The value of an image. What cannot be read cannot be read the next time either.
fn decode<T: Watched>(change: &Change, image: Option<&Item>) -> Result<T, Failure> {
    let image = image.ok_or_else(|| {
        let view = change.record().view.as_str();
        let message = format!(
            "the change stream holds no image that the handler needs: table={} view={view}",
            change.table()
        );
        Failure::permanent(message)
    })?;
    T::decode(image).map_err(Failure::permanent)
}

/// A handler for the changes of a type.
struct Typed<A, H> {
    table: &'static str,
    kind: ChangeKind,
    cause: Cause,
    recognises: fn(&Item) -> bool,
    read: fn(&Change) -> Result<A, Failure>,
    handler: H,
}

impl<A: Send + 'static, H: Handler<A>> TakesChange for Typed<A, H> {
    fn wants(&self, envelope: &Envelope) -> bool {
        let change = envelope.change();
        let is_meant = change.cause().is_none_or(|cause| self.cause.means(cause));
        is_meant
            && change.kind() == self.kind
            && change.table() == self.table
            && (self.recognises)(change.item())
    }

    fn take(&self, envelope: &Envelope) -> BoxFuture<'_, Handled> {
        match (self.read)(envelope.change()) {
            Ok(arg) => self.handler.call(arg),
            Err(failure) => Box::pin(async { Err(failure) }),
        }
    }
}

/// A handler for what a pattern matches.
struct Matching<H> {
    pattern: Pattern,
    handler: H,
}

impl<H: Handler<Change>> TakesChange for Matching<H> {
    fn wants(&self, envelope: &Envelope) -> bool {
        self.pattern.matches(envelope)
    }

    fn take(&self, envelope: &Envelope) -> BoxFuture<'_, Handled> {
        self.handler.call(envelope.change().clone())
    }
}

/// A sink for what a pattern matches.
struct Forwarded<S> {
    pattern: Pattern,
    sink: S,
}

impl<S: Sink> TakesChange for Forwarded<S> {
    fn wants(&self, envelope: &Envelope) -> bool {
        self.pattern.matches(envelope)
    }

    fn take(&self, envelope: &Envelope) -> BoxFuture<'_, Handled> {
        self.sink.send(envelope.clone())
    }

    fn flush(&self) -> BoxFuture<'_, Handled> {
        self.sink.flush()
    }
}
