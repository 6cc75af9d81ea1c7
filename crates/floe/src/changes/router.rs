//! The router: selects the handlers and sinks of a change.
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
//! Several handlers may match a change. Each completes it once: if one fails, only that one is retried. Dead letters
//! refer to handlers by name; a duplicate name gets a number, and [`named`](Router::named) sets another name.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use floe_store::op::ChangeKind;
use floe_store::{BoxFuture, Item};

use super::change::{Cause, Change};
use super::envelope::Envelope;
use super::handler::{Changed, Failure, Handler, HandlerResult, Inserted, Removed};
use super::outbox::{Message, OutboxRecord, Topics};
use super::pattern::Pattern;
use super::sink::Sink;
use crate::db::Db;
use crate::delivery::{Timeout, guard};
use crate::model::Model;
use crate::watched::Watched;

/// Routes changes to handlers by type, pattern and topic, and to sinks.
///
/// Cheap to clone: copies share the handlers.
#[derive(Clone, Default)]
#[must_use = "a router does nothing until it receives changes"]
pub struct Router {
    pub(super) routes: Vec<Route>,
    /// The source in envelopes, if it is not the table name.
    source: Option<Arc<str>>,
    pub(super) outbox: OutboxRemoval,
}

/// What happens to an outbox record after all its messages are delivered.
#[derive(Clone, Default)]
pub(super) enum OutboxRemoval {
    /// The consumer or receiver removes it, if it has a database.
    #[default]
    ByConsumer,
    /// The router removes it from this database.
    From(Db),
    /// The record stays.
    Kept,
}

/// A handler or sink, and what it selects.
#[derive(Clone)]
pub(super) struct Route {
    pub(super) name: String,
    /// The only table whose changes it selects, if there is one.
    pub(super) table: Option<&'static str>,
    /// The images it requires.
    pub(super) needs: Needs,
    pub(super) target: Target,
}

/// The images that a handler requires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    pub(super) old: bool,
    pub(super) new: bool,
}

impl Needs {
    /// The images of a record of this kind.
    fn of(kind: ChangeKind) -> Self {
        Self {
            old: kind != ChangeKind::Insert,
            new: kind != ChangeKind::Remove,
        }
    }
}

#[derive(Clone)]
pub(super) enum Target {
    /// A target of changes.
    Change(Arc<dyn ChangeTarget>),
    /// A handler of outbox messages, with its topics.
    Outbox(Topics, Arc<dyn Handler<Message>>),
}

/// A target of changes.
pub(super) trait ChangeTarget: Send + Sync {
    /// Whether it selects a change.
    fn matches(&self, envelope: &Envelope) -> bool;

    /// Handles a change that it selects.
    fn handle(&self, envelope: &Envelope) -> BoxFuture<'_, HandlerResult>;

    /// Makes everything handled durable.
    fn flush(&self) -> BoxFuture<'_, HandlerResult> {
        Box::pin(async { Ok(()) })
    }
}

impl Router {
    /// Creates a router without handlers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls the handler for each inserted value of this type.
    pub fn on_inserted<T: Watched>(
        self,
        handler: impl AsyncFn(Inserted<T>) -> HandlerResult + Handler<Inserted<T>>,
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

    /// Calls the handler for each changed value of this type.
    pub fn on_changed<T: Watched>(
        self,
        handler: impl AsyncFn(Changed<T>) -> HandlerResult + Handler<Changed<T>>,
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

    /// Calls the handler for each value of this type that is removed with this cause.
    pub fn on_removed<T: Watched>(
        self,
        cause: Cause,
        handler: impl AsyncFn(Removed<T>) -> HandlerResult + Handler<Removed<T>>,
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
        handler: impl AsyncFn(Change) -> HandlerResult + Handler<Change>,
    ) -> Self {
        let target = Target::Change(Arc::new(Matching { pattern, handler }));
        self.with("matching".to_owned(), None, Needs::default(), target)
    }

    /// Sends each change that the pattern matches to a [sink](super::sink).
    pub fn forward(self, pattern: Pattern, sink: impl Sink) -> Self {
        let target = Target::Change(Arc::new(Forwarded { pattern, sink }));
        self.with("forward".to_owned(), None, Needs::default(), target)
    }

    /// Calls the handler for each [outbox](super::outbox) message of these topics: one topic (`"player.joined"`), or
    /// all with a prefix (`"player.*"`).
    pub fn outbox(
        self,
        topics: impl Into<Topics>,
        handler: impl AsyncFn(Message) -> HandlerResult + Handler<Message>,
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

    /// Renames the handler that was added last. Names are stored in dead letters: after a handler is renamed or
    /// removed, its dead letters cannot be replayed.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        if let Some(mut route) = self.routes.pop() {
            route.name = self.unique_name(name.into());
            self.routes.push(route);
        }
        self
    }

    setters! {
        /// The source that patterns and sinks see. Default: the name of the table.
        pub fn source(source: impl Into<Arc<str>>) => source = Some(source.into());

        /// Removes each outbox record from this database after all its messages are delivered. A
        /// [consumer](super::consumer) removes them from its own database by default.
        pub fn remove_outbox_from(db: &Db) => outbox = OutboxRemoval::From(db.clone());

        /// Keeps outbox records after they are delivered.
        pub fn keep_outbox() => outbox = OutboxRemoval::Kept;
    }

    /// The names of the handlers and sinks, in order.
    pub fn handlers(&self) -> impl Iterator<Item = &str> {
        self.routes.iter().map(|route| route.name.as_str())
    }

    /// The tables that handlers name by type or topic.
    pub fn tables(&self) -> BTreeSet<&'static str> {
        self.routes.iter().filter_map(|route| route.table).collect()
    }

    /// Whether outbox records are removed after they are delivered.
    pub(crate) const fn removes_outbox(&self) -> bool {
        !matches!(self.outbox, OutboxRemoval::Kept)
    }

    /// The images that the handlers of a table require.
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
        let name = self.unique_name(name);
        self.routes.push(Route {
            name,
            table,
            needs,
            target,
        });
        self
    }

    /// Returns the name, with a number if it is in use.
    fn unique_name(&self, name: String) -> String {
        let is_taken = |name: &str| self.handlers().any(|taken| taken == name);
        if !is_taken(&name) {
            return name;
        }
        let mut numbered = (2..).map(|number: u64| format!("{name} {number}"));
        numbered.find(|name| !is_taken(name)).unwrap_or(name)
    }

    /// The envelope of a change for patterns and sinks.
    pub(super) fn envelope(&self, change: &Change) -> Envelope {
        let source = self.source.as_ref().unwrap_or(change.table_name());
        Envelope::new(source.clone(), change.clone())
    }

    /// Makes everything that sinks received durable.
    pub(super) async fn flush(&self, timeout: Option<Timeout<'_>>) -> HandlerResult {
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

/// Decodes an image. A decoding failure is permanent.
fn decode<T: Watched>(change: &Change, image: Option<&Item>) -> Result<T, Failure> {
    let image = image.ok_or_else(|| {
        let view = change.record().view.as_str();
        let message = format!(
            "the change stream lacks an image that the handler requires: table={} view={view}",
            change.table()
        );
        Failure::permanent(message)
    })?;
    T::decode(image).map_err(Failure::permanent)
}

/// A handler of changes of a type.
struct Typed<A, H> {
    table: &'static str,
    kind: ChangeKind,
    cause: Cause,
    recognises: fn(&Item) -> bool,
    read: fn(&Change) -> Result<A, Failure>,
    handler: H,
}

impl<A: Send + 'static, H: Handler<A>> ChangeTarget for Typed<A, H> {
    fn matches(&self, envelope: &Envelope) -> bool {
        let change = envelope.change();
        let is_selected = change.cause().is_none_or(|cause| self.cause.selects(cause));
        is_selected
            && change.kind() == self.kind
            && change.table() == self.table
            && (self.recognises)(change.item())
    }

    fn handle(&self, envelope: &Envelope) -> BoxFuture<'_, HandlerResult> {
        match (self.read)(envelope.change()) {
            Ok(arg) => self.handler.call(arg),
            Err(failure) => Box::pin(async { Err(failure) }),
        }
    }
}

/// A handler of changes that a pattern matches.
struct Matching<H> {
    pattern: Pattern,
    handler: H,
}

impl<H: Handler<Change>> ChangeTarget for Matching<H> {
    fn matches(&self, envelope: &Envelope) -> bool {
        self.pattern.matches(envelope)
    }

    fn handle(&self, envelope: &Envelope) -> BoxFuture<'_, HandlerResult> {
        self.handler.call(envelope.change().clone())
    }
}

/// A sink of changes that a pattern matches.
struct Forwarded<S> {
    pattern: Pattern,
    sink: S,
}

impl<S: Sink> ChangeTarget for Forwarded<S> {
    fn matches(&self, envelope: &Envelope) -> bool {
        self.pattern.matches(envelope)
    }

    fn handle(&self, envelope: &Envelope) -> BoxFuture<'_, HandlerResult> {
        self.sink.send(envelope.clone())
    }

    fn flush(&self) -> BoxFuture<'_, HandlerResult> {
        self.sink.flush()
    }
}
