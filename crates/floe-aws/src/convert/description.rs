//! What the store says of a table.

use aws_sdk_dynamodb::types;
use floe_store::table::{
    Billing, IndexDef, IndexDescription, IndexKind, KeyAttribute, KeyKind, KeySchema, Projection,
    Scaling, StreamHandle, StreamView, TableDescription, TableStatus, Throughput,
};
use floe_store::{Name, Result, TableDef};

use super::{count, moment, required, settings, unreadable, view};
use crate::names::Names;

/// A table as it stands. Tags and the attribute of expiry are told elsewhere.
pub(super) fn table(answer: types::TableDescription, names: &Names) -> Result<TableDescription> {
    let status = status(answer.table_status.as_ref());
    let history = settings::history(&answer);
    let encryption = settings::told_encryption(answer.sse_description.as_ref());
    let attributes = answer.attribute_definitions.unwrap_or_default();
    let mut key = key_schema(&answer.key_schema.unwrap_or_default(), &attributes)?;
    if key.partition.is_empty() {
        // Of a table that is being removed the store tells little more than the name.
        key.sort.clear();
        if status != TableStatus::Deleting {
            return Err(unreadable("a table without a key"));
        }
    }
    let global = answer.global_secondary_indexes.into_iter().flatten();
    let global = global.map(|index| global_index(index, &attributes));
    let local = answer.local_secondary_indexes.into_iter().flatten();
    let local = local.map(|index| local_index(index, &attributes));
    let indexes: Result<Vec<_>> = global.chain(local).collect();
    let (mut definitions, indexes): (Vec<_>, Vec<_>) = indexes?.into_iter().unzip();
    let throughput = answer.provisioned_throughput.as_ref().map(throughput);
    let billing = billing(answer.billing_mode_summary.as_ref(), throughput);
    if billing == Billing::OnDemand {
        for index in &mut definitions {
            index.throughput = None;
        }
    }
    let warm = answer.warm_throughput.as_ref();
    let warm = warm.map(|w| (w.read_units_per_second, w.write_units_per_second));
    let scaling = settings::scaling(answer.on_demand_throughput.as_ref(), warm, billing);
    let stream = answer.latest_stream_arn.zip(answer.latest_stream_label);
    Ok(TableDescription {
        definition: TableDef {
            name: names.own(required(answer.table_name, "TableName")?),
            key,
            indexes: definitions,
            billing,
            stream: stream_view(answer.stream_specification.as_ref())?,
            ttl_attribute: None,
            tags: Default::default(),
            deletion_protection: answer.deletion_protection_enabled.unwrap_or_default(),
            class: settings::told_class(answer.table_class_summary.as_ref()),
            scaling,
            encryption,
        },
        status,
        created: moment(answer.creation_date_time),
        item_count: count(answer.item_count),
        size_bytes: count(answer.table_size_bytes),
        arn: answer.table_arn.unwrap_or_default(),
        id: answer.table_id.unwrap_or_default(),
        indexes,
        latest_stream: stream.map(|(arn, label)| StreamHandle { arn, label }),
        history,
    })
}

/// Whatever else a table or an index is, it is on its way to something.
fn status(answer: Option<&impl AsRef<str>>) -> TableStatus {
    let known = answer.and_then(|status| TableStatus::from_name(status.as_ref()));
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
    let kind = kind.ok_or_else(|| unreadable(format_args!("a key without a type: name={name}")))?;
    Ok(KeyAttribute::new(name, kind))
}

type Index = (IndexDef, IndexDescription);

/// Reads what the descriptions of global and of local indexes both have: a global one tells more.
macro_rules! index {
    ($answer:ident, $attributes:ident, $kind:ident) => {{
        let name = required($answer.index_name, "IndexName")?;
        let key = $answer.key_schema.unwrap_or_default();
        let definition = IndexDef {
            name: name.clone(),
            kind: IndexKind::$kind,
            key: key_schema(&key, $attributes)?,
            projection: projection($answer.projection)?,
            throughput: None,
            scaling: Scaling::default(),
        };
        let description = IndexDescription {
            name,
            status: TableStatus::Active,
            backfilling: false,
            item_count: count($answer.item_count),
            size_bytes: count($answer.index_size_bytes),
            arn: $answer.index_arn.unwrap_or_default(),
        };
        (definition, description)
    }};
}

fn local_index(
    answer: types::LocalSecondaryIndexDescription,
    attributes: &[types::AttributeDefinition],
) -> Result<Index> {
    Ok(index!(answer, attributes, Local))
}

fn global_index(
    answer: types::GlobalSecondaryIndexDescription,
    attributes: &[types::AttributeDefinition],
) -> Result<Index> {
    let units = answer.provisioned_throughput.as_ref().map(throughput);
    // The store tells zeros of what is paid for by the request.
    let billing = match units {
        Some(units) if units != (Throughput { read: 0, write: 0 }) => Billing::Provisioned(units),
        _ => Billing::OnDemand,
    };
    let limits = answer.on_demand_throughput.as_ref();
    let warm = answer.warm_throughput.as_ref();
    let warm = warm.map(|w| (w.read_units_per_second, w.write_units_per_second));
    let (status, backfilling) = (status(answer.index_status.as_ref()), answer.backfilling);
    let scaling = settings::scaling(limits, warm, billing);
    let (mut definition, mut description) = index!(answer, attributes, Global);
    definition.throughput = units;
    definition.scaling = scaling;
    description.status = status;
    description.backfilling = backfilling.unwrap_or_default();
    Ok((definition, description))
}

fn projection(answer: Option<types::Projection>) -> Result<Projection> {
    let answer = required(answer, "Projection")?;
    Ok(match answer.projection_type {
        Some(types::ProjectionType::All) => Projection::All,
        Some(types::ProjectionType::KeysOnly) => Projection::KeysOnly,
        Some(types::ProjectionType::Include) => {
            let names = answer.non_key_attributes.unwrap_or_default();
            Projection::Include(names.into_iter().map(Name::from).collect())
        }
        _ => return Err(unreadable("an index with an unknown projection")),
    })
}

fn throughput(answer: &types::ProvisionedThroughputDescription) -> Throughput {
    Throughput {
        read: count(answer.read_capacity_units),
        write: count(answer.write_capacity_units),
    }
}

/// A table that was never paid for by the request has no summary.
fn billing(summary: Option<&types::BillingModeSummary>, units: Option<Throughput>) -> Billing {
    let mode = summary.and_then(|summary| summary.billing_mode.as_ref());
    match (mode, units) {
        (Some(types::BillingMode::PayPerRequest), _) | (_, None) => Billing::OnDemand,
        (_, Some(units)) => Billing::Provisioned(units),
    }
}

fn stream_view(answer: Option<&types::StreamSpecification>) -> Result<Option<StreamView>> {
    let on = answer.filter(|stream| stream.stream_enabled);
    on.map(|stream| view(stream.stream_view_type.as_ref()))
        .transpose()
}
