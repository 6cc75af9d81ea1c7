//! The definition of a table as JSON, in the fields of DynamoDB's CreateTable.
//!
//! Expiry, for which CreateTable has no field, is written as `TimeToLiveSpecification`. Unknown fields are ignored, and
//! the two fields that DescribeTable names differently are accepted in both forms, so that the output of `aws dynamodb
//! describe-table` on one line is also a valid definition.

use std::fmt;

use floe_store::op::{CreateIndex, CreateTable, KeyRole, KeySchemaElement};
use floe_store::table::{
    Billing, Encryption, IndexKind, KeyKind, OnDemandThroughput, Projection, Scaling, StreamView,
    TableClass, Throughput,
};
use floe_store::{Name, TableDef};
use serde_json::{Map, Value as Json, json};

/// Why a part of the JSON is invalid, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Path to the part, as in `KeySchema[2]`; empty for the whole.
    path: String,
    what: String,
}

impl Fault {
    fn new(what: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            what: what.into(),
        }
    }

    /// Prepends a field name or index to the path.
    pub(super) fn under(mut self, name: &str) -> Self {
        let dot = match self.path.chars().next() {
            None | Some('[') => "",
            Some(_) => ".",
        };
        self.path = format!("{name}{dot}{}", self.path);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if !self.path.is_empty() {
            write!(f, " at={}", self.path)?;
        }
        Ok(())
    }
}

/// The fault of a value with the wrong JSON type.
fn type_mismatch(wanted: &str, json: &Json) -> Fault {
    let found = match json {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    };
    Fault::new(format!("expected {wanted}, found {found}"))
}

/// Writes a definition as JSON.
pub(super) fn write(table: &TableDef) -> Json {
    let table = CreateTable::from(table.clone());
    let (mode, throughput) = match table.billing {
        Billing::OnDemand => ("PAY_PER_REQUEST", None),
        Billing::Provisioned(throughput) => ("PROVISIONED", Some(throughput)),
    };
    let attribute = |(name, kind): &(Name, KeyKind)| json!({"AttributeName": name.as_str(), "AttributeType": kind.as_str()});
    let indexes = |kind| -> Json {
        let indexes = table.indexes.iter().filter(|index| index.kind == kind);
        indexes.map(write_index).collect()
    };
    let stream = |view: StreamView| json!({"StreamEnabled": true, "StreamViewType": view.as_str()});
    let expiry = |name: &Name| json!({"Enabled": true, "AttributeName": name.as_str()});
    let encryption = |encryption: &Encryption| json!({"Enabled": true, "SSEType": "KMS", "KMSMasterKeyId": encryption.key});
    let tag = |(key, value): (&String, &String)| json!({"Key": key, "Value": value});
    present(json!({
        "TableName": table.table_name,
        "AttributeDefinitions": list(&table.attribute_definitions, attribute),
        "KeySchema": list(&table.key_schema, write_element),
        "BillingMode": mode,
        "ProvisionedThroughput": throughput.map(write_throughput),
        "GlobalSecondaryIndexes": indexes(IndexKind::Global),
        "LocalSecondaryIndexes": indexes(IndexKind::Local),
        "StreamSpecification": table.stream.map(stream),
        "TimeToLiveSpecification": table.ttl_attribute.as_ref().map(expiry),
        "TableClass": table.class.map(TableClass::as_str),
        "OnDemandThroughput": write_on_demand(table.scaling.on_demand),
        "WarmThroughput": table.scaling.warm.map(write_warm),
        "SSESpecification": table.encryption.as_ref().map(encryption),
        "DeletionProtectionEnabled": table.deletion_protection,
        "Tags": table.tags.iter().map(tag).collect::<Json>(),
    }))
}

fn write_index(index: &CreateIndex) -> Json {
    let projection = match &index.projection {
        Projection::All => json!({"ProjectionType": "ALL"}),
        Projection::KeysOnly => json!({"ProjectionType": "KEYS_ONLY"}),
        Projection::Include(names) => {
            let names = list(names, |name| json!(name.as_str()));
            json!({"ProjectionType": "INCLUDE", "NonKeyAttributes": names})
        }
    };
    present(json!({
        "IndexName": index.name,
        "KeySchema": list(&index.key_schema, write_element),
        "Projection": projection,
        "ProvisionedThroughput": index.throughput.map(write_throughput),
        "OnDemandThroughput": write_on_demand(index.scaling.on_demand),
        "WarmThroughput": index.scaling.warm.map(write_warm),
    }))
}

/// Removes fields that are null or empty lists.
fn present(mut json: Json) -> Json {
    if let Some(fields) = json.as_object_mut() {
        fields.retain(|_, field| !field.is_null() && *field != json!([]));
    }
    json
}

fn write_on_demand(limits: OnDemandThroughput) -> Option<Json> {
    (limits != OnDemandThroughput::default()).then(
        || json!({"MaxReadRequestUnits": limits.read_max, "MaxWriteRequestUnits": limits.write_max}),
    )
}

fn write_warm(warm: Throughput) -> Json {
    json!({"ReadUnitsPerSecond": warm.read, "WriteUnitsPerSecond": warm.write})
}

fn write_element(element: &KeySchemaElement) -> Json {
    json!({"AttributeName": element.name.as_str(), "KeyType": element.role.as_str()})
}

fn write_throughput(throughput: Throughput) -> Json {
    json!({"ReadCapacityUnits": throughput.read, "WriteCapacityUnits": throughput.write})
}

fn list<T>(elements: &[T], write: impl FnMut(&T) -> Json) -> Json {
    elements.iter().map(write).collect()
}

/// Reads a definition from JSON. It is not yet validated as by CreateTable.
pub(super) fn read(text: &str) -> Result<CreateTable, Fault> {
    let json = serde_json::from_str(text).map_err(|e| Fault::new(e.to_string()))?;
    let fields = Fields::of(&json)?;
    let mode: Option<String> = fields.either("BillingMode", "BillingModeSummary")?;
    let on_demand = match mode.as_deref() {
        None | Some("PROVISIONED") => false,
        Some("PAY_PER_REQUEST") => true,
        Some(_) => return Err(unknown_value().under("BillingMode")),
    };
    let throughput = fields.object("ProvisionedThroughput", read_throughput)?;
    let billing = match throughput {
        _ if on_demand => Billing::OnDemand,
        Some(throughput) => Billing::Provisioned(throughput),
        None => return Err(missing("ProvisionedThroughput")),
    };
    let global = fields.list("GlobalSecondaryIndexes", |f| {
        read_index(f, IndexKind::Global, on_demand)
    })?;
    let local = fields.list("LocalSecondaryIndexes", |f| {
        read_index(f, IndexKind::Local, on_demand)
    })?;
    let tags = fields.list("Tags", |f| Ok((f.get("Key")?, f.get("Value")?)))?;
    Ok(CreateTable {
        table_name: fields.get("TableName")?,
        attribute_definitions: fields.list("AttributeDefinitions", |f| {
            Ok((f.get("AttributeName")?, f.get("AttributeType")?))
        })?,
        key_schema: fields.list("KeySchema", read_element)?,
        indexes: local.into_iter().chain(global).collect(),
        billing,
        stream: fields.enabled("StreamSpecification", "StreamEnabled", "StreamViewType")?,
        ttl_attribute: fields.enabled("TimeToLiveSpecification", "Enabled", "AttributeName")?,
        tags: tags.into_iter().collect(),
        deletion_protection: fields.flag("DeletionProtectionEnabled")?,
        class: fields.either("TableClass", "TableClassSummary")?,
        scaling: read_scaling(fields, billing)?,
        encryption: read_encryption(fields)?,
    })
}

/// DescribeTable also returns the warm throughput that every table has by default; that is not a setting.
fn read_scaling(fields: Fields<'_>, billing: Billing) -> Result<Scaling, Fault> {
    let on_demand = fields.object("OnDemandThroughput", |f| {
        Ok(OnDemandThroughput {
            read_max: f.optional("MaxReadRequestUnits")?,
            write_max: f.optional("MaxWriteRequestUnits")?,
        })
    })?;
    let base = Scaling::default().warm_throughput(billing);
    let warm = fields.object("WarmThroughput", |f| {
        Ok(Throughput {
            read: f.optional("ReadUnitsPerSecond")?.unwrap_or(base.read),
            write: f.optional("WriteUnitsPerSecond")?.unwrap_or(base.write),
        })
    })?;
    Ok(Scaling {
        on_demand: on_demand.unwrap_or_default(),
        warm: warm.filter(|warm| *warm != base),
    })
}

/// The `SSESpecification` of CreateTable, or the `SSEDescription` of DescribeTable.
fn read_encryption(fields: Fields<'_>) -> Result<Option<Encryption>, Fault> {
    let specified = fields.object("SSESpecification", |f| {
        let key = f.optional("KMSMasterKeyId")?;
        Ok(f.flag("Enabled")?.then_some(Encryption { key }))
    })?;
    let described = fields.object("SSEDescription", |f| {
        let key = f.optional("KMSMasterKeyArn")?;
        Ok(f.find("SSEType").map(|_| Encryption { key }))
    })?;
    Ok(specified.or(described).flatten())
}

fn read_index(fields: Fields<'_>, kind: IndexKind, on_demand: bool) -> Result<CreateIndex, Fault> {
    // DescribeTable returns zeros for on-demand tables.
    let throughput = fields
        .object("ProvisionedThroughput", read_throughput)?
        .filter(|_| !on_demand);
    let billing = throughput.map_or(Billing::OnDemand, Billing::Provisioned);
    let projection = fields.object("Projection", |f| {
        match &*f.get::<String>("ProjectionType")? {
            "ALL" => Ok(Projection::All),
            "KEYS_ONLY" => Ok(Projection::KeysOnly),
            "INCLUDE" => {
                let names = f.optional("NonKeyAttributes")?;
                Ok(Projection::Include(names.unwrap_or_default()))
            }
            _ => Err(unknown_value().under("ProjectionType")),
        }
    })?;
    Ok(CreateIndex {
        name: fields.get("IndexName")?,
        kind,
        key_schema: fields.list("KeySchema", read_element)?,
        projection: projection.ok_or_else(|| missing("Projection"))?,
        scaling: read_scaling(fields, billing)?,
        throughput,
    })
}

fn read_element(fields: Fields<'_>) -> Result<KeySchemaElement, Fault> {
    Ok(KeySchemaElement {
        name: fields.get("AttributeName")?,
        role: fields.get("KeyType")?,
    })
}

fn read_throughput(fields: Fields<'_>) -> Result<Throughput, Fault> {
    Ok(Throughput {
        read: fields.get("ReadCapacityUnits")?,
        write: fields.get("WriteCapacityUnits")?,
    })
}

fn missing(name: &str) -> Fault {
    Fault::new("a field is missing").under(name)
}

fn unknown_value() -> Fault {
    Fault::new("unknown value")
}

/// A type that can be read from JSON.
trait FromJson: Sized {
    fn from_json(json: &Json) -> Result<Self, Fault>;
}

impl FromJson for String {
    fn from_json(json: &Json) -> Result<Self, Fault> {
        let text = json
            .as_str()
            .ok_or_else(|| type_mismatch("a string", json))?;
        Ok(text.to_owned())
    }
}

impl FromJson for Name {
    fn from_json(json: &Json) -> Result<Self, Fault> {
        String::from_json(json).map(Self::from)
    }
}

impl FromJson for u64 {
    fn from_json(json: &Json) -> Result<Self, Fault> {
        json.as_u64()
            .ok_or_else(|| type_mismatch("a whole number", json))
    }
}

impl FromJson for bool {
    fn from_json(json: &Json) -> Result<Self, Fault> {
        json.as_bool()
            .ok_or_else(|| type_mismatch("true or false", json))
    }
}

impl<T: FromJson> FromJson for Vec<T> {
    fn from_json(json: &Json) -> Result<Self, Fault> {
        elements(json, T::from_json)
    }
}

macro_rules! named_values {
    ($($word:ty),+) => {$(
        impl FromJson for $word {
            fn from_json(json: &Json) -> Result<Self, Fault> {
                Self::from_name(&String::from_json(json)?).ok_or_else(unknown_value)
            }
        }
    )+};
}

named_values!(KeyKind, KeyRole, StreamView, TableClass);

fn elements<'a, T>(
    json: &'a Json,
    read: impl Fn(&'a Json) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let elements = json
        .as_array()
        .ok_or_else(|| type_mismatch("a list", json))?;
    let elements = elements.iter().enumerate();
    elements
        .map(|(n, json)| read(json).map_err(|fault| fault.under(&format!("[{n}]"))))
        .collect()
}

/// The fields of an object. Faults name the field.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a Map<String, Json>);

impl<'a> Fields<'a> {
    fn of(json: &'a Json) -> Result<Self, Fault> {
        let fields = json.as_object().map(Self);
        fields.ok_or_else(|| type_mismatch("an object", json))
    }

    /// The field with this name; null counts as absent.
    fn find(self, name: &str) -> Option<&'a Json> {
        self.0.get(name).filter(|json| !json.is_null())
    }

    /// Reads a field with `read`, if it is present.
    fn read<T>(
        self,
        name: &str,
        read: impl FnOnce(&'a Json) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        let value = self.find(name).map(read).transpose();
        value.map_err(|fault| fault.under(name))
    }

    fn optional<T: FromJson>(self, name: &str) -> Result<Option<T>, Fault> {
        self.read(name, T::from_json)
    }

    fn get<T: FromJson>(self, name: &str) -> Result<T, Fault> {
        self.optional(name)?.ok_or_else(|| missing(name))
    }

    /// Reads a boolean; absent means false.
    fn flag(self, name: &str) -> Result<bool, Fault> {
        Ok(self.optional(name)?.unwrap_or(false))
    }

    fn object<T>(
        self,
        name: &str,
        read: impl FnOnce(Self) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        self.read(name, |json| Self::of(json).and_then(read))
    }

    /// Reads a list of objects; absent means empty.
    fn list<T>(self, name: &str, read: impl Fn(Self) -> Result<T, Fault>) -> Result<Vec<T>, Fault> {
        let element = |json| Self::of(json).and_then(&read);
        let elements = self.read(name, |json| elements(json, element))?;
        Ok(elements.unwrap_or_default())
    }

    /// Reads a field that DescribeTable nests in the field `summary`.
    fn either<T: FromJson>(self, name: &str, summary: &str) -> Result<Option<T>, Fault> {
        match self.optional(name)? {
            None => self.object(summary, |fields| fields.get(name)),
            found => Ok(found),
        }
    }

    /// Reads a field of an object, if the object's flag is set.
    fn enabled<T: FromJson>(self, name: &str, flag: &str, field: &str) -> Result<Option<T>, Fault> {
        let found = self.object(name, |fields| {
            let is_on = fields.flag(flag)?;
            is_on.then(|| fields.get(field)).transpose()
        })?;
        Ok(found.flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(table: &TableDef) {
        let text = write(table).to_string();
        let back = read(&text).unwrap();
        assert_eq!(back.definition().unwrap(), *table, "{text}");
    }

    #[test]
    fn definition_round_trips() {
        check(
            &TableDef::builder("Plain", "id", KeyKind::B)
                .build()
                .unwrap(),
        );
        let none: [(&str, KeyKind); 0] = [];
        check(
            &TableDef::builder("Full", "id", KeyKind::S)
                .sort_key("at", KeyKind::N)
                .local_index("local", "other", KeyKind::B, Projection::KeysOnly)
                .global_index("one", [("g", KeyKind::S)], none, Projection::All)
                .global_index(
                    "two",
                    [("g", KeyKind::S), ("h", KeyKind::N)],
                    [("at", KeyKind::N)],
                    Projection::Include(vec!["x".into(), "y".into()]),
                )
                .stream(StreamView::NewAndOldImages)
                .ttl("until")
                .tag("team", "a")
                .build()
                .unwrap(),
        );
    }

    #[test]
    fn provisioned_throughput_round_trips() {
        let mut table = TableDef::builder("Paid", "id", KeyKind::S)
            .global_index(
                "one",
                [("g", KeyKind::S)],
                [("s", KeyKind::S)],
                Projection::All,
            )
            .build()
            .unwrap();
        table.billing = Billing::Provisioned(Throughput { read: 1, write: 2 });
        table.indexes[0].throughput = Some(Throughput { read: 3, write: 4 });
        table.deletion_protection = true;
        table.class = Some(TableClass::StandardInfrequentAccess);
        table.scaling.warm = Some(Throughput { read: 9, write: 9 });
        table.encryption = Some(Encryption::default());
        check(&table);
    }

    #[test]
    fn describe_table_output_is_a_valid_definition() {
        let described = json!({
            "AttributeDefinitions": [
                {"AttributeName": "id", "AttributeType": "S"},
                {"AttributeName": "g", "AttributeType": "N"},
            ],
            "TableName": "Orders",
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "TableStatus": "ACTIVE",
            "CreationDateTime": "2026-01-01T00:00:00+00:00",
            "ProvisionedThroughput": {"NumberOfDecreasesToday": 0, "ReadCapacityUnits": 0, "WriteCapacityUnits": 0},
            "TableSizeBytes": 0,
            "ItemCount": 0,
            "TableArn": "arn:aws:dynamodb:us-east-1:000000000000:table/Orders",
            "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
            "GlobalSecondaryIndexes": [{
                "IndexName": "by_g",
                "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
                "IndexStatus": "ACTIVE",
                "ProvisionedThroughput": {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0},
            }],
            "TableClassSummary": {"TableClass": "STANDARD_INFREQUENT_ACCESS"},
            "DeletionProtectionEnabled": false,
        });
        let table = read(&described.to_string()).unwrap().definition().unwrap();
        assert_eq!(table.billing, Billing::OnDemand);
        assert_eq!(table.class, Some(TableClass::StandardInfrequentAccess));
        assert_eq!(table.indexes[0].throughput, None);
    }

    #[test]
    fn fault_states_reason_and_path() {
        let plain = write(
            &TableDef::builder("Plain", "id", KeyKind::S)
                .build()
                .unwrap(),
        );
        for (field, json, fault) in [
            ("TableName", json!(null), "a field is missing at=TableName"),
            (
                "TableName",
                json!(1),
                "expected a string, found a number at=TableName",
            ),
            (
                "KeySchema",
                json!({}),
                "expected a list, found an object at=KeySchema",
            ),
            (
                "KeySchema",
                json!([{}]),
                "a field is missing at=KeySchema[0].AttributeName",
            ),
            ("BillingMode", json!("FREE"), "unknown value at=BillingMode"),
            (
                "BillingMode",
                json!("PROVISIONED"),
                "a field is missing at=ProvisionedThroughput",
            ),
            (
                "StreamSpecification",
                json!({"StreamEnabled": true, "StreamViewType": "ALL"}),
                "unknown value at=StreamSpecification.StreamViewType",
            ),
            (
                "GlobalSecondaryIndexes",
                json!([{"IndexName": "a", "KeySchema": []}]),
                "a field is missing at=GlobalSecondaryIndexes[0].Projection",
            ),
        ] {
            let mut definition = plain.clone();
            definition[field] = json;
            assert_eq!(
                read(&definition.to_string()).unwrap_err().to_string(),
                fault
            );
        }
    }
}
