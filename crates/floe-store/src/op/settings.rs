//! Rules about the settings by which DynamoDB charges, scales and encrypts.

use super::constraint::invalid;
use crate::error::{Error, Result};
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
            check_on_demand(
                &on_demand,
                billing,
                of,
                "the table BillingMode is PROVISIONED",
            )?;
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

/// Checks the scaling of a table or an index that is made.
pub(super) fn check_scaling(scaling: &Scaling, billing: Billing, of: Scaled<'_>) -> Result<()> {
    check_on_demand(
        &scaling.on_demand,
        billing,
        of,
        "table BillingMode is PROVISIONED.",
    )?;
    let Some(warm) = scaling.warm else {
        return Ok(());
    };
    let least = Scaling::default().warm_throughput(billing);
    check_not_below(warm, least, of, |units| {
        match billing {
        Billing::OnDemand => {
            "initial throughput for OnDemand. See: https://docs.aws.amazon.com/amazondynamodb/latest/\
             developerguide/on-demand-capacity-mode.html#on-demand-capacity-mode-initial"
                .to_owned()
        }
        Billing::Provisioned(_) => format!("{units}CapacityUnits of ProvisionedThroughput"),
    }
    })
}

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
    if billing != Billing::OnDemand
        && let Some((name, _)) = limits.iter().find(|(_, limit)| limit.is_some())
    {
        let of = match of {
            Scaled::Table => String::new(),
            Scaled::Index(index) => format!(" for index : {index}"),
        };
        return Err(invalid(format_args!(
            "{name} for OnDemandThroughput cannot be specified{of} when {when_provisioned}"
        )));
    }
    if let Some((name, _)) = limits.iter().find(|(_, limit)| *limit == Some(0)) {
        let of = match of {
            Scaled::Table => "table".to_owned(),
            Scaled::Index(index) => format!("index : {index}"),
        };
        return Err(invalid(format_args!(
            "Requested {name} for OnDemandThroughput for {of} is outside of valid range"
        )));
    }
    Ok(())
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
        if asked < least {
            let of = match of {
                Scaled::Table => "table".to_owned(),
                Scaled::Index(index) => format!("index {index}"),
            };
            return Err(invalid(format_args!(
                "Requested {units}UnitsPerSecond for WarmThroughput for {of} is lower than {}",
                what(units)
            )));
        }
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
pub(super) fn unchanged_throughput(
    of: Scaled<'_>,
    current: Throughput,
    asked: Throughput,
) -> Error {
    let (the, of) = match of {
        Scaled::Table => ("table".to_owned(), "the table".to_owned()),
        Scaled::Index(name) => (format!("index {name}"), format!("index {name}")),
    };
    Error::Validation(format!(
        "The provisioned throughput for the {the} will not change. The requested value equals the \
         current value. Current ReadCapacityUnits provisioned for {of}: {}. Requested \
         ReadCapacityUnits: {}. Current WriteCapacityUnits provisioned for {of}: {}. Requested \
         WriteCapacityUnits: {}. Refer to the Amazon DynamoDB Developer Guide for current limits and \
         how to request higher limits.",
        current.read, asked.read, current.write, asked.write
    ))
}
