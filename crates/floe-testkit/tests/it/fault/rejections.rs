//! Throttling, conflicts, lost requests and lost responses.

use floe_store::error::CancellationCode;
use floe_store::expr::{Condition, KeyCondition, Update};
use floe_store::op::*;
use floe_store::{Engine, Error, Item, Result};
use floe_testkit::fault::{FaultEngine, FaultKind, Faults, Operation};
use floe_testkit::model::run_property;

use super::fixture::{
    QuietHarness, TABLE, assert_near, count, current_item, engine, key, put, thing,
};

const TRIES: usize = 3000;

/// Runs every operation once, in the order of [`Operation`]. Returns the errors.
async fn all_operations(engine: &FaultEngine, n: u64) -> Vec<(Operation, Option<Error>)> {
    fn outcome<T>(operation: Operation, result: Result<T>) -> (Operation, Option<Error>) {
        (operation, result.err())
    }
    let get = || TransactGet::new(TABLE, key(n));
    let check = ConditionCheck::new(TABLE, key(n + 1), Condition::attribute_not_exists("note"));
    let stream = DescribeStream {
        stream_arn: arn(engine).await,
        ..DescribeStream::default()
    };
    let iterator = GetShardIterator {
        stream_arn: stream.stream_arn.clone(),
        shard_id: shard(engine).await,
        kind: IteratorKind::TrimHorizon,
    };
    let inner_iterator = engine
        .inner()
        .get_shard_iterator(iterator.clone())
        .await
        .unwrap();
    let records = GetRecords {
        iterator: inner_iterator,
        limit: None,
    };
    let actions = [PutItem::new(TABLE, thing(n, n)).into(), check.into()];
    let query = Query::new(TABLE, KeyCondition::partition("shelf", "a")).limit(1);
    let batch_write = BatchWriteItem::new().put(TABLE, thing(n, n));
    vec![
        outcome(
            Operation::GetItem,
            engine.get_item(GetItem::new(TABLE, key(n))).await,
        ),
        outcome(
            Operation::BatchGetItem,
            engine
                .batch_get_item(BatchGetItem::new().keys(TABLE, [key(n)]))
                .await,
        ),
        outcome(
            Operation::TransactGetItems,
            engine
                .transact_get_items(TransactGetItems::new([get()]))
                .await,
        ),
        outcome(Operation::WriteItem, put(engine, thing(n, n)).await),
        outcome(
            Operation::BatchWriteItem,
            engine.batch_write_item(batch_write).await,
        ),
        outcome(
            Operation::TransactWriteItems,
            engine
                .transact_write_items(TransactWriteItems::new(actions))
                .await,
        ),
        outcome(Operation::Query, engine.query(query).await),
        outcome(
            Operation::Scan,
            engine.scan(Scan::new(TABLE).limit(1)).await,
        ),
        outcome(
            Operation::DescribeStream,
            engine.describe_stream(stream).await,
        ),
        outcome(
            Operation::GetShardIterator,
            engine.get_shard_iterator(iterator).await,
        ),
        outcome(Operation::GetRecords, engine.get_records(records).await),
    ]
}

async fn arn(engine: &FaultEngine) -> String {
    let table = engine
        .inner()
        .describe_table(TABLE.to_owned())
        .await
        .unwrap();
    table.latest_stream.unwrap().arn
}

async fn shard(engine: &FaultEngine) -> String {
    let request = DescribeStream {
        stream_arn: arn(engine).await,
        ..DescribeStream::default()
    };
    engine
        .inner()
        .describe_stream(request)
        .await
        .unwrap()
        .shards[0]
        .id
        .clone()
}

#[tokio::test]
async fn no_faults_occur_by_default() {
    let engine = engine(Faults::seeded(1)).await;
    for n in 0..100 {
        for (operation, error) in all_operations(&engine, n).await {
            assert_eq!(error, None, "{operation}");
        }
    }
    assert_eq!(engine.faults(), []);
    assert_eq!(engine.operations(), 1100);
}

#[tokio::test]
async fn wrapper_without_faults_behaves_as_the_wrapped_engine() {
    let report = run_property(async |seed| QuietHarness::new(seed), 1, 3000).await;
    assert_eq!(report.map(|report| report.operations), Ok(3000));
}

#[tokio::test]
async fn throttled_operations_return_their_own_errors() {
    let engine = engine(Faults::seeded(1).throttle(0.3)).await;
    let (mut failures, mut provisioned) = (0, 0);
    for n in 0..300 {
        for (operation, error) in all_operations(&engine, n).await {
            let Some(error) = error else {
                continue;
            };
            failures += 1;
            assert!(
                error.is_retryable() && !error.may_have_applied(),
                "{operation} {error}"
            );
            match (operation, error) {
                (
                    Operation::TransactGetItems | Operation::TransactWriteItems,
                    Error::TransactionCanceled { reasons },
                ) => {
                    let actions = if operation == Operation::TransactGetItems {
                        1
                    } else {
                        2
                    };
                    assert_eq!(reasons.len(), actions);
                    assert!(reasons.iter().any(|r| {
                        r.code == CancellationCode::ThrottlingError
                            || r.code == CancellationCode::ProvisionedThroughputExceeded
                    }));
                }
                (_, Error::ProvisionedThroughputExceeded(_)) => provisioned += 1,
                (_, Error::Throttling(_)) => {}
                (operation, error) => panic!("{operation} {error:?}"),
            }
        }
    }
    assert_near(failures, 0.3, 3300);
    assert!(
        (150..600).contains(&provisioned),
        "both codes occur: provisioned={provisioned}"
    );
    assert_eq!(count(&engine, FaultKind::Throttle), failures);
}

#[tokio::test]
async fn conflicts_occur_only_in_transactions_and_single_writes() {
    let engine = engine(Faults::seeded(2).conflict(0.3)).await;
    let mut failures = 0;
    for n in 0..500 {
        for (operation, error) in all_operations(&engine, n).await {
            let Some(error) = error else {
                continue;
            };
            failures += 1;
            match (operation, error) {
                (Operation::WriteItem, Error::TransactionConflict) => {}
                (
                    Operation::TransactGetItems | Operation::TransactWriteItems,
                    Error::TransactionCanceled { reasons },
                ) => {
                    let at_fault = reasons
                        .iter()
                        .filter(|r| r.code == CancellationCode::TransactionConflict);
                    let others = reasons.iter().filter(|r| r.code == CancellationCode::None);
                    assert!(at_fault.clone().count() >= 1);
                    assert_eq!(at_fault.count() + others.count(), reasons.len());
                }
                (operation, error) => panic!("{operation} {error:?}"),
            }
        }
    }
    assert_near(failures, 0.3, 1500);
}

#[tokio::test]
async fn rejected_requests_are_not_applied() {
    let engine = engine(
        Faults::seeded(3)
            .throttle(0.3)
            .conflict(0.3)
            .lost_before(0.3),
    )
    .await;
    let mut rejected = 0;
    for n in 0..TRIES as u64 {
        let response = match n % 2 {
            0 => put(&*engine, thing(n, n)).await,
            _ => {
                let put = PutItem::new(TABLE, thing(n, n));
                let actions = TransactWriteItems::new([put.into()]);
                engine.transact_write_items(actions).await.map(drop)
            }
        };
        rejected += usize::from(response.is_err());
        assert_eq!(
            current_item(&engine, key(n)).await.is_some(),
            response.is_ok(),
            "{response:?}"
        );
    }
    assert_near(rejected, 1.0 - 0.7 * 0.7 * 0.7, TRIES);
}

#[tokio::test]
async fn lost_requests_and_lost_responses_look_the_same() {
    let engine = engine(Faults::seeded(4).lost_before(0.2).lost_after(0.2)).await;
    let (mut applied, mut not_applied) = (0, 0);
    for n in 0..TRIES as u64 {
        let response = put(&*engine, thing(n, n)).await;
        let there = current_item(&engine, key(n)).await.is_some();
        match response {
            Ok(()) => assert!(there),
            Err(error @ Error::OutcomeUnknown(_)) => {
                assert!(error.may_have_applied());
                assert!(
                    error
                        .to_string()
                        .starts_with("the connection was lost before the response arrived")
                );
                if there {
                    applied += 1;
                } else {
                    not_applied += 1;
                }
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    assert_near(not_applied, 0.2, TRIES);
    assert_near(applied, 0.8 * 0.2, TRIES);
    assert_eq!(count(&engine, FaultKind::LostBefore), not_applied);
    assert_eq!(count(&engine, FaultKind::LostAfter), applied);
}

#[tokio::test]
async fn log_records_the_result_of_a_lost_response() {
    let engine = engine(Faults::seeded(5).lost_after(1.0)).await;
    assert!(put(&*engine, thing(1, 1)).await.is_err());
    let new = Condition::attribute_not_exists("shelf");
    let again = PutItem::new(TABLE, thing(1, 2)).condition(new);
    assert!(engine.write_item(again.into()).await.is_err());
    let details: Vec<String> = engine.faults().iter().map(ToString::to_string).collect();
    assert_eq!(
        details,
        [
            "lost after: number=1 operation=WriteItem result=success",
            "lost after: number=2 operation=WriteItem result=ConditionalCheckFailedException",
        ]
    );
}

#[tokio::test]
async fn token_makes_lost_responses_harmless() {
    let engine = engine(
        Faults::seeded(6)
            .lost_before(0.3)
            .lost_after(0.3)
            .conflict(0.1),
    )
    .await;
    for n in 0..200 {
        let add = Update::new().add("note", 1);
        let add = UpdateItem::new(TABLE, key(0), add).token(format!("token-{n}"));
        let mut attempts = 0;
        while let Err(error) = engine.write_item(add.clone().into()).await {
            assert!(error.is_retryable(), "{error:?}");
            attempts += 1;
            assert!(attempts < 100);
        }
    }
    let note = current_item(&engine, key(0)).await.unwrap();
    assert_eq!(note.get("note"), Some(&200.into()));
}

#[tokio::test]
async fn invalid_request_is_rejected_despite_faults() {
    let engine = engine(Faults::seeded(7).throttle(1.0)).await;
    let wrong = PutItem::new("x", Item::new());
    let response = engine.write_item(wrong.into()).await;
    assert!(
        matches!(response, Err(Error::Validation(_))),
        "{response:?}"
    );
    assert_eq!(engine.faults(), []);
}

#[tokio::test]
async fn scripted_fault_applies_to_the_next_operation_of_its_kind() {
    let engine = engine(Faults::seeded(8).throttle(1.0)).await;
    engine.pause();
    engine
        .script(Operation::WriteItem, FaultKind::LostBefore)
        .unwrap();
    engine
        .script(Operation::WriteItem, FaultKind::LostAfter)
        .unwrap();
    engine
        .script(Operation::Query, FaultKind::Throttle)
        .unwrap();
    assert!(engine.get_item(GetItem::new(TABLE, key(1))).await.is_ok());
    for place in [1, 2] {
        let response = put(&*engine, thing(place, 0)).await;
        assert!(matches!(response, Err(Error::OutcomeUnknown(_))));
    }
    assert_eq!(current_item(&engine, key(1)).await, None);
    assert_eq!(current_item(&engine, key(2)).await, Some(thing(2, 0)));
    assert!(put(&*engine, thing(3, 0)).await.is_ok());
    let kinds: Vec<_> = engine.faults().iter().map(|f| (f.number, f.kind)).collect();
    assert_eq!(
        kinds,
        [(2, FaultKind::LostBefore), (3, FaultKind::LostAfter)]
    );
    engine.resume();
    assert!(put(&*engine, thing(4, 0)).await.is_err());
}

#[tokio::test]
async fn inapplicable_fault_cannot_be_scripted() {
    let engine = engine(Faults::seeded(9)).await;
    for (operation, kind) in [
        (Operation::GetItem, FaultKind::Conflict),
        (Operation::WriteItem, FaultKind::PartialBatch),
        (Operation::TransactGetItems, FaultKind::StaleRead),
        (Operation::GetRecords, FaultKind::IndexLag),
        // No lag is configured.
        (Operation::GetItem, FaultKind::StaleRead),
        (Operation::Query, FaultKind::IndexLag),
    ] {
        let response = engine.script(operation, kind);
        assert!(
            matches!(response, Err(Error::Validation(_))),
            "{operation} {kind}"
        );
    }
}

#[tokio::test]
async fn faults_can_be_paused_filtered_and_changed() {
    let engine = engine(Faults::seeded(10).throttle(1.0)).await;
    assert!(put(&*engine, thing(1, 1)).await.is_err());
    engine.pause();
    assert!(put(&*engine, thing(1, 1)).await.is_ok());
    engine.resume();
    assert!(put(&*engine, thing(1, 1)).await.is_err());

    engine.set_faults(
        Faults::seeded(10)
            .throttle(1.0)
            .only_on([Operation::GetItem]),
    );
    assert!(put(&*engine, thing(1, 1)).await.is_ok());
    assert!(engine.get_item(GetItem::new(TABLE, key(1))).await.is_err());

    let other_tables = |request: &floe_testkit::fault::Request| request.resources != [TABLE];
    engine.set_faults(Faults::seeded(10).throttle(1.0).only(other_tables));
    assert!(put(&*engine, thing(1, 1)).await.is_ok());
    let elsewhere = GetItem::new("Elsewhere", key(1));
    assert!(matches!(engine.get_item(elsewhere).await, Err(error) if error.is_retryable()));
}
