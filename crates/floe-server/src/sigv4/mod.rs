//! Signature Version 4: who calls, and whether what came is what was sent.
//!
//! DynamoDB looks at a signature in two steps, and so does this module. [`claim`] reads what a request says about
//! itself; that is asked of every request, with or without [`Keys`]. [`Keys::verify`] finds out whether it is true.
//! Checks and messages come in the order of the service.

mod canonical;
mod claim;
mod date;
mod keys;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::answer::{Answer, coral_error};

pub(crate) use claim::claim;
pub use keys::Keys;

/// Why a caller is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The name of DynamoDB's error.
    code: &'static str,
    message: Cow<'static, str>,
}

impl Refusal {
    /// There is no signature at all.
    const MISSING: Self = Self::new(
        "MissingAuthenticationTokenException",
        "Request is missing Authentication Token",
    );

    /// There is no such key.
    const UNKNOWN_KEY: Self = Self::new(
        "UnrecognizedClientException",
        "The security token included in the request is invalid.",
    );

    /// The request is another one than was signed, or was signed with another secret.
    const MISMATCH: Self = Self::new(
        "InvalidSignatureException",
        "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access \
         Key and signing method. Consult the service documentation for details.",
    );

    const fn new(code: &'static str, message: &'static str) -> Self {
        Self {
            code,
            message: Cow::Borrowed(message),
        }
    }

    /// The signature lacks a part.
    fn incomplete(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code: "IncompleteSignatureException",
            message: message.into(),
        }
    }

    /// The signature is wrong.
    fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code: "InvalidSignatureException",
            message: message.into(),
        }
    }

    /// The answer to the call.
    pub(crate) fn answer(&self) -> Answer {
        coral_error(self.code, &self.message)
    }
}
