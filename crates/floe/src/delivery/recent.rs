//! What was seen lately: a memory of ids that never holds more than so many.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Ids with what is known of each, of which the oldest are forgotten.
#[derive(Debug)]
pub(crate) struct Recent<T> {
    known: HashMap<Arc<str>, T>,
    order: VecDeque<Arc<str>>,
    max: usize,
}

impl<T> Recent<T> {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            known: HashMap::new(),
            order: VecDeque::new(),
            max: max.max(1),
        }
    }

    pub(crate) fn get(&self, id: &str) -> Option<&T> {
        self.known.get(id)
    }

    /// Notes an id, in place of what was known of it. `true` if it was not known.
    pub(crate) fn note(&mut self, id: &str, value: T) -> bool {
        if let Some(known) = self.known.get_mut(id) {
            *known = value;
            return false;
        }
        if self.order.len() >= self.max
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        let id: Arc<str> = id.into();
        self.order.push_back(id.clone());
        self.known.insert(id, value);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten() {
        let mut recent = Recent::new(3);
        for number in 0..5 {
            assert!(recent.note(&number.to_string(), number));
        }
        assert!(!recent.note("3", 33));
        let known = ["1", "2", "3", "4"].map(|id| recent.get(id).copied());
        assert_eq!(known, [None, Some(2), Some(33), Some(4)]);
        assert_eq!((recent.known.len(), recent.order.len()), (3, 3));
    }
}
