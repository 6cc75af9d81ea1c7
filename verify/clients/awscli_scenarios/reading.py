"""Queries and scans, whose pages the CLI combines."""

from harness import equal, holds, scenario


@scenario
def key_conditions_select_items(world):
    cases = [
        ("pk = :a", "1 2 3 10"),
        ("pk = :a AND sk = :n", "3"),
        ("pk = :a AND sk < :n", "1 2"),
        ("pk = :a AND sk >= :n", "3 10"),
        ("pk = :a AND sk BETWEEN :m AND :n", "2 3"),
    ]
    values = {":a": {"S": "a"}, ":n": {"N": "3"}, ":m": {"N": "2"}}
    with world.table("conditions", "pk:S sk:N") as table:
        world.fill(table, [{"pk": {"S": pk}, "sk": {"N": sk}} for pk in "ab" for sk in ("10", "3", "1", "2")])
        for condition, expected in cases:
            used = {name: value for name, value in values.items() if name in condition.split()}
            found = world.aws(
                """dynamodb query --table-name $TABLE --key-condition-expression $CONDITION
                --expression-attribute-values $USED""",
                TABLE=table,
                CONDITION=condition,
                USED=used,
            )
            equal(" ".join(item["sk"]["N"] for item in found["Items"]), expected, condition)
        found = world.aws(
            """dynamodb query --table-name $TABLE --no-scan-index-forward --max-items 2 --key-condition-expression
            'pk = :a' --expression-attribute-values '{":a": {"S": "a"}}'""",
            TABLE=table,
        )
        equal([item["sk"]["N"] for item in found["Items"]], ["10", "3"])
        world.fails(
            "ValidationException",
            "Query condition missed key schema element: pk",
            """dynamodb query
            --table-name $TABLE --key-condition-expression 'sk = :n'
            --expression-attribute-values '{":n": {"N": "3"}}'""",
            TABLE=table,
        )


@scenario
def filters_exclude_items(world):
    with world.table("filters") as table:
        world.fill(table, [{"pk": {"S": str(n)}, "n": {"N": str(n)}, "tag": {"S": f"t{n % 3}"}} for n in range(12)])
        found = world.aws(
            """dynamodb scan --table-name $TABLE --filter-expression 'tag = :t AND n >= :n'
            --expression-attribute-values '{":t": {"S": "t0"}, ":n": {"N": "5"}}'
            --projection-expression n""",
            TABLE=table,
        )
        equal(sorted(int(item["n"]["N"]) for item in found["Items"]), [6, 9])
        equal((found["Count"], found["ScannedCount"]), (2, 12))
        found = world.aws(
            """dynamodb query --table-name $TABLE --key-condition-expression 'pk = :k'
            --filter-expression 'contains(tag, :t)' --select COUNT
            --expression-attribute-values '{":k": {"S": "3"}, ":t": {"S": "t1"}}'""",
            TABLE=table,
        )
        equal((found["Count"], found["ScannedCount"]), (0, 1))


@scenario
def scans_return_pages_and_segments(world):
    with world.table("pages") as table:
        world.fill(table, [{"pk": {"S": str(n)}} for n in range(60)])
        keys = lambda found: [int(item["pk"]["S"]) for item in found["Items"]]
        everything = world.aws("dynamodb scan --table-name $TABLE --page-size 7", TABLE=table)
        equal(sorted(keys(everything)), list(range(60)))
        equal(everything["Count"], 60)
        holds(everything.get("NextToken") is None, "there is no next page")
        first = world.aws("dynamodb scan --table-name $TABLE --page-size 7 --max-items 25", TABLE=table)
        equal(len(first["Items"]), 25)
        rest = world.aws(
            "dynamodb scan --table-name $TABLE --starting-token $TOKEN", TABLE=table, TOKEN=first["NextToken"]
        )
        equal(sorted(keys(first) + keys(rest)), list(range(60)))
        page = world.aws("dynamodb scan --table-name $TABLE --limit 10 --no-paginate", TABLE=table)
        equal((page["Count"], len(page["LastEvaluatedKey"])), (10, 1))
        onward = world.aws(
            "dynamodb scan --table-name $TABLE --exclusive-start-key $KEY --no-paginate",
            TABLE=table,
            KEY=page["LastEvaluatedKey"],
        )
        equal(sorted(keys(page) + keys(onward)), list(range(60)))
        segments = [
            keys(world.aws("dynamodb scan --table-name $TABLE --segment $N --total-segments 4", TABLE=table, N=str(n)))
            for n in range(4)
        ]
        equal(sorted(key for segment in segments for key in segment), list(range(60)), "each item is in one segment")


@scenario
def large_tables_are_read_completely(world):
    with world.table("whole", "pk:S sk:N") as table:
        world.fill(table, [{"pk": {"S": "a"}, "sk": {"N": str(n)}, "data": {"S": "x" * 200_000}} for n in range(12)])
        page = world.aws("dynamodb scan --table-name $TABLE --no-paginate --select COUNT", TABLE=table)
        equal(page["Count"], 6, "the item that reaches a megabyte is the last of its page")
        found = world.aws(
            """dynamodb query --table-name $TABLE --key-condition-expression 'pk = :a'
            --expression-attribute-values '{":a": {"S": "a"}}' --query 'Items[].sk.N'""",
            TABLE=table,
        )
        equal(found, [str(n) for n in range(12)], "all pages are combined, in order")
