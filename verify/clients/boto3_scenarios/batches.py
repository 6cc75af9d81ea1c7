"""Batches, and unprocessed items of batches that are too large."""

from harness import equal, fails, holds, scenario, within


@scenario
def batch_writer_writes_everything(world):
    with world.table("writer", "pk:S sk:N") as name:
        table = world.resource.Table(name)
        with table.batch_writer(overwrite_by_pkeys=["pk", "sk"]) as batch:
            for n in range(130):
                batch.put_item(Item={"pk": "a", "sk": n % 120, "n": n})
        items = {int(item["sk"]): int(item["n"]) for item in world.all_items(name)}
        equal(items, {n % 120: n for n in range(130)}, "the last of two puts with equal keys is written")
        with table.batch_writer() as batch:
            for n in range(60):
                batch.delete_item(Key={"pk": "a", "sk": n})
            batch.put_item(Item={"pk": "b", "sk": 0})
        equal(len(world.all_items(name)), 61)


@scenario
def batches_span_tables(world):
    with world.table("one") as one, world.table("two", "pk:S sk:N") as two:
        result = world.db.batch_write_item(
            ReturnConsumedCapacity="TOTAL",
            RequestItems={
                one: [
                    {"PutRequest": {"Item": {"pk": {"S": "a"}, "v": {"N": "1"}}}},
                    {"PutRequest": {"Item": {"pk": {"S": "b"}}}},
                ],
                two: [
                    {"PutRequest": {"Item": {"pk": {"S": "a"}, "sk": {"N": "1"}}}},
                    {"DeleteRequest": {"Key": {"pk": {"S": "never"}, "sk": {"N": "1"}}}},
                ],
            },
        )
        equal(result["UnprocessedItems"], {})
        capacity = {each["TableName"]: each["CapacityUnits"] for each in result["ConsumedCapacity"]}
        equal(capacity, {one: 2.0, two: 2.0})
        result = world.db.batch_get_item(
            RequestItems={
                one: {"Keys": [{"pk": {"S": "a"}}, {"pk": {"S": "never"}}, {"pk": {"S": "b"}}], "ConsistentRead": True},
                two: {"Keys": [{"pk": {"S": "a"}, "sk": {"N": "1"}}], "ProjectionExpression": "sk"},
            }
        )
        equal(sorted(item["pk"]["S"] for item in result["Responses"][one]), ["a", "b"])
        equal(result["Responses"][two], [{"sk": {"N": "1"}}])
        equal(result["UnprocessedKeys"], {})


@scenario
def unprocessed_keys_can_be_requested_again(world):
    with world.table("unprocessed") as name:
        large = "x" * 390_000
        for n in range(50):
            world.put(name, {"pk": str(n), "data": large})
        rest = {
            name: {
                "Keys": [{"pk": str(n)} for n in range(50)],
                "ProjectionExpression": "pk, #d",
                "ExpressionAttributeNames": {"#d": "data"},
            }
        }
        found, rounds = [], 0
        while rest:
            result = world.resource.batch_get_item(RequestItems=rest)
            page = result["Responses"].get(name, [])
            holds(sum(len(item["data"]) for item in page) <= 16 * 1024 * 1024, "a response has at most 16 MB")
            found += page
            rest, rounds = result["UnprocessedKeys"], rounds + 1
            if rest:
                equal(
                    rest[name]["ExpressionAttributeNames"], {"#d": "data"}, "the unprocessed keys can be sent unchanged"
                )
            holds(rounds < 10, "batch get completes within 10 rounds")
        holds(rounds > 1, "50 items of 390 KB exceed the size limit of one response")
        equal(sorted(int(item["pk"]) for item in found), list(range(50)), "each item is returned once")


@scenario
def invalid_batches_are_rejected(world):
    with world.table("wrong") as name:
        put = lambda pk: {"PutRequest": {"Item": {"pk": {"S": pk}}}}
        write = lambda requests: lambda: world.db.batch_write_item(RequestItems={name: requests})
        get = lambda keys: lambda: world.db.batch_get_item(RequestItems={name: {"Keys": keys}})
        duplicates = "Provided list of item keys contains duplicates"
        cases = [
            (write([put("a"), put("a")]), duplicates),
            (write([put("a"), {"DeleteRequest": {"Key": {"pk": {"S": "a"}}}}]), duplicates),
            (write([put(str(n)) for n in range(26)]), "25"),
            (
                write([put("a"), {"PutRequest": {"Item": {"sk": {"S": "x"}}}}]),
                "The provided key element does not match " "the schema",
            ),
            (get([{"pk": {"S": "a"}}] * 2), duplicates),
            (get([{"pk": {"S": str(n)}} for n in range(101)]), "less than or equal to 100"),
        ]
        for call, message in cases:
            fails("ValidationException", within(message), call)
        equal(world.all_items(name), [], "nothing was written")
        fails(
            "ResourceNotFoundException",
            "Requested resource not found",
            lambda: world.db.batch_get_item(RequestItems={"boto3.nowhere": {"Keys": [{"pk": {"S": "a"}}]}}),
            kind=world.db.exceptions.ResourceNotFoundException,
        )
