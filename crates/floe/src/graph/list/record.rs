//! Sets an entity together with lists of its edges, in one commit if they fit.

use super::commit::Change;
use super::plan::{ListChange, NewEdge};
use crate::error::{Error, Result};
use crate::graph::changes::Changes;
use crate::graph::entity::EntityChange;
use crate::graph::handle::Graph;
use crate::graph::keys::EntityKey;
use crate::graph::node::{Node, ToKey, ToKeyOf, ToNode};
use crate::graph::operation::{Operation, OperationContext, Outcome};
use crate::graph::schema::{GraphSchema, Relation, WithoutAttributes};

/// An entity with lists of its edges; see [`Graph::set_record`].
///
/// ```
/// use floe::graph::{GraphSchema, Record, Relation};
/// use floe::{Db, Entity, Error};
///
/// #[derive(Entity)]
/// struct Team { id: String }
///
/// #[derive(Entity)]
/// struct Person { id: String }
///
/// enum Members {}
///
/// impl Relation for Members {
///     const PREDICATE: &'static str = "member";
///     type Subject = Team;
///     type Object = Person;
///     type Attributes = ();
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let db = Db::memory()?.with_graph(GraphSchema::new().relation::<Members>());
/// db.ensure_graph().await?;
/// let graph = db.graph("acme");
/// let (ada, bo) = (Person { id: "ada".to_owned() }, Person { id: "bo".to_owned() });
/// graph.create(&ada).await?;
/// graph.create(&bo).await?;
///
/// let team = Team { id: "t-1".to_owned() };
/// let record = Record::new(&team)?.related::<Members>([ada, bo]);
/// graph.set_record(&record).await?;
/// assert_eq!(graph.related::<Members>(&team).keys().await?.len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Record<E = Node> {
    node: Node,
    lists: Vec<RecordList>,
    entity: std::marker::PhantomData<fn() -> E>,
}

/// A list of a record.
#[derive(Clone, Debug)]
struct RecordList {
    predicate: String,
    edges: Result<Vec<NewEdge>>,
    /// Checks that its relation is declared, if it is typed.
    check: Option<fn(&GraphSchema) -> Result<()>>,
}

impl<E: ToNode> Record<E> {
    /// Creates a record of an entity without lists.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if a field cannot be stored.
    pub fn new(entity: &E) -> Result<Self> {
        Ok(Self {
            node: entity.to_node()?,
            lists: Vec::new(),
            entity: std::marker::PhantomData,
        })
    }

    /// Sets the objects of a relation, like [`replace`](crate::graph::List::replace).
    #[must_use]
    pub fn related<R: Relation<Attributes: WithoutAttributes>>(
        self,
        objects: impl IntoIterator<Item = impl ToKeyOf<R::Object>>,
    ) -> Self
    where
        E: ToKeyOf<R::Subject>,
    {
        let edges = Ok(super::plain(objects));
        self.with(R::PREDICATE, edges, Some(GraphSchema::check_relation::<R>))
    }

    /// Sets the objects of a relation and the attributes of its edges, like
    /// [`replace_with`](crate::graph::List::replace_with).
    #[must_use]
    pub fn related_with<R: Relation>(
        self,
        objects: impl IntoIterator<Item = (impl ToKeyOf<R::Object>, R::Attributes)>,
    ) -> Self
    where
        E: ToKeyOf<R::Subject>,
    {
        let edges = super::with_attributes(objects);
        self.with(R::PREDICATE, edges, Some(GraphSchema::check_relation::<R>))
    }

    /// Sets the objects of a predicate, untyped.
    #[must_use]
    pub fn related_by(
        self,
        predicate: impl Into<String>,
        objects: impl IntoIterator<Item = impl ToKey>,
    ) -> Self {
        self.with(predicate, Ok(super::plain(objects)), None)
    }

    fn with(
        mut self,
        predicate: impl Into<String>,
        edges: Result<Vec<NewEdge>>,
        check: Option<fn(&GraphSchema) -> Result<()>>,
    ) -> Self {
        let predicate = predicate.into();
        self.lists.retain(|list| list.predicate != predicate);
        self.lists.push(RecordList {
            predicate,
            edges,
            check,
        });
        self
    }
}

impl Graph<'_> {
    /// Replaces the stored entity, or creates it, and replaces the lists of the record. Other lists of the entity stay.
    ///
    /// If that does not fit into one commit, the entity is set first, and then one list after the other; each of them is
    /// completed like a wide [`replace`](crate::graph::List::replace). If the process stops, lists that were not begun
    /// are unchanged: call it again.
    ///
    /// # Errors
    ///
    /// As for [`set`](Self::set) and [`replace`](crate::graph::List::replace).
    pub async fn set_record<E: ToNode>(&self, record: &Record<E>) -> Result<()> {
        let mut lists = Vec::with_capacity(record.lists.len());
        for list in &record.lists {
            if let Some(check) = list.check {
                check(self.db.graph_schema())?;
            }
            lists.push(Change {
                subject: record.node.key.clone(),
                predicate: list.predicate.clone(),
                change: ListChange::Replace(list.edges.clone()?),
            });
        }
        let entity = EntityChange::Set(record.node.clone());
        let set = SetRecord { entity, lists };
        let steps = async {
            self.write(&set.entity).await?;
            for list in &set.lists {
                let steps = self.change_in_steps(list);
                self.run_or_step(list, &list.subject, steps).await?;
            }
            Ok::<(), Error>(())
        };
        let key: &EntityKey = &record.node.key;
        self.run_or_step(&set, key, steps).await
    }
}

/// The change of an entity and of its lists in one commit.
struct SetRecord {
    entity: EntityChange<'static>,
    lists: Vec<Change>,
}

impl Operation for SetRecord {
    type Output = Outcome<()>;

    async fn apply(&self, context: OperationContext<'_>) -> Result<Outcome<()>> {
        let written = self.entity.apply(context).await?;
        let subject = context.scoped_key(&written.node.key)?;
        let (schema, items_max) = (context.schema(), context.items_max());
        let mut items = context.changes(|changes| changes.entity_items(schema, &subject))??;
        let mut plans = Vec::with_capacity(self.lists.len());
        for list in &self.lists {
            let plan = list.plan(context).await?;
            // The entity is the subject of all lists.
            items += plan.items(&subject.key) - 1;
            plans.push(plan);
        }
        if context.is_own && (written.entries_follow || items > items_max) {
            // Discards all changes: the transaction has no others.
            context.changes(|changes| drop(std::mem::take::<Changes>(changes)))?;
            return Ok(Outcome::TooWide);
        }
        for (list, plan) in self.lists.iter().zip(plans) {
            list.record(context, plan).await?;
        }
        Ok(Outcome::Completed(()))
    }
}
