//! Table definitions as [fields](super::fields) of records.

use std::collections::BTreeMap;

use floe_store::table::{
    Billing, Encryption, IndexDef, IndexKind, KeyAttribute, KeySchema, OnDemandThroughput,
    Projection, Scaling, TableClass, TableHistory, Throughput,
};
use floe_store::{Item, Name, TableDef, Value};

use super::fields::{FieldValue, Record, get, put, record};

record! {
    KeyAttribute { name: "name", kind: "kind" }
    KeySchema { partition: "partition", sort: "sort" }
    Throughput { read: "read", write: "write" }
    Encryption { key: "key" }
    TableHistory {
        on_demand: "on_demand",
        increase: "increase",
        decrease: "decrease",
        decreases: "decreases",
        class: "class",
    }
}

impl Record for TableDef {
    fn fields(&self) -> Item {
        let tags: Item = self.tags.iter().map(|(k, v)| (&**k, &**v)).collect();
        let infrequent = self.class == Some(TableClass::StandardInfrequentAccess);
        let mut fields = Item::new().with("tags", tags);
        put(&mut fields, "name", &self.name);
        put(&mut fields, "key", &self.key);
        put(&mut fields, "indexes", &self.indexes);
        put(&mut fields, "throughput", &self.billing);
        put(&mut fields, "stream", &self.stream);
        put(&mut fields, "ttl", &self.ttl_attribute);
        put(
            &mut fields,
            "deletion_protection",
            &self.deletion_protection,
        );
        put(&mut fields, "infrequent", &infrequent);
        put(&mut fields, "class_chosen", &self.class.map(|_| true));
        put(&mut fields, "scaling", &self.scaling);
        put(&mut fields, "encryption", &self.encryption);
        fields
    }

    fn from_fields(fields: &Item) -> Option<Self> {
        let mut tags = BTreeMap::new();
        for (key, value) in fields.get("tags")?.as_m()?.iter() {
            tags.insert(key.to_string(), value.as_s()?.to_owned());
        }
        Some(Self {
            name: get(fields, "name")?,
            key: get(fields, "key")?,
            indexes: get(fields, "indexes")?,
            billing: get(fields, "throughput")?,
            stream: get(fields, "stream")?,
            ttl_attribute: get(fields, "ttl")?,
            tags,
            deletion_protection: get(fields, "deletion_protection")?,
            // Older records do not store which class was chosen; the infrequent-access class is always stored.
            class: match (get(fields, "infrequent")?, get(fields, "class_chosen")?) {
                (true, _) => Some(TableClass::StandardInfrequentAccess),
                (false, Some(true)) => Some(TableClass::Standard),
                (false, _) => None,
            },
            scaling: get(fields, "scaling")?,
            encryption: get(fields, "encryption")?,
        })
    }
}

impl Record for IndexDef {
    fn fields(&self) -> Item {
        let include = match &self.projection {
            Projection::All => None,
            Projection::KeysOnly => Some(Vec::new()),
            Projection::Include(names) => Some(names.clone()),
        };
        let mut fields = Item::new();
        put(&mut fields, "name", &self.name);
        put(&mut fields, "local", &(self.kind == IndexKind::Local));
        put(&mut fields, "key", &self.key);
        put(&mut fields, "include", &include);
        put(&mut fields, "throughput", &self.throughput);
        put(&mut fields, "scaling", &self.scaling);
        fields
    }

    fn from_fields(fields: &Item) -> Option<Self> {
        Some(Self {
            name: get(fields, "name")?,
            kind: if get(fields, "local")? {
                IndexKind::Local
            } else {
                IndexKind::Global
            },
            key: get(fields, "key")?,
            projection: match get::<Option<Vec<Name>>>(fields, "include")? {
                None => Projection::All,
                Some(names) if names.is_empty() => Projection::KeysOnly,
                Some(names) => Projection::Include(names),
            },
            throughput: get(fields, "throughput")?,
            scaling: get(fields, "scaling")?,
        })
    }
}

/// Provisioned throughput; omitted for on-demand billing.
impl FieldValue for Billing {
    fn store(&self) -> Option<Value> {
        match self {
            Self::OnDemand => None,
            Self::Provisioned(throughput) => throughput.store(),
        }
    }

    fn load(value: Option<&Value>) -> Option<Self> {
        let throughput = Option::load(value)?;
        Some(throughput.map_or(Self::OnDemand, Self::Provisioned))
    }
}

/// Omitted if it is the default.
impl FieldValue for Scaling {
    fn store(&self) -> Option<Value> {
        if *self == Self::default() {
            return None;
        }
        let mut fields = Item::new();
        put(&mut fields, "read_max", &self.on_demand.read_max);
        put(&mut fields, "write_max", &self.on_demand.write_max);
        put(&mut fields, "warm", &self.warm);
        Some(Value::M(fields))
    }

    fn load(value: Option<&Value>) -> Option<Self> {
        let Some(value) = value else {
            return Some(Self::default());
        };
        let fields = value.as_m()?;
        Some(Self {
            on_demand: OnDemandThroughput {
                read_max: get(fields, "read_max")?,
                write_max: get(fields, "write_max")?,
            },
            warm: get(fields, "warm")?,
        })
    }
}
