"""Everyday use: output formats, queries on the output, inputs from files, profiles."""

import re

from harness import contains, equal, holds, scenario


@scenario
def output_has_every_format(world):
    with world.table("formats") as table:
        world.fill(table, [{"pk": {"S": "a"}, "name": {"S": "Ärmel"}, "n": {"N": "1"}}])
        get = """dynamodb get-item --table-name $TABLE --key '{"pk": {"S": "a"}}' """
        equal(world.aws(get + "--output json", TABLE=table)["Item"]["name"], {"S": "Ärmel"})
        _, text, _ = world.run(get + "--output text --query Item.name.S", TABLE=table)
        equal(text.strip(), "Ärmel")
        _, drawn, _ = world.run(get + "--output table", TABLE=table)
        holds("GetItem" in drawn and "Ärmel" in drawn and "+--" in drawn, f"the item is drawn as a table: {drawn}")
        _, drawn, _ = world.run("dynamodb describe-table --table-name $TABLE --output table", TABLE=table)
        holds("DescribeTable" in drawn and "KeySchema" in drawn, "the description is drawn as a table")
        _, text, _ = world.run("dynamodb list-tables --output text", TABLE=table)
        holds(f"TABLENAMES\t{table}" in text, f"text output has one line per table: {text}")
        _, text, _ = world.run(
            "dynamodb scan --table-name $TABLE --output text --query 'Items[].[pk.S,n.N]'", TABLE=table
        )
        equal(text.strip(), "a\t1")


@scenario
def inputs_are_read_from_files_and_skeletons(world):
    with world.table("inputs") as table:
        whole = world.file(
            "put.json",
            {
                "TableName": table,
                "Item": {"pk": {"S": "a"}, "n": {"N": "1"}},
                "ReturnConsumedCapacity": "TOTAL",
                "ConditionExpression": "attribute_not_exists(pk)",
            },
        )
        result = world.aws("dynamodb put-item --cli-input-json file://$FILE", FILE=whole)
        equal(result["ConsumedCapacity"]["CapacityUnits"], 1.0)
        world.fails(
            "ConditionalCheckFailedException", "", "dynamodb put-item --cli-input-json file://$FILE", FILE=whole
        )
        skeleton = world.aws("dynamodb create-table --generate-cli-skeleton input")
        contains(skeleton, {"TableName": ""})
        update = world.file(
            "update.json",
            {
                "Key": {"pk": {"S": "a"}},
                "UpdateExpression": "SET t = :t",
                "ReturnValues": "UPDATED_NEW",
                "ExpressionAttributeValues": {":t": {"S": "from a file"}},
            },
        )
        result = world.aws(
            "dynamodb update-item --table-name $TABLE --cli-input-json file://$FILE", TABLE=table, FILE=update
        )
        equal(result["Attributes"], {"t": {"S": "from a file"}}, "flags and files can be combined")


@scenario
def installed_command_works_in_a_shell(world):
    with world.table("shell", "pk:S sk:N") as table:
        script = """
            aws --version 2>&1 | grep -q aws-cli
            for n in 1 2 3; do
                item=$(printf '{"pk": {"S": "a"}, "sk": {"N": "%d"}}' "$n")
                aws dynamodb put-item --table-name "$TABLE" --item "$item"
            done
            aws dynamodb query --table-name "$TABLE" --key-condition-expression 'pk = :p' --output text \
                --expression-attribute-values '{":p": {"S": "a"}}' --query 'Items[].sk.N'
            aws dynamodb describe-table --table-name "$TABLE" --query Table.TableStatus --output text
            if aws dynamodb put-item --table-name "$TABLE" --item '{"pk": {"S": "a"}, "sk": {"N": "1"}}' \
                --condition-expression 'attribute_not_exists(pk)' 2> /dev/null; then exit 1; fi
        """
        equal(world.shell(script, TABLE=table).split(), ["1", "2", "3", "ACTIVE"])


@scenario
def endpoint_is_set_by_flag_or_profile(world):
    with world.table("endpoint") as table:
        nowhere = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
        tables = world.aws(f"dynamodb list-tables --endpoint-url {world.endpoint}", nowhere)["TableNames"]
        holds(table in tables, "the flag has priority over the environment")
        printed = world.shell(
            """
            unset AWS_ENDPOINT_URL
            aws configure set profile.floe.endpoint_url "$ENDPOINT"
            aws configure set profile.floe.region "$AWS_DEFAULT_REGION"
            aws configure set profile.floe.output text
            aws configure set profile.floe.aws_access_key_id "$AWS_ACCESS_KEY_ID"
            aws configure set profile.floe.aws_secret_access_key "$AWS_SECRET_ACCESS_KEY"
            aws --profile floe dynamodb describe-table --table-name "$TABLE" --query Table.TableArn
        """,
            ENDPOINT=world.endpoint,
            TABLE=table,
        )
        holds(re.fullmatch(rf"arn:aws:dynamodb:{world.region}:\d{{12}}:table/{table}\n", printed), f"an ARN: {printed}")


@scenario
def table_is_copied_with_a_pipe(world):
    with world.table("source") as source, world.table("target") as target:
        world.fill(source, [{"pk": {"S": str(n)}, "text": {"S": f"zeile {n} 🧊"}} for n in range(20)])
        world.shell(
            """
            items=$(aws dynamodb scan --table-name "$SOURCE" --query 'Items[].{PutRequest: {Item: @}}')
            aws dynamodb batch-write-item --request-items "{\\"$TARGET\\": $items}"
        """,
            SOURCE=source,
            TARGET=target,
        )
        read = lambda table: sorted(
            world.aws("dynamodb scan --table-name $TABLE --query Items", TABLE=table), key=lambda item: item["pk"]["S"]
        )
        equal(read(target), read(source))
        equal(len(read(target)), 20)
