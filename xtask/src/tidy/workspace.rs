//! The packages to check: their targets and dependencies, as reported by cargo, and the text of their files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

use serde_json::Value;

/// Everything that is checked. Paths are relative to the root and separated by `/`.
#[derive(Debug, Default)]
pub struct Workspace {
    pub(crate) packages: Vec<Package>,
    /// The text of every `.rs` file and every `Cargo.toml` of the packages.
    pub(crate) files: BTreeMap<String, String>,
    /// The text of every `.md` file of the project.
    pub(crate) prose: BTreeMap<String, String>,
}

/// A package.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) folder: String,
    pub(crate) targets: Vec<Target>,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A target of a package.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) is_lib: bool,
    /// Whether it is a test, a benchmark or an example of the package.
    pub(crate) is_test: bool,
    pub(crate) root: String,
}

/// A dependency of a package.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) is_dev: bool,
}

impl Workspace {
    /// Creates a library without dependencies, from the texts of its files below `src/`.
    pub fn of_library(name: &str, files: &[(&str, &str)]) -> Self {
        let folder = format!("crates/{name}");
        let files = files.iter();
        let files = files.map(|(path, text)| (format!("{folder}/src/{path}"), (*text).to_owned()));
        let target = Target {
            name: name.to_owned(),
            is_lib: true,
            is_test: false,
            root: format!("{folder}/src/lib.rs"),
        };
        let package = Package {
            name: name.to_owned(),
            folder: folder.clone(),
            targets: vec![target],
            dependencies: Vec::new(),
        };
        Self {
            files: files.collect(),
            packages: vec![package],
            prose: BTreeMap::new(),
        }
    }

    /// Reads the packages of these manifests.
    ///
    /// # Errors
    ///
    /// When cargo cannot read a manifest, or a file cannot be read.
    pub fn load(root: &Path, manifests: &[&str]) -> Result<Self, String> {
        let root = root
            .canonicalize()
            .map_err(|error| format!("{}: {error}", root.display()))?;
        let mut workspace = Self::default();
        for manifest in manifests {
            let metadata = metadata(&root.join(manifest))?;
            for package in list(&metadata, "packages") {
                workspace.packages.push(read_package(&root, package)?);
            }
        }
        for package in &workspace.packages {
            let folder = root.join(&package.folder);
            let is_code = |name: &str| name.ends_with(".rs") || name == "Cargo.toml";
            read_files(&root, &folder, &is_code, &mut workspace.files)
                .map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        let is_prose = |name: &str| name.ends_with(".md");
        read_files(&root, &root, &is_prose, &mut workspace.prose)
            .map_err(|error| format!("{}: {error}", root.display()))?;
        Ok(workspace)
    }
}

/// Returns the output of `cargo metadata` for a manifest's own packages.
fn metadata(manifest: &Path) -> Result<Value, String> {
    cargo_metadata(manifest, &["--no-deps", "--offline"])
}

/// Returns the output of `cargo metadata` for all dependencies of a manifest, with every optional feature.
///
/// # Errors
///
/// When cargo cannot resolve the dependencies.
pub(crate) fn dependencies(manifest: &Path) -> Result<Value, String> {
    cargo_metadata(manifest, &["--locked", "--all-features"])
}

fn cargo_metadata(manifest: &Path, flags: &[&str]) -> Result<Value, String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1"])
        .args(flags)
        .arg("--manifest-path")
        .arg(manifest)
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo metadata: {}", message.trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

fn read_package(root: &Path, package: &Value) -> Result<Package, String> {
    let manifest = PathBuf::from(text(package, "manifest_path")?);
    let folder = manifest.parent().unwrap_or(root);
    let mut targets = Vec::new();
    for target in list(package, "targets") {
        let has_kind = |names: &[&str]| {
            let mut kinds = list(target, "kind").filter_map(Value::as_str);
            kinds.any(|kind| names.contains(&kind))
        };
        targets.push(Target {
            name: text(target, "name")?,
            is_lib: has_kind(&["lib", "rlib", "proc-macro", "cdylib", "staticlib"]),
            is_test: has_kind(&["test", "bench", "example"]),
            root: relative(root, Path::new(&text(target, "src_path")?)),
        });
    }
    let mut dependencies = Vec::new();
    for dependency in list(package, "dependencies") {
        dependencies.push(Dependency {
            name: text(dependency, "name")?,
            is_dev: text(dependency, "kind").is_ok_and(|kind| kind == "dev"),
        });
    }
    Ok(Package {
        name: text(package, "name")?,
        folder: relative(root, folder),
        targets,
        dependencies,
    })
}

fn list<'v>(of: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    of.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn text(of: &Value, key: &str) -> Result<String, String> {
    let value = of.get(key).and_then(Value::as_str).map(str::to_owned);
    value.ok_or_else(|| format!("cargo metadata: no {key} in {of}"))
}

/// Returns a path relative to the root, separated by `/`.
fn relative(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

/// Reads the files below a folder whose name `is_read` accepts, without build output.
fn read_files(
    root: &Path,
    folder: &Path,
    is_read: &dyn Fn(&str) -> bool,
    files: &mut BTreeMap<String, String>,
) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if name != "target" && name != "node_modules" && !name.starts_with('.') {
                read_files(root, &path, is_read, files)?;
            }
        } else if is_read(&name) {
            let text = fs::read_to_string(&path)?;
            files.insert(relative(root, &path), text);
        }
    }
    Ok(())
}
