//! The state of the model: items by table, streams with their records, tokens.

use std::collections::BTreeMap;
use std::time::Duration;

use floe_store::engine::WRITE_TOKEN_RETENTION;
use floe_store::env::{Env, Timestamp};
use floe_store::limits::TOKEN_RETENTION;
use floe_store::op::{missing_table, missing_table_named};
use floe_store::size::item_size;
use floe_store::table::{IndexDescription, TableDescription, TableHistory, TableStatus};
use floe_store::{Error, Item, Result, TableDef};

use super::key::Key;
use super::stream::{Stream, table_arn};

/// The state of the model.
#[derive(Debug)]
pub(super) struct State {
    pub(super) env: Env,
    pub(super) tables: BTreeMap<String, Table>,
    /// All streams that were ever opened, in order.
    pub(super) streams: Vec<Stream>,
    /// The number of the last change record.
    pub(super) sequence: u64,
    tokens: BTreeMap<(TokenKind, String), AppliedRequest>,
}

/// A table and its items.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) definition: TableDef,
    pub(super) items: BTreeMap<Key, Item>,
    pub(super) created: Timestamp,
    pub(super) id: String,
    /// The newest stream, as a position in [`State::streams`].
    pub(super) latest_stream: Option<usize>,
    pub(super) history: TableHistory,
}

/// The operation that a token belongs to. Tokens of different operations are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TokenKind {
    Write,
    Transaction,
}

impl TokenKind {
    const fn retention(self) -> Duration {
        match self {
            Self::Write => WRITE_TOKEN_RETENTION,
            Self::Transaction => TOKEN_RETENTION,
        }
    }
}

/// A request that was applied with a token.
#[derive(Clone, Debug)]
pub(super) struct AppliedRequest {
    fingerprint: u128,
    at: Timestamp,
    /// The tables of the written items, each with the larger size of the item before and after.
    pub(super) sizes: Vec<(String, usize)>,
    /// The returned attributes.
    pub(super) returned: Option<Item>,
}

impl State {
    pub(super) fn new(env: Env) -> Self {
        Self {
            env,
            tables: BTreeMap::new(),
            streams: Vec::new(),
            sequence: 0,
            tokens: BTreeMap::new(),
        }
    }

    /// The table for an operation on items.
    pub(super) fn table(&self, name: &str) -> Result<&Table> {
        self.tables.get(name).ok_or_else(missing_table)
    }

    /// The table for an operation on tables.
    pub(super) fn table_named(&mut self, name: &str) -> Result<&mut Table> {
        self.tables
            .get_mut(name)
            .ok_or_else(|| missing_table_named(name))
    }

    /// The definition of a table, for checks of requests over several tables.
    pub(super) fn definition(&self, name: &str) -> Option<&TableDef> {
        self.tables.get(name).map(|table| &table.definition)
    }

    /// The request applied with this token, if it has not expired.
    pub(super) fn replay(
        &self,
        of: TokenKind,
        token: Option<&str>,
        fingerprint: u128,
    ) -> Result<Option<AppliedRequest>> {
        let applied_request = token.and_then(|token| self.tokens.get(&(of, token.to_owned())));
        match applied_request {
            Some(old) if self.env.now().since(old.at) >= of.retention() => Ok(None),
            Some(old) if old.fingerprint != fingerprint => Err(Error::IdempotentParameterMismatch),
            other => Ok(other.cloned()),
        }
    }

    /// Stores the token of an applied request.
    pub(super) fn store_token(
        &mut self,
        of: TokenKind,
        token: Option<String>,
        fingerprint: u128,
        sizes: Vec<(String, usize)>,
        returned: Option<Item>,
    ) {
        if let Some(token) = token {
            let at = self.env.now();
            let applied_request = AppliedRequest {
                fingerprint,
                at,
                sizes,
                returned,
            };
            self.tokens.insert((of, token), applied_request);
        }
    }

    pub(super) fn describe(&self, table: &Table) -> TableDescription {
        let arn = table_arn(&table.definition.name);
        let latest = table.latest_stream.and_then(|at| self.streams.get(at));
        TableDescription {
            definition: table.definition.clone(),
            status: TableStatus::Active,
            created: table.created,
            item_count: table.items.len() as u64,
            size_bytes: table
                .items
                .values()
                .map(|item| item_size(item) as u64)
                .sum(),
            id: table.id.clone(),
            indexes: table.describe_indexes(&arn),
            latest_stream: latest.map(Stream::handle),
            history: table.history,
            arn,
        }
    }
}

impl Table {
    /// The item with this key.
    pub(super) fn get(&self, key: &Item) -> Option<&Item> {
        self.items.get(&Key::of(&self.definition.key, key))
    }

    /// The bytes of all items and local index entries with the same partition key as this item.
    pub(super) fn collection_bytes(&self, item: &Item) -> u64 {
        let table = &self.definition;
        let partition = |item: &Item| -> Vec<_> {
            let attributes = table.key.partition.iter();
            attributes.map(|a| item.get(&a.name).cloned()).collect()
        };
        let own = partition(item);
        let members = self
            .items
            .values()
            .filter(|member| partition(member) == own);
        let bytes = members.map(|member| {
            let entries = table.local_indexes().filter(|index| index.holds(member));
            let entries = entries.map(|index| item_size(&index.project(&table.key, member)));
            (item_size(member) + entries.sum::<usize>()) as u64
        });
        bytes.sum()
    }

    fn describe_indexes(&self, table_arn: &str) -> Vec<IndexDescription> {
        let table = &self.definition;
        let describe = |index: &floe_store::table::IndexDef| {
            let entries = self.items.values().filter(|item| index.holds(item));
            let sizes: Vec<u64> = entries
                .map(|item| item_size(&index.project(&table.key, item)) as u64)
                .collect();
            IndexDescription {
                name: index.name.clone(),
                status: TableStatus::Active,
                backfilling: false,
                item_count: sizes.len() as u64,
                size_bytes: sizes.iter().sum(),
                arn: format!("{table_arn}/index/{}", index.name),
            }
        };
        table.indexes.iter().map(describe).collect()
    }
}
