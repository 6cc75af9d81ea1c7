//! A stream that notes what moves through it, so that everybody sees what its connection is doing, and that keeps lines
//! from hyper that end with a line feed alone.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::framing::Framing;
use crate::registry::{Phase, Place};

/// A stream, and the place of its connection. The place is given back when the stream is closed.
#[derive(Debug)]
pub(crate) struct Watched<S> {
    stream: S,
    place: Place,
    framing: Framing,
    /// What is read instead of what comes in, once a line was refused.
    refused: Option<&'static [u8]>,
}

impl<S> Watched<S> {
    pub(crate) const fn new(stream: S, place: Place) -> Self {
        Self {
            stream,
            place,
            framing: Framing::new(),
            refused: None,
        }
    }

    /// Looks at the bytes that were read after the first ones of a buffer, and takes away what is refused.
    fn check_lines(&mut self, buffer: &mut ReadBuf<'_>, before: usize) {
        let read = buffer.filled().get(before..).unwrap_or_default();
        if let Some(line) = self.framing.follow(read) {
            buffer.set_filled(before + line.at);
            self.refused = Some(line.replacement);
            self.read_refused(buffer);
        }
    }

    /// Reads the bytes that make hyper refuse the request, and then the end of the stream. Returns whether a line was
    /// refused.
    fn read_refused(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        let Some(rest) = self.refused else {
            return false;
        };
        let (now, later) = rest.split_at(rest.len().min(buffer.remaining()));
        buffer.put_slice(now);
        self.refused = Some(later);
        true
    }

    fn has_read(&self, bytes: usize) -> io::Result<()> {
        let (entry, now) = (&self.place.entry, self.place.registry.now());
        if bytes > 0 && entry.phase() == Phase::Waiting && !entry.enter(Phase::Head, now) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        entry.moved(bytes, now);
        Ok(())
    }

    fn has_written(&self, bytes: usize) {
        self.place.entry.moved(bytes, self.place.registry.now());
    }

    /// Whether nothing further may come in: the server stops, and no request is under way.
    fn is_over(&self) -> bool {
        self.place.registry.is_draining() && self.place.entry.phase() == Phase::Waiting
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read_refused(buffer) {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buffer) {
            // No bytes is the end of the stream.
            Poll::Pending if self.is_over() => Poll::Ready(Ok(())),
            Poll::Pending => Poll::Pending,
            Poll::Ready(read) => {
                read.and_then(|()| self.has_read(buffer.filled().len() - before))?;
                self.check_lines(buffer, before);
                Poll::Ready(Ok(()))
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.has_written(written);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, parts))?;
        self.has_written(written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        // A whole answer is handed over at once, and flushed when the last of it is written.
        let (entry, registry) = (&self.place.entry, &self.place.registry);
        if entry.phase() == Phase::Answering && !entry.answered(registry.now()) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
