//! A bounded map of recent ids.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Values by id; the oldest ids are removed first.
#[derive(Debug)]
pub(crate) struct RecentIds<T> {
    values: HashMap<Arc<str>, T>,
    order: VecDeque<Arc<str>>,
    max: usize,
}

impl<T> RecentIds<T> {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            values: HashMap::new(),
            order: VecDeque::new(),
            max: max.max(1),
        }
    }

    pub(crate) fn get(&self, id: &str) -> Option<&T> {
        self.values.get(id)
    }

    /// Stores the value of an id. Returns whether the id was new.
    pub(crate) fn insert(&mut self, id: &str, value: T) -> bool {
        if let Some(known) = self.values.get_mut(id) {
            *known = value;
            return false;
        }
        if self.order.len() >= self.max
            && let Some(oldest) = self.order.pop_front()
        {
            self.values.remove(&oldest);
        }
        let id: Arc<str> = id.into();
        self.order.push_back(id.clone());
        self.values.insert(id, value);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_ids_are_removed() {
        let mut recent = RecentIds::new(3);
        for number in 0..5 {
            assert!(recent.insert(&number.to_string(), number));
        }
        assert!(!recent.insert("3", 33));
        let values = ["1", "2", "3", "4"].map(|id| recent.get(id).copied());
        assert_eq!(values, [None, Some(2), Some(33), Some(4)]);
        assert_eq!((recent.values.len(), recent.order.len()), (3, 3));
    }
}
