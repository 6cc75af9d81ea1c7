//! One action of a transaction: a check, a put, a delete or an update, which have most of their members in common.

use std::fmt::{self, Display};

use floe_store::json::{Layer, Named, Reader, ValueFault};
use floe_store::limits::EXPRESSION_BYTES_MAX;
use floe_store::op::{ConditionCheck, DeleteItem, Faults, PutItem, TransactWrite, UpdateItem};
use floe_store::{Error, Item};

use crate::wire::echo::{AsItem, AsNames, AsValues, OrNull};
use crate::wire::expressions::Placeholders;
use crate::wire::parameter::{GivenNames, TableName};
use crate::wire::read::{Map, Place, Read, Str, begin_structure, member, members, service_class};
use crate::wire::refusal::{Refusal, Result};
use crate::wire::value::{Attributes, TransactAttribute};
use crate::wire::voice::Voice;

/// An element of `TransactItems`, which must hold one action.
#[derive(Debug, Default)]
pub(crate) struct TransactWriteItem<'a> {
    action: Option<Action<'a>>,
    /// Those that are too many.
    more: Vec<Action<'a>>,
}

impl<'a> Read<'a> for TransactWriteItem<'a> {
    fn class() -> String {
        format!("class {}", service_class("TransactWriteItem"))
    }

    fn read(reader: &mut Reader<'a>, place: Place) -> Result<Self> {
        begin_structure(reader, place, Self::class)?;
        let mut item = Self::default();
        while let Some(name) = reader.next_name()? {
            let action = match &*name {
                "ConditionCheck" => member(reader)?.map(Check::into_action),
                "Put" => member(reader)?.map(Put::into_action),
                "Delete" => member(reader)?.map(Delete::into_action),
                "Update" => member(reader)?.map(Update::into_action),
                _ => {
                    reader.skip()?;
                    continue;
                }
            };
            match item.action {
                None => item.action = action,
                Some(_) => item.more.extend(action),
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

/// Declares the members of an action, which holds these attributes: its own, and those that all actions have.
macro_rules! action {
    (
        $(#[$doc:meta])*
        $name:ident as $class:literal of $attributes:ident { $($member:literal => $field:ident: $type:ty,)* }
        $(with $update:ident)?
    ) => {
        members! {
            $(#[$doc])*
            $name<'a> as $class {
                $($member => $field: $type,)*
                "TableName" => table_name: TableName<'a>,
                "ConditionExpression" => condition_expression: Str<'a>,
                "ExpressionAttributeNames" => expression_attribute_names: Map<'a, Str<'a>>,
                "ExpressionAttributeValues" => expression_attribute_values: Map<'a, TransactAttribute>,
                "ReturnValuesOnConditionCheckFailure" => return_values_on_condition_check_failure: Str<'a>,
            }
        }

        impl<'a> $name<'a> {
            fn into_action(self) -> Action<'a> {
                let update = None;
                $(let update = update.or(self.$update);)?
                Action {
                    kind: Kind::$name,
                    table_name: self.table_name,
                    attributes: self.$attributes,
                    update,
                    condition: self.condition_expression,
                    names: self.expression_attribute_names,
                    values: self.expression_attribute_values,
                    return_on_failure: self.return_values_on_condition_check_failure,
                }
            }
        }
    };
}

action! {
    /// Writes nothing, but must hold.
    Check as "ConditionCheck" of key { "Key" => key: Attributes, }
}
action! {
    /// Sets the whole item.
    Put as "Put" of item { "Item" => item: Attributes, }
}
action! {
    /// Removes an item.
    Delete as "Delete" of key { "Key" => key: Attributes, }
}
action! {
    /// Changes parts of an item.
    Update as "Update" of key { "Key" => key: Attributes, "UpdateExpression" => update_expression: Str<'a>, }
    with update_expression
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
    /// The member of an element that holds such an action.
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
    pub(super) table_name: Option<TableName<'a>>,
    /// The item of a put, the key of the others.
    attributes: Option<Attributes>,
    update: Option<Str<'a>>,
    condition: Option<Str<'a>>,
    names: Option<Map<'a, Str<'a>>>,
    values: Option<Map<'a, TransactAttribute>>,
    return_on_failure: Option<Str<'a>>,
}

impl Action<'_> {
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
        missing("tableName", self.table_name.is_none());
        let is_check = self.kind == Kind::Check;
        missing("conditionExpression", is_check && self.condition.is_none());
        if let Some(word) = &self.return_on_failure {
            let name = "returnValuesOnConditionCheckFailure";
            let path = format_args!("transactItems.{at}.member.{member}.{name}");
            faults.one_of(word, path, &["ALL_OLD", "NONE"]);
        }
    }

    /// Names of attributes come before everything else in an action.
    fn check_names_filled(&self) -> Result<()> {
        let is_nameless = |fault: Option<&ValueFault>| fault.is_some_and(ValueFault::is_nameless);
        let voice = Voice::from(Layer::Older);
        let nameless = ValueFault::EmptyName(Named::Attribute);
        let attributes = self.attributes.as_ref();
        if is_nameless(attributes.and_then(|attributes| attributes.fault.as_ref())) {
            return Err(voice.refuse_value(&nameless));
        }
        let mut names = self.names.iter().flat_map(|names| &names.0);
        if let Some((key, _)) = names.find(|(_, name)| name.is_empty()) {
            return Err(Refusal::validation(format!(
                "ExpressionAttributeNames contains invalid value: Empty attribute name for key {key}"
            )));
        }
        let mut values = self.values.iter().flat_map(|values| &values.0);
        match values.find(|(_, value)| is_nameless(value.0.fault.as_ref())) {
            Some((key, _)) => Err(voice.refuse_placeholder(&nameless, key)),
            None => Ok(()),
        }
    }
}

impl Action<'_> {
    /// The action that it asks for, or what DynamoDB finds first of all that is wrong with it.
    pub(super) fn into_write(mut self, names: &mut GivenNames) -> Result<TransactWrite> {
        self.check_names_filled()?;
        let mut attributes = self.attributes.take().unwrap_or_default();
        // How deep a key is nested is looked at after the expressions, unlike an item that is put.
        let too_deep = attributes
            .fault
            .take_if(|fault| self.kind != Kind::Put && matches!(fault, ValueFault::TooDeep(_)));
        let item = attributes.sound(Layer::Older)?;
        let values = self.values.map(|Map(values)| {
            let values = values.into_iter();
            Map(values.map(|(key, value)| (key, value.0)).collect())
        });
        let placeholders = Placeholders::new(self.names, values, Layer::Older)?;
        let mut parser = placeholders.parser();
        let update = match &self.update {
            Some(text) => Some(parser.update(text)?),
            None => None,
        };
        let condition = match &self.condition {
            Some(text) => {
                check_condition_size(text)?;
                let condition = parser.condition(text);
                Some(condition.map_err(|error| self.kind.refuse_condition(&item, error))?)
            }
            None => None,
        };
        // Placeholders are not looked at if there is nothing that they could stand in.
        if update.is_some() || condition.is_some() {
            parser.finish()?;
        }
        if let Some(fault) = too_deep {
            return Err(Voice::from(Layer::Older).refuse_value(&fault));
        }
        let table_name = names.plain(self.table_name.unwrap_or_default());
        let return_old_on_failure = self.return_on_failure.as_deref() == Some("ALL_OLD");
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

/// Unlike other expressions, the condition of a transaction is told its size.
fn check_condition_size(text: &str) -> Result<()> {
    match text.len() {
        size if size > EXPRESSION_BYTES_MAX => Err(Refusal::validation(format!(
            "Invalid ConditionExpression: Expression size has exceeded the maximum allowed size; expression size: \
             {size}"
        ))),
        _ => Ok(()),
    }
}

impl Display for Action<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = match self.kind {
            Kind::Check => "ConditionCheck",
            Kind::Put => "Put",
            Kind::Delete => "Delete",
            Kind::Update => "Update",
        };
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
            OrNull(self.table_name.as_deref()),
            OrNull(self.condition.as_deref()),
            OrNull(self.names.as_ref().map(AsNames)),
            OrNull(self.values.as_ref().map(AsValues)),
            OrNull(self.return_on_failure.as_deref()),
        )
    }
}
