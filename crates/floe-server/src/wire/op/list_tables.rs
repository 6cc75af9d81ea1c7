//! ListTables.

use floe_store::Engine;
use floe_store::json::Writer;
use floe_store::op::{Faults, ListTables};

use crate::wire::{Result, Str, members, object, request, write_list, write_text};

members! {
    Request<'a> {
        "ExclusiveStartTableName" => exclusive_start_table_name: Str<'a>,
        "Limit" => limit: i32,
    }
}

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let operation = operation(request(body)?)?;
    let output = engine.list_tables(operation).await?;
    Ok(object(512, |w| {
        let write = |w: &mut Writer, name: &String| w.string(name);
        write_list(w, "TableNames", &output.table_names, write);
        write_text(w, "LastEvaluatedTableName", output.last_name.as_deref());
    }))
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
