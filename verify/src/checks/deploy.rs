//! `cargo xtask verify deploy`: AWS accepts the deployment in `deploy/`, and the CDK app generates the same resources.
//!
//! A test of `deploy/shop` checks that the template is generated from the models.

mod cdk;
mod compare;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::ArgMatches;
use serde_json::Value;

use super::figures::{Figures, Verdict};
use super::infrastructure::{Fault, LintSummary, tools::Tools, with_faults};
use super::planted::Bug;
use super::{Check, CheckRun, Common, no_flags};
use crate::{Failure, out};
use compare::differences;

pub(super) const CHECK: Check = Check {
    name: "deploy",
    proves: "AWS accepts the deployment, and the CDK app generates the same resources",
    how: "cfn-lint checks the template of deploy/, and the output of `cdk synth` for the AWS CDK app there, run without\n\
          credentials. Then both are compared: the same tables, keys, indexes and streams, functions, mappings, alarms\n\
          and permissions. The same with planted faults, each of which must be found. Needs python3, node, npm, and\n\
          access to PyPI and npm; downloads stay below the target directory.",
    flags: no_flags,
    planted: &[Bug::WideRight],
    prepare,
};

fn prepare(common: &Common, _: &ArgMatches) -> Result<CheckRun, Failure> {
    let is_planted = common.planted.is_some();
    Ok(Box::new(move || run(is_planted)))
}

const WIDE_RIGHT: Fault = Fault {
    right: "\"dynamodb:DeleteItem\"",
    wrong: "\"dynamodb:*\"",
};

/// Faults that the linter must find in the template.
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

/// Faults that the linter accepts and the comparison must find.
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

/// The linter's rule against explicit dependencies of functions on their roles, which the CDK always writes.
const REDUNDANT_DEPENDENCY: &str = "W3005";

/// The folder of the deployment.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy")
}

fn run(is_planted: bool) -> Result<Verdict, Failure> {
    let started = Instant::now();
    let mut template = fs::read_to_string(folder().join("cloudformation.json"))?;
    let synthesized = cdk::synthesize(&folder().join("cdk"))?;
    // The planted bug replaces the comparison faults.
    let compared_faults = if is_planted { &[] } else { COMPARED_FAULTS };
    if is_planted {
        template = WIDE_RIGHT.plant(&template)?;
    }
    let tools = Tools::install()?;
    let mut summary = LintSummary::default();
    summary.add(tools.lint(&with_faults(template.clone(), LINT_FAULTS)?, &[])?);
    let synthesized_alone = std::slice::from_ref(&synthesized);
    summary.add(tools.lint(synthesized_alone, &[REDUNDANT_DEPENDENCY])?);

    let (ours, theirs) = (parse(&template)?, parse(&synthesized)?);
    let differing = differences(&ours, &theirs);
    differing.iter().for_each(|line| out::note(line));
    let mut unseen = summary.unseen;
    for fault in compared_faults {
        let faulty = parse(&fault.plant(&template)?)?;
        if differences(&faulty, &theirs).len() <= differing.len() {
            out::note(&format!(
                "a planted fault makes no difference: {}",
                fault.wrong
            ));
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
        .put("findings", summary.findings)
        .put("differences", differing.len())
        .put("faults", summary.faults + compared_faults.len())
        .put("unseen", unseen)
        .put("seconds", started.elapsed().as_secs());
    let is_clean = summary.findings == 0 && unseen == 0 && differing.is_empty();
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

    /// Every fault applies to the template and changes it.
    #[test]
    fn every_fault_changes_the_template() {
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
