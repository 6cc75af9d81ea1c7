//! Random requests for items.

use floe_store::Item;
use floe_store::capacity::ReturnConsumedCapacity;
use floe_store::op::*;
use floe_store::table::{IndexDef, IndexKind, TableDef};

use super::super::step::Step;
use super::Generator;

const TOKENS: [&str; 4] = ["t1", "t2", "t3", "t4"];

impl Generator {
    fn capacity(&self) -> ReturnConsumedCapacity {
        match self.random.below(4) {
            0..2 => ReturnConsumedCapacity::None,
            2 => ReturnConsumedCapacity::Total,
            _ => ReturnConsumedCapacity::Indexes,
        }
    }

    /// The name of a table, rarely of one that does not exist.
    fn name(&self, table: &TableDef) -> String {
        if self.random.rarely(8) {
            self.random.text(&["Nowhere", "x", "not a name"]).to_owned()
        } else {
            table.name.clone()
        }
    }

    fn token(&self, percent: usize) -> Option<String> {
        self.random.chance(percent).then(|| {
            if self.random.rarely(30) {
                "x".repeat(37)
            } else {
                self.random.text(&TOKENS).to_owned()
            }
        })
    }

    fn return_values(&self, updates: bool) -> ReturnValues {
        match self.random.below(10) {
            0..4 => ReturnValues::None,
            4..6 => ReturnValues::AllOld,
            _ if !updates && !self.random.rarely(30) => ReturnValues::AllOld,
            6 => ReturnValues::AllNew,
            7 => ReturnValues::UpdatedOld,
            _ => ReturnValues::UpdatedNew,
        }
    }

    pub(super) fn write(&mut self) -> Step {
        // Sometimes a write with a token is sent again unchanged.
        if self.random.rarely(30)
            && let Some(again) = self.random.pick(&self.writes)
        {
            return Step::Write(again.clone());
        }
        let write = self.new_write();
        if write.token().is_some() {
            self.writes.push(write.clone());
        }
        Step::Write(write)
    }

    fn new_write(&self) -> WriteItem {
        let table = self.table();
        let table_name = self.name(&table);
        let condition = self.some_condition(&table, 35);
        let return_old_on_failure = self.random.chance(40);
        let return_capacity = self.capacity();
        let return_collection = self.random.chance(20);
        let token = self.token(8).map(|token| match token.len() {
            ..30 => format!("{token}-{}", self.reopens),
            _ => token,
        });
        match self.random.below(10) {
            0..5 => WriteItem::Put(PutItem {
                table_name,
                item: self.item(&table),
                condition,
                return_values: self.return_values(false),
                return_old_on_failure,
                return_capacity,
                return_collection,
                token,
            }),
            5..8 => WriteItem::Update(UpdateItem {
                table_name,
                key: self.key(&table),
                update: self.update(&table),
                condition,
                return_values: self.return_values(true),
                return_old_on_failure,
                return_capacity,
                return_collection,
                token,
                check_request_size: true,
            }),
            _ => WriteItem::Delete(DeleteItem {
                table_name,
                key: self.key(&table),
                condition,
                return_values: self.return_values(false),
                return_old_on_failure,
                return_capacity,
                return_collection,
                token,
            }),
        }
    }

    pub(super) fn batch_write(&self) -> Step {
        let count = if self.random.rarely(10) {
            20 + self.random.below(12)
        } else {
            1 + self.random.below(8)
        };
        let mut batch = BatchWriteItem::new();
        for _ in 0..count {
            let table = self.table();
            let item = self.item(&table);
            // Usually each key once, because a batch with a duplicate key is rejected as a whole.
            let key = table.key.key_of(&item);
            let written = batch.requests.get(&table.name).into_iter().flatten();
            let mut keys = written.map(|write| table.key.key_of(write.key_item()));
            if keys.any(|other| other == key) && !self.random.chance(5) {
                continue;
            }
            batch = match (self.random.chance(65), key) {
                (false, Some(key)) => batch.delete(self.name(&table), key),
                _ => batch.put(self.name(&table), item),
            };
        }
        batch.return_capacity = self.capacity();
        batch.return_collection = self.random.chance(20);
        Step::BatchWrite(batch)
    }

    /// A batch of items too large for one page, followed by a query that reads them.
    pub(super) fn large_batch_write(&mut self) -> Step {
        let table = self.table();
        let mut batch = BatchWriteItem::new();
        for _ in 0..12 {
            let partition = table.key.partition.iter();
            let partition =
                partition.map(|a| (a.name.clone(), self.random.common_partition_value(a.kind)));
            let sort = table.key.sort.iter();
            let sort = sort.map(|a| (a.name.clone(), self.random.key_value(a.kind)));
            let key: Item = partition.chain(sort).collect();
            let written = batch.requests.get(&table.name).into_iter().flatten();
            let mut keys = written.filter_map(|write| table.key.key_of(write.key_item()));
            if !keys.any(|other| other == key) {
                let bytes = 200_000 + self.random.below(200_000);
                batch = batch.put(table.name.clone(), key.with("v", "x".repeat(bytes)));
            }
        }
        let mut query = Query::new(table.name.clone(), self.key_condition(&table.key));
        query.key_condition.terms.truncate(1);
        query.forward = self.random.chance(50);
        query.return_capacity = self.capacity();
        self.next = Some(Step::Query(query));
        Step::BatchWrite(batch)
    }

    pub(super) fn transact_write(&mut self) -> Step {
        if self.random.chance(12)
            && let Some(again) = self.random.pick(&self.transactions)
        {
            let mut again = again.clone();
            again.return_capacity = self.capacity();
            return Step::TransactWrite(again);
        }
        let mut actions: Vec<TransactWrite> = Vec::new();
        for _ in 0..=self.random.below(4) {
            let action = self.action();
            let is_same = |other: &TransactWrite| {
                other.table_name() == action.table_name() && self.same_key(other, &action)
            };
            if !actions.iter().any(is_same) || self.random.chance(5) {
                actions.push(action);
            }
        }
        if self.random.rarely(10) {
            actions.clear();
        }
        let transaction = TransactWriteItems {
            actions,
            token: self.token(25),
            return_capacity: self.capacity(),
            return_collection: self.random.chance(20),
        };
        if transaction.token.is_some() {
            self.transactions.push(transaction.clone());
        }
        Step::TransactWrite(transaction)
    }

    fn same_key(&self, one: &TransactWrite, two: &TransactWrite) -> bool {
        let table = self
            .tables
            .iter()
            .find(|table| table.name == one.table_name());
        let key = |action: &TransactWrite| table.and_then(|table| action.key(table).ok());
        key(one).is_some() && key(one) == key(two)
    }

    fn action(&self) -> TransactWrite {
        let table = self.table();
        let return_old_on_failure = self.random.chance(50);
        let condition = self.some_condition(&table, 15);
        match self.random.below(10) {
            0..4 => TransactWrite::Put(PutItem {
                condition,
                return_old_on_failure,
                ..PutItem::new(self.name(&table), self.item(&table))
            }),
            4..7 => TransactWrite::Update(UpdateItem {
                condition,
                return_old_on_failure,
                ..UpdateItem::new(self.name(&table), self.key(&table), self.update(&table))
            }),
            7..9 => TransactWrite::Delete(DeleteItem {
                condition,
                return_old_on_failure,
                ..DeleteItem::new(self.name(&table), self.key(&table))
            }),
            _ => TransactWrite::Check(ConditionCheck {
                return_old_on_failure,
                ..ConditionCheck::new(
                    self.name(&table),
                    self.key(&table),
                    self.condition(&table, 2),
                )
            }),
        }
    }

    pub(super) fn get(&self) -> Step {
        let table = self.table();
        Step::Get(GetItem {
            table_name: self.name(&table),
            key: self.key(&table),
            projection: self.some_projection(&table, 30),
            consistent: self.random.chance(60),
            return_capacity: self.capacity(),
        })
    }

    pub(super) fn batch_get(&self) -> Step {
        let mut batch = BatchGetItem::new();
        for _ in 0..=self.random.below(2) {
            let table = self.table();
            let mut keys: Vec<Item> = Vec::new();
            for _ in 0..self.random.below(25).min(6) {
                let key = self.key(&table);
                if !keys.contains(&key) || self.random.chance(5) {
                    keys.push(key);
                }
            }
            let request = KeysAndAttributes {
                keys,
                projection: self.some_projection(&table, 30),
                consistent: self.random.chance(60),
            };
            batch.requests.insert(self.name(&table), request);
        }
        batch.return_capacity = self.capacity();
        Step::BatchGet(batch)
    }

    pub(super) fn transact_get(&self) -> Step {
        let mut gets: Vec<TransactGet> = Vec::new();
        for _ in 0..self.random.below(20).min(5) {
            let table = self.table();
            let key = self.key(&table);
            let is_same = |get: &TransactGet| get.table_name == table.name && get.key == key;
            if !gets.iter().any(is_same) || self.random.chance(5) {
                gets.push(TransactGet {
                    projection: self.some_projection(&table, 30),
                    ..TransactGet::new(self.name(&table), key)
                });
            }
        }
        Step::TransactGet(TransactGetItems {
            gets,
            return_capacity: self.capacity(),
        })
    }

    /// An index of the table, or `None` half of the time.
    fn index<'t>(&self, table: &'t TableDef) -> Option<&'t IndexDef> {
        if self.random.chance(50) {
            self.random.pick(&table.indexes)
        } else {
            None
        }
    }

    fn index_name(&self, index: Option<&IndexDef>) -> Option<String> {
        if self.random.rarely(8) {
            Some("nothing".to_owned())
        } else {
            index.map(|index| index.name.clone())
        }
    }

    /// Whether a read is consistent. Rarely `true` for a global index, which rejects it.
    fn consistent(&self, index: Option<&IndexDef>) -> bool {
        let is_allowed = index.is_none_or(|index| index.kind == IndexKind::Local);
        self.random.chance(if is_allowed { 40 } else { 5 })
    }

    fn select(&self, indexed: bool) -> Option<Select> {
        match self.random.below(20) {
            0 => Some(Select::AllAttributes),
            1 if indexed => Some(Select::AllProjectedAttributes),
            2 if self.random.chance(20) => Some(Select::SpecificAttributes),
            3 => Some(Select::Count),
            _ => None,
        }
    }

    fn limit(&self) -> Option<usize> {
        self.random.chance(45).then(|| {
            if self.random.rarely(15) {
                0
            } else {
                1 + self.random.below(6)
            }
        })
    }

    /// A start key, usually with the attributes that the read requires.
    fn start_key(&self, table: &TableDef, index: Option<&IndexDef>) -> Item {
        let mut key = self.key(table);
        for attribute in index.into_iter().flat_map(|index| index.key.attributes()) {
            if !table.key.contains(&attribute.name) {
                key.insert(
                    attribute.name.clone(),
                    self.random.key_value(attribute.kind),
                );
            }
        }
        key
    }

    pub(super) fn query(&self) -> Step {
        let table = self.table();
        let index = self.index(&table);
        let key = index.map_or(&table.key, |index| &index.key);
        let key_condition = self.key_condition(key);
        let mut start_key = self
            .random
            .chance(15)
            .then(|| self.start_key(&table, index));
        if let Some(start) = &mut start_key
            && self.random.chance(85)
        {
            // In the partition that is read.
            for (name, op) in &key_condition.terms {
                if let floe_store::expr::KeyOp::Eq(value) = op {
                    start.insert(name.clone(), value.clone());
                }
            }
        }
        Step::Query(Query {
            table_name: self.name(&table),
            index_name: self.index_name(index),
            key_condition,
            filter: self.some_condition(&table, 25),
            projection: self.some_projection(&table, 15),
            select: self.select(index.is_some()),
            limit: self.limit(),
            start_key,
            forward: self.random.chance(60),
            consistent: self.consistent(index),
            return_capacity: self.capacity(),
        })
    }

    pub(super) fn scan(&self) -> Step {
        let table = self.table();
        let index = self.index(&table);
        let segment = self.random.chance(30).then(|| {
            let total = 1 + self.random.below(4);
            let beyond = usize::from(self.random.chance(5));
            Segment {
                index: self.random.below(total) + beyond * total,
                total,
            }
        });
        // Only the engine knows the segment of a key, so a scan of segments has no start key.
        let starts = segment.is_none() && self.random.chance(15);
        Step::Scan(Scan {
            table_name: self.name(&table),
            index_name: self.index_name(index),
            filter: self.some_condition(&table, 25),
            projection: self.some_projection(&table, 15),
            select: self.select(index.is_some()),
            limit: self.limit(),
            start_key: starts.then(|| self.start_key(&table, index)),
            segment,
            consistent: self.consistent(index),
            return_capacity: self.capacity(),
        })
    }
}
