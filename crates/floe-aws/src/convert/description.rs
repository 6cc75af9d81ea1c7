//! Table descriptions from the store.

use aws_sdk_dynamodb::types;
use floe_store::table::{
    Billing, IndexDef, IndexDescription, IndexKind, KeyAttribute, KeyKind, KeySchema, Projection,
    Scaling, StreamHandle, StreamView, TableDescription, TableStatus, Throughput,
};
use floe_store::{Name, Result, TableDef};

use super::{count, invalid_response, required, settings, timestamp, view};
use crate::names::Names;

/// Converts the description of a table. Tags and the TTL attribute come from other requests.
pub(super) fn table(response: types::TableDescription, names: &Names) -> Result<TableDescription> {
    let status = status(response.table_status.as_ref());
    let history = settings::history(&response);
    let encryption = settings::described_encryption(response.sse_description.as_ref());
    let attributes = response.attribute_definitions.unwrap_or_default();
    let mut key = key_schema(&response.key_schema.unwrap_or_default(), &attributes)?;
    if key.partition.is_empty() {
        // The description of a table that is being deleted contains little more than its name.
        key.sort.clear();
        if status != TableStatus::Deleting {
            return Err(invalid_response("a table without a key"));
        }
    }
    let global = response.global_secondary_indexes.into_iter().flatten();
    let global = global.map(|index| global_index(index, &attributes));
    let local = response.local_secondary_indexes.into_iter().flatten();
    let local = local.map(|index| local_index(index, &attributes));
    let indexes: Result<Vec<_>> = global.chain(local).collect();
    let (mut definitions, indexes): (Vec<_>, Vec<_>) = indexes?.into_iter().unzip();
    let throughput = response.provisioned_throughput.as_ref().map(throughput);
    let billing = billing(response.billing_mode_summary.as_ref(), throughput);
    if billing == Billing::OnDemand {
        for index in &mut definitions {
            index.throughput = None;
        }
    }
    let warm = response.warm_throughput.as_ref();
    let warm = warm.map(|w| (w.read_units_per_second, w.write_units_per_second));
    let scaling = settings::scaling(response.on_demand_throughput.as_ref(), warm, billing);
    let stream = response.latest_stream_arn.zip(response.latest_stream_label);
    Ok(TableDescription {
        definition: TableDef {
            name: names.remove_prefix(required(response.table_name, "TableName")?),
            key,
            indexes: definitions,
            billing,
            stream: stream_view(response.stream_specification.as_ref())?,
            ttl_attribute: None,
            tags: Default::default(),
            deletion_protection: response.deletion_protection_enabled.unwrap_or_default(),
            class: settings::described_class(response.table_class_summary.as_ref()),
            scaling,
            encryption,
        },
        status,
        created: timestamp(response.creation_date_time),
        item_count: count(response.item_count),
        size_bytes: count(response.table_size_bytes),
        arn: response.table_arn.unwrap_or_default(),
        id: response.table_id.unwrap_or_default(),
        indexes,
        latest_stream: stream.map(|(arn, label)| StreamHandle { arn, label }),
        history,
    })
}

/// Converts a status. Unknown statuses are transitional.
fn status(response: Option<&impl AsRef<str>>) -> TableStatus {
    let known = response.and_then(|status| TableStatus::from_name(status.as_ref()));
    known.unwrap_or(TableStatus::Updating)
}

fn key_schema(
    elements: &[types::KeySchemaElement],
    attributes: &[types::AttributeDefinition],
) -> Result<KeySchema> {
    let of_role = |role: types::KeyType| -> Result<Vec<KeyAttribute>> {
        let elements = elements.iter().filter(|element| element.key_type == role);
        elements
            .map(|element| key_attribute(&element.attribute_name, attributes))
            .collect()
    };
    Ok(KeySchema {
        partition: of_role(types::KeyType::Hash)?,
        sort: of_role(types::KeyType::Range)?,
    })
}

fn key_attribute(name: &str, attributes: &[types::AttributeDefinition]) -> Result<KeyAttribute> {
    let mut attributes = attributes.iter();
    let attribute = attributes.find(|attribute| attribute.attribute_name == name);
    let kind = attribute.and_then(|a| KeyKind::from_name(a.attribute_type.as_str()));
    let kind =
        kind.ok_or_else(|| invalid_response(format_args!("a key without a type: name={name}")))?;
    Ok(KeyAttribute::new(name, kind))
}

type Index = (IndexDef, IndexDescription);

/// Converts the members that descriptions of global and local indexes share.
macro_rules! index {
    ($response:ident, $attributes:ident, $kind:ident) => {{
        let name = required($response.index_name, "IndexName")?;
        let key = $response.key_schema.unwrap_or_default();
        let definition = IndexDef {
            name: name.clone(),
            kind: IndexKind::$kind,
            key: key_schema(&key, $attributes)?,
            projection: projection($response.projection)?,
            throughput: None,
            scaling: Scaling::default(),
        };
        let description = IndexDescription {
            name,
            status: TableStatus::Active,
            backfilling: false,
            item_count: count($response.item_count),
            size_bytes: count($response.index_size_bytes),
            arn: $response.index_arn.unwrap_or_default(),
        };
        (definition, description)
    }};
}

fn local_index(
    response: types::LocalSecondaryIndexDescription,
    attributes: &[types::AttributeDefinition],
) -> Result<Index> {
    Ok(index!(response, attributes, Local))
}

fn global_index(
    response: types::GlobalSecondaryIndexDescription,
    attributes: &[types::AttributeDefinition],
) -> Result<Index> {
    let units = response.provisioned_throughput.as_ref().map(throughput);
    // With on-demand billing the store reports zeros.
    let billing = match units {
        Some(units) if units != (Throughput { read: 0, write: 0 }) => Billing::Provisioned(units),
        _ => Billing::OnDemand,
    };
    let limits = response.on_demand_throughput.as_ref();
    let warm = response.warm_throughput.as_ref();
    let warm = warm.map(|w| (w.read_units_per_second, w.write_units_per_second));
    let (status, backfilling) = (status(response.index_status.as_ref()), response.backfilling);
    let scaling = settings::scaling(limits, warm, billing);
    let (mut definition, mut description) = index!(response, attributes, Global);
    definition.throughput = units;
    definition.scaling = scaling;
    description.status = status;
    description.backfilling = backfilling.unwrap_or_default();
    Ok((definition, description))
}

fn projection(response: Option<types::Projection>) -> Result<Projection> {
    let response = required(response, "Projection")?;
    Ok(match response.projection_type {
        Some(types::ProjectionType::All) => Projection::All,
        Some(types::ProjectionType::KeysOnly) => Projection::KeysOnly,
        Some(types::ProjectionType::Include) => {
            let names = response.non_key_attributes.unwrap_or_default();
            Projection::Include(names.into_iter().map(Name::from).collect())
        }
        _ => return Err(invalid_response("an index with an unknown projection")),
    })
}

fn throughput(response: &types::ProvisionedThroughputDescription) -> Throughput {
    Throughput {
        read: count(response.read_capacity_units),
        write: count(response.write_capacity_units),
    }
}

/// Converts the billing mode. A table that was never billed on demand has no summary.
fn billing(summary: Option<&types::BillingModeSummary>, units: Option<Throughput>) -> Billing {
    let mode = summary.and_then(|summary| summary.billing_mode.as_ref());
    match (mode, units) {
        (Some(types::BillingMode::PayPerRequest), _) | (_, None) => Billing::OnDemand,
        (_, Some(units)) => Billing::Provisioned(units),
    }
}

fn stream_view(response: Option<&types::StreamSpecification>) -> Result<Option<StreamView>> {
    let on = response.filter(|stream| stream.stream_enabled);
    on.map(|stream| view(stream.stream_view_type.as_ref()))
        .transpose()
}
