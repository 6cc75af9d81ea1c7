//! The final audit: of what was handled, of the stored items, and of the change log.

use std::collections::{BTreeMap, BTreeSet};

use floe::Db;
use floe::registry::{Status, Version};
use floe_store::expr::{Condition, KeyCondition, Path};
use floe_store::op::{
    ChangeKind, ChangeRecord, DescribeStream, GetRecords, GetShardIterator, IteratorKind,
    ListStreams, Query,
};
use floe_store::{Engine, Item, Value};

use super::version_set::{Layer, REGIONS, VersionSet, layers, region};
use crate::Failure;

/// Maximum number of notes kept.
const NOTES_MAX: usize = 20;

/// The result of the audit.
#[derive(Default)]
pub(super) struct AuditReport {
    /// Number of tombstones.
    pub(super) tombstones: u64,
    /// Expired versions that were not handled.
    pub(super) lost: u64,
    /// Expired versions without a tombstone.
    pub(super) without_tombstone: u64,
    /// Tombstones that were written more than once, or changed later.
    pub(super) doubled: u64,
    /// Versions with wrong content, or handled although they had not expired.
    pub(super) wrong: u64,
    /// Lists of deployed versions with missing or extra entries.
    pub(super) index_mismatches: u64,
    pub(super) notes: Vec<String>,
}

impl AuditReport {
    pub(super) const fn is_clean(&self) -> bool {
        let stored = self.without_tombstone + self.doubled + self.wrong;
        self.tombstones > 0 && self.lost + stored + self.index_mismatches == 0
    }

    fn note(&mut self, what: String) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(what);
        }
    }
}

/// Whether the engine has removed all expiring versions.
pub(super) async fn is_swept(db: &Db, version_set: &VersionSet) -> Result<bool, Failure> {
    for group in 0..version_set.groups {
        if items_with_expiry(db, &version_set.layer(group, 1)).await? > 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns how many versions of a group still have an expiry.
async fn items_with_expiry(db: &Db, layer: &Layer) -> Result<usize, Failure> {
    let key = format!("lyr#{}.{}", layer.region, layer.package);
    let query = Query::new("layers", KeyCondition::partition("pk", key.as_str()));
    let filter = Condition::attribute_exists(Path::attribute("exDt"));
    let page = db.engine().query(query.consistent().filter(filter)).await?;
    Ok(page.items.len() + usize::from(page.last_key.is_some()))
}

/// Compares everything with its expected state.
pub(super) async fn audit(
    db: &Db,
    version_set: &VersionSet,
    handled: &BTreeMap<u64, u64>,
    findings: &mut AuditReport,
) -> Result<(), Failure> {
    let expired = changes(&**db.engine()).await?;
    for group in 0..version_set.groups {
        audit_group(db, version_set, group, handled, &expired, findings).await?;
    }
    for (key, writes) in &expired.tombstones {
        if *writes != 1 {
            findings.doubled += 1;
            findings.note(format!(
                "a tombstone was written more than once: key={key} writes={writes}"
            ));
        }
    }
    audit_indexes(db, version_set, findings).await
}

async fn audit_group(
    db: &Db,
    version_set: &VersionSet,
    group: u64,
    handled: &BTreeMap<u64, u64>,
    changes: &LoggedChanges,
    findings: &mut AuditReport,
) -> Result<(), Failure> {
    let layers = layers(db);
    let history = layers
        .history(&version_set.layer(group, 1))
        .collect()
        .await?;
    let history: BTreeMap<u64, Version<Layer>> =
        history.into_iter().map(|v| (v.number, v)).collect();
    for number in 1..=version_set.each {
        let layer = version_set.layer(group, number);
        if !handled.contains_key(&layer.id) {
            findings.lost += 1;
            findings.note(format!(
                "a version was not handled: group={group} version={number}"
            ));
        }
        match history.get(&number) {
            Some(version) if is_tombstone(version, &layer, changes) => findings.tombstones += 1,
            Some(version) => {
                findings.wrong += 1;
                findings.note(format!("not a tombstone: {version:?}"));
            }
            None => {
                findings.without_tombstone += 1;
                findings.note(format!(
                    "a version has no tombstone: group={group} version={number}"
                ));
            }
        }
    }
    let last = version_set.layer(group, version_set.each + 1);
    let latest = layers.latest(&last).await?;
    let is_latest = latest.is_some_and(|latest| latest.value == last && latest.is_deployed());
    if !is_latest || handled.contains_key(&last.id) {
        findings.wrong += 1;
        findings.note(format!("the latest version has changed: group={group}"));
    }
    Ok(())
}

fn is_tombstone(version: &Version<Layer>, layer: &Layer, changes: &LoggedChanges) -> bool {
    let expiry = changes.expiries.get(&layer.id).copied();
    version.value == *layer
        && version.status.is_none()
        && version.expires.is_none()
        && version.deleted.map(|deleted| deleted.as_secs()) == expiry
}

/// Deployed are exactly the latest versions of the groups.
async fn audit_indexes(
    db: &Db,
    version_set: &VersionSet,
    findings: &mut AuditReport,
) -> Result<(), Failure> {
    let layers = layers(db);
    for number in 0..REGIONS {
        let of_region = (0..version_set.groups).filter(|group| group % REGIONS == number);
        let expected: BTreeSet<u64> = of_region
            .map(|group| version_set.layer(group, version_set.each + 1).id)
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
    for group in 0..version_set.groups {
        let listed = layers.deployed_in(Layer::BY_PACKAGE, group).await?;
        let is_right = match listed.as_slice() {
            [only] => only.status == Some(Status::Latest) && only.number == version_set.each + 1,
            _ => false,
        };
        if !is_right {
            findings.index_mismatches += 1;
            findings.note(format!("package={group} listed={}", listed.len()));
        }
    }
    Ok(())
}

/// The relevant changes in the change log.
#[derive(Default)]
struct LoggedChanges {
    /// How often the item of each tombstone was written, by its key.
    tombstones: BTreeMap<String, u64>,
    /// When each version expired, by its id.
    expiries: BTreeMap<u64, u64>,
}

impl LoggedChanges {
    fn add(&mut self, record: &ChangeRecord) {
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

/// Reads the change log of the table from its beginning.
async fn changes(engine: &dyn Engine) -> Result<LoggedChanges, Failure> {
    let streams = engine.list_streams(ListStreams {
        table_name: Some("layers".to_owned()),
        ..ListStreams::default()
    });
    let mut changes = LoggedChanges::default();
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
                page.records.iter().for_each(|record| changes.add(record));
                iterator = page.next_iterator.filter(|_| !page.records.is_empty());
            }
        }
    }
    Ok(changes)
}
