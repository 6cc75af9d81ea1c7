//! A reference model of one group of a registry, in memory.

use std::collections::BTreeMap;

use floe::ErrorKind;
use floe::registry::Status;

pub(crate) type Outcome<T> = Result<T, ErrorKind>;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub content: String,
    pub is_deprecated: bool,
    pub expires: Option<u64>,
    pub deleted: Option<u64>,
    pub is_pinned: bool,
    pub aliases: Vec<String>,
}

/// Times are in seconds. Version 1 is the first entry.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub now: u64,
    pub retention: u64,
    pub versions: Vec<Entry>,
    pub aliases: BTreeMap<String, u64>,
    /// The latest version since each time of change.
    pub latest_since: Vec<(u64, Option<u64>)>,
}

impl Model {
    pub(crate) fn latest(&self) -> Option<u64> {
        self.latest_since.last().and_then(|(_, latest)| *latest)
    }

    pub(crate) fn as_of(&self, time: u64) -> Option<u64> {
        let before = self.latest_since.iter().rfind(|(since, _)| *since <= time);
        before.and_then(|(_, latest)| *latest)
    }

    fn entry(&mut self, number: u64) -> Option<&mut Entry> {
        self.versions
            .get_mut(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    /// Marks expired versions as deleted at their expiry.
    pub(crate) fn expire(&mut self) {
        let now = self.now;
        for entry in &mut self.versions {
            if let Some(expires) = entry.expires.take_if(|expires| *expires <= now) {
                entry.deleted = Some(expires);
            }
        }
    }

    pub(crate) fn publish(&mut self, content: &str, if_changed: bool) -> (u64, bool) {
        if let (true, Some(latest)) = (if_changed, self.latest())
            && self.entry(latest).unwrap().content == content
        {
            return (latest, false);
        }
        let expires = self.now + self.retention;
        if let Some(latest) = self.latest() {
            let before = self.entry(latest).unwrap();
            before.is_deprecated = true;
            let is_exempt = before.is_pinned || !before.aliases.is_empty();
            before.expires = (!is_exempt).then_some(expires);
        }
        self.versions.push(Entry {
            content: content.to_owned(),
            is_deprecated: false,
            expires: None,
            deleted: None,
            is_pinned: false,
            aliases: Vec::new(),
        });
        let number = self.versions.len() as u64;
        self.latest_since.push((self.now, Some(number)));
        (number, true)
    }

    pub(crate) fn retire(&mut self, number: u64) -> Outcome<bool> {
        let now = self.now;
        let entry = self.entry(number).ok_or(ErrorKind::NotFound)?;
        if entry.deleted.is_some() {
            return Ok(false);
        }
        if !entry.aliases.is_empty() {
            return Err(ErrorKind::Restricted);
        }
        (entry.deleted, entry.expires, entry.is_pinned) = (Some(now), None, false);
        if self.latest() == Some(number) {
            let is_there = |entry: &Entry| entry.deleted.is_none();
            let newest = self.versions.iter().rposition(is_there);
            let newest = newest.map(|at| at as u64 + 1);
            if let Some(entry) = newest.and_then(|number| self.entry(number)) {
                (entry.is_deprecated, entry.expires) = (false, None);
            }
            self.latest_since.push((now, newest));
        }
        Ok(true)
    }

    pub(crate) fn pin(&mut self, number: u64, is_pinned: bool) -> Outcome<bool> {
        let entry = self.deployed(number)?;
        let is_changed = entry.is_pinned != is_pinned;
        entry.is_pinned = is_pinned;
        if is_changed {
            self.update_expiry(number);
        }
        Ok(is_changed)
    }

    pub(crate) fn alias(&mut self, name: &str, to: Option<u64>) -> Outcome<bool> {
        let from = self.aliases.get(name).copied();
        if from == to {
            return Ok(false);
        }
        if let Some(to) = to {
            self.deployed(to)?.aliases.push(name.to_owned());
            self.deployed(to)?.aliases.sort_unstable();
            self.aliases.insert(name.to_owned(), to);
            self.update_expiry(to);
        } else {
            self.aliases.remove(name);
        }
        if let Some(from) = from {
            let entry = self.entry(from).unwrap();
            entry.aliases.retain(|known| known != name);
            self.update_expiry(from);
        }
        Ok(true)
    }

    fn deployed(&mut self, number: u64) -> Outcome<&mut Entry> {
        let entry = self.entry(number).filter(|entry| entry.deleted.is_none());
        entry.ok_or(ErrorKind::NotFound)
    }

    /// Updates the expiry of a version after a change of its pin or aliases.
    fn update_expiry(&mut self, number: u64) {
        let expires = self.now + self.retention;
        let entry = self.entry(number).unwrap();
        let is_exempt = entry.is_pinned || !entry.aliases.is_empty();
        if is_exempt {
            entry.expires = None;
        } else if entry.is_deprecated {
            entry.expires = Some(expires);
        }
    }

    pub(crate) fn status(entry: &Entry) -> Option<Status> {
        match (entry.deleted, entry.is_deprecated) {
            (Some(_), _) => None,
            (None, true) => Some(Status::Deprecated),
            (None, false) => Some(Status::Latest),
        }
    }
}
