/** Tables: life cycle, indexes, settings, tags, expiry and limits. */

import {
  DeleteTableCommand,
  DescribeEndpointsCommand,
  DescribeLimitsCommand,
  DescribeTimeToLiveCommand,
  GetItemCommand,
  ListTablesCommand,
  ListTagsOfResourceCommand,
  ResourceInUseException,
  ResourceNotFoundException,
  TagResourceCommand,
  UntagResourceCommand,
  UpdateTableCommand,
  UpdateTimeToLiveCommand,
  paginateListTables,
  waitUntilTableNotExists,
} from "@aws-sdk/client-dynamodb";
import { QueryCommand } from "@aws-sdk/lib-dynamodb";

import { contains, equal, eventually, fails, holds, scenario } from "../harness.mjs";
import { collect, index, keySchema } from "./world.mjs";

const PROVISIONED = { ReadCapacityUnits: 5, WriteCapacityUnits: 3 };

scenario(
  async function table_is_created_described_and_deleted(world) {
    const name = world.name("life");
    const created = await world.create(name, "pk:S sk:N", "", { ProvisionedThroughput: PROVISIONED });
    holds(["CREATING", "ACTIVE"].includes(created.TableStatus), "a new table is creating or active");
    const described = await world.describe(name);
    contains(described, { TableName: name, TableStatus: "ACTIVE", ItemCount: 0, KeySchema: keySchema("pk", "sk") });
    contains(described.ProvisionedThroughput, { ...PROVISIONED, NumberOfDecreasesToday: 0 });
    holds(described.CreationDateTime instanceof Date, "the creation time is a date");
    holds(Math.abs(Date.now() - described.CreationDateTime) < 300_000, "the creation time is recent");
    holds(
      new RegExp(`^arn:aws:dynamodb:${world.region}:\\d{12}:table/${name}$`).test(described.TableArn),
      "the ARN is valid",
    );

    await fails(ResourceInUseException, `Table already exists: ${name}`, world.create(name));
    const deleted = await world.db.send(new DeleteTableCommand({ TableName: name }));
    contains(deleted.TableDescription, { TableName: name, TableStatus: "DELETING" });
    const gone = await waitUntilTableNotExists({ client: world.db, maxWaitTime: 60 }, { TableName: name });
    equal(gone.state, "SUCCESS");
    await fails(
      ResourceNotFoundException,
      `Requested resource not found: Table: ${name} not found`,
      world.describe(name),
    );
    const get = new GetItemCommand({ TableName: name, Key: { pk: { S: "a" } } });
    await fails(ResourceNotFoundException, "Requested resource not found", world.db.send(get));
  },
  { keys: null },
);

scenario(async function indexes_are_created_with_the_table(world) {
  const settings = {
    purpose: "indexes",
    keys: "pk:S sk:S",
    attributes: "author:S pages:N",
    GlobalSecondaryIndexes: [index("by-author", "author", { ProjectionType: "INCLUDE", NonKeyAttributes: ["title"] })],
    LocalSecondaryIndexes: [index("by-pages", "pk pages", { ProjectionType: "KEYS_ONLY" })],
  };
  await world.withTable(settings, async (TableName) => {
    const described = await world.describe(TableName);
    const [byAuthor] = described.GlobalSecondaryIndexes;
    contains(byAuthor, { IndexStatus: "ACTIVE", IndexArn: `${described.TableArn}/index/by-author` });
    equal(byAuthor.Projection, { ProjectionType: "INCLUDE", NonKeyAttributes: ["title"] });
    const book = { pk: "shelf", sk: "1", author: "Lem", pages: 204, title: "Solaris", isbn: "x" };
    await world.put(TableName, book, { pk: "shelf", sk: "2", pages: 100 });
    const query = async (input) => (await world.documents.send(new QueryCommand({ TableName, ...input }))).Items;
    const { isbn, pages, ...projected } = book;
    equal(
      await query({
        IndexName: "by-author",
        KeyConditionExpression: "author = :a",
        ExpressionAttributeValues: { ":a": "Lem" },
      }),
      [projected],
    );
    equal(
      await query({
        IndexName: "by-pages",
        KeyConditionExpression: "pk = :p AND pages < :n",
        ConsistentRead: true,
        ExpressionAttributeValues: { ":p": "shelf", ":n": pages },
      }),
      [{ pk: "shelf", sk: "2", pages: 100 }],
    );
    holds(isbn, "no index projects this attribute");
  });
});

scenario(async function table_is_updated(world) {
  await world.withTable({ purpose: "update", ProvisionedThroughput: PROVISIONED }, async (TableName) => {
    for (let n = 0; n < 6; n += 1) await world.put(TableName, { pk: `${n}`, group: `g${n % 2}` });
    const update = (changes) => world.db.send(new UpdateTableCommand({ TableName, ...changes }));
    await update({
      AttributeDefinitions: [{ AttributeName: "group", AttributeType: "S" }],
      GlobalSecondaryIndexUpdates: [{ Create: { ...index("by-group", "group"), ProvisionedThroughput: PROVISIONED } }],
    });
    const status = async () => (await world.describe(TableName)).GlobalSecondaryIndexes?.[0]?.IndexStatus;
    await eventually(async () => (await status()) === "ACTIVE", "the index is active");
    const found = await world.documents.send(
      new QueryCommand({
        TableName,
        IndexName: "by-group",
        KeyConditionExpression: "#g = :g",
        Select: "COUNT",
        ExpressionAttributeNames: { "#g": "group" },
        ExpressionAttributeValues: { ":g": "g1" },
      }),
    );
    equal(found.Count, 3, "a new index is filled with the existing items");
    await update({ GlobalSecondaryIndexUpdates: [{ Delete: { IndexName: "by-group" } }] });
    await eventually(async () => (await status()) === undefined, "the index is deleted");
    await update({ BillingMode: "PAY_PER_REQUEST" });
    equal((await world.describe(TableName)).BillingModeSummary.BillingMode, "PAY_PER_REQUEST");
    await update({ DeletionProtectionEnabled: true });
    const refused = world.db.send(new DeleteTableCommand({ TableName }));
    await fails("ValidationException", "Resource cannot be deleted as it is currently protected", refused);
    await update({ DeletionProtectionEnabled: false });
    await fails("ValidationException", "At least one of ProvisionedThroughput", update({}));
  });
});

scenario(async function tables_are_listed_in_pages(world) {
  const names = Array.from({ length: 7 }, () => world.name("list")).sort();
  for (const name of names) await world.create(name);
  const pages = await collect(paginateListTables({ client: world.db, pageSize: 2 }, {}));
  holds(pages.length >= 4, `seven tables need more than three pages of two: ${pages.length}`);
  const listed = pages.flatMap((page) => page.TableNames);
  equal(
    listed.filter((name) => names.includes(name)),
    names,
    "each table is listed once, in order",
  );
  const page = await world.db.send(new ListTablesCommand({ ExclusiveStartTableName: names[1], Limit: 3 }));
  equal([page.TableNames, page.LastEvaluatedTableName], [names.slice(2, 5), names[4]]);
  for (const TableName of names) await world.db.send(new DeleteTableCommand({ TableName }));
});

scenario(async function tables_have_tags(world) {
  await world.withTable({ purpose: "tags", Tags: [{ Key: "team", Value: "ice" }] }, async (name) => {
    const ResourceArn = (await world.describe(name)).TableArn;
    const tags = async () => {
      const result = await world.db.send(new ListTagsOfResourceCommand({ ResourceArn }));
      return Object.fromEntries(result.Tags.map(({ Key, Value }) => [Key, Value]));
    };
    equal(await tags(), { team: "ice" });
    const Tags = [
      { Key: "team", Value: "snow" },
      { Key: "größe", Value: "" },
    ];
    await world.db.send(new TagResourceCommand({ ResourceArn, Tags }));
    equal(await tags(), { team: "snow", größe: "" });
    await world.db.send(new UntagResourceCommand({ ResourceArn, TagKeys: ["team"] }));
    equal(await tags(), { größe: "" });
  });
});

scenario(async function items_expire(world) {
  await world.withTable({ purpose: "expiry" }, async (TableName) => {
    const describe = async () => {
      const result = await world.db.send(new DescribeTimeToLiveCommand({ TableName }));
      return result.TimeToLiveDescription;
    };
    equal((await describe()).TimeToLiveStatus, "DISABLED");
    const TimeToLiveSpecification = { Enabled: true, AttributeName: "until" };
    const enable = () => world.db.send(new UpdateTimeToLiveCommand({ TableName, TimeToLiveSpecification }));
    equal((await enable()).TimeToLiveSpecification, TimeToLiveSpecification);
    await eventually(async () => (await describe()).TimeToLiveStatus === "ENABLED", "expiry is enabled");
    await fails("ValidationException", "TimeToLive is already enabled", enable());
    const now = Math.floor(Date.now() / 1000);
    await world.put(TableName, { pk: "late", until: now + 3600 }, { pk: "expired", until: now - 60 }, { pk: "never" });
    await eventually(async () => !(await world.get(TableName, { pk: "expired" })), "the expired item is removed");
    equal((await world.allItems(TableName)).map((item) => item.pk).sort(), ["late", "never"]);
  });
});

scenario(async function limits_and_endpoints_are_returned(world) {
  const limits = await world.db.send(new DescribeLimitsCommand({}));
  holds(limits.TableMaxReadCapacityUnits >= 40_000, "the limit is high");
  const { Endpoints } = await world.db.send(new DescribeEndpointsCommand({}));
  equal(
    Endpoints.map((endpoint) => endpoint.CachePeriodInMinutes),
    [1440],
  );
});
