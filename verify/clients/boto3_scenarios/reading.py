"""Queries and scans: key conditions, filters, pages, segments."""

from boto3.dynamodb.conditions import Attr, Key

from harness import equal, fails, holds, scenario, within

from .world import index


@scenario
def key_conditions_of_every_form_select_items(world):
    cases = [
        ("pk = :a", "1 2 3 10 20"),
        (":a = pk", "1 2 3 10 20"),
        ("pk = :a AND sk = :three", "3"),
        ("pk = :a AND sk < :three", "1 2"),
        ("pk = :a AND sk <= :three", "1 2 3"),
        ("pk = :a AND sk > :three", "10 20"),
        ("pk = :a AND sk >= :three", "3 10 20"),
        ("pk = :a AND sk BETWEEN :two AND :ten", "2 3 10"),
        ("sk > :three AND pk = :a", "10 20"),
        ("(pk = :a) and (sk = :ten)", "10"),
        ("pk = :none", ""),
    ]
    values = {":a": "a", ":two": 2, ":three": 3, ":ten": 10, ":none": "none"}
    with world.table("conditions", "pk:S sk:N") as name:
        table = world.resource.Table(name)
        world.put(name, *({"pk": pk, "sk": sk} for pk in "ab" for sk in (20, 3, 1, 10, 2)))
        for condition, expected in cases:
            used = {value: values[value] for value in values if value in condition.replace(")", " ").split()}
            query = {"KeyConditionExpression": condition, "ExpressionAttributeValues": used}
            found = table.query(**query)
            equal(" ".join(str(item["sk"]) for item in found["Items"]), expected, condition)
            equal((found["Count"], found["ScannedCount"]), (len(expected.split()),) * 2, condition)
            backward = table.query(**query, ScanIndexForward=False)
            equal([item["sk"] for item in backward["Items"]], [item["sk"] for item in found["Items"]][::-1], condition)
        built = [
            (Key("sk").eq(3), 1),
            (Key("sk").lt(3), 2),
            (Key("sk").lte(3), 3),
            (Key("sk").gt(3), 2),
            (Key("sk").gte(3), 3),
            (Key("sk").between(2, 10), 3),
        ]
        for condition, count in built:
            equal(table.query(KeyConditionExpression=Key("pk").eq("b") & condition)["Count"], count)


@scenario
def sort_keys_are_found_by_prefix(world):
    with world.table("beginning", "pk:S sk:S") as name:
        table = world.resource.Table(name)
        sorts = ["2024-01-31", "2024-02-01", "2024-02-29", "2024-03-01", "2024-1", "é", "éa"]
        world.put(name, *({"pk": "a", "sk": sk} for sk in sorts))
        for beginning, expected in [("2024-02", sorts[1:3]), ("2024-", sorts[:5]), ("é", sorts[5:]), ("x", [])]:
            found = table.query(KeyConditionExpression=Key("pk").eq("a") & Key("sk").begins_with(beginning))
            equal([item["sk"] for item in found["Items"]], expected, beginning)


@scenario
def invalid_queries_are_rejected(world):
    values = {":a": {"S": "a"}, ":n": {"N": "1"}}
    cases = [
        ("sk = :n", {}, "Query condition missed key schema element: pk"),
        ("pk > :a", {}, "Query key condition not supported"),
        ("pk = :a AND colour = :n", {}, "Query condition missed key schema element: sk"),
        ("pk = :a OR sk = :n", {}, "Invalid operator used in KeyConditionExpression: OR"),
        (
            "pk = :n",
            {},
            "One or more parameter values were invalid: Condition parameter type does not match schema type",
        ),
        (
            "pk = :a",
            {"FilterExpression": "sk = :n"},
            "Filter Expression can only contain non-primary key attributes: " "Primary key attribute: sk",
        ),
        ("pk = :a", {"IndexName": "nope"}, "The table does not have the specified index: nope"),
        ("pk = :a", {"ExclusiveStartKey": {"pk": {"S": "a"}}}, "The provided starting key is "),
    ]
    with world.table("wrong", "pk:S sk:N") as name:
        for condition, more, message in cases:
            text = f"{condition} {more.get('FilterExpression', '')}"
            used = {value: values[value] for value in values if value in text.split()}
            fails(
                "ValidationException",
                within(message),
                lambda: world.db.query(
                    TableName=name, KeyConditionExpression=condition, ExpressionAttributeValues=used, **more
                ),
            )
        fails(
            "ValidationException",
            within("Either the KeyConditions or KeyConditionExpression parameter must be " "specified in the request."),
            lambda: world.db.query(TableName=name),
        )


@scenario
def filters_exclude_items(world):
    with world.table("filters", "pk:S sk:N") as name:
        table = world.resource.Table(name)
        world.put(name, *({"pk": "a", "sk": n, "even": n % 2 == 0, "tags": {f"t{n % 3}"}} for n in range(12)))
        cases = [
            (Attr("even").eq(True), 6),
            (Attr("even").eq(True) & Attr("tags").contains("t0"), 2),
            (Attr("tags").contains("t1") | Attr("tags").contains("t2"), 8),
            (Attr("absent").exists(), 0),
            (~Attr("tags").contains("t0"), 8),
            (Attr("tags").size().gt(1), 0),
        ]
        for condition, count in cases:
            found = table.query(KeyConditionExpression=Key("pk").eq("a"), FilterExpression=condition)
            equal((found["Count"], found["ScannedCount"], len(found["Items"])), (count, 12, count))
            found = table.scan(FilterExpression=condition)
            equal((found["Count"], found["ScannedCount"], len(found["Items"])), (count, 12, count))
        counted = table.scan(FilterExpression=Attr("even").eq(True) & Attr("sk").gt(5), Select="COUNT")
        equal((counted["Count"], counted["ScannedCount"], "Items" in counted), (3, 12, False))
        # The limit applies to the items read, not to the items returned.
        page = table.scan(FilterExpression=Attr("even").eq(True), Limit=3)
        equal((page["Count"], page["ScannedCount"]), (2, 3))
        holds("LastEvaluatedKey" in page, "there is a next page")


@scenario
def queries_and_scans_are_paged(world):
    with world.table("pages", "pk:S sk:N") as name:
        with world.resource.Table(name).batch_writer() as batch:
            for n in range(50):
                batch.put_item(Item={"pk": f"p{n % 2}", "sk": n, "n": n})
        condition = {"KeyConditionExpression": Key("pk").eq("p0")}
        for size in (1, 7, 25, 100):
            paged = list(world.pages("query", name, **condition, PaginationConfig={"PageSize": size}))
            equal(
                [int(item["sk"]) for page in paged for item in page["Items"]], list(range(0, 50, 2)),
                f"page size {size}",
            )
            holds(all(page["Count"] <= size for page in paged), f"no page has more than {size} items")
            paged = list(world.pages("scan", name, PaginationConfig={"PageSize": size}))
            equal(
                sorted(int(item["n"]) for page in paged for item in page["Items"]), list(range(50)), f"page size {size}"
            )
        backward = world.pages("query", name, **condition, ScanIndexForward=False, PaginationConfig={"PageSize": 4})
        equal([int(item["sk"]) for page in backward for item in page["Items"]], list(range(48, -1, -2)))

        # The tokens of boto3 cannot represent a Decimal, so this uses the client API.
        scan = lambda **config: world.db.get_paginator("scan").paginate(TableName=name, PaginationConfig=config)
        first = scan(MaxItems=20, PageSize=6).build_full_result()
        equal(len(first["Items"]), 20)
        rest = scan(StartingToken=first["NextToken"]).build_full_result()
        equal(
            sorted(int(item["n"]["N"]) for item in first["Items"] + rest["Items"]), list(range(50)),
            "resumed from a token",
        )

        page = world.resource.Table(name).query(**condition, Limit=3)
        equal(page["LastEvaluatedKey"], {"pk": "p0", "sk": 4})
        page = world.resource.Table(name).query(**condition, ExclusiveStartKey={"pk": "p0", "sk": 31})
        equal([int(item["sk"]) for item in page["Items"]], list(range(32, 50, 2)), "start after a key without an item")
        holds("LastEvaluatedKey" not in page, "there is no next page")


@scenario
def pages_are_limited_to_one_megabyte(world):
    with world.table("megabyte", "pk:S sk:N") as name:
        world.put(name, *({"pk": "a", "sk": n, "data": "x" * 100_000} for n in range(25)))
        for operation, more in (("query", {"KeyConditionExpression": Key("pk").eq("a")}), ("scan", {})):
            counts = [page["Count"] for page in world.pages(operation, name, **more)]
            equal(counts, [11, 11, 3], f"{operation}: the item that reaches a megabyte is the last of its page")
        counted = [page["Count"] for page in world.pages("scan", name, Select="COUNT")]
        equal(counted, counts, "a count reads pages of the same size")
        first = world.resource.Table(name).scan(ReturnConsumedCapacity="TOTAL")
        holds(
            134 <= first["ConsumedCapacity"]["CapacityUnits"] <= 136,
            f"capacity of a megabyte: {first['ConsumedCapacity']}",
        )


@scenario
def scan_segments_cover_the_table(world):
    with world.table("segments") as name:
        with world.resource.Table(name).batch_writer() as batch:
            for n in range(200):
                batch.put_item(Item={"pk": f"item-{n}"})
        for total in (1, 3, 8):
            segments = []
            for segment in range(total):
                pages = world.pages(
                    "scan", name, Segment=segment, TotalSegments=total, PaginationConfig={"PageSize": 10}
                )
                segments.append([item["pk"] for page in pages for item in page["Items"]])
            found = [pk for segment in segments for pk in segment]
            equal((len(found), len(set(found))), (200, 200), f"each item is in one of {total} segments")
            holds(max(map(len, segments)) < 200 or total == 1, "no segment contains all items")
        fails(
            "ValidationException",
            lambda message: "segment" in message.lower(),
            lambda: world.db.scan(TableName=name, Segment=3, TotalSegments=3),
        )


@scenario
def indexes_are_queried_and_paged(world):
    settings = {
        "attributes": "team:S points:N",
        "GlobalSecondaryIndexes": [index("ranking", "team", "points", projection="INCLUDE", include=["name"])],
        "LocalSecondaryIndexes": [index("local", "pk", "points", projection="KEYS_ONLY")],
    }
    with world.table("ranking", "pk:S sk:N", **settings) as name:
        table = world.resource.Table(name)
        world.put(
            name,
            *(
                {"pk": "game", "sk": n, "team": f"t{n % 2}", "points": n // 4, "name": f"n{n}", "more": n}
                for n in range(20)
            ),
            {"pk": "game", "sk": 99, "name": "no team, no points"},
        )
        ranking = {"IndexName": "ranking", "KeyConditionExpression": Key("team").eq("t1")}
        pages = list(world.pages("query", name, **ranking, PaginationConfig={"PageSize": 3}))
        equal([int(item["points"]) for page in pages for item in page["Items"]], [0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
        equal(
            len({int(item["sk"]) for page in pages for item in page["Items"]}), 10, "each once, although points repeat"
        )
        equal(
            set(pages[0]["LastEvaluatedKey"]), {"pk", "sk", "team", "points"}, "the keys of the index and of the table"
        )
        found = table.query(**ranking, ScanIndexForward=False, Limit=1)["Items"][0]
        equal(set(found), {"pk", "sk", "team", "points", "name"})
        equal(table.scan(IndexName="ranking")["Count"], 20, "an item without the index keys is not in the index")
        local = {"IndexName": "local", "KeyConditionExpression": Key("pk").eq("game") & Key("points").gte(4)}
        equal(set(table.query(**local)["Items"][0]), {"pk", "sk", "points"})
        # A local index fetches missing attributes from the table, a global index cannot.
        fetched = table.query(**local, ProjectionExpression="more")["Items"]
        equal(sorted(int(item["more"]) for item in fetched), [16, 17, 18, 19])
        fetched = table.query(**local, Select="ALL_ATTRIBUTES")["Items"]
        equal(sorted(item["name"] for item in fetched), ["n16", "n17", "n18", "n19"])
        fails(
            "ValidationException",
            within("Select type ALL_ATTRIBUTES is not supported for global secondary index " "ranking"),
            lambda: table.query(**ranking, Select="ALL_ATTRIBUTES"),
        )
        table.update_item(
            Key={"pk": "game", "sk": 1}, UpdateExpression="SET points = :p", ExpressionAttributeValues={":p": 100}
        )
        equal(table.query(**ranking, ScanIndexForward=False, Limit=1)["Items"][0]["sk"], 1, "the index entry has moved")
        table.update_item(Key={"pk": "game", "sk": 1}, UpdateExpression="REMOVE team")
        equal(table.query(**ranking, Select="COUNT")["Count"], 9, "the item is no longer in the index")
        fails(
            "ValidationException",
            within("Type mismatch for Index Key points Expected: N Actual: S IndexName: "),
            lambda: table.put_item(Item={"pk": "game", "sk": 0, "points": "many"}),
        )
