//! The settings for billing, scaling and encryption in requests and responses.

use aws_sdk_dynamodb::types;
use floe_store::op::ScalingUpdate;
use floe_store::table::{
    Billing, Encryption, OnDemandThroughput, Scaling, TableClass, TableHistory, Throughput,
};

use super::{count, number, timestamp};

/// Converts the limits of on-demand throughput, if there are any.
pub(super) fn on_demand(limits: OnDemandThroughput) -> Option<types::OnDemandThroughput> {
    let (read, write) = (limits.read_max.map(number), limits.write_max.map(number));
    on_demand_units(read, write)
}

/// Converts a change of the limits. -1 removes a limit.
pub(super) fn on_demand_update(update: &ScalingUpdate) -> Option<types::OnDemandThroughput> {
    let limit = |limit: Option<u64>| limit.map_or(-1, number);
    on_demand_units(update.read_max.map(limit), update.write_max.map(limit))
}

fn on_demand_units(read: Option<i64>, write: Option<i64>) -> Option<types::OnDemandThroughput> {
    (read.is_some() || write.is_some()).then(|| {
        types::OnDemandThroughput::builder()
            .set_max_read_request_units(read)
            .set_max_write_request_units(write)
            .build()
    })
}

/// Converts warm throughput, if requested.
pub(super) fn warm(warm: Option<Throughput>) -> Option<types::WarmThroughput> {
    warm_units(warm.map(|units| units.read), warm.map(|units| units.write))
}

/// Converts a change of warm throughput.
pub(super) fn warm_update(update: &ScalingUpdate) -> Option<types::WarmThroughput> {
    warm_units(update.warm_read, update.warm_write)
}

fn warm_units(read: Option<u64>, write: Option<u64>) -> Option<types::WarmThroughput> {
    (read.is_some() || write.is_some()).then(|| {
        types::WarmThroughput::builder()
            .set_read_units_per_second(read.map(number))
            .set_write_units_per_second(write.map(number))
            .build()
    })
}

/// Converts the encryption: with a KMS key, or with the key that DynamoDB owns.
pub(super) fn encryption(encryption: Option<&Encryption>) -> types::SseSpecification {
    let key = encryption.and_then(|encryption| encryption.key.clone());
    types::SseSpecification::builder()
        .enabled(encryption.is_some())
        .set_sse_type(encryption.map(|_| types::SseType::Kms))
        .set_kms_master_key_id(key)
        .build()
}

/// Converts the scaling of a table or index. Warm throughput equal to the default of the billing mode is left out.
pub(super) fn scaling(
    limits: Option<&types::OnDemandThroughput>,
    warm: Option<(Option<i64>, Option<i64>)>,
    billing: Billing,
) -> Scaling {
    let limit = |units: Option<i64>| units.and_then(|units| u64::try_from(units).ok());
    let on_demand = limits.map(|limits| OnDemandThroughput {
        read_max: limit(limits.max_read_request_units),
        write_max: limit(limits.max_write_request_units),
    });
    let warm = warm.and_then(|(read, write)| {
        Some(Throughput {
            read: count(Some(read?)),
            write: count(Some(write?)),
        })
    });
    let base = Scaling::default().warm_throughput(billing);
    Scaling {
        on_demand: on_demand.unwrap_or_default(),
        warm: warm.filter(|warm| *warm != base),
    }
}

/// Converts the key that encrypts a table, unless DynamoDB owns it.
pub(super) fn described_encryption(response: Option<&types::SseDescription>) -> Option<Encryption> {
    let response = response.filter(|response| response.sse_type.is_some())?;
    Some(Encryption {
        key: response.kms_master_key_arn.clone(),
    })
}

/// Converts the table class, if it was ever set.
pub(super) fn described_class(response: Option<&types::TableClassSummary>) -> Option<TableClass> {
    let class = response?.table_class.as_ref()?;
    Some(TableClass::from_name(class.as_str()).unwrap_or_default())
}

/// Converts the times at which settings changed.
pub(super) fn history(response: &types::TableDescription) -> TableHistory {
    let billing = response.billing_mode_summary.as_ref();
    let units = response.provisioned_throughput.as_ref();
    let class = response.table_class_summary.as_ref();
    let time = |response: Option<aws_sdk_dynamodb::primitives::DateTime>| {
        response.map(|time| timestamp(Some(time)))
    };
    TableHistory {
        on_demand: time(billing.and_then(|b| b.last_update_to_pay_per_request_date_time)),
        increase: time(units.and_then(|units| units.last_increase_date_time)),
        decrease: time(units.and_then(|units| units.last_decrease_date_time)),
        decreases: units
            .and_then(|units| units.number_of_decreases_today)
            .and_then(|decreases| u32::try_from(decreases).ok())
            .unwrap_or_default(),
        class: time(class.and_then(|class| class.last_update_date_time)),
    }
}
