//! Settings for billing, scaling and encryption. The embedded engine stores them, but they do not affect it.

use crate::declare::named;
use crate::env::Timestamp;
use crate::limits::{WARM_READ_UNITS, WARM_WRITE_UNITS};
use crate::table::TableDef;

/// Provisioned capacity, in units per second. The embedded engine stores it and does not enforce it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Throughput {
    /// Read units per second.
    pub read: u64,
    /// Write units per second.
    pub write: u64,
}

impl Throughput {
    fn max(self, other: Self) -> Self {
        Self {
            read: self.read.max(other.read),
            write: self.write.max(other.write),
        }
    }
}

/// The billing mode of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Billing {
    /// Pay per request.
    OnDemand,
    /// Pay for provisioned throughput.
    Provisioned(Throughput),
}

impl Billing {
    /// Returns the throughput that a new table or index with this billing mode serves immediately.
    const fn warm_throughput(self) -> Throughput {
        match self {
            Self::OnDemand => Throughput {
                read: WARM_READ_UNITS,
                write: WARM_WRITE_UNITS,
            },
            Self::Provisioned(throughput) => throughput,
        }
    }
}

named! {
    /// The storage class of a table. Stored only.
    #[derive(Default)]
    pub enum TableClass {
        /// For data that is accessed regularly.
        #[default]
        Standard = "STANDARD",
        /// For data that is rarely accessed.
        StandardInfrequentAccess = "STANDARD_INFREQUENT_ACCESS",
    }
}

/// The scaling limits of a table or a global index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Scaling {
    /// The maximum throughput with on-demand billing.
    pub on_demand: OnDemandThroughput,
    /// The throughput to serve immediately, if more than the default was requested.
    pub warm: Option<Throughput>,
}

impl Scaling {
    /// Returns the throughput that a table or an index serves immediately.
    ///
    /// ```
    /// use floe_store::table::{Billing, Scaling, Throughput};
    ///
    /// let warm = Scaling::default().warm_throughput(Billing::OnDemand);
    /// assert_eq!(warm, Throughput { read: 12_000, write: 4_000 });
    /// ```
    pub fn warm_throughput(&self, billing: Billing) -> Throughput {
        let base = billing.warm_throughput();
        self.warm.map_or(base, |requested| requested.max(base))
    }

    /// Returns the scaling after a change of the billing mode. Warm throughput is never lost.
    #[must_use]
    pub fn after_billing(self, old: Billing, new: Billing) -> Self {
        let base = new.warm_throughput();
        let warm = self.warm_throughput(old).max(base);
        Self {
            on_demand: match new {
                Billing::OnDemand => self.on_demand,
                Billing::Provisioned(_) => OnDemandThroughput::default(),
            },
            warm: (warm != base).then_some(warm),
        }
    }
}

/// The maximum requests per second of an on-demand table or index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct OnDemandThroughput {
    /// Read units per second. Default: no limit.
    pub read_max: Option<u64>,
    /// Write units per second. Default: no limit.
    pub write_max: Option<u64>,
}

/// Encryption of a table with a key of the account.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Encryption {
    /// The key, by any of its names. Default: the key that AWS manages for the account.
    pub key: Option<String>,
}

/// When the settings of a table were changed, as reported in descriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TableHistory {
    /// When the table last became on-demand, or was created as such.
    pub on_demand: Option<Timestamp>,
    /// When provisioned throughput was last raised.
    pub increase: Option<Timestamp>,
    /// When provisioned throughput was last lowered.
    pub decrease: Option<Timestamp>,
    /// How often provisioned throughput was lowered on the day (UTC) of the last decrease.
    pub decreases: u32,
    /// When the storage class was last changed.
    pub class: Option<Timestamp>,
}

impl TableHistory {
    /// Returns the history of a table created now.
    pub fn for_new_table(table: &TableDef, now: Timestamp) -> Self {
        Self {
            on_demand: (table.billing == Billing::OnDemand).then_some(now),
            ..Self::default()
        }
    }

    /// Returns the history after a change.
    #[must_use]
    pub fn after(mut self, old: &TableDef, new: &TableDef, now: Timestamp) -> Self {
        if old.class != new.class {
            self.class = Some(now);
        }
        match (old.billing, new.billing) {
            (Billing::Provisioned(_), Billing::OnDemand) => self.on_demand = Some(now),
            (Billing::Provisioned(old), Billing::Provisioned(new)) => {
                if new.read > old.read || new.write > old.write {
                    self.increase = Some(now);
                }
                if new.read < old.read || new.write < old.write {
                    self.decreases = self.decreases_on(now) + 1;
                    self.decrease = Some(now);
                }
            }
            _ => {}
        }
        self
    }

    /// Returns how often throughput was lowered on the day (UTC) of this time.
    pub fn decreases_on(&self, now: Timestamp) -> u32 {
        const DAY_SECS: u64 = 24 * 60 * 60;
        let day = |time: Timestamp| time.as_secs() / DAY_SECS;
        match self.decrease {
            Some(last) if day(last) == day(now) => self.decreases,
            _ => 0,
        }
    }
}
