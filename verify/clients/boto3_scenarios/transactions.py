"""Transactions: atomicity, cancellation reasons, and tokens."""

import threading
import uuid

from harness import equal, fails, holds, scenario, within


def cancelled(world, codes, call):
    """Expects a transaction to be cancelled with these codes, and returns the reasons."""
    message = f"Transaction cancelled, please refer cancellation reasons for specific reasons [{', '.join(codes)}]"
    response = fails(
        "TransactionCanceledException", message, call, kind=world.db.exceptions.TransactionCanceledException
    )
    reasons = response["CancellationReasons"]
    equal([reason["Code"] for reason in reasons], list(codes), "codes of the reasons")
    return reasons


@scenario
def transaction_is_atomic(world):
    with world.table("accounts") as accounts, world.table("log", "pk:S sk:N") as log:
        world.put(accounts, {"pk": "anna", "balance": 100}, {"pk": "ben", "balance": 20}, {"pk": "old"})

        def transfer(amount, number):
            change = {
                "TableName": accounts,
                "ConditionExpression": "balance >= :least",
                "UpdateExpression": "SET balance = balance + :amount",
            }
            values = lambda amount, least: {":amount": {"N": str(amount)}, ":least": {"N": str(least)}}
            entry = {"pk": {"S": "anna"}, "sk": {"N": str(number)}}
            return world.db.transact_write_items(
                TransactItems=[
                    {
                        "Update": change
                        | {"Key": {"pk": {"S": "anna"}}, "ExpressionAttributeValues": values(-amount, amount)}
                    },
                    {"Update": change | {"Key": {"pk": {"S": "ben"}}, "ExpressionAttributeValues": values(amount, 0)}},
                    {"Put": {"TableName": log, "Item": entry, "ConditionExpression": "attribute_not_exists(pk)"}},
                    {
                        "ConditionCheck": {
                            "TableName": accounts,
                            "Key": {"pk": {"S": "closed"}},
                            "ConditionExpression": "attribute_not_exists(pk)",
                        }
                    },
                    {"Delete": {"TableName": accounts, "Key": {"pk": {"S": "old"}}}},
                ]
            )

        transfer(30, 1)
        balances = lambda: [world.get(accounts, pk=name)["balance"] for name in ("anna", "ben")]
        equal(balances(), [70, 50])
        equal(world.get(accounts, pk="old"), None)
        none = ["None"]
        cancelled(world, ["ConditionalCheckFailed"] + none * 4, lambda: transfer(71, 2))
        cancelled(world, none * 2 + ["ConditionalCheckFailed"] + none * 2, lambda: transfer(1, 1))
        world.put(accounts, {"pk": "closed"})
        cancelled(
            world,
            ["ConditionalCheckFailed", "None", "ConditionalCheckFailed", "ConditionalCheckFailed", "None"],
            lambda: transfer(71, 1),
        )
        equal(balances(), [70, 50], "a cancelled transaction has no effect")
        equal(len(world.all_items(log)), 1)


@scenario
def cancellation_reasons_contain_items_and_causes(world):
    with world.table("reasons") as name:
        world.put(name, {"pk": "a", "n": 1, "s": "text"})
        key = {"pk": {"S": "a"}}
        shown = {
            "TableName": name,
            "ConditionExpression": "attribute_not_exists(pk)",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        reasons = cancelled(
            world,
            ["ConditionalCheckFailed", "None"],
            lambda: world.db.transact_write_items(
                TransactItems=[{"Put": shown | {"Item": key}}, {"Put": {"TableName": name, "Item": {"pk": {"S": "b"}}}}]
            ),
        )
        equal(reasons[0]["Message"], "The conditional request failed")
        equal(reasons[0]["Item"], {"pk": {"S": "a"}, "n": {"N": "1"}, "s": {"S": "text"}})
        holds("Message" not in reasons[1] and "Item" not in reasons[1], "the other action has no reason")

        add = {
            "TableName": name,
            "Key": key,
            "UpdateExpression": "ADD s :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
        reasons = cancelled(
            world,
            ["None", "ValidationError"],
            lambda: world.db.transact_write_items(
                TransactItems=[{"Put": {"TableName": name, "Item": {"pk": {"S": "b"}}}}, {"Update": add}]
            ),
        )
        equal(reasons[1]["Message"], "An operand in the update expression has an incorrect data type")
        equal(world.get(name, pk="b"), None)


@scenario
def transaction_with_token_is_applied_once(world):
    with world.table("tokens") as name:

        def add(amount, token):
            world.db.transact_write_items(
                ClientRequestToken=token,
                TransactItems=[
                    {
                        "Update": {
                            "TableName": name,
                            "Key": {"pk": {"S": "counter"}},
                            "UpdateExpression": "ADD n :amount",
                            "ExpressionAttributeValues": {":amount": {"N": str(amount)}},
                        }
                    }
                ],
            )

        token = str(uuid.uuid4())
        for _ in range(3):
            add(5, token)
        equal(world.get(name, pk="counter")["n"], 5, "a repeated token repeats no change")
        fails(
            "IdempotentParameterMismatchException",
            lambda message: True,
            lambda: add(6, token),
            kind=world.db.exceptions.IdempotentParameterMismatchException,
        )
        add(5, str(uuid.uuid4()))
        equal(world.get(name, pk="counter")["n"], 10)


@scenario
def transactional_reads_are_a_snapshot(world):
    with world.table("moment") as name:
        world.put(name, {"pk": "a", "n": 0, "more": {"deep": 1}}, {"pk": "b", "n": 0})
        result = world.db.transact_get_items(
            ReturnConsumedCapacity="TOTAL",
            TransactItems=[
                {"Get": {"TableName": name, "Key": {"pk": {"S": "a"}}, "ProjectionExpression": "more.deep"}},
                {"Get": {"TableName": name, "Key": {"pk": {"S": "never"}}}},
                {"Get": {"TableName": name, "Key": {"pk": {"S": "b"}}}},
            ],
        )
        equal(
            result["Responses"],
            [{"Item": {"more": {"M": {"deep": {"N": "1"}}}}}, {}, {"Item": {"pk": {"S": "b"}, "n": {"N": "0"}}}],
        )
        equal(result["ConsumedCapacity"], [{"TableName": name, "CapacityUnits": 6.0, "ReadCapacityUnits": 6.0}])

        both = [
            {
                "Update": {
                    "TableName": name,
                    "Key": {"pk": {"S": pk}},
                    "UpdateExpression": "ADD n :one",
                    "ExpressionAttributeValues": {":one": {"N": "1"}},
                }
            }
            for pk in "ab"
        ]
        stop = threading.Event()

        def write():
            db = world.client()
            while not stop.is_set():
                db.transact_write_items(TransactItems=both)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(50):
                result = world.db.transact_get_items(
                    TransactItems=[{"Get": {"TableName": name, "Key": {"pk": {"S": pk}}}} for pk in "ab"]
                )
                one, other = (response["Item"]["n"]["N"] for response in result["Responses"])
                equal(one, other, "both items are read in one snapshot")
        finally:
            stop.set()
            writer.join()
        holds(world.get(name, pk="a")["n"] > 0, "the writer ran during the reads")


@scenario
def invalid_transactions_are_rejected(world):
    with world.table("wrong") as name:
        put = lambda pk: {"Put": {"TableName": name, "Item": {"pk": {"S": pk}}}}
        write = lambda items: lambda: world.db.transact_write_items(TransactItems=items)
        fails(
            "ValidationException",
            "Transaction request cannot include multiple operations on one item",
            write([put("a"), put("a")]),
        )
        fails("ValidationException", within("100"), write([put(str(n)) for n in range(101)]))
        fails(
            "ResourceNotFoundException",
            within("Requested resource not found"),
            write([{"Put": {"TableName": "boto3.nowhere", "Item": {"pk": {"S": "a"}}}}]),
        )
        write([put(str(n)) for n in range(100)])()
        equal(len(world.all_items(name)), 100, "a transaction of 100 actions is accepted")
