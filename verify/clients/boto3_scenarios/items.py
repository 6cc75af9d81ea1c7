"""Items: round trips of values of every type and size, and return values of the item operations."""

from decimal import Decimal

from boto3.dynamodb.types import Binary

from harness import equal, fails, holds, scenario, within

from .world import index

ITEM_BYTES_MAX = 400 * 1024


@scenario(keys=None)
def values_of_every_type_round_trip(world):
    item = {
        "pk": "types",
        "string": "hello",
        "empty": "",
        "unicode": 'Grüße, 世界 🧊\u0000\t"\\ \u2028',
        "🧊": "a name",
        "integer": 42,
        "negative": -7,
        "zero": 0,
        "fraction": Decimal("3.14159"),
        "yes": True,
        "no": False,
        "nothing": None,
        "list": [1, "two", [None, {"three": 3}], []],
        "map": {"a": {"b": {"c": [True]}}, "empty": {}},
        "strings": {"red", "green", "ß"},
        "numbers": {1, Decimal("2.5"), -3},
    }
    with world.table("types") as table:
        world.put(table, item)
        equal(world.get(table, pk="types"), item)

        raw = bytes(range(256))
        world.put(table, {"pk": "binary", "raw": raw, "none": b"", "set": {b"\x00", b"\xff\xfe"}})
        found = world.get(table, pk="binary")
        equal((found["raw"].value, found["none"].value), (raw, b""))
        equal(found["set"], {Binary(b"\x00"), Binary(b"\xff\xfe")})


@scenario
def numbers_keep_their_digits(world):
    numbers = [
        "12345678901234567890123456789012345678",
        "-0.12345678901234567890123456789012345678",
        "1E-130",
        "-1E-130",
        "0.000000000000000000000000000000000000001",
        "1E+37",
    ]
    # The resource API of boto3 cannot parse these (boto3 issue 2500), the client API can.
    long = ["9" * 38 + "0" * 88, "-1" + "0" * 125, "1" + "0" * 100]
    written = [("1.50", "1.5"), ("1e3", "1000"), ("00012.0", "12"), ("-0", "0"), ("0.10e1", "1")]
    refused = [
        ("1E+126", "Number overflow. Attempting to store a number with magnitude larger than supported range"),
        ("-1E+126", "Number overflow. Attempting to store a number with magnitude larger than supported range"),
        ("1E-131", "Number underflow. Attempting to store a number with magnitude smaller than supported range"),
        ("123456789012345678901234567890123456789", "Attempting to store more than 38 significant digits in a Number"),
        ("ten", "The parameter cannot be converted to a numeric value: ten"),
        ("", "The parameter cannot be converted to a numeric value"),
    ]
    with world.table("numbers", "pk:N") as table:
        for number in map(Decimal, numbers):
            world.put(table, {"pk": number, "nested": [number]})
            equal(world.get(table, pk=number), {"pk": number, "nested": [number]})
        for number in long:
            world.db.put_item(TableName=table, Item={"pk": {"N": number}})
            found = world.db.get_item(TableName=table, Key={"pk": {"N": number}})["Item"]
            equal(found, {"pk": {"N": number}})
        for sent, kept in written:
            world.db.put_item(TableName=table, Item={"pk": {"N": sent}, "set": {"NS": [sent]}})
            found = world.db.get_item(TableName=table, Key={"pk": {"N": kept}})["Item"]
            equal(found, {"pk": {"N": kept}, "set": {"NS": [kept]}}, sent)
        for number, message in refused:
            fails(
                "ValidationException",
                within(message),
                lambda: world.db.put_item(TableName=table, Item={"pk": {"N": "1"}, "n": {"N": number}}),
            )


@scenario
def items_up_to_the_size_limit_are_accepted(world):
    with world.table("large") as table:
        # Names count too: two bytes of `pk`, three of `big`, four of `data`.
        room = ITEM_BYTES_MAX - 2 - 3 - 4
        world.put(table, {"pk": "big", "data": "x" * room})
        equal(world.get(table, pk="big"), {"pk": "big", "data": "x" * room})
        world.put(table, {"pk": "big", "data": b"\x00" * room})
        equal(len(world.get(table, pk="big")["data"].value), room)
        fails(
            "ValidationException",
            "Item size has exceeded the maximum allowed size",
            lambda: world.put(table, {"pk": "big", "data": "x" * (room + 1)}),
        )
        fails(
            "ValidationException",
            "Item size to update has exceeded the maximum allowed size",
            lambda: world.resource.Table(table).update_item(
                Key={"pk": "big"}, UpdateExpression="SET z = :z", ExpressionAttributeValues={":z": ""}
            ),
        )
        wide = {"pk": "wide"} | {f"attribute-{n}": n for n in range(5000)}
        world.put(table, wide)
        equal(world.get(table, pk="wide"), wide)


@scenario
def nesting_depth_is_limited(world):
    def nested(levels):
        return {"M": {"m": nested(levels - 1)}} if levels else {"N": "1"}

    with world.table("nested") as table:
        put = lambda value: world.db.put_item(TableName=table, Item={"pk": {"S": "a"}, "deep": value})
        put(nested(31))
        found = world.db.get_item(TableName=table, Key={"pk": {"S": "a"}})["Item"]
        equal(found["deep"], nested(31))
        fails("ValidationException", within("Nesting Levels have exceeded supported limits"), lambda: put(nested(32)))


@scenario
def invalid_items_are_rejected(world):
    cases = [
        (
            {"pk": {"S": ""}},
            "One or more parameter values are not valid. The AttributeValue for a key attribute cannot "
            "contain an empty string value. Key: pk",
        ),
        ({"sk": {"S": "x"}}, "One or more parameter values were invalid: Missing the key pk in the item"),
        (
            {"pk": {"N": "1"}},
            "One or more parameter values were invalid: Type mismatch for key pk expected: S actual: " "N",
        ),
        (
            {"pk": {"S": "a"}, "s": {"SS": []}},
            "One or more parameter values were invalid: An string set  may not be " "empty",
        ),
        ({"pk": {"S": "a"}, "s": {"SS": ["x", "x"]}}, "contains duplicates"),
        ({"pk": {"S": "a"}, "s": {"NS": ["1", "1.0"]}}, "contains duplicates"),
        (
            {"pk": {"S": "a"}, "s": {"NULL": False}},
            "One or more parameter values were invalid: Null attribute value " "types must have the value of true",
        ),
        (
            {"pk": {"S": "k" * 2049}},
            "One or more parameter values were invalid: Size of hashkey has exceeded the "
            "maximum size limit of2048 bytes",
        ),
    ]
    with world.table("wrong") as table:
        for item, message in cases:
            fails("ValidationException", within(message), lambda: world.db.put_item(TableName=table, Item=item))
        fails(
            "ValidationException",
            "The provided key element does not match the schema",
            lambda: world.db.get_item(TableName=table, Key={"pk": {"S": "a"}, "more": {"S": "b"}}),
        )
        fails(
            "ValidationException",
            within("ReturnValues can only be ALL_OLD or NONE"),
            lambda: world.db.put_item(TableName=table, Item={"pk": {"S": "a"}}, ReturnValues="UPDATED_NEW"),
        )
        equal(world.all_items(table), [], "nothing is stored")


@scenario
def writes_return_the_requested_values(world):
    with world.table("returns") as name:
        table = world.resource.Table(name)
        holds("Attributes" not in table.put_item(Item={"pk": "a", "n": 1}, ReturnValues="ALL_OLD"), "there was no item")
        old = table.put_item(Item={"pk": "a", "n": 2, "m": 0}, ReturnValues="ALL_OLD")
        equal(old["Attributes"], {"pk": "a", "n": 1})
        cases = [
            ("ALL_OLD", {"pk": "a", "n": 2, "m": 0}),
            ("UPDATED_OLD", {"n": 3}),
            ("UPDATED_NEW", {"n": 5}),
            ("ALL_NEW", {"pk": "a", "n": 6, "m": 0}),
        ]
        for returned, expected in cases:
            result = table.update_item(
                Key={"pk": "a"},
                UpdateExpression="SET n = n + :one",
                ReturnValues=returned,
                ExpressionAttributeValues={":one": 1},
            )
            equal(result["Attributes"], expected, returned)
        result = table.update_item(Key={"pk": "a"}, UpdateExpression="REMOVE n", ReturnValues="NONE")
        holds("Attributes" not in result, "no values were requested")
        result = table.update_item(
            Key={"pk": "new"},
            UpdateExpression="SET #l = :l",
            ReturnValues="ALL_NEW",
            ExpressionAttributeNames={"#l": "list"},
            ExpressionAttributeValues={":l": [1]},
        )
        equal(result["Attributes"], {"pk": "new", "list": [1]}, "an update creates the item")
        equal(table.update_item(Key={"pk": "bare"}, ReturnValues="ALL_NEW")["Attributes"], {"pk": "bare"})
        equal(table.delete_item(Key={"pk": "a"}, ReturnValues="ALL_OLD")["Attributes"], {"pk": "a", "m": 0})
        holds(
            "Attributes" not in table.delete_item(Key={"pk": "a"}, ReturnValues="ALL_OLD"),
            "the item was already deleted",
        )
        holds("Item" not in table.get_item(Key={"pk": "a"}), "the item does not exist")


@scenario
def keys_of_every_type_are_found_and_ordered(world):
    cases = [
        ("S", ["A", "a", "b", "ba", "z", "é", "世", "🧊"]),
        ("N", [Decimal(n) for n in ("-1E+30", "-20", "-3", "-0.5", "0", "1E-100", "0.5", "3", "20", "1E+30")]),
        ("B", [Binary(b) for b in (b"\x00", b"\x00\x00", b"\x01", b"\x7f", b"\x80", b"\xff", b"\xff\x00")]),
    ]
    for kind, values in cases:
        with world.table("keys", f"pk:{kind} sk:{kind}") as name:
            table = world.resource.Table(name)
            for value in reversed(values):
                table.put_item(Item={"pk": values[0], "sk": value})
            condition = {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": values[0]}}
            equal([item["sk"] for item in table.query(**condition)["Items"]], values, kind)
            backward = table.query(**condition, ScanIndexForward=False)["Items"]
            equal([item["sk"] for item in backward], values[::-1], kind)
            equal(table.get_item(Key={"pk": values[0], "sk": values[-1]})["Item"]["sk"], values[-1])


@scenario
def consumed_capacity_is_returned(world):
    settings = {"attributes": "g:S", "GlobalSecondaryIndexes": [index("by-g", "g")]}
    with world.table("capacity", "pk:S sk:S", **settings) as name:
        table = world.resource.Table(name)
        put = table.put_item(
            Item={"pk": "a", "sk": "1", "g": "x", "data": "x" * 5000}, ReturnConsumedCapacity="INDEXES"
        )["ConsumedCapacity"]
        equal((put["TableName"], put["CapacityUnits"]), (name, 10.0))
        equal((put["Table"]["CapacityUnits"], put["GlobalSecondaryIndexes"]["by-g"]["CapacityUnits"]), (5.0, 5.0))
        key = {"pk": "a", "sk": "1"}
        for consistent, units in ((False, 1.0), (True, 2.0)):
            got = table.get_item(Key=key, ConsistentRead=consistent, ReturnConsumedCapacity="TOTAL")
            equal(got["ConsumedCapacity"], {"TableName": name, "CapacityUnits": units})
        query = table.query(
            KeyConditionExpression="pk = :a", ExpressionAttributeValues={":a": "a"}, ReturnConsumedCapacity="TOTAL"
        )
        equal(query["ConsumedCapacity"]["CapacityUnits"], 1.0)
        absent = table.get_item(Key=key | {"sk": "no"}, ReturnConsumedCapacity="TOTAL")
        equal(absent["ConsumedCapacity"]["CapacityUnits"], 0.5, "a read without an item")
        holds("ConsumedCapacity" not in table.get_item(Key=key), "capacity is only returned on request")
        deleted = table.delete_item(Key=key, ReturnConsumedCapacity="TOTAL")
        equal(deleted["ConsumedCapacity"]["CapacityUnits"], 10.0)
