"""Runs the scenarios of a client written in Python, and tells `cargo xtask verify clients` how they went.

A scenario is a function marked with `@scenario`. What it expects it says with `equal`, `holds` and `fails`, which
count: a run that checks nothing is no proof. One line is printed for each scenario:

    scenario=NAME result=ok checks=12 ms=340
    scenario=NAME result=failed why="..."

A scenario that fails does not keep the others from running; the program then ends with status 1.
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
    """Marks a scenario. It runs on a server with keys; with `keys=False` on one that asks for none, with
    `keys=None` on both."""

    def mark(function):
        _scenarios.append((function.__name__, function, keys))
        return function

    return mark if function is None else mark(function)


def arguments(description):
    """The arguments that all clients take. Keys and region come from the environment, where SDKs look for them."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--endpoint", required=True, help="where the server listens")
    parser.add_argument("--without-keys", action="store_true", help="the server asks for no keys")
    parser.add_argument("--only", action="append", help="run this scenario (may be given several times)")
    parser.add_argument("--except", dest="left_out", action="append", default=[], help="leave this scenario out")
    return parser.parse_args()


def run(options, world):
    """Runs the scenarios that were asked for. The status to exit with."""
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
    return fits and name not in options.left_out


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
    # The last line that is ours: deeper ones are the SDK's.
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
    """Expects something to be so."""
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
    """Expects a call to fail with this error code and message (or a function that judges the message), as an
    exception of this kind. The parsed answer, to look further into."""
    try:
        answer = call()
    except kind as error:
        response = error.response
    else:
        raise AssertionError(f"expected to fail with {code}, but got {_short(answer)}")
    equal(response["Error"]["Code"], code, f"code of the error {response['Error'].get('Message')!r}")
    equal(response["ResponseMetadata"]["HTTPStatusCode"], status, "status")
    told = response["Error"]["Message"]
    if callable(message):
        holds(message(told), f"the message fits: {told}")
    else:
        equal(told, message, "message")
    return response


def within(text):
    """Judges a message by a part of it, where the rest is long or has changed over the years."""
    return lambda told: text in told


def eventually(condition, what, seconds=30):
    """Waits for something that takes the server a while, such as expiry."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            holds(found, what)
            return found
        time.sleep(0.1)
    raise AssertionError(f"did not come within {seconds} seconds: {what}")


def kill_server():
    """Asks for the server to be killed and started again, and goes on. The event is set once it is back."""
    print("ask=kill", flush=True)
    is_back = threading.Event()

    def wait():
        if sys.stdin.readline().strip() == "restarted":
            is_back.set()

    threading.Thread(target=wait, daemon=True).start()
    return is_back


def _differing(one, other):
    """Of two dictionaries only what differs, so that one sees it."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return one, other
    names = {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
    return tuple({name: value for name, value in each.items() if name in names} for each in (one, other))


def _short(value, length=400):
    text = repr(value)
    return text if len(text) <= length else f"{text[:length]}... ({len(text)} characters)"
