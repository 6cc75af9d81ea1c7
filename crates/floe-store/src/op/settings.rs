//! Rules about the settings by which DynamoDB charges, scales and encrypts.

use super::constraint::invalid;
use crate::error::{Error, Result, ensure, ensure_none};
use crate::table::{Billing, Encryption, OnDemandThroughput, Scaling, Throughput};

/// A change of how far a table or a global index scales. What is absent stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ScalingUpdate {
    /// Sets (`Some(Some(..))`) or lifts (`Some(None)`) the limit of reading by the request.
    pub read_max: Option<Option<u64>>,
    /// Sets or lifts the limit of writing by the request.
    pub write_max: Option<Option<u64>>,
    /// Units of reading that it shall take at once.
    pub warm_read: Option<u64>,
    /// Units of writing that it shall take at once.
    pub warm_write: Option<u64>,
}

impl ScalingUpdate {
    /// Whether it changes the limits of what is paid for by the request.
    pub const fn is_on_demand(&self) -> bool {
        self.read_max.is_some() || self.write_max.is_some()
    }

    /// Whether it changes what is taken at once.
    pub const fn is_warm(&self) -> bool {
        self.warm_read.is_some() || self.warm_write.is_some()
    }

    /// The scaling after the change.
    pub(super) fn apply(
        &self,
        current: Scaling,
        billing: Billing,
        of: Scaled<'_>,
    ) -> Result<Scaling> {
        let on_demand = OnDemandThroughput {
            read_max: self.read_max.unwrap_or(current.on_demand.read_max),
            write_max: self.write_max.unwrap_or(current.on_demand.write_max),
        };
        if self.is_on_demand() {
            let when_provisioned = "the table BillingMode is PROVISIONED";
            check_on_demand(&on_demand, billing, of, when_provisioned)?;
        }
        Ok(Scaling {
            on_demand,
            warm: self.apply_warm(current, billing, of)?,
        })
    }

    fn apply_warm(
        &self,
        current: Scaling,
        billing: Billing,
        of: Scaled<'_>,
    ) -> Result<Option<Throughput>> {
        if !self.is_warm() {
            return Ok(current.warm);
        }
        let warm = current.warm_throughput(billing);
        let asked = Throughput {
            read: self.warm_read.unwrap_or(warm.read),
            write: self.warm_write.unwrap_or(warm.write),
        };
        check_not_below(asked, warm, of, |_| {
            "current WarmThroughput, decreasing WarmThroughput is not supported".to_owned()
        })?;
        Ok(Some(asked))
    }
}

/// What is scaled.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scaled<'a> {
    Table,
    Index(&'a str),
}

impl Scaled<'_> {
    /// What is said of the table, or what is said of the index before its name.
    fn named(self, table: &str, index: &str) -> String {
        match self {
            Self::Table => table.to_owned(),
            Self::Index(name) => format!("{index}{name}"),
        }
    }
}

/// Checks the scaling of a table or an index that is made.
pub(super) fn check_scaling(scaling: &Scaling, billing: Billing, of: Scaled<'_>) -> Result<()> {
    let when_provisioned = "table BillingMode is PROVISIONED.";
    check_on_demand(&scaling.on_demand, billing, of, when_provisioned)?;
    let Some(warm) = scaling.warm else {
        return Ok(());
    };
    let least = Scaling::default().warm_throughput(billing);
    check_not_below(warm, least, of, |units| match billing {
        Billing::OnDemand => INITIAL_ON_DEMAND.to_owned(),
        Billing::Provisioned(_) => format!("{units}CapacityUnits of ProvisionedThroughput"),
    })
}

const INITIAL_ON_DEMAND: &str = "initial throughput for OnDemand. See: \
                                 https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html\
                                 #on-demand-capacity-mode-initial";

/// What is paid for by reserved throughput has no such limits; limits are above zero.
fn check_on_demand(
    limits: &OnDemandThroughput,
    billing: Billing,
    of: Scaled<'_>,
    when_provisioned: &str,
) -> Result<()> {
    let limits = [
        ("MaxReadRequestUnits", limits.read_max),
        ("MaxWriteRequestUnits", limits.write_max),
    ];
    let first = |fits: fn(Option<u64>) -> bool| limits.iter().find(|(_, limit)| !fits(*limit));
    let unfit = first(|limit| limit.is_none()).filter(|_| billing != Billing::OnDemand);
    ensure_none(unfit, |(name, _)| {
        let of = of.named("", " for index : ");
        invalid(format_args!(
            "{name} for OnDemandThroughput cannot be specified{of} when {when_provisioned}"
        ))
    })?;
    ensure_none(first(|limit| limit != Some(0)), |(name, _)| {
        let of = of.named("table", "index : ");
        invalid(format_args!(
            "Requested {name} for OnDemandThroughput for {of} is outside of valid range"
        ))
    })
}

fn check_not_below(
    asked: Throughput,
    least: Throughput,
    of: Scaled<'_>,
    what: impl Fn(&str) -> String,
) -> Result<()> {
    for (units, asked, least) in [
        ("Read", asked.read, least.read),
        ("Write", asked.write, least.write),
    ] {
        ensure(asked >= least, || {
            let (of, what) = (of.named("table", "index "), what(units));
            invalid(format_args!(
                "Requested {units}UnitsPerSecond for WarmThroughput for {of} is lower than {what}"
            ))
        })?;
    }
    Ok(())
}

/// The encryption after a change, which must change something.
pub(super) fn change_encryption(
    current: Option<&Encryption>,
    asked: Option<&Encryption>,
) -> Result<Option<Encryption>> {
    match (current, asked) {
        (None, None) => Err(invalid("Table is already encrypted by default")),
        (Some(current), Some(asked)) if current == asked => Err(invalid(
            "Table is already encrypted with given KMSMasterKeyId. Use KMSMasterKeyId parameter if \
             you want to change Master Key",
        )),
        (_, asked) => Ok(asked.cloned()),
    }
}

/// The error of throughput that is set to what it is.
pub(super) fn unchanged_throughput(of: Scaled<'_>, current: Throughput) -> Error {
    let Throughput { read, write } = current;
    let (the, of) = (of.named("table", "index "), of.named("the table", "index "));
    Error::Validation(format!(
        "The provisioned throughput for the {the} will not change. The requested value equals the \
         current value. Current ReadCapacityUnits provisioned for {of}: {read}. Requested \
         ReadCapacityUnits: {read}. Current WriteCapacityUnits provisioned for {of}: {write}. \
         Requested WriteCapacityUnits: {write}. Refer to the Amazon DynamoDB Developer Guide for \
         current limits and how to request higher limits."
    ))
}
