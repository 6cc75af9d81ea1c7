//! The contract suite over HTTP against another implementation: `dynoxide`, served in this process.

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

/// Differences between `dynoxide` 3.2 and DynamoDB. All are in its responses; none are caused by the engine or
/// transport.
const DIFFERENCES: &[Difference] = &[
    Difference {
        case: "bad_input::keys_are_scalars",
        seen: "got=Err(ConditionalCheckFailed",
        reason: "a condition on `pk.x` is evaluated; DynamoDB rejects it, because the key attribute `pk` is a scalar",
    },
    Difference {
        case: "capacity::index_reads_are_charged_to_the_index",
        seen: "left: Units { halves: 10 }",
        reason: "attributes missing in a local index cost one read per page; DynamoDB charges each item fetched from the table",
    },
    Difference {
        case: "indexes::a_global_index_gives_only_what_it_copies",
        seen: "got=Ok(Page",
        reason: "a projection of attributes that the index does not contain returns nothing; DynamoDB rejects it",
    },
    Difference {
        case: "limits::index_keys_have_the_same_limits",
        seen: "got=Ok(WriteItemOutput",
        reason: "index keys of any length are accepted; DynamoDB limits them to 2048 and 1024 bytes, like table keys",
    },
    Difference {
        case: "limits::queries_ask_for_keys_within_the_limits",
        seen: "got=Ok(Page",
        reason: "a query for a longer key finds nothing; DynamoDB rejects it",
    },
    Difference {
        case: "local_indexes::fetches_what_it_has_not_copied",
        seen: "left: [{}]",
        reason: "a projection of attributes that a local index does not contain returns nothing; DynamoDB fetches them from the table",
    },
    Difference {
        case: "paging::a_page_ends_with_the_item_that_reaches_a_megabyte",
        seen: "left: [1, 2, 3, 4]",
        reason: "a page ends before the item that would exceed 1 MB; DynamoDB ends it after that item",
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
        reason: "a query for an empty key finds nothing; DynamoDB rejects it",
    },
    Difference {
        case: "scan::a_start_key_must_belong_to_the_segment",
        seen: "left: 0",
        reason: "a start key of another segment is accepted; DynamoDB rejects it",
    },
    Difference {
        case: "stream_reading::a_limit_bounds_the_records",
        seen: "got=Ok(GetRecordsOutput",
        reason: "a limit of 0 or of more than 1000 records is accepted; DynamoDB rejects it",
    },
    Difference {
        case: "stream_reading::unknown_streams_and_shards_are_not_found",
        seen: "Requested resource not found: Shard: ",
        reason: "an iterator is returned for a shard that does not exist; DynamoDB rejects the request",
    },
    Difference {
        case: "streams::a_stream_is_described",
        seen: "left: []",
        reason: "the description has no KeySchema; DynamoDB includes one",
    },
    Difference {
        case: "streams::a_stream_is_switched_once",
        seen: "got=Ok(())",
        reason: "disabling a disabled stream is accepted; DynamoDB rejects it",
    },
    Difference {
        case: "streams::a_stream_outlives_its_table",
        seen: "the stream is there: ResourceNotFound",
        reason: "the stream is deleted with its table; DynamoDB keeps it for 24 hours",
    },
    Difference {
        case: "streams::a_switched_off_stream_can_be_read_to_its_end",
        seen: "the stream is there: ResourceNotFound",
        reason: "a disabled stream is deleted; DynamoDB keeps it for 24 hours",
    },
    Difference {
        case: "streams::a_write_that_changes_nothing_leaves_no_record",
        seen: "left: 4",
        reason: "a write that changes nothing is recorded; DynamoDB does not record it",
    },
    Difference {
        case: "streams::records_tell_what_happened",
        seen: "left: 46",
        reason: "SizeBytes is the size of the record's JSON; DynamoDB counts names and values as for items",
    },
    Difference {
        case: "streams::switching_on_again_makes_a_new_stream",
        seen: "a new stream begins empty",
        reason: "a re-enabled stream contains the records of the earlier one; DynamoDB starts a new stream",
    },
    Difference {
        case: "table_changes::an_index_added_later_is_filled",
        seen: "left: 20",
        reason: "items whose attribute has another type than the index key are added to a new index; DynamoDB leaves them out",
    },
    Difference {
        case: "table_changes::an_index_can_be_removed_and_added_again",
        seen: "left: [\"a\", \"b\", \"c\"]",
        reason: "as above",
    },
    Difference {
        case: "table_changes::index_changes_must_make_sense",
        seen: "Index already exists: by_g",
        reason: "different message; DynamoDB reports \"Attempting to create an index which already exists\"",
    },
    Difference {
        case: "tables::tables_are_listed_in_order_by_pages",
        seen: "already exists in CREATE TABLE",
        reason: "table names are case-insensitive; DynamoDB's are case-sensitive",
    },
    Difference {
        case: "transact::the_first_action_that_is_wrong_for_its_table_is_the_only_reason",
        seen: "left: [None, ValidationError, ValidationError, ConditionalCheckFailed]",
        reason: "every invalid action is a reason; DynamoDB stops at the first that is invalid for its table",
    },
    Difference {
        case: "transact_get::answers_in_the_order_of_the_request",
        seen: "Some({\"pk\": \"a\", \"v\": 1})",
        reason: "a projection in a transaction also returns the key; DynamoDB returns only the requested attributes",
    },
    Difference {
        case: "transact_get::reads_up_to_four_megabytes",
        seen: "transact_get_items(keys(11)).is_err()",
        reason: "transactions read any number of bytes; DynamoDB limits them to 4 MB",
    },
    Difference {
        case: "ttl::switching_must_change_something",
        seen: "got=Ok(TableDescription",
        reason: "disabling TTL that is disabled is accepted; DynamoDB rejects it",
    },
    Difference {
        case: "update::removing_from_a_missing_item_does_not_make_it",
        seen: "left: Some({\"pk\": \"a\"})",
        reason: "REMOVE on a missing item creates it; DynamoDB does not",
    },
    Difference {
        case: "update::sums_must_fit_a_number",
        seen: "left: Err(Validation(\"Attempting to store more than 38",
        reason: "different message; DynamoDB reports that the number overflows",
    },
    Difference {
        case: "update_returns::returns_nothing_where_there_is_nothing",
        seen: "left: Some({\"pk\": \"a\"})",
        reason: "same as for REMOVE on a missing item",
    },
    Difference {
        case: "update_returns::returns_only_the_updated_parts_of_documents",
        seen: "left: Some(",
        reason: "UPDATED_NEW returns the whole attribute; DynamoDB returns the updated part",
    },
];

mod contract {
    use super::{DIFFERENCES, Dynoxide};
    floe_testkit::contract_suite!(Dynoxide::new, DIFFERENCES);
}
