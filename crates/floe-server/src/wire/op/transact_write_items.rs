//! TransactWriteItems.

mod action;

use floe_store::limits::TRANSACT_ITEMS_MAX;
use floe_store::op::{
    Faults, TransactWrite, TransactWriteItems, TransactWriteItemsOutput, length_at_least,
    length_at_most,
};
use floe_store::{Engine, Units};

use crate::wire::{
    AsList, ListedUnits, RequestError, RequestTableNames, Result, Str, echo, members, object,
    request, return_capacity, return_capacity_faults, return_collection, return_collection_faults,
    write_collections, write_consumed_list,
};

use action::{Action, TransactWriteItem};

members! {
    Request<'a> {
        "TransactItems" => transact_items: Vec<TransactWriteItem<'a>>,
        "ReturnConsumedCapacity" => return_consumed_capacity: Str<'a>,
        "ReturnItemCollectionMetrics" => return_item_collection_metrics: Str<'a>,
        "ClientRequestToken" => client_request_token: Str<'a>,
    }
}

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let mut names = RequestTableNames::default();
    let operation = operation(request(body)?, &mut names)?;
    let mut output = engine.transact_write_items(operation).await?;
    names.restore_names(&mut output.consumed);
    Ok(write(&output, &names))
}

fn operation(
    mut request: Request<'_>,
    names: &mut RequestTableNames,
) -> Result<TransactWriteItems> {
    let items = request.transact_items.take();
    check_members(&request, items.as_deref())?;
    let items = items.unwrap_or_default().into_iter();
    let actions: Vec<_> = items
        .map(TransactWriteItem::into_action)
        .collect::<Result<_>>()?;
    check_table_names(&actions)?;
    let mut writes = Vec::with_capacity(actions.len());
    for action in actions {
        match action.into_write(names) {
            Ok(write) => writes.push(write),
            Err(error) => return Err(first_error(&writes, error)),
        }
    }
    Ok(TransactWriteItems {
        actions: writes,
        token: request.client_request_token.map(Str::into_owned),
        return_capacity: return_capacity(&request.return_consumed_capacity),
        return_collection: return_collection(&request.return_item_collection_metrics),
    })
}

/// Returns the error for an action. An earlier action that the engine would reject is reported first.
#[cold]
fn first_error(before: &[TransactWrite], error: RequestError) -> RequestError {
    match before.iter().try_for_each(TransactWrite::validate) {
        Ok(()) => error,
        Err(error) => error.into(),
    }
}

fn check_members(request: &Request<'_>, items: Option<&[TransactWriteItem<'_>]>) -> Result<()> {
    let mut faults = Faults::new();
    match items {
        None => faults.add_null("transactItems"),
        Some(items) => {
            check_count(items)?;
            for (at, item) in items.iter().enumerate() {
                item.faults(&mut faults, at + 1);
            }
        }
    }
    faults.token(request.client_request_token.as_deref());
    return_capacity_faults(&mut faults, &request.return_consumed_capacity);
    return_collection_faults(&mut faults, &request.return_item_collection_metrics);
    Ok(faults.into_result()?)
}

/// Checks the number of actions, which is reported first, alone.
fn check_count(items: &[TransactWriteItem<'_>]) -> Result<()> {
    let mut faults = Faults::new();
    if items.is_empty() {
        faults.add("[]", "transactItems", length_at_least(1));
    } else if items.len() > TRANSACT_ITEMS_MAX {
        let constraint = length_at_most(TRANSACT_ITEMS_MAX);
        faults.add(echo(AsList(items)), "transactItems", constraint);
    }
    Ok(faults.into_result()?)
}

fn check_table_names(actions: &[Action<'_>]) -> Result<()> {
    let mut faults = Faults::new();
    for (at, action) in actions.iter().enumerate() {
        let member = action.kind.member();
        let path = format_args!("transactItems.{}.member.{member}.tableName", at + 1);
        faults.table_name_at(action.table_name(), path);
    }
    Ok(faults.into_result()?)
}

fn write(output: &TransactWriteItemsOutput, names: &RequestTableNames) -> Vec<u8> {
    // A replay of an applied transaction consumes read capacity only.
    let listed = if output.consumed.iter().any(|c| c.write > Units::ZERO) {
        ListedUnits::Write
    } else {
        ListedUnits::Read
    };
    object(64, |w| {
        write_collections(w, &output.collections, names);
        write_consumed_list(w, &output.consumed, listed);
    })
}
