//! Refusals and losses: the errors that stand for an answer.

use floe_store::error::{CancellationCode, CancellationReason};
use floe_store::{Error, Result};

use super::control::Attempt;
use super::kind::FaultKind;

const PROVISIONED: &str = "The level of configured provisioned throughput for the table was exceeded. \
    Consider increasing your provisioning level with the UpdateTable API.";
const ON_DEMAND: &str = "Throughput exceeds the current capacity of your table or index. DynamoDB is \
    automatically scaling your table or index so please try again shortly. If exceptions persist, \
    check if you have a hot key: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/\
    bp-partition-key-design.html";
const STREAM_RATE: &str = "Rate exceeded";

impl Attempt<'_> {
    /// What keeps an operation on single items from reaching the engine.
    pub(super) fn refuse(&self) -> Result<()> {
        if self.meets(FaultKind::Throttle) {
            let error = self.throttled();
            self.struck(FaultKind::Throttle, format!("code={}", error.code()));
            return Err(error);
        }
        if self.meets(FaultKind::Conflict) {
            self.struck(FaultKind::Conflict, String::new());
            return Err(Error::TransactionConflict);
        }
        self.lose_request()
    }

    /// What keeps a transaction of so many actions from reaching the engine.
    pub(super) fn refuse_transaction(&self, actions: usize) -> Result<()> {
        if self.meets(FaultKind::Throttle) {
            let (code, message) = if self.is_provisioned() {
                (CancellationCode::ProvisionedThroughputExceeded, PROVISIONED)
            } else {
                (CancellationCode::ThrottlingError, ON_DEMAND)
            };
            return self.cancel(FaultKind::Throttle, actions, code, message);
        }
        if self.meets(FaultKind::Conflict) {
            let message = Error::TransactionConflict.to_string();
            let code = CancellationCode::TransactionConflict;
            return self.cancel(FaultKind::Conflict, actions, code, &message);
        }
        self.lose_request()
    }

    /// What becomes of the answer on its way back.
    pub(super) fn answer<T>(&self, answer: Result<T>) -> Result<T> {
        if !self.meets(FaultKind::LostAfter) {
            return answer;
        }
        let answered = answer.err().map_or("success", |error| error.code());
        self.struck(FaultKind::LostAfter, format!("answered={answered}"));
        Err(self.lost())
    }

    fn lose_request(&self) -> Result<()> {
        if !self.meets(FaultKind::LostBefore) {
            return Ok(());
        }
        self.struck(FaultKind::LostBefore, String::new());
        Err(self.lost())
    }

    /// The same whether the request or its answer was lost: the caller cannot know.
    fn lost(&self) -> Error {
        Error::OutcomeUnknown(format!(
            "the connection was lost before the answer came: number={} operation={}",
            self.number(),
            self.operation()
        ))
    }

    fn throttled(&self) -> Error {
        if self.operation().is_of_stream() {
            Error::Throttling(STREAM_RATE.to_owned())
        } else if self.is_provisioned() {
            Error::ProvisionedThroughputExceeded(PROVISIONED.to_owned())
        } else {
            Error::Throttling(ON_DEMAND.to_owned())
        }
    }

    fn is_provisioned(&self) -> bool {
        self.roll(FaultKind::Throttle, &[1]) & 1 == 0
    }

    /// Cancels a transaction because of one of its actions, and of each other with a chance of a quarter.
    fn cancel(
        &self,
        kind: FaultKind,
        actions: usize,
        code: CancellationCode,
        message: &str,
    ) -> Result<()> {
        let actions = actions as u64;
        let culprit = self.roll(kind, &[2]).checked_rem(actions);
        let reasons: Vec<_> = (0..actions)
            .map(|action| {
                if Some(action) == culprit || self.roll(kind, &[3, action]) & 3 == 0 {
                    CancellationReason::new(code, message)
                } else {
                    CancellationReason::none()
                }
            })
            .collect();
        let at_fault = reasons.iter().filter(|r| r.code == code).count();
        self.struck(
            kind,
            format!("code={code} actions={actions} at_fault={at_fault}"),
        );
        Err(Error::TransactionCanceled { reasons })
    }
}
