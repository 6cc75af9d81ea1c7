//! Appending in parts: several consecutive appends of events that do not fit into one item.
//!
//! An append is atomic, and every event enters a stream through the Tip, which is one item. Events that do not fit
//! into one item therefore cannot be appended atomically. Here each part is a separate append, visible before the
//! next one exists, which starts at the end of the previous part.
//!
//! An interrupted call is repeated with the same events. Events that are already in the stream must be the first of
//! them; the call continues after those.

use super::changes::Change;
use super::compile::AppendOutcome;
use super::event::EventData;
use super::keys::StreamName;
use super::limits::{ANY_ATTEMPTS_MAX, PART_BYTES_MAX};
use super::position::StreamPosition;
use super::store::{EventStore, version_conflict};
use super::stored::{Size, StoredEvent};
use crate::error::{Error, ErrorKind, Result};

impl EventStore {
    /// Appends events to a stream at this version, **not atomically**: in as many appends as necessary for each to
    /// fit into an item. Returns the version of the stream afterwards.
    ///
    /// Readers see the first parts before the last one exists, and a failed part leaves the earlier ones. After any
    /// error but `VersionConflict` and `TooLarge`, or after a crash, call again with the same version and the same
    /// events: existing events are recognised by type and body, and skipped.
    ///
    /// ```
    /// use floe::events::{EventData, StreamName};
    /// use floe::{Db, Error};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let store = Db::memory()?.events();
    /// store.ensure_table().await?;
    /// let import = StreamName::new("Import", "7")?;
    /// let row = |n: usize| EventData::new("Row", n.to_string().repeat(300_000));
    /// let rows: Vec<_> = (0..4).map(row).collect();
    ///
    /// assert_eq!(store.append_in_parts(&import, 0, rows.clone()).await?, 4);
    /// assert_eq!(store.append_in_parts(&import, 0, rows).await?, 4);
    /// assert_eq!(store.version(&import).await?, 4);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`VersionConflict`](ErrorKind::VersionConflict) if the stream is not at that version and the events there are
    /// not the beginning of these events, or if another writer appends in between; [`TooLarge`](ErrorKind::TooLarge)
    /// if one event does not fit into an item, before anything is appended;
    /// [`MaxResyncsExhausted`](ErrorKind::MaxResyncsExhausted) after too many conflicts;
    /// [`InvalidUse`](ErrorKind::InvalidUse) if there are no events; [`MissingEvents`](ErrorKind::MissingEvents) if
    /// the events there were pruned; [`Store`](ErrorKind::Store) if the store fails.
    pub async fn append_in_parts(
        &self,
        stream: &StreamName,
        version: u64,
        events: impl IntoIterator<Item = EventData>,
    ) -> Result<u64> {
        let events = self.stored(events)?;
        check_event_sizes(stream, &events)?;
        let tip = match version {
            0 => None,
            _ => self.tip(stream, true).await?,
        };
        let mut position = tip.as_ref().map(StreamPosition::of_tip);
        let mut rest = self
            .missing_events(stream, version, position.as_ref(), &events)
            .await?;
        let mut attempts = 0;
        while !rest.is_empty() {
            let (part, later) = rest.split_at(part_len(rest));
            let change = Change::of_events(part.to_vec());
            match self.send_append(stream, position.as_ref(), &change).await? {
                AppendOutcome::Written(after) => {
                    (position, rest, attempts) = (Some(after), later, 0);
                }
                AppendOutcome::Conflict(tip) => {
                    self.wait_after_conflict(stream, &mut attempts, ANY_ATTEMPTS_MAX)
                        .await?;
                    position = tip.as_deref().map(StreamPosition::of_tip);
                    rest = self
                        .missing_events(stream, version, position.as_ref(), &events)
                        .await?;
                }
            }
        }
        Ok(version + events.len() as u64)
    }

    /// Returns the events that are not yet in a stream at this position.
    ///
    /// # Errors
    ///
    /// [`VersionConflict`](ErrorKind::VersionConflict) if there are other events instead.
    async fn missing_events<'e>(
        &self,
        stream: &StreamName,
        version: u64,
        position: Option<&StreamPosition>,
        events: &'e [StoredEvent],
    ) -> Result<&'e [StoredEvent]> {
        let actual = position.map_or(0, |position| position.version);
        let conflict = || version_conflict(stream, version, actual);
        let count = actual.checked_sub(version).ok_or_else(conflict)?;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let (existing, rest) = events.split_at_checked(count).ok_or_else(conflict)?;
        if existing.is_empty() {
            return Ok(rest);
        }
        let read = self.read(stream).from(version).max_count(count as u64);
        let found = read.collect().await?;
        if found.first().is_some_and(|first| first.index != version) {
            let message =
                format!("events appended earlier were pruned: stream={stream} index={version}");
            return Err(Error::new(ErrorKind::MissingEvents, message));
        }
        for (wanted, found) in existing.iter().zip(&found) {
            // Compares everything but the time, which is that of the first call.
            if wanted.view().recorded(found.index)?.event != found.event {
                return Err(conflict());
            }
        }
        Ok(rest)
    }
}

/// The number of events in one append, at least one.
fn part_len(events: &[StoredEvent]) -> usize {
    let sums = events.iter().scan(Size::default(), |sum, event| {
        *sum = *sum + event.size();
        Some(sum.item)
    });
    sums.take_while(|bytes| *bytes <= PART_BYTES_MAX)
        .count()
        .max(1)
}

fn check_event_sizes(stream: &StreamName, events: &[StoredEvent]) -> Result<()> {
    let sizes = events.iter().map(|event| event.size().item);
    let Some((offset, bytes)) = sizes.enumerate().find(|(_, bytes)| *bytes > PART_BYTES_MAX) else {
        return Ok(());
    };
    let message = format!(
        "an event does not fit into an item: stream={stream} event={offset} bytes={bytes} max={PART_BYTES_MAX}"
    );
    Err(Error::new(ErrorKind::TooLarge, message))
}
