// The feed of a table, written and read with equinox-js.
//
//   node feed.mjs ENDPOINT read              prints the spans of all epochs, one per line
//   node feed.mjs ENDPOINT write PREFIX      writes spans of streams with this prefix to the feed
//
// The output is compared with Floe's description of the same feed.

import { DynamoDB } from "@aws-sdk/client-dynamodb";
import { CachingStrategy, MemoryCache } from "@equinox-js/core";
import { DynamoStoreClient, DynamoStoreContext, QueryOptions, TipOptions } from "@equinox-js/dynamo-store";
import { AppendsEpoch, AppendsIndex, Checkpoint, DynamoStoreIndexer } from "@equinox-js/dynamo-store-indexer";

// equinox-js has no partitions yet: all streams are in the first one.
const PARTITION = 0;

const [endpoint, what, prefix] = process.argv.slice(2);
const database = new DynamoDB({
  endpoint,
  region: "local",
  credentials: { accessKeyId: "any", secretAccessKey: "any" },
});
const context = DynamoStoreContext.create({
  client: new DynamoStoreClient(database),
  tableName: "events-index",
  tip: TipOptions.create({ maxEvents: 2 }),
  query: QueryOptions.create({ maxItems: 2 }),
});

async function read() {
  const index = await AppendsIndex.Reader.create(context).read();
  const epochs = AppendsEpoch.Reader.Config.create(context);
  for (let epoch = 0; ; epoch += 1) {
    const [, version, { changes, closed }] = await epochs.read(PARTITION, epoch, 0n);
    for (const [offset, spans] of changes) {
      const after = Checkpoint.positionOfEpochAndOffset(epoch, BigInt(offset) + 1n);
      for (const { p, i, c } of spans) console.log(["span", after, p, i, c.join(",")].join("\t"));
    }
    if (!closed) {
      const tail = Checkpoint.positionOfEpochClosedAndVersion(epoch, closed, version);
      // The keys of a snapshot are strings, those of events are numbers.
      const active = index.get(PARTITION) ?? index.get(String(PARTITION)) ?? 0;
      console.log(["tail", tail, active].join("\t"));
      return;
    }
  }
}

async function write() {
  const caching = CachingStrategy.Cache(new MemoryCache(10));
  const indexer = new DynamoStoreIndexer(context, caching, 1024 * 1024, 100_000, 3n);
  for (let i = 0; i < 7; i += 1) {
    const spans = [
      { p: `Counter-${prefix}a`, i: i * 2, c: ["Added", "Added"] },
      { p: `Counter-${prefix}b`, i, c: ["Reset"] },
    ];
    await indexer.ingestWithoutConcurrency(PARTITION, spans);
  }
}

await { read, write }[what]();
