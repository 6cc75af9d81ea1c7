//! `cargo xtask verify deploy`: the deployment in `deploy/` is one that AWS takes, and the app of the CDK makes the same.
//!
//! That the template is what the models make is a test of `deploy/shop`.

mod cdk;
mod compare;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::ArgMatches;
use serde_json::Value;

use super::figures::{Figures, Verdict};
use super::infrastructure::{Fault, Judged, tools::Tools, with_faults};
use super::planted::Bug;
use super::{Check, Common, Work, no_flags};
use crate::{Failure, out};
use compare::differences;

pub(super) const CHECK: Check = Check {
    name: "deploy",
    proves: "the deployment is one that AWS takes, and the CDK makes the same",
    how: "The template of deploy/ is read by cfn-lint without a finding. So is what the app of the AWS CDK there makes \
          with\n`cdk synth`, without credentials. Then both are compared: the same tables, keys, indexes and streams, \
          functions,\nmappings, alarms and rights. The same with faults, each of which must be found. Needs python3, \
          node, npm and the\npackage indexes; what is fetched stays below the target directory.",
    flags: no_flags,
    planted: &[Bug::WideRight],
    prepare,
};

fn prepare(common: &Common, _: &ArgMatches) -> Result<Work, Failure> {
    let is_planted = common.planted.is_some();
    Ok(Box::new(move || run(is_planted)))
}

const WIDE_RIGHT: Fault = Fault {
    right: "\"dynamodb:DeleteItem\"",
    wrong: "\"dynamodb:*\"",
};

/// What the linter must find in the template.
const LINT_FAULTS: &[Fault] = &[
    Fault {
        right: "\"IndexerRole\",",
        wrong: "\"IndexedRole\",",
    },
    Fault {
        right: "\"MaximumRetryAttempts\": -1",
        wrong: "\"MaximumRetryAttempts\": -2",
    },
    Fault {
        right: "\"provided.al2023\"",
        wrong: "\"provided.al2032\"",
    },
    Fault {
        right: "\"ComparisonOperator\"",
        wrong: "\"Comparison\"",
    },
];

/// What the linter has nothing against, and the comparison must find.
const COMPARED_FAULTS: &[Fault] = &[
    WIDE_RIGHT,
    Fault {
        right: "\"BisectBatchOnFunctionError\": true",
        wrong: "\"BisectBatchOnFunctionError\": false",
    },
    Fault {
        right: "\"StreamViewType\": \"NEW_IMAGE\"",
        wrong: "\"StreamViewType\": \"KEYS_ONLY\"",
    },
    Fault {
        right: "\"IndexName\": \"by_customer\"",
        wrong: "\"IndexName\": \"by_client\"",
    },
    Fault {
        right: "\"DeletionPolicy\": \"Retain\"",
        wrong: "\"DeletionPolicy\": \"Delete\"",
    },
    Fault {
        right: "\"FLOE_PARTITIONS\": \"1\"",
        wrong: "\"FLOE_PARTITIONS\": \"2\"",
    },
    Fault {
        right: "\"Threshold\": 3600000",
        wrong: "\"Threshold\": 3600",
    },
];

/// The rule of the linter against what the CDK writes of every function: that it depends on the role that it refers to.
const REDUNDANT_DEPENDENCY: &str = "W3005";

/// Where the deployment is.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy")
}

fn run(is_planted: bool) -> Result<Verdict, Failure> {
    let started = Instant::now();
    let mut template = fs::read_to_string(folder().join("cloudformation.json"))?;
    let synthesized = cdk::synthesize(&folder().join("cdk"))?;
    // The planted bug has the place of one of the faults.
    let compared_faults = if is_planted { &[] } else { COMPARED_FAULTS };
    if is_planted {
        template = WIDE_RIGHT.plant(&template)?;
    }
    let tools = Tools::install()?;
    let mut judged = Judged::default();
    judged.add(tools.lint(&with_faults(template.clone(), LINT_FAULTS)?, &[])?);
    let synthesized_alone = std::slice::from_ref(&synthesized);
    judged.add(tools.lint(synthesized_alone, &[REDUNDANT_DEPENDENCY])?);

    let (ours, theirs) = (parse(&template)?, parse(&synthesized)?);
    let differing = differences(&ours, &theirs);
    differing.iter().for_each(|line| out::note(line));
    let mut unseen = judged.unseen;
    for fault in compared_faults {
        let faulty = parse(&fault.plant(&template)?)?;
        if differences(&faulty, &theirs).len() <= differing.len() {
            out::note(&format!("a fault makes no difference: {}", fault.wrong));
            unseen += 1;
        }
    }
    let count = |kind: &str| compare::of_type(&ours, kind).count();
    let figures = Figures::new(CHECK.name)
        .put("resources", compare::of_type(&ours, "").count())
        .put("tables", count("AWS::DynamoDB::Table"))
        .put("streams", compare::streams(&ours))
        .put("functions", count("AWS::Lambda::Function"))
        .put("mappings", count("AWS::Lambda::EventSourceMapping"))
        .put("rights", compare::rights(&ours))
        .put("alarms", count("AWS::CloudWatch::Alarm"))
        .put("findings", judged.findings)
        .put("differences", differing.len())
        .put("faults", judged.faults + compared_faults.len())
        .put("unseen", unseen)
        .put("seconds", started.elapsed().as_secs());
    let is_clean = judged.findings == 0 && unseen == 0 && differing.is_empty();
    let planted = is_planted.then_some(!differing.is_empty());
    Ok(Verdict::new(figures, is_clean, planted))
}

fn parse(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text)
        .map_err(|error| Failure::Broken(format!("a template is not JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every fault has its place in the template, and makes a difference to it.
    #[test]
    fn every_fault_is_one() {
        let template = fs::read_to_string(folder().join("cloudformation.json")).unwrap();
        let right = parse(&template).unwrap();
        assert_eq!(differences(&right, &right), [""; 0]);
        for fault in COMPARED_FAULTS.iter().chain(LINT_FAULTS) {
            let faulty = parse(&fault.plant(&template).unwrap()).unwrap();
            let found = differences(&faulty, &right);
            assert!(!found.is_empty(), "{}", fault.wrong);
        }
    }
}
