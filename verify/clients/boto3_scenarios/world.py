"""What the scenarios work with: clients of both levels, and tables that are gone afterwards."""

import itertools
from contextlib import contextmanager

import boto3
from botocore.config import Config

# Tables are ready at once on a local server; where they are not, this asks every second.
WAIT = {"Delay": 1, "MaxAttempts": 60}

ON_DEMAND = {"BillingMode": "PAY_PER_REQUEST"}


class World:
    """The server as a user of boto3 sees it."""

    def __init__(self, endpoint):
        self.endpoint = endpoint
        self.session = boto3.Session()
        self.region = self.session.region_name
        self.db = self.client()
        self.streams = self.client("dynamodbstreams")
        self.resource = self.session.resource("dynamodb", endpoint_url=endpoint)
        self._numbers = itertools.count(1)

    def client(self, service="dynamodb", **settings):
        """A client with settings of its own, such as other keys."""
        settings.setdefault("config", Config(retries={"max_attempts": 3}))
        return self.session.client(service, endpoint_url=self.endpoint, **settings)

    def name(self, purpose):
        """A name that no other table has."""
        return f"boto3.{purpose}-{next(self._numbers)}"

    @contextmanager
    def table(self, purpose="items", keys="pk:S", **settings):
        """The name of a new table for the time of a `with`. Keys are written `name:TYPE name:TYPE`."""
        name = self.name(purpose)
        self.create(name, keys, **settings)
        try:
            yield name
        finally:
            self.db.delete_table(TableName=name)

    def create(self, name, keys="pk:S", attributes="", **settings):
        """Creates a table and waits for it. Further attributes are those of the keys of indexes."""
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
        """Puts items that are written as Python has them."""
        for item in items:
            self.resource.Table(table).put_item(Item=item)

    def get(self, table, **key):
        """An item as Python has it, or None."""
        return self.resource.Table(table).get_item(Key=key, ConsistentRead=True).get("Item")

    def all_items(self, table):
        """All items as Python has them, in the order of their keys."""
        found = [item for page in self.pages("scan", table) for item in page["Items"]]
        return sorted(found, key=lambda item: sorted((name, str(value)) for name, value in item.items()))

    def pages(self, operation, table, **parameters):
        """The pages of a query or a scan, items as Python has them."""
        paginator = self.resource.meta.client.get_paginator(operation)
        return paginator.paginate(TableName=table, **parameters)


def key_schema(partition, sort=None):
    """The keys of a table or an index."""
    names = [(partition, "HASH")] + ([(sort, "RANGE")] if sort else [])
    return [{"AttributeName": name, "KeyType": kind} for name, kind in names]


def index(name, *keys, projection="ALL", include=None):
    """A secondary index."""
    projected = {"ProjectionType": projection} | ({"NonKeyAttributes": include} if include else {})
    return {"IndexName": name, "KeySchema": key_schema(*keys), "Projection": projected}
