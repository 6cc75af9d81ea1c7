//! Keys and values of the spaces `meta` and `tokens`.
//!
//! | key | value |
//! |---|---|
//! | `I` | [`Instance`]: identity of the store, and the ids assigned so far |
//! | `T`, table name | [`TableRecord`] |
//! | `C`, table (4) | [`Counts`] of the table and its indexes |
//! | `J`, job (4) | [`JobRecord`]: an index or expiry generation to fill or remove |
//! | `Q` | the latest sequence number that was assigned (8) |
//! | `S`, stream (4) | [`StreamRecord`] |
//! | `H`, stream (4), first sequence number (8) | [`ShardRecord`] |
//! | `O`, stream (4), consumer | the sequence number after which records are held (8) |
//! | `X`, stream (4) | the latest sequence number trimmed from the stream (8) |
//! | `X` | the latest sequence number trimmed from any stream, including removed ones (8) |
//!
//! Records that are rarely written are stored as [items](super::item), so that named fields can be added later without
//! a new format version. Records that every commit writes have their own encoding.

use std::collections::BTreeMap;

use floe_store::table::{IndexDef, KeySchema, StreamView, TableHistory};
use floe_store::{Env, Item, Result, TableDef, Timestamp};

use super::fields::{Record, get, put, record};
use super::{Reader, damaged, item, push_prefixed, push_varint};

/// The key of the [`Instance`].
pub(crate) const INSTANCE_KEY: &[u8] = b"I";

/// The key of the latest sequence number.
pub(crate) const SEQUENCE_KEY: &[u8] = b"Q";

/// Prefix of the keys of all [`TableRecord`]s.
pub(crate) const TABLES_PREFIX: &[u8] = b"T";

/// Prefix of the keys of all [`JobRecord`]s.
pub(crate) const JOBS_PREFIX: &[u8] = b"J";

/// Prefix of the keys of all [`StreamRecord`]s.
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

/// Decodes the job id of a key.
pub(crate) fn decode_job_key(key: &[u8]) -> Result<u32> {
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

/// Prefix of the keys of all shards of a stream.
pub(crate) fn shards_prefix(stream: u32) -> Vec<u8> {
    [b"H".as_slice(), &stream.to_be_bytes()].concat()
}

/// The key of a consumer's hold on a stream.
pub(crate) fn hold_key(stream: u32, consumer: &str) -> Vec<u8> {
    [&holds_prefix(stream)[..], consumer.as_bytes()].concat()
}

/// Prefix of the keys of all holds on a stream.
pub(crate) fn holds_prefix(stream: u32) -> Vec<u8> {
    [b"O".as_slice(), &stream.to_be_bytes()].concat()
}

/// The key of the latest sequence number that was trimmed from any stream.
pub(crate) const TRIMMED_KEY: &[u8] = b"X";

/// The key of the latest sequence number that was trimmed from a stream.
pub(crate) fn trimmed_key(stream: u32) -> Vec<u8> {
    [TRIMMED_KEY, &stream.to_be_bytes()].concat()
}

/// The subject of a record in `meta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetaKey {
    /// The store itself.
    Instance,
    /// A table.
    Table,
    /// The counts of the table with this id.
    Counts(u32),
    /// A job.
    Job,
    /// The latest sequence number.
    Sequence,
    /// The stream with this id.
    Stream(u32),
    /// A shard of the stream with this id.
    Shard(u32),
    /// A hold on the stream with this id.
    Hold(u32),
    /// The latest trimmed sequence number of the stream with this id, or of all streams.
    Trimmed(Option<u32>),
}

/// Decodes the subject of a key.
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

/// Encodes a sequence number as a value.
pub(crate) fn encode_sequence(sequence: u64) -> Vec<u8> {
    sequence.to_be_bytes().to_vec()
}

/// Decodes a sequence number from a value.
pub(crate) fn decode_sequence(bytes: &[u8]) -> Result<u64> {
    decode_number(bytes, "sequence number")
}

/// Encodes the size of an item collection.
pub(crate) fn encode_collection_size(bytes: u64) -> Vec<u8> {
    bytes.to_be_bytes().to_vec()
}

/// Decodes the size of an item collection.
pub(crate) fn decode_collection_size(bytes: &[u8]) -> Result<u64> {
    decode_number(bytes, "size of an item collection")
}

fn decode_number(bytes: &[u8], what: &'static str) -> Result<u64> {
    let number = bytes.try_into().map_err(|_| damaged(what))?;
    Ok(u64::from_be_bytes(number))
}

/// Identity of the store, and the ids assigned so far. Ids are never reused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    /// A random number that is part of the ids of change records.
    pub(crate) number: u64,
    /// When the store was created.
    pub(crate) created: Timestamp,
    /// Id of the next table, index, expiry generation, job or stream.
    pub(crate) next_id: u32,
}

impl Instance {
    /// Creates the record of a new store.
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
    /// Its id, which identifies its space.
    pub(crate) id: u32,
    /// Its id in DynamoDB's format.
    pub(crate) uuid: String,
    /// When it was created.
    pub(crate) created: Timestamp,
    /// Its definition, without the indexes that are being removed.
    pub(crate) definition: TableDef,
    /// The ids and states of the indexes, in the order of the definition.
    pub(crate) indexes: Vec<IndexRecord>,
    /// Indexes that are being removed.
    pub(crate) removing: Vec<(u32, IndexDef)>,
    /// The generation of expiry entries, if expiry is enabled.
    pub(crate) expiry: Option<u32>,
    /// The latest stream, even if it is disabled.
    pub(crate) latest_stream: Option<u32>,
    /// When its billing settings changed.
    pub(crate) history: TableHistory,
}

/// An index in the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexRecord {
    /// Its id, which is part of the keys of its entries.
    pub(crate) id: u32,
    /// Whether it is still being filled with the items that existed before it.
    pub(crate) filling: bool,
}

impl TableRecord {
    /// All ids assigned to it, except those of its streams.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> {
        let indexes = self.indexes.iter().map(|index| index.id);
        let removing = self.removing.iter().map(|(id, _)| *id);
        let own = [Some(self.id), self.expiry].into_iter().flatten();
        indexes.chain(removing).chain(own)
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

    fn from_fields(fields: &Item) -> Option<Self> {
        let definition: TableDef = get(fields, "definition")?;
        let created = get(fields, "created")?;
        let history: Option<TableHistory> = get(fields, "history")?;
        let record = Self {
            id: get(fields, "id")?,
            uuid: get(fields, "uuid")?,
            created,
            // Older records have no history: then only the billing mode is known.
            history: history.unwrap_or_else(|| TableHistory::for_new_table(&definition, created)),
            definition,
            indexes: get(fields, "indexes")?,
            removing: get(fields, "removing")?,
            expiry: get(fields, "expiry")?,
            latest_stream: get(fields, "latest_stream")?,
        };
        (record.indexes.len() == record.definition.indexes.len()).then_some(record)
    }
}

/// An index that is being removed: its id and definition.
impl Record for (u32, IndexDef) {
    fn fields(&self) -> Item {
        let (id, definition) = self;
        definition.fields().with("id", *id)
    }

    fn from_fields(fields: &Item) -> Option<Self> {
        Some((get(fields, "id")?, IndexDef::from_fields(fields)?))
    }
}

/// Number and total size of entries, by DynamoDB's rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Count {
    /// Number of entries.
    pub(crate) items: u64,
    /// Total size in bytes.
    pub(crate) bytes: u64,
}

/// The counts of a table, and of its indexes by id.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// Count of the items.
    pub(crate) table: Count,
    /// Counts of the entries of each index.
    pub(crate) indexes: BTreeMap<u32, Count>,
}

impl Counts {
    /// Encodes the counts.
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

    /// Decodes counts.
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

/// A job on a table, which runs in steps between commits and continues after a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobRecord {
    /// Its id. Ids ascend in the order in which jobs are added.
    pub(crate) id: u32,
    /// The table.
    pub(crate) table: u32,
    /// What the job does.
    pub(crate) kind: JobKind,
    /// The last key that was processed; empty at the beginning.
    pub(crate) cursor: Vec<u8>,
}

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobKind {
    /// Creates the entries of an index from the items.
    FillIndex(u32),
    /// Removes the entries of an index.
    RemoveIndex(u32),
    /// Creates expiry entries from the items.
    FillExpiry(u32),
    /// Removes the expiry entries of a generation.
    RemoveExpiry(u32),
    /// Removes all data of a deleted table.
    RemoveTable,
}

impl Record for JobRecord {
    fn fields(&self) -> Item {
        let (kind, target) = match self.kind {
            JobKind::FillIndex(id) => ("fill_index", id),
            JobKind::RemoveIndex(id) => ("remove_index", id),
            JobKind::FillExpiry(id) => ("fill_expiry", id),
            JobKind::RemoveExpiry(id) => ("remove_expiry", id),
            JobKind::RemoveTable => ("remove_table", self.table),
        };
        Item::new()
            .with("id", self.id)
            .with("table", self.table)
            .with("work", kind)
            .with("target", target)
            .with("cursor", &*self.cursor)
    }

    fn from_fields(fields: &Item) -> Option<Self> {
        let target = get(fields, "target")?;
        Some(Self {
            id: get(fields, "id")?,
            table: get(fields, "table")?,
            kind: match fields.get("work")?.as_s()? {
                "fill_index" => JobKind::FillIndex(target),
                "remove_index" => JobKind::RemoveIndex(target),
                "fill_expiry" => JobKind::FillExpiry(target),
                "remove_expiry" => JobKind::RemoveExpiry(target),
                "remove_table" => JobKind::RemoveTable,
                _ => return None,
            },
            cursor: get(fields, "cursor")?,
        })
    }
}

/// A change stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StreamRecord {
    /// Its id, which is part of the keys of its records.
    pub(crate) id: u32,
    /// The id of the table.
    pub(crate) table: u32,
    /// The name of the table.
    pub(crate) table_name: String,
    /// The key of the table.
    pub(crate) key: KeySchema,
    /// The images in its records.
    pub(crate) view: StreamView,
    /// When it was enabled. Determines the label, and is unique among streams of tables with the same name.
    pub(crate) created: Timestamp,
    /// When it was disabled.
    pub(crate) disabled: Option<Timestamp>,
}

/// A shard of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardRecord {
    /// The first sequence number that it can contain.
    pub(crate) start: u64,
    /// When it was opened.
    pub(crate) created: Timestamp,
    /// The last sequence number that it can contain, once it is closed.
    pub(crate) end: Option<u64>,
    /// The `start` of its parent shard.
    pub(crate) parent: Option<u64>,
    /// When its parent shard was opened.
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

/// Implements encoding and decoding of records; the text describes them in errors.
macro_rules! encoded {
    ($($record:ident: $what:literal;)+) => {$(
        impl $record {
            /// Encodes the record.
            pub(crate) fn encode(&self) -> Vec<u8> {
                item::encode(&self.fields())
            }

            /// Decodes a record.
            pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
                let fields = item::decode(bytes)?;
                Self::from_fields(&fields).ok_or_else(|| damaged($what))
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

/// Code of the operation that a token belongs to: a transaction.
const TRANSACT_TOKEN: u8 = 1;

/// The key of a token: the time slot in which it was used, the operation, and the token itself. Old tokens are at the
/// front of the space, so that they can be removed without a search.
pub(crate) fn token_key(slot: u32, token: &str) -> Vec<u8> {
    [&slot.to_be_bytes()[..], &[TRANSACT_TOKEN], token.as_bytes()].concat()
}

/// Prefix of the keys of all tokens in a slot.
pub(crate) fn token_slot_key(slot: u32) -> Vec<u8> {
    slot.to_be_bytes().to_vec()
}

/// Decodes the slot of a token's key, and returns the rest of the key.
///
/// # Errors
///
/// If it is not the key of a token.
pub(crate) fn token_slot(key: &[u8]) -> Result<(u32, &[u8])> {
    let (slot, token) = key
        .split_first_chunk()
        .ok_or_else(|| damaged("token key"))?;
    Ok((u32::from_be_bytes(*slot), token))
}

/// The recorded response to a request with a token, for repeating it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TokenRecord {
    /// When the token expires.
    pub(crate) expires: Timestamp,
    /// Fingerprint of the request, to detect reuse of the token for another one.
    pub(crate) fingerprint: u128,
    /// Size in bytes of each action's item, from which the capacity of a repeated request is computed.
    pub(crate) sizes: Vec<usize>,
    /// The attributes that a single write returned.
    pub(crate) returned: Option<Item>,
}

impl TokenRecord {
    /// Encodes the record.
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

    /// Decodes a record.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes, "token record");
        let expires = Timestamp::from_millis(reader.varint()?);
        let fingerprint = u128::from_le_bytes(reader.array()?);
        let mut sizes = Vec::new();
        for _ in 0..reader.count()? {
            sizes.push(usize::try_from(reader.varint()?).map_err(|_| reader.damaged())?);
        }
        let returned = if reader.remaining() == 0 {
            None
        } else {
            Some(item::decode(reader.prefixed()?)?)
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

/// Decodes only the expiry time of a token record.
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
    fn records_round_trip() {
        let record = table();
        assert_eq!(TableRecord::decode(&record.encode()).unwrap(), record);
        let instance = Instance {
            number: u64::MAX,
            created: Timestamp::from_millis(1),
            next_id: 3,
        };
        assert_eq!(Instance::decode(&instance.encode()).unwrap(), instance);
        for kind in [
            JobKind::FillIndex(1),
            JobKind::RemoveIndex(2),
            JobKind::FillExpiry(3),
            JobKind::RemoveExpiry(4),
        ] {
            let job = JobRecord {
                id: 1,
                table: 2,
                kind,
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
    fn record_encoding_is_stable() {
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
        let job = |kind| JobRecord {
            id: 1,
            table: 2,
            kind,
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
            job(JobKind::FillIndex(7)).encode(),
            job(JobKind::RemoveTable).encode(),
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
    fn counts_and_tokens_round_trip() {
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
    fn record_with_a_missing_field_is_damaged() {
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
