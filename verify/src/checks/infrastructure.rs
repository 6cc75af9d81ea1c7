//! `verify infrastructure`: what is written for CloudFormation and the AWS CLI is what these tools take.
//!
//! Others judge it: CloudFormation's linter, and the description of DynamoDB's API in the AWS SDK. Both are
//! installed from PyPI for the time of the check.

mod models;
pub(super) mod tools;

use std::time::Instant;

use clap::ArgMatches;
use floe::model::tables::{InfrastructureFormat, infrastructure, table_definitions};

use super::figures::{Figures, Verdict};
use super::planted::Bug;
use super::{Check, Common, Work, no_flags};
use crate::{Failure, out};
use tools::Tools;

pub(super) const CHECK: Check = Check {
    name: "infrastructure",
    proves: "templates and inputs of the AWS CLI are what these tools take",
    how: "Models that use everything a table can have become a CloudFormation template, which \
          cfn-lint reads without a\nfinding, and inputs of the AWS CLI, which are checked against \
          the SDK's description of the API. So does the template\nof the feed's documentation. The same with \
          faults, each of which must be found. Needs python3 and the package index; what is fetched stays below the target\n\
          directory.",
    flags: no_flags,
    planted: &[Bug::UndefinedAttribute],
    prepare,
};

fn prepare(common: &Common, _: &ArgMatches) -> Result<Work, Failure> {
    let is_planted = common.planted.is_some();
    Ok(Box::new(move || run(is_planted)))
}

/// Something wrong in a document: what stands there, and what stands there instead.
pub(super) struct Fault {
    pub(super) right: &'static str,
    pub(super) wrong: &'static str,
}

const UNDEFINED_ATTRIBUTE: Fault = Fault {
    right: "\"AttributeName\": \"customer\",\n            \"AttributeType\"",
    wrong: "\"AttributeName\": \"consumer\",\n            \"AttributeType\"",
};

/// What the linter must find in a template.
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

/// What the linter must find in the template of the feed.
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

/// What must be found in the inputs of the AWS CLI.
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
    /// The document with the fault in it.
    pub(super) fn plant(&self, document: &str) -> Result<String, Failure> {
        if !document.contains(self.right) {
            let message = format!("there is no place for a fault: text={:?}", self.right);
            return Err(Failure::Broken(message));
        }
        Ok(document.replacen(self.right, self.wrong, 1))
    }
}

/// A document, and the same with each of the faults.
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
    // The planted bug has the place of one of the faults.
    let template_faults = if is_planted { &[] } else { TEMPLATE_FAULTS };
    let templates = with_faults(template, template_faults)?;
    let inputs = with_faults(document(InfrastructureFormat::Json)?, INPUT_FAULTS)?;
    let feeds = with_faults(feed_template()?, FEED_FAULTS)?;

    let tools = Tools::install()?;
    let mut judged = Judged::default();
    judged.add(tools.lint(&templates, &[])?);
    judged.add(tools.lint(&feeds, &[])?);
    judged.add(tools.check_inputs(&inputs)?);
    let figures = Figures::new(CHECK.name)
        .put("templates", templates.len() + feeds.len())
        .put("inputs", inputs.len())
        .put("tables", tables.len())
        .put("indexes", indexes)
        .put("findings", judged.findings)
        .put("faults", judged.faults)
        .put("unseen", judged.unseen)
        .put("version", tools::LINTER_VERSION)
        .put("sdk_version", tools::SDK_VERSION)
        .put("seconds", started.elapsed().as_secs());
    let is_clean = judged.findings == 0 && judged.unseen == 0 && judged.faults > 0;
    let planted = is_planted.then_some(judged.findings > 0);
    Ok(Verdict::new(figures, is_clean, planted))
}

fn document(format: InfrastructureFormat) -> Result<String, Failure> {
    Ok(infrastructure(&models::ALL, format)?)
}

/// The template that the documentation of the feed shows.
fn feed_template() -> Result<String, Failure> {
    let page = include_str!("../../../docs/operating-the-feed.md");
    let template = page.split("```yaml\n").nth(1);
    let template = template.and_then(|rest| rest.split("```").next());
    let template = template.ok_or_else(|| Failure::broken("the page shows no template"))?;
    Ok(template.to_owned())
}

/// What the tools said of the documents.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// Found where nothing is wrong.
    pub(super) findings: usize,
    /// Documents with a fault.
    pub(super) faults: usize,
    /// Those of them in which nothing was found.
    pub(super) unseen: usize,
}

impl Judged {
    /// Takes the findings in each document, of which the first is right.
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
                out::note(&format!(
                    "nothing was found in the faulty document {number}"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_its_place() {
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
    fn the_first_document_must_be_clean_and_the_others_not() {
        let found = || vec!["a finding".to_owned()];
        let mut judged = Judged::default();
        judged.add(vec![vec![], found(), vec![], found()]);
        judged.add(vec![found()]);
        let Judged {
            findings,
            faults,
            unseen,
        } = judged;
        assert_eq!((findings, faults, unseen), (1, 3, 1));
    }
}
