//! The definition of a table as JSON, in the fields of DynamoDB's CreateTable.
//!
//! Expiry, which CreateTable has no field for, is written as `TimeToLiveSpecification`. Fields that are
//! not known are skipped, and the two that DescribeTable spells otherwise are read in both spellings, so
//! that the output of `aws dynamodb describe-table` on one line is a definition, too.

use std::collections::BTreeMap;
use std::fmt;

use floe_store::op::{CreateIndex, CreateTable, KeyRole, KeySchemaElement};
use floe_store::table::{
    Billing, Encryption, IndexKind, KeyKind, OnDemandThroughput, Projection, Scaling, StreamView,
    TableClass, Throughput,
};
use floe_store::{Name, TableDef};
use serde_json::{Map, Value as Json, json};

/// Why a piece of JSON is not what it should be, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The way from the whole to the piece, as in `KeySchema[2]`; empty for the whole.
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

    /// The same fault, seen from the map around it.
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

/// The fault of a piece of another kind than the one that is wanted.
fn wrong(wanted: &str, json: &Json) -> Fault {
    let found = match json {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    };
    Fault::new(format!("expected {wanted}, found {found}"))
}

/// The JSON of a definition.
pub(super) fn write(table: &TableDef) -> Json {
    let table = CreateTable::from(table.clone());
    let attribute = |(name, kind): &(Name, KeyKind)| json!({"AttributeName": name.as_str(), "AttributeType": kind.as_str()});
    let tag = |(key, value): (&String, &String)| json!({"Key": key, "Value": value});
    let mut fields = json!({
        "TableName": table.table_name,
        "AttributeDefinitions": list(&table.attribute_definitions, attribute),
        "KeySchema": list(&table.key_schema, write_element),
        "BillingMode": "PAY_PER_REQUEST",
        "DeletionProtectionEnabled": table.deletion_protection,
    });
    let mut set = |name: &str, value: Json| {
        if let Some(fields) = fields.as_object_mut() {
            fields.insert(name.to_owned(), value);
        }
    };
    for (name, kind) in [
        ("GlobalSecondaryIndexes", IndexKind::Global),
        ("LocalSecondaryIndexes", IndexKind::Local),
    ] {
        let indexes = table.indexes.iter().filter(|index| index.kind == kind);
        let indexes: Vec<Json> = indexes.map(write_index).collect();
        if !indexes.is_empty() {
            set(name, Json::Array(indexes));
        }
    }
    if let Billing::Provisioned(throughput) = table.billing {
        set("BillingMode", json!("PROVISIONED"));
        set("ProvisionedThroughput", write_throughput(throughput));
    }
    if let Some(view) = table.stream {
        let stream = json!({"StreamEnabled": true, "StreamViewType": view.as_str()});
        set("StreamSpecification", stream);
    }
    if let Some(attribute) = &table.ttl_attribute {
        let expiry = json!({"Enabled": true, "AttributeName": attribute.as_str()});
        set("TimeToLiveSpecification", expiry);
    }
    if let Some(class) = table.class {
        set("TableClass", json!(class.as_str()));
    }
    write_scaling(&table.scaling, &mut set);
    if let Some(encryption) = &table.encryption {
        let key = &encryption.key;
        set(
            "SSESpecification",
            json!({"Enabled": true, "SSEType": "KMS", "KMSMasterKeyId": key}),
        );
    }
    if !table.tags.is_empty() {
        set("Tags", table.tags.iter().map(tag).collect());
    }
    fields
}

fn write_index(index: &CreateIndex) -> Json {
    let mut fields = Map::new();
    fields.insert("IndexName".to_owned(), json!(index.name));
    fields.insert(
        "KeySchema".to_owned(),
        list(&index.key_schema, write_element),
    );
    let projection = match &index.projection {
        Projection::All => json!({"ProjectionType": "ALL"}),
        Projection::KeysOnly => json!({"ProjectionType": "KEYS_ONLY"}),
        Projection::Include(names) => {
            let names = list(names, |name| json!(name.as_str()));
            json!({"ProjectionType": "INCLUDE", "NonKeyAttributes": names})
        }
    };
    fields.insert("Projection".to_owned(), projection);
    if let Some(throughput) = index.throughput {
        fields.insert(
            "ProvisionedThroughput".to_owned(),
            write_throughput(throughput),
        );
    }
    write_scaling(&index.scaling, &mut |name, value| {
        fields.insert(name.to_owned(), value);
    });
    Json::Object(fields)
}

fn write_scaling(scaling: &Scaling, set: &mut impl FnMut(&str, Json)) {
    let OnDemandThroughput {
        read_max,
        write_max,
    } = scaling.on_demand;
    if scaling.on_demand != OnDemandThroughput::default() {
        let limits = json!({"MaxReadRequestUnits": read_max, "MaxWriteRequestUnits": write_max});
        set("OnDemandThroughput", limits);
    }
    if let Some(Throughput { read, write }) = scaling.warm {
        let warm = json!({"ReadUnitsPerSecond": read, "WriteUnitsPerSecond": write});
        set("WarmThroughput", warm);
    }
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

/// The definition of this JSON, not yet checked as CreateTable checks it.
pub(super) fn read(text: &str) -> Result<CreateTable, Fault> {
    let json = serde_json::from_str(text).map_err(|e| Fault::new(e.to_string()))?;
    let fields = Fields::of(&json)?;
    let on_demand = match fields.either("BillingMode", "BillingModeSummary")? {
        None | Some("PROVISIONED") => false,
        Some("PAY_PER_REQUEST") => true,
        Some(_) => return Err(unknown("BillingMode")),
    };
    let throughput = fields.object("ProvisionedThroughput", read_throughput)?;
    let billing = match throughput {
        Some(throughput) if !on_demand => Billing::Provisioned(throughput),
        _ if on_demand => Billing::OnDemand,
        _ => return Err(missing("ProvisionedThroughput")),
    };
    let global = fields.list("GlobalSecondaryIndexes", |f| {
        read_index(f, IndexKind::Global, on_demand)
    })?;
    let local = fields.list("LocalSecondaryIndexes", |f| {
        read_index(f, IndexKind::Local, on_demand)
    })?;
    let tags = fields.list("Tags", |f| {
        Ok((f.text("Key")?.to_owned(), f.text("Value")?.to_owned()))
    })?;
    Ok(CreateTable {
        table_name: fields.text("TableName")?.to_owned(),
        attribute_definitions: fields.list("AttributeDefinitions", |f| {
            Ok((
                Name::from(f.text("AttributeName")?),
                f.kind("AttributeType")?,
            ))
        })?,
        key_schema: fields.list("KeySchema", read_element)?,
        indexes: local.into_iter().chain(global).collect(),
        billing,
        stream: fields.object("StreamSpecification", read_stream)?.flatten(),
        ttl_attribute: fields
            .object("TimeToLiveSpecification", read_expiry)?
            .flatten(),
        tags: tags.into_iter().collect::<BTreeMap<_, _>>(),
        deletion_protection: fields.flag("DeletionProtectionEnabled")?,
        class: match fields.either("TableClass", "TableClassSummary")? {
            None => None,
            Some("STANDARD") => Some(TableClass::Standard),
            Some("STANDARD_INFREQUENT_ACCESS") => Some(TableClass::StandardInfrequentAccess),
            Some(_) => return Err(unknown("TableClass")),
        },
        scaling: read_scaling(fields, billing)?,
        encryption: read_encryption(fields)?,
    })
}

/// DescribeTable tells warm throughput also of a table that has what every table has.
fn read_scaling(fields: Fields<'_>, billing: Billing) -> Result<Scaling, Fault> {
    let on_demand = fields.object("OnDemandThroughput", |f| {
        Ok(OnDemandThroughput {
            read_max: f.optional_number("MaxReadRequestUnits")?,
            write_max: f.optional_number("MaxWriteRequestUnits")?,
        })
    })?;
    let base = Scaling::default().warm_throughput(billing);
    let warm = fields.object("WarmThroughput", |f| {
        Ok(Throughput {
            read: f
                .optional_number("ReadUnitsPerSecond")?
                .unwrap_or(base.read),
            write: f
                .optional_number("WriteUnitsPerSecond")?
                .unwrap_or(base.write),
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
        let key = f.optional_text("KMSMasterKeyId")?.map(str::to_owned);
        Ok(f.flag("Enabled")?.then_some(Encryption { key }))
    })?;
    let described = fields.object("SSEDescription", |f| {
        let key = f.optional_text("KMSMasterKeyArn")?.map(str::to_owned);
        Ok(f.get("SSEType").map(|_| Encryption { key }))
    })?;
    Ok(specified.or(described).flatten())
}

fn read_index(fields: Fields<'_>, kind: IndexKind, on_demand: bool) -> Result<CreateIndex, Fault> {
    let throughput = fields.object("ProvisionedThroughput", read_throughput)?;
    let projection = fields.object("Projection", |f| match f.text("ProjectionType")? {
        "ALL" => Ok(Projection::All),
        "KEYS_ONLY" => Ok(Projection::KeysOnly),
        "INCLUDE" => f.names("NonKeyAttributes").map(Projection::Include),
        _ => Err(unknown("ProjectionType")),
    })?;
    Ok(CreateIndex {
        name: fields.text("IndexName")?.to_owned(),
        kind,
        key_schema: fields.list("KeySchema", read_element)?,
        projection: projection.ok_or_else(|| missing("Projection"))?,
        scaling: read_scaling(
            fields,
            match throughput {
                Some(throughput) if !on_demand => Billing::Provisioned(throughput),
                _ => Billing::OnDemand,
            },
        )?,
        // DescribeTable tells zeros for what is paid by the request.
        throughput: throughput.filter(|_| !on_demand),
    })
}

fn read_element(fields: Fields<'_>) -> Result<KeySchemaElement, Fault> {
    Ok(KeySchemaElement {
        name: Name::from(fields.text("AttributeName")?),
        role: KeyRole::from_name(fields.text("KeyType")?).ok_or_else(|| unknown("KeyType"))?,
    })
}

fn read_throughput(fields: Fields<'_>) -> Result<Throughput, Fault> {
    Ok(Throughput {
        read: fields.number("ReadCapacityUnits")?,
        write: fields.number("WriteCapacityUnits")?,
    })
}

fn read_stream(fields: Fields<'_>) -> Result<Option<StreamView>, Fault> {
    if !fields.flag("StreamEnabled")? {
        return Ok(None);
    }
    let view = StreamView::from_name(fields.text("StreamViewType")?);
    view.map(Some).ok_or_else(|| unknown("StreamViewType"))
}

fn read_expiry(fields: Fields<'_>) -> Result<Option<Name>, Fault> {
    let enabled = fields.flag("Enabled")?;
    let attribute = fields.text("AttributeName").map(Name::from);
    if enabled {
        attribute.map(Some)
    } else {
        Ok(None)
    }
}

fn missing(name: &str) -> Fault {
    Fault::new("a field is missing").under(name)
}

fn unknown(name: &str) -> Fault {
    Fault::new("there is no such value").under(name)
}

/// The fields of an object. Faults name the field.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a Map<String, Json>);

impl<'a> Fields<'a> {
    fn of(json: &'a Json) -> Result<Self, Fault> {
        json.as_object()
            .map(Self)
            .ok_or_else(|| wrong("an object", json))
    }

    /// The field; one that is null counts as absent.
    fn get(self, name: &str) -> Option<&'a Json> {
        self.0.get(name).filter(|json| !json.is_null())
    }

    fn text(self, name: &str) -> Result<&'a str, Fault> {
        let json = self.get(name).ok_or_else(|| missing(name))?;
        json.as_str()
            .ok_or_else(|| wrong("a text", json).under(name))
    }

    /// A text that CreateTable has in a field, and DescribeTable in a field of that name within another.
    fn either(self, name: &str, summary: &str) -> Result<Option<&'a str>, Fault> {
        match (self.get(name), self.get(summary)) {
            (Some(_), _) => self.text(name).map(Some),
            (None, Some(json)) => {
                let read = Fields::of(json).and_then(|fields| fields.text(name));
                read.map(Some).map_err(|fault| fault.under(summary))
            }
            (None, None) => Ok(None),
        }
    }

    fn optional_text(self, name: &str) -> Result<Option<&'a str>, Fault> {
        self.get(name).map(|_| self.text(name)).transpose()
    }

    fn number(self, name: &str) -> Result<u64, Fault> {
        let json = self.get(name).ok_or_else(|| missing(name))?;
        json.as_u64()
            .ok_or_else(|| wrong("a whole number", json).under(name))
    }

    fn optional_number(self, name: &str) -> Result<Option<u64>, Fault> {
        self.get(name).map(|_| self.number(name)).transpose()
    }

    /// True or false; absent is false.
    fn flag(self, name: &str) -> Result<bool, Fault> {
        match self.get(name) {
            None => Ok(false),
            Some(Json::Bool(flag)) => Ok(*flag),
            Some(json) => Err(wrong("true or false", json).under(name)),
        }
    }

    fn kind(self, name: &str) -> Result<KeyKind, Fault> {
        KeyKind::from_name(self.text(name)?).ok_or_else(|| unknown(name))
    }

    fn object<T>(
        self,
        name: &str,
        read: impl FnOnce(Self) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        let Some(json) = self.get(name) else {
            return Ok(None);
        };
        let value = Self::of(json).and_then(read);
        value.map(Some).map_err(|fault| fault.under(name))
    }

    /// The elements of a list of objects; absent is empty.
    fn list<T>(self, name: &str, read: impl Fn(Self) -> Result<T, Fault>) -> Result<Vec<T>, Fault> {
        let read = |json| Self::of(json).and_then(&read);
        self.elements(name)?
            .iter()
            .enumerate()
            .map(|(n, json)| read(json).map_err(|fault| fault.under(&format!("{name}[{n}]"))))
            .collect()
    }

    fn names(self, name: &str) -> Result<Vec<Name>, Fault> {
        let text = |json: &Json| {
            json.as_str()
                .map(Name::from)
                .ok_or_else(|| wrong("a text", json))
        };
        let names: Result<_, _> = self.elements(name)?.iter().map(text).collect();
        names.map_err(|fault: Fault| fault.under(name))
    }

    fn elements(self, name: &str) -> Result<&'a [Json], Fault> {
        match self.get(name) {
            None => Ok(&[]),
            Some(Json::Array(elements)) => Ok(elements),
            Some(json) => Err(wrong("a list", json).under(name)),
        }
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
    fn definitions_come_back() {
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
    fn provisioned_throughput_comes_back() {
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
    fn the_output_of_describe_table_is_a_definition() {
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
    fn a_fault_says_what_is_wrong_and_where() {
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
                "expected a text, found a number at=TableName",
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
            (
                "BillingMode",
                json!("FREE"),
                "there is no such value at=BillingMode",
            ),
            (
                "BillingMode",
                json!("PROVISIONED"),
                "a field is missing at=ProvisionedThroughput",
            ),
            (
                "StreamSpecification",
                json!({"StreamEnabled": true, "StreamViewType": "ALL"}),
                "there is no such value at=StreamSpecification.StreamViewType",
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
