//! The settings by which DynamoDB charges, scales and encrypts, in requests and in answers.

use aws_sdk_dynamodb::types;
use floe_store::op::ScalingUpdate;
use floe_store::table::{
    Billing, Encryption, OnDemandThroughput, Scaling, TableClass, TableHistory, Throughput,
};

use super::{count, moment};

fn number(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}

/// The limits of what is paid for by the request, if there are any.
pub(super) fn on_demand(limits: OnDemandThroughput) -> Option<types::OnDemandThroughput> {
    (limits != OnDemandThroughput::default()).then(|| {
        types::OnDemandThroughput::builder()
            .set_max_read_request_units(limits.read_max.map(number))
            .set_max_write_request_units(limits.write_max.map(number))
            .build()
    })
}

/// What shall be taken at once, if it was asked for.
pub(super) fn warm(warm: Option<Throughput>) -> Option<types::WarmThroughput> {
    warm.map(|units| {
        types::WarmThroughput::builder()
            .read_units_per_second(number(units.read))
            .write_units_per_second(number(units.write))
            .build()
    })
}

/// A change of the limits; the one that is lifted is sent as -1.
pub(super) fn on_demand_update(update: &ScalingUpdate) -> Option<types::OnDemandThroughput> {
    let limit = |limit: Option<u64>| limit.map_or(-1, number);
    update.is_on_demand().then(|| {
        types::OnDemandThroughput::builder()
            .set_max_read_request_units(update.read_max.map(limit))
            .set_max_write_request_units(update.write_max.map(limit))
            .build()
    })
}

/// A change of what is taken at once.
pub(super) fn warm_update(update: &ScalingUpdate) -> Option<types::WarmThroughput> {
    update.is_warm().then(|| {
        types::WarmThroughput::builder()
            .set_read_units_per_second(update.warm_read.map(number))
            .set_write_units_per_second(update.warm_write.map(number))
            .build()
    })
}

/// Encrypts with a key of the account, or with the store's own.
pub(super) fn encryption(encryption: Option<&Encryption>) -> types::SseSpecification {
    let key = encryption.and_then(|encryption| encryption.key.clone());
    types::SseSpecification::builder()
        .enabled(encryption.is_some())
        .set_sse_type(encryption.map(|_| types::SseType::Kms))
        .set_kms_master_key_id(key)
        .build()
}

pub(super) fn table_class(class: TableClass) -> types::TableClass {
    match class {
        TableClass::Standard => types::TableClass::Standard,
        TableClass::StandardInfrequentAccess => types::TableClass::StandardInfrequentAccess,
    }
}

/// How far a table or an index scales. What every one takes at once that is paid for so is left out.
pub(super) fn scaling(
    limits: Option<&types::OnDemandThroughput>,
    warm: Option<Throughput>,
    billing: Billing,
) -> Scaling {
    let limit = |units: Option<i64>| units.and_then(|units| u64::try_from(units).ok());
    let on_demand = limits.map(|limits| OnDemandThroughput {
        read_max: limit(limits.max_read_request_units),
        write_max: limit(limits.max_write_request_units),
    });
    let base = Scaling::default().warm_throughput(billing);
    Scaling {
        on_demand: on_demand.unwrap_or_default(),
        warm: warm.filter(|warm| *warm != base),
    }
}

/// What is told to be taken at once.
pub(super) fn told_warm(read: Option<i64>, write: Option<i64>) -> Option<Throughput> {
    read.zip(write).map(|(read, write)| Throughput {
        read: count(Some(read)),
        write: count(Some(write)),
    })
}

/// The key of the account that a table is encrypted with.
pub(super) fn told_encryption(answer: Option<&types::SseDescription>) -> Option<Encryption> {
    let answer = answer.filter(|answer| answer.sse_type.is_some())?;
    Some(Encryption {
        key: answer.kms_master_key_arn.clone(),
    })
}

/// The storage class, if it was ever chosen.
pub(super) fn told_class(answer: Option<&types::TableClassSummary>) -> Option<TableClass> {
    Some(match answer?.table_class.as_ref()? {
        types::TableClass::StandardInfrequentAccess => TableClass::StandardInfrequentAccess,
        _ => TableClass::Standard,
    })
}

/// When the settings changed.
pub(super) fn history(answer: &types::TableDescription) -> TableHistory {
    let billing = answer.billing_mode_summary.as_ref();
    let units = answer.provisioned_throughput.as_ref();
    let class = answer.table_class_summary.as_ref();
    let told = |answer: Option<aws_sdk_dynamodb::primitives::DateTime>| {
        answer.map(|told| moment(Some(told)))
    };
    TableHistory {
        on_demand: told(billing.and_then(|b| b.last_update_to_pay_per_request_date_time)),
        increase: told(units.and_then(|units| units.last_increase_date_time)),
        decrease: told(units.and_then(|units| units.last_decrease_date_time)),
        decreases: units
            .and_then(|units| units.number_of_decreases_today)
            .and_then(|decreases| u32::try_from(decreases).ok())
            .unwrap_or_default(),
        class: told(class.and_then(|class| class.last_update_date_time)),
    }
}
