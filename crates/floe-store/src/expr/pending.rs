//! A stack of the nodes of a tree that are still to be visited.
//!
//! Expressions are walked several times per request, and most are small: a few nodes are stored without allocating.

/// Number of nodes stored without allocating.
const FEW: usize = 6;

/// A stack of nodes to visit.
pub(super) struct Pending<'a, T> {
    few: [Option<&'a T>; FEW],
    count: usize,
    /// The nodes beyond the first few. Only used while `few` is full.
    more: Vec<&'a T>,
}

impl<'a, T> Pending<'a, T> {
    /// Starts a walk at this node.
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
            Some(slot) => {
                *slot = Some(part);
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
    fn stack_is_last_in_first_out_at_any_size() {
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
