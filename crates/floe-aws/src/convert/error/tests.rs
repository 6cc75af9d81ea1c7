//! Codes and statuses of the service are converted to errors.

use super::*;

#[track_caller]
fn check(code: &str, status: u16, expected: &Error) {
    let code = Some(code).filter(|code| !code.is_empty());
    assert_eq!(
        from_code(code, "why".to_owned(), status),
        *expected,
        "{code:?}"
    );
}

#[test]
fn error_codes_round_trip() {
    let why = || "why".to_owned();
    for error in [
        Error::Validation(why()),
        Error::TransactionConflict,
        Error::TransactionInProgress,
        Error::IdempotentParameterMismatch,
        Error::ResourceNotFound(why()),
        Error::ResourceInUse(why()),
        Error::LimitExceeded(why()),
        Error::ItemCollectionSizeLimitExceeded,
        Error::ProvisionedThroughputExceeded(why()),
        Error::Throttling(why()),
        Error::TrimmedDataAccess(why()),
        Error::ExpiredIterator(why()),
    ] {
        check(error.code(), 400, &error);
    }
    check("InternalServerError", 500, &Error::Internal(why()));
}

/// A write with this response may have been applied: DynamoDB does not exclude it.
#[test]
fn unavailable_service_leaves_the_outcome_open() {
    for code in ["ServiceUnavailable", "ServiceUnavailableException"] {
        let error = Error::Internal(format!("{code}: why"));
        assert!(error.is_retryable() && error.may_have_applied());
        check(code, 503, &error);
    }
}

#[test]
fn access_denied_contains_the_code() {
    for code in [
        "AccessDeniedException",
        "UnrecognizedClientException",
        "InvalidSignatureException",
        "MissingAuthenticationTokenException",
        "IncompleteSignatureException",
        "ExpiredTokenException",
        "ExpiredToken",
        "SignatureDoesNotMatch",
    ] {
        check(code, 400, &Error::AccessDenied(format!("{code}: why")));
    }
}

#[test]
fn unknown_codes_are_converted_by_status() {
    let text = || "OddException: why".to_owned();
    check("OddException", 400, &Error::Validation(text()));
    check("OddException", 403, &Error::AccessDenied(text()));
    check("OddException", 408, &Error::Internal(text()));
    check("OddException", 429, &Error::Throttling(text()));
    check("OddException", 503, &Error::Internal(text()));
    check("", 502, &Error::Internal("why".to_owned()));
    assert_eq!(
        from_code(None, String::new(), 502),
        Error::Internal("no code and no message: status=502".to_owned())
    );
    let unknown = Error::Unsupported("why".to_owned());
    check("UnknownOperationException", 400, &unknown);
}

#[test]
fn cancellation_reasons_keep_order_and_items() {
    let reason = |code: &str| types::CancellationReason::builder().code(code).build();
    let with_item = types::CancellationReason::builder()
        .code("ConditionalCheckFailed")
        .message("The conditional request failed")
        .item("id", types::AttributeValue::S("a".to_owned()))
        .build();
    let error = TransactionCanceledException::builder()
        .cancellation_reasons(reason("None"))
        .cancellation_reasons(with_item)
        .cancellation_reasons(reason("TransactionConflict"))
        .cancellation_reasons(reason("SomethingNew"))
        .build();
    let Ok(Error::TransactionCanceled { reasons }) = canceled(error) else {
        panic!("a canceled transaction");
    };
    use CancellationCode::*;
    let codes: Vec<_> = reasons.iter().map(|reason| reason.code).collect();
    assert_eq!(
        codes,
        [
            None,
            ConditionalCheckFailed,
            TransactionConflict,
            ValidationError
        ]
    );
    let item = floe_store::Item::new().with("id", "a");
    assert_eq!(reasons[1].item, Some(item));
}
