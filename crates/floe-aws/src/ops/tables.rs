//! Tables: what DynamoDB does in several requests is one operation here.
//!
//! Tags and expiry are told by requests of their own, so that to describe a table takes three; and a table that
//! items expire from is waited for, since expiry can be switched on only when it is there.

use std::collections::BTreeMap;

use floe_store::limits::{LIST_TABLES_MAX, TABLE_NAME_CHARS};
use floe_store::op::{
    CreateIndex, CreateTable, IndexUpdate, KeyRole, ListTables, ListTablesOutput, UpdateTable,
    UpdateTags, UpdateTimeToLive, validate_table_name,
};
use floe_store::table::{TableDescription, TableStatus};
use floe_store::{Error, Name, Result};

use super::Operations;

/// How often a new table is looked at until it can be used: for some two minutes.
const LOOKS_MAX: u32 = 120;

impl Operations {
    pub(crate) async fn create_table(&self, input: CreateTable) -> Result<TableDescription> {
        input.validate()?;
        self.check_table(&input)?;
        let mut table = self.write(|| self.client.create_table(&input)).await?;
        if let Some(attribute) = &input.ttl_attribute {
            let expiry = UpdateTimeToLive::enable(&input.table_name, attribute);
            table = self
                .switch_expiry_on(&expiry)
                .await
                .map_err(|error| half_made(&error))?;
            table.definition.ttl_attribute = input.ttl_attribute;
        }
        table.definition.tags = input.tags;
        Ok(table)
    }

    fn check_table(&self, input: &CreateTable) -> Result<()> {
        let can = &self.capabilities;
        self.need(can.streams || input.stream.is_none(), "change streams")?;
        let expires = input.ttl_attribute.is_some();
        self.need(can.expiry || !expires, "expiry of items")?;
        self.check_indexes(input.indexes.iter())
    }

    fn check_indexes<'i>(&self, mut indexes: impl Iterator<Item = &'i CreateIndex>) -> Result<()> {
        let can = self.capabilities.multi_attribute_keys || !indexes.any(is_wide);
        self.need(can, "indexes of several attributes per key")
    }

    /// Waits until a new table is there, and switches expiry on.
    async fn switch_expiry_on(&self, expiry: &UpdateTimeToLive) -> Result<TableDescription> {
        let mut looks = 0;
        let table = loop {
            let table = self.look(&expiry.table_name).await?;
            looks += 1;
            if table.status == TableStatus::Active {
                break table;
            }
            if looks == LOOKS_MAX {
                return Err(Error::Internal(format!(
                    "the table is not ready: table={} status={}",
                    expiry.table_name,
                    table.status.as_str()
                )));
            }
            self.retry.pause(looks).await;
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
        let table = self.look(table_name).await?;
        self.complete(table).await
    }

    /// What the store tells of a table at once.
    async fn look(&self, table_name: &str) -> Result<TableDescription> {
        self.read(|| self.client.describe_table(table_name)).await
    }

    /// Adds what the store tells only when asked for it.
    async fn complete(&self, mut table: TableDescription) -> Result<TableDescription> {
        // Of a table that comes or goes it tells neither.
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
        self.need(self.capabilities.streams || !wants_stream, "change streams")?;
        self.check_indexes(input.indexes.iter().filter_map(|update| match update {
            IndexUpdate::Create(index) => Some(index),
            IndexUpdate::Update(..) | IndexUpdate::Scale(..) | IndexUpdate::Delete(_) => None,
        }))?;
        let table = self.write(|| self.client.update_table(&input)).await?;
        self.complete(table)
            .await
            .map_err(|error| after_the_fact(&error))
    }

    /// Removes a table. The store tells nothing but its name then, so it is described before.
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
            return self.names_page(&input).await;
        }
        let limit = input.limit.unwrap_or(LIST_TABLES_MAX);
        let start = names.outside(input.start_after.as_deref().unwrap_or_default());
        let mut request = ListTables {
            // The prefix alone may be too short for a name; then the tables before ours are passed over.
            start_after: Some(start).filter(|name| TABLE_NAME_CHARS.contains(&name.len())),
            limit: None,
        };
        let mut own: Vec<String> = Vec::new();
        loop {
            let page = self.names_page(&request).await?;
            let last = page.table_names.last();
            let is_over = last.is_some_and(|last| names.is_past(last));
            let inside = page
                .table_names
                .iter()
                .filter_map(|name| names.inside(name));
            own.extend(inside.map(str::to_owned));
            // One more than wanted tells that there are more.
            if page.last_name.is_none() || is_over || own.len() > limit {
                return Ok(input.page(own));
            }
            request.start_after = page.last_name;
        }
    }

    async fn names_page(&self, input: &ListTables) -> Result<ListTablesOutput> {
        self.read(|| self.client.list_tables(input)).await
    }

    pub(crate) async fn update_time_to_live(
        &self,
        input: UpdateTimeToLive,
    ) -> Result<TableDescription> {
        input.validate()?;
        self.need(self.capabilities.expiry, "expiry of items")?;
        self.write(|| self.client.update_time_to_live(&input))
            .await?;
        let described = self.describe(&input.table_name).await;
        described.map_err(|error| after_the_fact(&error))
    }

    pub(crate) async fn update_tags(&self, input: UpdateTags) -> Result<()> {
        input.validate()?;
        let arn = self.look(&input.table_name).await?.arn;
        if !input.add.is_empty() {
            self.write(|| self.client.tag(&arn, &input.add)).await?;
        }
        if !input.remove.is_empty() {
            let removed = self.write(|| self.client.untag(&arn, &input.remove)).await;
            return match input.add.is_empty() {
                true => removed,
                false => removed.map_err(|error| after_the_fact(&error)),
            };
        }
        Ok(())
    }
}

fn is_wide(index: &CreateIndex) -> bool {
    let of_role = |role| index.key_schema.iter().filter(move |e| e.role == role);
    of_role(KeyRole::Hash).count() > 1 || of_role(KeyRole::Range).count() > 1
}

/// The table was made, but is not all that was asked for.
fn half_made(error: &Error) -> Error {
    Error::OutcomeUnknown(format!(
        "the table was made, but expiry could not be switched on: {error}"
    ))
}

/// The change was made, but what came after it failed: nobody may take this for a change that was not made.
fn after_the_fact(error: &Error) -> Error {
    Error::OutcomeUnknown(format!("a part of the change was made: {error}"))
}
