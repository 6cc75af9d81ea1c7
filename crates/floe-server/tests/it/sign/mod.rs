//! Signs requests like a client, implemented from AWS's description independently of the server.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// A call to be signed. Each part can be changed before or after signing.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) access_key: String,
    pub(crate) secret_key: String,
    pub(crate) date: String,
    pub(crate) day: String,
    pub(crate) region: String,
    pub(crate) service: String,
    pub(crate) terminator: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) signed: Vec<String>,
    pub(crate) query: String,
    pub(crate) body: String,
}

impl Call {
    /// Returns a call at 2015-08-30T12:36:00Z.
    pub(crate) fn new(operation: &str, body: &str) -> Self {
        let headers = [
            ("content-type", "application/x-amz-json-1.0"),
            ("host", "localhost"),
            ("x-amz-date", "20150830T123600Z"),
            ("x-amz-target", &format!("DynamoDB_20120810.{operation}")),
        ];
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self {
            access_key: "AKIDEXAMPLE".to_owned(),
            secret_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
            date: "20150830T123600Z".to_owned(),
            day: "20150830".to_owned(),
            region: "us-east-1".to_owned(),
            service: "dynamodb".to_owned(),
            terminator: "aws4_request".to_owned(),
            headers: headers.iter().map(owned).collect(),
            signed: headers.iter().map(|(name, _)| (*name).to_owned()).collect(),
            query: String::new(),
            body: body.to_owned(),
        }
    }

    /// Signs the call.
    pub(crate) fn sign(&self) -> SignedCall {
        let scope = format!(
            "{}/{}/{}/{}",
            self.day, self.region, self.service, self.terminator
        );
        let names = self.signed.join(";");
        let lines: String = self
            .signed
            .iter()
            .map(|name| format!("{name}:{}\n", self.value(name)))
            .collect();
        let canonical = format!(
            "POST\n/\n{}\n{lines}\n{names}\n{}",
            self.query,
            hex(&Sha256::digest(&self.body))
        );
        let hash = hex(&Sha256::digest(canonical));
        let text = format!("AWS4-HMAC-SHA256\n{}\n{scope}\n{hash}", self.date);
        let mut key = mac(format!("AWS4{}", self.secret_key).as_bytes(), &self.day);
        for part in [&self.region, &self.service, &self.terminator] {
            key = mac(&key, part);
        }
        SignedCall {
            algorithm: "AWS4-HMAC-SHA256".to_owned(),
            credential: format!("{}/{scope}", self.access_key),
            names,
            signature: hex(&mac(&key, &text)),
            call: self.clone(),
        }
    }

    fn value(&self, name: &str) -> String {
        let values = self.headers.iter().filter(|(known, _)| known == name);
        let values: Vec<_> = values.map(|(_, value)| value.trim()).collect();
        values.join(",")
    }

    /// Sets a header.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
    }
}

/// A signed call.
#[derive(Clone, Debug)]
pub(crate) struct SignedCall {
    pub(crate) algorithm: String,
    pub(crate) credential: String,
    pub(crate) names: String,
    pub(crate) signature: String,
    pub(crate) call: Call,
}

impl SignedCall {
    /// Returns the HTTP request.
    pub(crate) fn text(&self) -> String {
        let query = match self.call.query.as_str() {
            "" => String::new(),
            query => format!("?{query}"),
        };
        let mut text = format!("POST /{query} HTTP/1.1\r\n");
        for (name, value) in &self.call.headers {
            text += &format!("{name}: {value}\r\n");
        }
        format!(
            "{text}authorization: {} Credential={}, SignedHeaders={}, Signature={}\r\n\
             content-length: {}\r\n\r\n{}",
            self.algorithm,
            self.credential,
            self.names,
            self.signature,
            self.call.body.len(),
            self.call.body
        )
    }
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
