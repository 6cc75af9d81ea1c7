/**
 * Drives a server with the AWS SDK for JavaScript, version 3, like a user of the SDK.
 *
 *     AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=... AWS_REGION=... \
 *         node javascript_client.mjs --endpoint http://127.0.0.1:8000
 *
 * The scenarios are in `javascript_scenarios`, by subject. They register themselves.
 */

import { readArguments, runAll } from "./harness.mjs";
import { World } from "./javascript_scenarios/world.mjs";
import "./javascript_scenarios/tables.mjs";
import "./javascript_scenarios/items.mjs";
import "./javascript_scenarios/expressions.mjs";
import "./javascript_scenarios/reading.mjs";
import "./javascript_scenarios/multiple.mjs";
import "./javascript_scenarios/streams.mjs";
import "./javascript_scenarios/legacy.mjs";
import "./javascript_scenarios/reliability.mjs";

const options = readArguments();
const world = new World(options.endpoint);
const status = await runAll(options, world);
world.close();
// Exit explicitly: the listener for the restart would keep the program alive.
process.exit(status);
