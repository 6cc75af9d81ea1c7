//! The settings by which DynamoDB charges, scales and encrypts, as requests give them.

use floe_store::op::{Faults, ScalingUpdate};
use floe_store::table::{Billing, Encryption, OnDemandThroughput, Scaling, TableClass, Throughput};

use crate::wire::{Refusal, Result, Str, members, word_faults};

members! {
    /// The most that is taken of what is paid for by the request.
    OnDemandMembers<'a> as "OnDemandThroughput" {
        "MaxReadRequestUnits" => max_read_request_units: i64,
        "MaxWriteRequestUnits" => max_write_request_units: i64,
    }
}

members! {
    /// What shall be taken at once.
    WarmMembers<'a> as "WarmThroughput" {
        "ReadUnitsPerSecond" => read_units_per_second: i64,
        "WriteUnitsPerSecond" => write_units_per_second: i64,
    }
}

members! {
    /// How a table is encrypted.
    EncryptionMembers<'a> as "SSESpecification" {
        "Enabled" => enabled: bool,
        "SSEType" => sse_type: Str<'a>,
        "KMSMasterKeyId" => kms_master_key_id: Str<'a>,
    }
}

/// A number of units; what is below zero is as wrong as zero.
fn units(units: i64) -> u64 {
    u64::try_from(units).unwrap_or(0)
}

/// How far a table or an index that is made shall scale.
pub(crate) fn scaling(
    on_demand: Option<&OnDemandMembers<'_>>,
    warm: Option<&WarmMembers<'_>>,
    billing: Billing,
) -> Scaling {
    let on_demand = on_demand.map(|limits| OnDemandThroughput {
        read_max: limits.max_read_request_units.map(units),
        write_max: limits.max_write_request_units.map(units),
    });
    let base = Scaling::default().warm_throughput(billing);
    let warm = warm.filter(|warm| is_warm(warm)).map(|warm| Throughput {
        read: warm.read_units_per_second.map_or(base.read, units),
        write: warm.write_units_per_second.map_or(base.write, units),
    });
    Scaling {
        on_demand: on_demand.unwrap_or_default(),
        warm,
    }
}

fn is_warm(warm: &WarmMembers<'_>) -> bool {
    warm.read_units_per_second.is_some() || warm.write_units_per_second.is_some()
}

/// A change of how far a table or an index scales; -1 lifts a limit.
pub(crate) fn scaling_update(
    on_demand: Option<&OnDemandMembers<'_>>,
    warm: Option<&WarmMembers<'_>>,
) -> ScalingUpdate {
    let limit = |limit: i64| (limit != -1).then(|| units(limit));
    let [read_max, write_max] = on_demand.map_or([None; 2], |limits| {
        [
            limits.max_read_request_units,
            limits.max_write_request_units,
        ]
    });
    let [warm_read, warm_write] = warm.map_or([None; 2], |warm| {
        [warm.read_units_per_second, warm.write_units_per_second]
    });
    ScalingUpdate {
        read_max: read_max.map(limit),
        write_max: write_max.map(limit),
        warm_read: warm_read.map(units),
        warm_write: warm_write.map(units),
    }
}

/// Refuses a change of an index that says to take something at once, and not what.
pub(crate) fn check_index_warm(index: &str, warm: Option<&WarmMembers<'_>>) -> Result<()> {
    match warm {
        Some(warm) if !is_warm(warm) => Err(Refusal::invalid(format!(
            "WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond \
             specified for index: {index}"
        ))),
        _ => Ok(()),
    }
}

/// The storage class.
pub(crate) fn table_class(word: Option<&str>) -> Result<Option<TableClass>> {
    let Some(word) = word else { return Ok(None) };
    let mut classes = [TableClass::Standard, TableClass::StandardInfrequentAccess].into_iter();
    let class = classes.find(|class| class.as_str() == word);
    class.map(Some).ok_or_else(|| {
        Refusal::validation(
            "Invalid table-class parameter provided. Please try again with a valid table-class value: \
             [STANDARD, STANDARD_INFREQUENT_ACCESS].",
        )
    })
}

/// The words and lengths of an encryption.
pub(crate) fn encryption_faults(encryption: Option<&EncryptionMembers<'_>>, faults: &mut Faults) {
    let Some(encryption) = encryption else { return };
    let (word, words) = (&encryption.sse_type, &["AES256", "KMS"]);
    word_faults(faults, word, "sSESpecification.sSEType", words);
    if let Some(key) = encryption.kms_master_key_id.as_deref() {
        faults.length(key, "sSESpecification.kMSMasterKeyId", 1..=2048);
    }
}

/// The encryption that is switched on (`Some(Some(..))`) or off (`Some(None)`).
pub(crate) fn encryption(
    encryption: Option<&EncryptionMembers<'_>>,
) -> Result<Option<Option<Encryption>>> {
    let Some(encryption) = encryption else {
        return Ok(None);
    };
    let key = encryption.kms_master_key_id.as_deref();
    let kind = encryption.sse_type.as_deref();
    let fault = match (encryption.enabled == Some(true), kind, key) {
        (false, Some(_), _) => "SSEType can not be specified if Enabled is false",
        (false, None, Some(_)) => "KMSMasterKeyId can not be specified if Enabled is false",
        (true, Some("AES256"), _) => "SSEType AES256 is not supported",
        (true, None, Some(_)) => "SSEType KMS is required if KMSMasterKeyId is specified",
        (false, None, None) => return Ok(Some(None)),
        (true, _, key) => {
            let key = key.map(str::to_owned);
            return Ok(Some(Some(Encryption { key })));
        }
    };
    Err(Refusal::invalid(fault))
}
