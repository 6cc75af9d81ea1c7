//! Signature checks of a server with keys.
//!
//! AWS's published test vectors are in `src/sigv4/tests.rs`.

use std::time::Duration;

use crate::sign::{Call, SignedCall};
use crate::support::{Response, exchange, start};
use floe_server::{Keys, Options, ServerHandle};
use floe_store::Env;
use floe_store::env::{ManualClock, Timestamp};

/// 2015-08-30T12:36:00Z, the time of the signatures.
const SIGNED_AT: u64 = 1_440_938_160;

const MISMATCH: &str = "The request signature we calculated does not match the signature you provided. Check your \
                        AWS Secret Access Key and signing method. Consult the service documentation for details.";

fn options_at(seconds: u64) -> Options {
    let clock = ManualClock::at(Timestamp::from_millis(seconds * 1000));
    let keys = Keys::new([
        ("OTHER", "another secret"),
        ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
    ]);
    Options::new().keys(keys).env(Env::manual(clock, 1))
}

async fn server() -> ServerHandle {
    start(options_at(SIGNED_AT + 60)).await
}

fn check_rejected(response: &Response, code: &str, message: &str) {
    let expected =
        format!("{{\"__type\":\"com.amazon.coral.service#{code}\",\"message\":\"{message}\"}}");
    assert_eq!(response.body, expected);
    assert_eq!(response.status, 400);
}

async fn check(signed: &SignedCall, code: &str, message: &str) {
    let server = server().await;
    let response = exchange(server.local_addr(), &signed.text()).await;
    check_rejected(&response, code, message);
}

fn list() -> Call {
    Call::new("ListTables", "{}")
}

async fn is_accepted(signed: &SignedCall) -> bool {
    let server = server().await;
    let response = exchange(server.local_addr(), &signed.text()).await;
    response.body == r#"{"TableNames":[]}"#
}

#[tokio::test]
async fn requests_signed_with_a_key_are_accepted() {
    assert!(is_accepted(&list().sign()).await);
    let mut other = list();
    other.access_key = "OTHER".to_owned();
    other.secret_key = "another secret".to_owned();
    assert!(is_accepted(&other.sign()).await);
}

#[tokio::test]
async fn signature_formats_are_equivalent() {
    let without_space = list().sign().text().replace(", Sig", ",Sig");
    let without_comma = list().sign().text().replace(", Sig", " Sig");
    let server = server().await;
    for text in [without_space, without_comma] {
        assert_eq!(
            exchange(server.local_addr(), &text).await.status,
            200,
            "{text}"
        );
    }
    let mut spaced = list();
    spaced.set("x-note", "a b");
    spaced.signed.push("x-note".to_owned());
    let mut spaced = spaced.sign();
    spaced.call.set("x-note", "   a     b  ");
    assert!(is_accepted(&spaced).await);
    let mut twice = list();
    twice.headers.push(("x-note".to_owned(), "a".to_owned()));
    twice.headers.push(("x-note".to_owned(), "b".to_owned()));
    twice.signed.push("x-note".to_owned());
    assert!(is_accepted(&twice.sign()).await);
    let mut query = list();
    query.query = "a=1&b=2".to_owned();
    let mut query = query.sign();
    query.call.query = "b=2&a=1".to_owned();
    assert!(is_accepted(&query).await);
    let mut dated = list();
    dated.headers.retain(|(name, _)| name != "x-amz-date");
    dated.signed.retain(|name| name != "x-amz-date");
    dated.set("date", "Sun, 30 Aug 2015 12:36:00 GMT");
    assert!(is_accepted(&dated.sign()).await);
    let mut with_token = list();
    with_token.set("x-amz-security-token", "any");
    with_token.signed.push("x-amz-security-token".to_owned());
    assert!(is_accepted(&with_token.sign()).await);
}

#[tokio::test]
async fn changes_after_signing_are_detected() {
    let signed = list().sign();
    type Change = fn(&mut SignedCall);
    let changes: [(&str, Change); 12] = [
        ("body", |s| s.call.body = "{ }".to_owned()),
        ("no body", |s| s.call.body.clear()),
        ("operation", |s| {
            s.call
                .set("x-amz-target", "DynamoDB_20120810.DescribeLimits");
        }),
        ("host", |s| s.call.set("host", "127.0.0.1")),
        ("content type", |s| {
            s.call.set("content-type", "application/json");
        }),
        ("time", |s| s.call.set("x-amz-date", "20150830T123601Z")),
        ("query", |s| s.call.query = "a=b".to_owned()),
        ("region", |s| {
            s.credential = s.credential.replace("us-east-1", "us-east-2");
        }),
        ("key", |s| {
            s.credential = s.credential.replace("AKIDEXAMPLE", "OTHER");
        }),
        ("names", |s| s.names = s.names.replace("content-type;", "")),
        ("more names", |s| s.names += ";x-more"),
        ("signature", |s| {
            s.signature = s.signature.replace(|_: char| true, "0");
        }),
    ];
    for (name, change) in changes {
        let mut changed = signed.clone();
        change(&mut changed);
        let server = server().await;
        let response = exchange(server.local_addr(), &changed.text()).await;
        assert!(response.body.contains(MISMATCH), "{name}: {response:?}");
    }
}

#[tokio::test]
async fn wrong_secret_and_unknown_key_have_different_errors() {
    let mut wrong = list();
    wrong.secret_key = "a guess".to_owned();
    check(&wrong.sign(), "InvalidSignatureException", MISMATCH).await;
    let mut unknown = list();
    unknown.access_key = "UNKNOWN".to_owned();
    let message = "The security token included in the request is invalid.";
    check(&unknown.sign(), "UnrecognizedClientException", message).await;
}

#[tokio::test]
async fn signature_is_valid_for_15_minutes_before_and_after() {
    let quarter = Duration::from_secs(15 * 60).as_secs();
    for (now, is_valid) in [
        (SIGNED_AT + quarter, true),
        (SIGNED_AT + quarter + 1, false),
        (SIGNED_AT - quarter, true),
        (SIGNED_AT - quarter - 1, false),
    ] {
        let server = start(options_at(now)).await;
        let response = exchange(server.local_addr(), &list().sign().text()).await;
        assert_eq!(response.status == 200, is_valid, "{now}: {response:?}");
    }
    let server = start(options_at(SIGNED_AT + 3600)).await;
    let response = exchange(server.local_addr(), &list().sign().text()).await;
    let message = "Signature expired: 20150830T123600Z is now earlier than 20150830T132100Z (20150830T133600Z - 15 \
                   min.)";
    check_rejected(&response, "InvalidSignatureException", message);
    let server = start(options_at(SIGNED_AT - 3600)).await;
    let response = exchange(server.local_addr(), &list().sign().text()).await;
    let message = "Signature not yet current: 20150830T123600Z is still later than 20150830T115100Z \
                   (20150830T113600Z + 15 min.)";
    check_rejected(&response, "InvalidSignatureException", message);
}

#[tokio::test]
async fn credential_scope_is_checked() {
    let mut call = list();
    call.day = "20150829".to_owned();
    call.service = "s3".to_owned();
    call.terminator = "aws5".to_owned();
    let message = "Credential should be scoped to correct service: 'dynamodb'. Credential should be scoped with a \
                   valid terminator: 'aws4_request', not 'aws5'. Date in Credential scope does not match YYYYMMDD \
                   from ISO-8601 version of date from HTTP: '20150829' != '20150830', from '20150830T123600Z'.";
    check(&call.sign(), "InvalidSignatureException", message).await;

    let mut call = list();
    call.region = "eu-west-1".to_owned();
    assert!(
        is_accepted(&call.sign()).await,
        "the server accepts any region"
    );
    let server = start(options_at(SIGNED_AT).region("us-east-1")).await;
    let response = exchange(server.local_addr(), &call.sign().text()).await;
    let message = "Credential should be scoped to a valid region, not 'eu-west-1'.";
    check_rejected(&response, "InvalidSignatureException", message);
}

#[tokio::test]
async fn malformed_signature_is_rejected() {
    let mut signed = list().sign();
    signed.algorithm = "AWS4-HMAC-SHA1".to_owned();
    let message = "Unsupported AWS 'algorithm': 'AWS4-HMAC-SHA1' (only AWS4-HMAC-SHA256 for now). ";
    check(&signed, "IncompleteSignatureException", message).await;

    let mut signed = list().sign();
    signed.credential = "a/b/c/d".to_owned();
    let message = "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, got \
                   'a/b/c/d'";
    check(&signed, "IncompleteSignatureException", message).await;

    let mut call = list();
    call.set("x-amz-date", "201");
    let message = "Date must be in ISO-8601 'basic format'. Got '201'. See http://en.wikipedia.org/wiki/ISO_8601";
    check(&call.sign(), "IncompleteSignatureException", message).await;
}

#[tokio::test]
async fn host_and_target_must_be_signed() {
    for (name, shown) in [("host", "Host"), ("x-amz-target", "X-Amz-Target")] {
        let mut call = list();
        call.signed.retain(|signed| signed != name);
        let message = format!("'{shown}' must be a 'SignedHeader' in the AWS Authorization.");
        check(&call.sign(), "InvalidSignatureException", &message).await;
    }
    for hash in ["UNSIGNED-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"] {
        let mut call = list();
        call.set("x-amz-content-sha256", hash);
        call.signed.push("x-amz-content-sha256".to_owned());
        let message = "The payload must be signed: 'X-Amz-Content-SHA256' must be its hash.";
        check(&call.sign(), "InvalidSignatureException", message).await;
    }
}

#[tokio::test]
async fn query_signature_is_rejected() {
    let mut call = list();
    call.query = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a&X-Amz-Signature=b&\
                  X-Amz-SignedHeaders=host&X-Amz-Date=c"
        .to_owned();
    let text = call.sign().text();
    let (head, rest) = text.split_once("authorization: ").unwrap();
    let (_, rest) = rest.split_once("\r\n").unwrap();
    let server = server().await;
    let response = exchange(server.local_addr(), &format!("{head}{rest}")).await;
    let message = "This server does not accept signatures in the query string: sign with the Authorization header.";
    check_rejected(&response, "InvalidSignatureException", message);
}

#[tokio::test]
async fn unauthenticated_callers_see_protocol_errors_only() {
    let server = server().await;
    let mut call = list();
    call.body = "{".to_owned();
    call.secret_key = "a guess".to_owned();
    let response = exchange(server.local_addr(), &call.sign().text()).await;
    assert!(response.body.contains("SerializationException"));
    let mut call = Call::new("DropEverything", "{}");
    call.secret_key = "a guess".to_owned();
    let response = exchange(server.local_addr(), &call.sign().text()).await;
    assert!(response.body.contains("UnknownOperationException"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_body_is_verified() {
    let padded = format!("{{{}}}", " ".repeat(2_000_000));
    assert!(is_accepted(&Call::new("ListTables", &padded).sign()).await);
    let mut changed = Call::new("ListTables", &padded).sign();
    changed.call.body = padded.replacen(' ', "\n", 1);
    assert!(!is_accepted(&changed).await);
}
