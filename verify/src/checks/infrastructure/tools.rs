//! The tools that judge: cfn-lint, and the core of the AWS SDK for Python, which describes the API.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::Failure;
use crate::checks::tool::{failed, install, must_succeed, run, target_folder};

/// The version of cfn-lint.
pub(super) const LINTER_VERSION: &str = "1.58.0";

/// The version of botocore, the core of the SDK.
pub(super) const SDK_VERSION: &str = "1.44.0";

/// Checks inputs against the SDK's description of the API.
const CHECK_INPUTS: &str = include_str!("inputs.py");

/// The bits of cfn-lint's exit code that mean findings: errors, warnings, remarks.
const FINDINGS: i32 = 2 | 4 | 8;

/// An environment of Python with the tools in it. It is kept below the target directory, and fetched again when other
/// versions are asked for.
pub(in crate::checks) struct Tools {
    environment: PathBuf,
    /// What is judged; gone when this is.
    documents: TempDir,
    /// Nobody else changes the environment while this is there.
    _lock: File,
}

impl Tools {
    /// Makes the environment and fetches the tools, unless they are there.
    pub(in crate::checks) fn install() -> Result<Self, Failure> {
        let folder = target_folder()?.join("infrastructure");
        fs::create_dir_all(&folder)?;
        let lock = File::create(folder.join("lock"))?;
        lock.lock()?;
        let tools = Self {
            environment: folder.join("python"),
            documents: tempfile::tempdir()?,
            _lock: lock,
        };
        let packages = [
            format!("cfn-lint=={LINTER_VERSION}"),
            format!("botocore=={SDK_VERSION}"),
        ];
        let versions = packages.join(" ");
        install(
            &tools.environment,
            &versions,
            "cfn-lint and botocore",
            || {
                let mut make = Command::new("python3");
                must_succeed(make.args(["-m", "venv"]).arg(&tools.environment))?;
                let mut fetch = tools.command("pip");
                fetch
                    .args(["install", "--quiet", "--no-input"])
                    .arg("--disable-pip-version-check")
                    .args(&packages);
                must_succeed(&mut fetch).map(drop)
            },
        )?;
        Ok(tools)
    }

    /// What the linter finds in each of the templates, but for what is against these rules.
    pub(in crate::checks) fn lint(
        &self,
        templates: &[String],
        ignored: &[&str],
    ) -> Result<Vec<Vec<String>>, Failure> {
        let files = self.write("template", templates)?;
        let mut lint = self.command("cfn-lint");
        lint.args(["--format", "parseable", "--include-checks", "I"]);
        for rule in ignored {
            lint.args(["--ignore-checks", rule]);
        }
        lint.arg("--").args(&files);
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
    pub(in crate::checks) fn check_inputs(
        &self,
        inputs: &[String],
    ) -> Result<Vec<Vec<String>>, Failure> {
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
        Command::new(self.environment.join("bin").join(name))
    }

    fn write(&self, name: &str, documents: &[String]) -> Result<Vec<PathBuf>, Failure> {
        let write = |(number, document): (usize, &String)| {
            let file = self.documents.path().join(format!("{name}-{number}.json"));
            fs::write(&file, document)?;
            Ok(file)
        };
        documents.iter().enumerate().map(write).collect()
    }
}
