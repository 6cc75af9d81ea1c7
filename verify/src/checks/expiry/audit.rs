//! Looks over everything in the end: what was handled, what is stored, and what the change log tells of it.

use std::collections::{BTreeMap, BTreeSet};

use floe::Db;
use floe::registry::{Status, Version};
use floe_store::expr::{Condition, KeyCondition, Path};
use floe_store::op::{
    ChangeKind, ChangeRecord, DescribeStream, GetRecords, GetShardIterator, IteratorKind,
    ListStreams, Query,
};
use floe_store::{Engine, Item, Value};

use super::shelf::{Layer, REGIONS, Shelf, layers, region};
use crate::Failure;

/// How many notes are kept.
const NOTES_MAX: usize = 20;

/// What was found.
#[derive(Default)]
pub(super) struct Findings {
    /// How many tombstones there are.
    pub(super) tombstones: u64,
    /// Versions that have expired and were not handled.
    pub(super) lost: u64,
    /// Versions that have expired and have no tombstone.
    pub(super) unburied: u64,
    /// Tombstones that were written more than once, or changed afterwards.
    pub(super) doubled: u64,
    /// Versions that are not what they should be, or were handled without having expired.
    pub(super) wrong: u64,
    /// Lists of what is deployed that lack something or have too much.
    pub(super) index_mismatches: u64,
    pub(super) notes: Vec<String>,
}

impl Findings {
    pub(super) const fn is_clean(&self) -> bool {
        let stored = self.unburied + self.doubled + self.wrong;
        self.tombstones > 0 && self.lost + stored + self.index_mismatches == 0
    }

    fn note(&mut self, what: String) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(what);
        }
    }
}

/// Whether the engine has removed everything that expires.
pub(super) async fn is_swept(db: &Db, shelf: &Shelf) -> Result<bool, Failure> {
    for group in 0..shelf.groups {
        if items_with_expiry(db, &shelf.layer(group, 1)).await? > 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// How many versions of a group still have an expiry.
async fn items_with_expiry(db: &Db, layer: &Layer) -> Result<usize, Failure> {
    let key = format!("lyr#{}.{}", layer.region, layer.package);
    let query = Query::new("layers", KeyCondition::partition("pk", key.as_str()));
    let filter = Condition::attribute_exists(Path::attribute("exDt"));
    let page = db.engine().query(query.consistent().filter(filter)).await?;
    Ok(page.items.len() + usize::from(page.last_key.is_some()))
}

/// Compares everything with what it should be.
pub(super) async fn audit(
    db: &Db,
    shelf: &Shelf,
    handled: &BTreeMap<u64, u64>,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let expired = changes(&**db.engine()).await?;
    for group in 0..shelf.groups {
        audit_group(db, shelf, group, handled, &expired, findings).await?;
    }
    for (key, writes) in &expired.tombstones {
        if *writes != 1 {
            findings.doubled += 1;
            findings.note(format!(
                "a tombstone was written often: key={key} writes={writes}"
            ));
        }
    }
    audit_indexes(db, shelf, findings).await
}

async fn audit_group(
    db: &Db,
    shelf: &Shelf,
    group: u64,
    handled: &BTreeMap<u64, u64>,
    told: &Told,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let layers = layers(db);
    let history = layers.history(&shelf.layer(group, 1)).collect().await?;
    let history: BTreeMap<u64, Version<Layer>> =
        history.into_iter().map(|v| (v.number, v)).collect();
    for number in 1..=shelf.each {
        let layer = shelf.layer(group, number);
        if !handled.contains_key(&layer.id) {
            findings.lost += 1;
            findings.note(format!(
                "it was not handled: group={group} version={number}"
            ));
        }
        match history.get(&number) {
            Some(version) if is_tombstone(version, &layer, told) => findings.tombstones += 1,
            Some(version) => {
                findings.wrong += 1;
                findings.note(format!("it is no tombstone: {version:?}"));
            }
            None => {
                findings.unburied += 1;
                findings.note(format!(
                    "it has no tombstone: group={group} version={number}"
                ));
            }
        }
    }
    let last = shelf.layer(group, shelf.each + 1);
    let latest = layers.latest(&last).await?;
    let is_latest = latest.is_some_and(|latest| latest.value == last && latest.is_deployed());
    if !is_latest || handled.contains_key(&last.id) {
        findings.wrong += 1;
        findings.note(format!(
            "the latest version is not what it was: group={group}"
        ));
    }
    Ok(())
}

fn is_tombstone(version: &Version<Layer>, layer: &Layer, told: &Told) -> bool {
    let expiry = told.expiries.get(&layer.id).copied();
    version.value == *layer
        && version.status.is_none()
        && version.expires.is_none()
        && version.deleted.map(|deleted| deleted.as_secs()) == expiry
}

/// What is deployed is the latest of each group, and nothing else.
async fn audit_indexes(db: &Db, shelf: &Shelf, findings: &mut Findings) -> Result<(), Failure> {
    let layers = layers(db);
    for number in 0..REGIONS {
        let of_region = (0..shelf.groups).filter(|group| group % REGIONS == number);
        let expected: BTreeSet<u64> = of_region
            .map(|group| shelf.layer(group, shelf.each + 1).id)
            .collect();
        let listed = layers.deployed_in(Layer::BY_REGION, region(number)).await?;
        let found: BTreeSet<u64> = listed.iter().map(|version| version.value.id).collect();
        if found != expected || listed.len() != expected.len() {
            findings.index_mismatches += 1;
            let (found, expected) = (listed.len(), expected.len());
            findings.note(format!(
                "region={number} listed={found} expected={expected}"
            ));
        }
    }
    for group in 0..shelf.groups {
        let listed = layers.deployed_in(Layer::BY_PACKAGE, group).await?;
        let is_right = match listed.as_slice() {
            [only] => only.status == Some(Status::Latest) && only.number == shelf.each + 1,
            _ => false,
        };
        if !is_right {
            findings.index_mismatches += 1;
            findings.note(format!("package={group} listed={}", listed.len()));
        }
    }
    Ok(())
}

/// What the change log tells.
#[derive(Default)]
struct Told {
    /// How often the item of each tombstone was written, by its key.
    tombstones: BTreeMap<String, u64>,
    /// When each version expired, by its id.
    expiries: BTreeMap<u64, u64>,
}

impl Told {
    fn take(&mut self, record: &ChangeRecord) {
        let number = |item: &Item, name: &str| item.get(name)?.as_n()?.to_u64();
        let expiry = record
            .old_image
            .as_ref()
            .filter(|_| record.kind == ChangeKind::Remove);
        if let Some(old) = expiry
            && let (Some(id), Some(at)) = (number(old, "id"), number(old, "exDt"))
        {
            self.expiries.insert(id, at);
        }
        let is_tombstone = |item: &Item| item.contains("deleted_date");
        let images = [&record.old_image, &record.new_image];
        if images.into_iter().flatten().any(is_tombstone) {
            let text = |name: &str| record.keys.get(name).and_then(Value::as_s);
            let key = format!("{:?} {:?}", text("pk"), text("sk"));
            *self.tombstones.entry(key).or_default() += 1;
        }
    }
}

/// Reads the whole change log of the table.
async fn changes(engine: &dyn Engine) -> Result<Told, Failure> {
    let streams = engine.list_streams(ListStreams {
        table_name: Some("layers".to_owned()),
        ..ListStreams::default()
    });
    let mut told = Told::default();
    for stream in streams.await?.streams {
        let describe = DescribeStream {
            stream_arn: stream.arn.clone(),
            ..DescribeStream::default()
        };
        for shard in engine.describe_stream(describe).await?.shards {
            let get = GetShardIterator {
                stream_arn: stream.arn.clone(),
                shard_id: shard.id,
                kind: IteratorKind::TrimHorizon,
            };
            let mut iterator = Some(engine.get_shard_iterator(get).await?);
            while let Some(at) = iterator {
                let get = GetRecords {
                    iterator: at,
                    limit: None,
                };
                let page = engine.get_records(get).await?;
                page.records.iter().for_each(|record| told.take(record));
                iterator = page.next_iterator.filter(|_| !page.records.is_empty());
            }
        }
    }
    Ok(told)
}
