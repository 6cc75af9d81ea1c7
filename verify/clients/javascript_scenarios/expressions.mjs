/** Expressions of every form: conditions, updates, projections, and placeholders. */

import { ConditionalCheckFailedException, PutItemCommand } from "@aws-sdk/client-dynamodb";
import {
  BatchGetCommand,
  DeleteCommand,
  GetCommand,
  PutCommand,
  ScanCommand,
  UpdateCommand,
} from "@aws-sdk/lib-dynamodb";

import { equal, fails, holds, scenario } from "../harness.mjs";
import { used } from "./world.mjs";

const CONDITION_FAILED = "The conditional request failed";

const ITEM = {
  pk: "a",
  s: "hello",
  n: 10,
  flag: true,
  nothing: null,
  status: "open",
  b: Uint8Array.of(1, 2, 3),
  list: [1, "two", { three: 3 }],
  map: { inner: { deep: [5, 6] } },
  strings: new Set(["green", "red"]),
};

const NAMES = { "#status": "status", "#list": "list", "#map": "map", "#inner": "inner" };

scenario(async function conditions_of_every_form_are_evaluated(world) {
  const values = {
    ":hello": "hello",
    ":ten": 10,
    ":nine": 9,
    ":eleven": 11,
    ":hell": "hell",
    ":red": "red",
    ":two": 2,
    ":five": 5,
    ":list": "L",
    ":true": true,
    ":null": null,
    ":x": "x",
    ":three": 3,
    ":map": { three: 3 },
    ":set": new Set(["red", "green"]),
    ":bytes": Uint8Array.of(1, 2),
  };
  const hold = [
    "s = :hello",
    "n <> :nine",
    "n > :nine",
    "n >= :ten",
    "n < :eleven",
    "n <= :ten",
    "n BETWEEN :nine AND :eleven",
    "s IN (:x, :hello)",
    "flag = :true",
    "nothing = :null",
    "strings = :set",
    "#list[2] = :map",
    "attribute_exists(s)",
    "attribute_not_exists(absent)",
    "attribute_exists(#map.#inner.deep[1])",
    "attribute_type(#list, :list)",
    "begins_with(s, :hell)",
    "begins_with(b, :bytes)",
    "contains(s, :hell)",
    "contains(strings, :red)",
    "size(s) = :five",
    "size(#list) = :three",
    "s = :hello AND n = :ten",
    "s = :x OR n = :ten",
    "NOT s = :x",
    "NOT (s = :x OR n = :nine)",
    "s = :x AND n = :nine OR flag = :true",
    "#status <> :x",
    "#map.#inner.deep[0] = :five",
  ];
  const fail = [
    "s = :x",
    "n = :hello",
    "n < :ten",
    "attribute_exists(absent)",
    "attribute_not_exists(s)",
    "begins_with(s, :x)",
    "contains(strings, :x)",
    "size(s) > :five",
    "absent = :x",
    "s = :hello AND n = :nine",
    "NOT s = :hello",
    "attribute_type(s, :list)",
    "s IN (:x)",
    "#list[9] = :five",
  ];
  await world.withTable({ purpose: "conditions" }, async (TableName) => {
    await world.put(TableName, ITEM);
    const put = (ConditionExpression) =>
      world.documents.send(
        new PutCommand({
          TableName,
          Item: ITEM,
          ConditionExpression,
          ...used(ConditionExpression, NAMES, values),
        }),
      );
    for (const condition of hold) holds(await put(condition), condition);
    for (const condition of fail) await fails(ConditionalCheckFailedException, CONDITION_FAILED, put(condition));
  });
});

scenario(async function failed_condition_returns_the_item(world) {
  await world.withTable({ purpose: "shown" }, async (TableName) => {
    await world.put(TableName, { pk: "a", n: 1 });
    const guard = { TableName, ConditionExpression: "attribute_not_exists(pk)" };
    const shown = { ...guard, ReturnValuesOnConditionCheckFailure: "ALL_OLD" };
    let error = await fails(
      ConditionalCheckFailedException,
      CONDITION_FAILED,
      world.db.send(new PutItemCommand({ Item: { pk: { S: "a" } }, ...shown })),
    );
    equal(error.Item, { pk: { S: "a" }, n: { N: "1" } });
    const Key = { pk: "a" };
    error = await fails(
      ConditionalCheckFailedException,
      CONDITION_FAILED,
      world.documents.send(new DeleteCommand({ Key, ...shown })),
    );
    holds(error.Item, "the item is returned");
    error = await fails(
      ConditionalCheckFailedException,
      CONDITION_FAILED,
      world.documents.send(new DeleteCommand({ Key, ...guard })),
    );
    equal(error.Item, undefined, "the item is only returned on request");
  });
});

scenario(async function updates_of_every_form_are_applied(world) {
  const start = { n: 10, list: [1, 2, 3], map: { a: 1, b: { c: 2 } }, strings: new Set(["green", "red"]) };
  // The expression, and the changed attributes; undefined means removed.
  const cases = [
    ["SET x = :one", { x: 1 }],
    ["SET n = n + :one", { n: 11 }],
    ["SET n = :one - n", { n: -9 }],
    ["SET x = if_not_exists(x, :zero) + :one", { x: 1 }],
    ["SET #list = list_append(#list, :list)", { list: [1, 2, 3, 8, 9] }],
    ["SET #list = list_append(:list, #list)", { list: [8, 9, 1, 2, 3] }],
    ["SET #list[1] = :text", { list: [1, "text", 3] }],
    ["SET #list[7] = :text", { list: [1, 2, 3, "text"] }],
    ["SET #map.a = #map.b.c, #map.b.d = :one", { map: { a: 2, b: { c: 2, d: 1 } } }],
    ["REMOVE n, absent", { n: undefined }],
    ["REMOVE #list[0], #list[2]", { list: [2] }],
    ["REMOVE #map.b.c", { map: { a: 1, b: {} } }],
    ["ADD n :five", { n: 15 }],
    ["ADD x :five", { x: 5 }],
    ["ADD strings :blue", { strings: new Set(["blue", "green", "red"]) }],
    ["DELETE strings :red", { strings: new Set(["green"]) }],
    ["DELETE strings :both", { strings: undefined }],
    [
      "SET x = :one REMOVE n ADD y :five DELETE strings :red",
      { x: 1, n: undefined, y: 5, strings: new Set(["green"]) },
    ],
  ];
  const values = {
    ":one": 1,
    ":zero": 0,
    ":five": 5,
    ":list": [8, 9],
    ":text": "text",
    ":blue": new Set(["blue"]),
    ":red": new Set(["red"]),
    ":both": new Set(["red", "green"]),
  };
  await world.withTable({ purpose: "updates" }, async (TableName) => {
    for (const [UpdateExpression, changes] of cases) {
      await world.put(TableName, { pk: "a", ...start });
      const result = await world.documents.send(
        new UpdateCommand({
          TableName,
          Key: { pk: "a" },
          UpdateExpression,
          ReturnValues: "ALL_NEW",
          ...used(UpdateExpression, NAMES, values),
        }),
      );
      const merged = Object.entries({ pk: "a", ...start, ...changes });
      const expected = Object.fromEntries(merged.filter(([, value]) => value !== undefined));
      equal(result.Attributes, expected, UpdateExpression);
      equal(await world.get(TableName, { pk: "a" }), expected, UpdateExpression);
    }
  });
});

scenario(async function projections_of_every_form_are_applied(world) {
  const cases = [
    ["s, n", { s: "hello", n: 10 }],
    ["#map.#inner.deep[1]", { map: { inner: { deep: [6] } } }],
    ["#list[2].three, #list[0]", { list: [1, { three: 3 }] }],
    ["#status, absent", { status: "open" }],
  ];
  await world.withTable({ purpose: "projections" }, async (TableName) => {
    await world.put(TableName, ITEM);
    for (const [ProjectionExpression, expected] of cases) {
      const projection = { ProjectionExpression, ...used(ProjectionExpression, NAMES, {}) };
      const got = await world.documents.send(new GetCommand({ TableName, Key: { pk: "a" }, ...projection }));
      equal(got.Item, expected, ProjectionExpression);
      const scanned = await world.documents.send(new ScanCommand({ TableName, ...projection }));
      equal(scanned.Items, [expected], ProjectionExpression);
      const RequestItems = { [TableName]: { Keys: [{ pk: "a" }], ...projection } };
      const batch = await world.documents.send(new BatchGetCommand({ RequestItems }));
      equal(batch.Responses[TableName], [expected], ProjectionExpression);
    }
  });
});

scenario(async function invalid_expressions_are_rejected(world) {
  const condition = "Invalid ConditionExpression: ";
  const cases = [
    [
      { ConditionExpression: "status = s" },
      `${condition}Attribute name is a reserved keyword; reserved keyword: status`,
    ],
    [{ ConditionExpression: "n =" }, `${condition}Syntax error; token: "<EOF>", near: "="`],
    [{ ConditionExpression: "n = :x" }, `${condition}An expression attribute value used in expression is not defined`],
    [
      { ConditionExpression: "#x = n" },
      `${condition}An expression attribute name used in the document path is not defined`,
    ],
    [{ ConditionExpression: "nope(n)" }, `${condition}Invalid function name; function: nope`],
    [
      { ConditionExpression: "n <> s", ExpressionAttributeValues: { ":x": 1 } },
      "Value provided in ExpressionAttributeValues unused in expressions: keys: {:x}",
    ],
    [{ UpdateExpression: "SET n = s, n = s" }, "Two document paths overlap with each other"],
    [{ UpdateExpression: "SET pk = s" }, "Cannot update attribute pk. This attribute is part of the key"],
    [
      { UpdateExpression: "SET n = absent" },
      "The provided expression refers to an attribute that does not exist in the item",
    ],
    [
      { UpdateExpression: "SET absent.deeper = n" },
      "The document path provided in the update expression is invalid for update",
    ],
    [{ UpdateExpression: "SET n = n + s" }, "An operand in the update expression has an incorrect data type"],
  ];
  await world.withTable({ purpose: "refused" }, async (TableName) => {
    await world.put(TableName, { pk: "a", s: "text", n: 1 });
    for (const [input, message] of cases) {
      const update = new UpdateCommand({ TableName, Key: { pk: "a" }, ...input });
      await fails("ValidationException", message, world.documents.send(update));
    }
    equal(await world.get(TableName, { pk: "a" }), { pk: "a", s: "text", n: 1 }, "nothing is changed");
  });
});
