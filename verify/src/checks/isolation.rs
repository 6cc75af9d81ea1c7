//! `verify isolation`: transactions are strictly serializable.

use std::collections::BTreeSet;
use std::time::Instant;

use clap::{ArgMatches, Args, FromArgMatches};
use floe_store::expr::{Condition, Path, SetOperand, Update};
use floe_store::op::{
    ConditionCheck, TransactGet, TransactGetItems, TransactWrite, TransactWriteItems, UpdateItem,
};
use floe_store::{Error, Item, Result, Value};
use floe_testkit::history::isolation::{self, Level, OpenTransaction, Recorder, Status};

use super::concurrent::{self, Plan, TABLE, key_of, run_clients};
use super::figures::{Figures, Verdict};
use super::planted::Bug;
use super::{Check, CheckRun, Common};
use crate::{Failure, out};

pub(super) const CHECK: Check = Check {
    name: "isolation",
    proves: "multi-item transactions of concurrent clients are strictly serializable",
    how: "Clients read several lists and append to them: they read in one transaction and write in another, \
          on the\ncondition that nothing they read has changed. The contents of the lists that were read determine the \
          order of\nthe transactions; a cycle in that order is a violation.",
    flags: Flags::augment_args,
    planted: &[Bug::SplitTransaction],
    prepare,
};

/// Maximum number of lists in one transaction.
const LISTS_MAX: u64 = 4;
/// Number of transactions after which the oldest list in use is replaced by a new one, so that lists stay short.
const TRANSACTIONS_PER_LIST: u64 = 50;

/// The flags of the check.
#[derive(Debug, Args)]
struct Flags {
    /// Total number of transactions [default: 250000; quick: 50000]
    #[arg(long, value_name = "N")]
    operations: Option<u64>,

    /// Concurrent clients
    #[arg(long, value_name = "N", default_value_t = 32)]
    clients: u64,

    /// Number of lists in use at a time
    #[arg(long, value_name = "N", default_value_t = 24)]
    keys: u64,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<CheckRun, Failure> {
    let flags = Flags::from_arg_matches(flags)?;
    let plan = Plan {
        seed: common.seed,
        planted: common.planted,
        operations: flags.operations.unwrap_or(common.pick(50_000, 250_000)),
        clients: flags.clients,
        keys: flags.keys,
    };
    Ok(Box::new(move || run(plan)))
}

fn run(plan: Plan) -> Result<Verdict, Failure> {
    let started = Instant::now();
    let recorder = run_clients::<Recorder<u64, u64>, _>(plan, run_client)?;
    let history = recorder.into_transactions();
    let recorded = started.elapsed();
    let report = isolation::check(&history, Level::StrictSerializable);
    if !report.is_ok() && plan.planted.is_none() {
        out::note(&report.to_string());
    }
    let aborted = history
        .iter()
        .filter(|t| t.status == Status::Aborted)
        .count();
    let figures = Figures::new(CHECK.name)
        .put("seed", plan.seed)
        .put("transactions", report.transactions)
        .put("clients", plan.clients)
        .put("committed", report.committed)
        .put("aborted", aborted)
        .put("unknown", report.unknown)
        .put("dependencies", report.dependencies)
        .put("violations", report.anomalies.len())
        .put("play_ms", recorded.as_millis())
        .put("check_ms", (started.elapsed() - recorded).as_millis());
    let is_complete = report.transactions as u64 >= plan.operations && report.unknown == 0;
    let found = plan.planted.map(|_| !report.is_ok());
    Ok(Verdict::new(figures, report.is_ok() && is_complete, found))
}

/// A list as read by a transaction.
struct List {
    key: u64,
    values: Vec<u64>,
    is_there: bool,
}

type Client = concurrent::Client<Recorder<u64, u64>>;

async fn run_client(client: Client) -> Result<()> {
    while let Some(begun) = client.begin() {
        let keys = client.choose_keys(begun);
        match client.random.below(10) {
            0..3 => client.read_only(&keys).await?,
            3..5 => client.append_blindly(&keys, begun).await?,
            _ => client.read_and_append(&keys, begun).await?,
        }
    }
    Ok(())
}

impl Client {
    /// Chooses some of the lists in use.
    fn choose_keys(&self, begun: u64) -> BTreeSet<u64> {
        let oldest = begun / TRANSACTIONS_PER_LIST;
        let count = 1 + self.random.below(LISTS_MAX);
        (0..count)
            .map(|_| oldest + self.random.below(self.plan.keys))
            .collect()
    }

    async fn read_only(&self, keys: &BTreeSet<u64>) -> Result<()> {
        let mut transaction = self.recorder.begin(self.number);
        for list in self.read(keys).await? {
            transaction.read(list.key, list.values);
        }
        transaction.committed();
        Ok(())
    }

    async fn append_blindly(&self, keys: &BTreeSet<u64>, value: u64) -> Result<()> {
        let mut transaction = self.recorder.begin(self.number);
        let actions = keys.iter().map(|key| {
            transaction.append(*key, value);
            TransactWrite::Update(append(*key, value))
        });
        let input = TransactWriteItems::new(actions.collect::<Vec<_>>());
        self.commit(transaction, input).await
    }

    /// Reads all lists and appends to some, on the condition that none has changed.
    async fn read_and_append(&self, keys: &BTreeSet<u64>, value: u64) -> Result<()> {
        let mut transaction = self.recorder.begin(self.number);
        let mut actions = Vec::new();
        for (position, list) in self.read(keys).await?.into_iter().enumerate() {
            let unchanged = list.unchanged();
            let is_appended = position == 0 || self.random.below(2) == 0;
            transaction.read(list.key, list.values);
            actions.push(if is_appended {
                transaction.append(list.key, value);
                TransactWrite::Update(append(list.key, value).condition(unchanged))
            } else {
                TransactWrite::Check(ConditionCheck::new(TABLE, key_of(list.key), unchanged))
            });
        }
        self.commit(transaction, TransactWriteItems::new(actions))
            .await
    }

    async fn commit(
        &self,
        transaction: OpenTransaction<'_, u64, u64>,
        input: TransactWriteItems,
    ) -> Result<()> {
        match self.engine.transact_write_items(input).await {
            Ok(_) => transaction.committed(),
            Err(error) if is_refusal(&error) => transaction.aborted(),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn read(&self, keys: &BTreeSet<u64>) -> Result<Vec<List>> {
        let gets = keys.iter().map(|key| TransactGet::new(TABLE, key_of(*key)));
        let output = self
            .engine
            .transact_get_items(TransactGetItems::new(gets))
            .await?;
        let items = keys.iter().zip(output.items);
        Ok(items
            .map(|(key, item)| List::from(*key, item.as_ref()))
            .collect())
    }
}

impl List {
    fn from(key: u64, item: Option<&Item>) -> Self {
        let values = item.and_then(|item| item.get("values")?.as_l());
        let number = |value: &Value| value.as_n().and_then(|n| n.to_u64());
        Self {
            key,
            values: values
                .unwrap_or_default()
                .iter()
                .filter_map(number)
                .collect(),
            is_there: item.is_some(),
        }
    }

    /// A condition that the list has not changed. Lists only grow, so equal length means equal content.
    fn unchanged(&self) -> Condition {
        if self.is_there {
            Condition::eq(Path::attribute("length"), self.values.len() as u64)
        } else {
            Condition::attribute_not_exists("key")
        }
    }
}

fn append(key: u64, value: u64) -> UpdateItem {
    let empty = SetOperand::Value(Value::L(Vec::new()));
    let values = SetOperand::if_not_exists("values", empty);
    let added = SetOperand::Value(Value::L(vec![value.into()]));
    let update = Update::new()
        .set("values", SetOperand::list_append(values, added))
        .set_sum("length", SetOperand::if_not_exists("length", 0), 1);
    UpdateItem::new(TABLE, key_of(key), update)
}

fn is_refusal(error: &Error) -> bool {
    matches!(
        error,
        Error::TransactionCanceled { .. } | Error::TransactionConflict
    )
}
