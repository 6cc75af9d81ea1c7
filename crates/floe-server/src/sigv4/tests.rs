//! The signature test vectors published by AWS.

use hyper::Request;
use hyper::header::HeaderName;
use sha2::{Digest, Sha256};

use super::canonical::{canonical_request, hex};
use super::claim::{Claim, claim};
use super::keys::Keys;

/// A test case: request line, headers besides host and date, body, and the expected signed headers and signature in the
/// `Authorization` header.
struct Vector {
    name: &'static str,
    line: &'static str,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
    signed_headers: &'static str,
    signature: &'static str,
}

const TOKEN: &str = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";

const VECTORS: &[Vector] = &[
    Vector {
        name: "get-vanilla",
        line: "GET /",
        headers: &[],
        body: "",
        signed_headers: "host;x-amz-date",
        signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
    },
    Vector {
        name: "post-vanilla",
        line: "POST /",
        headers: &[],
        body: "",
        signed_headers: "host;x-amz-date",
        signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
    },
    Vector {
        name: "get-header-key-duplicate",
        line: "GET /",
        headers: &[
            ("my-header1", "value2"),
            ("my-header1", "value2"),
            ("my-header1", "value1"),
        ],
        body: "",
        signed_headers: "host;my-header1;x-amz-date",
        signature: "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea",
    },
    Vector {
        name: "get-header-value-order",
        line: "GET /",
        headers: &[
            ("my-header1", "value4"),
            ("my-header1", "value1"),
            ("my-header1", "value3"),
            ("my-header1", "value2"),
        ],
        body: "",
        signed_headers: "host;my-header1;x-amz-date",
        signature: "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01",
    },
    Vector {
        name: "get-header-value-trim",
        line: "GET /",
        headers: &[("my-header1", " value1"), ("my-header2", " \"a   b   c\"")],
        body: "",
        signed_headers: "host;my-header1;my-header2;x-amz-date",
        signature: "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
    },
    Vector {
        name: "get-vanilla-empty-query-key",
        line: "GET /?Param1=value1",
        headers: &[],
        body: "",
        signed_headers: "host;x-amz-date",
        signature: "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb",
    },
    Vector {
        name: "get-vanilla-query-order-key-case",
        line: "GET /?Param2=value2&Param1=value1",
        headers: &[],
        body: "",
        signed_headers: "host;x-amz-date",
        signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    },
    Vector {
        name: "get-vanilla-query-order-value",
        line: "GET /?Param1=value2&Param1=value1",
        headers: &[],
        body: "",
        signed_headers: "host;x-amz-date",
        signature: "5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694",
    },
    Vector {
        name: "get-vanilla-query-unreserved",
        line: "GET /?-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz=-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        headers: &[],
        body: "",
        signed_headers: "host;x-amz-date",
        signature: "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197",
    },
    Vector {
        name: "get-vanilla-utf8-query",
        line: "GET /?%E1%88%B4=bar",
        headers: &[],
        body: "",
        signed_headers: "host;x-amz-date",
        signature: "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04",
    },
    Vector {
        name: "post-header-key-sort",
        line: "POST /",
        headers: &[("my-header1", "value1")],
        body: "",
        signed_headers: "host;my-header1;x-amz-date",
        signature: "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c",
    },
    Vector {
        name: "post-header-value-case",
        line: "POST /",
        headers: &[("my-header1", "VALUE1")],
        body: "",
        signed_headers: "host;my-header1;x-amz-date",
        signature: "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d",
    },
    Vector {
        name: "post-sts-header-before",
        line: "POST /",
        headers: &[("x-amz-security-token", TOKEN)],
        body: "",
        signed_headers: "host;x-amz-date;x-amz-security-token",
        signature: "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
    },
    Vector {
        name: "post-vanilla-query",
        line: "POST /?Param1=value1",
        headers: &[],
        body: "",
        signed_headers: "host;x-amz-date",
        signature: "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11",
    },
    Vector {
        name: "post-x-www-form-urlencoded",
        line: "POST /",
        headers: &[("content-type", "application/x-www-form-urlencoded")],
        body: "Param1=value1",
        signed_headers: "content-type;host;x-amz-date",
        signature: "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
    },
    Vector {
        name: "post-x-www-form-urlencoded-parameters",
        line: "POST /",
        headers: &[(
            "content-type",
            "application/x-www-form-urlencoded; charset=utf8",
        )],
        body: "Param1=value1",
        signed_headers: "content-type;host;x-amz-date",
        signature: "1a72ec8f64bd914b0e42e42607c7fbce7fb2c7465f63e3092b3b0d39fa77a6fe",
    },
];

impl Vector {
    fn request(&self, signature: &str) -> Request<()> {
        let (method, uri) = self.line.split_once(' ').unwrap();
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
             SignedHeaders={}, Signature={signature}",
            self.signed_headers
        );
        let mut request = Request::builder()
            .method(method)
            .uri(uri)
            .header("host", "example.amazonaws.com")
            .header("x-amz-date", "20150830T123600Z")
            .header("authorization", authorization);
        for (name, value) in self.headers {
            request = request.header(HeaderName::from_static(name), *value);
        }
        request.body(()).unwrap()
    }

    fn is_valid(&self, signature: &str) -> bool {
        let keys = Keys::one("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
        let request = self.request(signature);
        let Claim::Header(signed) = claim(&request).unwrap() else {
            panic!("{}: not in the header", self.name);
        };
        let payload_hash = hex(&Sha256::digest(self.body));
        let canonical = canonical_request(&request, signed.signed_headers, &payload_hash);
        keys.check_as(&signed, &canonical).is_ok()
    }
}

#[test]
fn published_signatures_are_valid() {
    for vector in VECTORS {
        assert!(vector.is_valid(vector.signature), "{}", vector.name);
    }
}

#[test]
fn altered_signatures_are_rejected() {
    for vector in VECTORS {
        let upper = vector.signature.to_uppercase();
        let flipped = vector.signature.replacen(|_: char| true, "g", 1);
        let (last, rest) = vector.signature.split_at(63);
        let turned = format!("{last}{}", if rest == "0" { "1" } else { "0" });
        for signature in [&flipped, &turned, last, "", "0"] {
            if !signature.is_empty() {
                assert!(!vector.is_valid(signature), "{} {signature}", vector.name);
            }
        }
        // Hexadecimal digits may have either case.
        assert!(vector.is_valid(&upper));
    }
}
