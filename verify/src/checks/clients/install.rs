//! Installs the clients from their public sources: boto3 and the AWS CLI from PyPI, the AWS SDK for JavaScript from
//! npm, in the versions pinned in `verify/clients`.
//!
//! They are cached below the target directory and fetched again only when the pinned versions change.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;
use crate::checks::tool::{install, must_succeed, npm_ci, target_folder};

/// The folder of the client programs.
pub(super) fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients")
}

/// The installed clients.
#[derive(Debug)]
pub(super) struct Installed {
    folder: PathBuf,
    /// Prevents other processes from changing the installation.
    _lock: File,
}

impl Installed {
    /// Fetches missing clients.
    pub(super) fn prepare() -> Result<Self, Failure> {
        let folder = target_folder()?.join("clients");
        fs::create_dir_all(&folder)?;
        let lock = File::create(folder.join("lock"))?;
        lock.lock()?;
        let installed = Self {
            folder,
            _lock: lock,
        };
        std::thread::scope(|scope| {
            let python = scope.spawn(|| installed.install_python());
            let javascript = installed.install_javascript();
            let python = python.join();
            python.map_err(|_| Failure::broken("a thread of the check panicked"))??;
            javascript
        })?;
        installed.copy_javascript()?;
        Ok(installed)
    }

    /// A program of the Python environment.
    pub(super) fn python(&self, name: &str) -> Command {
        Command::new(self.python_programs().join(name))
    }

    /// The folder of `python` and `aws`.
    pub(super) fn python_programs(&self) -> PathBuf {
        self.folder.join("python").join("bin")
    }

    /// The folder from which JavaScript programs can import the SDK.
    pub(super) fn javascript(&self) -> PathBuf {
        self.folder.join("javascript")
    }

    fn install_python(&self) -> Result<(), Failure> {
        let requirements = programs().join("requirements.txt");
        let folder = self.folder.join("python");
        let versions = fs::read_to_string(&requirements)?;
        install(&folder, &versions, "boto3 and the AWS CLI", || {
            let mut make = Command::new("python3");
            must_succeed(make.args(["-m", "venv"]).arg(&folder))?;
            let mut fetch = self.python("pip");
            fetch
                .args(["install", "--quiet", "--no-input"])
                .args(["--disable-pip-version-check", "--requirement"])
                .arg(&requirements);
            must_succeed(&mut fetch).map(drop)
        })
    }

    fn install_javascript(&self) -> Result<(), Failure> {
        npm_ci(
            &programs(),
            &self.javascript(),
            "the AWS SDK for JavaScript",
        )
    }

    /// JavaScript modules are resolved from their own folder upwards, so ours are copied to the SDK.
    fn copy_javascript(&self) -> Result<(), Failure> {
        for below in ["", "javascript_scenarios"] {
            let (from, to) = (programs().join(below), self.javascript().join(below));
            fs::create_dir_all(&to)?;
            for entry in fs::read_dir(from)? {
                let path = entry?.path();
                if path.extension().is_some_and(|extension| extension == "mjs") {
                    fs::copy(&path, to.join(path.file_name().unwrap_or_default()))?;
                }
            }
        }
        Ok(())
    }
}
