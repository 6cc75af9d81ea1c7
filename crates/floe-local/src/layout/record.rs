//! What the spaces `meta` and `tokens` hold.
//!
//! | key | value |
//! |---|---|
//! | `I` | [`Instance`]: what tells this store from all others, and the ids given out so far |
//! | `T`, table name | [`TableRecord`] |
//! | `C`, table (4) | [`Counts`] of the table and its indexes |
//! | `J`, job (4) | [`JobRecord`]: an index or expiry generation to be filled or removed |
//! | `Q` | the last sequence number given out (8) |
//! | `S`, stream (4) | [`StreamRecord`] |
//! | `H`, stream (4), first sequence number (8) | [`ShardRecord`] |
//! | `O`, stream (4), consumer | the sequence number after which records are held (8) |
//! | `X`, stream (4) | the last sequence number that was trimmed from the stream (8) |
//! | `X` | the last sequence number that was trimmed from any stream, even one that is gone (8) |
//!
//! Records that are written seldom are stored as [items](super::item): named fields can be added later
//! without a new format. Those that every commit writes have a form of their own.

use std::collections::BTreeMap;

use floe_store::table::{IndexDef, KeySchema, StreamView, TableHistory};
use floe_store::{Env, Item, Result, TableDef, Timestamp};

use super::fields::{Record, get, put, record};
use super::{Reader, damaged, item, push_prefixed, push_varint};

/// The key of the [`Instance`].
pub(crate) const INSTANCE_KEY: &[u8] = b"I";

/// The key of the last sequence number.
pub(crate) const SEQUENCE_KEY: &[u8] = b"Q";

/// What the keys of all [`TableRecord`]s begin with.
pub(crate) const TABLES_PREFIX: &[u8] = b"T";

/// What the keys of all [`JobRecord`]s begin with.
pub(crate) const JOBS_PREFIX: &[u8] = b"J";

/// What the keys of all [`StreamRecord`]s begin with.
pub(crate) const STREAMS_PREFIX: &[u8] = b"S";

/// The key of a [`TableRecord`].
pub(crate) fn table_key(name: &str) -> Vec<u8> {
    [TABLES_PREFIX, name.as_bytes()].concat()
}

/// The key of the [`Counts`] of a table.
pub(crate) fn counts_key(table: u32) -> Vec<u8> {
    [b"C".as_slice(), &table.to_be_bytes()].concat()
}

/// The key of a [`JobRecord`].
pub(crate) fn job_key(job: u32) -> Vec<u8> {
    [JOBS_PREFIX, &job.to_be_bytes()].concat()
}

/// The job of which this is the key.
pub(crate) fn job_of_key(key: &[u8]) -> Result<u32> {
    let mut reader = Reader::new(key, "job key");
    reader.bytes(JOBS_PREFIX.len())?;
    reader.array().map(u32::from_be_bytes)
}

/// The key of a [`StreamRecord`].
pub(crate) fn stream_key(stream: u32) -> Vec<u8> {
    [STREAMS_PREFIX, &stream.to_be_bytes()].concat()
}

/// The key of a [`ShardRecord`].
pub(crate) fn shard_key(stream: u32, start: u64) -> Vec<u8> {
    [&shards_prefix(stream)[..], &start.to_be_bytes()].concat()
}

/// What the keys of all shards of a stream begin with.
pub(crate) fn shards_prefix(stream: u32) -> Vec<u8> {
    [b"H".as_slice(), &stream.to_be_bytes()].concat()
}

/// The key of a consumer's hold on a stream.
pub(crate) fn hold_key(stream: u32, consumer: &str) -> Vec<u8> {
    [&holds_prefix(stream)[..], consumer.as_bytes()].concat()
}

/// What the keys of all holds on a stream begin with.
pub(crate) fn holds_prefix(stream: u32) -> Vec<u8> {
    [b"O".as_slice(), &stream.to_be_bytes()].concat()
}

/// The key of the last sequence number that was trimmed from any stream.
pub(crate) const TRIMMED_KEY: &[u8] = b"X";

/// The key of the last sequence number that was trimmed from a stream.
pub(crate) fn trimmed_key(stream: u32) -> Vec<u8> {
    [TRIMMED_KEY, &stream.to_be_bytes()].concat()
}

/// What a record of `meta` is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetaKey {
    /// The store itself.
    Instance,
    /// A table.
    Table,
    /// How much is in the table of this id.
    Counts(u32),
    /// A job.
    Job,
    /// The last sequence number.
    Sequence,
    /// The stream of this id.
    Stream(u32),
    /// A shard of the stream of this id.
    Shard(u32),
    /// A hold on the stream of this id.
    Hold(u32),
    /// What was trimmed from the stream of this id, or from any.
    Trimmed(Option<u32>),
}

/// What the record of this key is about.
pub(crate) fn decode_meta_key(key: &[u8]) -> Result<MetaKey> {
    let mut reader = Reader::new(key, "catalog key");
    let letter = reader.byte()?;
    let length = reader.remaining();
    let mut id = || reader.array().map(u32::from_be_bytes);
    match (letter, length) {
        (b'I', 0) => Ok(MetaKey::Instance),
        (b'T', 1..) => Ok(MetaKey::Table),
        (b'C', 4) => id().map(MetaKey::Counts),
        (b'J', 4) => Ok(MetaKey::Job),
        (b'Q', 0) => Ok(MetaKey::Sequence),
        (b'S', 4) => id().map(MetaKey::Stream),
        (b'H', 12) => id().map(MetaKey::Shard),
        (b'O', 5..) => id().map(MetaKey::Hold),
        (b'X', 0) => Ok(MetaKey::Trimmed(None)),
        (b'X', 4) => id().map(Some).map(MetaKey::Trimmed),
        _ => Err(damaged("catalog key")),
    }
}

/// The bytes of a sequence number as a value.
pub(crate) fn encode_sequence(sequence: u64) -> Vec<u8> {
    sequence.to_be_bytes().to_vec()
}

/// The sequence number of a value.
pub(crate) fn decode_sequence(bytes: &[u8]) -> Result<u64> {
    decode_number(bytes, "sequence number")
}

/// The bytes of the weight of an item collection.
pub(crate) fn encode_weight(bytes: u64) -> Vec<u8> {
    bytes.to_be_bytes().to_vec()
}

/// The weight of an item collection.
pub(crate) fn decode_weight(bytes: &[u8]) -> Result<u64> {
    decode_number(bytes, "weight of an item collection")
}

fn decode_number(bytes: &[u8], what: &'static str) -> Result<u64> {
    let number = bytes.try_into().map_err(|_| damaged(what))?;
    Ok(u64::from_be_bytes(number))
}

/// What tells this store from all others, and the ids given out so far. No id is ever used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    /// A random number that stands in the ids of change records.
    pub(crate) number: u64,
    /// When the store was made.
    pub(crate) created: Timestamp,
    /// The id that the next table, index, expiry generation, job or stream gets.
    pub(crate) next_id: u32,
}

impl Instance {
    /// That of a new store.
    pub(crate) fn new(env: &Env) -> Self {
        Self {
            number: env.next_u64(),
            created: env.now(),
            next_id: 1,
        }
    }
}

/// A table in the catalog.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableRecord {
    /// Its id, which names its space.
    pub(crate) id: u32,
    /// Its id as DynamoDB shows it.
    pub(crate) uuid: String,
    /// When it was made.
    pub(crate) created: Timestamp,
    /// Its definition, without the indexes that are being removed.
    pub(crate) definition: TableDef,
    /// The ids and states of the indexes, in the order of the definition.
    pub(crate) indexes: Vec<IndexRecord>,
    /// Indexes that are being removed.
    pub(crate) removing: Vec<(u32, IndexDef)>,
    /// The generation of expiry entries, if expiry is on.
    pub(crate) expiry: Option<u32>,
    /// The newest stream, even if it has been switched off.
    pub(crate) latest_stream: Option<u32>,
    /// When its settings changed.
    pub(crate) history: TableHistory,
}

/// An index in the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexRecord {
    /// Its id, which stands in the keys of its entries.
    pub(crate) id: u32,
    /// Whether it is still being filled from the items that were there before it.
    pub(crate) filling: bool,
}

impl TableRecord {
    /// The ids that were given out for it, but for that of its stream.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> {
        let indexes = self.indexes.iter().map(|index| index.id);
        let removing = self.removing.iter().map(|(id, _)| *id);
        let others = [Some(self.id), self.expiry].into_iter().flatten();
        indexes.chain(removing).chain(others)
    }
}

impl Record for TableRecord {
    fn fields(&self) -> Item {
        let mut fields = Item::new();
        put(&mut fields, "id", &self.id);
        put(&mut fields, "uuid", &self.uuid);
        put(&mut fields, "created", &self.created);
        put(&mut fields, "definition", &self.definition);
        put(&mut fields, "indexes", &self.indexes);
        put(&mut fields, "removing", &self.removing);
        put(&mut fields, "expiry", &self.expiry);
        put(&mut fields, "latest_stream", &self.latest_stream);
        put(&mut fields, "history", &self.history);
        fields
    }

    fn of_fields(fields: &Item) -> Option<Self> {
        let definition: TableDef = get(fields, "definition")?;
        let created = get(fields, "created")?;
        let history: Option<TableHistory> = get(fields, "history")?;
        let record = Self {
            id: get(fields, "id")?,
            uuid: get(fields, "uuid")?,
            created,
            // It was not stored at first: then all that is known is how the table is paid for.
            history: history.unwrap_or_else(|| TableHistory::of_new(&definition, created)),
            definition,
            indexes: get(fields, "indexes")?,
            removing: get(fields, "removing")?,
            expiry: get(fields, "expiry")?,
            latest_stream: get(fields, "latest_stream")?,
        };
        (record.indexes.len() == record.definition.indexes.len()).then_some(record)
    }
}

/// An index that is being removed: its definition, and its id.
impl Record for (u32, IndexDef) {
    fn fields(&self) -> Item {
        let (id, definition) = self;
        definition.fields().with("id", *id)
    }

    fn of_fields(fields: &Item) -> Option<Self> {
        Some((get(fields, "id")?, IndexDef::of_fields(fields)?))
    }
}

/// How many entries there are and what they weigh, as DynamoDB counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Count {
    /// How many.
    pub(crate) items: u64,
    /// Their weight.
    pub(crate) bytes: u64,
}

/// The counts of a table and of its indexes by id.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// Of the items.
    pub(crate) table: Count,
    /// Of the entries of each index.
    pub(crate) indexes: BTreeMap<u32, Count>,
}

impl Counts {
    /// Its bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16 + 16 * self.indexes.len());
        push_varint(&mut out, self.table.items);
        push_varint(&mut out, self.table.bytes);
        for (id, count) in &self.indexes {
            push_varint(&mut out, u64::from(*id));
            push_varint(&mut out, count.items);
            push_varint(&mut out, count.bytes);
        }
        out
    }

    /// The counts of these bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes, "counters");
        let count = |reader: &mut Reader<'_>| {
            Ok::<_, floe_store::Error>(Count {
                items: reader.varint()?,
                bytes: reader.varint()?,
            })
        };
        let mut counts = Self {
            table: count(&mut reader)?,
            indexes: BTreeMap::new(),
        };
        while reader.remaining() > 0 {
            let id = u32::try_from(reader.varint()?).map_err(|_| reader.damaged())?;
            counts.indexes.insert(id, count(&mut reader)?);
        }
        Ok(counts)
    }
}

/// Work on a table that is done in steps between commits, and goes on after a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobRecord {
    /// Its id, in the order in which jobs were given.
    pub(crate) id: u32,
    /// The table.
    pub(crate) table: u32,
    /// What to do.
    pub(crate) work: Work,
    /// The last key that is done; empty at the beginning.
    pub(crate) cursor: Vec<u8>,
}

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Makes the entries of an index from the items.
    FillIndex(u32),
    /// Removes the entries of an index.
    RemoveIndex(u32),
    /// Makes expiry entries from the items.
    FillExpiry(u32),
    /// Removes the expiry entries of a generation.
    RemoveExpiry(u32),
    /// Removes everything of a table that was deleted.
    RemoveTable,
}

impl Record for JobRecord {
    fn fields(&self) -> Item {
        let (work, target) = match self.work {
            Work::FillIndex(id) => ("fill_index", id),
            Work::RemoveIndex(id) => ("remove_index", id),
            Work::FillExpiry(id) => ("fill_expiry", id),
            Work::RemoveExpiry(id) => ("remove_expiry", id),
            Work::RemoveTable => ("remove_table", self.table),
        };
        Item::new()
            .with("id", self.id)
            .with("table", self.table)
            .with("work", work)
            .with("target", target)
            .with("cursor", &*self.cursor)
    }

    fn of_fields(fields: &Item) -> Option<Self> {
        let target = get(fields, "target")?;
        Some(Self {
            id: get(fields, "id")?,
            table: get(fields, "table")?,
            work: match fields.get("work")?.as_s()? {
                "fill_index" => Work::FillIndex(target),
                "remove_index" => Work::RemoveIndex(target),
                "fill_expiry" => Work::FillExpiry(target),
                "remove_expiry" => Work::RemoveExpiry(target),
                "remove_table" => Work::RemoveTable,
                _ => return None,
            },
            cursor: get(fields, "cursor")?,
        })
    }
}

/// A change stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StreamRecord {
    /// Its id, which stands in the keys of its records.
    pub(crate) id: u32,
    /// The id of the table.
    pub(crate) table: u32,
    /// The name of the table.
    pub(crate) table_name: String,
    /// The key of the table.
    pub(crate) key: KeySchema,
    /// The images in its records.
    pub(crate) view: StreamView,
    /// When it was switched on. It is the label of the stream, and differs among those of one name.
    pub(crate) created: Timestamp,
    /// When it was switched off.
    pub(crate) disabled: Option<Timestamp>,
}

/// A shard of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardRecord {
    /// The first sequence number that may be in it.
    pub(crate) start: u64,
    /// When it was opened.
    pub(crate) created: Timestamp,
    /// The last sequence number that may be in it, once it is closed.
    pub(crate) end: Option<u64>,
    /// The `start` of the shard before it.
    pub(crate) parent: Option<u64>,
    /// When the shard before it was opened.
    pub(crate) parent_created: Option<Timestamp>,
}

record! {
    Instance { number: "number", created: "created", next_id: "next_id" }
    IndexRecord { id: "id", filling: "filling" }
    StreamRecord {
        id: "id",
        table: "table",
        table_name: "table_name",
        key: "key",
        view: "view",
        created: "created",
        disabled: "disabled",
    }
    ShardRecord {
        start: "start",
        created: "created",
        end: "end",
        parent: "parent",
        parent_created: "parent_created",
    }
}

/// Gives records their bytes; the text names them in errors.
macro_rules! encoded {
    ($($record:ident: $what:literal;)+) => {$(
        impl $record {
            /// Its bytes.
            pub(crate) fn encode(&self) -> Vec<u8> {
                item::encode(&self.fields())
            }

            /// The record of these bytes.
            pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
                let fields = item::decode(bytes)?;
                Self::of_fields(&fields).ok_or_else(|| damaged($what))
            }
        }
    )+};
}

encoded! {
    Instance: "instance record";
    TableRecord: "table record";
    JobRecord: "job record";
    StreamRecord: "stream record";
    ShardRecord: "shard record";
}

/// The operation that a token belongs to: a transaction.
const TRANSACT_TOKEN: u8 = 1;

/// The key of a token: the slot of time in which it was used, the operation, and the token itself. Old
/// ones are at the front, so that they can be removed without being looked for.
pub(crate) fn token_key(slot: u32, token: &str) -> Vec<u8> {
    [&slot.to_be_bytes()[..], &[TRANSACT_TOKEN], token.as_bytes()].concat()
}

/// What the keys of all tokens of a slot begin with.
pub(crate) fn token_slot_key(slot: u32) -> Vec<u8> {
    slot.to_be_bytes().to_vec()
}

/// The slot of the key of a token, and what stands behind it.
///
/// # Errors
///
/// When the key is none of a token.
pub(crate) fn token_slot(key: &[u8]) -> Result<(u32, &[u8])> {
    let (slot, token) = key
        .split_first_chunk()
        .ok_or_else(|| damaged("key of a token"))?;
    Ok((u32::from_be_bytes(*slot), token))
}

/// What is remembered of a request with a token, to answer it the same way again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TokenRecord {
    /// Until when.
    pub(crate) expires: Timestamp,
    /// Tells whether the request is the same.
    pub(crate) fingerprint: u128,
    /// What each action touched, in bytes, as the capacity of a repeated answer counts it.
    pub(crate) sizes: Vec<usize>,
    /// The attributes that a write of one item returned.
    pub(crate) returned: Option<Item>,
}

impl TokenRecord {
    /// Its bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(40);
        push_varint(&mut out, self.expires.as_millis());
        out.extend_from_slice(&self.fingerprint.to_le_bytes());
        push_varint(&mut out, self.sizes.len() as u64);
        for size in &self.sizes {
            push_varint(&mut out, *size as u64);
        }
        if let Some(returned) = &self.returned {
            push_prefixed(&mut out, &item::encode(returned));
        }
        out
    }

    /// The record of these bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes, "token record");
        let expires = Timestamp::from_millis(reader.varint()?);
        let fingerprint = u128::from_le_bytes(reader.array()?);
        let mut sizes = Vec::new();
        for _ in 0..reader.count()? {
            sizes.push(usize::try_from(reader.varint()?).map_err(|_| reader.damaged())?);
        }
        let returned = match reader.remaining() {
            0 => None,
            _ => Some(item::decode(reader.prefixed()?)?),
        };
        reader.finish()?;
        Ok(Self {
            expires,
            fingerprint,
            sizes,
            returned,
        })
    }
}

/// When a token record expires, without decoding the rest.
pub(crate) fn decode_token_expiry(bytes: &[u8]) -> Result<Timestamp> {
    let mut reader = Reader::new(bytes, "token record");
    reader.varint().map(Timestamp::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floe_store::table::{
        Billing, Encryption, IndexKind, KeyAttribute, KeyKind, OnDemandThroughput, Projection,
        Scaling, TableClass, Throughput,
    };

    fn schema(kind: KeyKind) -> KeySchema {
        KeySchema {
            partition: vec![KeyAttribute::new("p", kind)],
            sort: vec![KeyAttribute::new("s", KeyKind::N)],
        }
    }

    fn index(name: &str, kind: IndexKind, projection: Projection) -> IndexDef {
        IndexDef {
            name: name.to_owned(),
            kind,
            key: schema(KeyKind::B),
            projection,
            throughput: Some(Throughput { read: 1, write: 2 }),
            scaling: Scaling {
                warm: Some(Throughput { read: 3, write: 4 }),
                ..Scaling::default()
            },
        }
    }

    fn table() -> TableRecord {
        let definition = TableDef {
            name: "Orders".to_owned(),
            key: schema(KeyKind::S),
            indexes: vec![
                index("a", IndexKind::Global, Projection::All),
                index("b", IndexKind::Local, Projection::KeysOnly),
                index(
                    "c",
                    IndexKind::Global,
                    Projection::Include(vec!["x".into()]),
                ),
            ],
            billing: Billing::Provisioned(Throughput { read: 5, write: 6 }),
            stream: Some(StreamView::NewImage),
            ttl_attribute: Some("until".into()),
            tags: [("team".to_owned(), "a".to_owned())].into(),
            deletion_protection: true,
            class: Some(TableClass::StandardInfrequentAccess),
            scaling: Scaling {
                on_demand: OnDemandThroughput {
                    read_max: Some(1),
                    write_max: None,
                },
                warm: Some(Throughput { read: 7, write: 8 }),
            },
            encryption: Some(Encryption {
                key: Some("k".to_owned()),
            }),
        };
        TableRecord {
            id: 4,
            uuid: "u".to_owned(),
            created: Timestamp::from_millis(5),
            definition,
            indexes: [(1, false), (2, true), (3, false)]
                .map(|(id, filling)| IndexRecord { id, filling })
                .into(),
            removing: vec![(9, index("d", IndexKind::Global, Projection::All))],
            expiry: Some(8),
            latest_stream: Some(7),
            history: TableHistory {
                on_demand: Some(Timestamp::from_millis(1)),
                decrease: Some(Timestamp::from_millis(2)),
                decreases: 3,
                ..TableHistory::default()
            },
        }
    }

    #[test]
    fn records_come_back() {
        let record = table();
        assert_eq!(TableRecord::decode(&record.encode()).unwrap(), record);
        let instance = Instance {
            number: u64::MAX,
            created: Timestamp::from_millis(1),
            next_id: 3,
        };
        assert_eq!(Instance::decode(&instance.encode()).unwrap(), instance);
        for work in [
            Work::FillIndex(1),
            Work::RemoveIndex(2),
            Work::FillExpiry(3),
            Work::RemoveExpiry(4),
        ] {
            let job = JobRecord {
                id: 1,
                table: 2,
                work,
                cursor: vec![1, 0, 255],
            };
            assert_eq!(JobRecord::decode(&job.encode()).unwrap(), job);
        }
        let stream = StreamRecord {
            id: 1,
            table: 4,
            table_name: "Orders".to_owned(),
            key: schema(KeyKind::S),
            view: StreamView::OldImage,
            created: Timestamp::from_millis(9),
            disabled: Some(Timestamp::from_millis(10)),
        };
        assert_eq!(StreamRecord::decode(&stream.encode()).unwrap(), stream);
        let shard = ShardRecord {
            start: 1,
            created: Timestamp::from_millis(2),
            end: Some(3),
            parent: None,
            parent_created: None,
        };
        assert_eq!(ShardRecord::decode(&shard.encode()).unwrap(), shard);
    }

    #[test]
    fn the_bytes_of_records_do_not_change() {
        let record = table();
        let plain = TableRecord {
            definition: TableDef::builder("Plain", "id", KeyKind::B)
                .build()
                .unwrap(),
            indexes: Vec::new(),
            removing: Vec::new(),
            expiry: None,
            latest_stream: None,
            history: TableHistory::default(),
            ..record.clone()
        };
        let mut standard = record.clone();
        standard.definition.class = Some(TableClass::Standard);
        standard.definition.encryption = Some(Encryption::default());
        let instance = Instance {
            number: u64::MAX,
            created: Timestamp::from_millis(1),
            next_id: 3,
        };
        let job = |work| JobRecord {
            id: 1,
            table: 2,
            work,
            cursor: vec![1, 0, 255],
        };
        let stream = StreamRecord {
            id: 1,
            table: 4,
            table_name: "Orders".to_owned(),
            key: schema(KeyKind::S),
            view: StreamView::OldImage,
            created: Timestamp::from_millis(9),
            disabled: Some(Timestamp::from_millis(10)),
        };
        let shard = ShardRecord {
            start: 1,
            created: Timestamp::from_millis(2),
            end: None,
            parent: Some(3),
            parent_created: Some(Timestamp::from_millis(4)),
        };
        let encoded = [
            record.encode(),
            plain.encode(),
            standard.encode(),
            instance.encode(),
            job(Work::FillIndex(7)).encode(),
            job(Work::RemoveTable).encode(),
            stream.encode(),
            shard.encode(),
            ShardRecord {
                end: Some(5),
                parent: None,
                ..shard
            }
            .encode(),
            StreamRecord {
                disabled: None,
                ..stream
            }
            .encode(),
        ];
        let hashes = encoded.map(|bytes| floe_store::hash::fnv1a(&bytes));
        assert_eq!(
            hashes,
            [
                0x3323_c637_6bef_d3be,
                0xcec7_dd72_d813_b2a2,
                0x36a9_c56e_0c0d_4ad5,
                0x7d01_a6d3_2132_b6d8,
                0xef29_f950_72df_5b23,
                0xfb94_55cf_3251_d2d3,
                0xbb47_bc5c_e824_010f,
                0xae0c_f427_152f_d638,
                0xd4e6_a2c2_2ada_c80d,
                0x911f_ac65_bb25_5cd2
            ]
        );
    }

    #[test]
    fn counters_and_tokens_come_back() {
        let mut counts = Counts {
            table: Count {
                items: 3,
                bytes: 300,
            },
            ..Counts::default()
        };
        counts.indexes.insert(
            7,
            Count {
                items: 1,
                bytes: 1 << 40,
            },
        );
        assert_eq!(Counts::decode(&counts.encode()).unwrap(), counts);
        for returned in [None, Some(Item::new()), Some(Item::new().with("a", 1))] {
            let token = TokenRecord {
                expires: Timestamp::from_millis(7),
                fingerprint: u128::MAX - 1,
                sizes: vec![0, 5000],
                returned,
            };
            let bytes = token.encode();
            assert_eq!(TokenRecord::decode(&bytes).unwrap(), token);
            assert_eq!(decode_token_expiry(&bytes).unwrap(), token.expires);
            assert!(TokenRecord::decode(&bytes[..bytes.len() - 1]).is_err());
        }
    }

    #[test]
    fn a_record_that_lacks_a_field_is_damaged() {
        let bytes = table().encode();
        let mut fields = item::decode(&bytes).unwrap();
        fields.remove("uuid");
        let error = TableRecord::decode(&item::encode(&fields)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "stored bytes are damaged: what=table record"
        );
        assert!(TableRecord::decode(&[]).is_err());
    }
}
