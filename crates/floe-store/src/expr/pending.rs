//! The parts of a tree that a walk has yet to visit.
//!
//! Expressions are walked several times for each request, and most are small: a few parts are kept without
//! asking for memory.

/// Parts kept without asking for memory.
const FEW: usize = 6;

/// A stack of parts to visit, the last pushed first.
pub(super) struct Pending<'a, T> {
    few: [Option<&'a T>; FEW],
    count: usize,
    /// What has no room among the few. They are full while this is not empty.
    more: Vec<&'a T>,
}

impl<'a, T> Pending<'a, T> {
    /// A walk that begins here.
    pub(super) const fn of(root: &'a T) -> Self {
        let mut few = [None; FEW];
        few[0] = Some(root);
        Self {
            few,
            count: 1,
            more: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, part: &'a T) {
        match self.few.get_mut(self.count) {
            Some(place) => {
                *place = Some(part);
                self.count += 1;
            }
            None => self.more.push(part),
        }
    }

    pub(super) fn pop(&mut self) -> Option<&'a T> {
        if let Some(part) = self.more.pop() {
            return Some(part);
        }
        self.count = self.count.checked_sub(1)?;
        self.few.get_mut(self.count)?.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_comes_first_however_many_there_are() {
        let parts: Vec<usize> = (0..20).collect();
        for count in 1..parts.len() {
            let (first, rest) = parts[..count].split_first().unwrap();
            let mut pending = Pending::of(first);
            rest.iter().for_each(|part| pending.push(part));
            let mut popped: Vec<usize> = std::iter::from_fn(|| pending.pop().copied()).collect();
            popped.reverse();
            assert_eq!(popped, parts[..count]);
        }
    }
}
