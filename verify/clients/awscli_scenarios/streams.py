"""Change streams, with `aws dynamodbstreams`."""

from harness import contains, equal, holds, scenario

STREAM = "--stream-specification StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES"


@scenario
def records_are_read_shard_by_shard(world):
    with world.table("stream", more=STREAM) as table:
        for command in (
            """put-item --item '{"pk": {"S": "a"}, "n": {"N": "1"}}'""",
            """update-item --key '{"pk": {"S": "a"}}' --update-expression 'SET n = n + n'""",
            """delete-item --key '{"pk": {"S": "a"}}'""",
        ):
            world.aws(f"dynamodb {command} --table-name $TABLE", TABLE=table)
        stream = world.aws("dynamodbstreams list-streams --table-name $TABLE", TABLE=table)["Streams"][-1]
        arn = stream["StreamArn"]
        described = world.aws("dynamodbstreams describe-stream --stream-arn $ARN", ARN=arn)["StreamDescription"]
        contains(described, {"StreamStatus": "ENABLED", "StreamViewType": "NEW_AND_OLD_IMAGES", "TableName": table})
        records = []
        for shard in described["Shards"]:
            start = world.aws(
                "dynamodbstreams get-shard-iterator --stream-arn $ARN --shard-id $SHARD "
                "--shard-iterator-type TRIM_HORIZON",
                ARN=arn,
                SHARD=shard["ShardId"],
            )["ShardIterator"]
            page = world.aws("dynamodbstreams get-records --shard-iterator $START --limit 100", START=start)
            records += page["Records"]
            holds(page["NextShardIterator"], "an open shard has a next iterator")
        images = [
            (record["eventName"], record["dynamodb"].get("OldImage"), record["dynamodb"].get("NewImage"))
            for record in records
        ]
        one, two = ({"pk": {"S": "a"}, "n": {"N": n}} for n in "12")
        equal(images, [("INSERT", None, one), ("MODIFY", one, two), ("REMOVE", two, None)])
        second = records[1]["dynamodb"]["SequenceNumber"]
        start = world.aws(
            "dynamodbstreams get-shard-iterator --stream-arn $ARN --shard-id $SHARD --shard-iterator-type "
            "AFTER_SEQUENCE_NUMBER --sequence-number $AT",
            ARN=arn,
            AT=second,
            SHARD=described["Shards"][-1]["ShardId"],
        )["ShardIterator"]
        page = world.aws("dynamodbstreams get-records --shard-iterator $START", START=start)
        equal([record["eventName"] for record in page["Records"]], ["REMOVE"])


@scenario
def missing_stream_is_reported(world):
    with world.table("none") as table:
        equal(world.aws("dynamodbstreams list-streams --table-name $TABLE", TABLE=table)["Streams"], [])
        arn = world.aws("dynamodb describe-table --table-name $TABLE", TABLE=table)["Table"]["TableArn"]
        world.fails(
            "ResourceNotFoundException",
            "Stream",
            "dynamodbstreams describe-stream --stream-arn $ARN",
            ARN=f"{arn}/stream/2024-01-01T00:00:00.000",
        )
