//! Protection against requests from web pages.

use crate::support::{Response, call, exchange, start};
use floe_server::{Keys, Options, ServerHandle};

fn loopback() -> Options {
    Options::new()
}

/// Returns the options of a server that other machines can reach.
fn exposed() -> Options {
    Options::new()
        .listen(([0, 0, 0, 0], 0).into())
        .insecure(true)
}

async fn list(server: &ServerHandle, host: &str, more: &[(&str, &str)]) -> Response {
    let mut headers = format!("Host: {host}\r\n");
    for (name, value) in more {
        headers += &format!("{name}: {value}\r\n");
    }
    let text = call("ListTables", "{}").replace("Host: localhost\r\n", &headers);
    let address = ([127, 0, 0, 1], server.local_addr().port()).into();
    exchange(address, &text).await
}

/// Checks which host names a server accepts.
async fn check_hosts(options: Options, hosts: &[(&str, bool)]) {
    let server = start(options).await;
    for (host, is_accepted) in hosts {
        let response = list(&server, host, &[]).await;
        let status = if *is_accepted { 200 } else { 403 };
        assert_eq!(response.status, status, "{host}: {response:?}");
    }
}

#[tokio::test]
async fn only_unforgeable_host_names_are_accepted() {
    check_hosts(
        loopback(),
        &[
            ("localhost", true),
            ("localhost:8000", true),
            ("LocalHost:8000", true),
            ("localhost.", true),
            ("dynamodb.localhost:8000", true),
            ("127.0.0.1", true),
            ("127.0.0.1:8000", true),
            ("127.1.2.3", true),
            ("[::1]:8000", true),
            ("192.168.1.17:8000", true),
            ("0.0.0.0:8000", true),
            ("host.docker.internal:8000", true),
            ("host.containers.internal", true),
            ("evil.com", false),
            ("evil.com:8000", false),
            ("localhost.evil.com", false),
            ("127.0.0.1.evil.com", false),
            ("notlocalhost", false),
            ("evil.host.docker.internal", false),
            ("dynamodb:8000", false),
            ("dynamodb.us-east-1.amazonaws.com", false),
            ("", false),
        ],
    )
    .await;
}

#[tokio::test]
async fn exposed_server_accepts_names_without_a_dot() {
    let hosts = [
        ("dynamodb:8000", true),
        ("floe", true),
        ("localhost:8000", true),
        ("10.0.0.7:8000", true),
        ("evil.com", false),
        ("", false),
    ];
    check_hosts(exposed(), &hosts).await;
}

#[tokio::test]
async fn additional_host_names_can_be_allowed() {
    let options = loopback()
        .allow_host("db.example.com")
        .allow_host("*.internal.example");
    let hosts = [
        ("db.example.com:8000", true),
        ("DB.Example.com", true),
        ("a.internal.example", true),
        ("a.b.internal.example", true),
        ("internal.example", false),
        ("eviltinternal.example", false),
        ("example.com", false),
    ];
    check_hosts(options, &hosts).await;
    check_hosts(loopback().allow_host("*"), &[("evil.com", true)]).await;
}

#[tokio::test]
async fn rejection_names_the_flag_that_allows_the_request() {
    let server = start(loopback()).await;
    let response = list(&server, "db.test:8000", &[]).await;
    assert_eq!(
        response.body,
        "{\"__type\":\"com.amazon.coral.service#AccessDeniedException\",\"message\":\"the host name is not \
         allowed; to accept it, start floe with --allow-host db.test: host=\\\"db.test:8000\\\"\"}"
    );
    let response = list(&server, "localhost", &[("Origin", "https://evil.com")]).await;
    assert_eq!(response.status, 403);
    assert_eq!(
        response.body,
        "{\"__type\":\"com.amazon.coral.service#AccessDeniedException\",\"message\":\"requests from this web page \
         are not allowed; to accept them, start floe with --cors https://evil.com: origin=\\\"https://evil.com\\\"\"}"
    );
    assert_eq!(response.header("access-control-allow-origin"), "");
}

#[tokio::test]
async fn host_in_the_request_line_is_checked() {
    let server = start(loopback()).await;
    let text = call("ListTables", "{}").replace("POST / ", "POST http://evil.com/ ");
    assert_eq!(exchange(server.local_addr(), &text).await.status, 403);
    let text = call("ListTables", "{}").replace("POST / ", "POST http://localhost/ ");
    assert_eq!(exchange(server.local_addr(), &text).await.status, 200);
}

#[tokio::test]
async fn repeated_host_or_origin_is_rejected() {
    let server = start(loopback().cors("*")).await;
    let response = list(&server, "localhost", &[("Host", "localhost")]).await;
    assert_eq!(response.status, 403);
    let origins = [("Origin", "http://a"), ("Origin", "http://b")];
    assert_eq!(list(&server, "localhost", &origins).await.status, 403);
}

#[tokio::test]
async fn pages_need_an_allowed_origin() {
    let cases: [(&[&str], &str, bool); 9] = [
        (&[], "https://evil.com", false),
        (&[], "null", false),
        (&[], "http://localhost:3000", false),
        (&[], "http://localhost", true),
        (&["http://localhost:3000"], "http://localhost:3000", true),
        (&["http://localhost:3000"], "http://localhost:3001", false),
        (&["http://localhost:3000"], "https://localhost:3000", false),
        (&["http://a", "http://b"], "http://b", true),
        (&["*"], "https://evil.com", true),
    ];
    for (allowed, origin, is_accepted) in cases {
        let options = allowed.iter().fold(loopback(), |o, a| o.cors(*a));
        let server = start(options).await;
        let response = list(&server, "localhost", &[("Origin", origin)]).await;
        let status = if is_accepted { 200 } else { 403 };
        assert_eq!(response.status, status, "{allowed:?} {origin}");
    }
}

#[tokio::test]
async fn keys_do_not_replace_the_guard() {
    let server = start(loopback().keys(Keys::one("a", "b"))).await;
    assert_eq!(list(&server, "evil.com", &[]).await.status, 403);
    let response = list(&server, "localhost", &[("Origin", "http://evil.com")]).await;
    assert_eq!(response.status, 403);
}

#[tokio::test]
async fn allowed_page_may_read_the_response() {
    let server = start(loopback().cors("http://localhost:3000")).await;
    let response = list(&server, "localhost", &[("Origin", "http://localhost:3000")]).await;
    assert_eq!(
        response.header("access-control-allow-origin"),
        "http://localhost:3000"
    );
    assert_eq!(response.header("vary"), "Origin");
    assert!(
        response
            .header("access-control-expose-headers")
            .contains("x-amzn-RequestId")
    );
    assert_eq!(response.header("access-control-max-age"), "");
    let response = list(&server, "localhost", &[]).await;
    for name in ["allow-origin", "expose-headers", "max-age"] {
        assert_eq!(response.header(&format!("access-control-{name}")), "");
    }
}

#[tokio::test]
async fn preflight_is_answered_like_dynamodb() {
    let server = start(loopback().cors("*")).await;
    let text = "OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: whatever\r\n\
                Access-Control-Request-Headers: a, b, c\r\nAccess-Control-Request-Method: d\r\n\
                Access-Control-Request-Private-Network: true\r\n\r\n";
    let response = exchange(server.local_addr(), text).await;
    assert_eq!((response.status, response.body.as_str()), (200, ""));
    for (name, value) in [
        ("access-control-allow-origin", "*"),
        ("access-control-allow-headers", "a, b, c"),
        ("access-control-allow-methods", "d"),
        ("access-control-max-age", "172800"),
        ("access-control-allow-private-network", "true"),
        ("content-length", "0"),
    ] {
        assert_eq!(response.header(name), value, "{name}");
    }
    assert_eq!(response.header("x-amzn-requestid").len(), 52);
    // Without an allowed origin, the preflight is rejected.
    let server = start(loopback()).await;
    let response = exchange(server.local_addr(), text).await;
    assert_eq!(response.status, 403);
    assert_eq!(response.header("access-control-allow-origin"), "");
}
