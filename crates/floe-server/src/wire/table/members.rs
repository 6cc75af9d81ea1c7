//! The structures of which requests define tables, and what of `floe-store` they become.
//!
//! A fault that `floe-store` cannot express, such as a member that is missing or a word that DynamoDB does not know,
//! is noted while the structure is converted. What stands in its place is sound, so that it is not reported twice.

use floe_store::Name;
use floe_store::op::{CreateIndex, Faults, KeyRole, KeySchemaElement, length_at_least};
use floe_store::table::{Billing, IndexKind, KeyKind, Projection, Scaling, StreamView, Throughput};

use super::settings::{
    EncryptionMembers, OnDemandMembers, WarmMembers, encryption_faults, scaling,
};
use crate::wire::{
    Refusal, Result, Str, TableName, members, require, required_word_faults, word_faults,
};

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
    /// What a global index that is made is, in both forms.
    GlobalIndexMembers<'a> {
        "ProvisionedThroughput" => provisioned_throughput: ProvisionedThroughput<'a>,
        "OnDemandThroughput" => on_demand_throughput: OnDemandMembers<'a>,
        "WarmThroughput" => warm_throughput: WarmMembers<'a>,
        ..index: IndexMembers<'a>,
    }
}

members! {
    /// What any index that is made is.
    IndexMembers<'a> {
        "IndexName" => index_name: Str<'a>,
        "KeySchema" => key_schema: Vec<KeyElement<'a>>,
        "Projection" => projection: ProjectionMembers<'a>,
    }
}

members! {
    /// A global index.
    GlobalIndex<'a> as "GlobalSecondaryIndex" { ..global: GlobalIndexMembers<'a>, }
}

members! {
    /// A global index that is added to a table.
    AddedIndex<'a> as "CreateGlobalSecondaryIndexAction" { ..global: GlobalIndexMembers<'a>, }
}

members! {
    /// A local index.
    LocalIndex<'a> as "LocalSecondaryIndex" { ..index: IndexMembers<'a>, }
}

members! {
    /// The members that CreateTable and UpdateTable have in common.
    TableMembers<'a> {
        "TableName" => table_name: TableName<'a>,
        "AttributeDefinitions" => attribute_definitions: Vec<AttributeDefinition<'a>>,
        "BillingMode" => billing_mode: Str<'a>,
        "ProvisionedThroughput" => provisioned_throughput: ProvisionedThroughput<'a>,
        "StreamSpecification" => stream_specification: StreamSpecification<'a>,
        "SSESpecification" => sse_specification: EncryptionMembers<'a>,
        "TableClass" => table_class: Str<'a>,
        "DeletionProtectionEnabled" => deletion_protection_enabled: bool,
        "OnDemandThroughput" => on_demand_throughput: OnDemandMembers<'a>,
        "WarmThroughput" => warm_throughput: WarmMembers<'a>,
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

impl TableMembers<'_> {
    /// Refuses a stream that is switched on without images (in the first words), or off with them (in the second).
    pub(crate) fn check_stream(&self, without_view: &str, with_view: &str) -> Result<()> {
        let Some(stream) = &self.stream_specification else {
            return Ok(());
        };
        let is_on = stream.stream_enabled == Some(true);
        match (is_on, stream.stream_view_type.is_some()) {
            (true, false) => Err(Refusal::invalid(without_view)),
            (false, true) => Err(Refusal::invalid(with_view)),
            _ => Ok(()),
        }
    }

    /// The types of attributes.
    pub(crate) fn definitions(&self, faults: &mut Faults) -> Vec<(Name, KeyKind)> {
        let mut definitions = Vec::new();
        for (at, definition) in self.attribute_definitions.iter().flatten().enumerate() {
            let path = format!("attributeDefinitions.{}.member", at + 1);
            let name = attribute_name(definition.attribute_name.as_deref(), &path, faults);
            let word = &definition.attribute_type;
            let path = format_args!("{path}.attributeType");
            required_word_faults(faults, word, path, &["B", "N", "S"]);
            let kind = word.as_deref().and_then(KeyKind::from_name);
            definitions.push((name, kind.unwrap_or(KeyKind::S)));
        }
        definitions
    }

    /// The reserved throughput, after the words for how it is paid for.
    pub(crate) fn throughput(&self, faults: &mut Faults) -> Option<Throughput> {
        let words = &["PROVISIONED", "PAY_PER_REQUEST"];
        word_faults(faults, &self.billing_mode, "billingMode", words);
        let units = self.provisioned_throughput.as_ref();
        units.map(|units| throughput(units, "provisionedThroughput", faults))
    }

    /// The images of a stream that is switched on (`Some(Some(..))`) or off (`Some(None)`), and the faults of the encryption.
    pub(crate) fn stream(&self, faults: &mut Faults) -> Option<Option<StreamView>> {
        let stream = self.stream_specification.as_ref().map(|stream| {
            require(
                faults,
                &stream.stream_enabled,
                "streamSpecification.streamEnabled",
            );
            let word = &stream.stream_view_type;
            let words = &["OLD_IMAGE", "KEYS_ONLY", "NEW_AND_OLD_IMAGES", "NEW_IMAGE"];
            word_faults(faults, word, "streamSpecification.streamViewType", words);
            let view = word.as_deref().and_then(StreamView::from_name);
            let view = view.unwrap_or(StreamView::NewAndOldImages);
            (stream.stream_enabled == Some(true)).then_some(view)
        });
        encryption_faults(self.sse_specification.as_ref(), faults);
        stream
    }
}

/// Refuses what this store has not, and must not be taken for done.
pub(crate) fn check_supported(members: [(&str, bool); 2]) -> Result<()> {
    match members.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((name, _)) => Err(Refusal::validation(format!(
            "{name} is not supported by this server"
        ))),
    }
}

/// Refuses throughput that is reserved and paid for by the request.
pub(crate) fn no_throughput() -> Refusal {
    Refusal::invalid(
        "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST",
    )
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
        let word = &element.key_type;
        let path = format_args!("{path}.keyType");
        required_word_faults(faults, word, path, &["HASH", "RANGE"]);
        let role = word.as_deref().and_then(KeyRole::from_name);
        let role = role.unwrap_or(KeyRole::Hash);
        elements.push(KeySchemaElement { name, role });
    }
    elements
}

impl IndexMembers<'_> {
    /// An index that is asked for, at this path of the request. DynamoDB looks at the name of a local one first, and at that
    /// of a global one last.
    fn create(&self, kind: IndexKind, path: &str, faults: &mut Faults) -> CreateIndex {
        let given = self.index_name.as_deref();
        let first = (kind == IndexKind::Local).then(|| index_name(given, path, faults));
        let key_path = format!("{path}.keySchema");
        let key_schema = key_schema(self.key_schema.as_deref(), &key_path, faults);
        let projection = projection(self.projection.as_ref(), path, faults);
        CreateIndex {
            name: first.unwrap_or_else(|| index_name(given, path, faults)),
            kind,
            key_schema,
            projection,
            throughput: None,
            scaling: Scaling::default(),
        }
    }
}

impl GlobalIndexMembers<'_> {
    /// A global index that is asked for, at this path of the request.
    pub(crate) fn create(
        &self,
        path: &str,
        billing: Option<Billing>,
        faults: &mut Faults,
    ) -> CreateIndex {
        let mut index = self.index.create(IndexKind::Global, path, faults);
        let path = format!("{path}.provisionedThroughput");
        let units = self.provisioned_throughput.as_ref();
        index.throughput = units.map(|units| throughput(units, &path, faults));
        let billing = match index.throughput {
            Some(throughput) => Billing::Provisioned(throughput),
            None => billing.unwrap_or(Billing::OnDemand),
        };
        let on_demand = self.on_demand_throughput.as_ref();
        index.scaling = scaling(on_demand, self.warm_throughput.as_ref(), billing);
        index
    }
}

impl LocalIndex<'_> {
    /// A local index that is asked for, at this path of the request.
    pub(crate) fn create(&self, path: &str, faults: &mut Faults) -> CreateIndex {
        self.index.create(IndexKind::Local, path, faults)
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
    let word = &projection.projection_type;
    let words = &["ALL", "INCLUDE", "KEYS_ONLY"];
    word_faults(faults, word, format_args!("{path}.projectionType"), words);
    let word = word.as_deref();
    let names = projection.non_key_attributes.as_deref();
    if names.is_some_and(<[_]>::is_empty) && word != Some("INCLUDE") {
        let path = format_args!("{path}.nonKeyAttributes");
        faults.add("[]", path, length_at_least(1));
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
    Err(Refusal::invalid(fault))
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
        let units = units.and_then(|units| u64::try_from(units).ok());
        units.filter(|units| *units > 0)
    };
    let write = units(throughput.write_capacity_units, "writeCapacityUnits");
    let read = units(throughput.read_capacity_units, "readCapacityUnits");
    Throughput {
        read: read.unwrap_or(1),
        write: write.unwrap_or(1),
    }
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
