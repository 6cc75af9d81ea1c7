//! Rules for paths, and for paths that are used together.

use crate::error::ensure;
use crate::expr::fault::Fault;
use crate::expr::path::{Path, Segment};
use crate::expr::projection::Paths;
use crate::limits;

/// Checks the paths of a projection.
pub(super) fn check_projection(paths: &Paths) -> Result<(), Fault> {
    ensure(!paths.0.is_empty(), || Fault::Empty)?;
    paths.0.iter().try_for_each(check_path)?;
    check_disjoint(paths.0.iter())
}

/// Checks one path.
pub(in crate::expr) fn check_path(path: &Path) -> Result<(), Fault> {
    let depth = path.depth();
    ensure(depth <= limits::PATH_STEPS_MAX, || {
        Fault::TooManySteps(depth)
    })?;
    ensure(!path.root().is_empty(), || Fault::EmptyName)?;
    path.rest().iter().try_for_each(|segment| match segment {
        Segment::Name(name) if name.is_empty() => Err(Fault::EmptyName),
        Segment::Index(at) if *at > limits::LIST_INDEX_MAX => {
            Err(Fault::IndexOutOfRange(at.to_string()))
        }
        _ => Ok(()),
    })
}

/// Why two paths cannot be used together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clash {
    /// One is a prefix of the other, or they are equal.
    Overlap,
    /// One treats as a map what the other treats as a list.
    Conflict,
}

impl Clash {
    fn between(one: &Path, two: &Path) -> Option<Self> {
        if one.root() != two.root() {
            return None;
        }
        for steps in one.rest().iter().zip(two.rest()) {
            match steps {
                (a, b) if a == b => {}
                (Segment::Name(_), Segment::Name(_)) | (Segment::Index(_), Segment::Index(_)) => {
                    return None;
                }
                _ => return Some(Self::Conflict),
            }
        }
        Some(Self::Overlap)
    }
}

/// Up to this many paths are compared pairwise instead of sorted.
const FEW: usize = 8;

fn have_distinct_roots(paths: &[&Path]) -> bool {
    let mut rest = paths.iter();
    while let Some(one) = rest.next() {
        if rest.clone().any(|other| other.root() == one.root()) {
            return false;
        }
    }
    true
}

/// Rejects paths that overlap or conflict, in the order of the text. Overlaps are reported before conflicts.
pub(in crate::expr) fn check_disjoint<'a>(
    paths: impl Iterator<Item = &'a Path>,
) -> Result<(), Fault> {
    let written: Vec<&Path> = paths.collect();
    if written.len() <= FEW && have_distinct_roots(&written) {
        return Ok(());
    }
    let mut sorted = written.clone();
    sorted.sort_unstable();
    // If any paths clash, two adjacent ones do: all paths between a path and an extension of it are extensions of it as
    // well, and after a common prefix all names sort before all indexes.
    let clean = sorted
        .windows(2)
        .all(|pair| matches!(pair, [one, two] if Clash::between(one, two).is_none()));
    if clean {
        return Ok(());
    }
    let kinds: [(_, fn(_, _) -> _); 2] = [
        (Clash::Overlap, Fault::Overlap),
        (Clash::Conflict, Fault::Conflict),
    ];
    for (wanted, fault) in kinds {
        for (n, two) in written.iter().enumerate() {
            let mut earlier = written.iter().take(n);
            if let Some(one) = earlier.find(|one| Clash::between(one, two) == Some(wanted)) {
                return Err(fault((*one).clone(), (*two).clone()));
            }
        }
    }
    Ok(())
}
