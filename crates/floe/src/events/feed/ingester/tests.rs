//! Ingesters that compete, fail and restart: nothing is lost or duplicated, and the order of each stream is kept.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use floe_store::env::{Clock, SeededRandom};

use super::*;
use crate::events::feed::index::{IndexEvent, IndexState};
use crate::events::feed::log::memory::{MemoryLog, Task, pause, poll_once};
use crate::events::keys::StreamName;

const PARTITION: Partition = Partition::new(4);

/// Events `from..to` of a stream. The type of an event contains its index.
fn span(id: u64, from: u64, to: u64) -> Span {
    let stream = StreamName::new("Cart", &id).unwrap();
    Span::new(stream, from, (from..to).map(|index| format!("t{index}")))
}

fn ingester(log: &MemoryLog, limits: EpochLimits) -> Ingester<MemoryLog> {
    Ingester::new(log.clone(), PARTITION, limits).unwrap()
}

/// Epochs that close after `version_max` events.
fn closing_at(version_max: u64) -> EpochLimits {
    EpochLimits {
        version_max,
        ..EpochLimits::default()
    }
}

/// Returns the version of each stream in the epochs, after checking that each event is there once and in order.
fn versions(log: &MemoryLog) -> BTreeMap<String, u64> {
    let mut versions: BTreeMap<String, u64> = BTreeMap::new();
    for events in log.state().epochs.values() {
        for (event, _) in events {
            let EpochEvent::Ingested(ingested) = event else {
                continue;
            };
            for span in ingested.spans() {
                let version = versions.entry(span.stream.to_string()).or_default();
                assert_eq!(span.start, *version, "{}", span.stream);
                for case in &span.types {
                    assert_eq!(case.as_str(), format!("t{version}"));
                    *version += 1;
                }
            }
        }
    }
    versions
}

#[tokio::test]
async fn batch_is_one_append_after_the_epoch_is_loaded() {
    let log = MemoryLog::new();
    let mut ingester = ingester(&log, EpochLimits::default());
    let now = log.clock.now();
    let outcome = ingester.ingest(vec![span(1, 0, 2)], now).await.unwrap();
    assert_eq!(
        (outcome.events, outcome.checkpoint.to_string().as_str()),
        (2, "0@1")
    );
    let requests = log.take_requests();
    assert_eq!(
        requests,
        [
            "load_index",
            "load_index",
            "append_index",
            "load_epoch",
            "append_epoch"
        ]
    );
    let spans = vec![span(1, 1, 4), span(2, 0, 1)];
    let outcome = ingester.ingest(spans, now).await.unwrap();
    assert_eq!(
        (outcome.events, outcome.checkpoint.to_string().as_str()),
        (3, "0@2")
    );
    assert_eq!(log.take_requests(), ["append_epoch"]);
    let repeated = ingester.ingest(vec![span(1, 1, 4)], now).await.unwrap();
    assert_eq!(
        (repeated.events, repeated.checkpoint),
        (0, outcome.checkpoint)
    );
    assert_eq!(log.take_requests(), [""; 0]);
}

#[tokio::test]
async fn full_epoch_is_closed_and_the_next_is_recorded() {
    let log = MemoryLog::new();
    let mut ingester = ingester(&log, closing_at(2));
    for index in 0..4 {
        let spans = vec![span(1, index, index + 1)];
        ingester.ingest(spans, log.clock.now()).await.unwrap();
    }
    assert_eq!(versions(&log)["Cart-1"], 4);
    let state = log.state();
    for epoch in [0, 1] {
        assert_eq!(state.epoch(PARTITION, epoch).len(), 3);
    }
    assert_eq!(state.epoch(PARTITION, 2), []);
    let started = [0, 1, 2].map(|epoch| IndexEvent::Started {
        partition: PARTITION,
        epoch,
    });
    assert_eq!(state.index, started);
}

#[tokio::test]
async fn stale_ingester_skips_spans_of_another_ingester() {
    let log = MemoryLog::new();
    let (mut one, mut other) = (ingester(&log, closing_at(2)), ingester(&log, closing_at(2)));
    let now = log.clock.now();
    one.ingest(vec![span(1, 0, 1)], now).await.unwrap();
    for index in 0..5 {
        let spans = vec![span(1, index, index + 1), span(2, index, index + 1)];
        other.ingest(spans, now).await.unwrap();
    }
    // The first ingester still has the open first epoch, and receives spans after those that the other one wrote.
    let outcome = one.ingest(vec![span(1, 5, 6)], now).await.unwrap();
    assert_eq!(outcome.events, 1);
    let again = vec![span(2, 0, 3), span(1, 0, 6)];
    assert_eq!(one.ingest(again, now).await.unwrap().events, 0);
    assert_eq!(versions(&log).into_values().collect::<Vec<_>>(), [6, 5]);
}

#[tokio::test]
async fn gap_is_an_error_and_nothing_is_written() {
    let log = MemoryLog::new();
    let mut ingester = ingester(&log, EpochLimits::default());
    let now = log.clock.now();
    ingester.ingest(vec![span(1, 0, 2)], now).await.unwrap();
    let spans = vec![span(2, 0, 1), span(1, 3, 4)];
    let error = ingester.ingest(spans, now).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MissingEvents);
    assert_eq!(
        error.to_string(),
        "the feed would skip events: stream=Cart-1 expected=2 found=3"
    );
    assert_eq!(versions(&log).len(), 1);
}

#[tokio::test]
async fn closed_epoch_missing_in_the_index_is_passed() {
    let log = MemoryLog::new();
    let mut first = ingester(&log, closing_at(1));
    first
        .ingest(vec![span(1, 0, 1)], log.clock.now())
        .await
        .unwrap();
    // It ends before it can update the index.
    {
        let mut state = log.state();
        state.index.pop();
        let mut before = IndexState::default();
        state
            .index
            .iter()
            .for_each(|event| before.apply(event.clone()));
        state.snapshot = before;
        assert_eq!(state.snapshot.active(PARTITION), 0);
    }
    let mut second = ingester(&log, closing_at(1));
    let spans = vec![span(1, 0, 3)];
    let outcome = second.ingest(spans, log.clock.now()).await.unwrap();
    assert_eq!(
        (outcome.events, outcome.checkpoint.to_string().as_str()),
        (2, "2@0")
    );
    assert_eq!(log.state().snapshot.active(PARTITION), 2);
}

#[tokio::test]
async fn new_ingester_loads_epochs_back_to_its_oldest_change() {
    let log = MemoryLog::new();
    let mut first = ingester(&log, closing_at(1));
    let mut times = Vec::new();
    for index in 0..6 {
        times.push(log.clock.now());
        let spans = vec![span(1, index, index + 1)];
        first.ingest(spans, log.clock.now()).await.unwrap();
        log.clock.advance(Duration::from_secs(60));
    }
    log.take_requests();
    for (since, loads) in [(5, 3), (3, 5), (0, 7)] {
        let mut second = ingester(&log, closing_at(1)).clock_skew_max(Duration::from_secs(1));
        let again = vec![span(1, since, 6)];
        let time = times[since as usize];
        assert_eq!(second.ingest(again, time).await.unwrap().events, 0);
        let requests = log.take_requests();
        let loaded = requests.iter().filter(|name| **name == "load_epoch");
        assert_eq!(loaded.count(), loads, "{since}");
    }
    // Earlier epochs are dropped later.
    let time = *times.last().unwrap();
    first = first.clock_skew_max(Duration::ZERO);
    first.ingest(vec![span(1, 5, 6)], time).await.unwrap();
    assert!(first.chain.len() <= 3, "{}", first.chain.len());
}

#[tokio::test]
async fn ingester_gives_up_after_too_many_conflicts() {
    #[derive(Debug)]
    struct ConflictingLog(MemoryLog);

    impl EpochLog for ConflictingLog {
        type Position = usize;

        async fn load_epoch(
            &self,
            partition: Partition,
            epoch: u32,
        ) -> Result<Loaded<EpochState, usize>> {
            self.0.load_epoch(partition, epoch).await
        }

        async fn append_epoch(
            &self,
            _: Partition,
            _: u32,
            _: &[EpochEvent],
            _: &usize,
        ) -> Result<Appended<usize>> {
            Ok(Appended::Conflict)
        }

        async fn load_index(&self) -> Result<Loaded<IndexState, usize>> {
            self.0.load_index().await
        }

        async fn append_index(
            &self,
            event: &IndexEvent,
            after: &IndexState,
            expected: &usize,
        ) -> Result<Appended<usize>> {
            self.0.append_index(event, after, expected).await
        }
    }

    let log = ConflictingLog(MemoryLog::new());
    let mut ingester = Ingester::new(log, PARTITION, EpochLimits::default()).unwrap();
    let now = Timestamp::default();
    let error = ingester.ingest(vec![span(1, 0, 1)], now).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MaxResyncsExhausted);
    assert_eq!(
        error.to_string(),
        "gave up after conflicts in the feed: category=$AppendsEpoch partition=4 conflicts=100"
    );
}

/// The changes of a table in order, with their times.
type Changes = Rc<RefCell<Vec<(Span, Timestamp)>>>;

/// A worker that reads changes and passes them to its ingester.
#[derive(Clone)]
struct Worker {
    log: MemoryLog,
    limits: EpochLimits,
    skew: Duration,
    changes: Changes,
    /// Total number of changes.
    total: usize,
    /// Number of processed changes, as last saved.
    saved: Rc<Cell<usize>>,
    random: Rc<SeededRandom>,
}

impl Worker {
    fn start(self) -> Task {
        Box::pin(async move {
            // A restarted worker knows only what was saved.
            let mut ingester = ingester(&self.log, self.limits).clock_skew_max(self.skew);
            let mut done = self.saved.get();
            while done < self.total {
                let batch: Vec<_> = {
                    let changes = self.changes.borrow();
                    let count = 1 + self.random.below(8) as usize;
                    changes.iter().skip(done).take(count).cloned().collect()
                };
                let count = batch.len();
                let Some((_, made)) = batch.first() else {
                    pause().await;
                    continue;
                };
                // Change records have a resolution of one second.
                let since = Timestamp::from_millis(made.as_secs() * 1000);
                let spans = batch.iter().map(|(span, _)| span.clone()).collect();
                match ingester.ingest(spans, since).await {
                    Ok(_) => done += count,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Store, "{error}"),
                }
                if self.random.below(3) == 0 {
                    self.saved.set(done);
                }
            }
            self.saved.set(done);
        })
    }
}

/// Runs several workers that read the same changes, conflict, fail and restart.
fn check_concurrent_workers(seed: u64) {
    let random = Rc::new(SeededRandom::new(seed));
    let limits = EpochLimits {
        bytes_max: 300 + random.below(3_000),
        version_max: 1 + random.below(8),
        streams_max: 1 + random.below(10) as usize,
        event_bytes_max: 60 + random.below(400) as usize,
    };
    let skews = [Duration::ZERO, CLOCK_SKEW_MAX];
    let worker = Worker {
        log: MemoryLog::with_faults(seed ^ 0xfeed),
        limits,
        skew: skews[random.below(2) as usize],
        changes: Changes::default(),
        total: 20 + random.below(60) as usize,
        saved: Rc::default(),
        random: random.clone(),
    };
    let workers: Vec<Worker> = (0..1 + random.below(4))
        .map(|_| Worker {
            saved: Rc::default(),
            ..worker.clone()
        })
        .collect();
    let mut tasks: Vec<Task> = workers.iter().cloned().map(Worker::start).collect();
    let mut ends = vec![0; 1 + random.below(6) as usize];
    let mut is_done = vec![false; tasks.len()];
    let mut restarts = 0;
    while is_done.contains(&false) {
        let clock = &worker.log.clock;
        clock.advance(Duration::from_millis(random.below(20_000)));
        let mut changes = worker.changes.borrow_mut();
        if changes.len() < worker.total && random.below(4) == 0 {
            let id = random.below(ends.len() as u64);
            let end = &mut ends[id as usize];
            let start = *end;
            *end += 1 + random.below(4);
            changes.push((span(id, start, *end), clock.now()));
        }
        drop(changes);
        let chosen = random.below(tasks.len() as u64) as usize;
        if is_done[chosen] {
            continue;
        }
        if restarts < 20 && random.below(40) == 0 {
            restarts += 1;
            tasks[chosen] = workers[chosen].clone().start();
        }
        is_done[chosen] = poll_once(&mut tasks[chosen]);
    }
    check_log(&worker.log, &ends);
}

/// Checks that everything was written once and in order, and that only the last epoch is open.
fn check_log(log: &MemoryLog, ends: &[u64]) {
    let versions = versions(log);
    for (id, end) in ends.iter().enumerate() {
        let version = versions.get(&format!("Cart-{id}")).copied();
        assert_eq!(version.unwrap_or_default(), *end);
    }
    let state = log.state();
    let written: Vec<_> = state
        .epochs
        .values()
        .filter(|events| !events.is_empty())
        .collect();
    for (position, events) in written.iter().enumerate() {
        let closed = events
            .iter()
            .position(|(event, _)| *event == EpochEvent::Closed);
        match closed {
            Some(closed) => assert_eq!(closed, events.len() - 1),
            None => assert_eq!(position, written.len() - 1),
        }
    }
}

#[test]
fn concurrent_restarted_ingesters_write_each_event_once() {
    for seed in 0..300 {
        check_concurrent_workers(seed);
    }
}
