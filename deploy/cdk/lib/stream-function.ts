// A function that processes the changes of tables, with its role, log, queue, mappings and alarms.

import { Duration, RemovalPolicy } from "aws-cdk-lib";
import { Alarm, ComparisonOperator, IAlarmAction, Metric, TreatMissingData } from "aws-cdk-lib/aws-cloudwatch";
import { PolicyDocument, PolicyStatement, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import * as lambda from "aws-cdk-lib/aws-lambda";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { Queue, QueueEncryption } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import { Tables } from "./tables";

export interface StreamFunctionProps {
  readonly tables: Tables;
  /** The tables whose changes it processes. */
  readonly follows: string[];
  /** The operations that it may perform, by table name. */
  readonly grants?: Record<string, string[]>;
  /** A zip with a program called `bootstrap`. */
  readonly code: lambda.Code;
  readonly environment?: Record<string, string>;
  /** Maximum number of changes in an event. */
  readonly batchSize: number;
  /** Maximum retries of a failed change; -1 retries while the stream keeps it. */
  readonly retries: number;
  /** The action of its alarms. */
  readonly alarmAction: IAlarmAction;
}

/** An AWS Lambda function that processes the changes of tables. */
export class StreamFunction extends Construct {
  private readonly logs: LogGroup;
  private readonly failures: Queue;
  private readonly code: lambda.Function;

  constructor(scope: Construct, id: string, props: StreamFunctionProps) {
    super(scope, id);
    this.logs = new LogGroup(this, "Logs", {
      retention: RetentionDays.ONE_MONTH,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    this.failures = new Queue(this, "Failures", {
      retentionPeriod: Duration.days(14),
      encryption: QueueEncryption.SQS_MANAGED,
    });
    this.code = new lambda.Function(this, "Function", {
      runtime: lambda.Runtime.PROVIDED_AL2023,
      architecture: lambda.Architecture.ARM_64,
      handler: "bootstrap",
      memorySize: 256,
      timeout: Duration.minutes(1),
      role: this.role(props),
      code: props.code,
      logGroup: this.logs,
      environment: props.environment,
    });
    for (const table of [...props.follows].sort()) {
      this.map(table, props);
    }
    this.alarms(props.alarmAction);
  }

  /** The role of the function: its log, its queue, its streams, and its grants. */
  private role({ tables, follows, grants = {} }: StreamFunctionProps): Role {
    const allow = (actions: string[], ...resources: string[]) => new PolicyStatement({ actions, resources });
    const statements = [
      allow(["logs:CreateLogStream", "logs:PutLogEvents"], this.logs.logGroupArn),
      allow(["sqs:SendMessage"], this.failures.queueArn),
    ];
    const streamActions = ["DescribeStream", "GetRecords", "GetShardIterator"];
    for (const name of [...follows].sort()) {
      statements.push(
        allow(streamActions.map((action) => `dynamodb:${action}`), tables.streamOf(name)),
        allow(["dynamodb:ListStreams"], tables.below(name, "/stream/*")),
      );
    }
    for (const [name, operations] of Object.entries(grants).sort()) {
      const { attrArn, globalSecondaryIndexes } = tables.get(name);
      const looksInIndexes = operations.some((operation) => operation === "Query" || operation === "Scan");
      const resources = looksInIndexes && globalSecondaryIndexes ? [attrArn, tables.below(name, "/index/*")] : [attrArn];
      statements.push(allow([...operations].sort().map((operation) => `dynamodb:${operation}`), ...resources));
    }
    return new Role(this, "Role", {
      assumedBy: new ServicePrincipal("lambda.amazonaws.com"),
      inlinePolicies: { floe: new PolicyDocument({ statements }) },
    });
  }

  /** Maps the change stream of a table to the function. */
  private map(table: string, { tables, batchSize, retries }: StreamFunctionProps): void {
    // Not the L2 construct, which does not support unlimited retries.
    new lambda.CfnEventSourceMapping(this, `On${tables.get(table).node.id}`, {
      functionName: this.code.functionName,
      eventSourceArn: tables.streamOf(table),
      startingPosition: lambda.StartingPosition.TRIM_HORIZON,
      batchSize,
      maximumBatchingWindowInSeconds: 1,
      parallelizationFactor: 1,
      bisectBatchOnFunctionError: true,
      maximumRetryAttempts: retries,
      maximumRecordAgeInSeconds: -1,
      functionResponseTypes: ["ReportBatchItemFailures"],
      destinationConfig: { onFailure: { destination: this.failures.queueArn } },
    });
  }

  /** Alarms: the function fails, it is behind, a change was given up. */
  private alarms(action: IAlarmAction): void {
    const period = Duration.minutes(5);
    const alarm = (id: string, about: string, metric: Metric, threshold: number, evaluationPeriods: number) => {
      new Alarm(this, id, {
        alarmDescription: about,
        metric,
        threshold,
        evaluationPeriods,
        comparisonOperator: ComparisonOperator.GREATER_THAN_THRESHOLD,
        treatMissingData: TreatMissingData.NOT_BREACHING,
      }).addAlarmAction(action);
    };
    const errors = this.code.metricErrors({ period, statistic: "Sum" });
    alarm("Errors", "The function fails.", errors, 0, 3);
    const age = this.code.metric("IteratorAge", { period, statistic: "Maximum" });
    const hour = Duration.hours(1).toMilliseconds();
    alarm("Behind", "The function is an hour behind; changes are kept for a day.", age, hour, 1);
    const visible = this.failures.metricApproximateNumberOfMessagesVisible({ period, statistic: "Maximum" });
    alarm("GivenUp", "Changes were given up; the queue lists them.", visible, 0, 1);
  }
}
