// The tables. The program generates `tables.json` from the models; do not edit it.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Fn } from "aws-cdk-lib";
import { CfnTable } from "aws-cdk-lib/aws-dynamodb";
import { CfnInclude } from "aws-cdk-lib/cloudformation-include";
import { Construct } from "constructs";

interface Template {
  Resources: Record<string, { Properties: { TableName: string } }>;
}

/** The tables of the models, by name. */
export class Tables extends Construct {
  private readonly byName = new Map<string, CfnTable>();

  constructor(scope: Construct, id: string) {
    super(scope, id);
    const templateFile = join(__dirname, "..", "..", "tables.json");
    const template: Template = JSON.parse(readFileSync(templateFile, "utf8"));
    const included = new CfnInclude(this, "Included", { templateFile });
    for (const [logicalId, resource] of Object.entries(template.Resources)) {
      const table = included.getResource(logicalId) as CfnTable;
      this.byName.set(resource.Properties.TableName, table);
    }
  }

  /** The table with this name. */
  get(name: string): CfnTable {
    const table = this.byName.get(name);
    if (!table) {
      const known = [...this.byName.keys()].join(",");
      throw new Error(`unknown table: table=${name} known=${known}`);
    }
    return table;
  }

  /** The ARN of the table with this name, followed by a suffix. */
  below(name: string, suffix: string): string {
    return Fn.sub(`\${${this.get(name).node.id}.Arn}${suffix}`);
  }

  /** The stream of the table with this name. */
  streamOf(name: string): string {
    const table = this.get(name);
    if (!table.streamSpecification) {
      throw new Error(`the table has no stream: table=${name}`);
    }
    return table.attrStreamArn;
  }
}
