//! The contract, over HTTP, against an implementation that is not ours: `dynoxide`, serving in this process.

use std::sync::Arc;

use dynoxide::Database;
use floe_aws::{AwsEngine, ConnectOptions};
use floe_store::env::ManualClock;
use floe_store::{BoxFuture, Engine, Result};
use floe_testkit::Harness;
use floe_testkit::contract::Difference;

struct Dynoxide {
    engine: Arc<AwsEngine>,
}

impl Dynoxide {
    async fn new() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let db = Database::memory().unwrap();
        tokio::spawn(dynoxide::server::serve_on(listener, db));
        let options = ConnectOptions::local(format!("http://{address}"));
        let engine = AwsEngine::connect(options).await.unwrap();
        Self {
            engine: Arc::new(engine),
        }
    }
}

impl Harness for Dynoxide {
    fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone()
    }

    fn clock(&self) -> Option<Arc<ManualClock>> {
        None
    }

    fn sweep(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn reopen(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }
}

/// Where `dynoxide` 3.2 answers something else than DynamoDB. All of it is seen in its answers; none of it comes from
/// the way there or back.
const DIFFERENCES: &[Difference] = &[
    Difference {
        case: "bad_input::keys_are_scalars",
        seen: "got=Err(ConditionalCheckFailed",
        reason: "a condition on `pk.x` is evaluated; DynamoDB refuses it, since the key attribute `pk` is a scalar",
    },
    Difference {
        case: "capacity::index_reads_are_charged_to_the_index",
        seen: "left: Units { halves: 10 }",
        reason: "what a local index lacks is charged as one read of the page; DynamoDB charges each item that it fetches from the table",
    },
    Difference {
        case: "indexes::a_global_index_gives_only_what_it_copies",
        seen: "got=Ok(Page",
        reason: "a projection of what the index has not copied is answered with nothing; DynamoDB refuses it",
    },
    Difference {
        case: "limits::index_keys_have_the_same_limits",
        seen: "got=Ok(WriteItemOutput",
        reason: "index keys of any length are taken; DynamoDB holds them to 2048 and 1024 bytes, as keys of tables",
    },
    Difference {
        case: "limits::queries_ask_for_keys_within_the_limits",
        seen: "got=Ok(Page",
        reason: "a query for a longer key finds nothing; DynamoDB refuses it",
    },
    Difference {
        case: "local_indexes::fetches_what_it_has_not_copied",
        seen: "left: [{}]",
        reason: "a projection of what a local index has not copied is answered with nothing; DynamoDB fetches it from the table",
    },
    Difference {
        case: "paging::a_page_ends_with_the_item_that_reaches_a_megabyte",
        seen: "left: [1, 2, 3, 4]",
        reason: "a page ends before the item that would pass 1 MB; DynamoDB ends it after",
    },
    Difference {
        case: "paging::large_tables_scan_by_megabytes",
        seen: "left: [[5, 4], [3, 2], [1]]",
        reason: "as above",
    },
    Difference {
        case: "paging::the_megabyte_is_counted_before_filter_and_projection",
        seen: "left: Some({\"pk\": \"a\", \"sk\": 2})",
        reason: "as above",
    },
    Difference {
        case: "query::key_values_must_not_be_empty",
        seen: "got=Ok(Page",
        reason: "a query for an empty key finds nothing; DynamoDB refuses it",
    },
    Difference {
        case: "scan::a_start_key_must_belong_to_the_segment",
        seen: "left: 0",
        reason: "a start key of another segment is taken; DynamoDB refuses it",
    },
    Difference {
        case: "stream_reading::a_limit_bounds_the_records",
        seen: "got=Ok(GetRecordsOutput",
        reason: "a limit of 0 or of more than 1000 records is taken; DynamoDB refuses it",
    },
    Difference {
        case: "stream_reading::unknown_streams_and_shards_are_not_found",
        seen: "Requested resource not found: Shard: ",
        reason: "an iterator is given out for a shard that is not there; DynamoDB refuses it",
    },
    Difference {
        case: "streams::a_stream_is_described",
        seen: "left: []",
        reason: "the description has no KeySchema; DynamoDB's has one",
    },
    Difference {
        case: "streams::a_stream_is_switched_once",
        seen: "got=Ok(())",
        reason: "switching off a stream that is off is taken; DynamoDB refuses it",
    },
    Difference {
        case: "streams::a_stream_outlives_its_table",
        seen: "the stream is there: ResourceNotFound",
        reason: "the stream goes with its table; DynamoDB keeps it for 24 hours",
    },
    Difference {
        case: "streams::a_switched_off_stream_can_be_read_to_its_end",
        seen: "the stream is there: ResourceNotFound",
        reason: "a stream is gone when it is switched off; DynamoDB keeps it for 24 hours",
    },
    Difference {
        case: "streams::a_write_that_changes_nothing_leaves_no_record",
        seen: "left: 4",
        reason: "a write that changes nothing is recorded; DynamoDB does not record it",
    },
    Difference {
        case: "streams::records_tell_what_happened",
        seen: "left: 46",
        reason: "SizeBytes counts the JSON of a record; DynamoDB counts names and values as it does for items",
    },
    Difference {
        case: "streams::switching_on_again_makes_a_new_stream",
        seen: "a new stream begins empty",
        reason: "a stream that is switched on again shows the records of the one before; DynamoDB begins anew",
    },
    Difference {
        case: "table_changes::an_index_added_later_is_filled",
        seen: "left: 20",
        reason: "items whose attribute has another type than the index key enter a new index; DynamoDB leaves them out",
    },
    Difference {
        case: "table_changes::an_index_can_be_removed_and_added_again",
        seen: "left: [\"a\", \"b\", \"c\"]",
        reason: "as above",
    },
    Difference {
        case: "table_changes::index_changes_must_make_sense",
        seen: "Index already exists: by_g",
        reason: "another message; DynamoDB says \"Attempting to create an index which already exists\"",
    },
    Difference {
        case: "tables::tables_are_listed_in_order_by_pages",
        seen: "already exists in CREATE TABLE",
        reason: "two tables whose names differ in case only are one; DynamoDB tells them apart",
    },
    Difference {
        case: "transact::the_first_action_that_is_wrong_for_its_table_is_the_only_reason",
        seen: "left: [None, ValidationError, ValidationError, ConditionalCheckFailed]",
        reason: "every action that is at fault is a reason; DynamoDB stops at the first that is wrong for its table",
    },
    Difference {
        case: "transact_get::answers_in_the_order_of_the_request",
        seen: "Some({\"pk\": \"a\", \"v\": 1})",
        reason: "a projection in a transaction answers the key besides; DynamoDB answers what was asked for",
    },
    Difference {
        case: "transact_get::reads_up_to_four_megabytes",
        seen: "transact_get_items(keys(11)).is_err()",
        reason: "transactions read any number of bytes; DynamoDB stops at 4 MB",
    },
    Difference {
        case: "ttl::switching_must_change_something",
        seen: "got=Ok(TableDescription",
        reason: "switching off an expiry that is off is taken; DynamoDB refuses it",
    },
    Difference {
        case: "update::removing_from_a_missing_item_does_not_make_it",
        seen: "left: Some({\"pk\": \"a\"})",
        reason: "REMOVE on a missing item makes it; DynamoDB makes none",
    },
    Difference {
        case: "update::sums_must_fit_a_number",
        seen: "left: Err(Validation(\"Attempting to store more than 38",
        reason: "another message; DynamoDB says that the number overflows",
    },
    Difference {
        case: "update_returns::returns_nothing_where_there_is_nothing",
        seen: "left: Some({\"pk\": \"a\"})",
        reason: "as for REMOVE on a missing item",
    },
    Difference {
        case: "update_returns::returns_only_the_updated_parts_of_documents",
        seen: "left: Some(",
        reason: "UPDATED_NEW answers the whole attribute; DynamoDB answers the part that was updated",
    },
];

mod contract {
    use super::{DIFFERENCES, Dynoxide};
    floe_testkit::contract_suite!(Dynoxide::new, DIFFERENCES);
}
