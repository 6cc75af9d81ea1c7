//! One step of a property run: an operation, or an action on the engine.

use std::fmt;
use std::time::Duration;

use floe_store::expr::{Condition, KeyCondition, Paths, Renderer};
use floe_store::op::*;
use floe_store::{Capabilities, Item, Value};

/// One step of a property run. A step is self-contained, so that others can be removed.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Reads one item.
    Get(GetItem),
    /// Reads several items.
    BatchGet(BatchGetItem),
    /// Reads several items in a transaction.
    TransactGet(TransactGetItems),
    /// Writes one item.
    Write(WriteItem),
    /// Writes several items.
    BatchWrite(BatchWriteItem),
    /// Writes several items in a transaction.
    TransactWrite(TransactWriteItems),
    /// Reads all pages of a query.
    Query(Query),
    /// Reads all pages of a scan.
    Scan(Scan),
    /// Creates a table.
    CreateTable(CreateTable),
    /// Describes a table.
    DescribeTable(String),
    /// Changes a table and waits for completion.
    UpdateTable(UpdateTable),
    /// Deletes a table.
    DeleteTable(String),
    /// Lists tables.
    ListTables(ListTables),
    /// Enables or disables expiry.
    UpdateTimeToLive(UpdateTimeToLive),
    /// Changes tags.
    UpdateTags(UpdateTags),
    /// Lists streams.
    ListStreams(ListStreams),
    /// Reads all streams to the end, with this limit for each page.
    ReadStreams(usize),
    /// Advances the clock.
    Advance(Duration),
    /// Removes expired items.
    Sweep,
    /// Closes the engine and opens it again.
    Reopen,
}

impl Step {
    /// Removes what the engine does not support.
    pub(super) fn without_unsupported(mut self, can: &Capabilities) -> Self {
        if let Self::Write(write) = &mut self
            && !can.write_tokens
        {
            match write {
                WriteItem::Put(put) => put.token = None,
                WriteItem::Update(update) => update.token = None,
                WriteItem::Delete(delete) => delete.token = None,
            }
        }
        self
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get(get) => {
                write!(f, "get {} {:?}", get.table_name, get.key)?;
                projection(f, get.projection.as_ref())?;
                flag(f, !get.consistent, "eventual")?;
                capacity(f, get.return_capacity)
            }
            Self::BatchGet(batch) => batch_get(f, batch),
            Self::TransactGet(transaction) => {
                f.write_str("transact get")?;
                for get in &transaction.gets {
                    write!(f, "\n        {} {:?}", get.table_name, get.key)?;
                    projection(f, get.projection.as_ref())?;
                }
                capacity(f, transaction.return_capacity)
            }
            Self::Write(write) => single_write(f, write),
            Self::BatchWrite(batch) => batch_write(f, batch),
            Self::TransactWrite(transaction) => transact_write(f, transaction),
            Self::Query(read) => query(f, read),
            Self::Scan(read) => scan(f, read),
            Self::CreateTable(create) => write!(f, "create {create:?}"),
            Self::DescribeTable(name) => write!(f, "describe {name}"),
            Self::UpdateTable(update) => write!(f, "change {update:?}"),
            Self::DeleteTable(name) => write!(f, "drop {name}"),
            Self::ListTables(list) => write!(f, "list {list:?}"),
            Self::UpdateTimeToLive(ttl) => write!(f, "expiry {ttl:?}"),
            Self::UpdateTags(tags) => write!(f, "tags {tags:?}"),
            Self::ListStreams(list) => write!(f, "list streams {list:?}"),
            Self::ReadStreams(limit) => write!(f, "read streams, {limit} records at a time"),
            Self::Advance(by) => write!(f, "advance {by:?}"),
            Self::Sweep => f.write_str("sweep"),
            Self::Reopen => f.write_str("reopen"),
        }
    }
}

fn batch_get(f: &mut fmt::Formatter<'_>, batch: &BatchGetItem) -> fmt::Result {
    f.write_str("batch get")?;
    for (table, request) in &batch.requests {
        write!(f, "\n        {table} {:?}", request.keys)?;
        projection(f, request.projection.as_ref())?;
        flag(f, !request.consistent, "eventual")?;
    }
    capacity(f, batch.return_capacity)
}

fn single_write(f: &mut fmt::Formatter<'_>, write: &WriteItem) -> fmt::Result {
    match write {
        WriteItem::Put(p) => {
            put(f, p)?;
            returned(f, p.return_values, p.return_old_on_failure)?;
        }
        WriteItem::Update(u) => {
            update_item(f, u)?;
            returned(f, u.return_values, u.return_old_on_failure)?;
        }
        WriteItem::Delete(d) => {
            delete(f, d)?;
            returned(f, d.return_values, d.return_old_on_failure)?;
        }
    }
    token(f, write.token())?;
    flag(f, write.return_collection(), "collection")?;
    capacity(f, write.return_capacity())
}

fn put(f: &mut fmt::Formatter<'_>, put: &PutItem) -> fmt::Result {
    write!(f, "put {} {}", put.table_name, short(&put.item))?;
    condition(f, "if", put.condition.as_ref())
}

fn update_item(f: &mut fmt::Formatter<'_>, update: &UpdateItem) -> fmt::Result {
    let text = inlined(|renderer| renderer.update(&update.update));
    write!(f, "update {} {:?} {text}", update.table_name, update.key)?;
    condition(f, "if", update.condition.as_ref())
}

fn delete(f: &mut fmt::Formatter<'_>, delete: &DeleteItem) -> fmt::Result {
    write!(f, "delete {} {:?}", delete.table_name, delete.key)?;
    condition(f, "if", delete.condition.as_ref())
}

fn batch_write(f: &mut fmt::Formatter<'_>, batch: &BatchWriteItem) -> fmt::Result {
    f.write_str("batch write")?;
    for (table, writes) in &batch.requests {
        for write in writes {
            match write {
                BatchWrite::Put(item) => write!(f, "\n        put {table} {}", short(item))?,
                BatchWrite::Delete(key) => write!(f, "\n        delete {table} {key:?}")?,
            }
        }
    }
    flag(f, batch.return_collection, "collection")?;
    capacity(f, batch.return_capacity)
}

fn transact_write(f: &mut fmt::Formatter<'_>, transaction: &TransactWriteItems) -> fmt::Result {
    f.write_str("transact")?;
    token(f, transaction.token.as_deref())?;
    for action in &transaction.actions {
        f.write_str("\n        ")?;
        let with_old = match action {
            TransactWrite::Put(p) => put(f, p).map(|()| p.return_old_on_failure),
            TransactWrite::Update(u) => update_item(f, u).map(|()| u.return_old_on_failure),
            TransactWrite::Delete(d) => delete(f, d).map(|()| d.return_old_on_failure),
            TransactWrite::Check(check) => {
                write!(f, "check {} {:?}", check.table_name, check.key)?;
                condition(f, "if", Some(&check.condition)).map(|()| check.return_old_on_failure)
            }
        }?;
        flag(f, with_old, "old on failure")?;
    }
    flag(f, transaction.return_collection, "collection")?;
    capacity(f, transaction.return_capacity)
}

fn query(f: &mut fmt::Formatter<'_>, query: &Query) -> fmt::Result {
    write!(f, "query {}", query.table_name)?;
    option(f, "index", query.index_name.as_ref())?;
    write!(f, " where {}", key_condition(&query.key_condition))?;
    condition(f, "filter", query.filter.as_ref())?;
    projection(f, query.projection.as_ref())?;
    option(f, "select", query.select)?;
    option(f, "limit", query.limit)?;
    option(f, "from", query.start_key.as_ref())?;
    flag(f, !query.forward, "backward")?;
    flag(f, query.consistent, "consistent")?;
    capacity(f, query.return_capacity)
}

fn scan(f: &mut fmt::Formatter<'_>, scan: &Scan) -> fmt::Result {
    write!(f, "scan {}", scan.table_name)?;
    option(f, "index", scan.index_name.as_ref())?;
    condition(f, "filter", scan.filter.as_ref())?;
    projection(f, scan.projection.as_ref())?;
    option(f, "select", scan.select)?;
    option(f, "limit", scan.limit)?;
    option(f, "from", scan.start_key.as_ref())?;
    option(
        f,
        "segment",
        scan.segment.map(|segment| (segment.index, segment.total)),
    )?;
    flag(f, scan.consistent, "consistent")?;
    capacity(f, scan.return_capacity)
}

fn option(f: &mut fmt::Formatter<'_>, name: &str, value: Option<impl fmt::Debug>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, " {name}={value:?}"))
}

fn flag(f: &mut fmt::Formatter<'_>, set: bool, name: &str) -> fmt::Result {
    if set { write!(f, " {name}") } else { Ok(()) }
}

fn token(f: &mut fmt::Formatter<'_>, token: Option<&str>) -> fmt::Result {
    option(f, "token", token)
}

fn returned(f: &mut fmt::Formatter<'_>, which: ReturnValues, on_failure: bool) -> fmt::Result {
    if which != ReturnValues::None {
        write!(f, " return={}", which.as_str())?;
    }
    flag(f, on_failure, "old on failure")
}

fn capacity(
    f: &mut fmt::Formatter<'_>,
    detail: floe_store::capacity::ReturnConsumedCapacity,
) -> fmt::Result {
    use floe_store::capacity::ReturnConsumedCapacity::None;
    if detail == None {
        Ok(())
    } else {
        write!(f, " capacity={detail:?}")
    }
}

fn condition(f: &mut fmt::Formatter<'_>, word: &str, tree: Option<&Condition>) -> fmt::Result {
    let text = tree.map(|tree| inlined(|renderer| renderer.condition(tree)));
    text.map_or(Ok(()), |text| write!(f, " {word} {text}"))
}

fn projection(f: &mut fmt::Formatter<'_>, paths: Option<&Paths>) -> fmt::Result {
    let text = paths.map(|paths| inlined(|renderer| renderer.projection(paths)));
    text.map_or(Ok(()), |text| write!(f, " project {text}"))
}

fn key_condition(tree: &KeyCondition) -> String {
    inlined(|renderer| renderer.key_condition(tree))
}

/// Formats an item; a long one with its beginning and length.
fn short(item: &Item) -> String {
    shortened(format!("{item:?}"))
}

fn shortened(text: String) -> String {
    const SHOWN: usize = 2000;
    match text.char_indices().nth(SHOWN) {
        None => text,
        Some((end, _)) => {
            let length = text.len();
            let beginning = text.get(..end).unwrap_or_default();
            format!("{beginning}… ({length} bytes)")
        }
    }
}

/// Formats an expression with its names and values instead of placeholders.
fn inlined(render: impl Fn(&mut Renderer) -> String) -> String {
    let mut renderer = Renderer::new();
    let text = render(&mut renderer);
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(['#', ':']) {
        let (before, placeholder) = rest.split_at(at);
        let end = placeholder
            .char_indices()
            .skip(1)
            .find_map(|(at, c)| (!c.is_ascii_alphanumeric()).then_some(at));
        let (placeholder, after) = placeholder.split_at(end.unwrap_or(placeholder.len()));
        out.push_str(before);
        out.push_str(&placeholder_text(&renderer, placeholder));
        rest = after;
    }
    out.push_str(rest);
    out
}

fn placeholder_text(renderer: &Renderer, placeholder: &str) -> String {
    let name = renderer.names().get(placeholder).map(ToString::to_string);
    let value = |value: &Value| shortened(format!("{value:?}"));
    let value = renderer.values().get(placeholder).map(value);
    name.or(value).unwrap_or_else(|| placeholder.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use floe_store::expr::{Path, Update};

    #[test]
    fn steps_display_as_short_statements() {
        let key = Item::new().with("pk", "a");
        let put = PutItem::new("Plain", key.clone())
            .condition(Condition::lt(Path::attribute("n"), 5))
            .return_values(ReturnValues::AllOld)
            .token("t1");
        assert_eq!(
            Step::Write(put.into()).to_string(),
            r#"put Plain {"pk": "a"} if n < 5 return=ALL_OLD token="t1""#
        );
        let update = UpdateItem::new("Plain", key, Update::new().set("x", "y").remove("z"));
        assert_eq!(
            Step::Write(update.into()).to_string(),
            r#"update Plain {"pk": "a"} SET x = "y" REMOVE z"#
        );
    }
}
