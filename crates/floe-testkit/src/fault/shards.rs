//! The family tree of a stream's shards as the wrapper shows it.
//!
//! Each shard of the engine is shown as a tree of shards: at first as itself, later as a closed parent
//! and its children. A shown shard holds the records of one engine's shard that lie between two sequence
//! numbers and whose key hashes into its range. The children of a shard begin behind its last record and
//! divide its range between them, so every record is in exactly one shown shard, and all records of an
//! item lie on one line of descent.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Mutex;

use floe_store::Item;
use floe_store::op::Shard;

use super::dice;
use crate::lock::lock;

/// How many shards of one stream are open at once; then shards go on in one child only.
const OPEN_SHARDS_MAX: usize = 16;

/// How many shards of one stream are shown; then none is split any more.
const SHARDS_MAX: usize = 1000;

/// How many of the pages of a shard are remembered that were handed out.
const PAGES_MAX: usize = 16;

/// The trees of all streams.
#[derive(Default)]
pub(super) struct ShardTrees(Mutex<HashMap<String, ShardTree>>);

impl ShardTrees {
    /// Looks at, or changes, the tree of a stream.
    pub(super) fn with<T>(&self, stream_arn: &str, act: impl FnOnce(&mut ShardTree) -> T) -> T {
        let mut trees = lock(&self.0);
        act(trees.entry(stream_arn.to_owned()).or_default())
    }
}

/// The shards of one stream, parents before children.
#[derive(Default)]
pub(super) struct ShardTree {
    shown: Vec<ShownShard>,
    /// How many shards got a name of the wrapper's making.
    named: usize,
    /// Of the last pages of each shard that were handed out, the first sequence number, ascending.
    pages: HashMap<String, VecDeque<String>>,
}

/// A shard as the wrapper shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShownShard {
    pub(super) id: String,
    parent: Option<String>,
    /// The engine's shard that holds its records.
    pub(super) source: Shard,
    /// The first and the last hash of its keys.
    hashes: (u64, u64),
    /// Its records come after this one; those of the engine's shard from the beginning if absent.
    pub(super) after: Option<String>,
    /// Its records end with this one; absent while the wrapper has not closed it.
    pub(super) until: Option<String>,
    /// The last of its records that was handed out.
    pub(super) handed_out: Option<String>,
}

impl ShownShard {
    /// An open shard with all records of these hashes.
    fn open(source: &Shard, id: String, parent: Option<String>, hashes: (u64, u64)) -> Self {
        Self {
            id,
            parent,
            source: source.clone(),
            hashes,
            after: None,
            until: None,
            handed_out: None,
        }
    }

    /// Whether a record is in it.
    pub(super) fn holds(&self, sequence: &str, keys: &Item) -> bool {
        let hash = dice::of_text(&format!("{keys:?}"));
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
    /// Takes over what the engine says about its shards, parents before children.
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

    /// Shows a new shard of the engine. Where its parent was shown as several, it is shown as the child
    /// of each, so that the order of the records of an item is kept.
    fn add(&mut self, shard: &Shard) {
        let parents: Vec<&ShownShard> = self
            .shown
            .iter()
            .filter(|s| Some(&s.source.id) == shard.parent_id.as_ref() && s.until.is_none())
            .collect();
        let child = |id: String, parent: &ShownShard| {
            ShownShard::open(shard, id, Some(parent.id.clone()), parent.hashes)
        };
        let id = shard.id.clone();
        let roots: Vec<ShownShard> = match parents.as_slice() {
            [] => vec![ShownShard::open(
                shard,
                id,
                shard.parent_id.clone(),
                (0, u64::MAX),
            )],
            [parent] => vec![child(id, parent)],
            several => several
                .iter()
                .map(|parent| child(new_id(&shard.id, &mut self.named), parent))
                .collect(),
        };
        self.shown.extend(roots);
    }

    /// The shards as a stream's description shows them.
    pub(super) fn describe(&self) -> Vec<Shard> {
        let shown: HashSet<&str> = self.shown.iter().map(|s| s.id.as_str()).collect();
        let is_shown = |id: &str| shown.contains(id);
        self.shown.iter().map(|s| s.describe(is_shown)).collect()
    }

    pub(super) fn get(&self, id: &str) -> Option<&ShownShard> {
        self.shown.iter().find(|s| s.id == id)
    }

    /// The open shards.
    pub(super) fn open(&self) -> impl Iterator<Item = &ShownShard> {
        self.shown.iter().filter(|s| s.is_open())
    }

    /// Notes that a record of the shard was handed out, so that it stays in it.
    pub(super) fn hand_out(&mut self, id: &str, sequence: &str) {
        if let Some(shard) = self.shown.iter_mut().find(|s| s.id == id) {
            let last = shard.handed_out.take();
            shard.handed_out = last.max(Some(sequence.to_owned()));
        }
    }

    /// Remembers where a page began that was handed out.
    pub(super) fn remember_page(&mut self, id: &str, first: &str) {
        let pages = self.pages.entry(id.to_owned()).or_default();
        if pages.back().is_none_or(|last| last.as_str() < first) {
            pages.push_back(first.to_owned());
        }
        if pages.len() > PAGES_MAX {
            pages.pop_front();
        }
    }

    /// Where pages began that who has read so far was handed out.
    pub(super) fn pages_up_to(&self, id: &str, read_up_to: &str) -> Vec<String> {
        let pages = self.pages.get(id).into_iter().flatten();
        pages
            .filter(|first| first.as_str() <= read_up_to)
            .cloned()
            .collect()
    }

    /// Closes an open shard with the record at the engine's tip, or the last that was handed out if that
    /// is later, and gives it one child or two. `None` if the shard has no record, or there are too many.
    pub(super) fn split(&mut self, id: &str, tip: Option<&str>, in_two: bool) -> Option<Split> {
        let in_two = in_two && self.open().count() < OPEN_SHARDS_MAX;
        if self.shown.len() >= SHARDS_MAX {
            return None;
        }
        let shard = self.shown.iter_mut().find(|s| s.id == id && s.is_open())?;
        let until = tip.max(shard.handed_out.as_deref())?.to_owned();
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
            let id = new_id(&shard.source.id, &mut self.named);
            ShownShard {
                after: Some(until.clone()),
                ..ShownShard::open(&shard.source, id, Some(shard.id.clone()), hashes)
            }
        };
        let children: Vec<ShownShard> = ranges.into_iter().map(child).collect();
        let split = Split {
            until,
            children: children.len(),
        };
        // At the end, so that a description that is being paged through does not miss them.
        self.shown.extend(children);
        Some(split)
    }
}

/// A name that no other shard of the tree has, and that is short however old the family grows: DynamoDB
/// allows 65 characters.
fn new_id(source: &str, named: &mut usize) -> String {
    *named += 1;
    format!("{source}.{named}")
}

/// What a split did.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Split {
    pub(super) until: String,
    pub(super) children: usize,
}

/// The sequence number after this one, with as many digits.
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

    fn told(tree: &ShardTree) -> Vec<String> {
        let tell = |s: Shard| {
            let parent = s.parent_id.unwrap_or_default();
            let end = s.ending_sequence.unwrap_or_default();
            format!("{} < {parent} {}..{end}", s.id, s.starting_sequence)
        };
        tree.describe().into_iter().map(tell).collect()
    }

    #[test]
    fn a_split_closes_the_parent_and_opens_children() {
        let mut tree = ShardTree::default();
        tree.refresh(vec![source("s", None, None)]);
        assert_eq!(told(&tree), ["s <  001.."]);
        assert_eq!(
            tree.split("s", None, true),
            None,
            "it has no record to end with"
        );
        let split = tree.split("s", Some("009"), true);
        assert_eq!(
            split,
            Some(Split {
                until: "009".to_owned(),
                children: 2
            })
        );
        assert_eq!(
            told(&tree),
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
            told(&tree).last().map(String::as_str),
            Some("s.3 < s.2 011..")
        );
    }

    #[test]
    fn what_was_handed_out_stays_in_the_parent() {
        let mut tree = ShardTree::default();
        tree.refresh(vec![source("s", None, None)]);
        tree.hand_out("s", "012");
        tree.hand_out("s", "011");
        tree.split("s", Some("009"), true);
        assert_eq!(told(&tree)[0], "s <  001..012");
    }

    #[test]
    fn every_record_is_in_one_shard_on_the_line_of_its_key() {
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
    fn shards_of_the_engine_go_on_below_all_open_ones() {
        let mut tree = ShardTree::default();
        tree.refresh(vec![source("s", None, None)]);
        tree.split("s", Some("009"), true);
        tree.refresh(vec![
            source("s", None, Some("020")),
            source("t", Some("s"), None),
        ]);
        assert_eq!(
            told(&tree),
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
        assert_eq!(told(&tree), ["t.3 <  001..", "t.4 <  001.."]);
    }

    #[test]
    fn there_is_a_limit_to_open_shards() {
        let mut tree = ShardTree::default();
        tree.refresh(vec![source("s", None, None)]);
        for n in 1..300 {
            let Some(id) = tree.open().next().map(|s| s.id.clone()) else {
                break;
            };
            tree.split(&id, Some(&format!("{n:03}")), true);
        }
        assert_eq!(tree.open().count(), OPEN_SHARDS_MAX);
        assert!(tree.shown.len() > 200, "shards go on in one child each");
    }

    #[test]
    fn sequence_numbers_keep_their_digits() {
        assert_eq!(next_sequence("00199"), "00200");
        assert_eq!(next_sequence("00000"), "00001");
    }
}
