//! The numbers that keep the edges of a list in order, chosen so that most changes affect few edges.
//!
//! Each edge has a number, and a list is read in the order of the numbers. They are far apart: an edge that is inserted
//! between two others gets a number between theirs, and only where there is no room do neighbours get new numbers. The
//! numbers have 16 digits and are exact as a double, because other programs may read them as such.

/// The number of the first edge of a list.
const START: u64 = 1 << 52;
/// Distance between neighbours at an end of the list.
const STEP: u64 = 1 << 20;
/// Minimum average distance after edges get new numbers.
const SPREAD: u64 = 16;
/// Smallest number. It has 16 digits.
const INDEX_MIN: u64 = 1_000_000_000_000_000;
/// Largest number. It is the largest integer that is exact as a double.
const INDEX_MAX: u64 = (1 << 53) - 1;

/// Returns the numbers of a list in its new order, given the present number of each edge, or `None` for new edges. As
/// few as possible change. Returns `None` if the list is too long.
pub(crate) fn arrange(present: &[Option<u64>]) -> Option<Vec<u64>> {
    let mut fixed = longest_ascent(present);
    let mut at = 0;
    while at < fixed.len() {
        if fixed.get(at).copied().flatten().is_some() {
            at += 1;
            continue;
        }
        at = fill(&mut fixed, at)?;
    }
    fixed.into_iter().collect()
}

/// Numbers the edges from `at` to the next numbered one. Returns the index at which to continue.
fn fill(fixed: &mut [Option<u64>], at: usize) -> Option<usize> {
    let (mut first, mut least_room) = (at, 1);
    let mut end = next_fixed(fixed, at);
    loop {
        let before = first.checked_sub(1).and_then(|at| *fixed.get(at)?);
        let after = fixed.get(end).copied().flatten();
        let count = (end - first) as u64;
        if let Some(numbers) = numbers(before, after, count, least_room) {
            let free = fixed.iter_mut().skip(first).zip(numbers);
            free.for_each(|(slot, number)| *slot = Some(number));
            return Some(end);
        }
        // There is no room: the neighbours get new numbers as well.
        if before.is_none() && after.is_none() {
            return None;
        }
        least_room = SPREAD;
        if before.is_some() {
            first -= 1;
            *fixed.get_mut(first)? = None;
        }
        if let Some(next) = fixed.get_mut(end) {
            *next = None;
            end = next_fixed(fixed, end);
        }
    }
}

fn next_fixed(fixed: &[Option<u64>], at: usize) -> usize {
    let free = fixed.iter().skip(at).take_while(|number| number.is_none());
    at + free.count()
}

/// Returns `count` ascending numbers between two numbers.
fn numbers(
    before: Option<u64>,
    after: Option<u64>,
    count: u64,
    least_room: u64,
) -> Option<Vec<u64>> {
    let (start, step) = match (before, after) {
        (Some(before), Some(after)) => {
            let step = after.checked_sub(before)? / (count + 1);
            (before + step, (step >= least_room).then_some(step)?)
        }
        (Some(before), None) => (before + STEP, STEP),
        (None, Some(after)) => (after.checked_sub(STEP.checked_mul(count)?)?, STEP),
        (None, None) => (START, STEP),
    };
    let last = start.checked_add(step.checked_mul(count.saturating_sub(1))?)?;
    let fits = start >= INDEX_MIN && last <= INDEX_MAX;
    fits.then(|| (0..count).map(|at| start + at * step).collect())
}

/// Keeps the numbers that need not change: the longest ascending subsequence. All others become `None`.
fn longest_ascent(present: &[Option<u64>]) -> Vec<Option<u64>> {
    // `tails[length]` is the index of the smallest end of an ascending subsequence of that length.
    let number = |at: usize| present.get(at).copied().flatten().unwrap_or_default();
    let mut tails: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; present.len()];
    for (at, own) in present.iter().enumerate() {
        let Some(own) = own else { continue };
        let length = tails.partition_point(|tail| number(*tail) < *own);
        if let Some(previous) = before.get_mut(at) {
            *previous = length
                .checked_sub(1)
                .and_then(|last| tails.get(last).copied());
        }
        match tails.get_mut(length) {
            Some(tail) => *tail = at,
            None => tails.push(at),
        }
    }
    let mut kept = vec![None; present.len()];
    let mut next = tails.last().copied();
    while let Some(at) = next {
        if let Some(slot) = kept.get_mut(at) {
            *slot = present.get(at).copied().flatten();
        }
        next = before.get(at).copied().flatten();
    }
    kept
}

#[cfg(test)]
mod tests {
    use floe_store::env::SeededRandom;

    use super::*;

    fn changes(present: &[Option<u64>]) -> usize {
        let placed = arrange(present).unwrap();
        assert_eq!(placed.len(), present.len());
        assert!(placed.windows(2).all(|two| two[0] < two[1]), "{placed:?}");
        assert!(placed.iter().all(|n| (INDEX_MIN..=INDEX_MAX).contains(n)));
        let pairs = placed.iter().zip(present);
        pairs.filter(|(new, old)| Some(**new) != **old).count()
    }

    #[test]
    fn insertion_changes_no_other_edge() {
        let list = arrange(&[None, None, None]).unwrap();
        let keep = |at: usize| Some(list[at]);
        for present in [
            [None, keep(0), keep(1), keep(2)],
            [keep(0), None, keep(1), keep(2)],
            [keep(0), keep(1), keep(2), None],
        ] {
            assert_eq!(changes(&present), 1);
        }
    }

    #[test]
    fn move_changes_only_the_moved_edge() {
        let list = arrange(&[None; 5]).unwrap();
        let moved = [list[4], list[0], list[1], list[2], list[3]].map(Some);
        assert_eq!(changes(&moved), 1);
        let reversed: Vec<_> = list.iter().rev().copied().map(Some).collect();
        assert_eq!(changes(&reversed), 4);
    }

    #[test]
    fn insertion_without_room_changes_neighbours_only() {
        let list = [START, START + 1, START + STEP, START + 2 * STEP].map(Some);
        let present = [list[0], None, list[1], list[2], list[3]];
        assert!(changes(&present) <= 3);
    }

    #[test]
    fn a_thousand_insertions_at_one_position_change_few_edges() {
        for front in [0, 1] {
            let mut list: Vec<u64> = arrange(&[None, None]).unwrap();
            for _ in 0..1000 {
                let mut present: Vec<_> = list.iter().copied().map(Some).collect();
                present.insert(front, None);
                let changed = changes(&present);
                assert!(changed < 45, "{changed}");
                list = arrange(&present).unwrap();
            }
        }
    }

    #[test]
    fn any_permutation_can_be_arranged() {
        let random = SeededRandom::new(3);
        for _ in 0..300 {
            let list = arrange(&vec![None; random.below(12) as usize]).unwrap();
            let mut present: Vec<_> = list.into_iter().map(Some).collect();
            for _ in 0..random.below(8) {
                let at = random.below(present.len() as u64 + 1) as usize;
                present.insert(at, None);
            }
            for at in (1..present.len()).rev() {
                present.swap(at, random.below(at as u64 + 1) as usize);
            }
            changes(&present);
        }
    }
}
