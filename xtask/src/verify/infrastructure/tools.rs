//! The tools that judge: cfn-lint, and the core of the AWS SDK for Python, which describes the API.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::super::tool::{failed, must_succeed, run};
use crate::Failure;

/// The version of cfn-lint.
pub(super) const LINTER_VERSION: &str = "1.58.0";

/// The version of botocore, the core of the SDK.
pub(super) const SDK_VERSION: &str = "1.44.0";

/// Checks inputs against the SDK's description of the API.
const CHECK_INPUTS: &str = include_str!("inputs.py");

/// The bits of cfn-lint's exit code that mean findings: errors, warnings, remarks.
const FINDINGS: i32 = 2 | 4 | 8;

/// An environment of Python with the tools in it, which is gone when this is.
pub(super) struct Tools(TempDir);

impl Tools {
    /// Makes the environment and fetches the tools.
    pub(super) fn install() -> Result<Self, Failure> {
        let tools = Self(tempfile::tempdir()?);
        let mut make = Command::new("python3");
        make.args(["-m", "venv"]).arg(tools.0.path().join("venv"));
        must_succeed(&mut make)?;
        let mut install = tools.command("pip");
        install
            .args(["install", "--quiet", "--no-input"])
            .arg("--disable-pip-version-check")
            .arg(format!("cfn-lint=={LINTER_VERSION}"))
            .arg(format!("botocore=={SDK_VERSION}"));
        must_succeed(&mut install)?;
        Ok(tools)
    }

    /// What the linter finds in each of the templates.
    pub(super) fn lint(&self, templates: &[String]) -> Result<Vec<Vec<String>>, Failure> {
        let files = self.write("template", templates)?;
        let mut lint = self.command("cfn-lint");
        lint.args(["--format", "parseable", "--include-checks", "I", "--"])
            .args(&files);
        let output = run(&mut lint)?;
        let told = String::from_utf8_lossy(&output.stdout);
        let is_judged = output
            .status
            .code()
            .is_some_and(|code| code & !FINDINGS == 0);
        if !is_judged || output.status.success() != told.trim().is_empty() {
            return Err(failed(&lint, &output));
        }
        let found = files.iter().map(|file| {
            let begin = format!("{}:", file.display());
            let of_file = told.lines().filter(|line| line.starts_with(&begin));
            of_file.map(str::to_owned).collect()
        });
        Ok(found.collect())
    }

    /// What is wrong with each of the lists of inputs.
    pub(super) fn check_inputs(&self, inputs: &[String]) -> Result<Vec<Vec<String>>, Failure> {
        let files = self.write("inputs", inputs)?;
        let found = files.iter().map(|file| {
            let mut check = self.command("python");
            check.args(["-c", CHECK_INPUTS]).arg(file);
            let output = must_succeed(&mut check)?;
            let told = String::from_utf8_lossy(&output.stdout);
            Ok(told.lines().map(str::to_owned).collect())
        });
        found.collect()
    }

    /// A program of the environment.
    fn command(&self, name: &str) -> Command {
        Command::new(self.0.path().join("venv").join("bin").join(name))
    }

    fn write(&self, name: &str, documents: &[String]) -> Result<Vec<PathBuf>, Failure> {
        let write = |(number, document): (usize, &String)| {
            let file = self.0.path().join(format!("{name}-{number}.json"));
            std::fs::write(&file, document)?;
            Ok(file)
        };
        documents.iter().enumerate().map(write).collect()
    }
}
