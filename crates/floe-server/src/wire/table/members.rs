//! The structures of which requests define tables, and what of `floe-store` they become.
//!
//! A fault that `floe-store` cannot express, such as a member that is missing or a word that DynamoDB does not know,
//! is noted while the structure is converted. What stands in its place is sound, so that it is not told twice.

use floe_store::Name;
use floe_store::op::{CreateIndex, Faults, KeyRole, KeySchemaElement};
use floe_store::table::{Billing, IndexKind, KeyKind, Projection, StreamView, Throughput};

use super::settings::{OnDemandMembers, WarmMembers, scaling};
use crate::wire::read::{Str, members};
use crate::wire::refusal::{Refusal, Result};

members! {
    /// The type of an attribute.
    AttributeDefinition<'a> as "AttributeDefinition" {
        "AttributeName" => attribute_name: Str<'a>,
        "AttributeType" => attribute_type: Str<'a>,
    }
}

members! {
    /// An attribute of a key and its role.
    KeyElement<'a> as "KeySchemaElement" {
        "AttributeName" => attribute_name: Str<'a>,
        "KeyType" => key_type: Str<'a>,
    }
}

members! {
    /// What an index copies.
    ProjectionMembers<'a> as "Projection" {
        "ProjectionType" => projection_type: Str<'a>,
        "NonKeyAttributes" => non_key_attributes: Vec<Str<'a>>,
    }
}

members! {
    /// Reserved throughput.
    ProvisionedThroughput<'a> as "ProvisionedThroughput" {
        "ReadCapacityUnits" => read_capacity_units: i64,
        "WriteCapacityUnits" => write_capacity_units: i64,
    }
}

members! {
    /// A global index.
    GlobalIndex<'a> as "GlobalSecondaryIndex" {
        "IndexName" => index_name: Str<'a>,
        "KeySchema" => key_schema: Vec<KeyElement<'a>>,
        "Projection" => projection: ProjectionMembers<'a>,
        "ProvisionedThroughput" => provisioned_throughput: ProvisionedThroughput<'a>,
        "OnDemandThroughput" => on_demand_throughput: OnDemandMembers<'a>,
        "WarmThroughput" => warm_throughput: WarmMembers<'a>,
    }
}

members! {
    /// A global index that is added to a table.
    AddedIndex<'a> as "CreateGlobalSecondaryIndexAction" {
        "IndexName" => index_name: Str<'a>,
        "KeySchema" => key_schema: Vec<KeyElement<'a>>,
        "Projection" => projection: ProjectionMembers<'a>,
        "ProvisionedThroughput" => provisioned_throughput: ProvisionedThroughput<'a>,
        "OnDemandThroughput" => on_demand_throughput: OnDemandMembers<'a>,
        "WarmThroughput" => warm_throughput: WarmMembers<'a>,
    }
}

impl<'a> From<AddedIndex<'a>> for GlobalIndex<'a> {
    fn from(added: AddedIndex<'a>) -> Self {
        Self {
            index_name: added.index_name,
            key_schema: added.key_schema,
            projection: added.projection,
            provisioned_throughput: added.provisioned_throughput,
            on_demand_throughput: added.on_demand_throughput,
            warm_throughput: added.warm_throughput,
            request: added.request,
        }
    }
}

members! {
    /// A local index.
    LocalIndex<'a> as "LocalSecondaryIndex" {
        "IndexName" => index_name: Str<'a>,
        "KeySchema" => key_schema: Vec<KeyElement<'a>>,
        "Projection" => projection: ProjectionMembers<'a>,
    }
}

members! {
    /// Whether a table has a stream, and which.
    StreamSpecification<'a> as "StreamSpecification" {
        "StreamEnabled" => stream_enabled: bool,
        "StreamViewType" => stream_view_type: Str<'a>,
    }
}

members! {
    /// A tag.
    Tag<'a> as "Tag" {
        "Key" => key: Str<'a>,
        "Value" => value: Str<'a>,
    }
}

/// The types of attributes.
pub(crate) fn definitions(
    list: &[AttributeDefinition<'_>],
    faults: &mut Faults,
) -> Vec<(Name, KeyKind)> {
    let mut definitions = Vec::with_capacity(list.len());
    for (at, definition) in list.iter().enumerate() {
        let path = format!("attributeDefinitions.{}.member", at + 1);
        let name = attribute_name(definition.attribute_name.as_deref(), &path, faults);
        let path = format!("{path}.attributeType");
        let word = required_word(
            definition.attribute_type.as_deref(),
            &path,
            &["B", "N", "S"],
            faults,
        );
        let kind = word.and_then(KeyKind::from_name).unwrap_or(KeyKind::S);
        definitions.push((name, kind));
    }
    definitions
}

/// The elements of a key.
pub(crate) fn key_schema(
    list: Option<&[KeyElement<'_>]>,
    path: &str,
    faults: &mut Faults,
) -> Vec<KeySchemaElement> {
    let Some(list) = list else {
        faults.add_null(path);
        return vec![KeySchemaElement {
            name: SOUND_NAME.into(),
            role: KeyRole::Hash,
        }];
    };
    let mut elements = Vec::with_capacity(list.len());
    for (at, element) in list.iter().enumerate() {
        let path = format!("{path}.{}.member", at + 1);
        let name = attribute_name(element.attribute_name.as_deref(), &path, faults);
        let path = format!("{path}.keyType");
        let roles = &["HASH", "RANGE"];
        let role = required_word(element.key_type.as_deref(), &path, roles, faults);
        let role = role.and_then(KeyRole::from_name).unwrap_or(KeyRole::Hash);
        elements.push(KeySchemaElement { name, role });
    }
    elements
}

/// A global index that is asked for, at this path of the request.
pub(crate) fn global_index(
    index: &GlobalIndex<'_>,
    path: &str,
    billing: Option<Billing>,
    faults: &mut Faults,
) -> CreateIndex {
    let key_path = format!("{path}.keySchema");
    let key_schema = key_schema(index.key_schema.as_deref(), &key_path, faults);
    let projection = projection(index.projection.as_ref(), path, faults);
    let name = index_name(index.index_name.as_deref(), path, faults);
    let throughput = index.provisioned_throughput.as_ref();
    let path = format!("{path}.provisionedThroughput");
    let throughput = throughput.map(|units| self::throughput(units, &path, faults));
    let billing = match throughput {
        Some(throughput) => Billing::Provisioned(throughput),
        None => billing.unwrap_or(Billing::OnDemand),
    };
    CreateIndex {
        name,
        kind: IndexKind::Global,
        key_schema,
        projection,
        throughput,
        scaling: scaling(
            index.on_demand_throughput.as_ref(),
            index.warm_throughput.as_ref(),
            billing,
        ),
    }
}

/// A local index that is asked for, at this path of the request.
pub(crate) fn local_index(index: &LocalIndex<'_>, path: &str, faults: &mut Faults) -> CreateIndex {
    let key_path = format!("{path}.keySchema");
    CreateIndex {
        name: index_name(index.index_name.as_deref(), path, faults),
        kind: IndexKind::Local,
        key_schema: key_schema(index.key_schema.as_deref(), &key_path, faults),
        projection: projection(index.projection.as_ref(), path, faults),
        throughput: None,
        scaling: Default::default(),
    }
}

/// The name of an index.
pub(crate) fn index_name(name: Option<&str>, path: &str, faults: &mut Faults) -> String {
    match name {
        Some(name) => name.to_owned(),
        None => {
            faults.add_null(format_args!("{path}.indexName"));
            SOUND_NAME.to_owned()
        }
    }
}

/// What an index copies. What does not fit together is found later, by [`check_projection`].
fn projection(
    projection: Option<&ProjectionMembers<'_>>,
    path: &str,
    faults: &mut Faults,
) -> Projection {
    let path = format!("{path}.projection");
    let Some(projection) = projection else {
        faults.add_null(path);
        return Projection::All;
    };
    let word = projection.projection_type.as_deref();
    if let Some(word) = word {
        let path = format_args!("{path}.projectionType");
        faults.one_of(word, path, &["ALL", "INCLUDE", "KEYS_ONLY"]);
    }
    let names = projection.non_key_attributes.as_deref();
    if names.is_some_and(<[_]>::is_empty) && word != Some("INCLUDE") {
        let constraint = "Member must have length greater than or equal to 1";
        faults.add("[]", format_args!("{path}.nonKeyAttributes"), constraint);
    }
    match (word, names) {
        (Some("KEYS_ONLY"), _) => Projection::KeysOnly,
        (Some("INCLUDE"), Some(names)) => {
            Projection::Include(names.iter().map(|name| Name::from(&**name)).collect())
        }
        _ => Projection::All,
    }
}

/// Refuses a projection whose parts do not fit together.
pub(crate) fn check_projection(projection: Option<&ProjectionMembers<'_>>) -> Result<()> {
    let Some(projection) = projection else {
        return Ok(());
    };
    let word = projection.projection_type.as_deref();
    let fault = match (word, projection.non_key_attributes.is_some()) {
        (None, _) => "Unknown ProjectionType: null".to_owned(),
        (Some("INCLUDE"), false) => {
            "ProjectionType is INCLUDE, but NonKeyAttributes is not specified".to_owned()
        }
        (Some(word @ ("ALL" | "KEYS_ONLY")), true) => {
            format!("ProjectionType is {word}, but NonKeyAttributes is specified")
        }
        _ => return Ok(()),
    };
    Err(invalid(&fault))
}

/// Reserved throughput, at this path of the request.
pub(crate) fn throughput(
    throughput: &ProvisionedThroughput<'_>,
    path: &str,
    faults: &mut Faults,
) -> Throughput {
    let mut units = |units: Option<i64>, name: &str| {
        let path = format!("{path}.{name}");
        match units {
            None => faults.add_null(path),
            Some(units) => faults.value(units, path, 1..=i64::MAX),
        }
        units
            .and_then(|units| u64::try_from(units).ok())
            .filter(|units| *units > 0)
    };
    let write = units(throughput.write_capacity_units, "writeCapacityUnits");
    let read = units(throughput.read_capacity_units, "readCapacityUnits");
    Throughput {
        read: read.unwrap_or(1),
        write: write.unwrap_or(1),
    }
}

/// The images of a stream that is switched on (`Some(Some(..))`) or off (`Some(None)`).
pub(crate) fn stream(
    stream: Option<&StreamSpecification<'_>>,
    faults: &mut Faults,
) -> Option<Option<StreamView>> {
    let stream = stream?;
    if stream.stream_enabled.is_none() {
        faults.add_null("streamSpecification.streamEnabled");
    }
    if let Some(word) = stream.stream_view_type.as_deref() {
        let words = &["OLD_IMAGE", "KEYS_ONLY", "NEW_AND_OLD_IMAGES", "NEW_IMAGE"];
        faults.one_of(word, "streamSpecification.streamViewType", words);
    }
    let view = stream.stream_view_type.as_deref();
    let view = view.and_then(StreamView::from_name);
    let view = view.unwrap_or(StreamView::NewAndOldImages);
    Some((stream.stream_enabled == Some(true)).then_some(view))
}

/// The words for a billing mode.
pub(crate) fn billing_faults(mode: Option<&str>, faults: &mut Faults) {
    if let Some(mode) = mode {
        faults.one_of(mode, "billingMode", &["PROVISIONED", "PAY_PER_REQUEST"]);
    }
}

/// `One or more parameter values were invalid: ` and the message.
pub(crate) fn invalid(message: &str) -> Refusal {
    Refusal::Store(floe_store::op::invalid(message))
}

/// Stands for a name that is missing.
const SOUND_NAME: &str = "missing";

fn attribute_name(name: Option<&str>, path: &str, faults: &mut Faults) -> Name {
    match name {
        Some(name) => Name::from(name),
        None => {
            faults.add_null(format_args!("{path}.attributeName"));
            Name::from(SOUND_NAME)
        }
    }
}

fn required_word<'w>(
    word: Option<&'w str>,
    path: &str,
    words: &[&str],
    faults: &mut Faults,
) -> Option<&'w str> {
    match word {
        Some(word) => faults.one_of(word, path, words),
        None => faults.add_null(path),
    }
    word
}
