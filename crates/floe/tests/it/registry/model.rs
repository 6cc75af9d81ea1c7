//! A registry that is obviously right: one group, in memory.

use std::collections::BTreeMap;

use floe::ErrorKind;
use floe::registry::Status;

pub(crate) type Answer<T> = Result<T, ErrorKind>;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub content: String,
    pub is_deprecated: bool,
    pub expires: Option<u64>,
    pub deleted: Option<u64>,
    pub is_pinned: bool,
    pub aliases: Vec<String>,
}

/// Time is in seconds. Version 1 is the first of the list.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub now: u64,
    pub retention: u64,
    pub versions: Vec<Entry>,
    pub aliases: BTreeMap<String, u64>,
    /// What the latest was from which moment on.
    pub latest_since: Vec<(u64, Option<u64>)>,
}

impl Model {
    pub(crate) fn latest(&self) -> Option<u64> {
        self.latest_since.last().and_then(|(_, latest)| *latest)
    }

    pub(crate) fn as_of(&self, moment: u64) -> Option<u64> {
        let before = self
            .latest_since
            .iter()
            .rfind(|(since, _)| *since <= moment);
        before.and_then(|(_, latest)| *latest)
    }

    fn entry(&mut self, number: u64) -> Option<&mut Entry> {
        self.versions
            .get_mut(usize::try_from(number).ok()?.checked_sub(1)?)
    }

    /// What is past its time is deleted since then.
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
            let is_held = before.is_pinned || !before.aliases.is_empty();
            before.expires = (!is_held).then_some(expires);
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

    pub(crate) fn retire(&mut self, number: u64) -> Answer<bool> {
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

    pub(crate) fn pin(&mut self, number: u64, is_pinned: bool) -> Answer<bool> {
        let entry = self.deployed(number)?;
        let is_changed = entry.is_pinned != is_pinned;
        entry.is_pinned = is_pinned;
        if is_changed {
            self.hold(number);
        }
        Ok(is_changed)
    }

    pub(crate) fn alias(&mut self, name: &str, to: Option<u64>) -> Answer<bool> {
        let from = self.aliases.get(name).copied();
        if from == to {
            return Ok(false);
        }
        if let Some(to) = to {
            self.deployed(to)?.aliases.push(name.to_owned());
            self.deployed(to)?.aliases.sort_unstable();
            self.aliases.insert(name.to_owned(), to);
            self.hold(to);
        } else {
            self.aliases.remove(name);
        }
        if let Some(from) = from {
            let entry = self.entry(from).unwrap();
            entry.aliases.retain(|known| known != name);
            self.hold(from);
        }
        Ok(true)
    }

    fn deployed(&mut self, number: u64) -> Answer<&mut Entry> {
        let entry = self.entry(number).filter(|entry| entry.deleted.is_none());
        entry.ok_or(ErrorKind::NotFound)
    }

    /// What is held does not expire, and what is let go does from now on.
    fn hold(&mut self, number: u64) {
        let expires = self.now + self.retention;
        let entry = self.entry(number).unwrap();
        let is_held = entry.is_pinned || !entry.aliases.is_empty();
        match (is_held, entry.is_deprecated) {
            (true, _) => entry.expires = None,
            (false, true) => entry.expires = Some(expires),
            (false, false) => {}
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
