"""Items and expressions, with the AWS CLI."""

import base64

from harness import equal, holds, scenario

CONDITION_FAILED = "The conditional request failed"


@scenario(keys=None)
def values_of_every_type_round_trip(world):
    item = {
        "pk": {"S": "types"},
        "empty": {"S": ""},
        "unicode": {"S": 'Grüße, 世界 🧊 "quoted" \\'},
        "n": {"N": "-3.14"},
        "digits": {"N": "12345678901234567890123456789012345678"},
        "yes": {"BOOL": True},
        "nothing": {"NULL": True},
        "list": {"L": [{"N": "1"}, {"L": []}, {"M": {}}]},
        "map": {"M": {"a": {"M": {"b": {"S": "c"}}}}},
    }
    sets = {"ss": {"SS": ["green", "red"]}, "ns": {"NS": ["1", "2.5"]}}
    # Version 1 of the CLI takes binary values as plain text, and prints them in base 64.
    binary = {"b": {"B": "plain"}, "bs": {"BS": ["one", "two"]}}
    shown = {"b": {"B": _base64("plain")}, "bs": {"BS": [_base64("one"), _base64("two")]}}
    with world.table("types") as table:
        put = "dynamodb put-item --table-name $TABLE --item $ITEM"
        equal(world.aws(put, TABLE=table, ITEM=item | sets | binary), None)
        got = world.aws(
            """dynamodb get-item --table-name $TABLE --key '{"pk": {"S": "types"}}' --consistent-read""", TABLE=table
        )["Item"]
        for name, value in (sets | {"bs": shown["bs"]}).items():
            (kind,) = value
            equal({kind: sorted(got.pop(name)[kind])}, value)
        equal(got, item | {"b": shown["b"]})
        gone = world.aws(
            """dynamodb delete-item --table-name $TABLE --key '{"pk": {"S": "types"}}'
            --return-values ALL_OLD""",
            TABLE=table,
        )
        equal(gone["Attributes"]["unicode"], item["unicode"])
        equal(world.aws("""dynamodb get-item --table-name $TABLE --key '{"pk": {"S": "types"}}'""", TABLE=table), None)


def _base64(text):
    return base64.b64encode(text.encode()).decode()


@scenario
def large_items_are_read_from_files(world):
    with world.table("large") as table:
        # Two bytes of `pk`, three of `big`, four of `data`.
        room = 400 * 1024 - 9
        put = "dynamodb put-item --table-name $TABLE --item file://$FILE"
        fitting = world.file("fitting.json", {"pk": {"S": "big"}, "data": {"S": "x" * room}})
        world.aws(put, TABLE=table, FILE=fitting)
        got = world.aws("""dynamodb get-item --table-name $TABLE --key '{"pk": {"S": "big"}}'""", TABLE=table)
        equal(len(got["Item"]["data"]["S"]), room)
        larger = world.file("larger.json", {"pk": {"S": "big"}, "data": {"S": "x" * (room + 1)}})
        world.fails(
            "ValidationException", "Item size has exceeded the maximum allowed size", put, TABLE=table, FILE=larger
        )


@scenario
def conditions_guard_writes(world):
    conditions = [
        ("attribute_not_exists(absent)", True),
        ("attribute_exists(pk)", True),
        ("attribute_not_exists(pk)", False),
        ("n = :one", True),
        ("n <> :one", False),
        ("n > :one OR n < :one", False),
        ("n BETWEEN :one AND :two", True),
        ("n IN (:two, :one)", True),
        ("begins_with(s, :te)", True),
        ("contains(s, :ex)", True),
        ("attribute_type(s, :type)", True),
        ("size(s) > :two", True),
        ("NOT (n = :one AND s = :te)", True),
        ("#l[0] = :one", True),
        ("m.deep = :two", False),
    ]
    values = {":one": {"N": "1"}, ":two": {"N": "2"}, ":te": {"S": "te"}, ":ex": {"S": "ex"}, ":type": {"S": "S"}}
    with world.table("conditions") as table:
        world.fill(
            table,
            [
                {
                    "pk": {"S": "a"},
                    "n": {"N": "1"},
                    "s": {"S": "text"},
                    "list": {"L": [{"N": "1"}]},
                    "m": {"M": {"deep": {"N": "1"}}},
                }
            ],
        )
        for condition, is_met in conditions:
            used = {name: values[name] for name in values if name in condition}
            command = (
                """dynamodb update-item --table-name $TABLE --key '{"pk": {"S": "a"}}' """
                "--update-expression 'REMOVE absent' --condition-expression $CONDITION "
            )
            command += "--expression-attribute-values $USED " if used else ""
            command += """--expression-attribute-names '{"#l": "list"}' """ if "#l" in condition else ""
            if is_met:
                world.aws(command, TABLE=table, CONDITION=condition, USED=used)
            else:
                world.fails(
                    "ConditionalCheckFailedException",
                    CONDITION_FAILED,
                    command,
                    TABLE=table,
                    CONDITION=condition,
                    USED=used,
                )
        world.fails(
            "ValidationException",
            "Attribute name is a reserved keyword; reserved keyword: status",
            """dynamodb put-item --table-name $TABLE --item '{"pk": {"S": "a"}}'
            --condition-expression 'attribute_exists(status)'""",
            TABLE=table,
        )


@scenario
def updates_change_items(world):
    cases = [
        ("SET n = n + :one, s = :text", {"n": {"N": "2"}, "s": {"S": "text"}}),
        ("SET x = if_not_exists(x, :one)", {"x": {"N": "1"}}),
        ("SET #l = list_append(#l, :list)", {"list": {"L": [{"N": "1"}, {"S": "text"}]}}),
        ("SET #l[0] = :text, m.deep = :one", {"list": {"L": [{"S": "text"}]}, "m": {"M": {"deep": {"N": "1"}}}}),
        ("REMOVE n, #l[0]", {"n": None, "list": {"L": []}}),
        ("ADD n :one, ss :set", {"n": {"N": "2"}, "ss": {"SS": ["blue", "red"]}}),
        ("DELETE ss :red", {"ss": None}),
        (
            "SET s = :text REMOVE m ADD n :one DELETE ss :red",
            {"s": {"S": "text"}, "m": None, "n": {"N": "2"}, "ss": None},
        ),
    ]
    start = {"pk": {"S": "a"}, "n": {"N": "1"}, "list": {"L": [{"N": "1"}]}, "m": {"M": {}}, "ss": {"SS": ["red"]}}
    values = {
        ":one": {"N": "1"},
        ":text": {"S": "text"},
        ":list": {"L": [{"S": "text"}]},
        ":set": {"SS": ["blue"]},
        ":red": {"SS": ["red"]},
    }
    with world.table("updates") as table:
        for expression, changes in cases:
            world.fill(table, [start])
            used = {
                name: value
                for name, value in values.items()
                if name in expression.replace(",", " ").replace(")", " ").split()
            }
            command = (
                """dynamodb update-item --table-name $TABLE --key '{"pk": {"S": "a"}}' --return-values ALL_NEW """
                "--update-expression $EXPRESSION "
            )
            command += "--expression-attribute-values $USED " if used else ""
            command += """--expression-attribute-names '{"#l": "list"}' """ if "#l" in expression else ""
            updated = world.aws(command, TABLE=table, EXPRESSION=expression, USED=used)["Attributes"]
            for value in updated.values():
                value.get("SS", []).sort()
            merged = start | changes
            equal(updated, {name: value for name, value in merged.items() if value is not None}, expression)


@scenario
def failed_condition_returns_the_item(world):
    with world.table("shown") as table:
        world.fill(table, [{"pk": {"S": "a"}, "n": {"N": "1"}}])
        command = (
            """dynamodb put-item --table-name $TABLE --item '{"pk": {"S": "a"}}' --condition-expression """
            "'attribute_not_exists(pk)' --return-values-on-condition-check-failure ALL_OLD"
        )
        world.fails("ConditionalCheckFailedException", CONDITION_FAILED, command, TABLE=table)
        _, _, debug = world.run(f"{command} --debug", TABLE=table)
        holds('"Item":{' in debug.replace(" ", ""), "the response contains the item, which --debug prints")


@scenario
def projections_and_capacity_are_returned(world):
    with world.table("projections") as table:
        world.fill(
            table, [{"pk": {"S": "a"}, "name": {"S": "n"}, "map": {"M": {"x": {"L": [{"N": "1"}, {"N": "2"}]}}}}]
        )
        got = world.aws(
            """dynamodb get-item --table-name $TABLE --key '{"pk": {"S": "a"}}' --return-consumed-capacity TOTAL
            --projection-expression '#n, #m.x[1]' --expression-attribute-names '{"#n": "name", "#m": "map"}'""",
            TABLE=table,
        )
        equal(got["Item"], {"name": {"S": "n"}, "map": {"M": {"x": {"L": [{"N": "2"}]}}}})
        equal(got["ConsumedCapacity"], {"TableName": table, "CapacityUnits": 0.5})


@scenario
def legacy_parameters_are_supported(world):
    with world.table("legacy", "pk:S sk:N") as table:
        world.fill(table, [{"pk": {"S": "a"}, "sk": {"N": str(n)}, "even": {"BOOL": n % 2 == 0}} for n in range(6)])
        key = """--key '{"pk": {"S": "a"}, "sk": {"N": "0"}}'"""
        world.fails(
            "ConditionalCheckFailedException",
            CONDITION_FAILED,
            f"""dynamodb delete-item --table-name $TABLE {key}
            --expected '{{"even": {{"Value": {{"BOOL": false}}}}}}'""",
            TABLE=table,
        )
        updated = world.aws(
            f"""dynamodb update-item --table-name $TABLE {key} --return-values UPDATED_NEW
            --attribute-updates '{{"n": {{"Action": "ADD", "Value": {{"N": "2"}}}}}}'""",
            TABLE=table,
        )
        equal(updated["Attributes"], {"n": {"N": "2"}})
        found = world.aws(
            """dynamodb query --table-name $TABLE --attributes-to-get sk --key-conditions
            '{"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]},
            "sk": {"ComparisonOperator": "GE", "AttributeValueList": [{"N": "2"}]}}'
            --query-filter '{"even": {"ComparisonOperator": "EQ", "AttributeValueList": [{"BOOL": true}]}}'""",
            TABLE=table,
        )
        equal(found["Items"], [{"sk": {"N": "2"}}, {"sk": {"N": "4"}}])
        found = world.aws(
            """dynamodb scan --table-name $TABLE --select COUNT --scan-filter
            '{"even": {"ComparisonOperator": "NE", "AttributeValueList": [{"BOOL": true}]}}'""",
            TABLE=table,
        )
        equal((found["Count"], found["ScannedCount"]), (3, 6))
