//! What an epoch accepts, drops and leaves for the next one; and that all epochs together contain each event once.

use std::collections::BTreeMap;

use floe_store::Text;
use floe_store::env::SeededRandom;

use super::*;

fn stream(id: u64) -> StreamName {
    StreamName::new("Cart", &id).unwrap()
}

/// Events `from..to` of a stream. The type of an event contains its index.
fn span(id: u64, from: u64, to: u64) -> Span {
    Span::new(
        stream(id),
        from,
        (from..to).map(|index| format!("t{index}")),
    )
}

fn nothing_earlier(_: &StreamName) -> Option<u64> {
    None
}

fn state_of(events: &[EpochEvent]) -> EpochState {
    let mut state = EpochState::default();
    for (event, second) in events.iter().zip(1..) {
        state
            .apply(event, Timestamp::from_millis(second * 1000))
            .unwrap();
    }
    state
}

fn ingested(add: Vec<Span>, app: Vec<Span>) -> EpochEvent {
    EpochEvent::Ingested(Ingested { add, app })
}

fn decide(state: &EpochState, spans: Vec<Span>) -> EpochDecision {
    ingest(state, nothing_earlier, spans, &EpochLimits::default()).unwrap()
}

#[test]
fn epoch_name_has_partition_and_number() {
    let name = epoch_stream(Partition::new(3), 12).unwrap();
    assert_eq!(name.as_str(), "$AppendsEpoch-3_12");
    assert!(name.is_system());
}

#[test]
fn event_json_is_compatible() {
    let event = ingested(vec![span(1, 0, 2)], vec![span(2, 7, 8)]);
    let encoded = event.encode().unwrap();
    assert_eq!(encoded.event_type, "Ingested");
    assert_eq!(
        String::from_utf8(encoded.data.clone()).unwrap(),
        r#"{"add":[{"p":"Cart-1","i":0,"c":["t0","t1"]}],"app":[{"p":"Cart-2","i":7,"c":["t7"]}]}"#
    );
    assert_eq!(EpochEvent::decode(&encoded).unwrap(), event);
    assert_eq!(event.bytes(), 8 + encoded.data.len() + 40);

    let closed = EpochEvent::Closed.encode().unwrap();
    assert_eq!(closed, EventData::new("Closed", []));
    assert_eq!(EpochEvent::decode(&closed).unwrap(), EpochEvent::Closed);
    let with_body = EventData::new("Closed", *b"null");
    assert_eq!(EpochEvent::decode(&with_body).unwrap(), EpochEvent::Closed);
}

#[test]
fn missing_lists_are_empty() {
    for data in ["{}", r#"{"add":null,"app":[]}"#] {
        let event = EventData::new("Ingested", data.as_bytes());
        assert_eq!(
            EpochEvent::decode(&event).unwrap(),
            ingested(vec![], vec![])
        );
    }
}

#[test]
fn invalid_epoch_events_are_rejected() {
    for (event_type, data) in [
        ("Ingested", ""),
        ("Ingested", r#"{"add":7}"#),
        ("Ingested", r#"{"add":[{}]}"#),
        ("Other", "{}"),
    ] {
        let event = EventData::new(event_type, data.as_bytes());
        let error = EpochEvent::decode(&event).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidEvent, "{event_type} {data}");
    }
    let mut closed = state_of(&[EpochEvent::Closed]);
    let error = closed.apply(&EpochEvent::Closed, Timestamp::default());
    assert_eq!(
        error.unwrap_err().to_string(),
        "an epoch has events after it was closed: version=1"
    );
}

#[test]
fn state_is_folded_from_events() {
    let first = ingested(vec![span(1, 0, 2), span(2, 5, 6)], vec![]);
    let second = ingested(vec![], vec![span(1, 2, 5)]);
    let weight = first.bytes() + second.bytes();
    let state = state_of(&[first, second]);
    assert_eq!(state.next_index(&stream(1)), Some(5));
    assert_eq!(state.next_index(&stream(2)), Some(6));
    assert_eq!(state.next_index(&stream(3)), None);
    assert_eq!(
        (state.version(), state.streams(), state.bytes()),
        (2, 2, weight as u64)
    );
    assert_eq!(state.started(), Some(Timestamp::from_millis(1000)));
    assert!(!state.is_closed());
}

#[test]
fn new_and_known_streams_are_listed_separately() {
    let state = state_of(&[ingested(vec![span(1, 0, 2)], vec![])]);
    let decision = decide(&state, vec![span(2, 0, 1), span(1, 2, 3), span(2, 1, 2)]);
    let expected = ingested(vec![span(2, 0, 2)], vec![span(1, 2, 3)]);
    assert_eq!(decision.events(), [expected]);
    assert_eq!(decision.residual, []);
}

#[test]
fn overlaps_are_trimmed_and_duplicates_dropped() {
    let state = state_of(&[ingested(vec![span(1, 0, 3)], vec![])]);
    let decision = decide(&state, vec![span(1, 1, 5), span(1, 0, 2), span(1, 4, 6)]);
    assert_eq!(decision.events(), [ingested(vec![], vec![span(1, 3, 6)])]);
    let nothing = decide(&state, vec![span(1, 0, 3), span(1, 1, 2), span(9, 4, 4)]);
    assert_eq!(nothing, EpochDecision::default());
}

#[test]
fn events_of_earlier_epochs_are_dropped() {
    let limits = EpochLimits::default();
    let earlier = |of: &StreamName| (*of == stream(1)).then_some(4);
    let state = EpochState::default();
    let decision = ingest(&state, earlier, vec![span(1, 2, 6), span(2, 8, 9)], &limits).unwrap();
    assert_eq!(
        decision.events(),
        [ingested(vec![span(1, 4, 6), span(2, 8, 9)], vec![])]
    );
    let gap = ingest(&state, earlier, vec![span(1, 5, 6)], &limits).unwrap_err();
    assert_eq!((gap.expected, gap.found), (4, 5));
}

#[test]
fn gap_is_reported_with_stream_and_indexes() {
    let state = state_of(&[ingested(vec![span(1, 0, 3)], vec![])]);
    for spans in [
        vec![span(1, 5, 6)],
        vec![span(2, 0, 1), span(1, 3, 4), span(1, 0, 1), span(1, 6, 7)],
    ] {
        let limits = EpochLimits::default();
        let gap = ingest(&state, nothing_earlier, spans, &limits).unwrap_err();
        let error = Error::from(gap.clone());
        assert_eq!(error.kind(), ErrorKind::MissingEvents);
        assert_eq!(
            error.to_string(),
            format!(
                "the feed would skip events: stream=Cart-1 expected={} found={}",
                gap.expected, gap.found
            )
        );
    }
}

#[test]
fn closed_epoch_passes_new_spans_on() {
    let state = state_of(&[ingested(vec![span(1, 0, 3)], vec![]), EpochEvent::Closed]);
    let decision = decide(&state, vec![span(1, 0, 5), span(1, 2, 3), span(1, 8, 9)]);
    assert_eq!(decision.events(), []);
    assert_eq!(decision.residual, [span(1, 3, 5), span(1, 8, 9)]);
}

#[test]
fn epoch_closes_at_each_limit() {
    let state = state_of(&[ingested(vec![span(1, 0, 3)], vec![])]);
    let event = ingested(vec![span(2, 0, 1)], vec![]);
    let bytes = state.bytes() + event.bytes() as u64;
    let check = |change: fn(&mut EpochLimits, u64), value: u64, closes: bool| {
        let mut limits = EpochLimits::default();
        change(&mut limits, value);
        let decision = ingest(&state, nothing_earlier, vec![span(2, 0, 1)], &limits).unwrap();
        let closed = closes.then_some(EpochEvent::Closed);
        let expected: Vec<_> = [event.clone()].into_iter().chain(closed).collect();
        assert_eq!(decision.events(), expected, "{limits:?}");
    };
    check(|limits, bytes| limits.bytes_max = bytes, bytes, false);
    check(|limits, bytes| limits.bytes_max = bytes, bytes - 1, true);
    check(|limits, version| limits.version_max = version, 3, false);
    check(|limits, version| limits.version_max = version, 2, true);
    check(|limits, n| limits.streams_max = n as usize, 3, false);
    check(|limits, n| limits.streams_max = n as usize, 2, true);
}

#[test]
fn large_event_is_split() {
    let mut limits = EpochLimits {
        event_bytes_max: 100,
        ..EpochLimits::default()
    };
    let mut state = EpochState::default();
    let mut spans = vec![span(1, 0, 40), span(2, 0, 3)];
    let mut ingested_types: BTreeMap<String, Vec<Text>> = BTreeMap::new();
    while !spans.is_empty() {
        let decision = ingest(&state, nothing_earlier, spans, &limits).unwrap();
        let event = decision.ingested.clone().unwrap();
        assert!(event.bytes() <= 100);
        state
            .apply(&EpochEvent::Ingested(event.clone()), Timestamp::default())
            .unwrap();
        for span in event.into_spans() {
            let types = ingested_types.entry(span.stream.to_string()).or_default();
            assert_eq!(span.start, types.len() as u64);
            types.extend(span.types);
        }
        spans = decision.residual;
    }
    assert_eq!(ingested_types["Cart-1"].len(), 40);
    assert_eq!(ingested_types["Cart-2"].len(), 3);

    limits.event_bytes_max = 1;
    let decision = ingest(
        &EpochState::default(),
        nothing_earlier,
        vec![span(1, 0, 2)],
        &limits,
    );
    assert_eq!(decision.unwrap().residual, [span(1, 1, 2)]);
}

#[test]
fn epoch_accepts_no_more_streams_than_the_cap() {
    let known = (0..EPOCH_STREAMS_CAP as u64).map(|id| (stream(id), 1));
    let state = EpochState {
        next_indexes: known.collect(),
        ..EpochState::default()
    };
    let new = EPOCH_STREAMS_CAP as u64;
    let limits = EpochLimits {
        streams_max: EPOCH_STREAMS_CAP,
        ..EpochLimits::default()
    };
    let spans = vec![span(0, 1, 2), span(new, 0, 1)];
    let decision = ingest(&state, nothing_earlier, spans, &limits).unwrap();
    assert!(decision.closes);
    assert_eq!(decision.residual, [span(new, 0, 1)]);
    let decision = ingest(&state, nothing_earlier, vec![span(new, 0, 1)], &limits).unwrap();
    assert_eq!(decision.events(), [EpochEvent::Closed]);
    assert_eq!(decision.residual, [span(new, 0, 1)]);
}

#[test]
fn excessive_limits_are_rejected() {
    EpochLimits::default().check().unwrap();
    let message = |change: fn(&mut EpochLimits)| {
        let mut limits = EpochLimits::default();
        change(&mut limits);
        limits.check().unwrap_err().to_string()
    };
    let large = "an epoch limit is too large";
    assert_eq!(
        message(|limits| limits.streams_max = 1_000_001),
        format!("{large}: streams_max=1000001 max=1000000")
    );
    assert_eq!(
        message(|limits| limits.version_max = 1_000_000),
        format!("{large}: version_max=1000000 max=999999")
    );
    assert_eq!(
        message(|limits| limits.event_bytes_max = 400_000),
        format!("{large}: event_bytes_max=400000 max=358400")
    );
}

/// Epochs in memory, and everything written to them.
struct Epochs {
    states: Vec<EpochState>,
    events: Vec<Vec<EpochEvent>>,
    limits: EpochLimits,
}

impl Epochs {
    fn new(random: &SeededRandom) -> Self {
        let limits = EpochLimits {
            bytes_max: 200 + random.below(1_000),
            version_max: 1 + random.below(6),
            streams_max: 1 + random.below(8) as usize,
            event_bytes_max: 60 + random.below(300) as usize,
        };
        Self {
            states: vec![EpochState::default()],
            events: vec![Vec::new()],
            limits,
        }
    }

    /// Offers spans to this epoch, and what it does not accept to the following ones.
    fn offer(&mut self, mut epoch: usize, mut spans: Vec<Span>) {
        loop {
            let (before, rest) = self.states.split_at_mut(epoch);
            let earlier =
                |of: &StreamName| before.iter().rev().find_map(|state| state.next_index(of));
            let state = &mut rest[0];
            let decision = ingest(state, earlier, spans, &self.limits).unwrap();
            for event in decision.events() {
                state.apply(&event, Timestamp::default()).unwrap();
                self.events[epoch].push(event);
            }
            if state.is_closed() {
                epoch += 1;
            }
            if epoch == self.states.len() {
                self.states.push(EpochState::default());
                self.events.push(Vec::new());
            }
            spans = decision.residual;
            if spans.is_empty() {
                break;
            }
        }
    }
}

/// Checks that the epochs contain each event of every stream once and in order, and that `add` and `app` separate new
/// streams from known ones.
fn check_complete(epochs: &[Vec<EpochEvent>], ends: &[u64]) {
    let mut next: BTreeMap<StreamName, u64> = BTreeMap::new();
    for events in epochs {
        let mut known: BTreeMap<&StreamName, ()> = BTreeMap::new();
        for event in events {
            let EpochEvent::Ingested(ingested) = event else {
                continue;
            };
            for span in &ingested.add {
                assert!(known.insert(&span.stream, ()).is_none());
            }
            assert!(
                ingested
                    .app
                    .iter()
                    .all(|span| known.contains_key(&span.stream))
            );
            for span in ingested.spans() {
                let next = next.entry(span.stream.clone()).or_default();
                assert_eq!(span.start, *next, "{}", span.stream);
                for case in &span.types {
                    assert_eq!(case.as_str(), format!("t{next}"));
                    *next += 1;
                }
            }
        }
    }
    for (id, end) in (0..).zip(ends) {
        assert_eq!(next.get(&stream(id)).copied().unwrap_or_default(), *end);
    }
}

#[test]
fn epochs_contain_each_event_once_and_in_order() {
    for seed in 0..400 {
        let random = SeededRandom::new(seed);
        let mut epochs = Epochs::new(&random);
        let mut ends = vec![0; 1 + random.below(6) as usize];
        let mut appends = Vec::new();
        for _ in 0..random.below(80) {
            let id = random.below(ends.len() as u64);
            let end = &mut ends[id as usize];
            let start = *end;
            *end += 1 + random.below(4);
            appends.push(span(id, start, *end));
        }
        let mut done = 0;
        while done < appends.len() {
            // Some earlier spans are offered again, together with new ones.
            let from = done - random.below(done as u64 + 1).min(random.below(20)) as usize;
            let to = (done + random.below(12) as usize).min(appends.len());
            let mut spans = appends[from..to].to_vec();
            for _ in 0..random.below(4) {
                let position = random.below(spans.len() as u64) as usize;
                if let Some(again) = spans.get(position).cloned() {
                    spans.insert(random.below(spans.len() as u64 + 1) as usize, again);
                }
            }
            let epoch = epochs.states.len() as u64 - 1;
            let behind = random.below(epoch + 1).min(random.below(4));
            epochs.offer((epoch - behind) as usize, spans);
            done = to;
        }
        check_complete(&epochs.events, &ends);
        for (state, events) in epochs.states.iter().zip(&epochs.events) {
            assert_eq!(state.version(), events.len() as u64);
            assert!(state.version() <= epochs.limits.version_max + 1);
        }
    }
}
