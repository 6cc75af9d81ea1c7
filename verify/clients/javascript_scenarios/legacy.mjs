/** Parameters that are older than expressions, which old programs and libraries still send. */

import {
  ConditionalCheckFailedException,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  ScanCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";

import { equal, fails, holds, scenario } from "../harness.mjs";

scenario(async function legacy_parameters_are_supported(world) {
  await world.withTable({ purpose: "legacy", keys: "pk:S sk:N" }, async (TableName) => {
    for (let sk = 0; sk < 6; sk += 1) await world.put(TableName, { pk: "a", sk, even: sk % 2 === 0, name: `n${sk}` });
    const send = (Command, input) => world.db.send(new Command({ TableName, ...input }));
    const is = (ComparisonOperator, ...AttributeValueList) => ({ ComparisonOperator, AttributeValueList });
    const Key = { pk: { S: "a" }, sk: { N: "0" } };

    const put = (Expected, more) => send(PutItemCommand, { Item: { ...Key, even: { BOOL: true } }, Expected, ...more });
    holds(await put({ name: { Value: { S: "n0" } } }), "the condition is met");
    holds(await put({ name: { Exists: false }, even: is("NE", { BOOL: false }) }), "the conditions are met");
    const either = { name: { Exists: true, Value: { S: "x" } }, even: is("EQ", { BOOL: true }) };
    await fails(ConditionalCheckFailedException, "The conditional request failed", put(either));
    holds(await put(either, { ConditionalOperator: "OR" }), "one of the conditions is met");

    const updated = await send(UpdateItemCommand, {
      Key,
      ReturnValues: "ALL_NEW",
      AttributeUpdates: {
        n: { Action: "ADD", Value: { N: "2" } },
        made: { Action: "PUT", Value: { S: "new" } },
        even: { Action: "DELETE" },
      },
    });
    equal(updated.Attributes, { ...Key, n: { N: "2" }, made: { S: "new" } });

    const KeyConditions = { pk: is("EQ", { S: "a" }), sk: is("BETWEEN", { N: "1" }, { N: "4" }) };
    const even = { even: is("EQ", { BOOL: true }) };
    const found = await send(QueryCommand, { KeyConditions, QueryFilter: even, AttributesToGet: ["name"] });
    equal([found.Items, found.ScannedCount], [[{ name: { S: "n2" } }, { name: { S: "n4" } }], 4]);
    equal((await send(ScanCommand, { ScanFilter: even })).Count, 2);
    const first = { name: is("IN", { S: "n1" }, { S: "n3" }) };
    equal((await send(ScanCommand, { ScanFilter: { ...even, ...first }, ConditionalOperator: "OR" })).Count, 4);
    equal((await send(GetItemCommand, { Key, AttributesToGet: ["made"] })).Item, { made: { S: "new" } });
    const mixed = send(ScanCommand, { ScanFilter: even, ProjectionExpression: "pk" });
    await fails(
      "ValidationException",
      "Can not use both expression and non-expression parameters in the same request",
      mixed,
    );
  });
});
