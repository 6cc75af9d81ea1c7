"""Streams: shards, iterators, and records with the images that the view asks for."""

import datetime

from harness import contains, equal, fails, holds, scenario, within

BOTH = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


class Reader:
    """Reads the stream of a table as a consumer does: shard by shard, page by page."""

    def __init__(self, world, table):
        self.streams = world.streams
        self.arn = world.db.describe_table(TableName=table)["Table"]["LatestStreamArn"]

    def shards(self):
        found, more = [], {}
        while True:
            page = self.streams.describe_stream(StreamArn=self.arn, **more)["StreamDescription"]
            found += page["Shards"]
            if "LastEvaluatedShardId" not in page:
                return found
            more = {"ExclusiveStartShardId": page["LastEvaluatedShardId"]}

    def start(self, shard, kind="TRIM_HORIZON", **position):
        return self.streams.get_shard_iterator(
            StreamArn=self.arn, ShardId=shard["ShardId"], ShardIteratorType=kind, **position
        )["ShardIterator"]

    def read(self, iterator, limit=1000):
        """The records from an iterator on, until the shard has no more for now, and the iterator to go on with."""
        records = []
        while iterator:
            page = self.streams.get_records(ShardIterator=iterator, Limit=limit)
            records += page["Records"]
            iterator = page.get("NextShardIterator")
            if not page["Records"]:
                break
        return records, iterator

    def all_records(self):
        """All records of all shards, in the order of their sequence numbers."""
        records = [record for shard in self.shards() for record in self.read(self.start(shard))[0]]
        return sorted(records, key=lambda record: int(record["dynamodb"]["SequenceNumber"]))


@scenario
def records_hold_what_changed(world):
    with world.table("images", "pk:S sk:N", StreamSpecification=BOTH) as name:
        table = world.resource.Table(name)
        key = {"pk": "a", "sk": 1}
        table.put_item(Item=key | {"v": "one", "set": {"x"}, "raw": b"\x00\xff"})
        table.put_item(Item=key | {"v": "one", "set": {"x"}, "raw": b"\x00\xff"})  # changes nothing
        table.update_item(Key=key, UpdateExpression="SET v = :v", ExpressionAttributeValues={":v": "two"})
        table.delete_item(Key=key)
        table.delete_item(Key=key)  # there is nothing to delete
        records = Reader(world, name).all_records()
        equal([record["eventName"] for record in records], ["INSERT", "MODIFY", "REMOVE"])
        keys = {"pk": {"S": "a"}, "sk": {"N": "1"}}
        one = keys | {"v": {"S": "one"}, "set": {"SS": ["x"]}, "raw": {"B": b"\x00\xff"}}
        two = one | {"v": {"S": "two"}}
        for record, old, new in zip(records, (None, one, two), (one, two, None)):
            contains(record, {"eventSource": "aws:dynamodb", "awsRegion": world.region})
            holds(record["eventID"] and record["eventVersion"], "an id and a version")
            change = record["dynamodb"]
            contains(change, {"Keys": keys, "OldImage": old, "NewImage": new, "StreamViewType": "NEW_AND_OLD_IMAGES"})
            holds(change["SizeBytes"] > 0, "a size")
            age = datetime.datetime.now(datetime.timezone.utc) - change["ApproximateCreationDateTime"]
            holds(abs(age) < datetime.timedelta(minutes=5), f"it happened just now: {age}")
        equal(len({record["eventID"] for record in records}), 3, "each has an id of its own")


@scenario
def views_show_what_they_are_made_for(world):
    views = {"KEYS_ONLY": (), "NEW_IMAGE": ("NewImage",), "OLD_IMAGE": ("OldImage",)}
    for view, images in views.items():
        with world.table("views", StreamSpecification={"StreamEnabled": True, "StreamViewType": view}) as name:
            world.put(name, {"pk": "a", "n": 1}, {"pk": "a", "n": 2})
            last = Reader(world, name).all_records()[-1]
            equal(last["dynamodb"]["Keys"], {"pk": {"S": "a"}})
            equal(tuple(image for image in ("NewImage", "OldImage") if image in last["dynamodb"]), images, view)


@scenario
def streams_are_listed_and_described(world):
    with world.table("listed", StreamSpecification=BOTH) as name, world.table("other", StreamSpecification=BOTH):
        described = world.db.describe_table(TableName=name)["Table"]
        # Streams of tables that had the name before are listed until their records are trimmed.
        streams = world.streams.list_streams(TableName=name)["Streams"]
        holds(all(listed["TableName"] == name for listed in streams), "those of the table alone")
        stream = streams[-1]
        equal(
            stream,
            {
                "StreamArn": described["LatestStreamArn"],
                "TableName": name,
                "StreamLabel": described["LatestStreamLabel"],
            },
        )
        holds(len(world.streams.list_streams()["Streams"]) >= 2, "those of all tables")
        page = world.streams.list_streams(Limit=1)
        equal(len(page["Streams"]), 1)
        rest = world.streams.list_streams(ExclusiveStartStreamArn=page["LastEvaluatedStreamArn"])
        holds(page["Streams"][0] not in rest["Streams"], "the next page goes on")
        detail = world.streams.describe_stream(StreamArn=stream["StreamArn"])["StreamDescription"]
        contains(
            detail,
            {
                "StreamStatus": "ENABLED",
                "StreamViewType": "NEW_AND_OLD_IMAGES",
                "TableName": name,
                "StreamArn": stream["StreamArn"],
                "KeySchema": described["KeySchema"],
            },
        )
        holds(detail["Shards"], "there is a shard")
        for shard in detail["Shards"]:
            holds(shard["ShardId"].startswith("shardId-"), "its id")
            holds(shard["SequenceNumberRange"]["StartingSequenceNumber"].isdigit(), "where it starts")


@scenario
def iterators_start_where_they_are_told(world):
    with world.table("iterators", StreamSpecification=BOTH) as name:
        reader = Reader(world, name)
        latest = [reader.start(shard, "LATEST") for shard in reader.shards()]
        world.put(name, *({"pk": "a", "n": n} for n in range(10)))
        numbers = lambda records: [int(record["dynamodb"]["NewImage"]["n"]["N"]) for record in records]
        records = [(shard, record) for shard in reader.shards() for record in reader.read(reader.start(shard), 3)[0]]
        equal(numbers(record for _, record in records), list(range(10)), "from the beginning, in pages of three")
        shard, fifth = records[5]
        sequence = {"SequenceNumber": fifth["dynamodb"]["SequenceNumber"]}
        equal(numbers(reader.read(reader.start(shard, "AT_SEQUENCE_NUMBER", **sequence))[0]), list(range(5, 10)))
        equal(numbers(reader.read(reader.start(shard, "AFTER_SEQUENCE_NUMBER", **sequence))[0]), list(range(6, 10)))
        equal([n for start in latest for n in numbers(reader.read(start)[0])], list(range(10)), "from what was latest")
        equal(reader.read(reader.start(shard, "LATEST"))[0], [], "nothing has happened since")
        # An iterator that has reached the end goes on when something happens.
        _, onward = reader.read(reader.start(shard))
        world.put(name, {"pk": "a", "n": 10})
        equal(numbers(reader.read(onward)[0]), [10])


@scenario
def a_stream_survives_being_switched_off(world):
    with world.table("switched", StreamSpecification=BOTH) as name:
        reader = Reader(world, name)
        world.put(name, {"pk": "a"})
        world.db.update_table(TableName=name, StreamSpecification={"StreamEnabled": False})
        world.put(name, {"pk": "b"})
        equal(len(reader.all_records()), 1, "what was recorded before can be read")
        (shard,) = reader.shards()
        holds("EndingSequenceNumber" in shard["SequenceNumberRange"], "its shard is closed")
        _, onward = reader.read(reader.start(shard))
        equal(onward, None, "a closed shard comes to an end")
        fails(
            "ValidationException",
            within("Table has no stream to disable"),
            lambda: world.db.update_table(TableName=name, StreamSpecification={"StreamEnabled": False}),
        )


@scenario
def transactions_and_batches_are_recorded(world):
    with world.table("recorded", StreamSpecification=BOTH) as name:
        world.db.transact_write_items(
            TransactItems=[{"Put": {"TableName": name, "Item": {"pk": {"S": pk}}}} for pk in "abc"]
        )
        world.db.batch_write_item(
            RequestItems={
                name: [{"PutRequest": {"Item": {"pk": {"S": "d"}}}}, {"DeleteRequest": {"Key": {"pk": {"S": "a"}}}}]
            }
        )
        told = sorted(
            (record["eventName"], record["dynamodb"]["Keys"]["pk"]["S"]) for record in Reader(world, name).all_records()
        )
        equal(told, [("INSERT", pk) for pk in "abcd"] + [("REMOVE", "a")])


@scenario
def wrong_reads_of_streams_are_refused(world):
    with world.table("wrong", StreamSpecification=BOTH) as name:
        reader = Reader(world, name)
        shard, *_ = reader.shards()
        missing = world.streams.exceptions.ResourceNotFoundException
        other = reader.arn.replace(name, "boto3.nowhere")
        fails(
            "ResourceNotFoundException",
            within("Stream"),
            lambda: world.streams.describe_stream(StreamArn=other),
            kind=missing,
        )
        unknown = {"ShardId": "shardId-00000000000000000000-00000000"}
        fails("ResourceNotFoundException", within("Shard"), lambda: reader.start(shard | unknown), kind=missing)
        fails("ValidationException", within("SequenceNumber"), lambda: reader.start(shard, "AT_SEQUENCE_NUMBER"))
        fails(
            "ValidationException",
            within("ShardIterator"),
            lambda: world.streams.get_records(ShardIterator="not an iterator"),
        )
