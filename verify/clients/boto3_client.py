"""Drives a server with boto3, the AWS SDK for Python, like a user of the SDK.

    AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=... AWS_DEFAULT_REGION=... \
        python boto3_client.py --endpoint http://127.0.0.1:8000

The scenarios are in `boto3_scenarios`, by subject.
"""

import sys

import harness
from boto3_scenarios import (  # noqa: F401 (they register themselves)
    tables,
    items,
    expressions,
    reading,
    batches,
    transactions,
    streams,
    legacy,
    reliability,
)
from boto3_scenarios.world import World

if __name__ == "__main__":
    options = harness.arguments(__doc__.splitlines()[0])
    sys.exit(harness.run(options, World(options.endpoint)))
