//! The decider and the fixture of the tests.

use std::sync::{Arc, Mutex};

use floe::events::{
    Access, Decider, Event, EventData, EventStore, EventStoreOptions, Expected, Stream, StreamName,
};
use floe::{Db, Error};
use floe_local::{LocalEngine, Options};
use floe_store::expr::KeyCondition;
use floe_store::op::{PutItem, Query};
use floe_store::{Engine, Item, Value};
use floe_testkit::time::TestEnv;

use super::no_time::NoTime;
use super::probe::Probe;

/// An event of a list of notes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Note {
    /// A note was added.
    Noted(u32),
    /// All notes were removed: an origin.
    Cleared,
    /// All notes: a snapshot.
    Whole(Vec<u32>),
    /// A snapshot in another format.
    Alternative(Vec<u32>),
}

impl Event for Note {
    fn event_type(&self) -> &'static str {
        match self {
            Self::Noted(_) => "Noted",
            Self::Cleared => "Cleared",
            Self::Whole(_) => "Whole",
            Self::Alternative(_) => "Alternative",
        }
    }

    fn encode(&self) -> Result<Vec<u8>, Error> {
        Ok(match self {
            Self::Noted(note) => note.to_string().into_bytes(),
            Self::Cleared => Vec::new(),
            Self::Whole(notes) | Self::Alternative(notes) => {
                let notes: Vec<_> = notes.iter().map(u32::to_string).collect();
                notes.join(",").into_bytes()
            }
        })
    }

    fn decode(event_type: &str, data: &[u8]) -> Result<Option<Self>, Error> {
        let notes = || {
            let text = str::from_utf8(data).unwrap();
            let notes = text.split(',').filter(|note| !note.is_empty());
            notes
                .map(|note| note.parse().unwrap())
                .collect::<Vec<u32>>()
        };
        Ok(match event_type {
            "Noted" => Some(Self::Noted(notes()[0])),
            "Cleared" => Some(Self::Cleared),
            "Whole" => Some(Self::Whole(notes())),
            "Alternative" => Some(Self::Alternative(notes())),
            _ => None,
        })
    }
}

/// A list of notes.
pub(crate) struct Notes;

impl Decider for Notes {
    const CATEGORY: &'static str = "Notes";
    type Id = str;
    type Event = Note;
    type State = Vec<u32>;

    fn initial() -> Vec<u32> {
        Vec::new()
    }

    fn evolve(mut state: Vec<u32>, event: &Note) -> Vec<u32> {
        match event {
            Note::Noted(note) => state.push(*note),
            Note::Cleared => state.clear(),
            Note::Whole(notes) | Note::Alternative(notes) => state.clone_from(notes),
        }
        state
    }
}

/// An access strategy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Strategy {
    Unoptimized,
    Latest,
    Snapshot,
    Multi,
    Rolling,
    Custom,
}

impl Strategy {
    pub(crate) const ALL: [Self; 6] = [
        Self::Unoptimized,
        Self::Latest,
        Self::Snapshot,
        Self::Multi,
        Self::Rolling,
        Self::Custom,
    ];

    pub(crate) fn access(self) -> Access<Notes> {
        let is_origin = |event: &Note| !matches!(event, Note::Noted(_));
        let whole = |state: &Vec<u32>| Note::Whole(state.clone());
        match self {
            Self::Unoptimized => Access::Unoptimized,
            Self::Latest => Access::LatestKnownEvent,
            Self::Snapshot => Access::Snapshot {
                is_origin,
                to_snapshot: whole,
            },
            Self::Multi => Access::MultiSnapshot {
                is_origin,
                to_snapshots: |state| {
                    vec![Note::Whole(state.clone()), Note::Alternative(state.clone())]
                },
            },
            Self::Rolling => Access::RollingState { to_snapshot: whole },
            Self::Custom => Access::Custom {
                is_origin,
                transmute: |events, state| (events, vec![Note::Whole(state.clone())]),
            },
        }
    }
}

/// A database whose requests are recorded, on an engine with a manual clock.
pub(crate) struct World {
    pub db: Db,
    /// The same engine without recording: for other writers.
    pub other: Db,
    pub probe: Arc<Probe>,
    pub test: TestEnv,
    /// The etags seen, in order.
    etags: Mutex<Vec<String>>,
}

pub(crate) async fn world() -> World {
    let test = TestEnv::seeded(7);
    let options = Options::new().env(test.env.clone()).background(false);
    let engine: Arc<dyn Engine> = Arc::new(LocalEngine::memory_with(options).unwrap());
    let probe = Arc::new(Probe::new(engine.clone()));
    let world = World {
        db: Db::with_parts(probe.clone(), test.env.clone(), Arc::new(NoTime)),
        other: Db::with_parts(engine, test.env.clone(), Arc::new(NoTime)),
        probe,
        test,
        etags: Mutex::default(),
    };
    world.other.events().ensure_table().await.unwrap();
    world
}

impl World {
    pub(crate) fn store(&self) -> EventStore {
        self.db.events()
    }

    /// A store that calves when the Tip would exceed this number of events.
    pub(crate) fn calving(&self, events_max: usize) -> EventStore {
        let options = EventStoreOptions::default().tip_events_max(events_max);
        self.db.event_store(options)
    }

    /// All stored items of a stream, oldest first.
    pub(crate) async fn items(&self, stream: &StreamName) -> Vec<Item> {
        let condition = KeyCondition::partition("p", Value::from(stream.as_str()));
        let page = self.other.engine().query(Query::new("events", condition));
        page.await.unwrap().items
    }

    /// All stored items of a stream as text, with numbered etags.
    pub(crate) async fn stored(&self, stream: &StreamName) -> Vec<String> {
        let items = self.items(stream).await;
        items
            .iter()
            .map(|item| self.with_numbered_etags(&format!("{item:?}")))
            .collect()
    }

    pub(crate) async fn tip(&self, stream: &StreamName) -> Item {
        self.items(stream).await.pop().unwrap()
    }

    /// Writes an item directly.
    pub(crate) async fn put(&self, item: Item) {
        self.put_into("events", item).await;
    }

    pub(crate) async fn put_into(&self, table: &str, item: Item) {
        let put = PutItem::new(table, item);
        self.other.engine().write_item(put.into()).await.unwrap();
    }

    /// The requests since the last call, with numbered etags.
    pub(crate) fn sent(&self) -> Vec<String> {
        let lines = self.probe.take();
        lines
            .iter()
            .map(|line| self.with_numbered_etags(line))
            .collect()
    }

    /// The operations of the requests since the last call.
    pub(crate) fn operations(&self) -> Vec<String> {
        let lines = self.probe.take().into_iter();
        lines
            .map(|line| line.split(' ').next().unwrap().to_owned())
            .collect()
    }

    /// Replaces etags, which are random, by numbers: E1 for the first one, then E2.
    fn with_numbered_etags(&self, text: &str) -> String {
        let mut etags = self.etags.lock().unwrap();
        let numbered = |part: &str| {
            let is_uuid =
                part.len() == 36 && part.as_bytes()[14] == b'7' && part.matches('-').count() == 4;
            if !is_uuid {
                return part.to_owned();
            }
            let at = etags
                .iter()
                .position(|etag| etag == part)
                .unwrap_or_else(|| {
                    etags.push(part.to_owned());
                    etags.len() - 1
                });
            format!("E{}", at + 1)
        };
        text.split('"').map(numbered).collect::<Vec<_>>().join("\"")
    }
}

pub(crate) fn name(id: &str) -> StreamName {
    StreamName::new("Notes", id).unwrap()
}

/// Events with these bodies.
pub(crate) fn events<const N: usize>(event_type: &str, bodies: [&str; N]) -> [EventData; N] {
    bodies.map(|body| EventData::new(event_type, body))
}

/// Note events, to append without a decider.
pub(crate) fn noted(notes: impl IntoIterator<Item = u32>) -> Vec<EventData> {
    let notes = notes.into_iter();
    notes
        .map(|note| EventData::new("Noted", note.to_string()))
        .collect()
}

/// A stream of notes with this strategy.
pub(crate) fn stream(store: &EventStore, id: &str, strategy: Strategy) -> Stream<Notes> {
    store.stream::<Notes>(id).access(strategy.access())
}

/// Adds a note. Returns the version.
pub(crate) async fn note(stream: &Stream<Notes>, note: u32) -> Result<u64, Error> {
    let decide = |_: &Vec<u32>| Ok::<_, Error>(vec![Note::Noted(note)]);
    stream
        .transact_versioned(decide)
        .await
        .map(|(_, version)| version)
}

/// Loads the notes.
pub(crate) async fn notes(stream: &Stream<Notes>) -> Vec<u32> {
    stream.query(Clone::clone).await.unwrap()
}

/// Appends events at any version.
pub(crate) async fn append(
    store: &EventStore,
    id: &str,
    events: impl IntoIterator<Item = EventData>,
) -> u64 {
    store
        .append(&name(id), Expected::Any, events)
        .await
        .unwrap()
}
