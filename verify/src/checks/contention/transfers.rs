//! Accounts between which all tasks transfer money: the sum stays constant, and no account becomes negative.

use std::sync::atomic::{AtomicI64, Ordering};

use floe::model::Schema;
use floe::{Db, Key, Model, Tx};

use super::client::{Client, Count, Fault, patient};
use super::{AuditReport, Workload};

const ACCOUNTS: u64 = 8;
/// Small, so that many transfers are rejected.
const BALANCE: i64 = 100;
const AMOUNT_MAX: u64 = 60;
/// One in this many steps reads all accounts instead.
const SNAPSHOT_EVERY: u64 = 16;

#[derive(Model)]
#[model(table = "Accounts")]
struct Account {
    #[model(key)]
    id: u64,
    #[model(min = 0)]
    balance: i64,
}

/// The acknowledged changes of each account's balance.
#[derive(Default)]
pub(super) struct Transfers([AtomicI64; ACCOUNTS as usize]);

/// A transfer.
#[derive(Clone, Copy)]
struct Transfer {
    source: u64,
    target: u64,
    amount: i64,
    /// Reads both accounts in one snapshot.
    in_one_read: bool,
    /// Checks the balance first; otherwise the model must reject the transfer.
    checks_balance: bool,
    /// Increments the target's balance in the store.
    increments: bool,
}

impl Transfer {
    fn choose(client: &Client) -> Self {
        let pick = |bound| client.random.below(bound);
        let source = pick(ACCOUNTS);
        let amount = i64::try_from(1 + pick(AMOUNT_MAX)).unwrap_or(1);
        Self {
            source,
            target: (source + 1 + pick(ACCOUNTS - 1)) % ACCOUNTS,
            amount,
            in_one_read: pick(2) == 0,
            checks_balance: pick(2) == 0,
            increments: pick(2) == 0,
        }
    }

    async fn make(self, tx: &Tx) -> Result<(), Fault> {
        let (source, target) = if self.in_one_read {
            let keys = (Account::key(self.source)?, Account::key(self.target)?);
            tx.get_many(keys).await?
        } else {
            let source = tx.get::<Account>(self.source).await?;
            (source, tx.get::<Account>(self.target).await?)
        };
        let mut source = source.ok_or_else(|| Fault::missing("Account", self.source))?;
        let mut target = target.ok_or_else(|| Fault::missing("Account", self.target))?;
        if self.checks_balance && source.balance < self.amount {
            return Err(Fault::Refused);
        }
        source.balance -= self.amount;
        if self.increments {
            target.balance.increment_by(self.amount)?;
        } else {
            target.balance += self.amount;
        }
        Ok(())
    }
}

fn all_keys() -> floe::Result<Vec<Key<Account>>> {
    (0..ACCOUNTS).map(Account::key).collect()
}

/// The balances of all accounts in one snapshot.
async fn balances(tx: &Tx) -> Result<Vec<i64>, Fault> {
    let rows = tx.get_many(all_keys()?).await?.into_iter().zip(0..);
    rows.map(|(row, id)| Ok(*row.ok_or_else(|| Fault::missing("Account", id))?.balance))
        .collect()
}

impl Transfers {
    fn acknowledge(&self, id: u64, amount: i64) {
        if let Some(account) = usize::try_from(id).ok().and_then(|id| self.0.get(id)) {
            account.fetch_add(amount, Ordering::Relaxed);
        }
    }

    /// Reads all accounts while transfers run: the sum must be constant.
    async fn read_snapshot(client: &Client) {
        let snapshot = patient!(client).read_only().run(balances).await;
        match snapshot {
            Ok(balances) => {
                client.tally.snapshots.add(1);
                let is_whole = balances.iter().sum::<i64>() == total();
                client.tally.torn.add(u64::from(!is_whole));
            }
            failed => _ = client.record_result(&Count::default(), &failed),
        }
    }
}

fn total() -> i64 {
    BALANCE * i64::try_from(ACCOUNTS).unwrap_or_default()
}

impl Workload for Transfers {
    const NAME: &'static str = "transfers";
    const SCHEMA: &'static Schema = Account::SCHEMA;

    async fn create(&self, db: &Db) -> Result<(), Fault> {
        db.transact(async |tx| {
            for id in 0..ACCOUNTS {
                tx.create(Account {
                    id,
                    balance: BALANCE,
                })?;
            }
            Ok(())
        })
        .await
    }

    async fn step(&self, client: &Client) {
        if client.random.below(SNAPSHOT_EVERY) == 0 {
            return Self::read_snapshot(client).await;
        }
        let transfer = Transfer::choose(client);
        let runs = Count::default();
        let result = patient!(client)
            .run(async |tx| {
                runs.add(1);
                transfer.make(tx).await
            })
            .await;
        if client.record_result(&runs, &result) {
            self.acknowledge(transfer.source, -transfer.amount);
            self.acknowledge(transfer.target, transfer.amount);
        }
    }

    async fn audit(&self, db: &Db) -> Result<AuditReport, Fault> {
        let stored = db.transact(balances).await?;
        let mut findings = AuditReport::default();
        findings.compare("all accounts", stored.iter().sum(), total());
        for ((id, stored), acknowledged) in (0..).zip(stored).zip(&self.0) {
            let expected = BALANCE + acknowledged.load(Ordering::Relaxed);
            let id: u64 = id;
            findings.compare(&format!("account id={id}"), stored, expected);
            findings.overdrawn += u64::from(stored < 0);
        }
        Ok(findings)
    }
}
