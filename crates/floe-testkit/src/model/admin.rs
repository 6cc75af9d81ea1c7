//! Table administration: creates, describes, changes and deletes tables.

use std::collections::BTreeMap;

use floe_store::op::*;
use floe_store::table::{TableDescription, TableHistory, TableStatus};
use floe_store::{Error, Result, TableDef};

use super::state::{State, Table};

impl State {
    pub(super) fn create_table(&mut self, input: &CreateTable) -> Result<TableDescription> {
        let definition = input.definition()?;
        let name = definition.name.clone();
        if self.tables.contains_key(&name) {
            return Err(Error::ResourceInUse(format!(
                "Table already exists: {name}"
            )));
        }
        let now = self.env.now();
        let table = Table {
            created: now,
            history: TableHistory::for_new_table(&definition, now),
            id: self.env.uuid(),
            items: BTreeMap::new(),
            latest_stream: definition
                .stream
                .map(|view| self.open_stream(&definition, view)),
            definition,
        };
        let description = self.describe(&table);
        self.tables.insert(name, table);
        Ok(description)
    }

    pub(super) fn describe_table(&mut self, table_name: &str) -> Result<TableDescription> {
        validate_table_name(table_name)?;
        self.table_named(table_name)?;
        self.description_of(table_name)
    }

    pub(super) fn update_table(&mut self, input: &UpdateTable) -> Result<TableDescription> {
        input.validate()?;
        let table = self.table_named(&input.table_name)?;
        let definition = input.apply(&table.definition)?;
        self.switch_stream(&definition);
        self.replace_definition(definition)
    }

    pub(super) fn delete_table(&mut self, table_name: &str) -> Result<TableDescription> {
        validate_table_name(table_name)?;
        let table = self.table_named(table_name)?;
        if table.definition.deletion_protection {
            return Err(Error::validation(
                "Resource cannot be deleted as it is currently protected against deletion. \
                 Disable deletion protection first.",
            ));
        }
        let latest_stream = table.latest_stream;
        let description = self.description_of(table_name)?;
        self.close_stream(latest_stream);
        self.tables.remove(table_name);
        Ok(TableDescription {
            status: TableStatus::Deleting,
            ..description
        })
    }

    pub(super) fn list_tables(&mut self, input: &ListTables) -> Result<ListTablesOutput> {
        input.validate()?;
        Ok(input.page(self.tables.keys()))
    }

    pub(super) fn update_time_to_live(
        &mut self,
        input: &UpdateTimeToLive,
    ) -> Result<TableDescription> {
        input.validate()?;
        let table = self.table_named(&input.table_name)?;
        let definition = input.apply(&table.definition)?;
        self.replace_definition(definition)
    }

    pub(super) fn update_tags(&mut self, input: &UpdateTags) -> Result<()> {
        input.validate()?;
        let table = self.table_named(&input.table_name)?;
        table.definition = input.apply(&table.definition)?;
        Ok(())
    }

    /// Replaces the definition of a table. Indexes need no update: they are computed when they are read.
    fn replace_definition(&mut self, definition: TableDef) -> Result<TableDescription> {
        let name = definition.name.clone();
        let now = self.env.now();
        let table = self.table_named(&name)?;
        table.history = table.history.after(&table.definition, &definition, now);
        table.definition = definition;
        self.description_of(&name)
    }

    fn description_of(&self, table_name: &str) -> Result<TableDescription> {
        let table = self.tables.get(table_name);
        let table = table.ok_or_else(|| missing_table_named(table_name))?;
        Ok(self.describe(table))
    }

    /// Opens or closes the stream of a table that is about to get this definition.
    fn switch_stream(&mut self, definition: &TableDef) {
        let Some(table) = self.tables.get(&definition.name) else {
            return;
        };
        match (table.definition.stream, definition.stream) {
            (None, Some(view)) => {
                let opened = self.open_stream(definition, view);
                if let Some(table) = self.tables.get_mut(&definition.name) {
                    table.latest_stream = Some(opened);
                }
            }
            (Some(_), None) => self.close_stream(table.latest_stream),
            _ => {}
        }
    }
}
