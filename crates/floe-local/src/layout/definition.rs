//! Table definitions as fields of records.
//!
//! A definition is stored as an [item](super::item) of named fields, so that fields can be added later
//! without a new format.

use std::borrow::Cow;
use std::collections::BTreeMap;

use floe_store::table::{
    Billing, Encryption, IndexDef, IndexKind, KeyAttribute, KeyKind, KeySchema, OnDemandThroughput,
    Projection, Scaling, StreamView, TableClass, Throughput,
};
use floe_store::{Item, Name, Result, TableDef, Timestamp, Value};

use super::change::{view_code, view_of_code};
use super::{damaged, item};

/// The named fields of a record. A field that is missing or of another type is damage.
#[derive(Clone)]
pub(super) struct Fields<'a> {
    item: Cow<'a, Item>,
    what: &'static str,
}

impl<'a> Fields<'a> {
    pub(super) fn decode(bytes: &[u8], what: &'static str) -> Result<Self> {
        let item = Cow::Owned(item::decode(bytes)?);
        Ok(Self { item, what })
    }

    pub(super) fn damaged(&self) -> floe_store::Error {
        damaged(self.what)
    }

    pub(super) fn get<'b, T: 'b>(
        &'b self,
        name: &str,
        read: impl FnOnce(&'b Value) -> Option<T>,
    ) -> Result<T> {
        let value = self.item.get(name).and_then(read);
        value.ok_or_else(|| self.damaged())
    }

    pub(super) fn text(&self, name: &str) -> Result<&str> {
        self.get(name, Value::as_s)
    }

    pub(super) fn number(&self, name: &str) -> Result<u64> {
        self.get(name, |value| value.as_n()?.to_u64())
    }

    pub(super) fn id(&self, name: &str) -> Result<u32> {
        u32::try_from(self.number(name)?).map_err(|_| self.damaged())
    }

    pub(super) fn time(&self, name: &str) -> Result<Timestamp> {
        self.number(name).map(Timestamp::from_millis)
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool> {
        self.get(name, |value| match value {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        })
    }

    pub(super) fn view(&self, name: &str) -> Result<StreamView> {
        let code = u8::try_from(self.number(name)?).ok();
        code.and_then(view_of_code).ok_or_else(|| self.damaged())
    }

    pub(super) fn map(&self, name: &str) -> Result<Fields<'_>> {
        let item = Cow::Borrowed(self.get(name, Value::as_m)?);
        Ok(Fields {
            item,
            what: self.what,
        })
    }

    pub(super) fn list<T>(
        &self,
        name: &str,
        read: impl Fn(&Fields<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let elements = self.get(name, Value::as_l)?.iter();
        let fields = elements.map(|element| {
            let item = element.as_m().ok_or_else(|| self.damaged())?;
            let item = Cow::Borrowed(item);
            read(&Fields {
                item,
                what: self.what,
            })
        });
        fields.collect()
    }

    pub(super) fn optional<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Self, &str) -> Result<T>,
    ) -> Result<Option<T>> {
        match self.item.contains(name) {
            true => read(self, name).map(Some),
            false => Ok(None),
        }
    }
}

pub(super) fn list<T>(elements: &[T], encode: impl FnMut(&T) -> Value) -> Value {
    Value::L(elements.iter().map(encode).collect())
}

pub(super) fn insert_some(fields: &mut Item, name: &'static str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        fields.insert(Name::new_static(name), value);
    }
}

pub(super) fn definition_fields(table: &TableDef) -> Item {
    let tags: Item = table.tags.iter().map(|(k, v)| (&**k, &**v)).collect();
    let mut fields = Item::new()
        .with("name", &*table.name)
        .with("key", key_fields(&table.key))
        .with(
            "indexes",
            list(&table.indexes, |i| Value::M(index_fields(i))),
        )
        .with("tags", tags)
        .with("deletion_protection", table.deletion_protection)
        .with(
            "infrequent",
            table.class == Some(TableClass::StandardInfrequentAccess),
        );
    if table.class.is_some() {
        fields.insert("class_chosen", true);
    }
    if table.scaling != Scaling::default() {
        fields.insert("scaling", scaling_fields(&table.scaling));
    }
    if let Some(encryption) = &table.encryption {
        let mut key = Item::new();
        insert_some(&mut key, "key", encryption.key.as_deref());
        fields.insert("encryption", key);
    }
    if let Billing::Provisioned(throughput) = table.billing {
        fields.insert("throughput", throughput_fields(throughput));
    }
    insert_some(
        &mut fields,
        "stream",
        table.stream.map(|view| u32::from(view_code(view))),
    );
    insert_some(&mut fields, "ttl", table.ttl_attribute.as_deref());
    fields
}

pub(super) fn read_definition(fields: &Fields<'_>) -> Result<TableDef> {
    let throughput = fields.optional("throughput", |f, name| read_throughput(&f.map(name)?))?;
    let mut tags = BTreeMap::new();
    for (key, value) in fields.map("tags")?.item.iter() {
        let value = value.as_s().ok_or_else(|| fields.damaged())?;
        tags.insert(key.to_string(), value.to_owned());
    }
    Ok(TableDef {
        name: fields.text("name")?.to_owned(),
        key: read_key(&fields.map("key")?)?,
        indexes: fields.list("indexes", read_index)?,
        billing: throughput.map_or(Billing::OnDemand, Billing::Provisioned),
        stream: fields.optional("stream", Fields::view)?,
        ttl_attribute: fields.optional("ttl", |f, name| f.text(name).map(Name::from))?,
        tags,
        deletion_protection: fields.flag("deletion_protection")?,
        class: read_class(fields)?,
        scaling: read_scaling(fields)?,
        encryption: fields.optional("encryption", |f, name| {
            let key = f
                .map(name)?
                .optional("key", |f, name| f.text(name).map(str::to_owned))?;
            Ok(Encryption { key })
        })?,
    })
}

/// Which classes were chosen was not stored at first; the infrequent one always is.
fn read_class(fields: &Fields<'_>) -> Result<Option<TableClass>> {
    let infrequent = fields.flag("infrequent")?;
    let chosen = fields.optional("class_chosen", Fields::flag)?;
    Ok(match (infrequent, chosen) {
        (true, _) => Some(TableClass::StandardInfrequentAccess),
        (false, Some(true)) => Some(TableClass::Standard),
        (false, _) => None,
    })
}

fn scaling_fields(scaling: &Scaling) -> Item {
    let mut fields = Item::new();
    insert_some(&mut fields, "read_max", scaling.on_demand.read_max);
    insert_some(&mut fields, "write_max", scaling.on_demand.write_max);
    insert_some(&mut fields, "warm", scaling.warm.map(throughput_fields));
    fields
}

fn read_scaling(fields: &Fields<'_>) -> Result<Scaling> {
    let scaling = fields.optional("scaling", |f, name| {
        let fields = f.map(name)?;
        Ok(Scaling {
            on_demand: OnDemandThroughput {
                read_max: fields.optional("read_max", Fields::number)?,
                write_max: fields.optional("write_max", Fields::number)?,
            },
            warm: fields.optional("warm", |f, name| read_throughput(&f.map(name)?))?,
        })
    })?;
    Ok(scaling.unwrap_or_default())
}

pub(super) fn index_fields(index: &IndexDef) -> Item {
    let mut fields = Item::new()
        .with("name", &*index.name)
        .with("local", index.kind == IndexKind::Local)
        .with("key", key_fields(&index.key));
    match &index.projection {
        Projection::All => {}
        Projection::KeysOnly => _ = fields.insert("include", Value::L(Vec::new())),
        Projection::Include(names) => {
            _ = fields.insert("include", list(names, |name| Value::from(name.as_str())));
        }
    }
    insert_some(
        &mut fields,
        "throughput",
        index.throughput.map(throughput_fields),
    );
    if index.scaling != Scaling::default() {
        fields.insert("scaling", scaling_fields(&index.scaling));
    }
    fields
}

pub(super) fn read_index(fields: &Fields<'_>) -> Result<IndexDef> {
    let include = fields.optional("include", |f, name| {
        let names = f.get(name, Value::as_l)?.iter();
        let text = |value: &Value| value.as_s().map(Name::from);
        let names: Option<Vec<Name>> = names.map(text).collect();
        names.ok_or_else(|| f.damaged())
    })?;
    let local = fields.flag("local")?;
    Ok(IndexDef {
        name: fields.text("name")?.to_owned(),
        kind: if local {
            IndexKind::Local
        } else {
            IndexKind::Global
        },
        key: read_key(&fields.map("key")?)?,
        projection: match include {
            None => Projection::All,
            Some(names) if names.is_empty() => Projection::KeysOnly,
            Some(names) => Projection::Include(names),
        },
        throughput: fields.optional("throughput", |f, name| read_throughput(&f.map(name)?))?,
        scaling: read_scaling(fields)?,
    })
}

pub(super) fn key_fields(key: &KeySchema) -> Item {
    let attribute = |attribute: &KeyAttribute| {
        let fields = Item::new().with("name", attribute.name.as_str());
        Value::M(fields.with("kind", attribute.kind.as_str()))
    };
    Item::new()
        .with("partition", list(&key.partition, attribute))
        .with("sort", list(&key.sort, attribute))
}

pub(super) fn read_key(fields: &Fields<'_>) -> Result<KeySchema> {
    let attribute = |fields: &Fields<'_>| {
        let kind = match fields.text("kind")? {
            "S" => KeyKind::S,
            "N" => KeyKind::N,
            "B" => KeyKind::B,
            _ => return Err(fields.damaged()),
        };
        Ok(KeyAttribute::new(fields.text("name")?, kind))
    };
    Ok(KeySchema {
        partition: fields.list("partition", attribute)?,
        sort: fields.list("sort", attribute)?,
    })
}

fn throughput_fields(throughput: Throughput) -> Item {
    Item::new()
        .with("read", throughput.read)
        .with("write", throughput.write)
}

fn read_throughput(fields: &Fields<'_>) -> Result<Throughput> {
    Ok(Throughput {
        read: fields.number("read")?,
        write: fields.number("write")?,
    })
}
