//! `verify infrastructure`: CloudFormation and the AWS CLI accept our generated input.
//!
//! The judges are independent: CloudFormation's linter, and the API description in the AWS SDK. Both are installed from
//! PyPI for the check.

mod models;
pub(super) mod tools;

use std::time::Instant;

use clap::ArgMatches;
use floe::model::tables::{InfrastructureFormat, infrastructure, table_definitions};

use super::figures::{Figures, Verdict};
use super::planted::Bug;
use super::{Check, CheckRun, Common, no_flags};
use crate::{Failure, out};
use tools::Tools;

pub(super) const CHECK: Check = Check {
    name: "infrastructure",
    proves: "CloudFormation and the AWS CLI accept generated templates and inputs",
    how: "Models that use every feature of tables are written as a CloudFormation template, which cfn-lint \
          must accept,\nand as inputs of the AWS CLI, which are checked against the SDK's description of the API. \
          cfn-lint must also\naccept the template in the feed's documentation. The same with planted faults, each of \
          which must be found.\nNeeds python3 and access to PyPI; downloads stay below the target directory.",
    flags: no_flags,
    planted: &[Bug::UndefinedAttribute],
    prepare,
};

fn prepare(common: &Common, _: &ArgMatches) -> Result<CheckRun, Failure> {
    let is_planted = common.planted.is_some();
    Ok(Box::new(move || run(is_planted)))
}

/// A fault to plant in a document: the correct text, and its replacement.
pub(super) struct Fault {
    pub(super) right: &'static str,
    pub(super) wrong: &'static str,
}

const UNDEFINED_ATTRIBUTE: Fault = Fault {
    right: "\"AttributeName\": \"customer\",\n            \"AttributeType\"",
    wrong: "\"AttributeName\": \"consumer\",\n            \"AttributeType\"",
};

/// Faults that the linter must find in a template.
const TEMPLATE_FAULTS: &[Fault] = &[
    UNDEFINED_ATTRIBUTE,
    Fault {
        right: "\"BillingMode\"",
        wrong: "\"PayingMode\"",
    },
    Fault {
        right: "\"AttributeType\": \"N\"",
        wrong: "\"AttributeType\": \"NUMBER\"",
    },
    Fault {
        right: "\"TableName\": \"Plain\"",
        wrong: "\"TableName\": \"Orders\"",
    },
    Fault {
        right: "\"DeletionPolicy\": \"Retain\",",
        wrong: "",
    },
];

/// Faults that the linter must find in the template of the feed.
const FEED_FAULTS: &[Fault] = &[
    Fault {
        right: "FunctionName: !Ref Indexer",
        wrong: "FunctionName: !Ref Indexed",
    },
    Fault {
        right: "ParallelizationFactor: 1",
        wrong: "ParallelizationFactor: 11",
    },
    Fault {
        right: "StartingPosition: TRIM_HORIZON",
        wrong: "StartPosition: TRIM_HORIZON",
    },
];

/// Faults that must be found in the inputs of the AWS CLI.
const INPUT_FAULTS: &[Fault] = &[
    Fault {
        right: "\"KeySchema\"",
        wrong: "\"Keys\"",
    },
    Fault {
        right: "\"TableName\": \"Plain\"",
        wrong: "\"TableName\": 1",
    },
    Fault {
        right: "\"UpdateTimeToLive\"",
        wrong: "\"UpdateExpiry\"",
    },
];

impl Fault {
    /// Returns the document with the fault.
    pub(super) fn plant(&self, document: &str) -> Result<String, Failure> {
        if !document.contains(self.right) {
            let message = format!("cannot plant the fault: text={:?} is missing", self.right);
            return Err(Failure::Broken(message));
        }
        Ok(document.replacen(self.right, self.wrong, 1))
    }
}

/// Returns the document, and its variants with one fault each.
pub(super) fn with_faults(right: String, faults: &[Fault]) -> Result<Vec<String>, Failure> {
    let wrong = faults.iter().map(|fault| fault.plant(&right));
    let mut documents = wrong.collect::<Result<Vec<_>, _>>()?;
    documents.insert(0, right);
    Ok(documents)
}

fn run(is_planted: bool) -> Result<Verdict, Failure> {
    let started = Instant::now();
    let tables = table_definitions(&models::ALL)?;
    let indexes: usize = tables.iter().map(|table| table.indexes.len()).sum();
    let mut template = document(InfrastructureFormat::CloudFormation)?;
    if is_planted {
        template = UNDEFINED_ATTRIBUTE.plant(&template)?;
    }
    // The planted bug replaces the template faults.
    let template_faults = if is_planted { &[] } else { TEMPLATE_FAULTS };
    let templates = with_faults(template, template_faults)?;
    let inputs = with_faults(document(InfrastructureFormat::Json)?, INPUT_FAULTS)?;
    let feeds = with_faults(feed_template()?, FEED_FAULTS)?;

    let tools = Tools::install()?;
    let mut summary = LintSummary::default();
    summary.add(tools.lint(&templates, &[])?);
    summary.add(tools.lint(&feeds, &[])?);
    summary.add(tools.check_inputs(&inputs)?);
    let figures = Figures::new(CHECK.name)
        .put("templates", templates.len() + feeds.len())
        .put("inputs", inputs.len())
        .put("tables", tables.len())
        .put("indexes", indexes)
        .put("findings", summary.findings)
        .put("faults", summary.faults)
        .put("unseen", summary.unseen)
        .put("version", tools::LINTER_VERSION)
        .put("sdk_version", tools::SDK_VERSION)
        .put("seconds", started.elapsed().as_secs());
    let is_clean = summary.findings == 0 && summary.unseen == 0 && summary.faults > 0;
    let planted = is_planted.then_some(summary.findings > 0);
    Ok(Verdict::new(figures, is_clean, planted))
}

fn document(format: InfrastructureFormat) -> Result<String, Failure> {
    Ok(infrastructure(&models::ALL, format)?)
}

/// Returns the template in the documentation of the feed.
fn feed_template() -> Result<String, Failure> {
    let page = include_str!("../../../docs/operating-the-feed.md");
    let template = page.split("```yaml\n").nth(1);
    let template = template.and_then(|rest| rest.split("```").next());
    let template = template.ok_or_else(|| Failure::broken("the page contains no template"))?;
    Ok(template.to_owned())
}

/// The findings of the tools.
#[derive(Debug, Default)]
pub(super) struct LintSummary {
    /// Findings in correct documents.
    pub(super) findings: usize,
    /// Documents with a fault.
    pub(super) faults: usize,
    /// Documents with a fault in which nothing was found.
    pub(super) unseen: usize,
}

impl LintSummary {
    /// Adds the findings in each document; the first document is correct.
    pub(super) fn add(&mut self, documents: Vec<Vec<String>>) {
        for (number, findings) in documents.into_iter().enumerate() {
            if number == 0 {
                self.findings += findings.len();
                findings.iter().for_each(|finding| out::note(finding));
                continue;
            }
            self.faults += 1;
            if findings.is_empty() {
                self.unseen += 1;
                out::note(&format!("no finding in the faulty document {number}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_applies_to_its_document() {
        let cases = [
            (InfrastructureFormat::CloudFormation, TEMPLATE_FAULTS),
            (InfrastructureFormat::Json, INPUT_FAULTS),
        ];
        for (format, faults) in cases {
            let documents = with_faults(document(format).unwrap(), faults).unwrap();
            let different: std::collections::BTreeSet<_> = documents.iter().collect();
            assert_eq!(different.len(), faults.len() + 1);
        }
        let feeds = with_faults(feed_template().unwrap(), FEED_FAULTS).unwrap();
        assert_eq!(feeds.len(), FEED_FAULTS.len() + 1);
    }

    #[test]
    fn only_documents_with_a_fault_may_have_findings() {
        let found = || vec!["a finding".to_owned()];
        let mut summary = LintSummary::default();
        summary.add(vec![vec![], found(), vec![], found()]);
        summary.add(vec![found()]);
        let LintSummary {
            findings,
            faults,
            unseen,
        } = summary;
        assert_eq!((findings, faults, unseen), (1, 3, 1));
    }
}
