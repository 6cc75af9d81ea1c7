/** Queries and scans: key conditions, filters, pages, segments. */

import { QueryCommand, ScanCommand, paginateQuery, paginateScan } from "@aws-sdk/lib-dynamodb";

import { equal, fails, holds, scenario } from "../harness.mjs";
import { collect, index, used } from "./world.mjs";

scenario(async function key_conditions_of_every_form_select_items(world) {
  const cases = [
    ["pk = :a", [1, 2, 3, 10, 20]],
    ["pk = :a AND sk = :three", [3]],
    ["pk = :a AND sk < :three", [1, 2]],
    ["pk = :a AND sk <= :three", [1, 2, 3]],
    ["pk = :a AND sk > :three", [10, 20]],
    ["pk = :a AND sk >= :three", [3, 10, 20]],
    ["pk = :a AND sk BETWEEN :two AND :ten", [2, 3, 10]],
    ["pk = :none", []],
  ];
  const values = { ":a": "a", ":two": 2, ":three": 3, ":ten": 10, ":none": "none" };
  await world.withTable({ purpose: "conditions", keys: "pk:S sk:N" }, async (TableName) => {
    for (const sk of [20, 3, 1, 10, 2]) await world.put(TableName, { pk: "a", sk }, { pk: "b", sk });
    for (const [KeyConditionExpression, expected] of cases) {
      const input = { TableName, KeyConditionExpression, ...used(KeyConditionExpression, {}, values) };
      const found = await world.documents.send(new QueryCommand(input));
      equal(
        found.Items.map((item) => item.sk),
        expected,
        KeyConditionExpression,
      );
      const backward = await world.documents.send(new QueryCommand({ ...input, ScanIndexForward: false }));
      equal(
        backward.Items.map((item) => item.sk),
        expected.toReversed(),
        KeyConditionExpression,
      );
    }
    const wrong = (KeyConditionExpression) =>
      world.documents.send(
        new QueryCommand({
          TableName,
          KeyConditionExpression,
          ...used(KeyConditionExpression, {}, values),
        }),
      );
    await fails("ValidationException", "Query condition missed key schema element: pk", wrong("sk = :two"));
    await fails("ValidationException", "Query key condition not supported", wrong("pk > :a"));
  });
});

scenario(async function sort_keys_are_found_by_prefix(world) {
  await world.withTable({ purpose: "beginning", keys: "pk:S sk:S" }, async (TableName) => {
    const sorts = ["2024-01-31", "2024-02-01", "2024-02-29", "2024-03-01", "é", "éa"];
    for (const sk of sorts) await world.put(TableName, { pk: "a", sk });
    for (const [beginning, expected] of [
      ["2024-02", sorts.slice(1, 3)],
      ["é", sorts.slice(4)],
      ["x", []],
    ]) {
      const found = await world.documents.send(
        new QueryCommand({
          TableName,
          KeyConditionExpression: "pk = :a AND begins_with(sk, :b)",
          ExpressionAttributeValues: { ":a": "a", ":b": beginning },
        }),
      );
      equal(
        found.Items.map((item) => item.sk),
        expected,
        beginning,
      );
    }
  });
});

scenario(async function filters_exclude_items(world) {
  await world.withTable({ purpose: "filters", keys: "pk:S sk:N" }, async (TableName) => {
    for (let sk = 0; sk < 12; sk += 1)
      await world.put(TableName, { pk: "a", sk, even: sk % 2 === 0, tag: `t${sk % 3}` });
    const filter = { FilterExpression: "even = :e AND tag <> :t" };
    const values = { ":e": true, ":t": "t0" };
    const scanned = await world.documents.send(
      new ScanCommand({ TableName, ...filter, ExpressionAttributeValues: values }),
    );
    equal([scanned.Count, scanned.ScannedCount, scanned.Items.length], [4, 12, 4]);
    const found = await world.documents.send(
      new QueryCommand({
        TableName,
        ...filter,
        KeyConditionExpression: "pk = :a",
        Select: "COUNT",
        ExpressionAttributeValues: { ...values, ":a": "a" },
      }),
    );
    equal([found.Count, found.ScannedCount, found.Items], [4, 12, undefined]);
  });
});

scenario(async function queries_and_scans_are_paged(world) {
  const numbers = Array.from({ length: 50 }, (_, n) => n);
  await world.withTable({ purpose: "pages", keys: "pk:S sk:N" }, async (TableName) => {
    for (const sk of numbers) await world.put(TableName, { pk: `p${sk % 2}`, sk });
    const query = {
      TableName,
      KeyConditionExpression: "pk = :p",
      ExpressionAttributeValues: { ":p": "p0" },
    };
    for (const pageSize of [1, 7, 100]) {
      const pages = await collect(paginateQuery({ client: world.documents, pageSize }, { ...query }));
      const found = pages.flatMap((page) => page.Items.map((item) => item.sk));
      equal(
        found,
        numbers.filter((n) => n % 2 === 0),
        `page size ${pageSize}`,
      );
      holds(
        pages.every((page) => page.Count <= pageSize),
        `no page has more than ${pageSize} items`,
      );
      const scanned = await collect(paginateScan({ client: world.documents, pageSize }, { TableName }));
      const all = scanned.flatMap((page) => page.Items.map((item) => item.sk));
      equal(
        all.sort((one, other) => one - other),
        numbers,
        `page size ${pageSize}`,
      );
    }
    const page = await world.documents.send(new QueryCommand({ ...query, Limit: 3 }));
    equal(page.LastEvaluatedKey, { pk: "p0", sk: 4 });
    const next = await world.documents.send(new QueryCommand({ ...query, ExclusiveStartKey: page.LastEvaluatedKey }));
    equal([next.Items[0].sk, next.LastEvaluatedKey], [6, undefined]);
  });
});

scenario(async function scan_segments_cover_the_table(world) {
  await world.withTable({ purpose: "segments" }, async (TableName) => {
    for (let n = 0; n < 100; n += 1) await world.put(TableName, { pk: `item-${n}` });
    const TotalSegments = 4;
    const segments = await Promise.all(
      Array.from({ length: TotalSegments }, async (_, Segment) => {
        const input = { TableName, Segment, TotalSegments };
        const pages = await collect(paginateScan({ client: world.documents, pageSize: 9 }, input));
        return pages.flatMap((page) => page.Items.map((item) => item.pk));
      }),
    );
    equal([segments.flat().length, new Set(segments.flat()).size], [100, 100], "each item is in one segment");
    holds(
      segments.every((segment) => segment.length < 100),
      "no segment contains all items",
    );
  });
});

scenario(async function pages_are_limited_to_one_megabyte(world) {
  await world.withTable({ purpose: "megabyte", keys: "pk:S sk:N" }, async (TableName) => {
    const data = "x".repeat(100_000);
    for (let sk = 0; sk < 25; sk += 1) await world.put(TableName, { pk: "a", sk, data });
    const pages = await collect(
      paginateQuery(
        { client: world.documents },
        {
          TableName,
          KeyConditionExpression: "pk = :a",
          ExpressionAttributeValues: { ":a": "a" },
        },
      ),
    );
    equal(pages.length, 3);
    equal(
      pages.flatMap((page) => page.Items.map((item) => item.sk)),
      Array.from({ length: 25 }, (_, n) => n),
    );
  });
});

scenario(async function indexes_are_queried_and_paged(world) {
  const settings = {
    purpose: "ranking",
    keys: "pk:S sk:N",
    attributes: "team:S points:N",
    GlobalSecondaryIndexes: [index("ranking", "team points")],
  };
  await world.withTable(settings, async (TableName) => {
    for (let sk = 0; sk < 20; sk += 1)
      await world.put(TableName, { pk: "game", sk, team: `t${sk % 2}`, points: sk >> 2 });
    await world.put(TableName, { pk: "game", sk: 99 });
    const ranking = {
      TableName,
      IndexName: "ranking",
      KeyConditionExpression: "team = :t",
      ExpressionAttributeValues: { ":t": "t1" },
    };
    const pages = await collect(paginateQuery({ client: world.documents, pageSize: 3 }, { ...ranking }));
    const items = pages.flatMap((page) => page.Items);
    equal(
      items.map((item) => item.points),
      [0, 0, 1, 1, 2, 2, 3, 3, 4, 4],
    );
    equal(new Set(items.map((item) => item.sk)).size, 10, "each once, although points repeat");
    equal(Object.keys(pages[0].LastEvaluatedKey).sort(), ["pk", "points", "sk", "team"]);
    const scanned = await world.documents.send(new ScanCommand({ TableName, IndexName: "ranking", Select: "COUNT" }));
    equal(scanned.Count, 20, "an item without the index keys is not in the index");
    const consistent = world.documents.send(new QueryCommand({ ...ranking, ConsistentRead: true }));
    await fails("ValidationException", "Consistent reads are not supported on global secondary indexes", consistent);
  });
});
