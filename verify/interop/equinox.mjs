// Event streams of counters, written and read with equinox-js.
//
//   node equinox.mjs ENDPOINT write PREFIX     writes the streams with this prefix
//   node equinox.mjs ENDPOINT append PREFIX    appends to them by a decision
//   node equinox.mjs ENDPOINT read PREFIX      prints their events and states, one per line
//
// The output is compared with Floe's description of the same streams.

import { DynamoDB } from "@aws-sdk/client-dynamodb";
import { CachingStrategy, Codec, Decider, StreamId, StreamName } from "@equinox-js/core";
import {
  AccessStrategy,
  DynamoStoreCategory,
  DynamoStoreClient,
  DynamoStoreContext,
  EventsContext,
  QueryOptions,
  TipOptions,
} from "@equinox-js/dynamo-store";

const CATEGORY = "Counter";
const LONG = "the same words again and again, ".repeat(8);

const initial = { total: 0, count: 0 };
function evolve(state, { type, data }) {
  if (type === "Added") return { total: state.total + data.n, count: state.count + 1 };
  if (type === "Reset") return { total: 0, count: state.count + 1 };
  if (type === "Total") return { total: data.n, count: data.count };
  return state;
}
const fold = (state, events) => events.reduce(evolve, state);

// Uncompressed bodies: text as bytes.
const plainCodec = {
  decode: (event) => ({
    type: event.type,
    data: event.data?.body?.length ? JSON.parse(Buffer.from(event.data.body).toString()) : undefined,
  }),
  encode: (event) => ({
    type: event.type,
    data: event.data && { encoding: 0, body: Buffer.from(JSON.stringify(event.data)) },
  }),
};
const compressedCodec = Codec.compress(Codec.json());

const snapshot = AccessStrategy.Snapshot(
  (event) => event.type === "Total",
  (state) => ({ type: "Total", data: { n: state.total, count: state.count } }),
);
const KINDS = {
  plain: { codec: plainCodec, access: AccessStrategy.Unoptimized(), tip: {} },
  calved: { codec: plainCodec, access: AccessStrategy.Unoptimized(), tip: { maxEvents: 3 } },
  snapshot: { codec: plainCodec, access: snapshot, tip: { maxEvents: 3 } },
  compressed: { codec: compressedCodec, access: snapshot, tip: { maxEvents: 2 } },
};

const [endpoint, what, prefix] = process.argv.slice(2);
const database = new DynamoDB({
  endpoint,
  region: "local",
  credentials: { accessKeyId: "any", secretAccessKey: "any" },
});

function context(kind) {
  return DynamoStoreContext.create({
    client: new DynamoStoreClient(database),
    tableName: "events",
    tip: TipOptions.create(kind.tip),
    query: QueryOptions.create({ maxItems: 2 }),
  });
}

function decider(name) {
  const kind = KINDS[name];
  const caching = CachingStrategy.NoCache();
  const category = DynamoStoreCategory.create(
    context(kind),
    CATEGORY,
    kind.codec,
    fold,
    initial,
    caching,
    kind.access,
  );
  return Decider.forStream(category, StreamId.create(`${prefix}-${name}`), undefined);
}

async function write(name) {
  const stream = decider(name);
  for (let n = 1; n <= 7; n += 1) {
    await stream.transact(() => [{ type: "Added", data: { n, note: LONG } }]);
  }
  await stream.transact(() => [{ type: "Reset" }, { type: "Added", data: { n: 40, note: "äöü €" } }]);
}

async function append(name) {
  await decider(name).transact((state) => [{ type: "Added", data: { n: state.total, note: LONG } }]);
}

async function read(name) {
  const stream = StreamName.create(CATEGORY, StreamId.create(`${prefix}-${name}`));
  for (const event of await new EventsContext(context(KINDS[name])).read(stream, 0)) {
    const body = Codec.smartDecompress(event.data)?.toString() ?? "";
    console.log(["event", stream, event.index, event.type, body].join("\t"));
  }
  const [state, version] = await decider(name).queryEx(({ state, version }) => [state, version]);
  console.log(["state", stream, version, state.total, state.count].join("\t"));
}

const step = { write, append, read }[what];
for (const name of Object.keys(KINDS)) await step(name);
