//! The settings by which DynamoDB charges, scales and encrypts, in requests and in answers.

use aws_sdk_dynamodb::types;
use floe_store::op::ScalingUpdate;
use floe_store::table::{
    Billing, Encryption, OnDemandThroughput, Scaling, TableClass, TableHistory, Throughput,
};

use super::{count, moment, number};

/// The limits of what is paid for by the request, if there are any.
pub(super) fn on_demand(limits: OnDemandThroughput) -> Option<types::OnDemandThroughput> {
    let (read, write) = (limits.read_max.map(number), limits.write_max.map(number));
    on_demand_units(read, write)
}

/// A change of the limits; the one that is lifted is sent as -1.
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

/// What shall be taken at once, if it was asked for.
pub(super) fn warm(warm: Option<Throughput>) -> Option<types::WarmThroughput> {
    warm_units(warm.map(|units| units.read), warm.map(|units| units.write))
}

/// A change of what is taken at once.
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

/// Encrypts with a key of the account, or with the store's own.
pub(super) fn encryption(encryption: Option<&Encryption>) -> types::SseSpecification {
    let key = encryption.and_then(|encryption| encryption.key.clone());
    types::SseSpecification::builder()
        .enabled(encryption.is_some())
        .set_sse_type(encryption.map(|_| types::SseType::Kms))
        .set_kms_master_key_id(key)
        .build()
}

/// How far a table or an index scales. What every one takes at once that is paid for so is left out.
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

/// The key of the account that a table is encrypted with.
pub(super) fn told_encryption(answer: Option<&types::SseDescription>) -> Option<Encryption> {
    let answer = answer.filter(|answer| answer.sse_type.is_some())?;
    Some(Encryption {
        key: answer.kms_master_key_arn.clone(),
    })
}

/// The storage class, if it was ever chosen.
pub(super) fn told_class(answer: Option<&types::TableClassSummary>) -> Option<TableClass> {
    let class = answer?.table_class.as_ref()?;
    Some(TableClass::from_name(class.as_str()).unwrap_or_default())
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
