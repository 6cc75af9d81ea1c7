//! A tour of the embedded engine: a table with an index and a stream, conditions, a transaction, queries, the change
//! log, a backup, and a restart.
//!
//! `cargo run -p floe-examples --bin tour` uses a temporary directory; `cargo run -p floe-examples --bin tour -- DIR`
//! keeps the data in DIR.

#![expect(clippy::print_stdout, reason = "the program prints its results")]

use std::path::{Path, PathBuf};

use floe_examples::{Fallible, arguments};
use floe_local::LocalEngine;
use floe_store::expr::{Condition, KeyCondition, KeyOp, Path as At, Update};
use floe_store::op::{
    DescribeStream, GetItem, GetRecords, GetShardIterator, IteratorKind, PutItem, Query,
    ReturnValues, TransactWriteItems, UpdateItem,
};
use floe_store::table::{KeyKind, Projection, StreamView};
use floe_store::{Engine, Error, Item, TableDef};

const USAGE: &str = "\
Usage: cargo run -p floe-examples --bin tour [-- DIR]

A tour of the embedded engine. Without DIR, it uses a temporary directory that is removed at the end; with DIR, the data stays
there.";

#[tokio::main]
async fn main() -> Fallible {
    let Some(args) = arguments(USAGE, 1)? else {
        return Ok(());
    };
    let temporary = tempfile::tempdir()?;
    let folder = match args.first() {
        None => temporary.path().join("store"),
        Some(folder) => PathBuf::from(folder),
    };
    println!("The store is the directory {}.", folder.display());

    let engine = LocalEngine::open(&folder)?;
    create_table(&engine).await?;
    place_orders(&engine).await?;
    reject_duplicate(&engine).await?;
    move_stock_in_a_transaction(&engine).await?;
    query(&engine).await?;
    read_change_log(&engine).await?;
    let copy = temporary.path().join("backup");
    engine.backup(&copy)?;
    println!("\nA backup was taken while the engine was running.");
    engine.close()?;
    drop(engine);

    count_after_restart(&folder, "After a restart").await?;
    count_after_restart(&copy, "In the backup").await
}

fn order(customer: &str, placed: u32, product: &str, quantity: u32) -> Item {
    Item::new()
        .with("customer", customer)
        .with("placed", placed)
        .with("product", product)
        .with("quantity", quantity)
}

fn key(customer: &str, placed: u32) -> Item {
    Item::new()
        .with("customer", customer)
        .with("placed", placed)
}

async fn create_table(engine: &LocalEngine) -> Fallible {
    let orders = TableDef::builder("Orders", "customer", KeyKind::S)
        .sort_key("placed", KeyKind::N)
        .global_index(
            "by_product",
            [("product", KeyKind::S)],
            [("quantity", KeyKind::N)],
            Projection::All,
        )
        .stream(StreamView::NewAndOldImages)
        .build()?;
    match engine.create_table(orders.into()).await {
        Ok(_) => {
            println!("\nCreated the table Orders, with an index by product and a change stream.");
        }
        Err(Error::ResourceInUse(_)) => {
            println!("\nThe table Orders exists from an earlier tour.");
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

async fn place_orders(engine: &LocalEngine) -> Fallible {
    for (customer, placed, product, quantity) in [
        ("ada", 1, "sled", 2),
        ("ada", 2, "rope", 10),
        ("ada", 10, "lamp", 1),
        ("roald", 3, "sled", 5),
    ] {
        let put = PutItem::new("Orders", order(customer, placed, product, quantity));
        engine.write_item(put.into()).await?;
    }
    println!("Placed four orders. Each was on disk before the engine responded.");
    Ok(())
}

async fn reject_duplicate(engine: &LocalEngine) -> Fallible {
    let again = PutItem::new("Orders", order("ada", 1, "tent", 1))
        .condition(Condition::attribute_not_exists(At::attribute("customer")))
        .return_old_on_failure();
    match engine.write_item(again.into()).await {
        Err(Error::ConditionalCheckFailed { item: Some(item) }) => {
            println!(
                "\nA second order with the same key was rejected; the existing one is\n  {item:?}"
            );
            Ok(())
        }
        other => Err(format!("expected a failed condition, got {other:?}").into()),
    }
}

async fn move_stock_in_a_transaction(engine: &LocalEngine) -> Fallible {
    let less = Update::new().set_difference("quantity", At::attribute("quantity"), 1);
    let more = Update::new().set_sum("quantity", At::attribute("quantity"), 1);
    let enough = Condition::gt(At::attribute("quantity"), 1);
    let transaction = TransactWriteItems::new([
        UpdateItem::new("Orders", key("roald", 3), less)
            .condition(enough)
            .into(),
        UpdateItem::new("Orders", key("ada", 1), more).into(),
    ])
    .token("move-one-sled");
    engine.transact_write_items(transaction.clone()).await?;
    // A retry after a lost response: because of the token, the transaction is applied once.
    engine.transact_write_items(transaction).await?;
    let sleds = engine
        .get_item(GetItem::new("Orders", key("ada", 1)))
        .await?;
    println!(
        "\nOne sled moved from roald to ada, in one transaction sent twice:\n  {:?}",
        sleds.item
    );
    Ok(())
}

async fn query(engine: &LocalEngine) -> Fallible {
    let recent = KeyCondition::partition("customer", "ada").and("placed", KeyOp::Ge(2.into()));
    let page = engine
        .query(Query::new("Orders", recent).backward())
        .await?;
    println!("\nAda's orders from number 2, newest first:");
    for item in &page.items {
        println!("  {item:?}");
    }
    let sleds = KeyCondition::partition("product", "sled");
    let page = engine
        .query(Query::new("Orders", sleds).index("by_product"))
        .await?;
    println!("Orders of sleds, by quantity, from the index:");
    for item in &page.items {
        println!("  {item:?}");
    }
    let note = Update::new().set("note", "handle with care");
    let update =
        UpdateItem::new("Orders", key("ada", 10), note).return_values(ReturnValues::AllNew);
    engine.write_item(update.into()).await?;
    Ok(())
}

async fn read_change_log(engine: &LocalEngine) -> Fallible {
    let table = engine.describe_table("Orders".to_owned()).await?;
    let stream_arn = table.latest_stream.ok_or("the table has no stream")?.arn;
    let describe = DescribeStream {
        stream_arn: stream_arn.clone(),
        ..DescribeStream::default()
    };
    println!("\nThe changes, from the change log:");
    for shard in engine.describe_stream(describe).await?.shards {
        let from_start = GetShardIterator {
            stream_arn: stream_arn.clone(),
            shard_id: shard.id,
            kind: IteratorKind::TrimHorizon,
        };
        let iterator = engine.get_shard_iterator(from_start).await?;
        let read = GetRecords {
            iterator,
            limit: None,
        };
        for record in engine.get_records(read).await?.records {
            println!(
                "  {} {:6} {:?}",
                record.sequence,
                record.kind.as_str(),
                record.keys
            );
        }
    }
    Ok(())
}

async fn count_after_restart(folder: &Path, label: &str) -> Fallible {
    let engine = LocalEngine::open(folder)?;
    let table = engine.describe_table("Orders".to_owned()).await?;
    println!(
        "{label}, the table has {} items, {} bytes.",
        table.item_count, table.size_bytes
    );
    engine.close()?;
    Ok(())
}
