/** Helpers of the scenarios: both client APIs, and temporary tables. */

import {
  CreateTableCommand,
  DeleteTableCommand,
  DescribeTableCommand,
  DynamoDBClient,
  waitUntilTableExists,
} from "@aws-sdk/client-dynamodb";
import { DynamoDBStreamsClient } from "@aws-sdk/client-dynamodb-streams";
import { DynamoDBDocumentClient, GetCommand, PutCommand, paginateScan } from "@aws-sdk/lib-dynamodb";

/** A server, used with the SDK. */
export class World {
  #numbers = 0;

  constructor(endpoint) {
    this.endpoint = endpoint;
    this.region = process.env.AWS_REGION;
    this.db = this.client();
    this.streams = new DynamoDBStreamsClient({ endpoint });
    this.documents = DynamoDBDocumentClient.from(this.db);
  }

  /** Creates a client with its own settings, such as other keys. */
  client(settings = {}) {
    return new DynamoDBClient({ endpoint: this.endpoint, ...settings });
  }

  close() {
    this.db.destroy();
    this.streams.destroy();
  }

  /** Returns a unique table name. */
  name(purpose) {
    this.#numbers += 1;
    return `javascript.${purpose}-${this.#numbers}`;
  }

  /** Creates a table for the duration of a function. Keys are written `name:TYPE name:TYPE`. */
  async withTable({ purpose = "items", keys = "pk:S", attributes = "", ...settings }, use) {
    const name = this.name(purpose);
    await this.create(name, keys, attributes, settings);
    try {
      return await use(name);
    } finally {
      await this.db.send(new DeleteTableCommand({ TableName: name }));
    }
  }

  /** Creates a table and waits for it. `attributes` are the keys of indexes. */
  async create(name, keys = "pk:S", attributes = "", settings = {}) {
    const definitions = `${keys} ${attributes}`
      .trim()
      .split(" ")
      .map((each) => each.split(":"));
    const billing = settings.ProvisionedThroughput ? {} : { BillingMode: "PAY_PER_REQUEST" };
    const created = await this.db.send(
      new CreateTableCommand({
        TableName: name,
        KeySchema: keySchema(...keys.split(" ").map((each) => each.split(":")[0])),
        AttributeDefinitions: definitions.map(([AttributeName, AttributeType]) => ({ AttributeName, AttributeType })),
        ...billing,
        ...settings,
      }),
    );
    await waitUntilTableExists({ client: this.db, maxWaitTime: 60, minDelay: 1, maxDelay: 1 }, { TableName: name });
    return created.TableDescription;
  }

  async describe(name) {
    return (await this.db.send(new DescribeTableCommand({ TableName: name }))).Table;
  }

  /** Puts items of JavaScript values. */
  async put(table, ...items) {
    for (const Item of items) await this.documents.send(new PutCommand({ TableName: table, Item }));
  }

  /** Returns an item of JavaScript values, or undefined. */
  async get(table, Key) {
    return (await this.documents.send(new GetCommand({ TableName: table, Key, ConsistentRead: true }))).Item;
  }

  async allItems(table) {
    const pages = paginateScan({ client: this.documents }, { TableName: table });
    return (await collect(pages)).flatMap((page) => page.Items);
  }
}

/** Returns all pages of a paginator. */
export async function collect(pages) {
  const found = [];
  for await (const page of pages) found.push(page);
  return found;
}

/** The key schema of a table or an index. */
export function keySchema(partition, sort) {
  const schema = [{ AttributeName: partition, KeyType: "HASH" }];
  return sort ? [...schema, { AttributeName: sort, KeyType: "RANGE" }] : schema;
}

/** A secondary index. */
export function index(name, keys, projection = { ProjectionType: "ALL" }) {
  return { IndexName: name, KeySchema: keySchema(...keys.split(" ")), Projection: projection };
}

/** Returns the placeholders that an expression uses: unused ones are rejected. */
export function used(text, names, values) {
  const found = new Set(text.match(/[#:]\w+/g));
  const pick = (from) => Object.fromEntries(Object.entries(from).filter(([name]) => found.has(name)));
  const [chosenNames, chosenValues] = [pick(names), pick(values)];
  return {
    ...(Object.keys(chosenNames).length > 0 && { ExpressionAttributeNames: chosenNames }),
    ...(Object.keys(chosenValues).length > 0 && { ExpressionAttributeValues: chosenValues }),
  };
}
