"""Tables: life cycle, indexes, settings, tags, expiry and limits."""

import datetime
import re
import time

from harness import contains, equal, eventually, fails, holds, scenario, within

from .world import WAIT, index, key_schema

PROVISIONED = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 3}


@scenario(keys=None)
def table_is_created_described_and_deleted(world):
    name = world.name("life")
    created = world.create(name, "pk:S sk:N", ProvisionedThroughput=PROVISIONED)
    holds(created["TableStatus"] in ("CREATING", "ACTIVE"), "a new table is creating or active")
    described = world.db.describe_table(TableName=name)["Table"]
    contains(
        described,
        {
            "TableName": name,
            "TableStatus": "ACTIVE",
            "ItemCount": 0,
            "TableSizeBytes": 0,
            "KeySchema": key_schema("pk", "sk"),
        },
    )
    definitions = {each["AttributeName"]: each["AttributeType"] for each in described["AttributeDefinitions"]}
    equal(definitions, {"pk": "S", "sk": "N"})
    contains(described["ProvisionedThroughput"], PROVISIONED | {"NumberOfDecreasesToday": 0})
    holds(
        re.fullmatch(rf"arn:aws:dynamodb:{world.region}:\d{{12}}:table/{name}", described["TableArn"]),
        "the ARN is valid",
    )
    holds(re.fullmatch(r"[0-9a-f-]{36}", described["TableId"]), "the id is valid")
    age = datetime.datetime.now(datetime.timezone.utc) - described["CreationDateTime"]
    holds(abs(age) < datetime.timedelta(minutes=5), f"the creation time is recent: {age}")
    equal(world.db.describe_table(TableName=described["TableArn"])["Table"]["TableName"], name, "found by its ARN")

    fails(
        "ResourceInUseException",
        f"Table already exists: {name}",
        lambda: world.create(name),
        kind=world.db.exceptions.ResourceInUseException,
    )
    deleted = world.db.delete_table(TableName=name)["TableDescription"]
    contains(deleted, {"TableName": name, "TableStatus": "DELETING"})
    world.db.get_waiter("table_not_exists").wait(TableName=name, WaiterConfig=WAIT)
    fails(
        "ResourceNotFoundException",
        f"Requested resource not found: Table: {name} not found",
        lambda: world.db.describe_table(TableName=name),
        kind=world.db.exceptions.ResourceNotFoundException,
    )
    fails(
        "ResourceNotFoundException",
        f"Requested resource not found: Table: {name} not found",
        lambda: world.db.delete_table(TableName=name),
    )
    fails(
        "ResourceNotFoundException",
        "Requested resource not found",
        lambda: world.db.get_item(TableName=name, Key={"pk": {"S": "a"}}),
    )


@scenario
def tables_are_described_by_the_resource(world):
    table = world.resource.create_table(
        TableName=world.name("resource"),
        KeySchema=key_schema("pk"),
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "B"}],
    )
    table.wait_until_exists()
    table.reload()
    equal(table.table_status, "ACTIVE")
    equal(table.key_schema, key_schema("pk"))
    equal(table.billing_mode_summary["BillingMode"], "PAY_PER_REQUEST")
    equal(table.provisioned_throughput["ReadCapacityUnits"], 0)
    holds(table in world.resource.tables.all(), "the table is listed")
    table.delete()
    table.wait_until_not_exists()
    holds(table not in world.resource.tables.all(), "the deleted table is not listed")


@scenario
def indexes_are_created_with_the_table(world):
    settings = {
        "attributes": "author:S year:N pages:N",
        "GlobalSecondaryIndexes": [
            index("by-author", "author", "year", projection="INCLUDE", include=["title"]),
            index("by-year", "year"),
        ],
        "LocalSecondaryIndexes": [index("by-pages", "pk", "pages", projection="KEYS_ONLY")],
    }
    with world.table("indexes", "pk:S sk:S", **settings) as table:
        described = world.db.describe_table(TableName=table)["Table"]
        globals_ = {each["IndexName"]: each for each in described["GlobalSecondaryIndexes"]}
        equal(sorted(globals_), ["by-author", "by-year"])
        by_author = globals_["by-author"]
        contains(by_author, {"IndexStatus": "ACTIVE", "KeySchema": key_schema("author", "year"), "ItemCount": 0})
        equal(by_author["Projection"], {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["title"]})
        equal(by_author["IndexArn"], f"{described['TableArn']}/index/by-author")
        (by_pages,) = described["LocalSecondaryIndexes"]
        contains(by_pages, {"IndexName": "by-pages", "Projection": {"ProjectionType": "KEYS_ONLY"}})
        holds("IndexStatus" not in by_pages, "a local index has no status")

        book = {"pk": "shelf", "sk": "1", "author": "Lem", "year": 1961, "pages": 204, "title": "Solaris", "isbn": "x"}
        world.put(table, book, {"pk": "shelf", "sk": "2", "pages": 100})
        query = world.resource.Table(table).query
        found = query(
            IndexName="by-author", KeyConditionExpression="author = :a", ExpressionAttributeValues={":a": "Lem"}
        )
        equal(found["Items"], [{name: book[name] for name in ("pk", "sk", "author", "year", "title")}])
        found = query(
            IndexName="by-year",
            KeyConditionExpression="#y = :y",
            ExpressionAttributeNames={"#y": "year"},
            ExpressionAttributeValues={":y": 1961},
        )
        equal(found["Items"], [book])
        found = query(
            IndexName="by-pages",
            KeyConditionExpression="pk = :p AND pages < :n",
            ConsistentRead=True,
            ExpressionAttributeValues={":p": "shelf", ":n": 204},
        )
        equal(found["Items"], [{"pk": "shelf", "sk": "2", "pages": 100}])
        equal(len(world.resource.Table(table).scan(IndexName="by-year")["Items"]), 1, "the index is sparse")
        fails(
            "ValidationException",
            "Consistent reads are not supported on global secondary indexes",
            lambda: query(
                IndexName="by-year",
                KeyConditionExpression="#y = :y",
                ConsistentRead=True,
                ExpressionAttributeNames={"#y": "year"},
                ExpressionAttributeValues={":y": 1961},
            ),
        )


@scenario
def table_is_updated(world):
    with world.table("update", ProvisionedThroughput=PROVISIONED) as table:
        world.put(table, *({"pk": f"item-{n}", "group": f"g{n % 2}", "n": n} for n in range(10)))

        def update(**changes):
            world.db.update_table(TableName=table, **changes)
            world.db.get_waiter("table_exists").wait(TableName=table, WaiterConfig=WAIT)
            return world.db.describe_table(TableName=table)["Table"]

        raised = {"ReadCapacityUnits": 10, "WriteCapacityUnits": 3}
        contains(update(ProvisionedThroughput=raised)["ProvisionedThroughput"], raised)
        fails(
            "ValidationException",
            within("The provisioned throughput for the table will not change."),
            lambda: update(ProvisionedThroughput=raised),
        )
        by_group = index("by-group", "group") | {"ProvisionedThroughput": PROVISIONED}
        update(
            AttributeDefinitions=[{"AttributeName": "group", "AttributeType": "S"}],
            GlobalSecondaryIndexUpdates=[{"Create": by_group}],
        )
        _wait_for_index(world, table, "by-group")
        found = world.resource.Table(table).query(
            IndexName="by-group",
            KeyConditionExpression="#g = :g",
            ExpressionAttributeNames={"#g": "group"},
            ExpressionAttributeValues={":g": "g1"},
        )
        equal(
            sorted(item["n"] for item in found["Items"]), [1, 3, 5, 7, 9],
            "a new index is filled with the existing items",
        )
        update(GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-group"}}])
        gone = lambda: not world.db.describe_table(TableName=table)["Table"].get("GlobalSecondaryIndexes")
        eventually(gone, "the index is deleted")
        fails(
            "ValidationException",
            "The table does not have the specified index: by-group",
            lambda: world.db.scan(TableName=table, IndexName="by-group"),
        )

        described = update(BillingMode="PAY_PER_REQUEST")
        equal(described["BillingModeSummary"]["BillingMode"], "PAY_PER_REQUEST")
        described = update(StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
        equal(described["StreamSpecification"], {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
        holds(
            described["LatestStreamArn"].endswith(f"/stream/{described['LatestStreamLabel']}"),
            "the stream's ARN is valid",
        )
        fails("ValidationException", within("At least one of ProvisionedThroughput"), update)


def _wait_for_index(world, table, name):
    def is_active():
        described = world.db.describe_table(TableName=table)["Table"]
        indexes = {each["IndexName"]: each["IndexStatus"] for each in described["GlobalSecondaryIndexes"]}
        return indexes[name] == "ACTIVE"

    eventually(is_active, f"the index {name} is active")


@scenario
def protected_table_cannot_be_deleted(world):
    with world.table("protected", DeletionProtectionEnabled=True) as table:
        equal(world.db.describe_table(TableName=table)["Table"]["DeletionProtectionEnabled"], True)
        fails(
            "ValidationException",
            "Resource cannot be deleted as it is currently protected against deletion. "
            "Disable deletion protection first.",
            lambda: world.db.delete_table(TableName=table),
        )
        updated = world.db.update_table(TableName=table, DeletionProtectionEnabled=False)
        equal(updated["TableDescription"]["TableName"], table)


@scenario
def tables_are_listed_in_pages(world):
    names = sorted(world.name("list") for _ in range(7))
    for name in reversed(names):
        world.create(name)
    pages = list(world.db.get_paginator("list_tables").paginate(PaginationConfig={"PageSize": 2}))
    holds(len(pages) >= 4, f"seven tables need more than three pages of two: {len(pages)}")
    holds(all(len(page["TableNames"]) == 2 for page in pages[:-1]), "all pages except the last are full")
    listed = [name for page in pages for name in page["TableNames"]]
    equal([name for name in listed if name in names], names, "each table is listed once, in order")
    page = world.db.list_tables(ExclusiveStartTableName=names[1], Limit=3)
    equal(page["TableNames"], names[2:5])
    equal(page["LastEvaluatedTableName"], names[4])
    for name in names:
        world.db.delete_table(TableName=name)
    holds(not set(names) & set(world.db.list_tables()["TableNames"]), "deleted tables are not listed")


@scenario
def tables_have_tags(world):
    with world.table("tags", Tags=[{"Key": "team", "Value": "ice"}]) as table:
        arn = world.db.describe_table(TableName=table)["Table"]["TableArn"]

        def tags():
            pages = world.db.get_paginator("list_tags_of_resource").paginate(ResourceArn=arn)
            return {tag["Key"]: tag["Value"] for page in pages for tag in page["Tags"]}

        equal(tags(), {"team": "ice"})
        more = [{"Key": "team", "Value": "snow"}, {"Key": "stage", "Value": ""}, {"Key": "größe", "Value": "x y+z"}]
        world.db.tag_resource(ResourceArn=arn, Tags=more)
        equal(tags(), {"team": "snow", "stage": "", "größe": "x y+z"})
        world.db.untag_resource(ResourceArn=arn, TagKeys=["team", "never"])
        equal(tags(), {"stage": "", "größe": "x y+z"})
        unknown = arn.replace(table, "boto3.nowhere")
        fails(
            "ResourceNotFoundException",
            within("not found"),
            lambda: world.db.tag_resource(ResourceArn=unknown, Tags=more),
        )


@scenario
def items_expire(world):
    with world.table("expiry", StreamSpecification={"StreamEnabled": True, "StreamViewType": "OLD_IMAGE"}) as table:
        describe = lambda: world.db.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
        equal(describe(), {"TimeToLiveStatus": "DISABLED"})
        on = {"Enabled": True, "AttributeName": "until"}
        updated = world.db.update_time_to_live(TableName=table, TimeToLiveSpecification=on)
        equal(updated["TimeToLiveSpecification"], on)
        eventually(lambda: describe()["TimeToLiveStatus"] == "ENABLED", "expiry is enabled")
        equal(describe()["AttributeName"], "until")
        fails(
            "ValidationException",
            "TimeToLive is already enabled",
            lambda: world.db.update_time_to_live(TableName=table, TimeToLiveSpecification=on),
        )

        now = int(time.time())
        world.put(
            table,
            {"pk": "late", "until": now + 3600},
            {"pk": "text", "until": str(now - 60)},
            {"pk": "never"},
            {"pk": "expired", "until": now - 60},
        )
        eventually(lambda: world.get(table, pk="expired") is None, "the expired item is removed")
        equal([item["pk"] for item in world.all_items(table)], ["late", "never", "text"])
        (record,) = [each for each in _records(world, table) if each["eventName"] == "REMOVE"]
        equal(record["userIdentity"], {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"})
        equal(record["dynamodb"]["OldImage"]["until"], {"N": str(now - 60)})

        off = {"Enabled": False, "AttributeName": "until"}
        world.db.update_time_to_live(TableName=table, TimeToLiveSpecification=off)
        eventually(lambda: describe()["TimeToLiveStatus"] == "DISABLED", "expiry is disabled")


def _records(world, table):
    arn = world.db.describe_table(TableName=table)["Table"]["LatestStreamArn"]
    for shard in world.streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
        start = world.streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )
        yield from world.streams.get_records(ShardIterator=start["ShardIterator"])["Records"]


@scenario
def limits_and_endpoints_are_returned(world):
    limits = world.db.describe_limits()
    for name in (
        "AccountMaxReadCapacityUnits",
        "AccountMaxWriteCapacityUnits",
        "TableMaxReadCapacityUnits",
        "TableMaxWriteCapacityUnits",
    ):
        holds(limits[name] >= 40_000, f"the limit {name} is high: {limits[name]}")
    (endpoint,) = world.db.describe_endpoints()["Endpoints"]
    equal(endpoint["Address"], world.endpoint.removeprefix("http://"))
    equal(endpoint["CachePeriodInMinutes"], 1440)
