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
        case: "bad_input::paths_into_keys_are_rejected",
        message: "got=Err(ConditionalCheckFailed",
        reason: "a condition on `pk.x` is evaluated; DynamoDB rejects it, because the key attribute `pk` is a scalar",
    },
    Difference {
        case: "capacity::index_reads_are_charged_to_the_index",
        message: "left: Units { halves: 10 }",
        reason: "attributes missing in a local index cost one read per page; DynamoDB charges each item fetched from the table",
    },
    Difference {
        case: "indexes::global_index_returns_only_projected_attributes",
        message: "got=Ok(Page",
        reason: "a projection of attributes that the index does not contain returns nothing; DynamoDB rejects it",
    },
    Difference {
        case: "limits::index_keys_have_the_same_limits",
        message: "got=Ok(WriteItemOutput",
        reason: "index keys of any length are accepted; DynamoDB limits them to 2048 and 1024 bytes, like table keys",
    },
    Difference {
        case: "limits::query_keys_have_the_same_limits",
        message: "got=Ok(Page",
        reason: "a query for a longer key finds nothing; DynamoDB rejects it",
    },
    Difference {
        case: "local_indexes::fetches_unprojected_attributes_from_the_table",
        message: "left: [{}]",
        reason: "a projection of attributes that a local index does not contain returns nothing; DynamoDB fetches them from the table",
    },
    Difference {
        case: "paging::page_ends_after_the_item_that_reaches_a_megabyte",
        message: "left: [1, 2, 3, 4]",
        reason: "a page ends before the item that would exceed 1 MB; DynamoDB ends it after that item",
    },
    Difference {
        case: "paging::large_tables_are_scanned_in_pages_of_a_megabyte",
        message: "left: [[5, 4], [3, 2], [1]]",
        reason: "as above",
    },
    Difference {
        case: "paging::page_size_is_counted_before_filter_and_projection",
        message: "left: Some({\"pk\": \"a\", \"sk\": 2})",
        reason: "as above",
    },
    Difference {
        case: "query::key_values_must_not_be_empty",
        message: "got=Ok(Page",
        reason: "a query for an empty key finds nothing; DynamoDB rejects it",
    },
    Difference {
        case: "scan::start_key_must_belong_to_the_segment",
        message: "left: 0",
        reason: "a start key of another segment is accepted; DynamoDB rejects it",
    },
    Difference {
        case: "stream_reading::limit_bounds_the_records_of_a_page",
        message: "got=Ok(GetRecordsOutput",
        reason: "a limit of 0 or of more than 1000 records is accepted; DynamoDB rejects it",
    },
    Difference {
        case: "stream_reading::unknown_streams_and_shards_are_not_found",
        message: "Requested resource not found: Shard: ",
        reason: "an iterator is returned for a shard that does not exist; DynamoDB rejects the request",
    },
    Difference {
        case: "streams::stream_is_described",
        message: "left: []",
        reason: "the description has no KeySchema; DynamoDB includes one",
    },
    Difference {
        case: "streams::stream_cannot_be_enabled_or_disabled_twice",
        message: "got=Ok(())",
        reason: "disabling a disabled stream is accepted; DynamoDB rejects it",
    },
    Difference {
        case: "streams::stream_outlives_its_table",
        message: "the stream exists: ResourceNotFound",
        reason: "the stream is deleted with its table; DynamoDB keeps it for 24 hours",
    },
    Difference {
        case: "streams::disabled_stream_can_be_read_to_its_end",
        message: "the stream exists: ResourceNotFound",
        reason: "a disabled stream is deleted; DynamoDB keeps it for 24 hours",
    },
    Difference {
        case: "streams::write_without_change_is_not_recorded",
        message: "left: 4",
        reason: "a write that changes nothing is recorded; DynamoDB does not record it",
    },
    Difference {
        case: "streams::records_describe_changes",
        message: "left: 46",
        reason: "SizeBytes is the size of the record's JSON; DynamoDB counts names and values as for items",
    },
    Difference {
        case: "streams::enabling_again_creates_a_new_stream",
        message: "a new stream starts empty",
        reason: "a re-enabled stream contains the records of the earlier one; DynamoDB starts a new stream",
    },
    Difference {
        case: "table_changes::added_index_is_backfilled",
        message: "left: 20",
        reason: "items whose attribute has another type than the index key are added to a new index; DynamoDB leaves them out",
    },
    Difference {
        case: "table_changes::index_can_be_removed_and_added_again",
        message: "left: [\"a\", \"b\", \"c\"]",
        reason: "as above",
    },
    Difference {
        case: "table_changes::invalid_index_changes_are_rejected",
        message: "Index already exists: by_g",
        reason: "different message; DynamoDB reports \"Attempting to create an index which already exists\"",
    },
    Difference {
        case: "tables::tables_are_listed_in_order_and_pages",
        message: "already exists in CREATE TABLE",
        reason: "table names are case-insensitive; DynamoDB's are case-sensitive",
    },
    Difference {
        case: "transact::first_invalid_action_is_the_only_reason",
        message: "left: [None, ValidationError, ValidationError, ConditionalCheckFailed]",
        reason: "every invalid action is a reason; DynamoDB stops at the first that is invalid for its table",
    },
    Difference {
        case: "transact_get::returns_items_in_the_order_of_the_request",
        message: "Some({\"pk\": \"a\", \"v\": 1})",
        reason: "a projection in a transaction also returns the key; DynamoDB returns only the requested attributes",
    },
    Difference {
        case: "transact_get::reads_up_to_four_megabytes",
        message: "transact_get_items(keys(11)).is_err()",
        reason: "transactions read any number of bytes; DynamoDB limits them to 4 MB",
    },
    Difference {
        case: "ttl::expiry_cannot_be_enabled_or_disabled_twice",
        message: "got=Ok(TableDescription",
        reason: "disabling TTL that is disabled is accepted; DynamoDB rejects it",
    },
    Difference {
        case: "update::removing_from_a_missing_item_does_not_create_it",
        message: "left: Some({\"pk\": \"a\"})",
        reason: "REMOVE on a missing item creates it; DynamoDB does not",
    },
    Difference {
        case: "update::number_overflow_is_rejected",
        message: "left: Err(Validation(\"Attempting to store more than 38",
        reason: "different message; DynamoDB reports that the number overflows",
    },
    Difference {
        case: "update_returns::nothing_is_returned_for_missing_attributes",
        message: "left: Some({\"pk\": \"a\"})",
        reason: "same as for REMOVE on a missing item",
    },
    Difference {
        case: "update_returns::returns_only_the_updated_parts_of_documents",
        message: "left: Some(",
        reason: "UPDATED_NEW returns the whole attribute; DynamoDB returns the updated part",
    },
];

mod contract {
    use super::{DIFFERENCES, Dynoxide};
    floe_testkit::contract_suite!(Dynoxide::new, DIFFERENCES);
}
