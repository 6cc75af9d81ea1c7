"""Tables: life cycle, indexes, settings, tags and expiry, with the AWS CLI."""

import time

from harness import contains, equal, eventually, holds, scenario


@scenario(keys=None)
def table_is_created_described_and_deleted(world):
    name = world.name("life")
    throughput = "--provisioned-throughput ReadCapacityUnits=5,WriteCapacityUnits=3"
    created = world.create(name, "pk:S sk:N", throughput)
    holds(created["TableStatus"] in ("CREATING", "ACTIVE"), "a new table is creating or active")
    equal(world.aws("dynamodb wait table-exists --table-name $NAME", NAME=name), None)
    described = world.aws("dynamodb describe-table --table-name $NAME", NAME=name)["Table"]
    contains(
        described,
        {
            "TableName": name,
            "TableStatus": "ACTIVE",
            "ItemCount": 0,
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        },
    )
    contains(described["ProvisionedThroughput"], {"ReadCapacityUnits": 5, "WriteCapacityUnits": 3})
    again = (
        "dynamodb create-table --table-name $NAME --key-schema AttributeName=a,KeyType=HASH "
        "--attribute-definitions AttributeName=a,AttributeType=S --billing-mode PAY_PER_REQUEST"
    )
    world.fails("ResourceInUseException", f"Table already exists: {name}", again, NAME=name)
    deleted = world.aws("dynamodb delete-table --table-name $NAME", NAME=name)["TableDescription"]
    equal(deleted["TableStatus"], "DELETING")
    equal(world.aws("dynamodb wait table-not-exists --table-name $NAME", NAME=name), None)
    world.fails(
        "ResourceNotFoundException",
        f"Requested resource not found: Table: {name} not found",
        "dynamodb describe-table --table-name $NAME",
        NAME=name,
    )
    world.fails(
        "ResourceNotFoundException",
        "Requested resource not found",
        """dynamodb get-item --table-name $NAME --key '{"pk": {"S": "a"}}'""",
        NAME=name,
    )


@scenario
def indexes_are_created_and_queried(world):
    by_author = (
        '[{"IndexName": "by-author", "KeySchema": [{"AttributeName": "author", "KeyType": "HASH"}], '
        '"Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["title"]}}]'
    )
    local = (
        "IndexName=by-pages,KeySchema=[{AttributeName=pk,KeyType=HASH},{AttributeName=pages,KeyType=RANGE}],"
        "Projection={ProjectionType=KEYS_ONLY}"
    )
    name = world.name("books")
    world.aws(
        "dynamodb create-table --table-name $NAME --billing-mode PAY_PER_REQUEST "
        "--key-schema AttributeName=pk,KeyType=HASH AttributeName=sk,KeyType=RANGE --attribute-definitions "
        "AttributeName=pk,AttributeType=S AttributeName=sk,AttributeType=S AttributeName=author,AttributeType=S "
        "AttributeName=pages,AttributeType=N --global-secondary-indexes $GLOBAL --local-secondary-indexes $LOCAL",
        NAME=name,
        GLOBAL=by_author,
        LOCAL=local,
    )
    world.aws("dynamodb wait table-exists --table-name $NAME", NAME=name)
    book = {
        "pk": {"S": "shelf"},
        "sk": {"S": "1"},
        "author": {"S": "Lem"},
        "pages": {"N": "204"},
        "title": {"S": "Solaris"},
        "isbn": {"S": "x"},
    }
    world.fill(name, [book, {"pk": {"S": "shelf"}, "sk": {"S": "2"}, "pages": {"N": "100"}}])
    found = world.aws(
        """dynamodb query --table-name $NAME --index-name by-author --key-condition-expression 'author = :a'
        --expression-attribute-values '{":a": {"S": "Lem"}}'""",
        NAME=name,
    )
    equal(found["Items"], [{key: book[key] for key in ("pk", "sk", "author", "title")}])
    found = world.aws(
        """dynamodb query --table-name $NAME --index-name by-pages --consistent-read
        --key-condition-expression 'pk = :p AND pages < :n'
        --expression-attribute-values '{":p": {"S": "shelf"}, ":n": {"N": "204"}}'""",
        NAME=name,
    )
    equal(found["Items"], [{"pk": {"S": "shelf"}, "sk": {"S": "2"}, "pages": {"N": "100"}}])
    equal(world.aws("dynamodb scan --table-name $NAME --index-name by-author --select COUNT", NAME=name)["Count"], 1)
    world.aws("dynamodb delete-table --table-name $NAME", NAME=name)


@scenario
def table_is_updated(world):
    with world.table("update") as table:
        world.fill(table, [{"pk": {"S": str(n)}, "group": {"S": f"g{n % 2}"}} for n in range(10)])
        describe = lambda: world.aws("dynamodb describe-table --table-name $TABLE", TABLE=table)["Table"]
        create = (
            '[{"Create": {"IndexName": "by-group", "KeySchema": [{"AttributeName": "group", "KeyType": "HASH"}], '
            '"Projection": {"ProjectionType": "ALL"}}}]'
        )
        world.aws(
            "dynamodb update-table --table-name $TABLE --attribute-definitions "
            "AttributeName=group,AttributeType=S --global-secondary-index-updates $CREATE",
            TABLE=table,
            CREATE=create,
        )
        eventually(lambda: describe()["GlobalSecondaryIndexes"][0]["IndexStatus"] == "ACTIVE", "the index is active")
        found = world.aws(
            """dynamodb query --table-name $TABLE --index-name by-group --select COUNT
            --key-condition-expression '#g = :g' --expression-attribute-names '{"#g": "group"}'
            --expression-attribute-values '{":g": {"S": "g1"}}'""",
            TABLE=table,
        )
        equal(found["Count"], 5, "a new index is filled with the existing items")
        world.aws(
            "dynamodb update-table --table-name $TABLE --global-secondary-index-updates $DELETE",
            TABLE=table,
            DELETE=[{"Delete": {"IndexName": "by-group"}}],
        )
        eventually(lambda: not describe().get("GlobalSecondaryIndexes"), "the index is deleted")
        world.aws(
            "dynamodb update-table --table-name $TABLE --billing-mode PROVISIONED "
            "--provisioned-throughput ReadCapacityUnits=2,WriteCapacityUnits=1",
            TABLE=table,
        )
        equal(describe()["ProvisionedThroughput"]["ReadCapacityUnits"], 2)
        world.aws("dynamodb update-table --table-name $TABLE --deletion-protection-enabled", TABLE=table)
        world.fails(
            "ValidationException",
            "Resource cannot be deleted as it is currently protected against deletion.",
            "dynamodb delete-table --table-name $TABLE",
            TABLE=table,
        )
        world.aws("dynamodb update-table --table-name $TABLE --no-deletion-protection-enabled", TABLE=table)


@scenario
def tables_are_listed_in_pages(world):
    names = sorted(world.name("list") for _ in range(5))
    for name in names:
        world.create(name)
    listed = world.aws("dynamodb list-tables --page-size 2")["TableNames"]
    equal([name for name in listed if name in names], names, "all pages are combined, in order")
    first = world.aws("dynamodb list-tables --max-items 3")
    equal(len(first["TableNames"]), 3)
    rest = world.aws("dynamodb list-tables --starting-token $TOKEN", TOKEN=first["NextToken"])
    equal(first["TableNames"] + rest["TableNames"], listed)
    page = world.aws("dynamodb list-tables --no-paginate --limit 2 --exclusive-start-table-name $NAME", NAME=names[0])
    equal((page["TableNames"], page["LastEvaluatedTableName"]), (names[1:3], names[2]))
    for name in names:
        world.aws("dynamodb delete-table --table-name $NAME", NAME=name)


@scenario
def tables_have_tags(world):
    with world.table("tags", more="--tags Key=team,Value=ice") as table:
        arn = world.aws("dynamodb describe-table --table-name $TABLE", TABLE=table)["Table"]["TableArn"]
        tags = lambda: {
            tag["Key"]: tag["Value"]
            for tag in world.aws("dynamodb list-tags-of-resource --resource-arn $ARN", ARN=arn)["Tags"]
        }
        equal(tags(), {"team": "ice"})
        world.aws("dynamodb tag-resource --resource-arn $ARN --tags Key=team,Value=snow Key=stage,Value=test", ARN=arn)
        equal(tags(), {"team": "snow", "stage": "test"})
        world.aws("dynamodb untag-resource --resource-arn $ARN --tag-keys team", ARN=arn)
        equal(tags(), {"stage": "test"})


@scenario
def items_expire(world):
    with world.table("expiry") as table:
        describe = lambda: world.aws("dynamodb describe-time-to-live --table-name $TABLE", TABLE=table)[
            "TimeToLiveDescription"
        ]
        equal(describe(), {"TimeToLiveStatus": "DISABLED"})
        on = (
            "dynamodb update-time-to-live --table-name $TABLE "
            "--time-to-live-specification Enabled=true,AttributeName=until"
        )
        equal(world.aws(on, TABLE=table)["TimeToLiveSpecification"], {"Enabled": True, "AttributeName": "until"})
        eventually(lambda: describe() == {"TimeToLiveStatus": "ENABLED", "AttributeName": "until"}, "expiry is enabled")
        world.fails("ValidationException", "TimeToLive is already enabled", on, TABLE=table)
        now = int(time.time())
        world.fill(
            table,
            [
                {"pk": {"S": "late"}, "until": {"N": str(now + 3600)}},
                {"pk": {"S": "expired"}, "until": {"N": str(now - 60)}},
            ],
        )
        left = lambda: world.aws("dynamodb scan --table-name $TABLE --query 'Items[].pk.S'", TABLE=table)
        eventually(lambda: left() == ["late"], "the expired item is removed")


@scenario
def limits_and_endpoints_are_returned(world):
    holds(world.aws("dynamodb describe-limits")["TableMaxReadCapacityUnits"] >= 40_000, "the limit is high")
    (endpoint,) = world.aws("dynamodb describe-endpoints")["Endpoints"]
    equal(endpoint["CachePeriodInMinutes"], 1440)
