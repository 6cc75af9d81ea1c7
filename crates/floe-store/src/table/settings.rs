//! Settings by which DynamoDB charges, scales and encrypts. The embedded engine keeps them for the record: they
//! change nothing in what it does.

use crate::declare::named;
use crate::env::Timestamp;
use crate::limits::{WARM_READ_UNITS, WARM_WRITE_UNITS};
use crate::table::TableDef;

/// Provisioned capacity, in units per second. The embedded engine keeps it for the record and limits
/// nothing by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Throughput {
    /// Units of reading per second.
    pub read: u64,
    /// Units of writing per second.
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

/// How the use of a table is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Billing {
    /// By the request.
    OnDemand,
    /// By reserved throughput.
    Provisioned(Throughput),
}

impl Billing {
    /// What a new table or index that is paid for so takes at once.
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
    /// The storage class of a table, kept for the record.
    #[derive(Default)]
    pub enum TableClass {
        /// For data that is used.
        #[default]
        Standard = "STANDARD",
        /// For data that is seldom used.
        StandardInfrequentAccess = "STANDARD_INFREQUENT_ACCESS",
    }
}

/// How far a table or a global index scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Scaling {
    /// The most that it takes, if it is paid for by the request.
    pub on_demand: OnDemandThroughput,
    /// What it shall take at once, if more was asked for than it takes anyway.
    pub warm: Option<Throughput>,
}

impl Scaling {
    /// What a table or an index of this scaling takes at once.
    ///
    /// ```
    /// use floe_store::table::{Billing, Scaling, Throughput};
    ///
    /// let warm = Scaling::default().warm_throughput(Billing::OnDemand);
    /// assert_eq!(warm, Throughput { read: 12_000, write: 4_000 });
    /// ```
    pub fn warm_throughput(&self, billing: Billing) -> Throughput {
        let base = billing.warm_throughput();
        self.warm.map_or(base, |asked| asked.max(base))
    }

    /// The scaling after a change of payment. What was taken at once before, is taken on.
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

/// The most requests per second that a table or an index takes which is paid for by the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct OnDemandThroughput {
    /// Units of reading per second; no limit if absent.
    pub read_max: Option<u64>,
    /// Units of writing per second; no limit if absent.
    pub write_max: Option<u64>,
}

/// How a table is encrypted with a key of the account.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Encryption {
    /// The key, by any of its names; absent for the one that AWS manages for the account.
    pub key: Option<String>,
}

/// When the settings of a table changed, as descriptions tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TableHistory {
    /// When the table was last switched to payment by the request, or made so.
    pub on_demand: Option<Timestamp>,
    /// When its reserved throughput was last raised.
    pub increase: Option<Timestamp>,
    /// When its reserved throughput was last lowered.
    pub decrease: Option<Timestamp>,
    /// How often it was lowered on the day (UTC) of the last time.
    pub decreases: u32,
    /// When its storage class was last changed.
    pub class: Option<Timestamp>,
}

impl TableHistory {
    /// The history of a table that is made now.
    pub fn of_new(table: &TableDef, now: Timestamp) -> Self {
        Self {
            on_demand: (table.billing == Billing::OnDemand).then_some(now),
            ..Self::default()
        }
    }

    /// The history after a change.
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

    /// How often throughput was lowered on the day (UTC) of this moment.
    pub fn decreases_on(&self, now: Timestamp) -> u32 {
        const DAY_SECS: u64 = 24 * 60 * 60;
        let day = |moment: Timestamp| moment.as_secs() / DAY_SECS;
        match self.decrease {
            Some(last) if day(last) == day(now) => self.decreases,
            _ => 0,
        }
    }
}
