"""Runs the scenarios of a Python client, and reports the results to `cargo xtask verify clients`.

A scenario is a function marked with `@scenario`. Its expectations are calls of `equal`, `holds` and `fails`, which are
counted: a scenario without checks counts as failed. One line is printed for each scenario:

    scenario=NAME result=ok checks=12 ms=340
    scenario=NAME result=failed why="..."

After a failed scenario the others still run; the program then exits with status 1.
"""

import argparse
import json
import sys
import threading
import time
import traceback

from botocore.exceptions import ClientError

_scenarios = []
_checks = 0


def scenario(function=None, *, keys=True):
    """Registers a scenario. It runs on a server with keys; with `keys=False` on a server without keys, with
    `keys=None` on both."""

    def mark(function):
        _scenarios.append((function.__name__, function, keys))
        return function

    return mark if function is None else mark(function)


def arguments(description):
    """Parses the arguments of all clients. Keys and region are set in the environment, where SDKs read them."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--endpoint", required=True, help="URL of the server")
    parser.add_argument("--without-keys", action="store_true", help="the server requires no keys")
    parser.add_argument("--only", action="append", help="run only this scenario (may be repeated)")
    parser.add_argument(
        "--except", dest="excluded", action="append", default=[], help="skip this scenario (may be repeated)"
    )
    return parser.parse_args()


def run(options, world):
    """Runs the selected scenarios, and returns the exit status."""
    chosen = [(name, function) for name, function, keys in _scenarios if _is_chosen(options, name, keys)]
    print(f"scenarios={len(chosen)}", flush=True)
    failed = 0
    for name, function in chosen:
        failed += not _run_one(name, function, world)
    return 1 if failed else 0


def _is_chosen(options, name, keys):
    if options.only is not None:
        return name in options.only
    fits = keys is None or keys != options.without_keys
    return fits and name not in options.excluded


def _run_one(name, function, world):
    before, started = _checks, time.monotonic()
    try:
        function(world)
    except Exception as error:
        traceback.print_exc()
        # Escaped as in JSON, so that it stays on one line.
        print(f"scenario={name} result=failed why={json.dumps(_why(error))}", flush=True)
        return False
    ms = round((time.monotonic() - started) * 1000)
    print(f"scenario={name} result=ok checks={_checks - before} ms={ms}", flush=True)
    return True


def _why(error):
    here = traceback.extract_tb(error.__traceback__)
    # The last line in our code: deeper ones are in the SDK.
    ours = [frame for frame in here if "_scenarios" in frame.filename]
    at = f"{ours[-1].filename.rsplit('/', 1)[-1]}:{ours[-1].lineno}: " if ours else ""
    return f"{at}{type(error).__name__}: {error}"


def equal(actual, expected, what=""):
    """Expects a value."""
    global _checks
    _checks += 1
    if actual != expected:
        expected, actual = _differing(expected, actual)
        raise AssertionError(f"{what or 'value'}: expected={_short(expected)} actual={_short(actual)}")


def holds(condition, what):
    """Expects a condition to hold."""
    global _checks
    _checks += 1
    if not condition:
        raise AssertionError(f"does not hold: {what}")


def contains(actual, expected, what=""):
    """Expects a dictionary to have at least these entries."""
    holds(isinstance(actual, dict), f"{what} is a dictionary: {_short(actual)}")
    for name, value in expected.items():
        equal(actual.get(name), value, f"{what}.{name}" if what else name)


def fails(code, message, call, *, kind=ClientError, status=400):
    """Expects a call to fail with this error code and message (or a predicate on the message), as an exception of this
    kind. Returns the parsed response."""
    try:
        result = call()
    except kind as error:
        response = error.response
    else:
        raise AssertionError(f"expected to fail with {code}, but got {_short(result)}")
    equal(response["Error"]["Code"], code, f"code of the error {response['Error'].get('Message')!r}")
    equal(response["ResponseMetadata"]["HTTPStatusCode"], status, "status")
    actual = response["Error"]["Message"]
    if callable(message):
        holds(message(actual), f"the message is as expected: {actual}")
    else:
        equal(actual, message, "message")
    return response


def within(text):
    """Returns a predicate that a message contains this text, for messages that are long or have changed over time."""
    return lambda message: text in message


def eventually(condition, what, seconds=30):
    """Waits for a condition that takes the server a while, such as expiry."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            holds(found, what)
            return found
        time.sleep(0.1)
    raise AssertionError(f"timeout after {seconds} seconds: {what}")


def kill_server():
    """Requests a kill and restart of the server, and returns at once. The event is set after the restart."""
    print("request=kill", flush=True)
    is_back = threading.Event()

    def wait():
        if sys.stdin.readline().strip() == "restarted":
            is_back.set()

    threading.Thread(target=wait, daemon=True).start()
    return is_back


def _differing(one, other):
    """Reduces two dictionaries to the entries that differ."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return one, other
    names = {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
    return tuple({name: value for name, value in each.items() if name in names} for each in (one, other))


def _short(value, length=400):
    text = repr(value)
    return text if len(text) <= length else f"{text[:length]}... ({len(text)} characters)"
