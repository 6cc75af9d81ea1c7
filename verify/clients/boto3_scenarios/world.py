"""Helpers of the scenarios: both client APIs, and temporary tables."""

import itertools
from contextlib import contextmanager

import boto3
from botocore.config import Config

# Tables are ready at once on a local server; on other servers, poll every second.
WAIT = {"Delay": 1, "MaxAttempts": 60}

ON_DEMAND = {"BillingMode": "PAY_PER_REQUEST"}


class World:
    """A server, used with boto3."""

    def __init__(self, endpoint):
        self.endpoint = endpoint
        self.session = boto3.Session()
        self.region = self.session.region_name
        self.db = self.client()
        self.streams = self.client("dynamodbstreams")
        self.resource = self.session.resource("dynamodb", endpoint_url=endpoint)
        self._numbers = itertools.count(1)

    def client(self, service="dynamodb", **settings):
        """Creates a client with its own settings, such as other keys."""
        settings.setdefault("config", Config(retries={"max_attempts": 3}))
        return self.session.client(service, endpoint_url=self.endpoint, **settings)

    def name(self, purpose):
        """Returns a unique table name."""
        return f"boto3.{purpose}-{next(self._numbers)}"

    @contextmanager
    def table(self, purpose="items", keys="pk:S", **settings):
        """Creates a table for a `with` block, and returns its name. Keys are written `name:TYPE name:TYPE`."""
        name = self.name(purpose)
        self.create(name, keys, **settings)
        try:
            yield name
        finally:
            self.db.delete_table(TableName=name)

    def create(self, name, keys="pk:S", attributes="", **settings):
        """Creates a table and waits for it. `attributes` are the keys of indexes."""
        definitions = [attribute.split(":") for attribute in f"{keys} {attributes}".split()]
        described = self.db.create_table(
            TableName=name,
            KeySchema=key_schema(*(attribute.split(":")[0] for attribute in keys.split())),
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": kind} for name, kind in definitions],
            **(settings if "ProvisionedThroughput" in settings else ON_DEMAND | settings),
        )
        self.db.get_waiter("table_exists").wait(TableName=name, WaiterConfig=WAIT)
        return described["TableDescription"]

    def put(self, table, *items):
        """Puts items of Python values."""
        for item in items:
            self.resource.Table(table).put_item(Item=item)

    def get(self, table, **key):
        """Returns an item of Python values, or None."""
        return self.resource.Table(table).get_item(Key=key, ConsistentRead=True).get("Item")

    def all_items(self, table):
        """Returns all items as Python values, in the order of their keys."""
        found = [item for page in self.pages("scan", table) for item in page["Items"]]
        return sorted(found, key=lambda item: sorted((name, str(value)) for name, value in item.items()))

    def pages(self, operation, table, **parameters):
        """Returns the pages of a query or scan, with items of Python values."""
        paginator = self.resource.meta.client.get_paginator(operation)
        return paginator.paginate(TableName=table, **parameters)


def key_schema(partition, sort=None):
    """The key schema of a table or an index."""
    names = [(partition, "HASH")] + ([(sort, "RANGE")] if sort else [])
    return [{"AttributeName": name, "KeyType": kind} for name, kind in names]


def index(name, *keys, projection="ALL", include=None):
    """A secondary index."""
    projected = {"ProjectionType": projection} | ({"NonKeyAttributes": include} if include else {})
    return {"IndexName": name, "KeySchema": key_schema(*keys), "Projection": projected}
