//! The order of a list: which numbers its edges have, so that most changes touch few of them.
//!
//! An edge has a number, and a list is read in the order of the numbers. They lie far apart, so that there is room
//! between any two: who puts an edge between others writes that edge. Only where there is no room left are some around
//! it given other numbers. The numbers have 16 digits and are whole in a double, as others may read them.

/// The number of the first edge of a list.
const START: u64 = 1 << 52;
/// How far apart neighbours are that are put at an end.
const STEP: u64 = 1 << 20;
/// How far apart they are at least, on average, where edges have been given other numbers.
const SPREAD: u64 = 16;
/// The least number: it has 16 digits.
const INDEX_MIN: u64 = 1_000_000_000_000_000;
/// The largest number: the last that is whole in a double.
const INDEX_MAX: u64 = (1 << 53) - 1;

/// The numbers of a list in its new order, given those that its edges have; `None` for new ones. As few as possible
/// change. `None` if the list is too long for any.
pub(crate) fn arrange(wanted: &[Option<u64>]) -> Option<Vec<u64>> {
    let mut fixed = longest_ascent(wanted);
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

/// Gives numbers to the edges from here to the next that has one. Tells where to go on.
fn fill(fixed: &mut [Option<u64>], at: usize) -> Option<usize> {
    let (mut first, mut least_room) = (at, 1);
    let mut end = next_fixed(fixed, at);
    loop {
        let before = first.checked_sub(1).and_then(|at| *fixed.get(at)?);
        let after = fixed.get(end).copied().flatten();
        let count = (end - first) as u64;
        if let Some(numbers) = numbers(before, after, count, least_room) {
            let free = fixed.iter_mut().skip(first).zip(numbers);
            free.for_each(|(place, number)| *place = Some(number));
            return Some(end);
        }
        // There is no room: the neighbours make some.
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

/// So many numbers between two, in their order.
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

/// The numbers that can stay: the longest ascent among them. All others are `None`.
fn longest_ascent(wanted: &[Option<u64>]) -> Vec<Option<u64>> {
    // `tails` holds, for each length, the place of the smallest end of an ascent of that length.
    let number = |at: usize| wanted.get(at).copied().flatten().unwrap_or_default();
    let mut tails: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; wanted.len()];
    for (at, own) in wanted.iter().enumerate() {
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
    let mut kept = vec![None; wanted.len()];
    let mut next = tails.last().copied();
    while let Some(at) = next {
        if let Some(place) = kept.get_mut(at) {
            *place = wanted.get(at).copied().flatten();
        }
        next = before.get(at).copied().flatten();
    }
    kept
}

#[cfg(test)]
mod tests {
    use floe_store::env::SeededRandom;

    use super::*;

    fn changes(wanted: &[Option<u64>]) -> usize {
        let placed = arrange(wanted).unwrap();
        assert_eq!(placed.len(), wanted.len());
        assert!(placed.windows(2).all(|two| two[0] < two[1]), "{placed:?}");
        assert!(placed.iter().all(|n| (INDEX_MIN..=INDEX_MAX).contains(n)));
        let pairs = placed.iter().zip(wanted);
        pairs.filter(|(new, old)| Some(**new) != **old).count()
    }

    #[test]
    fn a_new_edge_changes_no_other() {
        let list = arrange(&[None, None, None]).unwrap();
        let keep = |at: usize| Some(list[at]);
        for wanted in [
            [None, keep(0), keep(1), keep(2)],
            [keep(0), None, keep(1), keep(2)],
            [keep(0), keep(1), keep(2), None],
        ] {
            assert_eq!(changes(&wanted), 1);
        }
    }

    #[test]
    fn one_that_moves_is_the_only_one_that_changes() {
        let list = arrange(&[None; 5]).unwrap();
        let moved = [list[4], list[0], list[1], list[2], list[3]].map(Some);
        assert_eq!(changes(&moved), 1);
        let reversed: Vec<_> = list.iter().rev().copied().map(Some).collect();
        assert_eq!(changes(&reversed), 4);
    }

    #[test]
    fn where_there_is_no_room_only_neighbours_change() {
        let list = [START, START + 1, START + STEP, START + 2 * STEP].map(Some);
        let wanted = [list[0], None, list[1], list[2], list[3]];
        assert!(changes(&wanted) <= 3);
    }

    #[test]
    fn a_thousand_edges_go_to_the_same_place() {
        for front in [0, 1] {
            let mut list: Vec<u64> = arrange(&[None, None]).unwrap();
            for _ in 0..1000 {
                let mut wanted: Vec<_> = list.iter().copied().map(Some).collect();
                wanted.insert(front, None);
                let changed = changes(&wanted);
                assert!(changed < 45, "{changed}");
                list = arrange(&wanted).unwrap();
            }
        }
    }

    #[test]
    fn any_order_can_be_made_from_any_other() {
        let random = SeededRandom::new(3);
        for _ in 0..300 {
            let list = arrange(&vec![None; random.below(12) as usize]).unwrap();
            let mut wanted: Vec<_> = list.into_iter().map(Some).collect();
            for _ in 0..random.below(8) {
                let at = random.below(wanted.len() as u64 + 1) as usize;
                wanted.insert(at, None);
            }
            for at in (1..wanted.len()).rev() {
                wanted.swap(at, random.below(at as u64 + 1) as usize);
            }
            changes(&wanted);
        }
    }
}
