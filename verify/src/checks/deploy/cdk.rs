//! The AWS CDK app: installed, built and synthesized below the target directory, without credentials.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use crate::Failure;
use crate::checks::tool::{must_succeed, npm_ci, target_folder};

/// Returns the template that the app generates.
pub(super) fn synthesize(app: &Path) -> Result<String, Failure> {
    let folder = target_folder()?.join("deploy");
    fs::create_dir_all(&folder)?;
    let lock = File::create(folder.join("lock"))?;
    lock.lock()?;
    let built = folder.join("cdk");
    npm_ci(app, &built, "the AWS CDK")?;
    for file in ["app.ts", "cdk.json", "tables.json", "tsconfig.json"] {
        fs::copy(app.join(file), built.join(file))?;
    }
    fs::create_dir_all(built.join("lib"))?;
    for entry in fs::read_dir(app.join("lib"))? {
        let entry = entry?;
        fs::copy(entry.path(), built.join("lib").join(entry.file_name()))?;
    }
    let tool = |name: &str| {
        let mut tool = Command::new(built.join("node_modules/.bin").join(name));
        tool.current_dir(&built);
        tool
    };
    must_succeed(&mut tool("tsc"))?;
    let output = tempfile::tempdir()?;
    let mut synth = tool("cdk");
    synth
        .args([
            "synth",
            "--quiet",
            "--no-notices",
            "--no-lookups",
            "--output",
        ])
        .arg(output.path())
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env_remove("AWS_PROFILE");
    must_succeed(&mut synth)?;
    Ok(fs::read_to_string(
        output.path().join("Shop.template.json"),
    )?)
}
