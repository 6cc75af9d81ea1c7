//! `verify linear`: each key behaves as if its operations happened one after the other, each at
//! some moment between its request and its answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use clap::{ArgMatches, Args, FromArgMatches};
use floe_store::expr::{Condition, Path, Update};
use floe_store::op::{
    DeleteItem, GetItem, PutItem, ReturnValues, TransactGet, TransactGetItems, UpdateItem,
    WriteItem,
};
use floe_store::{Error, Item, Result};
use floe_testkit::history::linear::{self, Recorder, RegisterOp};

use super::concurrent::{Client, Plan, TABLE, key_of, play};
use super::figures::{Figures, Verdict};
use super::planted::Bug;
use super::{Check, Common, Work};
use crate::{Failure, out};

pub(super) const CHECK: Check = Check {
    name: "linear",
    proves: "conditional operations of concurrent clients are linearizable",
    how: "Clients put, compare and set, delete and read a few keys of a directory at once, mostly \
          on\nconditions. The history of all requests and answers is then searched for an order \
          that explains it.",
    flags: Flags::augment_args,
    planted: &[Bug::StaleRead],
    prepare,
};

/// The flags of the check.
#[derive(Debug, Args)]
struct Flags {
    /// Operations in all [default: 500000; quick: 50000]
    #[arg(long, value_name = "N")]
    operations: Option<u64>,

    /// Clients at once
    #[arg(long, value_name = "N", default_value_t = 32)]
    clients: u64,

    /// Keys that they share
    #[arg(long, value_name = "N", default_value_t = 100)]
    keys: u64,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<Work, Failure> {
    let flags = Flags::from_arg_matches(flags)?;
    let plan = Plan {
        seed: common.seed,
        planted: common.planted,
        operations: flags.operations.unwrap_or(common.pick(50_000, 500_000)),
        clients: flags.clients,
        keys: flags.keys,
    };
    Ok(Box::new(move || run(plan)))
}

fn run(plan: Plan) -> Result<Verdict, Failure> {
    let started = Instant::now();
    let recorder: Recorder<u64, Operation> = play(plan, |client| Player::new(client).run())?;
    let history = recorder.into_events();
    let played = started.elapsed();
    let report = linear::check(&history);
    if !report.is_linearizable() && plan.planted.is_none() {
        out::note(&report.to_string());
    }
    let refused = history.iter().filter(|event| is_refusal(&event.operation));
    let figures = Figures::new(CHECK.name)
        .put("seed", plan.seed)
        .put("operations", report.operations)
        .put("clients", plan.clients)
        .put("keys", report.keys)
        .put("refused", refused.count())
        .put("unknown", report.unknown)
        .put("violations", report.violations.len())
        .put("undecided", report.undecided.len())
        .put("play_ms", played.as_millis())
        .put("check_ms", (started.elapsed() - played).as_millis());
    let is_complete = report.operations as u64 >= plan.operations && report.unknown == 0;
    let found = plan.planted.map(|_| !report.violations.is_empty());
    Ok(Verdict::new(
        figures,
        report.is_linearizable() && is_complete,
        found,
    ))
}

type Operation = RegisterOp<u64>;

/// A client, and what it knows.
struct Player {
    client: Client<Recorder<u64, Operation>>,
    /// How many values the client has made up.
    values: u64,
    /// What each key held when the client last looked, which it expects to find again.
    seen: HashMap<u64, Option<u64>>,
}

impl Player {
    fn new(client: Client<Recorder<u64, Operation>>) -> Self {
        Self {
            client,
            values: 0,
            seen: HashMap::new(),
        }
    }

    async fn run(mut self) -> Result<()> {
        while self.client.begin().is_some() {
            let key = self.client.random.below(self.client.plan.keys);
            let seen = self.seen.get(&key).copied().flatten();
            match self.client.random.below(100) {
                0..25 => self.read(key, false).await?,
                25..35 => self.read(key, true).await?,
                35..50 => self.swap(key, None, true).await?,
                50..75 => self.swap(key, seen, true).await?,
                75..85 => self.swap(key, seen, false).await?,
                85..95 => self.overwrite(key, true).await?,
                _ => self.overwrite(key, false).await?,
            }
        }
        Ok(())
    }

    async fn read(&mut self, key: u64, by_transaction: bool) -> Result<()> {
        let recorder = Arc::clone(&self.client.recorder);
        let call = recorder.call(self.client.number, key, None);
        let item = if by_transaction {
            let input = TransactGetItems::new([TransactGet::new(TABLE, key_of(key))]);
            let output = self.client.engine.transact_get_items(input).await?;
            output.items.into_iter().next().flatten()
        } else {
            let input = GetItem::new(TABLE, key_of(key));
            self.client.engine.get_item(input).await?.item
        };
        let found = value_of(item.as_ref());
        call.returned(RegisterOp::Read(found));
        self.seen.insert(key, found);
        Ok(())
    }

    /// Sets or removes the value if it is the expected one.
    async fn swap(&mut self, key: u64, expected: Option<u64>, is_set: bool) -> Result<()> {
        let new = is_set.then(|| self.make_up());
        let condition = match expected {
            Some(value) => Condition::eq(Path::attribute("value"), value),
            None => Condition::attribute_not_exists("key"),
        };
        let write = self.write(key, new, Some(condition));
        let recorder = Arc::clone(&self.client.recorder);
        let effect = RegisterOp::Swap { expected, new };
        let call = recorder.call(self.client.number, key, Some(effect.clone()));
        match self.client.engine.write_item(write).await {
            Ok(_) => {
                call.returned(effect);
                self.seen.insert(key, new);
            }
            Err(Error::ConditionalCheckFailed { item }) => {
                let found = value_of(item.as_deref());
                call.returned(RegisterOp::RefusedBy { expected, found });
                self.seen.insert(key, found);
            }
            Err(error) => {
                call.lost();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Sets or removes the value whatever it is, and is told what it was.
    async fn overwrite(&mut self, key: u64, is_set: bool) -> Result<()> {
        let new = is_set.then(|| self.make_up());
        let write = self.write(key, new, None);
        let recorder = Arc::clone(&self.client.recorder);
        let effect = new.map_or(RegisterOp::Delete, RegisterOp::Write);
        let call = recorder.call(self.client.number, key, Some(effect));
        let output = self.client.engine.write_item(write).await?;
        let expected = value_of(output.attributes.as_ref());
        call.returned(RegisterOp::Swap { expected, new });
        self.seen.insert(key, new);
        Ok(())
    }

    fn write(&self, key: u64, new: Option<u64>, condition: Option<Condition>) -> WriteItem {
        let key = key_of(key);
        let old = ReturnValues::AllOld;
        match new {
            Some(value) if self.client.random.below(2) == 0 => {
                let mut put = PutItem::new(TABLE, key.with("value", value));
                put.condition = condition;
                put.return_values(old).return_old_on_failure().into()
            }
            Some(value) => {
                let mut update = UpdateItem::new(TABLE, key, Update::new().set("value", value));
                update.condition = condition;
                update.return_values(old).return_old_on_failure().into()
            }
            None => {
                let mut delete = DeleteItem::new(TABLE, key);
                delete.condition = condition;
                delete.return_values(old).return_old_on_failure().into()
            }
        }
    }

    /// A value that no other write has.
    fn make_up(&mut self) -> u64 {
        self.values += 1;
        self.client.number * 1_000_000_000 + self.values
    }
}

fn value_of(item: Option<&Item>) -> Option<u64> {
    item?.get("value")?.as_n()?.to_u64()
}

fn is_refusal(operation: &Operation) -> bool {
    matches!(operation, RegisterOp::RefusedBy { .. })
}
