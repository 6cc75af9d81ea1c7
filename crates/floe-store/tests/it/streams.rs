//! Validation of change stream requests.

use floe_store::op::{
    ChangeKind, ChangeRecord, DescribeStream, GetRecords, GetShardIterator, HoldChanges,
    IteratorKind, ListStreams, missing_shard, missing_stream,
};

use crate::{as_constraint_error, expect, id, text};

fn length(value: &str, path: &str, constraint: &str) -> String {
    as_constraint_error(&format!(
        "Value '{value}' at '{path}' failed to satisfy constraint: Member must have length \
         {constraint}"
    ))
}

fn value(value: usize, path: &str, constraint: &str) -> String {
    as_constraint_error(&format!(
        "Value '{value}' at '{path}' failed to satisfy constraint: Member must have value \
         {constraint}"
    ))
}

#[test]
fn page_limits_are_validated() {
    let list = |limit| ListStreams {
        limit: Some(limit),
        ..ListStreams::default()
    };
    let describe = |limit| DescribeStream {
        stream_arn: "arn:".to_owned(),
        limit: Some(limit),
        ..DescribeStream::default()
    };
    for (limit, expected) in [
        (1, String::new()),
        (100, String::new()),
        (0, value(0, "limit", "greater than or equal to 1")),
        (101, value(101, "limit", "less than or equal to 100")),
    ] {
        expect(list(limit).validate(), &expected);
        expect(describe(limit).validate(), &expected);
    }
    let records = |limit| GetRecords {
        iterator: text(1),
        limit: Some(limit),
    };
    for (limit, expected) in [
        (1, String::new()),
        (1000, String::new()),
        (0, value(0, "limit", "greater than or equal to 1")),
        (1001, value(1001, "limit", "less than or equal to 1000")),
    ] {
        expect(records(limit).validate(), &expected);
    }
}

#[test]
fn lengths_of_stream_and_shard_names_are_validated() {
    let describe = |arn: String, shard: Option<String>| DescribeStream {
        stream_arn: arn,
        start_after: shard,
        limit: None,
    };
    let invalid = || "Invalid StreamArn".to_owned();
    for (arn, shard, expected) in [
        ("arn:", 28, String::new()),
        (&*format!("arn:{}", text(1020)), 65, String::new()),
        (&format!("arn:{}", text(1021)), 28, invalid()),
        (&text(40), 28, invalid()),
        (
            "",
            27,
            length(
                &text(27),
                "exclusiveStartShardId",
                "greater than or equal to 28",
            ),
        ),
        (
            "arn:",
            66,
            length(
                &text(66),
                "exclusiveStartShardId",
                "less than or equal to 65",
            ),
        ),
    ] {
        let request = describe(arn.to_owned(), Some(text(shard)));
        expect(request.validate(), &expected);
    }
    let list = |arn: &str| ListStreams {
        start_after: Some(arn.to_owned()),
        ..ListStreams::default()
    };
    expect(list("arn:").validate(), "");
    expect(list(&text(40)).validate(), "Invalid StreamArn");
    expect(
        ListStreams {
            table_name: Some("x".to_owned()),
            ..ListStreams::default()
        }
        .validate(),
        &length("x", "tableName", "greater than or equal to 3"),
    );
    expect(
        GetRecords {
            iterator: String::new(),
            limit: None,
        }
        .validate(),
        &length("", "shardIterator", "greater than or equal to 1"),
    );
}

#[test]
fn sequence_numbers_have_21_to_40_digits() {
    let at = |kind| GetShardIterator {
        stream_arn: "arn:".to_owned(),
        shard_id: text(28),
        kind,
    };
    expect(at(IteratorKind::TrimHorizon).validate(), "");
    expect(at(IteratorKind::Latest).validate(), "");
    let fault = |constraint: &str| {
        as_constraint_error(&format!(
            "Value at 'sequenceNumber' failed to satisfy constraint: Member must have length \
             {constraint}"
        ))
    };
    for (digits, expected) in [
        (21, String::new()),
        (40, String::new()),
        (20, fault("greater than or equal to 21")),
        (41, fault("less than or equal to 40")),
    ] {
        let number = "1".repeat(digits);
        expect(
            at(IteratorKind::AtSequenceNumber(number.clone())).validate(),
            &expected,
        );
        expect(
            at(IteratorKind::AfterSequenceNumber(number)).validate(),
            &expected,
        );
    }
}

#[test]
fn change_kind_follows_from_old_and_new_item() {
    let (old, new) = (id("a"), id("a").with("v", 1));
    assert_eq!(ChangeKind::of(None, None), None);
    assert_eq!(ChangeKind::of(None, Some(&new)), Some(ChangeKind::Insert));
    assert_eq!(
        ChangeKind::of(Some(&old), Some(&new)),
        Some(ChangeKind::Modify)
    );
    assert_eq!(ChangeKind::of(Some(&old), None), Some(ChangeKind::Remove));
    assert_eq!(ChangeKind::of(Some(&old), Some(&old)), None);
    assert_eq!(
        ChangeRecord::bytes(&id("a"), Some(&old), Some(&new)),
        3 + 3 + 6
    );
    assert_eq!(ChangeRecord::bytes(&id("a"), None, None), 3);
}

#[test]
fn missing_streams_and_shards_are_named() {
    assert_eq!(
        missing_stream("arn").to_string(),
        "Requested resource not found: Stream: arn not found"
    );
    assert_eq!(
        missing_shard("arn", "shard").to_string(),
        "Requested resource not found: Shard: shard in Stream: arn not found"
    );
}

#[test]
fn consumer_names_have_1_to_255_bytes() {
    let hold = |consumer: String| HoldChanges {
        consumer,
        stream_arn: "arn:".to_owned(),
        after_sequence: Some("0".to_owned()),
    };
    for (bytes, expected) in [
        (1, ""),
        (255, ""),
        (0, "the consumer name must have 1 to 255 bytes: length=0"),
        (
            256,
            "the consumer name must have 1 to 255 bytes: length=256",
        ),
    ] {
        expect(hold(text(bytes)).validate(), expected);
    }
}
