//! The prefix of table names, added to requests and removed from responses.

use std::borrow::Cow;

use floe_store::limits::TABLE_NAME_CHARS;
use floe_store::{Error, Result};

/// Maps table names to names in the store, and back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    prefix: String,
}

impl Names {
    /// Returns names with this prefix in the store.
    pub(crate) fn new(prefix: &str) -> Result<Self> {
        let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if !prefix.chars().all(is_fit) || prefix.len() >= *TABLE_NAME_CHARS.end() {
            return Err(Error::Validation(format!(
                "a table prefix consists of letters, digits, '_', '.' and '-', and is shorter than a table name: \
                 prefix={prefix}"
            )));
        }
        Ok(Self {
            prefix: prefix.to_owned(),
        })
    }

    /// Returns the prefix.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Adds the prefix to a table name.
    pub(crate) fn with_prefix(&self, table_name: &str) -> String {
        format!("{}{table_name}", self.prefix)
    }

    /// Removes the prefix from a name in the store; `None` for a table without the prefix.
    pub(crate) fn without_prefix<'n>(&self, stored_name: &'n str) -> Option<&'n str> {
        stored_name
            .strip_prefix(&self.prefix)
            .filter(|name| !name.is_empty())
    }

    /// Whether all names with the prefix sort before this one.
    pub(crate) fn is_past(&self, stored_name: &str) -> bool {
        stored_name > self.prefix.as_str() && !stored_name.starts_with(&self.prefix)
    }

    /// Removes the prefix from a name in a response, if it has the prefix.
    pub(crate) fn remove_prefix(&self, stored_name: String) -> String {
        match self.without_prefix(&stored_name) {
            Some(name) => name.to_owned(),
            None => stored_name,
        }
    }

    /// Removes the prefix of these tables from a message of the store.
    pub(crate) fn message<'m>(&self, message: &'m str, tables: &[&str]) -> Cow<'m, str> {
        let mut message = Cow::Borrowed(message);
        if self.prefix.is_empty() {
            return message;
        }
        for table in tables {
            let stored_name = self.with_prefix(table);
            if message.contains(&stored_name) {
                message = message.replace(&stored_name, table).into();
            }
        }
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for prefix in ["", "dev-", "a.b_C-9"] {
            let names = Names::new(prefix).unwrap();
            let stored_name = names.with_prefix("Orders");
            assert_eq!(stored_name, format!("{prefix}Orders"));
            assert_eq!(names.without_prefix(&stored_name), Some("Orders"));
            assert_eq!(names.remove_prefix(stored_name), "Orders");
        }
    }

    #[test]
    fn other_prefixes_are_not_removed() {
        let names = Names::new("dev-").unwrap();
        for foreign in ["Orders", "prod-Orders", "dev-", "dev"] {
            assert_eq!(names.without_prefix(foreign), None, "{foreign}");
        }
        assert_eq!(names.remove_prefix("prod-Orders".to_owned()), "prod-Orders");
    }

    #[test]
    fn messages_contain_names_without_prefix() {
        let names = Names::new("dev-").unwrap();
        let message = "Requested resource not found: Table: dev-Orders not found";
        assert_eq!(
            names.message(message, &["Users", "Orders"]),
            "Requested resource not found: Table: Orders not found"
        );
        assert_eq!(names.message(message, &["Users"]), message);
        assert_eq!(Names::default().message(message, &["Orders"]), message);
    }

    #[test]
    fn invalid_prefix_is_rejected() {
        for bad in ["dev ", "dév-", "a/b", &"x".repeat(255)] {
            assert!(Names::new(bad).is_err(), "{bad}");
        }
    }
}
