/** Streams: shards, iterators, and records with the images that the view selects. */

import { UpdateTableCommand } from "@aws-sdk/client-dynamodb";
import {
  DescribeStreamCommand,
  GetRecordsCommand,
  GetShardIteratorCommand,
  ListStreamsCommand,
  ResourceNotFoundException,
} from "@aws-sdk/client-dynamodb-streams";
import { DeleteCommand } from "@aws-sdk/lib-dynamodb";

import { contains, equal, fails, holds, scenario } from "../harness.mjs";

const BOTH = { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" };

/** Reads the stream of a table like a consumer: shard by shard, page by page. */
class Reader {
  constructor(world, arn) {
    this.streams = world.streams;
    this.arn = arn;
  }

  static async of(world, table) {
    return new Reader(world, (await world.describe(table)).LatestStreamArn);
  }

  async shards() {
    const { StreamDescription } = await this.streams.send(new DescribeStreamCommand({ StreamArn: this.arn }));
    return StreamDescription.Shards;
  }

  async start({ ShardId }, ShardIteratorType = "TRIM_HORIZON", SequenceNumber = undefined) {
    const input = { StreamArn: this.arn, ShardId, ShardIteratorType, SequenceNumber };
    return (await this.streams.send(new GetShardIteratorCommand(input))).ShardIterator;
  }

  /** Returns the records from an iterator up to the current end of the shard, and the next iterator. */
  async read(iterator, Limit = 1000) {
    const records = [];
    while (iterator) {
      const page = await this.streams.send(new GetRecordsCommand({ ShardIterator: iterator, Limit }));
      records.push(...page.Records);
      iterator = page.NextShardIterator;
      if (page.Records.length === 0) break;
    }
    return { records, onward: iterator };
  }

  async allRecords() {
    const found = [];
    for (const shard of await this.shards()) found.push(...(await this.read(await this.start(shard))).records);
    return found;
  }
}

scenario(async function records_contain_keys_and_images(world) {
  await world.withTable({ purpose: "images", StreamSpecification: BOTH }, async (TableName) => {
    const raw = Uint8Array.of(0, 255);
    await world.put(TableName, { pk: "a", n: 1, raw }, { pk: "a", n: 1, raw }, { pk: "a", n: 2, raw });
    await world.documents.send(new DeleteCommand({ TableName, Key: { pk: "a" } }));
    const records = await (await Reader.of(world, TableName)).allRecords();
    const image = (n) => ({ pk: { S: "a" }, n: { N: n }, raw: { B: raw } });
    equal(
      records.map(({ eventName, dynamodb }) => [eventName, dynamodb.OldImage, dynamodb.NewImage]),
      [
        ["INSERT", undefined, image("1")],
        ["MODIFY", image("1"), image("2")],
        ["REMOVE", image("2"), undefined],
      ],
      "a put without a change writes no record",
    );
    for (const record of records) {
      contains(record, { eventSource: "aws:dynamodb", awsRegion: world.region });
      contains(record.dynamodb, { Keys: { pk: { S: "a" } }, StreamViewType: "NEW_AND_OLD_IMAGES" });
      holds(record.dynamodb.SizeBytes > 0, "the record has a size");
      holds(Math.abs(Date.now() - record.dynamodb.ApproximateCreationDateTime) < 300_000, "the record is recent");
    }
  });
});

scenario(async function views_select_the_images(world) {
  for (const [StreamViewType, images] of [
    ["KEYS_ONLY", []],
    ["NEW_IMAGE", ["NewImage"]],
    ["OLD_IMAGE", ["OldImage"]],
  ]) {
    const settings = { purpose: "views", StreamSpecification: { StreamEnabled: true, StreamViewType } };
    await world.withTable(settings, async (name) => {
      await world.put(name, { pk: "a", n: 1 }, { pk: "a", n: 2 });
      const last = (await (await Reader.of(world, name)).allRecords()).at(-1);
      equal(
        ["NewImage", "OldImage"].filter((image) => last.dynamodb[image]),
        images,
        StreamViewType,
      );
    });
  }
});

scenario(async function streams_are_listed_and_described(world) {
  await world.withTable({ purpose: "listed", StreamSpecification: BOTH }, async (TableName) => {
    const described = await world.describe(TableName);
    const { Streams } = await world.streams.send(new ListStreamsCommand({ TableName }));
    const [StreamArn, StreamLabel] = [described.LatestStreamArn, described.LatestStreamLabel];
    // Streams of earlier tables with the same name are listed until their records are trimmed.
    equal(Streams.at(-1), { StreamArn, TableName, StreamLabel });
    holds(Streams.every((stream) => stream.TableName === TableName), "only streams of the table are listed");
    const { StreamDescription } = await world.streams.send(new DescribeStreamCommand({ StreamArn }));
    contains(StreamDescription, { StreamStatus: "ENABLED", StreamViewType: "NEW_AND_OLD_IMAGES", TableName });
    holds(StreamDescription.Shards.length > 0, "there is a shard");
    const unknown = new DescribeStreamCommand({ StreamArn: StreamArn.replace(TableName, "javascript.nowhere") });
    await fails(ResourceNotFoundException, "Stream", world.streams.send(unknown));
  });
});

scenario(async function iterators_start_at_the_requested_position(world) {
  await world.withTable({ purpose: "iterators", StreamSpecification: BOTH }, async (name) => {
    const reader = await Reader.of(world, name);
    for (let n = 0; n < 10; n += 1) await world.put(name, { pk: "a", n });
    const numbers = ({ records }) => records.map((record) => Number(record.dynamodb.NewImage.n.N));
    const shard = (await reader.shards()).at(-1);
    const all = await reader.read(await reader.start(shard), 3);
    equal(numbers(all), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], "from the start, in pages of three");
    const { SequenceNumber } = all.records[5].dynamodb;
    equal(numbers(await reader.read(await reader.start(shard, "AT_SEQUENCE_NUMBER", SequenceNumber))), [5, 6, 7, 8, 9]);
    equal(numbers(await reader.read(await reader.start(shard, "AFTER_SEQUENCE_NUMBER", SequenceNumber))), [6, 7, 8, 9]);
    const latest = await reader.start(shard, "LATEST");
    equal(numbers(await reader.read(latest)), []);
    await world.put(name, { pk: "a", n: 10 });
    equal(numbers(await reader.read(latest)), [10]);
    equal(
      numbers(await reader.read(all.onward)), [10],
      "an iterator at the end of an open shard returns later records",
    );
    const off = { StreamEnabled: false };
    await world.db.send(new UpdateTableCommand({ TableName: name, StreamSpecification: off }));
    equal(
      (await reader.read(await reader.start(shard))).onward, undefined,
      "a closed shard has no next iterator at its end",
    );
  });
});
