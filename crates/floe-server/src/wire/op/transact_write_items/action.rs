//! One action of a transaction: a condition check, put, delete or update, which share most of their members.

use std::fmt::{self, Display};

use floe_store::json::{NameKind, Reader, ValidationLayer, ValueFault};
use floe_store::op::{ConditionCheck, DeleteItem, Faults, PutItem, TransactWrite, UpdateItem};
use floe_store::{Error, Item};

use crate::wire::{
    AsItem, AsNames, AsValues, Attributes, ErrorStyle, Map, Members, OrNull, Placeholders, Read,
    RequestError, RequestTableNames, Result, Str, TableName, TransactAttribute, ValueContext,
    begin_structure, check_condition_size, empty_name_error, enum_faults, member, members,
    skip_null,
};

/// An element of `TransactItems`, which must contain one action.
#[derive(Debug, Default)]
pub(crate) struct TransactWriteItem<'a> {
    action: Option<Action<'a>>,
    /// Further actions, which are invalid.
    more: Vec<Action<'a>>,
}

impl<'a> Read<'a> for TransactWriteItem<'a> {
    const CLASS: &'static str = "class com.amazonaws.dynamodb.v20120810.TransactWriteItem";

    fn read(reader: &mut Reader<'a>, context: ValueContext) -> Result<Self> {
        begin_structure(reader, context, Self::class)?;
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

    /// Records missing members and invalid enum values.
    pub(super) fn faults(&self, faults: &mut Faults, at: usize) {
        self.actions().for_each(|action| action.faults(faults, at));
    }

    /// Returns the action, if there is exactly one.
    pub(super) fn into_action(self) -> Result<Action<'a>> {
        match self.action {
            Some(action) if self.more.is_empty() => Ok(action),
            None => Err(RequestError::validation(
                "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request",
            )),
            Some(_) => Err(RequestError::validation(
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
    /// The members of all kinds of actions.
    ActionMembers<'a> {
        "TableName" => table_name: TableName<'a>,
        "ConditionExpression" => condition: Str<'a>,
        "ExpressionAttributeNames" => names: Map<'a, Str<'a>>,
        "ExpressionAttributeValues" => values: Map<'a, TransactAttribute>,
        "ReturnValuesOnConditionCheckFailure" => return_on_failure: Str<'a>,
    }
}

/// The kind of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Check,
    Put,
    Delete,
    Update,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Check, Self::Put, Self::Delete, Self::Update];

    /// Returns the class of the action, which is also its member name.
    const fn class(self) -> &'static str {
        match self {
            Self::Check => "ConditionCheck",
            Self::Put => "Put",
            Self::Delete => "Delete",
            Self::Update => "Update",
        }
    }

    /// Returns the member name of the action in error messages.
    pub(super) const fn member(self) -> &'static str {
        match self {
            Self::Check => "conditionCheck",
            Self::Put => "put",
            Self::Delete => "delete",
            Self::Update => "update",
        }
    }

    /// Returns the error for an invalid condition. An item that is too large is reported first.
    #[cold]
    fn condition_error(self, item: &Item, error: Error) -> RequestError {
        if self != Self::Put {
            return error.into();
        }
        let put = TransactWrite::Put(PutItem::new("", item.clone()));
        put.validate()
            .map_or_else(RequestError::from, |()| error.into())
    }
}

/// An action of any kind.
#[derive(Debug)]
pub(super) struct Action<'a> {
    pub(super) kind: Kind,
    /// The item of a put; the key of other actions.
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
        action.read_members(reader, ValueContext::Member, class)?;
        Ok(action)
    }

    /// Returns the name of the table; empty if it is missing.
    pub(super) fn table_name(&self) -> &str {
        self.members.table_name.as_deref().unwrap_or_default()
    }

    /// Returns the member that contains the attributes.
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
        let keyword = &members.return_on_failure;
        enum_faults(faults, keyword, path, &["ALL_OLD", "NONE"]);
    }

    /// Empty attribute names are reported before all other faults of an action.
    fn check_names_filled(&self) -> Result<()> {
        let attributes = self.attributes.as_ref();
        if attributes.is_some_and(Attributes::has_empty_name) {
            return Err(empty_name_error(ValidationLayer::Older));
        }
        let mut names = self.members.names.iter().flat_map(|names| &names.0);
        if let Some((key, _)) = names.find(|(_, name)| name.is_empty()) {
            return Err(RequestError::validation(format!(
                "ExpressionAttributeNames contains invalid value: Empty attribute name for key {key}"
            )));
        }
        let values = self.members.values.iter().flat_map(|values| &values.0);
        for (key, TransactAttribute(value)) in values {
            if value.fault.as_ref().is_some_and(ValueFault::is_empty_name) {
                let fault = ValueFault::EmptyName(NameKind::Attribute);
                return Err(ErrorStyle::from(ValidationLayer::Older).placeholder_error(&fault, key));
            }
        }
        Ok(())
    }

    /// Converts the action, or returns the first fault in DynamoDB's order.
    pub(super) fn into_write(mut self, names: &mut RequestTableNames) -> Result<TransactWrite> {
        self.check_names_filled()?;
        let mut attributes = self.attributes.take().unwrap_or_default();
        // The nesting depth of a key is checked after the expressions, unlike that of an item.
        let too_deep = attributes
            .fault
            .take_if(|fault| self.kind != Kind::Put && matches!(fault, ValueFault::TooDeep(_)));
        let item = attributes.into_valid(ValidationLayer::Older)?;
        let members = self.members;
        let values = members.values.map(|Map(values)| {
            let values = values.into_iter();
            Map(values.map(|(key, value)| (key, value.0)).collect())
        });
        let placeholders = Placeholders::new(members.names, values, ValidationLayer::Older)?;
        let mut parser = placeholders.parser();
        let update = self.update.as_deref();
        let update = update.map(|text| parser.update(text)).transpose()?;
        let condition = members.condition.as_deref().map(|text| {
            check_condition_size(text, ErrorStyle::from(ValidationLayer::Older))?;
            let condition = parser.condition(text);
            condition.map_err(|error| self.kind.condition_error(&item, error))
        });
        let condition = condition.transpose()?;
        // Placeholders are not checked if there is no expression.
        if update.is_some() || condition.is_some() {
            parser.finish()?;
        }
        if let Some(fault) = too_deep {
            return Err(ErrorStyle::from(ValidationLayer::Older).value_error(&fault));
        }
        let table_name = names.plain_name(members.table_name.unwrap_or_default());
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
            // A condition check without a condition was rejected earlier.
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
