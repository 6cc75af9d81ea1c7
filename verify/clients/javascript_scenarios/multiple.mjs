/** Batches and transactions. */

import { randomUUID } from "node:crypto";

import {
  IdempotentParameterMismatchException,
  ResourceNotFoundException,
  TransactWriteItemsCommand,
  TransactionCanceledException,
} from "@aws-sdk/client-dynamodb";
import { BatchGetCommand, BatchWriteCommand, TransactGetCommand, TransactWriteCommand } from "@aws-sdk/lib-dynamodb";

import { equal, fails, holds, scenario } from "../harness.mjs";

scenario(async function batches_write_and_get(world) {
  await world.withTable({ purpose: "one" }, (one) =>
    world.withTable({ purpose: "two", keys: "pk:S sk:N" }, async (two) => {
      const puts = (items) => items.map((Item) => ({ PutRequest: { Item } }));
      const written = await world.documents.send(
        new BatchWriteCommand({
          RequestItems: {
            [one]: puts([{ pk: "a", set: new Set(["x"]) }, { pk: "b" }]),
            [two]: puts([{ pk: "a", sk: 1 }]),
          },
          ReturnConsumedCapacity: "TOTAL",
        }),
      );
      equal(written.UnprocessedItems, {});
      equal(Object.fromEntries(written.ConsumedCapacity.map((each) => [each.TableName, each.CapacityUnits])), {
        [one]: 2,
        [two]: 1,
      });
      const got = await world.documents.send(
        new BatchGetCommand({
          RequestItems: {
            [one]: { Keys: [{ pk: "a" }, { pk: "never" }, { pk: "b" }] },
            [two]: { Keys: [{ pk: "a", sk: 1 }], ProjectionExpression: "sk" },
          },
        }),
      );
      const byKey = got.Responses[one].sort((left, right) => (left.pk < right.pk ? -1 : 1));
      equal(byKey, [{ pk: "a", set: new Set(["x"]) }, { pk: "b" }]);
      equal(got.Responses[two], [{ sk: 1 }]);
      equal(got.UnprocessedKeys, {});
      const twice = new BatchWriteCommand({ RequestItems: { [one]: puts([{ pk: "a" }, { pk: "a" }]) } });
      await fails("ValidationException", "Provided list of item keys contains duplicates", world.documents.send(twice));
      const many = puts(Array.from({ length: 26 }, (_, n) => ({ pk: `${n}` })));
      const tooMany = new BatchWriteCommand({ RequestItems: { [one]: many } });
      await fails("ValidationException", "25", world.documents.send(tooMany));
      const nowhere = new BatchGetCommand({ RequestItems: { "javascript.nowhere": { Keys: [{ pk: "a" }] } } });
      await fails(ResourceNotFoundException, "Requested resource not found", world.documents.send(nowhere));
    }),
  );
});

scenario(async function unprocessed_keys_can_be_requested_again(world) {
  await world.withTable({ purpose: "unprocessed" }, async (TableName) => {
    const numbers = Array.from({ length: 45 }, (_, n) => n);
    const data = "x".repeat(400_000);
    for (const n of numbers) await world.put(TableName, { pk: `${n}`, data });
    let RequestItems = { [TableName]: { Keys: numbers.map((n) => ({ pk: `${n}` })) } };
    const found = [];
    let rounds = 0;
    while (Object.keys(RequestItems).length > 0) {
      const result = await world.documents.send(new BatchGetCommand({ RequestItems }));
      found.push(...result.Responses[TableName].map((item) => Number(item.pk)));
      RequestItems = result.UnprocessedKeys;
      rounds += 1;
      holds(rounds < 10, "batch get completes within 10 rounds");
    }
    holds(rounds > 1, "45 items of 400 KB exceed the size limit of one response");
    equal(
      found.sort((one, other) => one - other),
      numbers,
      "each item is returned once",
    );
  });
});

/** Expects a transaction to be cancelled with these codes, and returns the reasons. */
async function cancelled(codes, promise) {
  const message = `Transaction cancelled, please refer cancellation reasons for specific reasons [${codes.join(", ")}]`;
  const error = await fails(TransactionCanceledException, message, promise);
  equal(
    error.CancellationReasons.map((reason) => reason.Code),
    codes,
  );
  return error.CancellationReasons;
}

scenario(async function transaction_is_atomic(world) {
  await world.withTable({ purpose: "accounts" }, async (TableName) => {
    await world.put(TableName, { pk: "anna", n: 100 }, { pk: "ben", n: 20 }, { pk: "old" });
    const change = (pk, amount) => ({
      Update: {
        TableName,
        Key: { pk },
        UpdateExpression: "SET n = n + :a",
        ConditionExpression: "n >= :least",
        ExpressionAttributeValues: { ":a": amount, ":least": Math.max(0, -amount) },
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      },
    });
    const transfer = (amount) =>
      world.documents.send(
        new TransactWriteCommand({
          TransactItems: [
            change("anna", -amount),
            change("ben", amount),
            { Put: { TableName, Item: { pk: "log", amount } } },
            { Delete: { TableName, Key: { pk: "old" } } },
            { ConditionCheck: { TableName, Key: { pk: "closed" }, ConditionExpression: "attribute_not_exists(pk)" } },
          ],
        }),
      );
    await transfer(30);
    const reasons = await cancelled(["ConditionalCheckFailed", "None", "None", "None", "None"], transfer(71));
    equal(reasons[0].Message, "The conditional request failed");
    holds(reasons[0].Item, "the item that failed the condition is returned");
    await world.put(TableName, { pk: "closed" });
    await cancelled(["None", "None", "None", "None", "ConditionalCheckFailed"], transfer(1));
    const got = await world.documents.send(
      new TransactGetCommand({
        TransactItems: ["anna", "ben", "log", "old"].map((pk) => ({
          Get: { TableName, Key: { pk }, ProjectionExpression: "n, amount" },
        })),
      }),
    );
    equal(
      got.Responses.map((response) => response.Item),
      [{ n: 70 }, { n: 50 }, { amount: 30 }, undefined],
    );
  });
});

scenario(async function cancellation_reasons_contain_items_and_causes(world) {
  await world.withTable({ purpose: "reasons" }, async (TableName) => {
    await world.put(TableName, { pk: "a", n: 1, s: "text" });
    const put = (pk) => ({ Put: { TableName, Item: { pk: { S: pk } } } });
    const guard = { ConditionExpression: "attribute_not_exists(pk)", ReturnValuesOnConditionCheckFailure: "ALL_OLD" };
    const write = (TransactItems) => world.db.send(new TransactWriteItemsCommand({ TransactItems }));
    let reasons = await cancelled(
      ["ConditionalCheckFailed", "None"],
      write([{ Put: { ...put("a").Put, ...guard } }, put("b")]),
    );
    equal(reasons[0].Item, { pk: { S: "a" }, n: { N: "1" }, s: { S: "text" } });
    equal([reasons[1].Item, reasons[1].Message], [undefined, undefined]);
    const Update = {
      TableName,
      Key: { pk: { S: "a" } },
      UpdateExpression: "ADD s :one",
      ExpressionAttributeValues: { ":one": { N: "1" } },
    };
    reasons = await cancelled(["None", "ValidationError"], write([put("b"), { Update }]));
    equal(reasons[1].Message, "An operand in the update expression has an incorrect data type");
    const both = "Transaction request cannot include multiple operations on one item";
    await fails("ValidationException", both, write([put("a"), put("a")]));
  });
});

scenario(async function transaction_with_token_is_applied_once(world) {
  await world.withTable({ purpose: "tokens" }, async (TableName) => {
    const add = (amount, ClientRequestToken) =>
      world.documents.send(
        new TransactWriteCommand({
          ClientRequestToken,
          TransactItems: [
            {
              Update: {
                TableName,
                Key: { pk: "a" },
                UpdateExpression: "ADD n :a",
                ExpressionAttributeValues: { ":a": amount },
              },
            },
          ],
        }),
      );
    const token = randomUUID();
    for (let time = 0; time < 3; time += 1) await add(5, token);
    equal((await world.get(TableName, { pk: "a" })).n, 5, "a repeated token repeats no change");
    await fails(IdempotentParameterMismatchException, "", add(6, token));
    // The SDK generates a new token for each call.
    await add(5, undefined);
    await add(5, undefined);
    equal((await world.get(TableName, { pk: "a" })).n, 15);
  });
});
