"""Batches and transactions, with the AWS CLI."""

import uuid

from harness import equal, holds, scenario


@scenario
def batches_write_and_get(world):
    with world.table("one") as one, world.table("two", "pk:S sk:N") as two:
        batch = world.file(
            "batch.json",
            {
                one: [{"PutRequest": {"Item": {"pk": {"S": str(n)}}}} for n in range(20)],
                two: [{"PutRequest": {"Item": {"pk": {"S": "a"}, "sk": {"N": str(n)}}}} for n in range(5)],
            },
        )
        result = world.aws(
            "dynamodb batch-write-item --request-items file://$BATCH --return-consumed-capacity TOTAL", BATCH=batch
        )
        equal(result["UnprocessedItems"], {})
        equal({each["TableName"]: each["CapacityUnits"] for each in result["ConsumedCapacity"]}, {one: 20.0, two: 5.0})
        keys = {
            one: {"Keys": [{"pk": {"S": str(n)}} for n in range(25)]},
            two: {"Keys": [{"pk": {"S": "a"}, "sk": {"N": "4"}}], "ProjectionExpression": "sk"},
        }
        result = world.aws("dynamodb batch-get-item --request-items $KEYS", KEYS=keys)
        equal(sorted(int(item["pk"]["S"]) for item in result["Responses"][one]), list(range(20)))
        equal(result["Responses"][two], [{"sk": {"N": "4"}}])
        equal(result["UnprocessedKeys"], {})
        delete = {one: [{"DeleteRequest": {"Key": {"pk": {"S": str(n)}}}} for n in range(20)]}
        world.aws("dynamodb batch-write-item --request-items $DELETE", DELETE=delete)
        equal(world.aws("dynamodb scan --table-name $TABLE", TABLE=one)["Count"], 0)
        twice = {one: [{"PutRequest": {"Item": {"pk": {"S": "a"}}}}] * 2}
        world.fails(
            "ValidationException",
            "Provided list of item keys contains duplicates",
            "dynamodb batch-write-item --request-items $TWICE",
            TWICE=twice,
        )


@scenario
def unprocessed_keys_are_returned(world):
    with world.table("unprocessed") as table:
        world.fill(table, [{"pk": {"S": str(n)}, "data": {"S": "x" * 400_000}} for n in range(45)])
        rest, found = {table: {"Keys": [{"pk": {"S": str(n)}} for n in range(45)]}}, []
        rounds = 0
        while rest:
            result = world.aws("dynamodb batch-get-item --request-items $REST", REST=rest)
            found += [int(item["pk"]["S"]) for item in result["Responses"].get(table, [])]
            rest, rounds = result["UnprocessedKeys"], rounds + 1
            holds(rounds < 10, "batch get completes within 10 rounds")
        holds(rounds > 1, "the items exceed the size limit of one response")
        equal(sorted(found), list(range(45)))


@scenario
def transaction_is_atomic(world):
    with world.table("accounts") as table:
        world.fill(table, [{"pk": {"S": "anna"}, "n": {"N": "100"}}, {"pk": {"S": "ben"}, "n": {"N": "20"}}])

        def transfer(amount):
            change = lambda pk, amount: {
                "Update": {
                    "TableName": table,
                    "Key": {"pk": {"S": pk}},
                    "UpdateExpression": "SET n = n + :a",
                    "ConditionExpression": "n >= :least",
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                    "ExpressionAttributeValues": {":a": {"N": str(amount)}, ":least": {"N": str(max(0, -amount))}},
                }
            }
            return world.file(
                "transfer.json",
                [
                    change("anna", -amount),
                    change("ben", amount),
                    {"Put": {"TableName": table, "Item": {"pk": {"S": "log"}}}},
                    {
                        "ConditionCheck": {
                            "TableName": table,
                            "Key": {"pk": {"S": "closed"}},
                            "ConditionExpression": "attribute_not_exists(pk)",
                        }
                    },
                ],
            )

        write = "dynamodb transact-write-items --transact-items file://$FILE"
        world.aws(write, FILE=transfer(30))
        world.fails(
            "TransactionCanceledException",
            "Transaction cancelled, please refer cancellation reasons for specific "
            "reasons [ConditionalCheckFailed, None, None, None]",
            write,
            FILE=transfer(71),
        )
        get = [
            {"Get": {"TableName": table, "Key": {"pk": {"S": pk}}, "ProjectionExpression": "n"}}
            for pk in ("anna", "ben", "absent")
        ]
        result = world.aws("dynamodb transact-get-items --transact-items $GET", GET=get)
        equal(result["Responses"], [{"Item": {"n": {"N": "70"}}}, {"Item": {"n": {"N": "50"}}}, {}])
        put = {"Put": {"TableName": table, "Item": {"pk": {"S": "x"}}}}
        world.fails(
            "ValidationException",
            "Transaction request cannot include multiple operations on one item",
            "dynamodb transact-write-items --transact-items $TWICE",
            TWICE=[put, put],
        )


@scenario
def transaction_with_token_is_applied_once(world):
    with world.table("tokens") as table:
        add = lambda amount: [
            {
                "Update": {
                    "TableName": table,
                    "Key": {"pk": {"S": "counter"}},
                    "UpdateExpression": "ADD n :a",
                    "ExpressionAttributeValues": {":a": {"N": str(amount)}},
                }
            }
        ]
        token = str(uuid.uuid4())
        write = "dynamodb transact-write-items --client-request-token $TOKEN --transact-items $ITEMS"
        for _ in range(3):
            world.aws(write, TOKEN=token, ITEMS=add(5))
        world.fails("IdempotentParameterMismatchException", "", write, TOKEN=token, ITEMS=add(6))
        found = world.aws("dynamodb scan --table-name $TABLE --query 'Items[0].n.N'", TABLE=table)
        equal(found, "5")
