//! The results of a server in all rounds of a case.

use std::time::Duration;

use super::client::Round;
use super::process::Side;
use crate::measure::median;

/// The results of a server in a case.
#[derive(Default)]
pub(super) struct Sum {
    /// Responses per second in each round.
    pub(super) rates: Vec<f64>,
    /// Latency of each response of all rounds, in microseconds.
    latencies: Vec<u32>,
    /// CPU time of the server, from the first round to the last. It includes the rounds of the other server, because
    /// deferred work may run then.
    cpu: Duration,
}

impl Sum {
    /// Adds a round.
    pub(super) fn add(&mut self, mut round: Round) {
        self.rates.push(round.rate.per_second());
        self.latencies.append(&mut round.latencies);
    }

    /// Completes the case.
    pub(super) fn finish(&mut self, cpu: Duration) {
        self.cpu = cpu;
        self.latencies.sort_unstable();
    }

    /// CPU time of the server per request, in microseconds.
    #[expect(clippy::cast_precision_loss, reason = "a printed number")]
    pub(super) fn cpu_micros(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.latencies.len().max(1) as f64
    }

    /// The latency that this percentage of responses does not exceed.
    fn percentile(&self, percent: usize) -> u32 {
        let last = self.latencies.len().saturating_sub(1);
        let at = last * percent / 100;
        self.latencies.get(at).copied().unwrap_or(0)
    }

    /// Formats the results as `key=value`, each key beginning with the side.
    pub(super) fn shown(&self, side: Side) -> String {
        let side = side.name();
        format!(
            "{side}_per_s={:.0} {side}_p50_us={} {side}_p99_us={} {side}_cpu_us={:.1}",
            median(self.rates.clone()),
            self.percentile(50),
            self.percentile(99),
            self.cpu_micros(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_cover_all_responses() {
        let mut sum = Sum {
            latencies: (0..=100).rev().collect(),
            ..Sum::default()
        };
        sum.finish(Duration::from_micros(202));
        assert_eq!(
            [0, 50, 99, 100].map(|p| sum.percentile(p)),
            [0, 50, 99, 100]
        );
        assert!((sum.cpu_micros() - 2.0).abs() < 1e-9);
        assert_eq!(Sum::default().percentile(99), 0);
    }
}
