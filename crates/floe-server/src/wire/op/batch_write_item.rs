//! BatchWriteItem.

use std::fmt::{self, Display};

use floe_store::Engine;
use floe_store::json::{ValidationLayer, ValueFault, Writer, write_item};
use floe_store::limits::BATCH_WRITE_ITEMS_MAX;
use floe_store::op::{
    BatchWrite, BatchWriteItem, BatchWriteItemOutput, Faults, TABLE_NAMES_CONSTRAINT,
    WRITES_CONSTRAINT, is_valid_name,
};

use crate::wire::{
    AsItem, AsList, Attributes, ListedUnits, Map, OrNull, RequestError, RequestTableNames, Result,
    Str, TableName, echo, empty_name_error, members, object, request, return_capacity,
    return_capacity_faults, return_collection, return_collection_faults, write_collections,
    write_consumed_list, write_list,
};

members! {
    Request<'a> {
        "RequestItems" => request_items: Map<'a, Vec<WriteRequest<'a>>>,
        "ReturnConsumedCapacity" => return_consumed_capacity: Str<'a>,
        "ReturnItemCollectionMetrics" => return_item_collection_metrics: Str<'a>,
    }

    /// One write: either a put or a delete.
    WriteRequest<'a> as "WriteRequest" {
        "PutRequest" => put_request: PutRequest<'a>,
        "DeleteRequest" => delete_request: DeleteRequest<'a>,
    }

    /// Puts an item.
    PutRequest<'a> as "PutRequest" {
        "Item" => item: Attributes,
    }

    /// Deletes an item.
    DeleteRequest<'a> as "DeleteRequest" {
        "Key" => key: Attributes,
    }
}

/// The writes, by table name.
type Tables<'t, 'a> = &'t [(Str<'a>, Vec<WriteRequest<'a>>)];

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let mut names = RequestTableNames::default();
    let operation = operation(request(body)?, &mut names)?;
    let mut output = engine.batch_write_item(operation).await?;
    names.restore_names(&mut output.consumed);
    Ok(write(&output, &names))
}

fn operation(request: Request<'_>, names: &mut RequestTableNames) -> Result<BatchWriteItem> {
    check_members(&request)?;
    let tables = request.request_items.map_or_else(Vec::new, |map| map.0);
    check_names_filled(&tables)?;
    let mut operation = BatchWriteItem::new();
    operation.return_capacity = return_capacity(&request.return_consumed_capacity);
    operation.return_collection = return_collection(&request.return_item_collection_metrics);
    for (name, writes) in tables {
        // A table may be named twice: by name and by ARN.
        let name = names.plain_name(TableName::new(name));
        let requests = operation.requests.entry(name).or_default();
        requests.append(&mut batch_writes(writes)?);
    }
    Ok(operation)
}

/// Converts the writes. The first invalid write is reported, including those that the engine would reject.
fn batch_writes(requests: Vec<WriteRequest<'_>>) -> Result<Vec<BatchWrite>> {
    let mut writes: Vec<BatchWrite> = Vec::with_capacity(requests.len());
    for request in requests {
        match batch_write(request) {
            Ok(write) => writes.push(write),
            Err(error) => {
                for write in &writes {
                    write.validate()?;
                }
                return Err(error);
            }
        }
    }
    Ok(writes)
}

fn check_members(request: &Request<'_>) -> Result<()> {
    let tables = request.request_items.as_ref().map(|tables| &*tables.0);
    if tables.is_some_and(<[_]>::is_empty) {
        return Err(RequestError::validation(
            "The requestItems parameter is required for BatchWriteItem",
        ));
    }
    let mut faults = Faults::new();
    match tables {
        None => faults.add_null("requestItems"),
        Some(tables) => table_faults(&mut faults, tables),
    }
    return_capacity_faults(&mut faults, &request.return_consumed_capacity);
    return_collection_faults(&mut faults, &request.return_item_collection_metrics);
    faults.into_result()?;
    check_table_names(tables.unwrap_or_default())
}

fn table_faults(faults: &mut Faults, tables: Tables<'_, '_>) {
    let total: usize = tables.iter().map(|(_, writes)| writes.len()).sum();
    if total > BATCH_WRITE_ITEMS_MAX || tables.iter().any(|(_, writes)| writes.is_empty()) {
        faults.add(echo(AsTables(tables)), "requestItems", WRITES_CONSTRAINT);
    }
    for (name, writes) in tables {
        for (at, write) in writes.iter().enumerate() {
            let missing = write.attributes().filter(|(_, given)| given.is_none());
            for (what, _) in missing {
                let at = at + 1;
                faults.add_null(format_args!(
                    "requestItems.{name}.member.{at}.member.{what}"
                ));
            }
        }
    }
}

impl WriteRequest<'_> {
    /// Returns the item or key of each request present, with its member path.
    fn attributes(&self) -> impl Iterator<Item = (&'static str, Option<&Attributes>)> {
        let (put, delete) = (self.put_request.as_ref(), self.delete_request.as_ref());
        let put = put.map(|put| ("putRequest.item", put.item.as_ref()));
        let delete = delete.map(|delete| ("deleteRequest.key", delete.key.as_ref()));
        put.into_iter().chain(delete)
    }
}

/// Checks table names. They are reported after all other members, alone.
fn check_table_names(tables: Tables<'_, '_>) -> Result<()> {
    let is_table =
        |name: &Str<'_>| is_valid_name(name) || is_valid_name(&TableName::new(Str::Borrowed(name)));
    let mut faults = Faults::new();
    if !tables.iter().all(|(name, _)| is_table(name)) {
        let tables = echo(AsTables(tables));
        faults.add(tables, "requestItems", TABLE_NAMES_CONSTRAINT);
    }
    Ok(faults.into_result()?)
}

/// Empty attribute names are reported before all other faults of items.
fn check_names_filled(tables: Tables<'_, '_>) -> Result<()> {
    let writes = tables.iter().flat_map(|(_, writes)| writes);
    let mut attributes = writes.flat_map(WriteRequest::attributes);
    if attributes.any(|(_, given)| given.is_some_and(Attributes::has_empty_name)) {
        return Err(empty_name_error(ValidationLayer::Older));
    }
    Ok(())
}

fn batch_write(write: WriteRequest<'_>) -> Result<BatchWrite> {
    let valid =
        |given: Option<Attributes>| given.unwrap_or_default().into_valid(ValidationLayer::Older);
    match (write.put_request, write.delete_request) {
        (Some(put), None) => valid(put.item).map(BatchWrite::Put),
        (None, Some(delete)) => valid(delete.key).map(BatchWrite::Delete),
        // DynamoDB reports the fault of a value here.
        (None, None) | (Some(_), Some(_)) => Err(RequestError::validation(
            ValueFault::MultipleTypes.message(ValidationLayer::Older),
        )),
    }
}

fn write(output: &BatchWriteItemOutput, names: &RequestTableNames) -> Vec<u8> {
    object(256, |w| {
        w.name("UnprocessedItems").object(|w| {
            for (table, writes) in &output.unprocessed {
                write_list(w, names.name_in_request(table), writes, write_request);
            }
        });
        write_collections(w, &output.collections, names);
        write_consumed_list(w, &output.consumed, ListedUnits::Total);
    })
}

fn write_request(w: &mut Writer, write: &BatchWrite) {
    w.object(|w| match write {
        BatchWrite::Put(item) => w
            .name("PutRequest")
            .object(|w| write_item(w.name("Item"), item)),
        BatchWrite::Delete(key) => w
            .name("DeleteRequest")
            .object(|w| write_item(w.name("Key"), key)),
    });
}

/// Displays the writes of a request.
struct AsTables<'t, 'a>(Tables<'t, 'a>);

impl Display for AsTables<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted: Vec<_> = self.0.iter().collect();
        sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
        f.write_str("{")?;
        for (n, (name, writes)) in sorted.into_iter().enumerate() {
            let comma = if n == 0 { "" } else { ", " };
            write!(f, "{comma}{name}={}", AsList(writes))?;
        }
        f.write_str("}")
    }
}

impl Display for WriteRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (put, delete) = (self.put_request.as_ref(), self.delete_request.as_ref());
        write!(
            f,
            "WriteRequest(putRequest={}, deleteRequest={})",
            OrNull(put),
            OrNull(delete)
        )
    }
}

impl Display for PutRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let item = OrNull(self.item.as_ref().map(|item| AsItem(&item.item)));
        write!(f, "PutRequest(item={item}, workloadProfileName=null)")
    }
}

impl Display for DeleteRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = OrNull(self.key.as_ref().map(|key| AsItem(&key.item)));
        write!(f, "DeleteRequest(key={key}, workloadProfileName=null)")
    }
}
