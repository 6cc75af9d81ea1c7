//! ListTables: lists the names of tables in order.

use super::constraint::Faults;
use crate::error::Result;
use crate::limits::LIST_TABLES_MAX;

/// Lists the names of tables page by page.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListTables {
    /// The name after which the page starts.
    pub start_after: Option<String>,
    /// Maximum number of names, up to 100.
    pub limit: Option<usize>,
}

impl ListTables {
    /// Checks the request.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB reports first.
    pub fn validate(&self) -> Result<()> {
        Faults::check(|faults| self.add_faults(faults))
    }

    /// Adds the faults of lengths and ranges, which one error lists together.
    pub fn add_faults(&self, faults: &mut Faults) {
        faults.limit(self.limit, LIST_TABLES_MAX);
        if let Some(name) = &self.start_after {
            faults.table_name_by_pattern_at(name, "exclusiveStartTableName");
        }
    }

    /// Returns the page for this request from all names in ascending order.
    ///
    /// ```
    /// use floe_store::op::ListTables;
    ///
    /// let list = ListTables { start_after: Some("Clicks".into()), limit: Some(1) };
    /// let page = list.page(["Carts", "Clicks", "Orders", "Users"]);
    /// assert_eq!(page.table_names, ["Orders"]);
    /// assert_eq!(page.last_name.as_deref(), Some("Orders"));
    /// ```
    pub fn page<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> ListTablesOutput {
        let start = self.start_after.as_deref();
        let mut names = names
            .into_iter()
            .filter(|name| start.is_none_or(|start| name.as_ref() > start));
        let limit = self.limit.unwrap_or(LIST_TABLES_MAX);
        let page = names.by_ref().take(limit);
        let table_names: Vec<String> = page.map(|name| name.as_ref().to_owned()).collect();
        let more = names.next().is_some();
        ListTablesOutput {
            last_name: table_names.last().filter(|_| more).cloned(),
            table_names,
        }
    }
}

/// A page of names.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListTablesOutput {
    /// The names, ascending.
    pub table_names: Vec<String>,
    /// The name after which the next page starts; `None` on the last page.
    pub last_name: Option<String>,
}
