//! Infers from the reads of a history in which order the values of each list were appended, and tells
//! what is wrong with single reads.
//!
//! Lists only grow, so the longest read of a list holds every other one as a beginning. It is the order
//! of versions; a committed append that is missing from it came later than all that stand in it.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::hash::Hash;

use super::display::{Lines, Listed};
use super::index::{Element, ElementId, Index, KeyId, Read, TransactionId};
use super::{Anomaly, AnomalyKind, Status, Transaction};

/// What is known of one list.
pub(super) struct List {
    /// The values of its longest read.
    pub(super) order: Vec<ElementId>,
    /// The transactions that committed an append to it that nobody read, each with the first such append.
    pub(super) unread: Vec<(TransactionId, ElementId)>,
}

/// A read of a committed transaction, placed in the order of versions.
pub(super) struct PlacedRead {
    pub(super) transaction: TransactionId,
    pub(super) key: KeyId,
    /// How many values it found.
    pub(super) version: usize,
    then_appended: bool,
}

pub(super) struct Versions<'a, K, V> {
    history: &'a [Transaction<K, V>],
    keys: Vec<&'a K>,
    elements: Vec<Element<'a, V>>,
    by_value: HashMap<(KeyId, &'a V), ElementId>,
    committed: Vec<bool>,
    lists: Vec<List>,
    reads: Vec<PlacedRead>,
}

/// What was found, each thing once: a value that is wrong in one read is mostly wrong in all later ones.
struct Findings<'a, V> {
    anomalies: Vec<Anomaly>,
    told: HashSet<(AnomalyKind, KeyId, Option<&'a V>)>,
}

impl<'a, V: Eq + Hash> Findings<'a, V> {
    fn is_new(&mut self, kind: AnomalyKind, key: KeyId, value: Option<&'a V>) -> bool {
        self.told.insert((kind, key, value))
    }
}

impl<'a, K, V> Versions<'a, K, V>
where
    K: Eq + Hash + Debug,
    V: Eq + Hash + Debug,
{
    /// What the history tells about its lists, and what is wrong with its reads.
    pub(super) fn infer(history: &'a [Transaction<K, V>]) -> (Self, Vec<Anomaly>) {
        let index = Index::of(history);
        let mut findings = Findings {
            anomalies: index.anomalies,
            told: HashSet::new(),
        };
        let committed = history.iter().map(|t| t.status == Status::Committed);
        let mut versions = Self {
            history,
            keys: index.keys,
            elements: index.elements,
            by_value: index.by_value,
            committed: committed.collect(),
            lists: Vec::new(),
            reads: Vec::new(),
        };
        versions.find_orders(&index.reads);
        // What is not committed may have read anything.
        let counts = |a: &Anomaly| a.transactions.iter().all(|&t| versions.is_committed(t));
        findings
            .anomalies
            .retain(|a| a.kind != AnomalyKind::Internal || counts(a));
        for read in &index.reads {
            if versions.is_committed(read.transaction) {
                versions.place(read, &mut findings);
            }
        }
        versions.find_unread();
        versions.find_aborted(&mut findings);
        versions.find_intermediate(&mut findings);
        (versions, findings.anomalies)
    }

    pub(super) fn history(&self) -> &'a [Transaction<K, V>] {
        self.history
    }

    pub(super) fn lists(&self) -> &[List] {
        &self.lists
    }

    pub(super) fn reads(&self) -> &[PlacedRead] {
        &self.reads
    }

    /// Whether the transaction said so, or someone saw what it appended.
    pub(super) fn is_committed(&self, transaction: TransactionId) -> bool {
        self.committed.get(transaction).copied().unwrap_or(false)
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "ids are made from the indices of this vector"
    )]
    pub(super) fn element(&self, id: ElementId) -> &Element<'a, V> {
        &self.elements[id]
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "ids are made from the indices of this vector"
    )]
    pub(super) fn key(&self, id: KeyId) -> &'a K {
        self.keys[id]
    }

    /// The first values of a list, in words.
    pub(super) fn version_told(&self, key: KeyId, version: usize) -> String {
        let order = self.order(key).iter().take(version);
        let values = Listed(order.map(|&e| self.element(e).value).collect());
        format!("{:?} = {values}", self.key(key))
    }

    fn order(&self, key: KeyId) -> &[ElementId] {
        self.lists.get(key).map_or(&[], |list| &list.order)
    }

    /// Finds the longest read of each list. Only committed transactions count, and whoever wrote what they
    /// read has committed, too, so that its reads count in the next round.
    fn find_orders(&mut self, reads: &[Read<'a, V>]) {
        let mut longest: Vec<&'a [V]> = vec![&[]; self.keys.len()];
        let mut fresh: HashSet<TransactionId> = (0..self.history.len())
            .filter(|&t| self.is_committed(t))
            .collect();
        while !fresh.is_empty() {
            let mut seen: Vec<(KeyId, &'a V)> = Vec::new();
            for read in reads
                .iter()
                .filter(|read| fresh.contains(&read.transaction))
            {
                if let Some(longest) = longest.get_mut(read.key)
                    && longest.len() < read.values.len()
                {
                    let more = read.values.iter().skip(longest.len());
                    seen.extend(more.map(|value| (read.key, value)));
                    *longest = read.values;
                }
            }
            fresh.clear();
            for seen in seen {
                let writer = self
                    .by_value
                    .get(&seen)
                    .map(|&id| self.element(id).transaction);
                if let Some(writer) = writer.filter(|&writer| !self.is_committed(writer)) {
                    self.mark_committed(writer);
                    fresh.insert(writer);
                }
            }
        }
        self.lists = (0..)
            .zip(longest)
            .map(|(key, values)| self.list(key, values))
            .collect();
    }

    fn list(&self, key: KeyId, longest: &'a [V]) -> List {
        let mut known = HashSet::new();
        let order = (longest.iter())
            .filter_map(|value| self.by_value.get(&(key, value)).copied())
            .filter(|&id| known.insert(id));
        List {
            order: order.collect(),
            unread: Vec::new(),
        }
    }

    fn mark_committed(&mut self, transaction: TransactionId) {
        if let Some(committed) = self.committed.get_mut(transaction) {
            *committed = true;
        }
    }

    /// Finds the version that a read returned, or tells why there is none.
    fn place(&mut self, read: &Read<'a, V>, findings: &mut Findings<'a, V>) {
        let order = self.order(read.key);
        let fits = read.values.len() <= order.len()
            && (order.iter().zip(read.values)).all(|(&e, value)| self.element(e).value == value);
        if !fits {
            self.judge(read, findings);
        } else {
            self.reads.push(PlacedRead {
                transaction: read.transaction,
                key: read.key,
                version: read.values.len(),
                then_appended: read.then_appended,
            });
        }
    }

    /// Tells what is wrong with a read that is not a beginning of the longest one.
    fn judge(&self, read: &Read<'a, V>, findings: &mut Findings<'a, V>) {
        let mut found = Vec::with_capacity(read.values.len());
        let mut places: HashMap<ElementId, usize> = HashMap::new();
        for (place, value) in read.values.iter().enumerate() {
            let Some(&id) = self.by_value.get(&(read.key, value)) else {
                self.tell(
                    AnomalyKind::UnknownValue,
                    read,
                    Some(value),
                    findings,
                    || format!("nobody appended {value:?}"),
                );
                continue;
            };
            match places.insert(id, place) {
                None => found.push(id),
                Some(earlier) => {
                    self.tell(
                        AnomalyKind::DuplicateValue,
                        read,
                        Some(value),
                        findings,
                        || format!("{value:?} stands in it twice, at {earlier} and at {place}"),
                    );
                }
            }
        }
        // Without the values that are wrong in themselves, the rest may well fit.
        if !self.order(read.key).starts_with(&found) {
            self.tell(AnomalyKind::IncompatibleOrder, read, None, findings, || {
                let longest = self.version_told(read.key, usize::MAX);
                format!("another transaction read {longest}")
            });
        }
    }

    fn tell(
        &self,
        kind: AnomalyKind,
        read: &Read<'a, V>,
        value: Option<&'a V>,
        findings: &mut Findings<'a, V>,
        what: impl FnOnce() -> String,
    ) {
        if findings.is_new(kind, read.key, value) {
            let values = Listed(read.values.iter().collect());
            let text = format!(
                "T{} read {:?} = {values}; {}",
                read.transaction,
                self.key(read.key),
                what()
            );
            findings
                .anomalies
                .push(self.about(kind, &[read.transaction], &text));
        }
    }

    fn find_unread(&mut self) {
        let mut is_read = vec![false; self.elements.len()];
        for &id in self.lists.iter().flat_map(|list| &list.order) {
            if let Some(is_read) = is_read.get_mut(id) {
                *is_read = true;
            }
        }
        for ((id, element), is_read) in self.elements.iter().enumerate().zip(is_read) {
            let committed = self.committed.get(element.transaction) == Some(&true);
            if let Some(list) = self.lists.get_mut(element.key)
                && committed
                && !is_read
                && list
                    .unread
                    .last()
                    .is_none_or(|&(t, _)| t != element.transaction)
            {
                list.unread.push((element.transaction, id));
            }
        }
    }

    fn find_aborted(&self, findings: &mut Findings<'a, V>) {
        for &id in self.lists.iter().flat_map(|list| &list.order) {
            let writer = self.element(id).transaction;
            if (self.history.get(writer)).is_some_and(|t| t.status == Status::Aborted) {
                let text = format!("{} was read by others", self.appended(id));
                let anomaly = self.about(AnomalyKind::G1a, &[writer], &text);
                findings.anomalies.push(anomaly);
            }
        }
    }

    fn find_intermediate(&self, findings: &mut Findings<'a, V>) {
        for read in &self.reads {
            let last = read.version.checked_sub(1);
            let Some(&id) = last.and_then(|at| self.order(read.key).get(at)) else {
                continue;
            };
            let element = self.element(id);
            if !element.last
                && element.transaction != read.transaction
                && findings.is_new(AnomalyKind::G1b, read.key, Some(element.value))
            {
                let text = format!(
                    "T{} read up to {}, which appended more to it",
                    read.transaction,
                    self.appended(id)
                );
                let transactions = [element.transaction, read.transaction];
                let anomaly = self.about(AnomalyKind::G1b, &transactions, &text);
                findings.anomalies.push(anomaly);
            }
        }
    }

    /// Versions that several transactions read and then appended to.
    pub(super) fn lost_updates(&self) -> Vec<Anomaly> {
        let mut updates: HashMap<(KeyId, usize), Vec<TransactionId>> = HashMap::new();
        for read in self.reads.iter().filter(|r| r.then_appended) {
            let readers = updates.entry((read.key, read.version)).or_default();
            readers.push(read.transaction);
        }
        let mut lost: Vec<_> = updates.into_iter().filter(|(_, t)| t.len() > 1).collect();
        lost.sort_unstable();
        lost.iter()
            .map(|((key, version), transactions)| {
                let version = self.version_told(*key, *version);
                let text = format!("each read {version} and appended to it");
                self.about(AnomalyKind::LostUpdate, transactions, &text)
            })
            .collect()
    }

    /// An append, in words.
    pub(super) fn appended(&self, id: ElementId) -> String {
        let element = self.element(id);
        let (value, key) = (element.value, self.key(element.key));
        format!(
            "the append of {value:?} to {key:?} by T{}",
            element.transaction
        )
    }

    fn about(&self, kind: AnomalyKind, transactions: &[TransactionId], text: &str) -> Anomaly {
        Anomaly {
            kind,
            transactions: transactions.to_vec(),
            explanation: format!("{}{text}", Lines(self.history, transactions)),
        }
    }
}
