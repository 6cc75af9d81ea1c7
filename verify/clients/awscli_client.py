"""Drives a server with the AWS CLI, like a user in a shell.

    AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=... AWS_DEFAULT_REGION=... \
        python awscli_client.py --endpoint http://127.0.0.1:8000

The scenarios are in `awscli_scenarios`, by subject.
"""

import sys

import harness
from awscli_scenarios import (  # noqa: F401 (they register themselves)
    tables,
    items,
    reading,
    multiple,
    streams,
    daily,
    reliability,
)
from awscli_scenarios.world import World

if __name__ == "__main__":
    options = harness.arguments(__doc__.splitlines()[0])
    sys.exit(harness.run(options, World(options.endpoint)))
