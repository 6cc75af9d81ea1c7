//! Rejected requests, lost requests and lost responses, as errors.

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
    /// Rejects or loses an operation on single items before it reaches the engine.
    pub(super) fn reject(&self) -> Result<()> {
        if self.has_fault(FaultKind::Throttle) {
            let error = self.throttled();
            self.record_fault(FaultKind::Throttle, format!("code={}", error.code()));
            return Err(error);
        }
        if self.has_fault(FaultKind::Conflict) {
            self.record_fault(FaultKind::Conflict, String::new());
            return Err(Error::TransactionConflict);
        }
        self.lose_request()
    }

    /// Rejects or loses a transaction with this number of actions before it reaches the engine.
    pub(super) fn reject_transaction(&self, actions: usize) -> Result<()> {
        if self.has_fault(FaultKind::Throttle) {
            let (code, message) = if self.is_provisioned() {
                (CancellationCode::ProvisionedThroughputExceeded, PROVISIONED)
            } else {
                (CancellationCode::ThrottlingError, ON_DEMAND)
            };
            return self.cancel(FaultKind::Throttle, actions, code, message);
        }
        if self.has_fault(FaultKind::Conflict) {
            let message = Error::TransactionConflict.to_string();
            let code = CancellationCode::TransactionConflict;
            return self.cancel(FaultKind::Conflict, actions, code, &message);
        }
        self.lose_request()
    }

    /// Returns the response, or loses it.
    pub(super) fn respond<T>(&self, response: Result<T>) -> Result<T> {
        if !self.has_fault(FaultKind::LostAfter) {
            return response;
        }
        let result = response.err().map_or("success", |error| error.code());
        self.record_fault(FaultKind::LostAfter, format!("result={result}"));
        Err(self.lost())
    }

    fn lose_request(&self) -> Result<()> {
        if !self.has_fault(FaultKind::LostBefore) {
            return Ok(());
        }
        self.record_fault(FaultKind::LostBefore, String::new());
        Err(self.lost())
    }

    /// The error is the same for a lost request and a lost response: the caller cannot distinguish them.
    fn lost(&self) -> Error {
        Error::OutcomeUnknown(format!(
            "the connection was lost before the response arrived: number={} operation={}",
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
        self.random(FaultKind::Throttle, &[1]) & 1 == 0
    }

    /// Cancels a transaction because of one of its actions; each other action is also at fault with probability
    /// 1/4.
    fn cancel(
        &self,
        kind: FaultKind,
        actions: usize,
        code: CancellationCode,
        message: &str,
    ) -> Result<()> {
        let actions = actions as u64;
        let culprit = self.random(kind, &[2]).checked_rem(actions);
        let reasons: Vec<_> = (0..actions)
            .map(|action| {
                if Some(action) == culprit || self.random(kind, &[3, action]) & 3 == 0 {
                    CancellationReason::new(code, message)
                } else {
                    CancellationReason::none()
                }
            })
            .collect();
        let at_fault = reasons.iter().filter(|r| r.code == code).count();
        self.record_fault(
            kind,
            format!("code={code} actions={actions} at_fault={at_fault}"),
        );
        Err(Error::TransactionCanceled { reasons })
    }
}
