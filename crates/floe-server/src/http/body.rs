//! Reads request bodies: without a copy if the body arrives in one piece, otherwise within the memory limits.

use std::error::Error as _;
use std::future::poll_fn;
use std::io;
use std::ops::Deref;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderMap};

use super::encoding::RequestEncoding;
use super::gzip::{self, GzipError};
use super::{Exchange, Handler};
use crate::limits::{
    BODY_BYTES_MAX, COMPRESSION_RATIO_MAX, DISCARDED_BYTES_MAX, UNCOUNTED_BYTES_MAX,
};
use crate::memory::{BudgetExhausted, Reservation};
use crate::registry::Phase;

/// A complete body and its memory reservation.
#[derive(Debug)]
pub(super) struct Body {
    bytes: Bytes,
    _reservation: Option<Reservation>,
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Why a body could not be read.
#[derive(Debug)]
pub(super) enum BodyError {
    /// The body exceeds the maximum size.
    TooLarge,
    /// The memory for large bodies is exhausted.
    BudgetExhausted,
    /// Chunks or trailers do not follow HTTP/1.1.
    Malformed,
    /// The compression does not match the `Content-Encoding` header, or is not supported.
    BadEncoding,
    /// The client has disconnected.
    Disconnected(io::Error),
}

impl From<io::Error> for BodyError {
    fn from(error: io::Error) -> Self {
        Self::Disconnected(error)
    }
}

impl From<hyper::Error> for BodyError {
    fn from(error: hyper::Error) -> Self {
        let cause = error.source().and_then(|cause| cause.downcast_ref());
        match cause.map(io::Error::kind) {
            Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => Self::Malformed,
            _ => Self::Disconnected(io::Error::other(error)),
        }
    }
}

impl From<BudgetExhausted> for BodyError {
    fn from(_: BudgetExhausted) -> Self {
        Self::BudgetExhausted
    }
}

impl From<GzipError> for BodyError {
    fn from(error: GzipError) -> Self {
        match error {
            GzipError::Malformed => Self::BadEncoding,
            GzipError::TooLarge => Self::TooLarge,
        }
    }
}

impl Body {
    /// Decompresses the body if necessary. A small body may expand to a large one, so memory for the maximum size is
    /// reserved if the result exceeds the uncounted size.
    pub(super) async fn decoded<H: Handler>(
        self,
        headers: &HeaderMap,
        exchange: &Exchange<H>,
    ) -> Result<Self, BodyError> {
        match RequestEncoding::of(headers) {
            RequestEncoding::Identity => return Ok(self),
            RequestEncoding::Unsupported => return Err(BodyError::BadEncoding),
            RequestEncoding::Gzip => {}
        }
        let responder = &exchange.responder;
        let begin = || gzip::decompress_to(&self, UNCOUNTED_BYTES_MAX);
        match responder.run(self.len(), begin).await {
            Ok(bytes) => return Ok(whole(bytes.into())),
            Err(GzipError::TooLarge) => {}
            Err(error) => return Err(error.into()),
        }
        let size_max = self.len().saturating_mul(COMPRESSION_RATIO_MAX);
        let size_max = size_max.min(BODY_BYTES_MAX);
        let reservation = exchange.reserve(size_max).await?;
        let decompress = || gzip::decompress_to(&self, size_max);
        let bytes = responder.run(size_max, decompress).await?;
        Ok(Self {
            bytes: bytes.into(),
            _reservation: Some(reservation),
        })
    }
}

/// Reads a complete body.
pub(super) async fn read<H: Handler>(
    mut incoming: Incoming,
    headers: &HeaderMap,
    exchange: &Exchange<H>,
) -> Result<Body, BodyError> {
    let size = incoming.size_hint();
    if size.lower() > BODY_BYTES_MAX as u64 {
        // A client with `Expect: 100-continue` is rejected at once and sends no body.
        if !headers.contains_key(header::EXPECT) {
            discard(incoming).await?;
        }
        return Err(BodyError::TooLarge);
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
        _reservation: None,
    }
}

/// Joins the pieces of a body. Memory is reserved only after data has arrived, so that announcing a large body reserves
/// nothing; and then for the whole body at once, so that two half-received bodies never wait for each other.
async fn gather<H: Handler>(
    first: Bytes,
    mut incoming: Incoming,
    size_max: usize,
    exchange: &Exchange<H>,
) -> Result<Body, BodyError> {
    let mut bytes = BytesMut::with_capacity(size_max.min(UNCOUNTED_BYTES_MAX));
    bytes.extend_from_slice(&first);
    drop(first);
    let mut reservation = None;
    while let Some(piece) = next(&mut incoming).await? {
        let length = bytes.len() + piece.len();
        if length > BODY_BYTES_MAX {
            drop((bytes, reservation));
            discard(incoming).await?;
            return Err(BodyError::TooLarge);
        }
        if length > UNCOUNTED_BYTES_MAX && reservation.is_none() {
            reservation = match reserve(size_max, exchange).await {
                Ok(reservation) => Some(reservation),
                Err(error) => {
                    drop(bytes);
                    discard(incoming).await?;
                    return Err(error);
                }
            };
            bytes.reserve(size_max - bytes.len());
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(Body {
        bytes: bytes.freeze(),
        _reservation: reservation,
    })
}

/// Reserves memory. The client is not timed meanwhile, because it cannot influence the wait.
async fn reserve<H: Handler>(
    size: usize,
    exchange: &Exchange<H>,
) -> Result<Reservation, BodyError> {
    exchange.begin(Phase::Executing)?;
    let reservation = exchange.reserve(size).await;
    exchange.begin(Phase::Body)?;
    Ok(reservation?)
}

/// Reads and discards a body up to a limit, so that the client gets to read the response.
pub(super) async fn discard(mut incoming: Incoming) -> Result<(), BodyError> {
    let mut discarded = 0;
    while let Some(piece) = next(&mut incoming).await? {
        discarded += piece.len();
        if discarded > DISCARDED_BYTES_MAX {
            break;
        }
    }
    Ok(())
}

/// Returns the next piece; `None` at the end.
async fn next(incoming: &mut Incoming) -> Result<Option<Bytes>, BodyError> {
    loop {
        let frame = poll_fn(|cx| Pin::new(&mut *incoming).poll_frame(cx)).await;
        match frame.transpose()? {
            None => return Ok(None),
            // Trailers are ignored.
            Some(frame) => match frame.into_data() {
                Ok(data) => return Ok(Some(data)),
                Err(_) => continue,
            },
        }
    }
}
