//! The tools: cfn-lint, and botocore, the core of the AWS SDK for Python, which describes the API.

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

/// A script that checks inputs against the SDK's description of the API.
const CHECK_INPUTS: &str = include_str!("inputs.py");

/// The bits of cfn-lint's exit code for findings: errors, warnings, notices.
const FINDINGS: i32 = 2 | 4 | 8;

/// A Python environment with the tools. It is cached below the target directory, and rebuilt when the pinned versions
/// change.
pub(in crate::checks) struct Tools {
    environment: PathBuf,
    /// The documents to check; removed when this is dropped.
    documents: TempDir,
    /// Prevents other processes from changing the environment.
    _lock: File,
}

impl Tools {
    /// Creates the environment and fetches the tools, unless they are cached.
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

    /// Returns the linter's findings in each of the templates, without those of the ignored rules.
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
        let printed = String::from_utf8_lossy(&output.stdout);
        let is_judged = output
            .status
            .code()
            .is_some_and(|code| code & !FINDINGS == 0);
        if !is_judged || output.status.success() != printed.trim().is_empty() {
            return Err(failed(&lint, &output));
        }
        let found = files.iter().map(|file| {
            let begin = format!("{}:", file.display());
            let of_file = printed.lines().filter(|line| line.starts_with(&begin));
            of_file.map(str::to_owned).collect()
        });
        Ok(found.collect())
    }

    /// Returns the errors in each of the lists of inputs.
    pub(in crate::checks) fn check_inputs(
        &self,
        inputs: &[String],
    ) -> Result<Vec<Vec<String>>, Failure> {
        let files = self.write("inputs", inputs)?;
        let found = files.iter().map(|file| {
            let mut check = self.command("python");
            check.args(["-c", CHECK_INPUTS]).arg(file);
            let output = must_succeed(&mut check)?;
            let printed = String::from_utf8_lossy(&output.stdout);
            Ok(printed.lines().map(str::to_owned).collect())
        });
        found.collect()
    }

    /// Returns the command for a program of the environment.
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
