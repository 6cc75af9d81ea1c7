//! The prefix of table names: put on where a name goes out, taken off where it comes back.

use std::borrow::Cow;

use floe_store::limits::TABLE_NAME_CHARS;
use floe_store::{Error, Result};

/// How the names of tables here become names in the store, and back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    prefix: String,
}

impl Names {
    /// Names with this prefix in the store.
    pub(crate) fn new(prefix: &str) -> Result<Self> {
        let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if !prefix.chars().all(is_fit) || prefix.len() >= *TABLE_NAME_CHARS.end() {
            return Err(Error::Validation(format!(
                "a table prefix has letters, digits, '_', '.' and '-', and is shorter than the name of a \
                 table: prefix={prefix}"
            )));
        }
        Ok(Self {
            prefix: prefix.to_owned(),
        })
    }

    /// The prefix itself.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The name in the store.
    pub(crate) fn outside(&self, table_name: &str) -> String {
        format!("{}{table_name}", self.prefix)
    }

    /// The name here of a table in the store; `None` for a table that is not ours.
    pub(crate) fn inside<'n>(&self, outside: &'n str) -> Option<&'n str> {
        outside
            .strip_prefix(&self.prefix)
            .filter(|name| !name.is_empty())
    }

    /// Whether all of our tables come before this one, in the order of names.
    pub(crate) fn is_past(&self, outside: &str) -> bool {
        outside > self.prefix.as_str() && !outside.starts_with(&self.prefix)
    }

    /// The name here of a table that the store was asked for by name.
    pub(crate) fn own(&self, outside: String) -> String {
        match self.inside(&outside) {
            Some(name) => name.to_owned(),
            None => outside,
        }
    }

    /// A message of the store about these tables, with the names that they have here.
    pub(crate) fn message<'m>(&self, message: &'m str, tables: &[&str]) -> Cow<'m, str> {
        let mut message = Cow::Borrowed(message);
        if self.prefix.is_empty() {
            return message;
        }
        for table in tables {
            let outside = self.outside(table);
            if message.contains(&outside) {
                message = message.replace(&outside, table).into();
            }
        }
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_goes_out_and_comes_back() {
        for prefix in ["", "dev-", "a.b_C-9"] {
            let names = Names::new(prefix).unwrap();
            let outside = names.outside("Orders");
            assert_eq!(outside, format!("{prefix}Orders"));
            assert_eq!(names.inside(&outside), Some("Orders"));
            assert_eq!(names.own(outside), "Orders");
        }
    }

    #[test]
    fn tables_of_others_are_not_ours() {
        let names = Names::new("dev-").unwrap();
        for foreign in ["Orders", "prod-Orders", "dev-", "dev"] {
            assert_eq!(names.inside(foreign), None, "{foreign}");
        }
        assert_eq!(names.own("prod-Orders".to_owned()), "prod-Orders");
    }

    #[test]
    fn messages_speak_of_tables_by_their_names_here() {
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
    fn a_prefix_must_be_the_beginning_of_a_name() {
        for bad in ["dev ", "dév-", "a/b", &"x".repeat(255)] {
            assert!(Names::new(bad).is_err(), "{bad}");
        }
    }
}
