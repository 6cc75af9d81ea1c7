//! Rules for the settings of billing, scaling and encryption.

use super::constraint::invalid;
use crate::error::{Error, Result, ensure, ensure_none};
use crate::table::{Billing, Encryption, OnDemandThroughput, Scaling, Throughput};

/// A change of the scaling limits of a table or a global index. Absent members stay unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ScalingUpdate {
    /// Sets (`Some(Some(..))`) or removes (`Some(None)`) the limit of on-demand reads.
    pub read_max: Option<Option<u64>>,
    /// Sets or removes the limit of on-demand writes.
    pub write_max: Option<Option<u64>>,
    /// Read units to serve immediately.
    pub warm_read: Option<u64>,
    /// Write units to serve immediately.
    pub warm_write: Option<u64>,
}

impl ScalingUpdate {
    /// Whether on-demand limits are changed.
    pub const fn is_on_demand(&self) -> bool {
        self.read_max.is_some() || self.write_max.is_some()
    }

    /// Whether warm throughput is changed.
    pub const fn is_warm(&self) -> bool {
        self.warm_read.is_some() || self.warm_write.is_some()
    }

    /// Returns the scaling after the change.
    pub(super) fn apply(
        &self,
        current: Scaling,
        billing: Billing,
        target: ScalingTarget<'_>,
    ) -> Result<Scaling> {
        let on_demand = OnDemandThroughput {
            read_max: self.read_max.unwrap_or(current.on_demand.read_max),
            write_max: self.write_max.unwrap_or(current.on_demand.write_max),
        };
        if self.is_on_demand() {
            let when_provisioned = "the table BillingMode is PROVISIONED";
            check_on_demand(&on_demand, billing, target, when_provisioned)?;
        }
        Ok(Scaling {
            on_demand,
            warm: self.apply_warm(current, billing, target)?,
        })
    }

    fn apply_warm(
        &self,
        current: Scaling,
        billing: Billing,
        target: ScalingTarget<'_>,
    ) -> Result<Option<Throughput>> {
        if !self.is_warm() {
            return Ok(current.warm);
        }
        let warm = current.warm_throughput(billing);
        let requested = Throughput {
            read: self.warm_read.unwrap_or(warm.read),
            write: self.warm_write.unwrap_or(warm.write),
        };
        check_not_below(requested, warm, target, |_| {
            "current WarmThroughput, decreasing WarmThroughput is not supported".to_owned()
        })?;
        Ok(Some(requested))
    }
}

/// The resource whose scaling is checked.
#[derive(Clone, Copy, Debug)]
pub(super) enum ScalingTarget<'a> {
    Table,
    Index(&'a str),
}

impl ScalingTarget<'_> {
    /// Returns the label of a table, or the label of an index followed by its name.
    fn named(self, table: &str, index: &str) -> String {
        match self {
            Self::Table => table.to_owned(),
            Self::Index(name) => format!("{index}{name}"),
        }
    }
}

/// Checks the scaling of a new table or index.
pub(super) fn check_scaling(
    scaling: &Scaling,
    billing: Billing,
    target: ScalingTarget<'_>,
) -> Result<()> {
    let when_provisioned = "table BillingMode is PROVISIONED.";
    check_on_demand(&scaling.on_demand, billing, target, when_provisioned)?;
    let Some(warm) = scaling.warm else {
        return Ok(());
    };
    let least = Scaling::default().warm_throughput(billing);
    check_not_below(warm, least, target, |units| match billing {
        Billing::OnDemand => INITIAL_ON_DEMAND.to_owned(),
        Billing::Provisioned(_) => format!("{units}CapacityUnits of ProvisionedThroughput"),
    })
}

const INITIAL_ON_DEMAND: &str = "initial throughput for OnDemand. See: \
                                 https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html\
                                 #on-demand-capacity-mode-initial";

/// Rejects on-demand limits with provisioned billing, and limits of zero.
fn check_on_demand(
    limits: &OnDemandThroughput,
    billing: Billing,
    target: ScalingTarget<'_>,
    when_provisioned: &str,
) -> Result<()> {
    let limits = [
        ("MaxReadRequestUnits", limits.read_max),
        ("MaxWriteRequestUnits", limits.write_max),
    ];
    let first = |fits: fn(Option<u64>) -> bool| limits.iter().find(|(_, limit)| !fits(*limit));
    let unfit = first(|limit| limit.is_none()).filter(|_| billing != Billing::OnDemand);
    ensure_none(unfit, |(name, _)| {
        let label = target.named("", " for index : ");
        invalid(format_args!(
            "{name} for OnDemandThroughput cannot be specified{label} when {when_provisioned}"
        ))
    })?;
    ensure_none(first(|limit| limit != Some(0)), |(name, _)| {
        let label = target.named("table", "index : ");
        invalid(format_args!(
            "Requested {name} for OnDemandThroughput for {label} is outside of valid range"
        ))
    })
}

fn check_not_below(
    requested: Throughput,
    least: Throughput,
    target: ScalingTarget<'_>,
    what: impl Fn(&str) -> String,
) -> Result<()> {
    for (units, requested, least) in [
        ("Read", requested.read, least.read),
        ("Write", requested.write, least.write),
    ] {
        ensure(requested >= least, || {
            let (label, what) = (target.named("table", "index "), what(units));
            invalid(format_args!(
                "Requested {units}UnitsPerSecond for WarmThroughput for {label} is lower than {what}"
            ))
        })?;
    }
    Ok(())
}

/// Returns the encryption after a change, which must change something.
pub(super) fn change_encryption(
    current: Option<&Encryption>,
    requested: Option<&Encryption>,
) -> Result<Option<Encryption>> {
    match (current, requested) {
        (None, None) => Err(invalid("Table is already encrypted by default")),
        (Some(current), Some(requested)) if current == requested => Err(invalid(
            "Table is already encrypted with given KMSMasterKeyId. Use KMSMasterKeyId parameter if \
             you want to change Master Key",
        )),
        (_, requested) => Ok(requested.cloned()),
    }
}

/// The error for setting throughput to its current value.
pub(super) fn unchanged_throughput(target: ScalingTarget<'_>, current: Throughput) -> Error {
    let Throughput { read, write } = current;
    let (the, label) = (
        target.named("table", "index "),
        target.named("the table", "index "),
    );
    Error::Validation(format!(
        "The provisioned throughput for the {the} will not change. The requested value equals the \
         current value. Current ReadCapacityUnits provisioned for {label}: {read}. Requested \
         ReadCapacityUnits: {read}. Current WriteCapacityUnits provisioned for {label}: {write}. \
         Requested WriteCapacityUnits: {write}. Refer to the Amazon DynamoDB Developer Guide for \
         current limits and how to request higher limits."
    ))
}
