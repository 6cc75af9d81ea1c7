//! A violation of a rule.

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The rule.
    pub rule: String,
    /// The file, relative to the root.
    pub file: String,
    /// The line; 0 for the whole file.
    pub line: usize,
    /// What was found.
    pub what: String,
}

impl Fault {
    pub(crate) fn new(rule: &str, file: &str, line: usize, what: String) -> Self {
        Self {
            rule: rule.to_owned(),
            file: file.to_owned(),
            line,
            what,
        }
    }

    /// `file:line: what: rule`.
    pub fn line(&self) -> String {
        format!("{}:{}: {}: {}", self.file, self.line, self.what, self.rule)
    }
}
