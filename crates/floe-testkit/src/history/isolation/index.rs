//! Groups the steps of a history by list, and checks each transaction against its own steps.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;

use super::display::{Lines, Listed};
use super::{Anomaly, AnomalyKind, Step, Transaction};

/// The position of a transaction in the history.
pub(super) type TransactionId = usize;
/// The position of a key in the order of first mention.
pub(super) type KeyId = usize;
/// The position of an append among all appends of the history.
pub(super) type ElementId = usize;

/// An append.
pub(super) struct Element<'a, V> {
    pub(super) key: KeyId,
    pub(super) value: &'a V,
    pub(super) transaction: TransactionId,
    /// Whether it is the last append of its transaction to its key.
    pub(super) last: bool,
}

/// The first read of a list by a transaction, without the transaction's own appends.
pub(super) struct Read<'a, V> {
    pub(super) transaction: TransactionId,
    pub(super) key: KeyId,
    pub(super) values: &'a [V],
    /// Whether the transaction appended to the list afterwards.
    pub(super) then_appended: bool,
}

/// The steps of a history, grouped by list.
pub(super) struct Index<'a, K, V> {
    history: &'a [Transaction<K, V>],
    ids: HashMap<&'a K, KeyId>,
    pub(super) keys: Vec<&'a K>,
    pub(super) elements: Vec<Element<'a, V>>,
    pub(super) by_value: HashMap<(KeyId, &'a V), ElementId>,
    pub(super) reads: Vec<Read<'a, V>>,
    pub(super) anomalies: Vec<Anomaly>,
}

impl<'a, K, V> Index<'a, K, V>
where
    K: Eq + Hash + Debug,
    V: Eq + Hash + Debug,
{
    pub(super) fn of(history: &'a [Transaction<K, V>]) -> Self {
        let mut index = Self {
            history,
            ids: HashMap::new(),
            keys: Vec::new(),
            elements: Vec::new(),
            by_value: HashMap::new(),
            reads: Vec::new(),
            anomalies: Vec::new(),
        };
        for (id, transaction) in history.iter().enumerate() {
            index.add(id, transaction);
        }
        index
    }

    fn add(&mut self, id: TransactionId, transaction: &'a Transaction<K, V>) {
        let mut known: HashMap<KeyId, Known<'a, V>> = HashMap::new();
        for step in &transaction.steps {
            match step {
                Step::Append { key, value } => {
                    let key = self.key(key);
                    self.append(known.entry(key).or_default(), key, id, value);
                }
                Step::Read { key, values } => {
                    let key = self.key(key);
                    self.read(known.entry(key).or_default(), key, id, values);
                }
            }
        }
    }

    fn key(&mut self, key: &'a K) -> KeyId {
        *self.ids.entry(key).or_insert_with(|| {
            self.keys.push(key);
            self.keys.len() - 1
        })
    }

    fn append(
        &mut self,
        known: &mut Known<'a, V>,
        key: KeyId,
        transaction: TransactionId,
        value: &'a V,
    ) {
        let id = self.elements.len();
        known.appended.push(value);
        if let Some(before) = known.last_append.replace(id)
            && let Some(before) = self.elements.get_mut(before)
        {
            before.last = false;
        }
        if let Some(read) = known.read_at.and_then(|at| self.reads.get_mut(at)) {
            read.then_appended = true;
        }
        self.elements.push(Element {
            key,
            value,
            transaction,
            last: true,
        });
        if let Some(earlier) = self.by_value.get(&(key, value)) {
            let other = self.elements.get(*earlier).map(|e| e.transaction);
            let transactions = other.into_iter().chain([transaction]).collect();
            let problem = format!("{value:?} is appended twice to the same key");
            self.report(AnomalyKind::DuplicateAppend, transactions, &problem);
        } else {
            self.by_value.insert((key, value), id);
        }
    }

    fn read(
        &mut self,
        known: &mut Known<'a, V>,
        key: KeyId,
        transaction: TransactionId,
        values: &'a [V],
    ) {
        let Some(others) = known.without_own(values) else {
            let problem = format!(
                "the read {} does not end with the transaction's own appends {}",
                Listed(values.iter().collect()),
                Listed(known.appended.clone()),
            );
            return self.report(AnomalyKind::Internal, vec![transaction], &problem);
        };
        match known.seen {
            Some(seen) if seen != others => {
                let problem = format!(
                    "it read {} first and {} later",
                    Listed(seen.iter().collect()),
                    Listed(others.iter().collect()),
                );
                self.report(AnomalyKind::Internal, vec![transaction], &problem);
            }
            Some(_) => {}
            None => {
                known.seen = Some(others);
                known.read_at = Some(self.reads.len());
                self.reads.push(Read {
                    transaction,
                    key,
                    values: others,
                    then_appended: false,
                });
            }
        }
    }

    fn report(&mut self, kind: AnomalyKind, transactions: Vec<TransactionId>, problem: &str) {
        self.anomalies.push(Anomaly {
            kind,
            explanation: format!("{}{problem}", Lines(self.history, &transactions)),
            transactions,
        });
    }
}

/// What a transaction knows about a list from its own steps.
struct Known<'a, V> {
    /// The values that it read, without its own appends.
    seen: Option<&'a [V]>,
    /// The values that it appended.
    appended: Vec<&'a V>,
    last_append: Option<ElementId>,
    /// The position of its first read in [`Index::reads`].
    read_at: Option<usize>,
}

impl<V> Default for Known<'_, V> {
    fn default() -> Self {
        Self {
            seen: None,
            appended: Vec::new(),
            last_append: None,
            read_at: None,
        }
    }
}

impl<'a, V: Eq> Known<'a, V> {
    /// The values of a read that other transactions appended; `None` if the read does not end with the
    /// transaction's own appends.
    fn without_own(&self, values: &'a [V]) -> Option<&'a [V]> {
        let at = values.len().checked_sub(self.appended.len())?;
        let (others, own) = values.split_at_checked(at)?;
        own.iter()
            .eq(self.appended.iter().copied())
            .then_some(others)
    }
}
