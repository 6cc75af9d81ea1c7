"""Checks inputs of the AWS CLI against the description of DynamoDB's API that the AWS SDK has.

Prints one line for each fault. Nothing is sent anywhere.
"""

import json
import sys

from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

REQUIRED = {"TableName", "BillingMode", "AttributeDefinitions", "KeySchema"}

with open(sys.argv[1], encoding="utf-8") as file:
    inputs = json.load(file)
service = ServiceModel(Loader().load_service_model("dynamodb", "service-2"))
for at, operations in enumerate(inputs):
    if "CreateTable" not in operations:
        print(f"{at}: no CreateTable")
    for name, parameters in operations.items():
        if name not in ("CreateTable", "UpdateTimeToLive"):
            print(f"{at}: {name}: unexpected operation")
            continue
        shape = service.operation_model(name).input_shape
        report = ParamValidator().validate(parameters, shape).generate_report()
        for fault in report.splitlines():
            print(f"{at}: {name}: {fault}")
        if name == "CreateTable":
            for field in sorted(REQUIRED - set(parameters)):
                print(f"{at}: {name}: lacks {field}")
