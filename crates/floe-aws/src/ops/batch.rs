//! Batches. Unprocessed items are retried a few times, then returned to the caller.

use std::collections::BTreeMap;

use floe_store::limits::{BATCH_GET_BYTES_MAX, ITEM_BYTES_MAX};
use floe_store::op::{
    BatchGetItem, BatchGetItemOutput, BatchWriteItem, BatchWriteItemOutput, KeysAndAttributes,
};
use floe_store::size::item_size;
use floe_store::{ConsumedCapacity, Error, Result};

use super::Operations;

impl Operations {
    pub(crate) async fn batch_get_item(&self, input: BatchGetItem) -> Result<BatchGetItemOutput> {
        input.validate()?;
        let read =
            async |input: &BatchGetItem| self.read(|| self.client.batch_get_item(input)).await;
        let mut output = read(&input).await?;
        for round in 1..=self.retry.retries {
            let Some(requests) = take_retryable_keys(&mut output) else {
                break;
            };
            self.retry.pause(round).await;
            let rest = BatchGetItem {
                requests,
                return_capacity: input.return_capacity,
            };
            match read(&rest).await {
                Ok(more) => add_read(&mut output, more),
                Err(_) => {
                    // The items read so far are returned; when the caller retries the rest, it receives the error.
                    return_keys(&mut output.unprocessed, rest.requests);
                    break;
                }
            }
        }
        Ok(output)
    }

    pub(crate) async fn batch_write_item(
        &self,
        input: BatchWriteItem,
    ) -> Result<BatchWriteItemOutput> {
        input.validate()?;
        let write =
            async |input: &BatchWriteItem| self.write(|| self.client.batch_write_item(input)).await;
        let mut output = write(&input).await?;
        for round in 1..=self.retry.retries {
            if output.unprocessed.is_empty() {
                break;
            }
            self.retry.pause(round).await;
            let rest = BatchWriteItem {
                requests: std::mem::take(&mut output.unprocessed),
                ..input
            };
            match write(&rest).await {
                Ok(more) => add_written(&mut output, more),
                // Some items were written, so the only error that may be returned is that the outcome is unknown.
                Err(error) if error.may_have_applied() => return Err(outcome_unknown(&error)),
                Err(_) => {
                    output.unprocessed = rest.requests;
                    break;
                }
            }
        }
        Ok(output)
    }
}

/// Takes the unprocessed keys that are certain to fit into the response with the items read so far, at maximum item
/// size. Returns `None` if there are no more keys or no more room.
fn take_retryable_keys(
    output: &mut BatchGetItemOutput,
) -> Option<BTreeMap<String, KeysAndAttributes>> {
    let bytes: usize = output.items.values().flatten().map(item_size).sum();
    let mut room = BATCH_GET_BYTES_MAX.saturating_sub(bytes) / ITEM_BYTES_MAX;
    let mut requests = BTreeMap::new();
    for (table, left) in &mut output.unprocessed {
        let count = room.min(left.keys.len());
        room -= count;
        let request = KeysAndAttributes {
            keys: left.keys.drain(..count).collect(),
            ..left.clone()
        };
        requests.insert(table.clone(), request);
    }
    output.unprocessed.retain(|_, left| !left.keys.is_empty());
    requests.retain(|_, request| !request.keys.is_empty());
    Some(requests).filter(|requests| !requests.is_empty())
}

fn return_keys(
    unprocessed: &mut BTreeMap<String, KeysAndAttributes>,
    requests: BTreeMap<String, KeysAndAttributes>,
) {
    for (table, mut request) in requests {
        match unprocessed.get_mut(&table) {
            Some(left) => left.keys.append(&mut request.keys),
            None => drop(unprocessed.insert(table, request)),
        }
    }
}

fn add_read(output: &mut BatchGetItemOutput, more: BatchGetItemOutput) {
    for (table, mut items) in more.items {
        output.items.entry(table).or_default().append(&mut items);
    }
    return_keys(&mut output.unprocessed, more.unprocessed);
    add_consumed(&mut output.consumed, more.consumed);
}

fn add_written(output: &mut BatchWriteItemOutput, more: BatchWriteItemOutput) {
    output.unprocessed = more.unprocessed;
    add_consumed(&mut output.consumed, more.consumed);
    for (table, mut sizes) in more.collections {
        output
            .collections
            .entry(table)
            .or_default()
            .append(&mut sizes);
    }
}

fn add_consumed(consumed: &mut Vec<ConsumedCapacity>, more: Vec<ConsumedCapacity>) {
    for cost in more {
        let same = consumed
            .iter_mut()
            .find(|one| one.table_name == cost.table_name);
        match same {
            Some(one) => one.merge(&cost),
            None => consumed.push(cost),
        }
    }
}

/// Part of a batch was written, and the outcome of another part is unknown.
fn outcome_unknown(error: &Error) -> Error {
    Error::OutcomeUnknown(error.to_string())
}

#[cfg(test)]
mod tests;
