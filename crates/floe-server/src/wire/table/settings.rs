//! The settings for billing, scaling and encryption in requests.

use floe_store::op::{Faults, ScalingUpdate};
use floe_store::table::{Billing, Encryption, OnDemandThroughput, Scaling, TableClass, Throughput};

use crate::wire::{RequestError, Result, Str, enum_faults, members};

members! {
    /// Maximum on-demand throughput.
    OnDemandMembers<'a> as "OnDemandThroughput" {
        "MaxReadRequestUnits" => max_read_request_units: i64,
        "MaxWriteRequestUnits" => max_write_request_units: i64,
    }
}

members! {
    /// Warm throughput.
    WarmMembers<'a> as "WarmThroughput" {
        "ReadUnitsPerSecond" => read_units_per_second: i64,
        "WriteUnitsPerSecond" => write_units_per_second: i64,
    }
}

members! {
    /// The encryption of a table.
    EncryptionMembers<'a> as "SSESpecification" {
        "Enabled" => enabled: bool,
        "SSEType" => sse_type: Str<'a>,
        "KMSMasterKeyId" => kms_master_key_id: Str<'a>,
    }
}

/// Converts a number of units. Negative numbers become zero, which is invalid too.
fn units(units: i64) -> u64 {
    u64::try_from(units).unwrap_or(0)
}

/// Converts the scaling of a new table or index.
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

/// Converts a change of the scaling of a table or index. -1 removes a limit.
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

/// Rejects a change of an index with an empty warm throughput.
pub(crate) fn check_index_warm(index: &str, warm: Option<&WarmMembers<'_>>) -> Result<()> {
    match warm {
        Some(warm) if !is_warm(warm) => Err(RequestError::invalid(format!(
            "WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond \
             specified for index: {index}"
        ))),
        _ => Ok(()),
    }
}

/// Converts the table class.
pub(crate) fn table_class(keyword: Option<&str>) -> Result<Option<TableClass>> {
    let Some(keyword) = keyword else {
        return Ok(None);
    };
    let mut classes = [TableClass::Standard, TableClass::StandardInfrequentAccess].into_iter();
    let class = classes.find(|class| class.as_str() == keyword);
    class.map(Some).ok_or_else(|| {
        RequestError::validation(
            "Invalid table-class parameter provided. Please try again with a valid table-class value: \
             [STANDARD, STANDARD_INFREQUENT_ACCESS].",
        )
    })
}

/// Checks the enum values and lengths of the encryption.
pub(crate) fn encryption_faults(encryption: Option<&EncryptionMembers<'_>>, faults: &mut Faults) {
    let Some(encryption) = encryption else { return };
    let (keyword, keywords) = (&encryption.sse_type, &["AES256", "KMS"]);
    enum_faults(faults, keyword, "sSESpecification.sSEType", keywords);
    if let Some(key) = encryption.kms_master_key_id.as_deref() {
        faults.length(key, "sSESpecification.kMSMasterKeyId", 1..=2048);
    }
}

/// Converts an encryption that is enabled (`Some(Some(..))`) or disabled (`Some(None)`).
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
    Err(RequestError::invalid(fault))
}
