// The stack of the shop: its tables, the indexer of its events, and the router of its changes.

import { CfnElement, CfnParameter, Stack, StackProps } from "aws-cdk-lib";
import { SnsAction } from "aws-cdk-lib/aws-cloudwatch-actions";
import { Code } from "aws-cdk-lib/aws-lambda";
import { Bucket } from "aws-cdk-lib/aws-s3";
import { Topic } from "aws-cdk-lib/aws-sns";
import { Construct } from "constructs";
import { StreamFunction } from "./stream-function";
import { Tables } from "./tables";

export class ShopStack extends Stack {
  constructor(scope: Construct, id: string, props: StackProps) {
    super(scope, id, props);
    this.templateOptions.description = "The shop: its tables, the feed of its events, and the router of its changes.";
    const tables = new Tables(this, "Tables");
    const alarmAction = new SnsAction(new Topic(this, "Alarms"));
    const bucketName = this.parameter("CodeBucket", "The bucket with the code of the functions.");
    const bucket = Bucket.fromBucketName(this, "Code", bucketName);
    const codeOf = (name: string) => {
      const about = `The S3 key of the code of ${name}.`;
      return Code.fromBucket(bucket, this.parameter(`${name}Code`, about, `${name.toLowerCase()}.zip`));
    };
    new StreamFunction(this, "Indexer", {
      tables,
      follows: ["shop"],
      grants: { "shop-index": ["ConditionCheckItem", "GetItem", "PutItem", "Query", "UpdateItem"] },
      code: codeOf("Indexer"),
      environment: {
        FLOE_TABLE: "shop",
        FLOE_PARTITIONS: "1",
        // Requires ReportBatchItemFailures in the mapping.
        FLOE_REPORT_BATCH_ITEM_FAILURES: "true",
      },
      batchSize: 1000,
      // Retries forever, because the feed skips nothing.
      retries: -1,
      alarmAction,
    });
    new StreamFunction(this, "Router", {
      tables,
      follows: ["catalog", "floe_outbox", "orders"],
      grants: { catalog: ["GetItem", "PutItem"], floe_outbox: ["DeleteItem"] },
      code: codeOf("Router"),
      batchSize: 100,
      retries: 10,
      alarmAction,
    });
  }

  private parameter(id: string, description: string, defaultValue?: string): string {
    return new CfnParameter(this, id, { type: "String", description, default: defaultValue }).valueAsString;
  }

  /** Names without hashes, as in Floe's own template, so that a stack can move from one to the other. */
  protected override allocateLogicalId(element: CfnElement): string {
    const path = element.node.scopes.slice(2).map((scope) => scope.node.id);
    return path.filter((id) => id !== "Resource" && id !== "Function").join("");
  }
}
