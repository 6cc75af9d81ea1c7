//! Reads the body of a request: without a copy if it comes in one piece, within the limits if it does not.

use std::error::Error as _;
use std::future::poll_fn;
use std::io;
use std::ops::Deref;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderMap};

use super::encoding::Sent;
use super::gzip::{self, Broken};
use super::{Exchange, Handler};
use crate::limits::{
    BODY_BYTES_MAX, COMPRESSION_RATIO_MAX, DISCARDED_BYTES_MAX, UNCOUNTED_BYTES_MAX,
};
use crate::memory::{NoRoom, Taken};
use crate::registry::Phase;

/// A whole body, with the memory that it is counted for.
#[derive(Debug)]
pub(super) struct Body {
    bytes: Bytes,
    _taken: Option<Taken>,
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Why there is no body.
#[derive(Debug)]
pub(super) enum Fault {
    /// It is larger than any request may be.
    TooLarge,
    /// Others have used up the memory for large bodies.
    NoRoom,
    /// Its chunks or trailers are not framed as HTTP/1.1 requires.
    Malformed,
    /// It is compressed in another way than its header says.
    Undecoded,
    /// The client has gone.
    Gone(io::Error),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

impl From<hyper::Error> for Fault {
    fn from(error: hyper::Error) -> Self {
        let cause = error.source().and_then(|cause| cause.downcast_ref());
        match cause.map(io::Error::kind) {
            Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => Self::Malformed,
            _ => Self::Gone(io::Error::other(error)),
        }
    }
}

impl From<NoRoom> for Fault {
    fn from(_: NoRoom) -> Self {
        Self::NoRoom
    }
}

impl From<Broken> for Fault {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Malformed => Self::Undecoded,
            Broken::TooLarge => Self::TooLarge,
        }
    }
}

impl Body {
    /// The body as it was before the client compressed it. Few bytes may stand for many, so memory is taken for
    /// what they can be, once they are found to be more than a connection has anyway.
    pub(super) async fn decoded<H: Handler>(
        self,
        headers: &HeaderMap,
        exchange: &Exchange<H>,
    ) -> Result<Self, Fault> {
        match Sent::of(headers) {
            Sent::Plain => return Ok(self),
            Sent::Unknown => return Err(Fault::Undecoded),
            Sent::Gzip => {}
        }
        let responder = &exchange.responder;
        let begin = || gzip::decompress_to(&self, UNCOUNTED_BYTES_MAX);
        match responder.run(self.len(), begin).await {
            Ok(bytes) => return Ok(whole(bytes.into())),
            Err(Broken::TooLarge) => {}
            Err(broken) => return Err(broken.into()),
        }
        let size_max = self.len().saturating_mul(COMPRESSION_RATIO_MAX);
        let size_max = size_max.min(BODY_BYTES_MAX);
        let taken = exchange.take(size_max).await?;
        let decompress = || gzip::decompress_to(&self, size_max);
        let bytes = responder.run(size_max, decompress).await?;
        Ok(Self {
            bytes: bytes.into(),
            _taken: Some(taken),
        })
    }
}

/// Reads a whole body.
pub(super) async fn read<H: Handler>(
    mut incoming: Incoming,
    headers: &HeaderMap,
    exchange: &Exchange<H>,
) -> Result<Body, Fault> {
    let size = incoming.size_hint();
    if size.lower() > BODY_BYTES_MAX as u64 {
        // A client that asks first is refused at once and sends nothing.
        if !headers.contains_key(header::EXPECT) {
            discard(incoming).await?;
        }
        return Err(Fault::TooLarge);
    }
    let Some(first) = next(&mut incoming).await? else {
        return Ok(whole(Bytes::new()));
    };
    if incoming.is_end_stream() {
        return Ok(whole(first));
    }
    let size_max = size.upper().map_or(BODY_BYTES_MAX, |upper| {
        usize::try_from(upper).unwrap_or(BODY_BYTES_MAX)
    });
    gather(first, incoming, size_max.min(BODY_BYTES_MAX), exchange).await
}

const fn whole(bytes: Bytes) -> Body {
    Body {
        bytes,
        _taken: None,
    }
}

/// Puts the pieces together. Memory is only taken for what has begun to come, so that who announces a large body
/// and does not send it holds nothing; then all of it at once, so that two who have half of it never wait for
/// each other.
async fn gather<H: Handler>(
    first: Bytes,
    mut incoming: Incoming,
    size_max: usize,
    exchange: &Exchange<H>,
) -> Result<Body, Fault> {
    let mut bytes = BytesMut::with_capacity(size_max.min(UNCOUNTED_BYTES_MAX));
    bytes.extend_from_slice(&first);
    drop(first);
    let mut taken = None;
    while let Some(piece) = next(&mut incoming).await? {
        let length = bytes.len() + piece.len();
        if length > BODY_BYTES_MAX {
            drop((bytes, taken));
            discard(incoming).await?;
            return Err(Fault::TooLarge);
        }
        if length > UNCOUNTED_BYTES_MAX && taken.is_none() {
            taken = match take(size_max, exchange).await {
                Ok(taken) => Some(taken),
                Err(fault) => {
                    drop(bytes);
                    discard(incoming).await?;
                    return Err(fault);
                }
            };
            bytes.reserve(size_max - bytes.len());
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(Body {
        bytes: bytes.freeze(),
        _taken: taken,
    })
}

/// Takes memory. The client has nothing to do with how long that lasts, so it is not held against it.
async fn take<H: Handler>(size: usize, exchange: &Exchange<H>) -> Result<Taken, Fault> {
    exchange.enter(Phase::Serving)?;
    let taken = exchange.take(size).await;
    exchange.enter(Phase::Body)?;
    Ok(taken?)
}

/// Reads and forgets a body, or as much of it as is bearable, so that the client comes to read the answer.
pub(super) async fn discard(mut incoming: Incoming) -> Result<(), Fault> {
    let mut discarded = 0;
    while let Some(piece) = next(&mut incoming).await? {
        discarded += piece.len();
        if discarded > DISCARDED_BYTES_MAX {
            break;
        }
    }
    Ok(())
}

/// The next piece; none at the end.
async fn next(incoming: &mut Incoming) -> Result<Option<Bytes>, Fault> {
    loop {
        let frame = poll_fn(|cx| Pin::new(&mut *incoming).poll_frame(cx)).await;
        match frame.transpose()? {
            None => return Ok(None),
            // Trailers say nothing that is asked for.
            Some(frame) => match frame.into_data() {
                Ok(data) => return Ok(Some(data)),
                Err(_) => continue,
            },
        }
    }
}
