"""Streams: shards, iterators, and records with the images that the view selects."""

import datetime

from harness import contains, equal, fails, holds, scenario, within

BOTH = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


class Reader:
    """Reads the stream of a table like a consumer: shard by shard, page by page."""

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
        """Returns the records from an iterator up to the current end of the shard, and the next iterator."""
        records = []
        while iterator:
            page = self.streams.get_records(ShardIterator=iterator, Limit=limit)
            records += page["Records"]
            iterator = page.get("NextShardIterator")
            if not page["Records"]:
                break
        return records, iterator

    def all_records(self):
        """Returns all records of all shards, in the order of their sequence numbers."""
        records = [record for shard in self.shards() for record in self.read(self.start(shard))[0]]
        return sorted(records, key=lambda record: int(record["dynamodb"]["SequenceNumber"]))


@scenario
def records_contain_keys_and_images(world):
    with world.table("images", "pk:S sk:N", StreamSpecification=BOTH) as name:
        table = world.resource.Table(name)
        key = {"pk": "a", "sk": 1}
        table.put_item(Item=key | {"v": "one", "set": {"x"}, "raw": b"\x00\xff"})
        table.put_item(Item=key | {"v": "one", "set": {"x"}, "raw": b"\x00\xff"})  # changes nothing
        table.update_item(Key=key, UpdateExpression="SET v = :v", ExpressionAttributeValues={":v": "two"})
        table.delete_item(Key=key)
        table.delete_item(Key=key)  # no item to delete
        records = Reader(world, name).all_records()
        equal([record["eventName"] for record in records], ["INSERT", "MODIFY", "REMOVE"])
        keys = {"pk": {"S": "a"}, "sk": {"N": "1"}}
        one = keys | {"v": {"S": "one"}, "set": {"SS": ["x"]}, "raw": {"B": b"\x00\xff"}}
        two = one | {"v": {"S": "two"}}
        for record, old, new in zip(records, (None, one, two), (one, two, None)):
            contains(record, {"eventSource": "aws:dynamodb", "awsRegion": world.region})
            holds(record["eventID"] and record["eventVersion"], "the record has an id and a version")
            change = record["dynamodb"]
            contains(change, {"Keys": keys, "OldImage": old, "NewImage": new, "StreamViewType": "NEW_AND_OLD_IMAGES"})
            holds(change["SizeBytes"] > 0, "the record has a size")
            age = datetime.datetime.now(datetime.timezone.utc) - change["ApproximateCreationDateTime"]
            holds(abs(age) < datetime.timedelta(minutes=5), f"the record is recent: {age}")
        equal(len({record["eventID"] for record in records}), 3, "each record has a unique id")


@scenario
def views_select_the_images(world):
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
        # Streams of earlier tables with the same name are listed until their records are trimmed.
        streams = world.streams.list_streams(TableName=name)["Streams"]
        holds(all(listed["TableName"] == name for listed in streams), "only streams of the table are listed")
        stream = streams[-1]
        equal(
            stream,
            {
                "StreamArn": described["LatestStreamArn"],
                "TableName": name,
                "StreamLabel": described["LatestStreamLabel"],
            },
        )
        holds(len(world.streams.list_streams()["Streams"]) >= 2, "the streams of all tables are listed")
        page = world.streams.list_streams(Limit=1)
        equal(len(page["Streams"]), 1)
        rest = world.streams.list_streams(ExclusiveStartStreamArn=page["LastEvaluatedStreamArn"])
        holds(page["Streams"][0] not in rest["Streams"], "the next page starts after the first")
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
            holds(shard["ShardId"].startswith("shardId-"), "the shard has an id")
            holds(shard["SequenceNumberRange"]["StartingSequenceNumber"].isdigit(), "the shard has a starting number")


@scenario
def iterators_start_at_the_requested_position(world):
    with world.table("iterators", StreamSpecification=BOTH) as name:
        reader = Reader(world, name)
        latest = [reader.start(shard, "LATEST") for shard in reader.shards()]
        world.put(name, *({"pk": "a", "n": n} for n in range(10)))
        numbers = lambda records: [int(record["dynamodb"]["NewImage"]["n"]["N"]) for record in records]
        records = [(shard, record) for shard in reader.shards() for record in reader.read(reader.start(shard), 3)[0]]
        equal(numbers(record for _, record in records), list(range(10)), "from the start, in pages of three")
        shard, fifth = records[5]
        sequence = {"SequenceNumber": fifth["dynamodb"]["SequenceNumber"]}
        equal(numbers(reader.read(reader.start(shard, "AT_SEQUENCE_NUMBER", **sequence))[0]), list(range(5, 10)))
        equal(numbers(reader.read(reader.start(shard, "AFTER_SEQUENCE_NUMBER", **sequence))[0]), list(range(6, 10)))
        equal(
            [n for start in latest for n in numbers(reader.read(start)[0])], list(range(10)), "from an earlier LATEST"
        )
        equal(reader.read(reader.start(shard, "LATEST"))[0], [], "there is no newer record")
        # An iterator at the end of an open shard returns later records.
        _, onward = reader.read(reader.start(shard))
        world.put(name, {"pk": "a", "n": 10})
        equal(numbers(reader.read(onward)[0]), [10])


@scenario
def disabled_stream_stays_readable(world):
    with world.table("switched", StreamSpecification=BOTH) as name:
        reader = Reader(world, name)
        world.put(name, {"pk": "a"})
        world.db.update_table(TableName=name, StreamSpecification={"StreamEnabled": False})
        world.put(name, {"pk": "b"})
        equal(len(reader.all_records()), 1, "earlier records can still be read")
        (shard,) = reader.shards()
        holds("EndingSequenceNumber" in shard["SequenceNumberRange"], "the shard is closed")
        _, onward = reader.read(reader.start(shard))
        equal(onward, None, "a closed shard has no next iterator at its end")
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
        recorded = sorted(
            (record["eventName"], record["dynamodb"]["Keys"]["pk"]["S"]) for record in Reader(world, name).all_records()
        )
        equal(recorded, [("INSERT", pk) for pk in "abcd"] + [("REMOVE", "a")])


@scenario
def invalid_stream_reads_are_rejected(world):
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
