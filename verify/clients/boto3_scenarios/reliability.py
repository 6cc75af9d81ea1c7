"""Authentication, complete responses, and durability."""

import concurrent.futures
import zlib

import botocore
from botocore.config import Config

from harness import equal, fails, holds, kill_server, scenario


@scenario
def keys_are_checked(world):
    call = lambda **keys: lambda: world.client(**keys).list_tables()
    unknown = "The security token included in the request is invalid."
    fails(
        "UnrecognizedClientException", unknown, call(aws_access_key_id="AKIDUNKNOWN", aws_secret_access_key="whatever")
    )
    own = world.session.get_credentials()
    fails(
        "InvalidSignatureException",
        lambda message: message.startswith(
            "The request signature we calculated does not match " "the signature you provided."
        ),
        call(aws_access_key_id=own.access_key, aws_secret_access_key="wrong"),
    )
    fails(
        "MissingAuthenticationTokenException",
        lambda message: True,
        call(config=Config(signature_version=botocore.UNSIGNED)),
    )
    fails(
        "UnrecognizedClientException",
        unknown,
        lambda: world.client(
            "dynamodbstreams", aws_access_key_id="AKIDUNKNOWN", aws_secret_access_key="whatever"
        ).list_streams(),
    )
    holds("TableNames" in world.db.list_tables(), "the correct keys are accepted")


@scenario(keys=False)
def any_key_is_accepted(world):
    other = world.client(aws_access_key_id="anyone", aws_secret_access_key="anything")
    holds("TableNames" in other.list_tables(), "any key is accepted")
    # But a request must be signed, as on AWS.
    unsigned = world.client(config=Config(signature_version=botocore.UNSIGNED))
    fails("MissingAuthenticationTokenException", lambda message: True, unsigned.list_tables)


@scenario
def every_response_has_a_checksum(world):
    bodies = []
    db = world.client()
    db.meta.events.register("before-parse.dynamodb", lambda response_dict, **_: bodies.append(response_dict))
    with world.table("checksums") as name:
        db.put_item(TableName=name, Item={"pk": {"S": "a"}, "data": {"S": "ü" * 100_000}})
        db.get_item(TableName=name, Key={"pk": {"S": "a"}})
        db.scan(TableName=name)
        fails("ValidationException", lambda message: True, lambda: db.scan(TableName=name, FilterExpression="="))
        fails("ResourceNotFoundException", lambda message: True, lambda: db.scan(TableName="boto3.nowhere"))
    equal(len(bodies), 5)
    for result in bodies:
        headers = {name.lower(): value for name, value in result["headers"].items()}
        equal(int(headers["x-amz-crc32"]), zlib.crc32(result["body"]))
        equal(headers["content-type"], "application/x-amz-json-1.0")
        equal(int(headers["content-length"]), len(result["body"]))
        holds(headers["x-amzn-requestid"], "the response has a request id")


@scenario
def unknown_operations_and_names_are_rejected(world):
    fails("UnknownOperationException", lambda message: True, lambda: world.db.list_global_tables())
    fails(
        "ValidationException", lambda message: message, lambda: world.db.describe_table(TableName="no spaces allowed")
    )


@scenario
def concurrent_counters_lose_no_update(world):
    with world.table("counters") as name:
        world.put(name, {"pk": "conditional", "n": 0})

        def add(_):
            world.db.update_item(
                TableName=name,
                Key={"pk": {"S": "added"}},
                UpdateExpression="ADD n :one",
                ExpressionAttributeValues={":one": {"N": "1"}},
            )

        def advance(_):
            """Reads, and writes on the condition that no other client has written."""
            while True:
                n = world.db.get_item(TableName=name, Key={"pk": {"S": "conditional"}}, ConsistentRead=True)["Item"][
                    "n"
                ]
                try:
                    world.db.put_item(
                        TableName=name,
                        Item={"pk": {"S": "conditional"}, "n": {"N": str(int(n["N"]) + 1)}},
                        ConditionExpression="n = :n",
                        ExpressionAttributeValues={":n": n},
                    )
                    return
                except world.db.exceptions.ConditionalCheckFailedException:
                    continue

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(add, range(200)))
            list(pool.map(advance, range(40)))
        equal(world.get(name, pk="added")["n"], 200)
        equal(world.get(name, pk="conditional")["n"], 40)


@scenario
def acknowledged_writes_survive_a_kill(world):
    # Enough retries for the server to restart.
    db = world.client(
        config=Config(retries={"max_attempts": 30, "mode": "standard"}, connect_timeout=5, read_timeout=5)
    )
    with world.table("survives", StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}) as name:
        acknowledged, is_back, after = 0, None, 0
        while after < 50:
            db.put_item(TableName=name, Item={"pk": {"S": str(acknowledged)}, "n": {"N": str(acknowledged)}})
            acknowledged += 1
            if acknowledged == 50:
                is_back = kill_server()
            after += is_back is not None and is_back.is_set()
            holds(acknowledged < 100_000, "the server restarts in time")
        found = sorted(int(item["n"]) for item in world.all_items(name))
        equal(found, list(range(acknowledged)), "every acknowledged put is stored")
        equal(world.db.describe_table(TableName=name)["Table"]["TableStatus"], "ACTIVE")
