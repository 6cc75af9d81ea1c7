/** What the scenarios work with: clients of both levels, and tables that are gone afterwards. */

import {
  CreateTableCommand,
  DeleteTableCommand,
  DescribeTableCommand,
  DynamoDBClient,
  waitUntilTableExists,
} from "@aws-sdk/client-dynamodb";
import { DynamoDBStreamsClient } from "@aws-sdk/client-dynamodb-streams";
import { DynamoDBDocumentClient, GetCommand, PutCommand, paginateScan } from "@aws-sdk/lib-dynamodb";

/** The server as a user of the SDK sees it. */
export class World {
  #numbers = 0;

  constructor(endpoint) {
    this.endpoint = endpoint;
    this.region = process.env.AWS_REGION;
    this.db = this.client();
    this.streams = new DynamoDBStreamsClient({ endpoint });
    this.documents = DynamoDBDocumentClient.from(this.db);
  }

  /** A client with settings of its own, such as other keys. */
  client(settings = {}) {
    return new DynamoDBClient({ endpoint: this.endpoint, ...settings });
  }

  close() {
    this.db.destroy();
    this.streams.destroy();
  }

  /** A name that no other table has. */
  name(purpose) {
    this.#numbers += 1;
    return `javascript.${purpose}-${this.#numbers}`;
  }

  /** A new table for the time of a function. Keys are written `name:TYPE name:TYPE`. */
  async withTable({ purpose = "items", keys = "pk:S", attributes = "", ...settings }, use) {
    const name = this.name(purpose);
    await this.create(name, keys, attributes, settings);
    try {
      return await use(name);
    } finally {
      await this.db.send(new DeleteTableCommand({ TableName: name }));
    }
  }

  /** Creates a table and waits for it. Further attributes are those of the keys of indexes. */
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

  /** Puts items that are written as JavaScript has them. */
  async put(table, ...items) {
    for (const Item of items) await this.documents.send(new PutCommand({ TableName: table, Item }));
  }

  /** An item as JavaScript has it, or undefined. */
  async get(table, Key) {
    return (await this.documents.send(new GetCommand({ TableName: table, Key, ConsistentRead: true }))).Item;
  }

  async allItems(table) {
    const pages = paginateScan({ client: this.documents }, { TableName: table });
    return (await collect(pages)).flatMap((page) => page.Items);
  }
}

/** All pages that a paginator gives. */
export async function collect(pages) {
  const found = [];
  for await (const page of pages) found.push(page);
  return found;
}

/** The keys of a table or an index. */
export function keySchema(partition, sort) {
  const schema = [{ AttributeName: partition, KeyType: "HASH" }];
  return sort ? [...schema, { AttributeName: sort, KeyType: "RANGE" }] : schema;
}

/** A secondary index. */
export function index(name, keys, projection = { ProjectionType: "ALL" }) {
  return { IndexName: name, KeySchema: keySchema(...keys.split(" ")), Projection: projection };
}

/** The placeholders that an expression uses: others are refused. */
export function used(text, names, values) {
  const found = new Set(text.match(/[#:]\w+/g));
  const pick = (from) => Object.fromEntries(Object.entries(from).filter(([name]) => found.has(name)));
  const [chosenNames, chosenValues] = [pick(names), pick(values)];
  return {
    ...(Object.keys(chosenNames).length > 0 && { ExpressionAttributeNames: chosenNames }),
    ...(Object.keys(chosenValues).length > 0 && { ExpressionAttributeValues: chosenValues }),
  };
}
