//! Table operations, which may need several requests.
//!
//! Tags and TTL have their own requests, so describing a table takes three. Creating a table with TTL waits until it is
//! active, because TTL can be enabled only then.

use std::collections::BTreeMap;

use floe_store::limits::{LIST_TABLES_MAX, TABLE_NAME_CHARS};
use floe_store::op::{
    CreateIndex, CreateTable, IndexUpdate, KeyRole, ListTables, ListTablesOutput, UpdateTable,
    UpdateTags, UpdateTimeToLive, validate_table_name,
};
use floe_store::table::{TableDescription, TableStatus};
use floe_store::{Error, Name, Result};

use super::Operations;

/// Maximum number of status checks of a new table, over about two minutes.
const STATUS_CHECKS_MAX: u32 = 120;

impl Operations {
    pub(crate) async fn create_table(&self, input: CreateTable) -> Result<TableDescription> {
        input.validate()?;
        self.check_table(&input)?;
        let mut table = self.write(|| self.client.create_table(&input)).await?;
        if let Some(attribute) = &input.ttl_attribute {
            let expiry = UpdateTimeToLive::enable(&input.table_name, attribute);
            table = self
                .enable_ttl(&expiry)
                .await
                .map_err(|error| partly_created(&error))?;
            table.definition.ttl_attribute = input.ttl_attribute;
        }
        table.definition.tags = input.tags;
        Ok(table)
    }

    fn check_table(&self, input: &CreateTable) -> Result<()> {
        let can = &self.capabilities;
        self.require(can.streams || input.stream.is_none(), "change streams")?;
        let expires = input.ttl_attribute.is_some();
        self.require(can.expiry || !expires, "expiry of items")?;
        self.check_indexes(input.indexes.iter())
    }

    fn check_indexes<'i>(&self, mut indexes: impl Iterator<Item = &'i CreateIndex>) -> Result<()> {
        let can = self.capabilities.multi_attribute_keys || !indexes.any(has_multi_attribute_key);
        self.require(can, "index keys with several attributes")
    }

    /// Waits until a new table is active, and enables TTL.
    async fn enable_ttl(&self, expiry: &UpdateTimeToLive) -> Result<TableDescription> {
        let mut checks = 0;
        let table = loop {
            let table = self.describe_without_details(&expiry.table_name).await?;
            checks += 1;
            if table.status == TableStatus::Active {
                break table;
            }
            if checks == STATUS_CHECKS_MAX {
                return Err(Error::Internal(format!(
                    "the table is not ready: table={} status={}",
                    expiry.table_name,
                    table.status.as_str()
                )));
            }
            self.retry.pause(checks).await;
        };
        self.write(|| self.client.update_time_to_live(expiry))
            .await?;
        Ok(table)
    }

    pub(crate) async fn describe_table(&self, table_name: String) -> Result<TableDescription> {
        self.describe(&table_name).await
    }

    async fn describe(&self, table_name: &str) -> Result<TableDescription> {
        validate_table_name(table_name)?;
        let table = self.describe_without_details(table_name).await?;
        self.add_details(table).await
    }

    /// Describes a table without its tags and TTL attribute.
    async fn describe_without_details(&self, table_name: &str) -> Result<TableDescription> {
        self.read(|| self.client.describe_table(table_name)).await
    }

    /// Adds the tags and the TTL attribute to a description.
    async fn add_details(&self, mut table: TableDescription) -> Result<TableDescription> {
        // Not available while a table is being created or deleted.
        if matches!(table.status, TableStatus::Active | TableStatus::Updating) {
            let ttl = self.ttl_attribute(&table.definition.name);
            let (ttl, tags) = tokio::try_join!(ttl, self.tags(&table.arn))?;
            table.definition.ttl_attribute = ttl;
            table.definition.tags = tags;
        }
        Ok(table)
    }

    async fn ttl_attribute(&self, table_name: &str) -> Result<Option<Name>> {
        if !self.capabilities.expiry {
            return Ok(None);
        }
        self.read(|| self.client.ttl_attribute(table_name)).await
    }

    async fn tags(&self, arn: &str) -> Result<BTreeMap<String, String>> {
        let (mut tags, mut next) = (BTreeMap::new(), None);
        loop {
            let (page, more) = self.read(|| self.client.tags(arn, next.clone())).await?;
            tags.extend(page);
            match more {
                Some(token) => next = Some(token),
                None => return Ok(tags),
            }
        }
    }

    pub(crate) async fn update_table(&self, input: UpdateTable) -> Result<TableDescription> {
        input.validate()?;
        let wants_stream = input.stream.is_some_and(|view| view.is_some());
        self.require(self.capabilities.streams || !wants_stream, "change streams")?;
        self.check_indexes(input.indexes.iter().filter_map(|update| match update {
            IndexUpdate::Create(index) => Some(index),
            IndexUpdate::Update(..) | IndexUpdate::Scale(..) | IndexUpdate::Delete(_) => None,
        }))?;
        let table = self.write(|| self.client.update_table(&input)).await?;
        self.add_details(table)
            .await
            .map_err(|error| partly_applied(&error))
    }

    /// Deletes a table. It is described first, because the store returns little more than its name afterwards.
    pub(crate) async fn delete_table(&self, table_name: String) -> Result<TableDescription> {
        let mut table = self.describe(&table_name).await?;
        self.write(|| self.client.delete_table(&table_name)).await?;
        table.status = TableStatus::Deleting;
        Ok(table)
    }

    pub(crate) async fn list_tables(&self, input: ListTables) -> Result<ListTablesOutput> {
        input.validate()?;
        let names = &self.client.names;
        if names.prefix().is_empty() {
            return self.list_page(&input).await;
        }
        let limit = input.limit.unwrap_or(LIST_TABLES_MAX);
        let start = names.with_prefix(input.start_after.as_deref().unwrap_or_default());
        let mut request = ListTables {
            // The prefix alone may be too short for a table name; then the tables before ours are skipped.
            start_after: Some(start).filter(|name| TABLE_NAME_CHARS.contains(&name.len())),
            limit: None,
        };
        let mut own: Vec<String> = Vec::new();
        loop {
            let page = self.list_page(&request).await?;
            let last = page.table_names.last();
            let is_over = last.is_some_and(|last| names.is_past(last));
            let inside = page
                .table_names
                .iter()
                .filter_map(|name| names.without_prefix(name));
            own.extend(inside.map(str::to_owned));
            // One more than the limit shows that there are more.
            if page.last_name.is_none() || is_over || own.len() > limit {
                return Ok(input.page(own));
            }
            request.start_after = page.last_name;
        }
    }

    async fn list_page(&self, input: &ListTables) -> Result<ListTablesOutput> {
        self.read(|| self.client.list_tables(input)).await
    }

    pub(crate) async fn update_time_to_live(
        &self,
        input: UpdateTimeToLive,
    ) -> Result<TableDescription> {
        input.validate()?;
        self.require(self.capabilities.expiry, "expiry of items")?;
        self.write(|| self.client.update_time_to_live(&input))
            .await?;
        let described = self.describe(&input.table_name).await;
        described.map_err(|error| partly_applied(&error))
    }

    pub(crate) async fn update_tags(&self, input: UpdateTags) -> Result<()> {
        input.validate()?;
        let arn = self.describe_without_details(&input.table_name).await?.arn;
        if !input.add.is_empty() {
            self.write(|| self.client.tag(&arn, &input.add)).await?;
        }
        if !input.remove.is_empty() {
            let removed = self.write(|| self.client.untag(&arn, &input.remove)).await;
            return if input.add.is_empty() {
                removed
            } else {
                removed.map_err(|error| partly_applied(&error))
            };
        }
        Ok(())
    }
}

fn has_multi_attribute_key(index: &CreateIndex) -> bool {
    let of_role = |role| index.key_schema.iter().filter(move |e| e.role == role);
    of_role(KeyRole::Hash).count() > 1 || of_role(KeyRole::Range).count() > 1
}

/// The table was created, but TTL could not be enabled.
fn partly_created(error: &Error) -> Error {
    Error::OutcomeUnknown(format!(
        "the table was created, but TTL could not be enabled: {error}"
    ))
}

/// The change was applied, but a later request failed. The error must not imply that nothing was changed.
fn partly_applied(error: &Error) -> Error {
    Error::OutcomeUnknown(format!("the change was partly applied: {error}"))
}
