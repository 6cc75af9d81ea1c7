/** Authentication and durability. */

import { ConditionalCheckFailedException, ListGlobalTablesCommand, ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, PutCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";

import { equal, fails, holds, killServer, scenario } from "../harness.mjs";

const list = (world, settings) => world.client(settings).send(new ListTablesCommand({}));
const keys = (accessKeyId, secretAccessKey) => ({ credentials: { accessKeyId, secretAccessKey } });
/** A signer that does not sign. */
const unsigned = { signer: { sign: async (request) => request } };

scenario(async function keys_are_checked(world) {
  const unknown = "The security token included in the request is invalid.";
  await fails("UnrecognizedClientException", unknown, list(world, keys("AKIDUNKNOWN", "whatever")));
  const mismatch = "The request signature we calculated does not match the signature you provided.";
  await fails("InvalidSignatureException", mismatch, list(world, keys(process.env.AWS_ACCESS_KEY_ID, "wrong")));
  await fails("MissingAuthenticationTokenException", "", list(world, unsigned));
  holds((await list(world, {})).TableNames, "the correct keys are accepted");
});

scenario(
  async function any_key_is_accepted(world) {
    holds((await list(world, keys("anyone", "anything"))).TableNames, "any key is accepted");
    await fails("MissingAuthenticationTokenException", "", list(world, unsigned));
  },
  { keys: false },
);

scenario(async function unknown_operations_and_names_are_rejected(world) {
  await fails("UnknownOperationException", "", world.db.send(new ListGlobalTablesCommand({})));
  await fails("ValidationException", "", world.describe("no spaces allowed"));
});

scenario(async function concurrent_counters_lose_no_update(world) {
  await world.withTable({ purpose: "counters" }, async (TableName) => {
    await world.put(TableName, { pk: "conditional", n: 0 });
    const add = () =>
      world.documents.send(
        new UpdateCommand({
          TableName,
          Key: { pk: "added" },
          UpdateExpression: "ADD n :one",
          ExpressionAttributeValues: { ":one": 1 },
        }),
      );
    await Promise.all(Array.from({ length: 200 }, add));
    equal((await world.get(TableName, { pk: "added" })).n, 200);
    // Reads, and writes on the condition that no other client has written.
    const advance = async () => {
      for (;;) {
        const { n } = await world.get(TableName, { pk: "conditional" });
        try {
          return await world.documents.send(
            new PutCommand({
              TableName,
              Item: { pk: "conditional", n: n + 1 },
              ConditionExpression: "n = :n",
              ExpressionAttributeValues: { ":n": n },
            }),
          );
        } catch (error) {
          if (!(error instanceof ConditionalCheckFailedException)) throw error;
        }
      }
    };
    await Promise.all(Array.from({ length: 20 }, advance));
    equal((await world.get(TableName, { pk: "conditional" })).n, 20);
  });
});

scenario(async function acknowledged_writes_survive_a_kill(world) {
  // Enough retries for the server to restart.
  const patient = world.client({ maxAttempts: 30 });
  const documents = DynamoDBDocumentClient.from(patient);
  await world.withTable({ purpose: "survives" }, async (TableName) => {
    let [acknowledged, after, server] = [0, 0, { isBack: false }];
    while (after < 50) {
      await documents.send(new PutCommand({ TableName, Item: { pk: `${acknowledged}`, n: acknowledged } }));
      acknowledged += 1;
      if (acknowledged === 50) server = killServer();
      if (server.isBack) after += 1;
      holds(acknowledged < 100_000, "the server restarts in time");
    }
    const found = (await world.allItems(TableName)).map((item) => item.n).sort((one, other) => one - other);
    equal(
      found,
      Array.from({ length: acknowledged }, (_, n) => n),
      "every acknowledged put is stored",
    );
  });
  patient.destroy();
});
