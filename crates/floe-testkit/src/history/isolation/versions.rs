//! Infers the order in which the values of each list were appended, and finds anomalies of single reads.
//!
//! Lists only grow, so every read of a list is a prefix of the longest one. The longest read is the order of
//! versions; a committed append that it does not contain came later.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::hash::Hash;

use super::display::{Lines, Listed};
use super::index::{Element, ElementId, Index, KeyId, Read, TransactionId};
use super::{Anomaly, AnomalyKind, Status, Transaction};

/// What is known about a list.
pub(super) struct List {
    /// The values of its longest read.
    pub(super) order: Vec<ElementId>,
    /// The transactions with a committed append that no transaction read, each with its first such append.
    pub(super) unread: Vec<(TransactionId, ElementId)>,
}

/// A read of a committed transaction, with its version.
pub(super) struct PlacedRead {
    pub(super) transaction: TransactionId,
    pub(super) key: KeyId,
    /// The number of values that it returned.
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

/// The anomalies, without repetition: a value that is wrong in one read is usually wrong in all later ones.
struct Findings<'a, V> {
    anomalies: Vec<Anomaly>,
    reported: HashSet<(AnomalyKind, KeyId, Option<&'a V>)>,
}

impl<'a, V: Eq + Hash> Findings<'a, V> {
    fn is_new(&mut self, kind: AnomalyKind, key: KeyId, value: Option<&'a V>) -> bool {
        self.reported.insert((kind, key, value))
    }
}

impl<'a, K, V> Versions<'a, K, V>
where
    K: Eq + Hash + Debug,
    V: Eq + Hash + Debug,
{
    /// Infers the orders of all lists, and finds anomalies of single reads.
    pub(super) fn infer(history: &'a [Transaction<K, V>]) -> (Self, Vec<Anomaly>) {
        let index = Index::of(history);
        let mut findings = Findings {
            anomalies: index.anomalies,
            reported: HashSet::new(),
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
        // Transactions that did not commit may have read anything.
        let counts = |a: &Anomaly| a.transactions.iter().all(|&t| versions.is_committed(t));
        findings
            .anomalies
            .retain(|a| a.kind != AnomalyKind::Internal || counts(a));
        for read in &index.reads {
            if versions.is_committed(read.transaction) {
                versions.position(read, &mut findings);
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

    /// Whether the transaction reported a commit, or another transaction read its appends.
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

    /// Formats the first values of a list.
    pub(super) fn describe_version(&self, key: KeyId, version: usize) -> String {
        let order = self.order(key).iter().take(version);
        let values = Listed(order.map(|&e| self.element(e).value).collect());
        format!("{:?} = {values}", self.key(key))
    }

    fn order(&self, key: KeyId) -> &[ElementId] {
        self.lists.get(key).map_or(&[], |list| &list.order)
    }

    /// Finds the longest read of each list. Only reads of committed transactions count. The writers of the values
    /// they read have committed as well, so the reads of those writers count in the next round.
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

    /// Determines the version that a read returned, or reports why there is none.
    fn position(&mut self, read: &Read<'a, V>, findings: &mut Findings<'a, V>) {
        let order = self.order(read.key);
        let fits = read.values.len() <= order.len()
            && (order.iter().zip(read.values)).all(|(&e, value)| self.element(e).value == value);
        if !fits {
            self.report_mismatch(read, findings);
        } else {
            self.reads.push(PlacedRead {
                transaction: read.transaction,
                key: read.key,
                version: read.values.len(),
                then_appended: read.then_appended,
            });
        }
    }

    /// Reports the anomalies of a read that is not a prefix of the longest one.
    fn report_mismatch(&self, read: &Read<'a, V>, findings: &mut Findings<'a, V>) {
        let mut found = Vec::with_capacity(read.values.len());
        let mut positions: HashMap<ElementId, usize> = HashMap::new();
        for (position, value) in read.values.iter().enumerate() {
            let Some(&id) = self.by_value.get(&(read.key, value)) else {
                self.report(
                    AnomalyKind::UnknownValue,
                    read,
                    Some(value),
                    findings,
                    || format!("no transaction appended {value:?}"),
                );
                continue;
            };
            match positions.insert(id, position) {
                None => found.push(id),
                Some(earlier) => {
                    self.report(
                        AnomalyKind::DuplicateValue,
                        read,
                        Some(value),
                        findings,
                        || format!("it contains {value:?} twice, at {earlier} and at {position}"),
                    );
                }
            }
        }
        // The rest may fit once the values that are wrong in themselves are removed.
        if !self.order(read.key).starts_with(&found) {
            self.report(AnomalyKind::IncompatibleOrder, read, None, findings, || {
                let longest = self.describe_version(read.key, usize::MAX);
                format!("another transaction read {longest}")
            });
        }
    }

    fn report(
        &self,
        kind: AnomalyKind,
        read: &Read<'a, V>,
        value: Option<&'a V>,
        findings: &mut Findings<'a, V>,
        describe: impl FnOnce() -> String,
    ) {
        if findings.is_new(kind, read.key, value) {
            let values = Listed(read.values.iter().collect());
            let text = format!(
                "T{} read {:?} = {values}; {}",
                read.transaction,
                self.key(read.key),
                describe()
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
                let text = format!(
                    "{} was read by other transactions",
                    self.describe_append(id)
                );
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
                    self.describe_append(id)
                );
                let transactions = [element.transaction, read.transaction];
                let anomaly = self.about(AnomalyKind::G1b, &transactions, &text);
                findings.anomalies.push(anomaly);
            }
        }
    }

    /// Finds versions that several transactions read and then appended to.
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
                let version = self.describe_version(*key, *version);
                let text = format!("each read {version} and appended to it");
                self.about(AnomalyKind::LostUpdate, transactions, &text)
            })
            .collect()
    }

    /// Describes an append.
    pub(super) fn describe_append(&self, id: ElementId) -> String {
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
