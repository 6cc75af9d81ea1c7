//! Reduces a failing sequence of steps.

use super::step::Step;

/// Maximum number of sequences to try.
const TRIES_MAX: usize = 600;

/// Removes steps as long as the rest fails: first halves, then smaller parts, down to single steps.
pub(super) async fn shrink(steps: Vec<Step>, fails: impl AsyncFn(&[Step]) -> bool) -> Vec<Step> {
    let mut steps = steps;
    let mut tries = 0;
    let mut part = steps.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let mut removed = false;
        while at < steps.len() && tries < TRIES_MAX {
            let mut shorter = steps.clone();
            shorter.drain(at..(at + part).min(steps.len()));
            tries += 1;
            if fails(&shorter).await {
                steps = shorter;
                removed = true;
            } else {
                at += part;
            }
        }
        if tries >= TRIES_MAX || (part == 1 && !removed) {
            return steps;
        }
        if part > 1 {
            part = part.div_ceil(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_steps_needed_for_the_failure_remain() {
        let step = |n: usize| Step::ReadStreams(n);
        let steps: Vec<Step> = (0..100).map(step).collect();
        let needed = [step(7), step(63), step(99)];
        let fails = async |steps: &[Step]| needed.iter().all(|step| steps.contains(step));
        assert_eq!(shrink(steps, fails).await, needed);
    }
}
