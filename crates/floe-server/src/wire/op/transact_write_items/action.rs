//! One action of a transaction: a check, a put, a delete or an update, which have most of their members in common.

use std::fmt::{self, Display};

use floe_store::json::{Layer, Named, Reader, ValueFault};
use floe_store::op::{ConditionCheck, DeleteItem, Faults, PutItem, TransactWrite, UpdateItem};
use floe_store::{Error, Item};

use crate::wire::{
    AsItem, AsNames, AsValues, Attributes, GivenNames, Map, Members, OrNull, Place, Placeholders,
    Read, Refusal, Result, Str, TableName, TransactAttribute, Voice, begin_structure,
    check_condition_size, member, members, nameless, skip_null, word_faults,
};

/// An element of `TransactItems`, which must hold one action.
#[derive(Debug, Default)]
pub(crate) struct TransactWriteItem<'a> {
    action: Option<Action<'a>>,
    /// Those that are too many.
    more: Vec<Action<'a>>,
}

impl<'a> Read<'a> for TransactWriteItem<'a> {
    const CLASS: &'static str = "class com.amazonaws.dynamodb.v20120810.TransactWriteItem";

    fn read(reader: &mut Reader<'a>, place: Place) -> Result<Self> {
        begin_structure(reader, place, Self::class)?;
        let mut item = Self::default();
        while let Some(name) = reader.next_name()? {
            let kind = Kind::ALL.into_iter().find(|kind| kind.class() == name);
            match kind {
                None => reader.skip()?,
                Some(_) if skip_null(reader)? => {}
                Some(kind) => {
                    let action = Action::read(kind, reader)?;
                    match item.action {
                        None => item.action = Some(action),
                        Some(_) => item.more.push(action),
                    }
                }
            }
        }
        Ok(item)
    }
}

impl<'a> TransactWriteItem<'a> {
    fn actions(&self) -> impl Iterator<Item = &Action<'a>> {
        self.action.iter().chain(&self.more)
    }

    /// Adds what is missing, and words that are none.
    pub(super) fn faults(&self, faults: &mut Faults, at: usize) {
        self.actions().for_each(|action| action.faults(faults, at));
    }

    /// The action, if it is one.
    pub(super) fn into_action(self) -> Result<Action<'a>> {
        match self.action {
            Some(action) if self.more.is_empty() => Ok(action),
            None => Err(Refusal::validation(
                "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request",
            )),
            Some(_) => Err(Refusal::validation(
                "TransactItems can only contain one of Check, Put, Update or Delete",
            )),
        }
    }
}

impl Display for TransactWriteItem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |kind: Kind| OrNull(self.actions().find(|action| action.kind == kind));
        write!(
            f,
            "TransactWriteItem(conditionCheck={}, put={}, delete={}, update={})",
            of(Kind::Check),
            of(Kind::Put),
            of(Kind::Delete),
            of(Kind::Update)
        )
    }
}

members! {
    /// The members that all kinds of actions have.
    ActionMembers<'a> {
        "TableName" => table_name: TableName<'a>,
        "ConditionExpression" => condition: Str<'a>,
        "ExpressionAttributeNames" => names: Map<'a, Str<'a>>,
        "ExpressionAttributeValues" => values: Map<'a, TransactAttribute>,
        "ReturnValuesOnConditionCheckFailure" => return_on_failure: Str<'a>,
    }
}

/// Which kind of action it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Check,
    Put,
    Delete,
    Update,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Check, Self::Put, Self::Delete, Self::Update];

    /// The class of the action, as which the member of an element that holds one is named.
    const fn class(self) -> &'static str {
        match self {
            Self::Check => "ConditionCheck",
            Self::Put => "Put",
            Self::Delete => "Delete",
            Self::Update => "Update",
        }
    }

    /// The member of an element that holds such an action, as faults name it.
    pub(super) const fn member(self) -> &'static str {
        match self {
            Self::Check => "conditionCheck",
            Self::Put => "put",
            Self::Delete => "delete",
            Self::Update => "update",
        }
    }

    /// Refuses an action for its condition, unless it puts an item that is too large, which comes first.
    #[cold]
    fn refuse_condition(self, item: &Item, error: Error) -> Refusal {
        if self != Self::Put {
            return error.into();
        }
        let put = TransactWrite::Put(PutItem::new("", item.clone()));
        put.validate().map_or_else(Refusal::from, |()| error.into())
    }
}

/// An action of any kind.
#[derive(Debug)]
pub(super) struct Action<'a> {
    pub(super) kind: Kind,
    /// The item of a put, the key of the others.
    attributes: Option<Attributes>,
    update: Option<Str<'a>>,
    members: ActionMembers<'a>,
}

impl<'a> Members<'a> for Action<'a> {
    fn read_member(&mut self, name: &str, reader: &mut Reader<'a>) -> Result<bool> {
        match (name, self.kind) {
            ("Item", Kind::Put) => self.attributes = member(reader)?,
            ("Key", Kind::Check | Kind::Delete | Kind::Update) => {
                self.attributes = member(reader)?;
            }
            ("UpdateExpression", Kind::Update) => self.update = member(reader)?,
            _ => return self.members.read_member(name, reader),
        }
        Ok(true)
    }
}

impl<'a> Action<'a> {
    fn read(kind: Kind, reader: &mut Reader<'a>) -> Result<Self> {
        let mut action = Self {
            kind,
            attributes: None,
            update: None,
            members: ActionMembers::default(),
        };
        let class = || format!("class com.amazonaws.dynamodb.v20120810.{}", kind.class());
        action.read_members(reader, Place::Member, class)?;
        Ok(action)
    }

    /// The name of the table; empty if there is none.
    pub(super) fn table_name(&self) -> &str {
        self.members.table_name.as_deref().unwrap_or_default()
    }

    /// The member that holds the attributes.
    const fn attributes_member(&self) -> &'static str {
        match self.kind {
            Kind::Put => "item",
            Kind::Check | Kind::Delete | Kind::Update => "key",
        }
    }

    fn faults(&self, faults: &mut Faults, at: usize) {
        let member = self.kind.member();
        let mut missing = |name: &str, missing: bool| {
            if missing {
                faults.add_null(format_args!("transactItems.{at}.member.{member}.{name}"));
            }
        };
        missing(self.attributes_member(), self.attributes.is_none());
        let is_update = self.kind == Kind::Update;
        missing("updateExpression", is_update && self.update.is_none());
        let members = &self.members;
        missing("tableName", members.table_name.is_none());
        let is_check = self.kind == Kind::Check;
        let lacks_condition = is_check && members.condition.is_none();
        missing("conditionExpression", lacks_condition);
        let name = "returnValuesOnConditionCheckFailure";
        let path = format_args!("transactItems.{at}.member.{member}.{name}");
        let word = &members.return_on_failure;
        word_faults(faults, word, path, &["ALL_OLD", "NONE"]);
    }

    /// Names of attributes come before everything else in an action.
    fn check_names_filled(&self) -> Result<()> {
        let attributes = self.attributes.as_ref();
        if attributes.is_some_and(Attributes::is_nameless) {
            return Err(nameless(Layer::Older));
        }
        let mut names = self.members.names.iter().flat_map(|names| &names.0);
        if let Some((key, _)) = names.find(|(_, name)| name.is_empty()) {
            return Err(Refusal::validation(format!(
                "ExpressionAttributeNames contains invalid value: Empty attribute name for key {key}"
            )));
        }
        let values = self.members.values.iter().flat_map(|values| &values.0);
        for (key, TransactAttribute(value)) in values {
            if value.fault.as_ref().is_some_and(ValueFault::is_nameless) {
                let fault = ValueFault::EmptyName(Named::Attribute);
                return Err(Voice::from(Layer::Older).refuse_placeholder(&fault, key));
            }
        }
        Ok(())
    }

    /// The action that it asks for, or what DynamoDB finds first of all that is wrong with it.
    pub(super) fn into_write(mut self, names: &mut GivenNames) -> Result<TransactWrite> {
        self.check_names_filled()?;
        let mut attributes = self.attributes.take().unwrap_or_default();
        // How deep a key is nested is looked at after the expressions, unlike an item that is put.
        let too_deep = attributes
            .fault
            .take_if(|fault| self.kind != Kind::Put && matches!(fault, ValueFault::TooDeep(_)));
        let item = attributes.sound(Layer::Older)?;
        let members = self.members;
        let values = members.values.map(|Map(values)| {
            let values = values.into_iter();
            Map(values.map(|(key, value)| (key, value.0)).collect())
        });
        let placeholders = Placeholders::new(members.names, values, Layer::Older)?;
        let mut parser = placeholders.parser();
        let update = self.update.as_deref();
        let update = update.map(|text| parser.update(text)).transpose()?;
        let condition = members.condition.as_deref().map(|text| {
            check_condition_size(text, Voice::from(Layer::Older))?;
            let condition = parser.condition(text);
            condition.map_err(|error| self.kind.refuse_condition(&item, error))
        });
        let condition = condition.transpose()?;
        // Placeholders are not looked at if there is nothing that they could stand in.
        if update.is_some() || condition.is_some() {
            parser.finish()?;
        }
        if let Some(fault) = too_deep {
            return Err(Voice::from(Layer::Older).refuse_value(&fault));
        }
        let table_name = names.plain(members.table_name.unwrap_or_default());
        let return_old_on_failure = members.return_on_failure.as_deref() == Some("ALL_OLD");
        Ok(match (self.kind, condition) {
            (Kind::Put, condition) => TransactWrite::Put(PutItem {
                condition,
                return_old_on_failure,
                ..PutItem::new(table_name, item)
            }),
            (Kind::Delete, condition) => TransactWrite::Delete(DeleteItem {
                condition,
                return_old_on_failure,
                ..DeleteItem::new(table_name, item)
            }),
            (Kind::Check, Some(condition)) => TransactWrite::Check(ConditionCheck {
                return_old_on_failure,
                ..ConditionCheck::new(table_name, item, condition)
            }),
            // A check without a condition has been refused before.
            (Kind::Update | Kind::Check, condition) => TransactWrite::Update(UpdateItem {
                condition,
                return_old_on_failure,
                ..UpdateItem::new(table_name, item, update.unwrap_or_default())
            }),
        })
    }
}

impl Display for Action<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (class, members) = (self.kind.class(), &self.members);
        let attributes = self.attributes.as_ref();
        let attributes = OrNull(attributes.map(|attributes| AsItem(&attributes.item)));
        write!(f, "{class}({}={attributes}", self.attributes_member())?;
        if self.kind == Kind::Update {
            write!(f, ", updateExpression={}", OrNull(self.update.as_deref()))?;
        }
        write!(
            f,
            ", tableName={}, conditionExpression={}, expressionAttributeNames={}, expressionAttributeValues={}, \
             returnValuesOnConditionCheckFailure={}, workloadProfileName=null)",
            OrNull(members.table_name.as_deref()),
            OrNull(members.condition.as_deref()),
            OrNull(members.names.as_ref().map(AsNames)),
            OrNull(members.values.as_ref().map(AsValues)),
            OrNull(members.return_on_failure.as_deref()),
        )
    }
}
