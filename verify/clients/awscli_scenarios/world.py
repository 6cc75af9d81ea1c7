"""The command `aws`, and temporary tables.

A command is written as in a shell: `aws("dynamodb get-item --table-name $TABLE --key '{...}'", TABLE=name)`. Each runs
in its own process, with arguments, environment and exit status like the installed command; only loading Python, the CLI
and its service descriptions, which takes most of a second, is done once for all commands.
"""

import itertools
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import traceback
from contextlib import contextmanager

import awscli.clidriver

from harness import equal, holds

# The time limit of a command in seconds. Waiters may wait for minutes.
DEADLINE = 120


class World:
    """A server, used with the AWS CLI. The endpoint is in the environment, as in a shell that is set up for it."""

    def __init__(self, endpoint):
        self.endpoint = endpoint
        os.environ["AWS_ENDPOINT_URL"] = endpoint
        os.environ["AWS_PAGER"] = ""
        # Ignore the settings of the user.
        self.home = tempfile.TemporaryDirectory()
        os.environ["AWS_CONFIG_FILE"] = os.path.join(self.home.name, "config")
        os.environ["AWS_SHARED_CREDENTIALS_FILE"] = os.path.join(self.home.name, "credentials")
        self.region = os.environ["AWS_DEFAULT_REGION"]
        self._driver = _loaded_driver()
        self._numbers = itertools.count(1)

    def aws(self, command, environment=None, **values):
        """Runs a command that must succeed, and returns its output, parsed if it is JSON."""
        status, out, err = self.run(command, environment, **values)
        equal(status, 0, f"status of aws {command[:200]}: {err.strip()}")
        if not out.strip():
            return None
        try:
            return json.loads(out)
        except json.JSONDecodeError:
            return out

    def fails(self, code, message, command, environment=None, **values):
        """Runs a command that must fail with this service error, and with this text in the message."""
        status, out, err = self.run(command, environment, **values)
        holds(status not in (0, None), f"the command fails, but: {out.strip()[:400]}")
        equal(status, 255, f"status of aws {command[:200]}: {err.strip()}")
        holds(f"An error occurred ({code})" in err, f"error code {code}: {err.strip()}")
        holds(message in err, f"message contains {message!r}: {err.strip()!r}")

    def run(self, command, environment=None, **values):
        """Runs a command, and returns its status, standard output and standard error."""
        words = [_filled(word, values) for word in shlex.split(command)]
        with tempfile.TemporaryFile("w+b") as out, tempfile.TemporaryFile("w+b") as err:
            sys.stdout.flush()
            sys.stderr.flush()
            child = os.fork()
            if child == 0:
                _become_aws(self._driver, words, environment or {}, out, err)
            _, status = os.waitpid(child, 0)
            out.seek(0)
            err.seek(0)
            return os.waitstatus_to_exitcode(status), out.read().decode(), err.read().decode()

    def shell(self, script, **environment):
        """Runs a script that can use the installed command `aws`, and returns its output."""
        path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            env=os.environ | {"PATH": path} | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        equal(done.returncode, 0, f"status of the script: {done.stderr.strip()}")
        return done.stdout

    def file(self, name, content):
        """Creates a file for `file://`, and returns its path."""
        path = os.path.join(self.home.name, name)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    def name(self, purpose):
        """Returns a unique table name."""
        return f"awscli.{purpose}-{next(self._numbers)}"

    @contextmanager
    def table(self, purpose="items", keys="pk:S", more=""):
        """Creates a table for a `with` block, and returns its name. Keys are written `name:TYPE name:TYPE`."""
        name = self.name(purpose)
        self.create(name, keys, more)
        try:
            yield name
        finally:
            self.aws("dynamodb delete-table --table-name $NAME", NAME=name)

    def create(self, name, keys="pk:S", more=""):
        """Creates a table and waits for it."""
        parsed = [key.split(":") for key in keys.split()]
        schema = " ".join(f"AttributeName={key},KeyType={kind}" for (key, _), kind in zip(parsed, ("HASH", "RANGE")))
        definitions = " ".join(f"AttributeName={key},AttributeType={kind}" for key, kind in parsed)
        billing = "" if "--provisioned-throughput" in more else "--billing-mode PAY_PER_REQUEST"
        created = self.aws(
            f"dynamodb create-table --table-name {name} --key-schema {schema} "
            f"--attribute-definitions {definitions} {billing} {more}"
        )
        if created["TableDescription"]["TableStatus"] != "ACTIVE":
            self.aws("dynamodb wait table-exists --table-name $NAME", NAME=name)
        return created["TableDescription"]

    def fill(self, table, items):
        """Puts items, 25 per command."""
        for start in range(0, len(items), 25):
            batch = self.file(
                "batch.json", {table: [{"PutRequest": {"Item": item}} for item in items[start : start + 25]]}
            )
            result = self.aws("dynamodb batch-write-item --request-items file://$BATCH", BATCH=batch)
            equal(result["UnprocessedItems"], {})


def _filled(word, values):
    for name, value in values.items():
        word = word.replace(f"${name}", value if isinstance(value, str) else json.dumps(value))
    return word


def _loaded_driver():
    """Returns the CLI with all files loaded that every command reads."""
    driver = awscli.clidriver.create_clidriver()
    loader = driver.session.get_component("data_loader")
    loader.list_available_services("service-2")
    for service in ("dynamodb", "dynamodbstreams"):
        for part in ("service-2", "paginators-1", "endpoint-rule-set-1"):
            loader.load_service_model(service, part)
    for shared in ("endpoints", "partitions", "_retry"):
        loader.load_data(shared)
    return driver


def _become_aws(driver, words, environment, out, err):
    """Runs the CLI in the child process, like the installed script."""
    status = 1
    try:
        signal.alarm(DEADLINE)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        os.environ.update(environment)
        status = driver.main(words)
    except SystemExit as exit:
        status = exit.code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status if isinstance(status, int) else 1)
