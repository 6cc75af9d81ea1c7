/** Items: round trips of values of every type and size, and return values of the item operations. */

import { GetItemCommand, PutItemCommand } from "@aws-sdk/client-dynamodb";
import {
  DeleteCommand,
  DynamoDBDocumentClient,
  GetCommand,
  NumberValue,
  PutCommand,
  UpdateCommand,
} from "@aws-sdk/lib-dynamodb";

import { equal, fails, holds, scenario } from "../harness.mjs";
import { index } from "./world.mjs";

scenario(
  async function values_of_every_type_round_trip(world) {
    const item = {
      pk: "types",
      string: "hello",
      empty: "",
      unicode: 'Grüße, 世界 🧊\u0000\t"\\ \u2028',
      "🧊": "a name",
      integer: 42,
      negative: -7,
      zero: 0,
      fraction: 3.14159,
      yes: true,
      no: false,
      nothing: null,
      list: [1, "two", [null, { three: 3 }], []],
      map: { a: { b: { c: [true] } }, empty: {} },
      strings: new Set(["green", "red"]),
      numbers: new Set([1, 2.5, -3]),
      raw: Uint8Array.from({ length: 256 }, (_, n) => n),
      none: new Uint8Array(0),
    };
    await world.withTable({ purpose: "types" }, async (name) => {
      await world.put(name, item);
      const got = await world.get(name, { pk: "types" });
      equal(plain(got), plain(item));
      holds(got.strings instanceof Set && got.raw instanceof Uint8Array, "sets and bytes have their own types");
      const bytes = [Uint8Array.of(0), Uint8Array.of(255, 254)];
      await world.put(name, { pk: "bytes", set: new Set(bytes) });
      const { set } = await world.get(name, { pk: "bytes" });
      equal([...set].map((each) => [...each]).sort(), [[0], [255, 254]]);
    });
  },
  { keys: null },
);

/** Converts sets to sorted lists and bytes to plain lists, so that they can be compared. */
function plain(value) {
  if (value instanceof Set) return { set: [...value].map(plain).sort() };
  if (value instanceof Uint8Array) return { bytes: [...value] };
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([name, each]) => [name, plain(each)])
      .sort(),
  );
}

scenario(async function numbers_keep_their_digits(world) {
  const numbers = [
    "12345678901234567890123456789012345678",
    "-0.12345678901234567890123456789012345678",
    `${"9".repeat(38)}${"0".repeat(88)}`,
    `1${"0".repeat(125)}`,
  ];
  await world.withTable({ purpose: "numbers" }, async (name) => {
    const client = world.client();
    const exact = DynamoDBDocumentClient.from(client, { unmarshallOptions: { wrapNumbers: true } });
    for (const text of numbers) {
      await exact.send(new PutCommand({ TableName: name, Item: { pk: "n", n: NumberValue.from(text) } }));
      const { Item } = await exact.send(new GetCommand({ TableName: name, Key: { pk: "n" } }));
      equal(String(Item.n.value), text);
    }
    client.destroy();
    await world.put(name, { pk: "big", n: 12345678901234567890n });
    const { Item } = await world.db.send(new GetItemCommand({ TableName: name, Key: { pk: { S: "big" } } }));
    equal(Item.n, { N: "12345678901234567890" });
    const put = (n) => world.db.send(new PutItemCommand({ TableName: name, Item: { pk: { S: "a" }, n: { N: n } } }));
    await fails("ValidationException", "Number overflow.", put("1E+126"));
    await fails("ValidationException", "Number underflow.", put("1E-131"));
    await fails(
      "ValidationException",
      "Attempting to store more than 38 significant digits in a Number",
      put("1".repeat(39)),
    );
    await fails("ValidationException", "The parameter cannot be converted to a numeric value", put("ten"));
  });
});

scenario(async function items_up_to_the_size_limit_are_accepted(world) {
  await world.withTable({ purpose: "large" }, async (name) => {
    // Names count too: two bytes of `pk`, three of `big`, four of `data`.
    const room = 400 * 1024 - 2 - 3 - 4;
    await world.put(name, { pk: "big", data: "x".repeat(room) });
    equal((await world.get(name, { pk: "big" })).data.length, room);
    await world.put(name, { pk: "big", data: new Uint8Array(room) });
    equal((await world.get(name, { pk: "big" })).data.length, room);
    const larger = world.put(name, { pk: "big", data: "x".repeat(room + 1) });
    await fails("ValidationException", "Item size has exceeded the maximum allowed size", larger);
  });
});

scenario(async function invalid_items_are_rejected(world) {
  const cases = [
    [{ pk: { S: "" } }, "The AttributeValue for a key attribute cannot contain an empty string value. Key: pk"],
    [{ sk: { S: "x" } }, "One or more parameter values were invalid: Missing the key pk in the item"],
    [{ pk: { N: "1" } }, "One or more parameter values were invalid: Type mismatch for key pk expected: S actual: N"],
    [{ pk: { S: "a" }, s: { SS: ["x", "x"] } }, "contains duplicates"],
  ];
  await world.withTable({ purpose: "wrong" }, async (name) => {
    for (const [Item, message] of cases) {
      await fails("ValidationException", message, world.db.send(new PutItemCommand({ TableName: name, Item })));
    }
    const get = new GetCommand({ TableName: name, Key: { pk: "a", more: "b" } });
    await fails("ValidationException", "The provided key element does not match the schema", world.documents.send(get));
    equal(await world.allItems(name), [], "nothing is stored");
  });
});

scenario(async function writes_return_the_requested_values(world) {
  await world.withTable({ purpose: "returns" }, async (TableName) => {
    const send = (Command, input) => world.documents.send(new Command({ TableName, ...input }));
    equal((await send(PutCommand, { Item: { pk: "a", n: 1 }, ReturnValues: "ALL_OLD" })).Attributes, undefined);
    const old = await send(PutCommand, { Item: { pk: "a", n: 2, m: 0 }, ReturnValues: "ALL_OLD" });
    equal(old.Attributes, { pk: "a", n: 1 });
    const cases = [
      ["ALL_OLD", { pk: "a", n: 2, m: 0 }],
      ["UPDATED_OLD", { n: 3 }],
      ["UPDATED_NEW", { n: 5 }],
      ["ALL_NEW", { pk: "a", n: 6, m: 0 }],
      ["NONE", undefined],
    ];
    for (const [ReturnValues, expected] of cases) {
      const result = await send(UpdateCommand, {
        Key: { pk: "a" },
        UpdateExpression: "SET n = n + :one",
        ExpressionAttributeValues: { ":one": 1 },
        ReturnValues,
      });
      equal(result.Attributes, expected, ReturnValues);
    }
    const deleted = await send(DeleteCommand, { Key: { pk: "a" }, ReturnValues: "ALL_OLD" });
    equal(deleted.Attributes, { pk: "a", n: 7, m: 0 });
    equal((await send(GetCommand, { Key: { pk: "a" } })).Item, undefined);
  });
});

scenario(async function consumed_capacity_is_returned(world) {
  const settings = { purpose: "capacity", attributes: "g:S", GlobalSecondaryIndexes: [index("by-g", "g")] };
  await world.withTable(settings, async (TableName) => {
    const send = async (Command, input) =>
      (await world.documents.send(new Command({ TableName, ...input }))).ConsumedCapacity;
    const Item = { pk: "a", g: "x", data: "x".repeat(5000) };
    const put = await send(PutCommand, { Item, ReturnConsumedCapacity: "INDEXES" });
    equal([put.CapacityUnits, put.Table.CapacityUnits, put.GlobalSecondaryIndexes["by-g"].CapacityUnits], [10, 5, 5]);
    const get = { Key: { pk: "a" }, ReturnConsumedCapacity: "TOTAL" };
    equal(await send(GetCommand, get), { TableName, CapacityUnits: 1 });
    equal(await send(GetCommand, { ...get, ConsistentRead: true }), { TableName, CapacityUnits: 2 });
    equal(await send(GetCommand, { Key: { pk: "a" } }), undefined, "capacity is only returned on request");
  });
});
