//! Damage that cannot be done from outside: entries, counters and records are changed behind the
//! engine's back, through the committer.

use std::sync::Arc;
use std::time::Duration;

use floe_store::env::{ManualClock, Timestamp};
use floe_store::op::{
    CreateIndex, CreateTable, HoldChanges, IndexUpdate, KeyRole, KeySchemaElement, PutItem, Scan,
    UpdateTable,
};
use floe_store::table::{IndexKind, KeyKind, Projection, Scaling, StreamView};
use floe_store::{Engine, Env, Item, TableDef};

use super::{Finding, FindingKind, Report, Stage};
use crate::answer::block_on;
use crate::catalog::Table;
use crate::group::{Effect, Group};
use crate::kv::{Bytes, Direction, Space};
use crate::layout::key::EntryKind;
use crate::layout::record::{self, Counts, ShardRecord};
use crate::layout::{change, item};
use crate::{LocalEngine, Options};

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn orders() -> TableDef {
    TableDef::builder("Orders", "customer", KeyKind::S)
        .sort_key("placed", KeyKind::N)
        .local_index("by_total", "total", KeyKind::N, Projection::KeysOnly)
        .global_index(
            "by_product",
            [("product", KeyKind::S)],
            [("placed", KeyKind::N)],
            Projection::Include(vec!["note".into()]),
        )
        .stream(StreamView::NewAndOldImages)
        .ttl("until")
        .build()
        .unwrap()
}

fn order(customer: &str, placed: i32) -> Item {
    Item::new()
        .with("customer", customer)
        .with("placed", placed)
        .with("total", 10 * placed)
        .with("product", format!("p{}", placed % 3))
        .with("note", "n")
        .with("until", START.as_secs() + 1000 + placed as u64)
}

struct Patient {
    engine: LocalEngine,
    clock: Arc<ManualClock>,
}

/// An engine with a table of twelve orders of three customers.
fn patient() -> Patient {
    let clock = ManualClock::at(START);
    let options = Options::new()
        .env(Env::manual(clock.clone(), 1))
        .background(false);
    let engine = LocalEngine::memory_with(options).unwrap();
    let patient = Patient { engine, clock };
    patient.create(orders());
    for customer in ["a", "b", "c"] {
        for placed in 0..4 {
            patient.put("Orders", order(customer, placed));
        }
    }
    patient
}

impl Patient {
    fn create(&self, table: TableDef) {
        block_on(self.engine.create_table(CreateTable::from(table))).unwrap();
    }

    fn put(&self, table: &str, item: Item) {
        block_on(self.engine.write_item(PutItem::new(table, item).into())).unwrap();
    }

    fn table(&self) -> Arc<Table> {
        self.engine.running.shared().catalog.get("Orders").unwrap()
    }

    /// Does something behind the engine's back.
    fn damage(&self, damage: impl FnOnce(&mut Group<'_>) + Send + 'static) {
        let committer = &self.engine.running.committer;
        let done = committer.run(Effect::Grows, move |group| {
            damage(group);
            Ok(())
        });
        done.wait().unwrap();
    }

    fn put_entry(&self, key: &[u8], value: &[u8]) {
        let (table, key, value) = (self.table(), key.to_vec(), value.to_vec());
        self.damage(move |group| group.put(table.space(), key, value));
    }

    fn remove_entry(&self, key: &[u8]) {
        let (table, key) = (self.table(), key.to_vec());
        self.damage(move |group| group.remove(table.space(), key));
    }

    /// All entries of a kind.
    fn entries(&self, kind: EntryKind) -> Vec<(Bytes, Bytes)> {
        let snapshot = self.engine.running.shared().kv.snapshot();
        let entries = snapshot.range(self.table().space(), kind.bounds(), Direction::Forward);
        entries.map(Result::unwrap).collect()
    }

    fn index(&self, name: &str) -> EntryKind {
        EntryKind::Index(self.table().index_record(name).unwrap().id)
    }

    fn expiry(&self) -> EntryKind {
        EntryKind::Expiry(self.table().record.expiry.unwrap())
    }

    fn examine(&self) -> Report {
        self.engine.doctor(false).unwrap()
    }

    /// Checks that exactly these kinds of things are wrong, repairs them, and checks that nothing is
    /// wrong any more and that everything is as it was before.
    fn check_repaired(&self, before: &str, kinds: &[FindingKind]) -> Report {
        let report = self.examine();
        assert_eq!(kinds_of(&report), kinds, "{report:#?}");
        assert_eq!(report.repaired_total, 0);
        assert!(!report.is_repaired());
        let repaired = self.engine.doctor(true).unwrap();
        assert_eq!(kinds_of(&repaired), kinds);
        assert!(repaired.is_repaired(), "{repaired:#?}");
        assert!(repaired.findings.iter().all(|finding| finding.repaired));
        let after = self.examine();
        assert!(after.is_clean(), "{after:#?}");
        assert_eq!(self.contents(), before);
        report
    }

    /// Checks that exactly these kinds of things are wrong, and stay so.
    fn check_left(&self, kinds: &[FindingKind]) -> Report {
        for repair in [true, false] {
            let report = self.engine.doctor(repair).unwrap();
            assert_eq!(kinds_of(&report), kinds, "{report:#?}");
            assert_eq!(report.repaired_total, 0);
        }
        self.examine()
    }

    /// Everything in the table's space, and its counters.
    fn contents(&self) -> String {
        let snapshot = self.engine.running.shared().kv.snapshot();
        let entries = snapshot.range(
            self.table().space(),
            super::walk::everything(),
            Direction::Forward,
        );
        let entries: Vec<_> = entries.map(Result::unwrap).collect();
        let counters = snapshot.get(Space::Meta, &record::counts_key(self.table().id()));
        let counters = Counts::decode(&counters.unwrap().unwrap()).unwrap();
        assert_eq!(counters, self.table().counts());
        format!("{entries:?} {counters:?}")
    }
}

fn kinds_of(report: &Report) -> Vec<FindingKind> {
    assert_eq!(report.findings.len() as u64, report.findings_total);
    report.findings.iter().map(|finding| finding.kind).collect()
}

fn texts(report: &Report) -> Vec<String> {
    report.findings.iter().map(Finding::to_string).collect()
}

#[test]
fn a_sound_store_is_clean_and_its_figures_are_told() {
    let patient = patient();
    let mut stages = Vec::new();
    let report = patient.engine.doctor_with(true, |progress| {
        if stages.last() != Some(&progress.stage) {
            stages.push(progress.stage);
        }
    });
    let report = report.unwrap();
    assert!(report.is_clean() && report.is_repaired(), "{report:#?}");
    let checked = report.checked;
    assert_eq!(
        (checked.tables, checked.items, checked.index_entries),
        (1, 12, 24)
    );
    assert_eq!((checked.expiry_entries, checked.change_records), (12, 12));
    let meta = 6; // the store, the table, its counters, the sequence, its stream, its shard
    let collections = 3;
    assert_eq!(checked.entries, 12 + 24 + 12 + 12 + collections + meta);
    assert_eq!(
        stages,
        [
            Stage::Files,
            Stage::Catalog,
            Stage::Table,
            Stage::ChangeLog,
            Stage::Tokens,
            Stage::Spaces
        ]
    );
}

#[test]
fn a_missing_index_entry_is_found_and_made_again() {
    let patient = patient();
    let before = patient.contents();
    for index in ["by_product", "by_total"] {
        let entries = patient.entries(patient.index(index));
        patient.remove_entry(&entries[5].0);
        let report = patient.check_repaired(&before, &[FindingKind::Missing]);
        let finding = &report.findings[0];
        assert_eq!(
            (finding.table.as_deref(), finding.index.as_deref()),
            (Some("Orders"), Some(index))
        );
        let copied = item::decode(&entries[5].1).unwrap();
        let key = patient.table().definition().key.key_of(&copied).unwrap();
        assert_eq!(finding.key, Some(format!("{key:?}")));
        assert_eq!(
            finding.to_string(),
            format!(
                "missing: an index entry is not there table=Orders index={index} key={key:?} repaired=false"
            )
        );
    }
}

#[test]
fn an_index_that_lost_everything_is_made_again() {
    let patient = patient();
    let before = patient.contents();
    for (key, _) in patient.entries(patient.index("by_product")) {
        patient.remove_entry(&key);
    }
    patient.check_repaired(&before, &[FindingKind::Missing; 12]);
    let mut scan = Scan::new("Orders");
    scan.index_name = Some("by_product".to_owned());
    assert_eq!(block_on(patient.engine.scan(scan)).unwrap().count, 12);
}

#[test]
fn an_extra_index_entry_is_found_and_removed() {
    let patient = patient();
    let before = patient.contents();
    let index = patient.index("by_product");
    let (key, value) = patient.entries(index)[0].clone();
    // Of an item that is not there, of one that does not have it, and of none.
    let ghost = item::encode(&order("ghost", 1));
    let longer = [&key[..], b"x"].concat();
    for value in [&ghost[..], &value, b"", &[0xff; 9]] {
        patient.put_entry(&longer, value);
        let report = patient.check_repaired(&before, &[FindingKind::Extra]);
        let hex: String = longer.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            texts(&report),
            [format!(
                "extra: an index entry follows from no item table=Orders index=by_product key={hex} repaired=false"
            )]
        );
    }
}

#[test]
fn an_index_entry_with_another_value_is_found_and_written_again() {
    let patient = patient();
    let before = patient.contents();
    let (key, value) = patient.entries(patient.index("by_product"))[3].clone();
    let mut other = item::decode(&value).unwrap();
    other.insert("note", "forged");
    for forged in [
        item::encode(&other),
        vec![],
        value[..value.len() - 1].to_vec(),
    ] {
        patient.put_entry(&key, &forged);
        patient.check_repaired(&before, &[FindingKind::Different]);
    }
}

#[test]
fn swapped_entries_do_not_cancel_out() {
    let patient = patient();
    let before = patient.contents();
    let entries = patient.entries(patient.index("by_product"));
    patient.put_entry(&entries[0].0, &entries[1].1);
    patient.put_entry(&entries[1].0, &entries[0].1);
    let report = patient.examine();
    let different = report
        .findings
        .iter()
        .filter(|f| f.kind == FindingKind::Different)
        .count();
    assert_eq!(different, 2, "{report:#?}");
    assert!(patient.engine.doctor(true).unwrap().is_repaired());
    assert!(patient.examine().is_clean());
    assert_eq!(patient.contents(), before);
}

#[test]
fn expiry_entries_are_compared_with_the_items() {
    let patient = patient();
    let before = patient.contents();
    let entries = patient.entries(patient.expiry());
    patient.remove_entry(&entries[0].0);
    patient.check_repaired(&before, &[FindingKind::Missing]);
    let mut other = entries[1].0.to_vec();
    other[8] ^= 1;
    patient.put_entry(&other, b"");
    patient.check_repaired(&before, &[FindingKind::Extra]);
    patient.put_entry(&entries[2].0, b"x");
    patient.check_repaired(&before, &[FindingKind::Different]);
}

#[test]
fn counters_are_compared_with_what_is_there() {
    let patient = patient();
    let before = patient.contents();
    let table = patient.table();
    let by_product = table.index_record("by_product").unwrap().id;
    patient.damage(move |group| {
        let counts = group.counts(&table);
        counts.table.items += 5;
        counts.table.bytes -= 7;
        counts.indexes.remove(&by_product);
    });
    assert_eq!(patient.table().counts().table.items, 17);
    let report = patient.check_repaired(&before, &[FindingKind::WrongCount; 2]);
    assert_eq!(report.findings[0].index, None);
    assert_eq!(report.findings[1].index.as_deref(), Some("by_product"));
    assert!(
        report.findings[0].what.contains("items=17")
            && report.findings[0].what.contains("items_expected=12")
    );
    let description = block_on(patient.engine.describe_table("Orders".to_owned())).unwrap();
    assert_eq!(description.item_count, 12);
}

#[test]
fn the_weights_of_collections_are_compared_with_their_items() {
    let patient = patient();
    let before = patient.contents();
    let weights = patient.entries(EntryKind::Collection);
    let (key, weight) = weights[1].clone();
    let other = record::decode_weight(&weight).unwrap() + 100;
    patient.put_entry(&key, &record::encode_weight(other));
    patient.check_repaired(&before, &[FindingKind::WrongCount]);
    patient.put_entry(&key, b"?");
    patient.check_repaired(&before, &[FindingKind::WrongCount]);
    patient.remove_entry(&key);
    patient.check_repaired(&before, &[FindingKind::WrongCount]);
    let mut unknown = key.to_vec();
    *unknown.last_mut().unwrap() = 7;
    patient.put_entry(&unknown, &weight);
    patient.check_repaired(&before, &[FindingKind::WrongCount]);
}

#[test]
fn an_item_that_does_not_decode_is_told_and_left_alone() {
    let patient = patient();
    let (key, value) = patient.entries(EntryKind::Item)[0].clone();
    let (_, other) = patient.entries(EntryKind::Item)[1].clone();
    let mut heavier = value.to_vec();
    heavier[0] += 1;
    let torn = value[..value.len() - 2].to_vec();
    for bytes in [torn, other.to_vec(), heavier, vec![]] {
        patient.put_entry(&key, &bytes);
        let report = patient.check_left(&[FindingKind::Undecodable]);
        let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(report.findings[0].key, Some(hex));
        assert_eq!(report.findings[0].table.as_deref(), Some("Orders"));
        assert_eq!(*patient.entries(EntryKind::Item)[0].1, *bytes);
        assert_eq!(
            patient.entries(patient.index("by_product")).len(),
            12,
            "its entries stay"
        );
    }
    patient.put_entry(&key, &value);
    assert!(patient.examine().is_clean());
}

#[test]
fn damage_of_one_item_does_not_keep_others_from_being_repaired() {
    let patient = patient();
    let (key, _) = patient.entries(EntryKind::Item)[0].clone();
    patient.put_entry(&key, b"?");
    let entries = patient.entries(patient.index("by_total"));
    patient.remove_entry(&entries.last().unwrap().0);
    let report = patient.engine.doctor(true).unwrap();
    assert_eq!(
        kinds_of(&report),
        [FindingKind::Undecodable, FindingKind::Missing]
    );
    assert_eq!(report.repaired_total, 1);
    assert_eq!(patient.entries(patient.index("by_total")).len(), 12);
}

#[test]
fn entries_that_the_table_does_not_know_are_removed() {
    let patient = patient();
    let before = patient.contents();
    for n in 0..2500_u32 {
        let key = [&[2, 0, 0, 0, 99][..], &n.to_be_bytes()].concat();
        patient.put_entry(&key, b"x");
    }
    let report = patient.check_repaired(&before, &[FindingKind::Extra]);
    assert!(
        report.findings[0].what.ends_with("index=99 entries=2500"),
        "{report:#?}"
    );
    patient.put_entry(&[3, 0, 0, 0, 98, 0], b"");
    patient.check_repaired(&before, &[FindingKind::Extra]);
    // A key that means nothing is left for people to look at.
    patient.put_entry(b"\x09unknown", b"");
    patient.check_left(&[FindingKind::Undecodable]);
}

#[test]
fn a_gap_in_the_change_log_is_found() {
    let patient = patient();
    let stream = patient.table().record.latest_stream.unwrap();
    patient.damage(move |group| {
        let changes = Space::Changes;
        group.remove(changes, change::key(stream, 5));
        group.remove(changes, change::key(stream, 6));
        group.remove(changes, change::key(stream, 12));
    });
    let report = patient.check_left(&[FindingKind::ChangeLog; 2]);
    assert_eq!(
        report.findings[0].what,
        "records are missing: first=5 last=6"
    );
    assert_eq!(
        report.findings[1].what,
        "records are missing: first=12 last=12"
    );
}

#[test]
fn the_sequence_is_shared_by_all_streams() {
    let patient = patient();
    patient.create(
        TableDef::builder("Other", "id", KeyKind::S)
            .stream(StreamView::KeysOnly)
            .build()
            .unwrap(),
    );
    for n in 0..5 {
        patient.put("Other", Item::new().with("id", n.to_string()));
        patient.put("Orders", order("d", n));
    }
    let report = patient.examine();
    assert!(report.is_clean(), "{report:#?}");
    assert_eq!(report.checked.change_records, 22);
    let other = patient
        .engine
        .running
        .shared()
        .catalog
        .get("Other")
        .unwrap()
        .record
        .latest_stream
        .unwrap();
    patient.damage(move |group| group.remove(Space::Changes, change::key(other, 15)));
    let report = patient.check_left(&[FindingKind::ChangeLog]);
    assert_eq!(
        report.findings[0].what,
        "records are missing: first=15 last=15"
    );
}

#[test]
fn what_was_trimmed_is_not_missing() {
    let patient = patient();
    patient.create(
        TableDef::builder("Other", "id", KeyKind::S)
            .stream(StreamView::KeysOnly)
            .build()
            .unwrap(),
    );
    let arn = block_on(patient.engine.describe_table("Orders".to_owned()))
        .unwrap()
        .latest_stream
        .unwrap()
        .arn;
    let hold = HoldChanges {
        consumer: "slow".to_owned(),
        stream_arn: arn,
        after_sequence: Some("3".to_owned()),
    };
    block_on(patient.engine.hold_changes(hold)).unwrap();
    for n in 0..5 {
        patient.put("Other", Item::new().with("id", n.to_string()));
    }
    patient.clock.advance(Duration::from_secs(100 * 3600));
    while patient.engine.run_background_once().unwrap() {}
    // The items have expired, too, which left records of its own.
    let report = patient.examine();
    assert!(report.is_clean(), "{report:#?}");
    assert_eq!(
        (report.checked.items, report.checked.change_records),
        (5, 9 + 12)
    );
    block_on(patient.engine.delete_table("Other".to_owned())).unwrap();
    patient.clock.advance(Duration::from_secs(100 * 3600));
    while patient.engine.run_background_once().unwrap() {}
    assert!(patient.examine().is_clean());
}

#[test]
fn records_and_shards_that_belong_nowhere_are_found() {
    let patient = patient();
    let stream = patient.table().record.latest_stream.unwrap();
    patient.damage(move |group| {
        group.put(Space::Changes, change::key(stream, 13), b"?".to_vec());
        let shard = ShardRecord {
            start: 1,
            created: START,
            end: Some(11),
            parent: None,
            parent_created: None,
        };
        group.put(Space::Meta, record::shard_key(stream, 1), shard.encode());
    });
    let report = patient.check_left(&[
        FindingKind::ChangeLog,
        FindingKind::ChangeLog,
        FindingKind::Undecodable,
        FindingKind::ChangeLog,
        FindingKind::ChangeLog,
    ]);
    let what: Vec<_> = report
        .findings
        .iter()
        .map(|finding| finding.what.split(':').next().unwrap())
        .collect();
    assert_eq!(
        what,
        [
            &*format!(
                "the last shard is open although the stream is off, or the other way round stream={stream}"
            ),
            "a record is in no shard",
            "stored bytes are damaged",
            "a record has a number that was not given out yet",
            "a record is in no shard",
        ]
    );
}

#[test]
fn leftovers_of_streams_and_tables_are_removed() {
    let patient = patient();
    let before = patient.contents();
    let known = patient.table().record.latest_stream.unwrap();
    patient.damage(move |group| {
        for stream in [0, known + 1, 1000, u32::MAX] {
            group.put(Space::Changes, change::key(stream, 1), b"x".to_vec());
        }
        group.put(
            Space::Meta,
            record::counts_key(77),
            Counts::default().encode(),
        );
        group.put(
            Space::Meta,
            record::hold_key(78, "x"),
            record::encode_sequence(1),
        );
        group.put(
            Space::Meta,
            record::trimmed_key(78),
            record::encode_sequence(1),
        );
        group.put(Space::Table(79), b"k", b"v".to_vec());
    });
    let mut kinds = vec![FindingKind::Catalog; 3];
    kinds.extend([FindingKind::ChangeLog; 4]);
    kinds.push(FindingKind::LeftoverKeys);
    patient.check_repaired(&before, &kinds);
    while patient.engine.run_background_once().unwrap() {}
    assert_eq!(
        patient
            .engine
            .running
            .shared()
            .kv
            .snapshot()
            .first_table(79),
        Ok(None)
    );
}

#[test]
fn records_of_the_catalog_that_do_not_decode_or_agree_are_told() {
    let patient = patient();
    let table = patient.table();
    let mut renamed = table.record.clone();
    renamed.definition.name = "Renamed".to_owned();
    patient.damage(move |group| {
        let meta = Space::Meta;
        group.put(meta, b"?", b"".to_vec());
        group.put(meta, record::SEQUENCE_KEY, b"short".to_vec());
        group.put(meta, record::table_key("Other"), renamed.encode());
    });
    let report = patient.examine();
    let kinds = kinds_of(&report);
    assert!(
        kinds
            .iter()
            .filter(|kind| **kind == FindingKind::Undecodable)
            .count()
            == 3,
        "{report:#?}"
    );
    assert!(
        texts(&report)
            .iter()
            .any(|text| text.contains("an id was given out twice")),
        "{report:#?}"
    );
}

#[test]
fn a_stream_that_does_not_match_its_table_is_told() {
    let patient = patient();
    let mut record = patient.table().record.clone();
    record.definition.stream = None;
    record.latest_stream = None;
    patient.damage(move |group| {
        group.put(
            Space::Table(record.id),
            crate::layout::key::DEFINITION_KEY,
            record.encode(),
        );
        group.put(Space::Meta, record::table_key("Orders"), record.encode());
    });
    let report = patient.check_left(&[FindingKind::Catalog]);
    assert!(
        report.findings[0]
            .what
            .starts_with("a stream is on without a table"),
        "{report:#?}"
    );
}

fn by_note() -> UpdateTable {
    let element = |name: &str, role| KeySchemaElement {
        name: name.into(),
        role,
    };
    UpdateTable {
        attribute_definitions: vec![("note".into(), KeyKind::S), ("placed".into(), KeyKind::N)],
        indexes: vec![IndexUpdate::Create(CreateIndex {
            name: "by_note".to_owned(),
            kind: IndexKind::Global,
            key_schema: vec![
                element("note", KeyRole::Hash),
                element("placed", KeyRole::Range),
            ],
            projection: Projection::All,
            throughput: None,
            scaling: Scaling::default(),
        })],
        ..UpdateTable::new("Orders")
    }
}

#[test]
fn an_index_that_is_being_filled_or_removed_is_not_at_fault() {
    let patient = patient();
    for n in 0..1000 {
        patient.put("Orders", order("many", n));
    }
    block_on(patient.engine.update_table(by_note())).unwrap();
    // Before, in the middle, and after; writes go on meanwhile.
    for step in 0.. {
        patient.put("Orders", order("later", step));
        let report = patient.engine.doctor(true).unwrap();
        assert!(report.is_clean(), "{step} {report:#?}");
        if !patient.engine.run_background_once().unwrap() {
            break;
        }
    }
    assert_eq!(
        patient.entries(patient.index("by_note")).len(),
        patient.entries(EntryKind::Item).len()
    );
    let remove = UpdateTable {
        indexes: vec![IndexUpdate::Delete("by_note".to_owned())],
        ..UpdateTable::new("Orders")
    };
    block_on(patient.engine.update_table(remove)).unwrap();
    loop {
        assert!(patient.engine.doctor(true).unwrap().is_clean());
        if !patient.engine.run_background_once().unwrap() {
            break;
        }
    }
}

#[test]
fn entries_of_an_index_that_is_being_filled_are_compared_as_far_as_they_are_there() {
    let patient = patient();
    block_on(patient.engine.update_table(by_note())).unwrap();
    patient.put("Orders", order("later", 1).with("note", "other"));
    let (key, _) = patient.entries(patient.index("by_note"))[0].clone();
    patient.put_entry(&key, b"?");
    patient.put_entry(
        &[&key[..], b"x"].concat(),
        &item::encode(&order("ghost", 1)),
    );
    let mut kinds = kinds_of(&patient.engine.doctor(true).unwrap());
    kinds.sort_by_key(ToString::to_string);
    // The counter of a half-filled index counts what is there.
    assert_eq!(
        kinds,
        [
            FindingKind::Different,
            FindingKind::Extra,
            FindingKind::WrongCount
        ]
    );
    patient.engine.doctor(true).unwrap();
    while patient.engine.run_background_once().unwrap() {}
    assert!(patient.examine().is_clean(), "{:#?}", patient.examine());
}

#[test]
fn only_the_first_thousand_findings_are_listed() {
    let patient = patient();
    for n in 0..1100 {
        patient.put("Orders", order("many", n));
    }
    for (key, _) in patient.entries(patient.index("by_product")) {
        patient.remove_entry(&key);
    }
    let report = patient.engine.doctor(true).unwrap();
    assert_eq!(
        (
            report.findings.len(),
            report.findings_total,
            report.repaired_total
        ),
        (1000, 1112, 1112)
    );
    assert!(report.is_repaired() && patient.examine().is_clean());
}

#[test]
fn a_repair_undoes_no_write_that_came_meanwhile() {
    let patient = patient();
    let entries = patient.entries(patient.index("by_product"));
    for (key, _) in &entries {
        patient.remove_entry(key);
    }
    // Between the examination and the repair, items are changed and removed.
    let engine = &patient.engine;
    let mut meddled = false;
    let report = engine.doctor_with(true, |progress| {
        if progress.stage == Stage::Compare && !meddled {
            meddled = true;
            patient.put(
                "Orders",
                order("a", 0)
                    .with("product", "changed")
                    .with("note", "changed"),
            );
            let key = Item::new().with("customer", "a").with("placed", 1);
            let delete = floe_store::op::DeleteItem::new("Orders", key);
            block_on(engine.write_item(delete.into())).unwrap();
        }
    });
    assert!(meddled && report.unwrap().is_repaired());
    let after = patient.examine();
    assert!(after.is_clean(), "{after:#?}");
    assert_eq!(patient.entries(patient.index("by_product")).len(), 11);
}

#[test]
fn keys_of_no_table_are_found_in_a_closed_directory_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    patient().engine.backup(dir.path().join("store")).unwrap();
    let path = dir.path().join("store");
    {
        let directory = crate::dir::Directory::open_existing(&path).unwrap();
        let opened = crate::engine::Opened::open(directory, &Options::new()).unwrap();
        let mut batch = crate::kv::Batch::default();
        batch.put(Space::Table(99), b"k", b"v".to_vec());
        opened.kv.commit(batch, crate::kv::Sync::Data).unwrap();
        opened.close().unwrap();
    }
    let report = super::examine(&path, false, |_| {}).unwrap();
    assert_eq!(kinds_of(&report), [FindingKind::LeftoverKeys]);
    assert_eq!(report.findings[0].what, "keys belong to no table: id=99");
    let report = super::examine(&path, true, |_| {}).unwrap();
    assert_eq!(kinds_of(&report), [FindingKind::LeftoverKeys]);
    assert!(report.is_repaired());
    assert!(super::examine(&path, false, |_| {}).unwrap().is_clean());
}

#[test]
fn a_closed_directory_is_repaired() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let patient = patient();
    let entries = patient.entries(patient.index("by_product"));
    patient.remove_entry(&entries[0].0);
    patient.engine.backup(&path).unwrap();
    assert_eq!(
        kinds_of(&super::examine(&path, false, |_| {}).unwrap()),
        [FindingKind::Missing]
    );
    let report = super::examine(&path, true, |_| {}).unwrap();
    assert_eq!(kinds_of(&report), [FindingKind::Missing]);
    assert!(report.is_repaired());
    assert!(super::examine(&path, true, |_| {}).unwrap().is_clean());
}

#[test]
fn a_catalog_that_cannot_be_opened_is_examined_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let patient = patient();
    patient.damage(|group| {
        group.put(Space::Meta, record::table_key("Broken"), b"?".to_vec());
    });
    patient.engine.backup(&path).unwrap_err();
    patient.damage(|group| group.remove(Space::Meta, record::table_key("Broken")));
    patient.engine.backup(&path).unwrap();
    {
        let directory = crate::dir::Directory::open_existing(&path).unwrap();
        let opened = crate::engine::Opened::open(directory, &Options::new()).unwrap();
        let mut batch = crate::kv::Batch::default();
        batch.put(Space::Meta, record::table_key("Broken"), b"?".to_vec());
        opened.kv.commit(batch, crate::kv::Sync::Data).unwrap();
        opened.close().unwrap();
    }
    LocalEngine::open(&path).unwrap_err();
    let report = super::examine(&path, false, |_| {}).unwrap();
    assert_eq!(kinds_of(&report), [FindingKind::Undecodable]);
    assert_eq!(report.checked.items, 12, "the other table was examined");
    let report = super::examine(&path, true, |_| {}).unwrap();
    assert_eq!(
        kinds_of(&report),
        [FindingKind::Undecodable, FindingKind::Unopenable]
    );
}

#[test]
fn copy_of_a_tables_record_is_written_again() {
    let patient = patient();
    let before = patient.contents();
    let space = patient.table().space();
    let key = crate::layout::key::DEFINITION_KEY;
    patient.damage(move |group| group.put(space, key, b"?".to_vec()));
    patient.check_repaired(&before, &[FindingKind::Different]);
    patient.damage(move |group| group.remove(space, key));
    patient.check_repaired(&before, &[FindingKind::Missing]);
}
