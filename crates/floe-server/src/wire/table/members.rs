//! The structures with which requests define tables, and their conversion to `floe-store`.
//!
//! A fault that `floe-store` cannot express, such as a missing member or an unknown enum value, is recorded during the
//! conversion. A valid value takes its place, so that it is not reported twice.

use floe_store::Name;
use floe_store::op::{CreateIndex, Faults, KeyRole, KeySchemaElement, length_at_least};
use floe_store::table::{Billing, IndexKind, KeyKind, Projection, Scaling, StreamView, Throughput};

use super::settings::{
    EncryptionMembers, OnDemandMembers, WarmMembers, encryption_faults, scaling,
};
use crate::wire::{
    RequestError, Result, Str, TableName, enum_faults, members, require, required_enum_faults,
};

members! {
    /// The type of an attribute.
    AttributeDefinition<'a> as "AttributeDefinition" {
        "AttributeName" => attribute_name: Str<'a>,
        "AttributeType" => attribute_type: Str<'a>,
    }
}

members! {
    /// A key attribute and its role.
    KeyElement<'a> as "KeySchemaElement" {
        "AttributeName" => attribute_name: Str<'a>,
        "KeyType" => key_type: Str<'a>,
    }
}

members! {
    /// The projection of an index.
    ProjectionMembers<'a> as "Projection" {
        "ProjectionType" => projection_type: Str<'a>,
        "NonKeyAttributes" => non_key_attributes: Vec<Str<'a>>,
    }
}

members! {
    /// Provisioned throughput.
    ProvisionedThroughput<'a> as "ProvisionedThroughput" {
        "ReadCapacityUnits" => read_capacity_units: i64,
        "WriteCapacityUnits" => write_capacity_units: i64,
    }
}

members! {
    /// The members of a global index in CreateTable and UpdateTable.
    GlobalIndexMembers<'a> {
        "ProvisionedThroughput" => provisioned_throughput: ProvisionedThroughput<'a>,
        "OnDemandThroughput" => on_demand_throughput: OnDemandMembers<'a>,
        "WarmThroughput" => warm_throughput: WarmMembers<'a>,
        ..index: IndexMembers<'a>,
    }
}

members! {
    /// The members of any index.
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
    /// Whether a table has a stream, and its view type.
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
    /// Rejects a stream that is enabled without a view type (first message) or disabled with one (second message).
    pub(crate) fn check_stream(&self, without_view: &str, with_view: &str) -> Result<()> {
        let Some(stream) = &self.stream_specification else {
            return Ok(());
        };
        let is_on = stream.stream_enabled == Some(true);
        match (is_on, stream.stream_view_type.is_some()) {
            (true, false) => Err(RequestError::invalid(without_view)),
            (false, true) => Err(RequestError::invalid(with_view)),
            _ => Ok(()),
        }
    }

    /// Converts the attribute definitions.
    pub(crate) fn definitions(&self, faults: &mut Faults) -> Vec<(Name, KeyKind)> {
        let mut definitions = Vec::new();
        for (at, definition) in self.attribute_definitions.iter().flatten().enumerate() {
            let path = format!("attributeDefinitions.{}.member", at + 1);
            let name = attribute_name(definition.attribute_name.as_deref(), &path, faults);
            let keyword = &definition.attribute_type;
            let path = format_args!("{path}.attributeType");
            required_enum_faults(faults, keyword, path, &["B", "N", "S"]);
            let kind = keyword.as_deref().and_then(KeyKind::from_name);
            definitions.push((name, kind.unwrap_or(KeyKind::S)));
        }
        definitions
    }

    /// Checks the billing mode, and converts the provisioned throughput.
    pub(crate) fn throughput(&self, faults: &mut Faults) -> Option<Throughput> {
        let keywords = &["PROVISIONED", "PAY_PER_REQUEST"];
        enum_faults(faults, &self.billing_mode, "billingMode", keywords);
        let units = self.provisioned_throughput.as_ref();
        units.map(|units| throughput(units, "provisionedThroughput", faults))
    }

    /// Converts the view of a stream that is enabled (`Some(Some(..))`) or disabled (`Some(None)`), and checks the
    /// encryption.
    pub(crate) fn stream(&self, faults: &mut Faults) -> Option<Option<StreamView>> {
        let stream = self.stream_specification.as_ref().map(|stream| {
            require(
                faults,
                &stream.stream_enabled,
                "streamSpecification.streamEnabled",
            );
            let keyword = &stream.stream_view_type;
            let keywords = &["OLD_IMAGE", "KEYS_ONLY", "NEW_AND_OLD_IMAGES", "NEW_IMAGE"];
            enum_faults(
                faults,
                keyword,
                "streamSpecification.streamViewType",
                keywords,
            );
            let view = keyword.as_deref().and_then(StreamView::from_name);
            let view = view.unwrap_or(StreamView::NewAndOldImages);
            (stream.stream_enabled == Some(true)).then_some(view)
        });
        encryption_faults(self.sse_specification.as_ref(), faults);
        stream
    }
}

/// Rejects members that are not supported and must not be ignored silently.
pub(crate) fn check_supported(members: [(&str, bool); 2]) -> Result<()> {
    match members.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((name, _)) => Err(RequestError::validation(format!(
            "{name} is not supported by this server"
        ))),
    }
}

/// Returns the error for provisioned throughput with on-demand billing.
pub(crate) fn throughput_not_allowed() -> RequestError {
    RequestError::invalid(
        "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST",
    )
}

/// Converts a key schema.
pub(crate) fn key_schema(
    list: Option<&[KeyElement<'_>]>,
    path: &str,
    faults: &mut Faults,
) -> Vec<KeySchemaElement> {
    let Some(list) = list else {
        faults.add_null(path);
        return vec![KeySchemaElement {
            name: SUBSTITUTE_NAME.into(),
            role: KeyRole::Hash,
        }];
    };
    let mut elements = Vec::with_capacity(list.len());
    for (at, element) in list.iter().enumerate() {
        let path = format!("{path}.{}.member", at + 1);
        let name = attribute_name(element.attribute_name.as_deref(), &path, faults);
        let keyword = &element.key_type;
        let path = format_args!("{path}.keyType");
        required_enum_faults(faults, keyword, path, &["HASH", "RANGE"]);
        let role = keyword.as_deref().and_then(KeyRole::from_name);
        let role = role.unwrap_or(KeyRole::Hash);
        elements.push(KeySchemaElement { name, role });
    }
    elements
}

impl IndexMembers<'_> {
    /// Converts an index at this path of the request. DynamoDB checks the name of a local index first, and that of a
    /// global one last.
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
    /// Converts a global index at this path of the request.
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
    /// Converts a local index at this path of the request.
    pub(crate) fn create(&self, path: &str, faults: &mut Faults) -> CreateIndex {
        self.index.create(IndexKind::Local, path, faults)
    }
}

/// Converts the name of an index.
pub(crate) fn index_name(name: Option<&str>, path: &str, faults: &mut Faults) -> String {
    match name {
        Some(name) => name.to_owned(),
        None => {
            faults.add_null(format_args!("{path}.indexName"));
            SUBSTITUTE_NAME.to_owned()
        }
    }
}

/// Converts a projection. [`check_projection`] rejects inconsistent ones later.
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
    let keyword = &projection.projection_type;
    let keywords = &["ALL", "INCLUDE", "KEYS_ONLY"];
    enum_faults(
        faults,
        keyword,
        format_args!("{path}.projectionType"),
        keywords,
    );
    let keyword = keyword.as_deref();
    let names = projection.non_key_attributes.as_deref();
    if names.is_some_and(<[_]>::is_empty) && keyword != Some("INCLUDE") {
        let path = format_args!("{path}.nonKeyAttributes");
        faults.add("[]", path, length_at_least(1));
    }
    match (keyword, names) {
        (Some("KEYS_ONLY"), _) => Projection::KeysOnly,
        (Some("INCLUDE"), Some(names)) => {
            Projection::Include(names.iter().map(|name| Name::from(&**name)).collect())
        }
        _ => Projection::All,
    }
}

/// Rejects a projection whose members are inconsistent.
pub(crate) fn check_projection(projection: Option<&ProjectionMembers<'_>>) -> Result<()> {
    let Some(projection) = projection else {
        return Ok(());
    };
    let keyword = projection.projection_type.as_deref();
    let fault = match (keyword, projection.non_key_attributes.is_some()) {
        (None, _) => "Unknown ProjectionType: null".to_owned(),
        (Some("INCLUDE"), false) => {
            "ProjectionType is INCLUDE, but NonKeyAttributes is not specified".to_owned()
        }
        (Some(keyword @ ("ALL" | "KEYS_ONLY")), true) => {
            format!("ProjectionType is {keyword}, but NonKeyAttributes is specified")
        }
        _ => return Ok(()),
    };
    Err(RequestError::invalid(fault))
}

/// Converts provisioned throughput at this path of the request.
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

/// A valid name that replaces a missing one.
const SUBSTITUTE_NAME: &str = "missing";

fn attribute_name(name: Option<&str>, path: &str, faults: &mut Faults) -> Name {
    match name {
        Some(name) => Name::from(name),
        None => {
            faults.add_null(format_args!("{path}.attributeName"));
            Name::from(SUBSTITUTE_NAME)
        }
    }
}
