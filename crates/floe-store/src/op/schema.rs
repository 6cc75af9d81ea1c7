//! Rules for keys, indexes and throughput, shared by CreateTable and UpdateTable.

use std::collections::HashSet;
use std::hash::Hash;

use super::constraint::{Faults, invalid, length_at_least, length_at_most};
use crate::error::{Error, Result, ensure, ensure_none};
use crate::limits::{
    GLOBAL_INDEXES_MAX, INCLUDED_ATTRIBUTES_MAX, INCLUDED_ATTRIBUTES_TOTAL_MAX, INDEX_NAME_CHARS,
    INDEX_PARTITION_ATTRIBUTES_MAX, INDEX_SORT_ATTRIBUTES_MAX, KEY_ATTRIBUTE_NAME_BYTES_MAX,
    KEY_ATTRIBUTES_MAX, LOCAL_INDEXES_MAX, PROJECTED_NAME_BYTES_MAX, THROUGHPUT_UNITS,
};
use crate::table::{
    Billing, IndexDef, IndexKind, KeyAttribute, KeyKind, KeyRole, KeySchema, KeySchemaElement,
    Projection, Scaling, TableDef, Throughput,
};
use crate::text::Name;

pub(super) const NO_DEFINITION: &str =
    "Invalid KeySchema: Some index key attribute have no definition";

/// The attribute definitions of a request.
pub(super) type Definitions = [(Name, KeyKind)];

/// A request for an index.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateIndex {
    /// The name, unique in the table.
    pub name: String,
    /// Global or local.
    pub kind: IndexKind,
    /// The key.
    pub key_schema: Vec<KeySchemaElement>,
    /// The copied attributes.
    pub projection: Projection,
    /// The provisioned throughput, for a global index of a provisioned table.
    pub throughput: Option<Throughput>,
    /// The scaling limits, for a global index.
    pub scaling: Scaling,
}

impl From<IndexDef> for CreateIndex {
    fn from(index: IndexDef) -> Self {
        Self {
            key_schema: index.key.elements(),
            name: index.name,
            kind: index.kind,
            projection: index.projection,
            throughput: index.throughput,
            scaling: index.scaling,
        }
    }
}

// The shape of the request: lengths and ranges, reported together.

pub(super) fn throughput_faults(faults: &mut Faults, throughput: Throughput, path: &str) {
    let at_least_one = *THROUGHPUT_UNITS.start()..=u64::MAX;
    let write = format_args!("{path}.writeCapacityUnits");
    faults.value(throughput.write, write, at_least_one.clone());
    let read = format_args!("{path}.readCapacityUnits");
    faults.value(throughput.read, read, at_least_one);
}

/// Adds the faults of key elements at this path of the request.
pub(super) fn key_faults(faults: &mut Faults, elements: &[KeySchemaElement], path: &str) {
    if elements.is_empty() {
        faults.add("[]", path, length_at_least(1));
    }
    for (at, element) in elements.iter().enumerate() {
        let path = format_args!("{path}.{}.member.attributeName", at + 1);
        faults.length(&element.name, path, 1..=KEY_ATTRIBUTE_NAME_BYTES_MAX);
    }
}

/// Maximum number of attributes in an index key.
pub(super) const fn key_attributes_max(kind: IndexKind) -> usize {
    match kind {
        IndexKind::Global => INDEX_PARTITION_ATTRIBUTES_MAX + INDEX_SORT_ATTRIBUTES_MAX,
        IndexKind::Local => KEY_ATTRIBUTES_MAX,
    }
}

/// Rejects a key with too many attributes. DynamoDB detects this after other faults of the request, although it uses
/// the constraint format, and always gives `keySchema` as the path.
pub(super) fn check_key_length(elements: &[KeySchemaElement], most: usize) -> Result<()> {
    Faults::check(|faults| {
        if elements.len() > most {
            let shown = elements.iter().map(|KeySchemaElement { name, role }| {
                format!("KeySchemaElement(attributeName={name}, keyType={role})")
            });
            let shown = shown.collect::<Vec<_>>().join(", ");
            faults.add(format_args!("[{shown}]"), "keySchema", length_at_most(most));
        }
    })
}

/// Adds the faults of an index at this path of the request.
pub(super) fn index_faults(faults: &mut Faults, index: &CreateIndex, path: &str) {
    let key_path = format!("{path}.keySchema");
    if index.kind == IndexKind::Local {
        name_faults(faults, &index.name, path);
    }
    key_faults(faults, &index.key_schema, &key_path);
    projection_faults(faults, &index.projection, path);
    if index.kind == IndexKind::Global {
        name_faults(faults, &index.name, path);
    }
    if let Some(throughput) = index.throughput {
        throughput_faults(faults, throughput, &format!("{path}.provisionedThroughput"));
    }
}

/// Adds the faults of an index name inside the member at this path of the request.
pub(super) fn name_faults(faults: &mut Faults, name: &str, path: &str) {
    let path = format_args!("{path}.indexName");
    faults.pattern(name, path);
    faults.length(name, path, INDEX_NAME_CHARS);
}

fn projection_faults(faults: &mut Faults, projection: &Projection, path: &str) {
    let Projection::Include(names) = projection else {
        return;
    };
    let path = format!("{path}.projection.nonKeyAttributes");
    let list = || format!("[{}]", names.join(", "));
    if names.is_empty() {
        faults.add(list(), &path, length_at_least(1));
    } else if names.len() > INCLUDED_ATTRIBUTES_MAX {
        faults.add(list(), &path, length_at_most(INCLUDED_ATTRIBUTES_MAX));
    }
    for (at, name) in names.iter().enumerate() {
        let path = format_args!("{path}.{}.member", at + 1);
        faults.length(name, path, 1..=PROJECTED_NAME_BYTES_MAX);
    }
}

/// Rejects throughput above the maximum, for a table or an index.
pub(super) fn check_throughput(throughput: Throughput, index: Option<&str>) -> Result<()> {
    let of_index = index.map_or_else(String::new, |name| format!(" for index {name}"));
    for (units, what) in [
        (throughput.read, "ReadCapacityUnits"),
        (throughput.write, "WriteCapacityUnits"),
    ] {
        ensure(units <= *THROUGHPUT_UNITS.end(), || {
            Error::Validation(format!(
                "Given value {units} for {what} is out of bounds{of_index}"
            ))
        })?;
    }
    Ok(())
}

// Keys.

/// Rejects attributes that are defined twice.
pub(super) fn check_definitions(definitions: &Definitions) -> Result<()> {
    ensure_none(repeated(definitions.iter().map(|(name, _)| name)), |name| {
        Error::Validation(format!("Attribute Name is duplicated: {name}"))
    })
}

/// Returns the first repeated element.
pub(super) fn repeated<T: Eq + Hash + Copy>(mut names: impl Iterator<Item = T>) -> Option<T> {
    let mut seen = HashSet::new();
    names.find(|name| !seen.insert(*name))
}

/// Checks the key of a table: its attributes are defined, the first is the partition key, and the second, if any, the
/// sort key.
pub(super) fn check_table_key(
    elements: &[KeySchemaElement],
    definitions: &Definitions,
) -> Result<()> {
    let enough = elements.len() <= definitions.len();
    ensure(enough, || Error::validation(NO_DEFINITION))?;
    let defined = elements.iter().all(|e| is_defined(&e.name, definitions));
    ensure(defined, || undefined_keys(elements, definitions))?;
    check_two_elements(elements)
}

fn check_first_element(elements: &[KeySchemaElement]) -> Result<()> {
    let first = elements.first().map(|element| element.role);
    ensure(first == Some(KeyRole::Hash), || {
        Error::validation("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
    })
}

fn check_two_elements(elements: &[KeySchemaElement]) -> Result<()> {
    check_first_element(elements)?;
    let [hash, range] = elements else {
        return Ok(());
    };
    ensure(hash.name != range.name, || Error::validation(SAME_NAME))?;
    ensure(range.role == KeyRole::Range, || {
        Error::validation("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
    })
}

const SAME_NAME: &str =
    "Both the Hash Key and the Range Key element in the KeySchema have the same name";

fn check_global_key(elements: &[KeySchemaElement]) -> Result<()> {
    check_first_element(elements)?;
    if let [hash, range] = elements
        && range.role == KeyRole::Range
        && hash.name == range.name
    {
        return Err(Error::validation(SAME_NAME));
    }
    ensure_none(repeated(elements.iter().map(|e| &e.name)), |_| {
        Error::validation("The KeySchema contains multiple key attributes with the same name")
    })?;
    let in_order = elements.is_sorted_by_key(|e| e.role == KeyRole::Range);
    ensure(in_order, || {
        invalid("All HASH key attributes must precede RANGE key attributes in the KeySchema")
    })?;
    for (role, most) in [
        (KeyRole::Hash, INDEX_PARTITION_ATTRIBUTES_MAX),
        (KeyRole::Range, INDEX_SORT_ATTRIBUTES_MAX),
    ] {
        let count = elements.iter().filter(|e| e.role == role).count();
        ensure(count <= most, || {
            invalid(format_args!(
                "The KeySchema exceeds the maximum allowed number of {role} key attributes"
            ))
        })?;
    }
    Ok(())
}

fn check_local_key(index: &CreateIndex, table: &[KeySchemaElement]) -> Result<()> {
    check_two_elements(&index.key_schema)?;
    let [hash, _range] = index.key_schema.as_slice() else {
        return Err(invalid(format_args!(
            "Index KeySchema does not have a range key for index: {}",
            index.name
        )));
    };
    let other = table.first().filter(|first| first.name != hash.name);
    ensure_none(other, |table_hash| {
        invalid(format_args!(
            "Index KeySchema does not have the same leading hash key as table KeySchema for index: \
             {}. index hash key: {}, table hash key: {}",
            index.name, hash.name, table_hash.name
        ))
    })
}

pub(super) fn is_defined(name: &str, definitions: &Definitions) -> bool {
    definitions.iter().any(|(defined, _)| defined == name)
}

/// Checks that all attributes of an index key are defined.
pub(super) fn check_index_defined(index: &CreateIndex, definitions: &Definitions) -> Result<()> {
    let elements = &index.key_schema;
    if elements.iter().all(|e| is_defined(&e.name, definitions)) {
        return Ok(());
    }
    let distinct = elements.iter().map(|e| &e.name).collect::<HashSet<_>>();
    Err(if definitions.len() < distinct.len() {
        Error::validation(NO_DEFINITION)
    } else {
        undefined_keys(elements, definitions)
    })
}

fn undefined_keys(elements: &[KeySchemaElement], definitions: &Definitions) -> Error {
    let keys = elements.iter().map(|element| &element.name);
    let defined = definitions.iter().map(|(name, _)| name);
    invalid(format_args!(
        "Some index key attributes are not defined in AttributeDefinitions. Keys: [{}], \
         AttributeDefinitions: [{}]",
        in_hash_order(keys, Buckets::PerName),
        in_hash_order(defined, Buckets::PerName)
    ))
}

/// Checks that every defined attribute is part of a key.
pub(super) fn check_definitions_used(
    table: &[KeySchemaElement],
    indexes: &[CreateIndex],
    definitions: &Definitions,
) -> Result<()> {
    let of = |kind| indexes.iter().filter(move |i| i.kind == kind);
    let ordered = of(IndexKind::Local).chain(of(IndexKind::Global));
    let elements = table.iter().chain(ordered.flat_map(|i| &i.key_schema));
    let used: Vec<&Name> = elements.map(|element| &element.name).collect();
    let defined = definitions.iter().map(|(name, _)| name);
    if defined.clone().all(|name| used.contains(&name)) {
        return Ok(());
    }
    ensure(!indexes.is_empty(), || {
        invalid(
            "Number of attributes in KeySchema does not exactly match number of attributes defined \
             in AttributeDefinitions",
        )
    })?;
    Err(invalid(format_args!(
        "Some AttributeDefinitions are not used. AttributeDefinitions: [{}], keys used: [{}]",
        in_hash_order(defined, Buckets::PerName),
        in_hash_order(used.into_iter(), Buckets::Sixteen)
    )))
}

// Indexes.

/// Checks the local indexes of a new table.
pub(super) fn check_local_indexes(
    indexes: &[&CreateIndex],
    table: &[KeySchemaElement],
    definitions: &Definitions,
) -> Result<()> {
    if indexes.is_empty() {
        return Ok(());
    }
    ensure(table.iter().any(|e| e.role == KeyRole::Range), || {
        invalid(
            "Table KeySchema does not have a range key, which is required when specifying a \
             LocalSecondaryIndex",
        )
    })?;
    for index in indexes {
        check_index_defined(index, definitions)?;
    }
    for index in indexes {
        check_local_key(index, table)?;
        check_projection(&index.projection)?;
        ensure(index.throughput.is_none(), || {
            invalid(format_args!(
                "ProvisionedThroughput should not be specified for index: {}",
                index.name
            ))
        })?;
    }
    check_index_names(indexes.iter().map(|index| index.name.as_str()))?;
    ensure(indexes.len() <= LOCAL_INDEXES_MAX, || {
        invalid("Number of LocalSecondaryIndexes exceeds per-table limit of 5")
    })
}

/// Checks the global indexes of a new table.
pub(super) fn check_global_indexes(
    indexes: &[&CreateIndex],
    definitions: &Definitions,
    billing: Billing,
) -> Result<()> {
    for index in indexes {
        check_index_defined(index, definitions)?;
    }
    for index in indexes {
        check_global_key(&index.key_schema)?;
        check_projection(&index.projection)?;
    }
    check_index_names(indexes.iter().map(|index| index.name.as_str()))?;
    ensure(indexes.len() <= GLOBAL_INDEXES_MAX, || {
        invalid("GlobalSecondaryIndex count exceeds the per-table limit of 20")
    })?;
    let mut indexes = indexes.iter();
    indexes.try_for_each(|index| check_index_throughput(&index.name, index.throughput, billing))
}

/// Checks a global index that is added to a table.
pub(super) fn check_added_index(
    index: &CreateIndex,
    definitions: &Definitions,
    billing: Billing,
) -> Result<()> {
    check_global_key(&index.key_schema)?;
    check_projection(&index.projection)?;
    ensure(!definitions.is_empty(), || {
        invalid(format_args!(
            "AttributeDefinitions is not specified for index: {}",
            index.name
        ))
    })?;
    check_index_defined(index, definitions)?;
    check_index_throughput(&index.name, index.throughput, billing)
}

/// Checks that key attributes which the table already uses have the same type in a new index.
pub(super) fn check_not_redefined(
    index: &CreateIndex,
    definitions: &Definitions,
    table: &TableDef,
) -> Result<()> {
    let new = key_schema(&index.key_schema, definitions)?;
    let mut keys = std::iter::once(&table.key).chain(table.indexes.iter().map(|i| &i.key));
    let redefines = |old: &&KeySchema| {
        let same_name = |a: &&KeyAttribute| new.attributes().any(|b| a.name == b.name);
        let mut same_names = old.attributes().filter(same_name);
        same_names.any(|a| !new.attributes().any(|b| a == b))
    };
    ensure_none(keys.find(redefines), |old| {
        invalid(format_args!(
            "Attributes cannot be redefined. Please check that your attribute has the same type as \
             previously defined. Existing schema: {} New schema: {}",
            print_schema(old),
            print_schema(&new)
        ))
    })
}

/// Prints a key like DynamoDB.
fn print_schema(schema: &KeySchema) -> String {
    let elements = schema.attributes().zip(schema.elements());
    let elements = elements.map(|(KeyAttribute { name, kind }, element)| {
        format!("SchemaElement: key{{{name}:{kind}:{}}}", element.role)
    });
    format!("Schema:[{}]", elements.collect::<Vec<_>>().join(", "))
}

/// Checks that a global index has throughput if and only if the table is provisioned.
pub(super) fn check_index_throughput(
    name: &str,
    throughput: Option<Throughput>,
    billing: Billing,
) -> Result<()> {
    match (billing, throughput) {
        (Billing::OnDemand, Some(_)) => Err(invalid(format_args!(
            "ProvisionedThroughput should not be specified for index: {name} when BillingMode is \
             PAY_PER_REQUEST"
        ))),
        (Billing::Provisioned(_), None) => Err(invalid(format_args!(
            "ProvisionedThroughput is not specified for index: {name}"
        ))),
        (Billing::Provisioned(_), Some(throughput)) => check_throughput(throughput, Some(name)),
        (Billing::OnDemand, None) => Ok(()),
    }
}

fn check_projection(projection: &Projection) -> Result<()> {
    ensure_none(repeated(projection.included().iter()), |name| {
        invalid(format_args!(
            "Duplicate element in NonKeyAttributes: {name}"
        ))
    })
}

/// Checks the number of non-key attributes in all projections together.
pub(super) fn check_included_total<'a>(
    projections: impl IntoIterator<Item = &'a Projection>,
) -> Result<()> {
    let included = projections.into_iter().flat_map(Projection::included);
    ensure(included.count() <= INCLUDED_ATTRIBUTES_TOTAL_MAX, || {
        invalid("Number of NonKeyAttributes of all indexes exceeds per-table limit of 100")
    })
}

/// Rejects duplicate index names.
pub(super) fn check_index_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<()> {
    ensure_none(repeated(names.into_iter()), |name| {
        invalid(format_args!("Duplicate index name: {name}"))
    })
}

// Conversion of valid requests.

/// Returns the key that valid elements describe.
pub(super) fn key_schema(
    elements: &[KeySchemaElement],
    definitions: &Definitions,
) -> Result<KeySchema> {
    let (mut partition, mut sort) = (Vec::new(), Vec::new());
    for element in elements {
        let defined = definitions.iter().find(|(name, _)| *name == element.name);
        let (name, kind) = defined.ok_or_else(|| Error::validation(NO_DEFINITION))?;
        let part = match element.role {
            KeyRole::Hash => &mut partition,
            KeyRole::Range => &mut sort,
        };
        part.push(KeyAttribute::new(name, *kind));
    }
    Ok(KeySchema { partition, sort })
}

/// Returns the index that a valid request describes.
pub(super) fn index_def(index: &CreateIndex, definitions: &Definitions) -> Result<IndexDef> {
    Ok(IndexDef {
        name: index.name.clone(),
        kind: index.kind,
        key: key_schema(&index.key_schema, definitions)?,
        projection: index.projection.clone(),
        throughput: index.throughput,
        scaling: index.scaling,
    })
}

/// The initial number of buckets in DynamoDB's hash table of names.
#[derive(Clone, Copy)]
enum Buckets {
    /// The next power of two of the number of names.
    PerName,
    Sixteen,
}

/// Lists names without duplicates in the order of Java's hash tables, as DynamoDB does.
fn in_hash_order<'a>(names: impl Iterator<Item = &'a Name>, buckets: Buckets) -> String {
    let mut distinct: Vec<&str> = Vec::new();
    for name in names.map(Name::as_str) {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    let mut capacity = match buckets {
        Buckets::PerName => distinct.len().max(1).next_power_of_two(),
        Buckets::Sixteen => 16,
    };
    while distinct.len() * 4 > capacity * 3 {
        capacity *= 2;
    }
    // The stable sort keeps insertion order within a bucket.
    distinct.sort_by_key(|name| {
        let units = name.encode_utf16().map(u32::from);
        let hash = units.fold(0u32, |hash, unit| hash.wrapping_mul(31).wrapping_add(unit));
        (hash ^ (hash >> 16)) as usize & (capacity - 1)
    });
    distinct.join(", ")
}
