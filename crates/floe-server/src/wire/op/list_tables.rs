//! ListTables.

use floe_store::Engine;
use floe_store::op::{Faults, ListTables, ListTablesOutput};

use crate::wire::{Result, Str, members, object, request};

members! {
    Request<'a> {
        "ExclusiveStartTableName" => exclusive_start_table_name: Str<'a>,
        "Limit" => limit: i32,
    }
}

pub(crate) async fn answer(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let operation = operation(request(body)?)?;
    Ok(write(&engine.list_tables(operation).await?))
}

fn operation(request: Request<'_>) -> Result<ListTables> {
    let mut faults = Faults::new();
    let limit = request.limit;
    if let Some(limit) = limit.filter(|limit| *limit < 0) {
        faults.value(limit, "limit", 1..=i32::MAX);
    }
    let operation = ListTables {
        start_after: request.exclusive_start_table_name.map(Str::into_owned),
        limit: limit.and_then(|limit| usize::try_from(limit).ok()),
    };
    operation.add_faults(&mut faults);
    faults.into_result()?;
    Ok(operation)
}

fn write(output: &ListTablesOutput) -> Vec<u8> {
    object(512, |w| {
        w.name("TableNames")
            .array(|w| output.table_names.iter().for_each(|name| w.string(name)));
        if let Some(name) = &output.last_name {
            w.name("LastEvaluatedTableName").string(name);
        }
    })
}
