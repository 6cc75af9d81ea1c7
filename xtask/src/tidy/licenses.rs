//! Checks the licenses and sources of all dependencies against `deny.toml`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::fault::Fault;

/// The rule about licenses and sources, as reported.
pub const LICENSED: &str = "deny.toml allows the license and the source of every dependency";

/// The prefix of sources in a registry.
const REGISTRY: &str = "registry+";

/// Returns the licenses that `deny.toml` allows.
///
/// # Errors
///
/// When the file has no list of allowed licenses.
pub fn allowed(deny: &str) -> Result<BTreeSet<String>, String> {
    let section = deny.split("\n[licenses]\n").nth(1);
    let list = section.and_then(|section| section.split("allow = [").nth(1));
    let list = list.and_then(|list| list.split(']').next());
    let list = list.ok_or("deny.toml: no list of allowed licenses")?;
    let names = list.split(',').map(|name| name.trim().trim_matches('"'));
    Ok(names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect())
}

/// Reports the packages in the output of `cargo metadata` that are not allowed.
pub(crate) fn faults(metadata: &Value, allowed: &BTreeSet<String>) -> Vec<Fault> {
    let packages = metadata.get("packages").and_then(Value::as_array);
    let mut faults = Vec::new();
    for package in packages.into_iter().flatten() {
        let text = |key| package.get(key).and_then(Value::as_str);
        // A package without a source is ours.
        let (Some(name), Some(source)) = (text("name"), text("source")) else {
            continue;
        };
        let mut fault = |what: String| faults.push(Fault::new(LICENSED, "deny.toml", 0, what));
        if !source.starts_with(REGISTRY) {
            fault(format!("{name} comes from {source}"));
        }
        match text("license") {
            None => fault(format!("{name} declares no license")),
            Some(license) if !is_allowed(license, allowed) => fault(format!("{name}: {license}")),
            Some(_) => {}
        }
    }
    faults
}

/// Whether an SPDX expression is satisfied by the allowed licenses. `/` is the older form of `OR`.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let expression = expression.replace('/', " OR ");
    let expression = expression.replace('(', " ( ").replace(')', " ) ");
    let words: Vec<_> = expression.split_whitespace().collect();
    let mut parser = Parser {
        words: &words,
        allowed,
    };
    parser.any() == Some(true) && parser.words.is_empty()
}

/// A parser that evaluates SPDX expressions. `None` is a syntax error.
struct Parser<'a> {
    words: &'a [&'a str],
    allowed: &'a BTreeSet<String>,
}

impl Parser<'_> {
    fn next_is(&mut self, word: &str) -> bool {
        match self.words.split_first() {
            Some((first, rest)) if *first == word => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }

    fn any(&mut self) -> Option<bool> {
        let mut is_satisfied = self.all()?;
        while self.next_is("OR") {
            is_satisfied |= self.all()?;
        }
        Some(is_satisfied)
    }

    fn all(&mut self) -> Option<bool> {
        let mut is_satisfied = self.one()?;
        while self.next_is("AND") {
            is_satisfied &= self.one()?;
        }
        Some(is_satisfied)
    }

    fn one(&mut self) -> Option<bool> {
        if self.next_is("(") {
            let is_satisfied = self.any()?;
            return self.next_is(")").then_some(is_satisfied);
        }
        let (name, rest) = self.words.split_first()?;
        self.words = rest;
        let mut name = name.trim_end_matches('+').to_owned();
        if self.next_is("WITH") {
            let (exception, rest) = self.words.split_first()?;
            self.words = rest;
            name = format!("{name} WITH {exception}");
        }
        Some(self.allowed.contains(&name))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn allowed_licenses() -> BTreeSet<String> {
        ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]
            .map(str::to_owned)
            .into()
    }

    #[test]
    fn license_expressions_are_evaluated() {
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0-only", false),
            ("MIT OR GPL-3.0-only", true),
            ("MIT/GPL-3.0-only", true),
            ("MIT AND GPL-3.0-only", false),
            ("(MIT OR GPL-3.0-only) AND Apache-2.0", true),
            ("GPL-2.0-only AND MIT OR Apache-2.0", true),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("MIT WITH LLVM-exception", false),
            ("(MIT", false),
            ("MIT MIT", false),
            ("", false),
        ] {
            assert_eq!(
                is_allowed(expression, &allowed_licenses()),
                expected,
                "{expression}"
            );
        }
    }

    #[test]
    fn packages_that_are_not_allowed_are_reported() {
        let package = |name: &str, source: Option<&str>, license: Option<&str>| json!({ "name": name, "source": source, "license": license });
        let registry = Some("registry+https://example.org/index");
        let metadata = json!({ "packages": [
            package("ours", None, None),
            package("fine", registry, Some("MIT")),
            package("viral", registry, Some("GPL-3.0-only")),
            package("unlicensed", registry, None),
            package("forked", Some("git+https://example.org/x"), Some("MIT")),
        ] });
        let found = faults(&metadata, &allowed_licenses());
        let found: Vec<_> = found.iter().map(|fault| fault.what.as_str()).collect();
        assert_eq!(
            found,
            [
                "viral: GPL-3.0-only",
                "unlicensed declares no license",
                "forked comes from git+https://example.org/x",
            ]
        );
    }

    #[test]
    fn allowed_licenses_are_read_from_deny_toml() {
        let deny = "[graph]\n\n[licenses]\n# Why.\nallow = [\n  \"MIT\",\n  \"ISC\",\n]\n";
        let allowed = allowed(deny).unwrap();
        assert_eq!(allowed, ["MIT", "ISC"].map(str::to_owned).into());
        assert!(super::allowed("[bans]\n").is_err());
    }
}
