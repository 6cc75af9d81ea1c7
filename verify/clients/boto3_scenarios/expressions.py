"""Expressions of every form: conditions, updates, projections, and placeholders.

Key conditions and filters are in `reading`.
"""

from boto3.dynamodb.conditions import Attr

from harness import contains, equal, fails, holds, scenario, within

CONDITION_FAILED = "The conditional request failed"

ITEM = {
    "pk": "a",
    "s": "hello",
    "n": 10,
    "b": b"\x01\x02\x03",
    "flag": True,
    "nothing": None,
    "status": "open",
    "list": [1, "two", {"three": 3}],
    "map": {"inner": {"deep": [5, 6]}, "a.b": "dotted"},
    "strings": {"red", "green"},
    "numbers": {1, 2, 3},
    "binaries": {b"x"},
    "blank": "",
}


@scenario
def conditions_of_every_form_are_evaluated(world):
    values = {
        ":hello": "hello",
        ":ten": 10,
        ":nine": 9,
        ":eleven": 11,
        ":hell": "hell",
        ":red": "red",
        ":two": 2,
        ":b": b"\x02",
        ":five": 5,
        ":list": "L",
        ":true": True,
        ":null": None,
        ":bytes": b"\x01\x02\x03",
        ":set": {"green", "red"},
        ":map": {"three": 3},
        ":x": "x",
        ":empty": "",
        ":word": "two",
        ":three": 3,
    }
    names = {"#status": "status", "#list": "list", "#map": "map", "#inner": "inner", "#dotted": "a.b"}
    hold = [
        "s = :hello",
        ":hello = s",
        "n = :ten",
        "n <> :nine",
        "n > :nine",
        "n >= :ten",
        "n < :eleven",
        "n <= :ten",
        "n BETWEEN :nine AND :eleven",
        "s IN (:x, :hello)",
        "flag = :true",
        "nothing = :null",
        "b = :bytes",
        "strings = :set",
        "#list[2] = :map",
        "blank = :empty",
        "attribute_exists(s)",
        "attribute_not_exists(absent)",
        "attribute_exists(#map.#inner.deep[1])",
        "attribute_not_exists(#list[3])",
        "attribute_type(#list, :list)",
        "begins_with(s, :hell)",
        "begins_with(b, :bytes)",
        "contains(s, :hell)",
        "contains(strings, :red)",
        "contains(numbers, :two)",
        "contains(#list, :word)",
        "contains(b, :b)",
        "size(s) = :five",
        "size(#list) = :three",
        "size(b) < :five",
        "size(strings) = :two",
        "size(blank) < :two",
        "s = :hello AND n = :ten",
        "s = :x OR n = :ten",
        "NOT s = :x",
        "NOT (s = :x OR n = :nine)",
        "s = :x AND n = :nine OR flag = :true",
        "s = :hello and not n = :nine",
        "#status = :x or #status <> :x",
        "#map.#dotted <> :x",
        "#map.#inner.deep[0] = :five",
        "s BETWEEN :hell AND :x",
    ]
    fail = [
        "s = :x",
        "n = :hello",
        "n < :ten",
        "n > :ten",
        "n <> :ten",
        "n BETWEEN :eleven AND :eleven",
        "s IN (:x)",
        "attribute_exists(absent)",
        "attribute_not_exists(s)",
        "attribute_type(s, :list)",
        "begins_with(s, :x)",
        "contains(strings, :x)",
        "contains(strings, :hell)",
        "contains(numbers, :ten)",
        "size(s) > :five",
        "absent = :x",
        "absent < :x",
        "s = absent",
        "#map.absent[0] = :five",
        "size(absent) = :five",
        "s = :hello AND n = :nine",
        "s = :x OR n = :nine",
        "NOT s = :hello",
        "s < :ten",
        "#list[9] = :five",
        "n > :hello",
        "flag = :null",
    ]
    with world.table("conditions") as name:
        table = world.resource.Table(name)
        table.put_item(Item=ITEM)

        def is_met(condition):
            try:
                table.update_item(
                    Key={"pk": "a"},
                    UpdateExpression="SET seen = :seen",
                    ConditionExpression=condition,
                    **_used(condition, names, values | {":seen": True}, ":seen"),
                )
            except world.db.exceptions.ConditionalCheckFailedException as error:
                equal(error.response["Error"]["Message"], CONDITION_FAILED)
                return False
            return True

        for condition in hold:
            holds(is_met(condition), condition)
        for condition in fail:
            holds(not is_met(condition), f"NOT ({condition})")


def _used(text, names, values, *more):
    """Returns the placeholders that an expression uses: unused ones are rejected."""
    found = {word.strip("(),") for word in text.replace(".", " ").replace("[", " ").split()} | set(more)
    found = {part for word in found for part in word.replace("(", " ").split()}
    used = {
        "ExpressionAttributeNames": {name: names[name] for name in names if name in found},
        "ExpressionAttributeValues": {name: values[name] for name in values if name in found},
    }
    return {name: value for name, value in used.items() if value}


@scenario
def conditions_are_built_by_the_sdk(world):
    hold = [
        Attr("s").eq("hello"),
        Attr("s").ne("x"),
        Attr("n").lt(11),
        Attr("n").lte(10),
        Attr("n").gt(9),
        Attr("n").gte(10),
        Attr("n").between(9, 11),
        Attr("s").begins_with("he"),
        Attr("s").is_in(["x", "hello"]),
        Attr("s").exists(),
        Attr("absent").not_exists(),
        Attr("strings").contains("red"),
        Attr("s").size().eq(5),
        Attr("list").attribute_type("L"),
        Attr("map.inner.deep[1]").eq(6),
        Attr("list[1]").eq("two"),
        Attr("status").eq("open") & Attr("n").eq(10),
        Attr("status").eq("shut") | Attr("n").eq(10),
        ~Attr("n").eq(9),
        (Attr("s").exists() & ~Attr("absent").exists()) | Attr("n").eq(0),
    ]
    with world.table("built") as name:
        table = world.resource.Table(name)
        for condition in hold:
            table.put_item(Item=ITEM)
            table.put_item(Item=ITEM, ConditionExpression=condition)
            fails(
                "ConditionalCheckFailedException",
                CONDITION_FAILED,
                lambda: table.delete_item(Key={"pk": "a"}, ConditionExpression=~condition),
            )
            table.delete_item(Key={"pk": "a"}, ConditionExpression=condition)
            equal(world.get(name, pk="a"), None, str(condition.get_expression()))


@scenario
def failed_condition_returns_the_item(world):
    with world.table("shown") as table:
        world.put(table, {"pk": "a", "n": 1})
        key = {"pk": {"S": "a"}}
        new = {"ConditionExpression": "attribute_not_exists(pk)", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        calls = [
            lambda: world.db.put_item(TableName=table, Item=key, **new),
            lambda: world.db.delete_item(TableName=table, Key=key, **new),
            lambda: world.db.update_item(TableName=table, Key=key, UpdateExpression="REMOVE n", **new),
        ]
        for call in calls:
            response = fails("ConditionalCheckFailedException", CONDITION_FAILED, call)
            equal(response["Item"], {"pk": {"S": "a"}, "n": {"N": "1"}})
        absent = {"pk": {"S": "b"}}
        response = fails(
            "ConditionalCheckFailedException",
            CONDITION_FAILED,
            lambda: world.db.put_item(
                TableName=table,
                Item=absent,
                ConditionExpression="attribute_exists(pk)",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            ),
        )
        holds("Item" not in response, "there is no item to return")
        response = fails(
            "ConditionalCheckFailedException",
            CONDITION_FAILED,
            lambda: world.db.put_item(TableName=table, Item=key, ConditionExpression="attribute_not_exists(pk)"),
        )
        holds("Item" not in response, "the item is only returned on request")


@scenario
def updates_of_every_form_are_applied(world):
    start = {"n": 10, "list": [1, 2, 3], "map": {"a": 1, "b": {"c": 2}}, "strings": {"red", "green"}, "numbers": {1, 2}}
    # The expression, and the changed attributes; None means removed.
    cases = [
        ("SET x = :one", {"x": 1}),
        ("SET n = n + :one", {"n": 11}),
        ("SET n = :one - n", {"n": -9}),
        ("SET n = if_not_exists(n, :zero) + :one", {"n": 11}),
        ("SET x = if_not_exists(x, :zero) + :one", {"x": 1}),
        ("SET x = n, n = :zero", {"x": 10, "n": 0}),
        ("SET #list = list_append(#list, :list)", {"list": [1, 2, 3, 8, 9]}),
        ("SET #list = list_append(:list, #list)", {"list": [8, 9, 1, 2, 3]}),
        ("SET x = list_append(if_not_exists(x, :none), :list)", {"x": [8, 9]}),
        ("SET #list[1] = :text", {"list": [1, "text", 3]}),
        ("SET #list[7] = :text", {"list": [1, 2, 3, "text"]}),
        ("SET #map.a = #map.b.c, #map.b.d = :one", {"map": {"a": 2, "b": {"c": 2, "d": 1}}}),
        ("SET x = #list[2], y = #map.b", {"x": 3, "y": {"c": 2}}),
        ("REMOVE n, absent", {"n": None}),
        ("REMOVE #list[0], #list[2]", {"list": [2]}),
        ("REMOVE #map.b.c", {"map": {"a": 1, "b": {}}}),
        ("ADD n :five", {"n": 15}),
        ("ADD n :minus", {"n": 9}),
        ("ADD x :five", {"x": 5}),
        ("ADD #map.a :five", {"map": {"a": 6, "b": {"c": 2}}}),
        ("ADD strings :colours", {"strings": {"red", "green", "blue"}}),
        ("ADD numbers :numbers, x :numbers", {"numbers": {1, 2, 3}, "x": {2, 3}}),
        ("DELETE strings :colours", {"strings": {"green"}}),
        ("DELETE numbers :all", {"numbers": None}),
        ("DELETE absent :all", {}),
        (
            "SET x = :one REMOVE n ADD numbers :numbers DELETE strings :colours",
            {"x": 1, "n": None, "numbers": {1, 2, 3}, "strings": {"green"}},
        ),
        ("set x = :one remove n add numbers :numbers", {"x": 1, "n": None, "numbers": {1, 2, 3}}),
    ]
    names = {"#list": "list", "#map": "map"}
    values = {
        ":one": 1,
        ":zero": 0,
        ":five": 5,
        ":minus": -1,
        ":list": [8, 9],
        ":none": [],
        ":text": "text",
        ":colours": {"red", "blue"},
        ":numbers": {2, 3},
        ":all": {1, 2, 9},
    }
    with world.table("updates") as name:
        table = world.resource.Table(name)
        for expression, changes in cases:
            table.put_item(Item={"pk": "a"} | start)
            result = table.update_item(
                Key={"pk": "a"}, UpdateExpression=expression, ReturnValues="ALL_NEW", **_used(expression, names, values)
            )
            merged = {"pk": "a"} | start | changes
            expected = {name: value for name, value in merged.items() if value is not None}
            equal(result["Attributes"], expected, expression)
            equal(world.get(name, pk="a"), expected, expression)


@scenario
def projections_of_every_form_are_applied(world):
    cases = [
        ("s, n", {"s": "hello", "n": 10}),
        ("#map.#inner.deep[1]", {"map": {"inner": {"deep": [6]}}}),
        ("#list[2].three, #list[0]", {"list": [1, {"three": 3}]}),
        ("#status, absent", {"status": "open"}),
        ("#map.#dotted", {"map": {"a.b": "dotted"}}),
        ("absent.deeper", {}),
        ("pk", {"pk": "a"}),
    ]
    names = {"#status": "status", "#list": "list", "#map": "map", "#inner": "inner", "#dotted": "a.b"}
    with world.table("projections") as name:
        table = world.resource.Table(name)
        table.put_item(Item=ITEM)
        for expression, expected in cases:
            projection = {"ProjectionExpression": expression} | _used(expression.replace(",", " "), names, {})
            equal(table.get_item(Key={"pk": "a"}, **projection).get("Item"), expected, expression)
            equal(table.scan(**projection)["Items"], [expected], expression)
            query = {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": "a"}}
            equal(table.query(**query, **projection)["Items"], [expected], expression)
            batch = world.resource.batch_get_item(RequestItems={name: {"Keys": [{"pk": "a"}], **projection}})
            equal(batch["Responses"][name], [expected], expression)


@scenario
def invalid_expressions_are_rejected(world):
    condition = "Invalid ConditionExpression: "
    update = "Invalid UpdateExpression: "
    with world.table("refused") as name:
        world.put(name, {"pk": "a", "s": "text", "n": 1})
        call = lambda **settings: lambda: world.resource.Table(name).update_item(Key={"pk": "a"}, **settings)
        cases = [
            (
                call(ConditionExpression="status = s"),
                condition + "Attribute name is a reserved keyword; reserved keyword: status",
            ),
            (
                call(ConditionExpression="n = n"),
                condition + "The first operand must be distinct from the remaining "
                "operands for this operator or function; operator: =, first operand: [n]",
            ),
            (call(ConditionExpression="n ="), condition + 'Syntax error; token: "<EOF>", near: "="'),
            (call(ConditionExpression=""), condition + "The expression can not be empty;"),
            (
                call(ConditionExpression="n = :x"),
                condition + "An expression attribute value used in expression is not " "defined; attribute value: :x",
            ),
            (
                call(ConditionExpression="#x = n"),
                condition + "An expression attribute name used in the document path is "
                "not defined; attribute name: #x",
            ),
            (call(ConditionExpression="nope(n)"), condition + "Invalid function name; function: nope"),
            (
                call(ConditionExpression="attribute_exists(n, s)"),
                condition + "Incorrect number of operands for operator "
                "or function; operator or function: attribute_exists, number of operands: 2",
            ),
            (
                call(ConditionExpression="n <> s", ExpressionAttributeValues={":x": 1}),
                "Value provided in ExpressionAttributeValues unused in expressions: keys: {:x}",
            ),
            (
                call(ConditionExpression="n <> s", ExpressionAttributeNames={"#x": "x"}),
                "Value provided in ExpressionAttributeNames unused in expressions: keys: {#x}",
            ),
            (
                call(UpdateExpression="SET n = :a, n = :a", ExpressionAttributeValues={":a": 1}),
                update + "Two document "
                "paths overlap with each other; must remove or rewrite one of these paths; "
                "path one: [n], path two: [n]",
            ),
            (
                call(UpdateExpression="SET pk = :a", ExpressionAttributeValues={":a": "b"}),
                "One or more parameter values "
                "were invalid: Cannot update attribute pk. This attribute is part of the key",
            ),
            (
                call(UpdateExpression="SET n = absent"),
                "The provided expression refers to an attribute that does not exist in the item",
            ),
            (
                call(UpdateExpression="SET absent.deeper = n"),
                "The document path provided in the update expression is invalid for update",
            ),
            (call(UpdateExpression="SET n = n + s"), "An operand in the update expression has an incorrect data type"),
            (
                call(UpdateExpression="ADD s :a", ExpressionAttributeValues={":a": 1}),
                "An operand in the update expression has an incorrect data type",
            ),
            (
                call(UpdateExpression="SET n = n SET s = s"),
                update + 'The "SET" section can only be used once in an update expression;',
            ),
        ]
        for refused, message in cases:
            fails("ValidationException", within(message), refused)
        equal(world.get(name, pk="a"), {"pk": "a", "s": "text", "n": 1}, "nothing is changed")


@scenario
def reserved_words_work_with_placeholders(world):
    words = [
        "status",
        "name",
        "size",
        "date",
        "user",
        "year",
        "order",
        "count",
        "value",
        "type",
        "data",
        "key",
        "values",
    ]
    with world.table("reserved") as name:
        table = world.resource.Table(name)
        names = {f"#{word}": word for word in words}
        table.update_item(
            Key={"pk": "a"},
            UpdateExpression="SET " + ", ".join(f"#{word} = :one" for word in words),
            ConditionExpression=" AND ".join(f"attribute_not_exists(#{word})" for word in words),
            ExpressionAttributeNames=names,
            ExpressionAttributeValues={":one": 1},
        )
        found = table.get_item(Key={"pk": "a"}, ProjectionExpression=", ".join(names), ExpressionAttributeNames=names)
        equal(found["Item"], {word: 1 for word in words})
        spaced = {"#odd": "two words", "#path": "a.b[0]", "#sign": "#hash:colon"}
        result = table.update_item(
            Key={"pk": "b"},
            UpdateExpression="SET #odd = :x, #path = :x, #sign = :x",
            ReturnValues="ALL_NEW",
            ExpressionAttributeNames=spaced,
            ExpressionAttributeValues={":x": "x"},
        )
        contains(result["Attributes"], {"two words": "x", "a.b[0]": "x", "#hash:colon": "x"})
