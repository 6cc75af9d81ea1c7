//! Writes table descriptions, for the responses of all table operations.

use floe_store::json::Writer;
use floe_store::op::KeySchemaElement;
use floe_store::table::{
    Billing, Encryption, IndexDef, IndexDescription, IndexKind, KeyKind, KeySchema,
    OnDemandThroughput, Projection, Scaling, TableDescription, TableHistory, TableStatus,
    Throughput,
};
use floe_store::{Name, TableDef, Timestamp};

use crate::wire::object;

/// The state in which a table is described, which determines the members of the description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableLifecycle {
    /// The table is being created: warm throughput is described only if it was requested.
    Creating,
    /// The table exists at this time.
    Active(Timestamp),
    /// The table is being deleted: its key and indexes are left out.
    Deleting,
}

/// Returns a response whose only member is the description of a table.
pub(crate) fn response(
    member: &str,
    table: &TableDescription,
    lifecycle: TableLifecycle,
) -> Vec<u8> {
    object(1024, |w| write(w.name(member), table, lifecycle))
}

/// Writes a time in seconds with decimals.
pub(crate) fn write_time(w: &mut Writer, time: Timestamp) {
    let (seconds, millis) = (time.as_secs(), time.as_millis() % 1000);
    match millis {
        0 => w.number(format_args!("{seconds}.0")),
        _ => {
            let decimals = format!("{millis:03}");
            w.number(format_args!("{seconds}.{}", decimals.trim_end_matches('0')));
        }
    }
}

/// Writes the description of a table.
pub fn write(w: &mut Writer, table: &TableDescription, lifecycle: TableLifecycle) {
    let definition = &table.definition;
    w.object(|w| {
        if lifecycle != TableLifecycle::Deleting {
            write_definitions(w, definition);
            write_key(w, &definition.key.elements());
            write_time(w.name("CreationDateTime"), table.created);
            write_indexes(w, table, IndexKind::Local, lifecycle);
            write_indexes(w, table, IndexKind::Global, lifecycle);
        }
        w.name("TableName").string(&definition.name);
        w.name("TableStatus").string(table.status.as_str());
        w.name("TableSizeBytes").number(table.size_bytes);
        w.name("ItemCount").number(table.item_count);
        w.name("TableArn").string(&table.arn);
        w.name("TableId").string(&table.id);
        write_billing(w, definition.billing, &table.history, lifecycle);
        write_scaling(w, &definition.scaling, definition.billing, lifecycle);
        write_stream(w, table);
        write_class(w, definition, &table.history);
        if let Some(encryption) = &definition.encryption {
            write_encryption(w, encryption, &table.arn);
        }
        w.name("DeletionProtectionEnabled")
            .bool(definition.deletion_protection);
    });
}

/// Writes attribute definitions, sorted by name as in DynamoDB.
fn write_definitions(w: &mut Writer, table: &TableDef) {
    let keys = std::iter::once(&table.key).chain(table.indexes.iter().map(|index| &index.key));
    let mut attributes: Vec<(&Name, KeyKind)> = keys
        .flat_map(KeySchema::attributes)
        .map(|attribute| (&attribute.name, attribute.kind))
        .collect();
    attributes.sort_unstable();
    attributes.dedup();
    w.name("AttributeDefinitions").array(|w| {
        for (name, kind) in attributes {
            w.object(|w| {
                w.name("AttributeName").string(name);
                w.name("AttributeType").string(kind.as_str());
            });
        }
    });
}

/// Writes the key schema.
pub(crate) fn write_key(w: &mut Writer, elements: &[KeySchemaElement]) {
    w.name("KeySchema").array(|w| {
        for KeySchemaElement { name, role } in elements {
            w.object(|w| {
                w.name("AttributeName").string(name);
                w.name("KeyType").string(role.as_str());
            });
        }
    });
}

/// Writes the billing mode. A table that was ever billed on demand keeps the summary.
fn write_billing(
    w: &mut Writer,
    billing: Billing,
    history: &TableHistory,
    lifecycle: TableLifecycle,
) {
    let (mode, throughput) = match billing {
        Billing::OnDemand => ("PAY_PER_REQUEST", NONE),
        Billing::Provisioned(throughput) => ("PROVISIONED", throughput),
    };
    w.name("ProvisionedThroughput").object(|w| {
        for (member, change) in [
            ("LastIncreaseDateTime", history.increase),
            ("LastDecreaseDateTime", history.decrease),
        ] {
            if let Some(change) = change {
                write_time(w.name(member), change);
            }
        }
        let decreases = match lifecycle {
            TableLifecycle::Active(now) => history.decreases_on(now),
            TableLifecycle::Creating | TableLifecycle::Deleting => 0,
        };
        w.name("NumberOfDecreasesToday").number(decreases);
        write_units(w, throughput);
    });
    if billing != Billing::OnDemand && history.on_demand.is_none() {
        return;
    }
    for (member, mode_member) in [
        ("BillingModeSummary", "BillingMode"),
        ("TableThroughputModeSummary", "TableThroughputMode"),
    ] {
        w.name(member).object(|w| {
            w.name(mode_member).string(mode);
            if let Some(since) = history.on_demand
                && lifecycle != TableLifecycle::Creating
            {
                write_time(w.name("LastUpdateToPayPerRequestDateTime"), since);
            }
        });
    }
}

/// Reported instead of provisioned throughput where there is none.
const NONE: Throughput = Throughput { read: 0, write: 0 };

fn write_units(w: &mut Writer, throughput: Throughput) {
    w.name("ReadCapacityUnits").number(throughput.read);
    w.name("WriteCapacityUnits").number(throughput.write);
}

fn write_scaling(w: &mut Writer, scaling: &Scaling, billing: Billing, lifecycle: TableLifecycle) {
    let OnDemandThroughput {
        read_max,
        write_max,
    } = scaling.on_demand;
    if read_max.is_some() || write_max.is_some() {
        w.name("OnDemandThroughput").object(|w| {
            for (member, limit) in [
                ("MaxReadRequestUnits", read_max),
                ("MaxWriteRequestUnits", write_max),
            ] {
                if let Some(limit) = limit {
                    w.name(member).number(limit);
                }
            }
        });
    }
    let status = match lifecycle {
        TableLifecycle::Active(_) => "ACTIVE",
        TableLifecycle::Creating if scaling.warm.is_some() => "UPDATING",
        TableLifecycle::Creating | TableLifecycle::Deleting => return,
    };
    let warm = scaling.warm_throughput(billing);
    w.name("WarmThroughput").object(|w| {
        w.name("ReadUnitsPerSecond").number(warm.read);
        w.name("WriteUnitsPerSecond").number(warm.write);
        w.name("Status").string(status);
    });
}

fn write_indexes(
    w: &mut Writer,
    table: &TableDescription,
    kind: IndexKind,
    lifecycle: TableLifecycle,
) {
    let described = table.definition.indexes.iter().zip(&table.indexes);
    let mut indexes = described.filter(|(index, _)| index.kind == kind).peekable();
    if indexes.peek().is_none() {
        return;
    }
    let member = match kind {
        IndexKind::Local => "LocalSecondaryIndexes",
        IndexKind::Global => "GlobalSecondaryIndexes",
    };
    w.name(member).array(|w| {
        for (index, description) in indexes {
            write_index(w, index, description, lifecycle);
        }
    });
}

fn write_index(
    w: &mut Writer,
    index: &IndexDef,
    description: &IndexDescription,
    lifecycle: TableLifecycle,
) {
    w.object(|w| {
        w.name("IndexName").string(&index.name);
        write_key(w, &index.key.elements());
        write_projection(w, &index.projection);
        if index.kind == IndexKind::Global {
            w.name("IndexStatus").string(description.status.as_str());
            // An index created with its table has no items to backfill.
            if description.status == TableStatus::Creating && lifecycle != TableLifecycle::Creating
            {
                w.name("Backfilling").bool(description.backfilling);
            }
            w.name("ProvisionedThroughput").object(|w| {
                w.name("NumberOfDecreasesToday").number(0);
                write_units(w, index.throughput.unwrap_or(NONE));
            });
            write_scaling(w, &index.scaling, index.billing(), lifecycle);
        }
        w.name("IndexSizeBytes").number(description.size_bytes);
        w.name("ItemCount").number(description.item_count);
        w.name("IndexArn").string(&description.arn);
    });
}

fn write_projection(w: &mut Writer, projection: &Projection) {
    w.name("Projection").object(|w| {
        let w = w.name("ProjectionType");
        match projection {
            Projection::All => w.string("ALL"),
            Projection::KeysOnly => w.string("KEYS_ONLY"),
            Projection::Include(names) => {
                w.string("INCLUDE");
                w.name("NonKeyAttributes")
                    .array(|w| names.iter().for_each(|name| w.string(name)));
            }
        }
    });
}

fn write_stream(w: &mut Writer, table: &TableDescription) {
    if let Some(view) = table.definition.stream {
        w.name("StreamSpecification").object(|w| {
            w.name("StreamEnabled").bool(true);
            w.name("StreamViewType").string(view.as_str());
        });
    }
    if let Some(stream) = &table.latest_stream {
        w.name("LatestStreamLabel").string(&stream.label);
        w.name("LatestStreamArn").string(&stream.arn);
    }
}

fn write_class(w: &mut Writer, table: &TableDef, history: &TableHistory) {
    let Some(class) = table.class else { return };
    w.name("TableClassSummary").object(|w| {
        w.name("TableClass").string(class.as_str());
        if let Some(change) = history.class {
            write_time(w.name("LastUpdateDateTime"), change);
        }
    });
}

/// Writes the encryption. Nothing is encrypted here: the description repeats the requested key, as an ARN.
fn write_encryption(w: &mut Writer, encryption: &Encryption, table_arn: &str) {
    // In AWS the managed key of each account has its own id; here it is fixed.
    const MANAGED_KEY: &str = "00000000-0000-4000-8000-000000000000";
    let mut parts = table_arn.split(':').skip(3);
    let (region, account) = (parts.next(), parts.next());
    let (region, account) = (region.unwrap_or_default(), account.unwrap_or_default());
    let key = encryption.key.as_deref().unwrap_or(MANAGED_KEY);
    let key = match key.split_once(':').map_or(key, |(prefix, _)| prefix) {
        "arn" => key.to_owned(),
        key if key.starts_with("alias/") => format!("arn:aws:kms:{region}:{account}:{key}"),
        key => format!("arn:aws:kms:{region}:{account}:key/{key}"),
    };
    w.name("SSEDescription").object(|w| {
        w.name("Status").string("ENABLED");
        w.name("SSEType").string("KMS");
        w.name("KMSMasterKeyArn").string(&key);
    });
}
