"""Authentication and durability, with the AWS CLI."""

from harness import equal, holds, kill_server, scenario


@scenario
def keys_are_checked(world):
    world.fails(
        "UnrecognizedClientException",
        "The security token included in the request is invalid.",
        "dynamodb list-tables",
        {"AWS_ACCESS_KEY_ID": "AKIDUNKNOWN"},
    )
    world.fails(
        "InvalidSignatureException",
        "The request signature we calculated does not match the signature you provided.",
        "dynamodb list-tables",
        {"AWS_SECRET_ACCESS_KEY": "wrong"},
    )
    world.fails("MissingAuthenticationTokenException", "", "dynamodb list-tables --no-sign-request")
    world.fails("UnrecognizedClientException", "", "dynamodbstreams list-streams", {"AWS_ACCESS_KEY_ID": "AKIDUNKNOWN"})
    holds("TableNames" in world.aws("dynamodb list-tables"), "the correct keys are accepted")


@scenario(keys=False)
def any_key_is_accepted(world):
    other = {"AWS_ACCESS_KEY_ID": "anyone", "AWS_SECRET_ACCESS_KEY": "anything"}
    holds("TableNames" in world.aws("dynamodb list-tables", other), "any key is accepted")
    world.fails("MissingAuthenticationTokenException", "", "dynamodb list-tables --no-sign-request")


@scenario
def unknown_operations_and_names_are_rejected(world):
    world.fails("UnknownOperationException", "", "dynamodb list-global-tables")
    world.fails("ValidationException", "", "dynamodb describe-table --table-name 'no spaces allowed'")


@scenario
def acknowledged_writes_survive_a_kill(world):
    # Enough retries for the server to restart.
    patient = {"AWS_MAX_ATTEMPTS": "30", "AWS_RETRY_MODE": "standard"}
    with world.table("survives") as table:
        acknowledged, is_back, after = 0, None, 0
        while after < 5:
            world.aws(
                "dynamodb put-item --table-name $TABLE --item $ITEM",
                patient,
                TABLE=table,
                ITEM={"pk": {"S": str(acknowledged)}},
            )
            acknowledged += 1
            if acknowledged == 5:
                is_back = kill_server()
            after += is_back is not None and is_back.is_set()
            holds(acknowledged < 1000, "the server restarts in time")
        found = world.aws("dynamodb scan --table-name $TABLE --query 'Items[].pk.S'", TABLE=table)
        equal(sorted(map(int, found)), list(range(acknowledged)), "every acknowledged put is stored")
