//! The minimum supported Rust version: no dependency needs a newer one than the workspace declares.
//!
//! Clippy checks the same for the standard library (`incompatible_msrv`), and CI builds with that version.

use serde_json::Value;

use super::fault::Fault;

/// The rule, as reported.
pub const SUPPORTED: &str = "no dependency needs a newer Rust than the workspace declares";

/// The packages in the output of `cargo metadata` that declare a newer Rust version than our own packages.
pub(crate) fn faults(metadata: &Value) -> Vec<Fault> {
    let packages = metadata.get("packages").and_then(Value::as_array);
    let packages: Vec<_> = packages.into_iter().flatten().collect();
    // A package without a source is ours.
    let is_ours = |package: &Value| package.get("source").is_none_or(Value::is_null);
    let ours = packages.iter().filter(|package| is_ours(package));
    let Some(minimum) = ours.filter_map(|package| rust_version(package)).min() else {
        let what = "no package of the workspace declares `rust-version`".to_owned();
        return vec![Fault::new(SUPPORTED, "Cargo.toml", 0, what)];
    };
    let theirs = packages.iter().filter(|package| !is_ours(package));
    let newer = theirs.filter(|package| rust_version(package) > Some(minimum));
    let fault = |package: &&Value| {
        let text = |key| package.get(key).and_then(Value::as_str).unwrap_or_default();
        let what = format!(
            "{} {} needs Rust {}: the workspace declares {}.{}",
            text("name"),
            text("version"),
            text("rust_version"),
            minimum.0,
            minimum.1
        );
        Fault::new(SUPPORTED, "Cargo.toml", 0, what)
    };
    newer.map(fault).collect()
}

/// The major and minor version that a package declares.
fn rust_version(package: &Value) -> Option<(u32, u32)> {
    let mut numbers = package.get("rust_version")?.as_str()?.split('.');
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next().map_or(Some(0), |minor| minor.parse().ok())?;
    Some((major, minor))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn newer_dependencies_are_faults() {
        let package = |name: &str, source: Option<&str>, version: Option<&str>| json!({ "name": name, "version": "1.0.0", "source": source, "rust_version": version });
        let registry = Some("registry+https://example.org/index");
        let metadata = json!({ "packages": [
            package("ours", None, Some("1.90")),
            package("old", registry, Some("1.56.1")),
            package("same", registry, Some("1.90.0")),
            package("silent", registry, None),
            package("new", registry, Some("1.91")),
            package("next", registry, Some("2")),
        ] });
        let found = faults(&metadata);
        let found: Vec<_> = found.iter().map(|fault| fault.what.as_str()).collect();
        assert_eq!(
            found,
            [
                "new 1.0.0 needs Rust 1.91: the workspace declares 1.90",
                "next 1.0.0 needs Rust 2: the workspace declares 1.90",
            ]
        );
    }

    #[test]
    fn workspace_without_a_declared_version_is_a_fault() {
        assert_eq!(faults(&json!({ "packages": [] })).len(), 1);
    }
}
