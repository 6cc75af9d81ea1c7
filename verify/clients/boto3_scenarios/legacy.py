"""Parameters that are older than expressions, which old programs and libraries still send."""

from harness import equal, fails, holds, scenario, within

FAILED = ("ConditionalCheckFailedException", "The conditional request failed")


@scenario
def expected_values_are_conditions(world):
    one, two = {"N": "1"}, {"N": "2"}
    met = [
        {"n": {"Value": one}},
        {"absent": {"Exists": False}},
        {"n": {"Exists": True, "Value": one}},
        {"n": {"ComparisonOperator": "EQ", "AttributeValueList": [one]}},
        {"n": {"ComparisonOperator": "NE", "AttributeValueList": [two]}},
        {"n": {"ComparisonOperator": "LT", "AttributeValueList": [two]}},
        {"n": {"ComparisonOperator": "GE", "AttributeValueList": [one]}},
        {"n": {"ComparisonOperator": "BETWEEN", "AttributeValueList": [one, two]}},
        {"n": {"ComparisonOperator": "IN", "AttributeValueList": [two, one]}},
        {"s": {"ComparisonOperator": "BEGINS_WITH", "AttributeValueList": [{"S": "te"}]}},
        {"s": {"ComparisonOperator": "CONTAINS", "AttributeValueList": [{"S": "ex"}]}},
        {"s": {"ComparisonOperator": "NOT_CONTAINS", "AttributeValueList": [{"S": "zz"}]}},
        {"s": {"ComparisonOperator": "NOT_NULL"}},
        {"absent": {"ComparisonOperator": "NULL"}},
    ]
    unmet = [
        {"n": {"Value": two}},
        {"n": {"Exists": False}},
        {"n": {"Value": one}, "s": {"Value": {"S": "x"}}},
        {"n": {"ComparisonOperator": "GT", "AttributeValueList": [one]}},
        {"absent": {"ComparisonOperator": "NOT_NULL"}},
    ]
    with world.table("expected") as name:
        item = {"pk": {"S": "a"}, "n": one, "s": {"S": "text"}}
        put = lambda **more: world.db.put_item(TableName=name, Item=item, **more)
        put()
        for expected in met:
            put(Expected=expected)
            holds(True, f"met: {expected}")
        for expected in unmet:
            fails(*FAILED, lambda: put(Expected=expected))
        either = {"n": {"Value": two}, "s": {"Value": {"S": "text"}}}
        put(Expected=either, ConditionalOperator="OR")
        fails(*FAILED, lambda: put(Expected=either, ConditionalOperator="AND"))
        fails(*FAILED, lambda: world.db.delete_item(TableName=name, Key={"pk": {"S": "a"}}, Expected=unmet[0]))
        fails(
            "ValidationException",
            within(
                "Can not use both expression and non-expression parameters in the same "
                "request: Non-expression parameters: {Expected} Expression parameters: {ConditionExpression}"
            ),
            lambda: put(Expected=met[0], ConditionExpression="attribute_exists(pk)"),
        )


@scenario
def attribute_updates_change_items(world):
    with world.table("attributes") as name:
        world.put(name, {"pk": "a", "n": 1, "s": "text", "set": {"x", "y"}, "list": [1], "gone": True})
        result = world.db.update_item(
            TableName=name,
            Key={"pk": {"S": "a"}},
            ReturnValues="ALL_NEW",
            AttributeUpdates={
                "n": {"Action": "ADD", "Value": {"N": "41"}},
                "s": {"Action": "PUT", "Value": {"S": "new"}},
                "set": {"Action": "DELETE", "Value": {"SS": ["x", "z"]}},
                "gone": {"Action": "DELETE"},
                "list": {"Action": "ADD", "Value": {"L": [{"N": "2"}]}},
                "made": {"Value": {"BOOL": True}},
            },
        )
        equal(
            result["Attributes"],
            {
                "pk": {"S": "a"},
                "n": {"N": "42"},
                "s": {"S": "new"},
                "set": {"SS": ["y"]},
                "made": {"BOOL": True},
                "list": {"L": [{"N": "1"}, {"N": "2"}]},
            },
        )
        fails(
            *FAILED,
            lambda: world.db.update_item(
                TableName=name,
                Key={"pk": {"S": "a"}},
                AttributeUpdates={"n": {"Value": {"N": "0"}}},
                Expected={"n": {"Value": {"N": "0"}}},
            ),
        )
        equal(world.get(name, pk="a")["n"], 42)


@scenario
def key_conditions_and_filters_select_items(world):
    with world.table("selected", "pk:S sk:N") as name:
        world.put(name, *({"pk": "a", "sk": n, "even": n % 2 == 0, "name": f"n{n}"} for n in range(10)))
        pk = {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]}}
        query = lambda **more: world.db.query(TableName=name, **more)
        sorts = [
            ("LT", ["3"], 3),
            ("LE", ["3"], 4),
            ("GT", ["3"], 6),
            ("GE", ["3"], 7),
            ("EQ", ["3"], 1),
            ("BETWEEN", ["2", "5"], 4),
        ]
        for operator, values, count in sorts:
            sk = {"sk": {"ComparisonOperator": operator, "AttributeValueList": [{"N": value} for value in values]}}
            equal(query(KeyConditions=pk | sk)["Count"], count, operator)
        even = {"even": {"ComparisonOperator": "EQ", "AttributeValueList": [{"BOOL": True}]}}
        third = {"name": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "n3"}]}}
        found = query(KeyConditions=pk, QueryFilter=even, AttributesToGet=["sk"])
        equal([item["sk"]["N"] for item in found["Items"]], ["0", "2", "4", "6", "8"])
        equal((found["Items"][0], found["ScannedCount"]), ({"sk": {"N": "0"}}, 10))
        equal(query(KeyConditions=pk, QueryFilter=even | third, ConditionalOperator="OR")["Count"], 6)
        equal(world.db.scan(TableName=name, ScanFilter=even | third)["Count"], 0)
        equal(world.db.scan(TableName=name, ScanFilter=even | third, ConditionalOperator="OR")["Count"], 6)
        got = world.db.get_item(TableName=name, Key={"pk": {"S": "a"}, "sk": {"N": "3"}}, AttributesToGet=["name"])
        equal(got["Item"], {"name": {"S": "n3"}})
        batch = world.db.batch_get_item(
            RequestItems={name: {"Keys": [{"pk": {"S": "a"}, "sk": {"N": "3"}}], "AttributesToGet": ["even"]}}
        )
        equal(batch["Responses"][name], [{"even": {"BOOL": False}}])
        # Unlike other legacy parameters, key conditions can be combined with filter expressions.
        both = query(KeyConditions=pk, FilterExpression="even = :e", ExpressionAttributeValues={":e": {"BOOL": True}})
        equal(both["Count"], 5)
        fails(
            "ValidationException",
            within(
                "Can not use both expression and non-expression parameters in the same "
                "request: Non-expression parameters: {QueryFilter} Expression parameters: {KeyConditionExpression}"
            ),
            lambda: query(
                KeyConditionExpression="pk = :a", ExpressionAttributeValues={":a": {"S": "a"}}, QueryFilter=even
            ),
        )
