//! Signature Version 4.
//!
//! Like DynamoDB, this module works in two steps. [`claim`] parses the signature; this is done for every request, with
//! or without [`Keys`]. [`Keys::verify`] checks whether it is valid. Checks and messages follow the order of the
//! service.

mod canonical;
mod claim;
mod date;
mod keys;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::api_response::{ApiResponse, coral_error};

pub(crate) use claim::claim;
pub use keys::Keys;

/// Why a signature is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignatureError {
    /// The code of DynamoDB's error.
    code: &'static str,
    message: Cow<'static, str>,
}

impl SignatureError {
    /// The request is not signed.
    const MISSING: Self = Self::new(
        "MissingAuthenticationTokenException",
        "Request is missing Authentication Token",
    );

    /// The access key is unknown.
    const UNKNOWN_KEY: Self = Self::new(
        "UnrecognizedClientException",
        "The security token included in the request is invalid.",
    );

    /// The request was modified after signing, or signed with another secret.
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

    /// A part of the signature is missing.
    fn incomplete(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code: "IncompleteSignatureException",
            message: message.into(),
        }
    }

    /// The signature is invalid.
    fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code: "InvalidSignatureException",
            message: message.into(),
        }
    }

    /// Returns the response to the call.
    pub(crate) fn response(&self) -> ApiResponse {
        coral_error(self.code, &self.message)
    }
}
