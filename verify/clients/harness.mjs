/**
 * Runs the scenarios of the JavaScript client, and reports the results to `cargo xtask verify clients`.
 *
 * A scenario is a function passed to `scenario`. Its expectations are calls of `equal`, `holds` and `fails`, which are
 * counted: a scenario without checks counts as failed. One line is printed for each scenario:
 *
 *     scenario=NAME result=ok checks=12 ms=340
 *     scenario=NAME result=failed why="..."
 *
 * After a failed scenario the others still run; the program then exits with status 1.
 */

import { isDeepStrictEqual, inspect, parseArgs } from "node:util";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";

const scenarios = [];
let checks = 0;

/** Registers a scenario. It runs on a server with keys; with `keys: false` on a server without keys, with
 * `keys: null` on both. */
export function scenario(run, { keys = true } = {}) {
  scenarios.push({ name: run.name, run, keys });
}

/** Parses the arguments of all clients. Keys and region are set in the environment, where SDKs read them. */
export function readArguments() {
  const { values } = parseArgs({
    options: {
      endpoint: { type: "string" },
      "without-keys": { type: "boolean", default: false },
      only: { type: "string", multiple: true },
      except: { type: "string", multiple: true, default: [] },
    },
  });
  if (!values.endpoint) throw new Error("--endpoint is missing");
  return values;
}

/** Runs the selected scenarios, and returns the exit status. */
export async function runAll(options, world) {
  const chosen = scenarios.filter((each) => isChosen(options, each));
  console.log(`scenarios=${chosen.length}`);
  let failed = 0;
  for (const each of chosen) failed += (await runOne(each, world)) ? 0 : 1;
  return failed > 0 ? 1 : 0;
}

function isChosen(options, { name, keys }) {
  if (options.only) return options.only.includes(name);
  return (keys === null || keys !== options["without-keys"]) && !options.except.includes(name);
}

async function runOne({ name, run }, world) {
  const [before, started] = [checks, performance.now()];
  try {
    await run(world);
  } catch (error) {
    console.error(error);
    // Escaped as in JSON, so that it stays on one line.
    console.log(`scenario=${name} result=failed why=${JSON.stringify(why(error))}`);
    return false;
  }
  const ms = Math.round(performance.now() - started);
  console.log(`scenario=${name} result=ok checks=${checks - before} ms=${ms}`);
  return true;
}

function why(error) {
  // The first line in our code: the others are in the SDK.
  const at = /javascript_scenarios\/([\w.]+:\d+)/.exec(error.stack ?? "");
  return `${at ? `${at[1]}: ` : ""}${error.name}: ${error.message}`;
}

/** Expects a value. */
export function equal(actual, expected, what = "value") {
  checks += 1;
  if (!isDeepStrictEqual(actual, expected)) {
    throw new Error(`${what}: expected=${short(expected)} actual=${short(actual)}`);
  }
}

/** Expects a condition to hold. */
export function holds(condition, what) {
  checks += 1;
  if (!condition) throw new Error(`does not hold: ${what}`);
}

/** Expects an object to have at least these entries. */
export function contains(actual, expected, what = "") {
  for (const [name, value] of Object.entries(expected)) equal(actual[name], value, `${what}${name}`);
}

/** Expects a promise to be rejected with an error of this class (or name, if the SDK has no class), and with this text
 * in its message. Returns the error. */
export async function fails(kind, message, promise) {
  let result;
  try {
    result = await promise;
  } catch (error) {
    const name = typeof kind === "string" ? kind : kind.name;
    equal(error.name, name, `name of the error ${error.message}`);
    holds(typeof kind === "string" || error instanceof kind, `the error is a ${name}`);
    holds(error.message.includes(message), `${short(message)} in ${short(error.message)}`);
    equal(error.$metadata?.httpStatusCode, 400, "status");
    return error;
  }
  throw new Error(`expected to fail with ${kind.name ?? kind}, but got ${short(result)}`);
}

/** Waits for a condition that takes the server a while, such as expiry. */
export async function eventually(condition, what, seconds = 30) {
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end) {
    if (await condition()) return holds(true, what);
    await pause(100);
  }
  throw new Error(`timeout after ${seconds} seconds: ${what}`);
}

/** Requests a kill and restart of the server, and returns at once. `isBack` becomes true after the restart. */
export function killServer() {
  const state = { isBack: false };
  const lines = createInterface({ input: process.stdin });
  lines.once("line", (line) => {
    state.isBack = line.trim() === "restarted";
    lines.close();
    process.stdin.pause();
  });
  console.log("request=kill");
  return state;
}

function short(value, length = 400) {
  const text = inspect(value, { depth: 10, breakLength: Infinity, maxStringLength: length });
  return text.length <= length ? text : `${text.slice(0, length)}... (${text.length} characters)`;
}
