//! `dynoxide-rs` in this process, on a file, with its defaults: every commit is synced.
//!
//! Its table has a stream, like the table of the engine. Each write to such a table scans all earlier change records,
//! so the stream starts after the items are loaded, and contains [`CHANGES`] records when the measurement starts.

use std::collections::HashMap;
use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dynoxide::Database;
use dynoxide::actions::create_table::{CreateTableRequest, StreamSpecification};
use dynoxide::actions::get_item::GetItemRequest;
use dynoxide::actions::put_item::PutItemRequest;
use dynoxide::actions::query::QueryRequest;
use dynoxide::actions::transact_write_items::{
    TransactPut, TransactWriteItem, TransactWriteItemsRequest,
};
use dynoxide::actions::update_table::UpdateTableRequest;
use dynoxide::types::{
    AttributeDefinition, AttributeValue, GlobalSecondaryIndex, KeySchemaElement, KeyType,
    Projection, ProjectionType, ScalarAttributeType,
};
use floe_store::{Item, Value};

use super::data::{self, PARTITION, Picker};
use super::{Decoding, Fallible, Subject};
use crate::measure::{Rate, repeat, time};

const TABLE: &str = "Customers";
/// Number of change records before the measurement: those of a minute with a hundred writes per second.
const CHANGES: u64 = 6000;
const CONDITION: &str = "attribute_exists(pk)";

type Attributes = HashMap<String, AttributeValue>;

pub(crate) struct Dynoxide {
    database: Database,
}

impl Dynoxide {
    pub(super) fn load(file: &Path, items: u64) -> Fallible<Self> {
        let path = file.to_str().ok_or("the temporary path is not text")?;
        let loader = Database::new(path)?;
        loader.create_table(table())?;
        loader.enable_bulk_loading()?;
        for n in 0..items {
            loader.put_item(put(n, 0, false))?;
        }
        loader.update_table(UpdateTableRequest {
            table_name: TABLE.to_owned(),
            stream_specification: Some(StreamSpecification {
                stream_enabled: true,
                stream_view_type: Some("NEW_AND_OLD_IMAGES".to_owned()),
            }),
            ..Default::default()
        })?;
        for n in 0..CHANGES {
            loader.put_item(put(n % items, 1, false))?;
        }
        drop(loader);
        // Reopened, so that no setting of bulk loading remains.
        let database = Database::new(path)?;
        Ok(Self { database })
    }
}

fn table() -> CreateTableRequest {
    let element = |name: &str, key_type| KeySchemaElement {
        attribute_name: name.to_owned(),
        key_type,
    };
    let attribute = |name: &str, attribute_type| AttributeDefinition {
        attribute_name: name.to_owned(),
        attribute_type,
    };
    CreateTableRequest {
        table_name: TABLE.to_owned(),
        key_schema: vec![element("pk", KeyType::HASH), element("sk", KeyType::RANGE)],
        attribute_definitions: vec![
            attribute("pk", ScalarAttributeType::S),
            attribute("sk", ScalarAttributeType::N),
            attribute("owner", ScalarAttributeType::S),
        ],
        global_secondary_indexes: Some(vec![GlobalSecondaryIndex {
            index_name: "by_owner".to_owned(),
            key_schema: vec![
                element("owner", KeyType::HASH),
                element("sk", KeyType::RANGE),
            ],
            projection: Projection {
                projection_type: Some(ProjectionType::ALL),
                non_key_attributes: None,
            },
            ..Default::default()
        }]),
        billing_mode: Some("PAY_PER_REQUEST".to_owned()),
        ..Default::default()
    }
}

fn attributes(item: Item) -> Attributes {
    item.into_iter()
        .map(|(name, value)| (name.to_string(), attribute(value)))
        .collect()
}

fn attribute(value: Value) -> AttributeValue {
    match value {
        Value::S(s) => AttributeValue::S(s.into()),
        Value::N(n) => AttributeValue::N(n.to_string()),
        Value::Ss(set) => AttributeValue::SS(set.into_iter().map(String::from).collect()),
        _ => AttributeValue::NULL(true),
    }
}

fn put(n: u64, score: u64, conditional: bool) -> PutItemRequest {
    PutItemRequest {
        table_name: TABLE.to_owned(),
        item: attributes(data::item(n, score)),
        condition_expression: conditional.then(|| CONDITION.to_owned()),
        ..Default::default()
    }
}

impl Subject for Dynoxide {
    fn get(&self, picker: &mut Picker, _: Decoding, duration: Duration) -> Fallible<Rate> {
        repeat(duration, || {
            for _ in 0..10 {
                let response = self.database.get_item(GetItemRequest {
                    table_name: TABLE.to_owned(),
                    key: attributes(data::key(picker.item())),
                    consistent_read: Some(true),
                    ..Default::default()
                })?;
                black_box(response.item.ok_or("an item is missing")?);
            }
            Ok(10)
        })
    }

    fn query(
        &self,
        picker: &mut Picker,
        count: usize,
        _: Decoding,
        duration: Duration,
    ) -> Fallible<Rate> {
        repeat(duration, || {
            let start = picker.start_of(count);
            let values = HashMap::from([
                (
                    ":p".to_owned(),
                    AttributeValue::S(data::partition_key(start / PARTITION)),
                ),
                (
                    ":s".to_owned(),
                    AttributeValue::N((start % PARTITION).to_string()),
                ),
            ]);
            let response = self.database.query(QueryRequest {
                table_name: TABLE.to_owned(),
                key_condition_expression: Some("pk = :p AND sk >= :s".to_owned()),
                expression_attribute_values: Some(values),
                scan_index_forward: true,
                limit: Some(count),
                consistent_read: Some(true),
                ..Default::default()
            })?;
            let read = black_box(response).items.map_or(0, |items| items.len());
            if read == count {
                Ok(1)
            } else {
                Err("a query returned too few items".into())
            }
        })
    }

    fn put(&self, picker: &mut Picker, writers: usize, duration: Duration) -> Fallible<Rate> {
        let (over, done) = (AtomicBool::new(false), AtomicU64::new(0));
        let start = Instant::now();
        time(|| {
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..writers)
                    .map(|_| {
                        let own = Picker::new(picker.score() + picker.item(), picker.items());
                        let (over, done) = (&over, &done);
                        scope.spawn(move || {
                            while !over.load(Ordering::Relaxed) {
                                let request = put(own.item(), own.score(), true);
                                self.database.put_item(request)?;
                                done.fetch_add(1, Ordering::Relaxed);
                                if start.elapsed() >= duration {
                                    over.store(true, Ordering::Relaxed);
                                }
                            }
                            Ok::<(), dynoxide::DynoxideError>(())
                        })
                    })
                    .collect();
                for thread in threads {
                    thread.join().map_err(|_| "a writer panicked")??;
                }
                Ok(done.load(Ordering::Relaxed))
            })
        })
    }

    fn transact(&self, picker: &mut Picker, duration: Duration) -> Fallible<Rate> {
        repeat(duration, || {
            let puts = picker.three().map(|n| TransactWriteItem {
                put: Some(TransactPut {
                    table_name: TABLE.to_owned(),
                    item: attributes(data::item(n, picker.score())),
                    condition_expression: Some(CONDITION.to_owned()),
                    expression_attribute_names: None,
                    expression_attribute_values: None,
                    return_values_on_condition_check_failure: None,
                }),
                update: None,
                delete: None,
                condition_check: None,
            });
            self.database
                .transact_write_items(TransactWriteItemsRequest {
                    transact_items: puts.into(),
                    ..Default::default()
                })?;
            Ok(1)
        })
    }
}
