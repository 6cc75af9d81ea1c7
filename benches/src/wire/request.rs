//! Requests as an SDK sends them, prepared before the measurement.

use std::cell::Cell;

use super::data::{Call, FRESH, Operation, Picker};

/// The requests of an operation. Connections send them in turn.
#[derive(Debug)]
pub(super) struct Pool(Vec<Prepared>);

/// A request, and the offsets of the numbers that must be new each time.
#[derive(Debug)]
pub(super) struct Prepared {
    bytes: Vec<u8>,
    fresh: Vec<usize>,
}

/// A source of numbers that were not used before.
#[derive(Debug, Default)]
pub(super) struct Fresh(Cell<u32>);

impl Pool {
    /// Number of requests: enough to use many items, few enough to stay in a cache.
    const LEN: usize = 512;

    /// Creates the requests of one operation.
    pub(super) fn new(operation: Operation) -> Self {
        let picker = Picker::new(1);
        let request = |_| Prepared::new(http(&operation.call(&picker)));
        Self((0..Self::LEN).map(request).collect())
    }

    /// The requests in a cycle, with a different start for each connection.
    pub(super) fn requests_from(&self, connection: usize) -> impl Iterator<Item = &Prepared> {
        let skipped = connection * 67 % Self::LEN;
        self.0.iter().cycle().skip(skipped)
    }
}

impl Prepared {
    fn new(bytes: Vec<u8>) -> Self {
        let windows = bytes.windows(FRESH.len()).enumerate();
        let fresh = windows.filter(|(_, window)| *window == FRESH.as_bytes());
        let fresh = fresh.map(|(at, _)| at).collect();
        Self { bytes, fresh }
    }

    /// The bytes to send. A request with new numbers is built in the buffer.
    pub(super) fn bytes<'a>(&'a self, fresh: &Fresh, buffer: &'a mut Vec<u8>) -> &'a [u8] {
        if self.fresh.is_empty() {
            return &self.bytes;
        }
        buffer.clear();
        buffer.extend_from_slice(&self.bytes);
        for at in &self.fresh {
            if let Some(room) = buffer.get_mut(*at..at + FRESH.len()) {
                room.copy_from_slice(&fresh.next());
            }
        }
        buffer
    }
}

impl Fresh {
    /// The digits of the next number.
    fn next(&self) -> [u8; FRESH.len()] {
        let mut number = self.0.get();
        self.0.set(number.wrapping_add(1));
        let mut digits = *b"100000000";
        for digit in digits.iter_mut().skip(1).rev() {
            *digit += (number % 10) as u8;
            number /= 10;
        }
        digits
    }
}

/// An HTTP/1.1 request with the headers of an SDK. The signature is well-formed, but not valid.
pub(super) fn http(call: &Call) -> Vec<u8> {
    let Call { operation, body } = call;
    format!(
        "POST / HTTP/1.1\r\n\
         Host: localhost:8000\r\n\
         Content-Type: application/x-amz-json-1.0\r\n\
         X-Amz-Target: DynamoDB_20120810.{operation}\r\n\
         X-Amz-Date: 20260101T000000Z\r\n\
         Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20260101/us-east-1/dynamodb/\
         aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-target, \
         Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7\r\n\
         User-Agent: aws-sdk-rust/1.3.0 os/linux lang/rust/1.90.0\r\n\
         amz-sdk-invocation-id: 8b1a9953-c461-4296-8a27-abf8c47804d7\r\n\
         amz-sdk-request: attempt=1; max=3\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_write_contains_new_numbers() {
        let (fresh, mut buffer) = (Fresh::default(), Vec::new());
        for (operation, numbers) in [
            (Operation::Get, 0),
            (Operation::Put, 1),
            (Operation::Update, 1),
            (Operation::Transact, 3),
        ] {
            let pool = Pool::new(operation);
            let request = pool.requests_from(3).next().unwrap();
            assert_eq!(request.fresh.len(), numbers, "{operation:?}");
            let first = request.bytes(&fresh, &mut buffer).to_vec();
            let second = request.bytes(&fresh, &mut buffer).to_vec();
            assert_eq!(first == second, numbers == 0, "{operation:?}");
            assert_eq!(first.len(), second.len());
        }
    }

    #[test]
    fn numbers_increase() {
        let fresh = Fresh(Cell::new(12_345_678));
        assert_eq!([fresh.next(), fresh.next()], [*b"112345678", *b"112345679"]);
    }
}
