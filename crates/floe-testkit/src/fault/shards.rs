//! The tree of virtual shards of a stream.
//!
//! Each shard of the engine becomes a tree of virtual shards: at first one shard, later a closed parent and its
//! children. A virtual shard has those records of one engine shard that lie between two sequence numbers and whose
//! key hashes into its range. The children of a shard start after its last record and divide its range, so every
//! record is in exactly one virtual shard, and all records of an item are in one line of descent.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Mutex;

use floe_store::Item;
use floe_store::op::Shard;

use super::random;
use crate::lock::lock;

/// Maximum number of open shards of a stream. At the maximum, a closed shard gets a single child.
const OPEN_SHARDS_MAX: usize = 16;

/// Maximum number of virtual shards of a stream. At the maximum, no shard is split.
const SHARDS_MAX: usize = 1000;

/// Maximum number of returned pages to remember for each shard.
const PAGES_MAX: usize = 16;

/// The trees of all streams.
#[derive(Default)]
pub(super) struct ShardTrees(Mutex<HashMap<String, ShardTree>>);

impl ShardTrees {
    /// Reads or changes the tree of a stream.
    pub(super) fn with<T>(&self, stream_arn: &str, act: impl FnOnce(&mut ShardTree) -> T) -> T {
        let mut trees = lock(&self.0);
        act(trees.entry(stream_arn.to_owned()).or_default())
    }
}

/// The shards of one stream, parents before children.
#[derive(Default)]
pub(super) struct ShardTree {
    shown: Vec<VirtualShard>,
    /// The number of shard ids created by the wrapper.
    ids_created: usize,
    /// The first sequence numbers of the last returned pages of each shard, ascending.
    pages: HashMap<String, VecDeque<String>>,
}

/// A virtual shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VirtualShard {
    pub(super) id: String,
    parent: Option<String>,
    /// The engine's shard that holds its records.
    pub(super) source: Shard,
    /// The range of key hashes, inclusive.
    hashes: (u64, u64),
    /// Its records come after this one; `None` for all records from the start of the engine's shard.
    pub(super) after: Option<String>,
    /// Its last record; `None` unless the wrapper closed it.
    pub(super) until: Option<String>,
    /// The last of its records that was returned.
    pub(super) last_returned: Option<String>,
}

impl VirtualShard {
    /// An open shard with all records of this hash range.
    fn open(source: &Shard, id: String, parent: Option<String>, hashes: (u64, u64)) -> Self {
        Self {
            id,
            parent,
            source: source.clone(),
            hashes,
            after: None,
            until: None,
            last_returned: None,
        }
    }

    /// Whether the shard has this record.
    pub(super) fn holds(&self, sequence: &str, keys: &Item) -> bool {
        let hash = random::hash_text(&format!("{keys:?}"));
        self.after.as_deref().is_none_or(|after| after < sequence)
            && self.until.as_deref().is_none_or(|until| sequence <= until)
            && (self.hashes.0..=self.hashes.1).contains(&hash)
    }

    fn is_open(&self) -> bool {
        self.until.is_none() && self.source.ending_sequence.is_none()
    }

    fn describe(&self, is_shown: impl Fn(&str) -> bool) -> Shard {
        let source = &self.source;
        let start = self.after.as_deref().map(next_sequence);
        Shard {
            id: self.id.clone(),
            parent_id: self.parent.clone().filter(|parent| is_shown(parent)),
            starting_sequence: start.unwrap_or_else(|| source.starting_sequence.clone()),
            ending_sequence: self
                .until
                .clone()
                .or_else(|| source.ending_sequence.clone()),
        }
    }
}

impl ShardTree {
    /// Updates the tree with the engine's shards, parents before children.
    pub(super) fn refresh(&mut self, shards: Vec<Shard>) {
        self.shown
            .retain(|shown| shards.iter().any(|s| s.id == shown.source.id));
        let shown = &self.shown;
        self.pages
            .retain(|id, _| shown.iter().any(|shown| shown.id == *id));
        for shard in shards {
            let mut known = false;
            for shown in self.shown.iter_mut().filter(|s| s.source.id == shard.id) {
                shown.source = shard.clone();
                known = true;
            }
            if !known {
                self.add(&shard);
            }
        }
    }

    /// Adds a new shard of the engine. If its parent has several open virtual shards, each gets a child, which
    /// keeps the order of the records of an item.
    fn add(&mut self, shard: &Shard) {
        let parents: Vec<&VirtualShard> = self
            .shown
            .iter()
            .filter(|s| Some(&s.source.id) == shard.parent_id.as_ref() && s.until.is_none())
            .collect();
        let child = |id: String, parent: &VirtualShard| {
            VirtualShard::open(shard, id, Some(parent.id.clone()), parent.hashes)
        };
        let id = shard.id.clone();
        let roots: Vec<VirtualShard> = match parents.as_slice() {
            [] => vec![VirtualShard::open(
                shard,
                id,
                shard.parent_id.clone(),
                (0, u64::MAX),
            )],
            [parent] => vec![child(id, parent)],
            several => several
                .iter()
                .map(|parent| child(new_id(&shard.id, &mut self.ids_created), parent))
                .collect(),
        };
        self.shown.extend(roots);
    }

    /// The shards for the description of a stream.
    pub(super) fn describe(&self) -> Vec<Shard> {
        let shown: HashSet<&str> = self.shown.iter().map(|s| s.id.as_str()).collect();
        let is_shown = |id: &str| shown.contains(id);
        self.shown.iter().map(|s| s.describe(is_shown)).collect()
    }

    pub(super) fn get(&self, id: &str) -> Option<&VirtualShard> {
        self.shown.iter().find(|s| s.id == id)
    }

    /// The open shards.
    pub(super) fn open(&self) -> impl Iterator<Item = &VirtualShard> {
        self.shown.iter().filter(|s| s.is_open())
    }

    /// Notes that a record was returned as one of this shard, so that it stays in it.
    pub(super) fn note_returned(&mut self, id: &str, sequence: &str) {
        if let Some(shard) = self.shown.iter_mut().find(|s| s.id == id) {
            let last = shard.last_returned.take();
            shard.last_returned = last.max(Some(sequence.to_owned()));
        }
    }

    /// Remembers the first sequence number of a returned page.
    pub(super) fn remember_page(&mut self, id: &str, first: &str) {
        let pages = self.pages.entry(id.to_owned()).or_default();
        if pages.back().is_none_or(|last| last.as_str() < first) {
            pages.push_back(first.to_owned());
        }
        if pages.len() > PAGES_MAX {
            pages.pop_front();
        }
    }

    /// The first sequence numbers of the remembered pages up to a position.
    pub(super) fn pages_up_to(&self, id: &str, read_up_to: &str) -> Vec<String> {
        let pages = self.pages.get(id).into_iter().flatten();
        pages
            .filter(|first| first.as_str() <= read_up_to)
            .cloned()
            .collect()
    }

    /// Closes an open shard after the last record of the engine, or the last returned one if that is later, and
    /// adds one or two children. `None` if the shard has no record or a maximum is reached.
    pub(super) fn split(
        &mut self,
        id: &str,
        last_sequence: Option<&str>,
        in_two: bool,
    ) -> Option<Split> {
        let in_two = in_two && self.open().count() < OPEN_SHARDS_MAX;
        if self.shown.len() >= SHARDS_MAX {
            return None;
        }
        let shard = self.shown.iter_mut().find(|s| s.id == id && s.is_open())?;
        let until = last_sequence
            .max(shard.last_returned.as_deref())?
            .to_owned();
        if shard.after.as_ref().is_some_and(|after| *after >= until) {
            return None;
        }
        shard.until = Some(until.clone());
        let (low, high) = shard.hashes;
        let middle = low + (high - low) / 2;
        let ranges = if in_two && low < high {
            vec![(low, middle), (middle + 1, high)]
        } else {
            vec![(low, high)]
        };
        let child = |hashes| {
            let id = new_id(&shard.source.id, &mut self.ids_created);
            VirtualShard {
                after: Some(until.clone()),
                ..VirtualShard::open(&shard.source, id, Some(shard.id.clone()), hashes)
            }
        };
        let children: Vec<VirtualShard> = ranges.into_iter().map(child).collect();
        let split = Split {
            until,
            children: children.len(),
        };
        // At the end, so that a reader paging through the description does not miss them.
        self.shown.extend(children);
        Some(split)
    }
}

/// A shard id that is unique in the tree and stays within DynamoDB's 65 characters at any depth.
fn new_id(source: &str, ids_created: &mut usize) -> String {
    *ids_created += 1;
    format!("{source}.{ids_created}")
}

/// The result of a split.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Split {
    pub(super) until: String,
    pub(super) children: usize,
}

/// The next sequence number, with the same number of digits.
fn next_sequence(sequence: &str) -> String {
    let mut digits: Vec<u8> = sequence.bytes().collect();
    for digit in digits.iter_mut().rev() {
        match *digit {
            b'9' => *digit = b'0',
            _ => {
                *digit += 1;
                break;
            }
        }
    }
    String::from_utf8(digits).unwrap_or_else(|_| sequence.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(id: &str, parent: Option<&str>, end: Option<&str>) -> Shard {
        Shard {
            id: id.to_owned(),
            parent_id: parent.map(str::to_owned),
            starting_sequence: "001".to_owned(),
            ending_sequence: end.map(str::to_owned),
        }
    }

    fn described(tree: &ShardTree) -> Vec<String> {
        let describe = |s: Shard| {
            let parent = s.parent_id.unwrap_or_default();
            let end = s.ending_sequence.unwrap_or_default();
            format!("{} < {parent} {}..{end}", s.id, s.starting_sequence)
        };
        tree.describe().into_iter().map(describe).collect()
    }

    #[test]
    fn split_closes_the_parent_and_opens_children() {
        let mut tree = ShardTree::default();
        tree.refresh(vec![source("s", None, None)]);
        assert_eq!(described(&tree), ["s <  001.."]);
        assert_eq!(tree.split("s", None, true), None, "it has no record");
        let split = tree.split("s", Some("009"), true);
        assert_eq!(
            split,
            Some(Split {
                until: "009".to_owned(),
                children: 2
            })
        );
        assert_eq!(
            described(&tree),
            ["s <  001..009", "s.1 < s 010..", "s.2 < s 010.."]
        );
        assert_eq!(tree.split("s", Some("010"), true), None, "it is closed");
        assert_eq!(
            tree.split("s.1", Some("009"), true),
            None,
            "it has no record yet"
        );
        tree.split("s.2", Some("010"), false);
        assert_eq!(
            described(&tree).last().map(String::as_str),
            Some("s.3 < s.2 011..")
        );
    }

    #[test]
    fn returned_records_stay_in_the_parent() {
        let mut tree = ShardTree::default();
        tree.refresh(vec![source("s", None, None)]);
        tree.note_returned("s", "012");
        tree.note_returned("s", "011");
        tree.split("s", Some("009"), true);
        assert_eq!(described(&tree)[0], "s <  001..012");
    }

    #[test]
    fn every_record_is_in_exactly_one_shard_of_its_line_of_descent() {
        let mut tree = ShardTree::default();
        tree.refresh(vec![source("s", None, None)]);
        tree.split("s", Some("100"), true);
        tree.split("s.1", Some("200"), true);
        let lines = [
            ["s", "s.1", "s.3"],
            ["s", "s.1", "s.4"],
            ["s", "s.2", "s.2"],
        ];
        for n in 0..50 {
            let keys = Item::new().with("id", n);
            let line = ["050", "150", "250"].map(|sequence| {
                let holders: Vec<_> = tree
                    .shown
                    .iter()
                    .filter(|s| s.holds(sequence, &keys))
                    .collect();
                assert_eq!(holders.len(), 1);
                holders[0].id.as_str()
            });
            assert!(lines.contains(&line), "{line:?}");
        }
    }

    #[test]
    fn new_engine_shard_becomes_a_child_of_each_open_shard() {
        let mut tree = ShardTree::default();
        tree.refresh(vec![source("s", None, None)]);
        tree.split("s", Some("009"), true);
        tree.refresh(vec![
            source("s", None, Some("020")),
            source("t", Some("s"), None),
        ]);
        assert_eq!(
            described(&tree),
            [
                "s <  001..009",
                "s.1 < s 010..020",
                "s.2 < s 010..020",
                "t.3 < s.1 001..",
                "t.4 < s.2 001..",
            ]
        );
        assert_eq!(
            tree.split("s.1", Some("020"), true),
            None,
            "the engine has closed it"
        );
        // The parents were trimmed.
        tree.refresh(vec![source("t", None, None)]);
        assert_eq!(described(&tree), ["t.3 <  001..", "t.4 <  001.."]);
    }

    #[test]
    fn number_of_open_shards_is_limited() {
        let mut tree = ShardTree::default();
        tree.refresh(vec![source("s", None, None)]);
        for n in 1..300 {
            let Some(id) = tree.open().next().map(|s| s.id.clone()) else {
                break;
            };
            tree.split(&id, Some(&format!("{n:03}")), true);
        }
        assert_eq!(tree.open().count(), OPEN_SHARDS_MAX);
        assert!(
            tree.shown.len() > 200,
            "at the limit, shards get a single child"
        );
    }

    #[test]
    fn next_sequence_number_keeps_the_number_of_digits() {
        assert_eq!(next_sequence("00199"), "00200");
        assert_eq!(next_sequence("00000"), "00001");
    }
}
