//! A stream that records its reads and writes in the registry, and hides lines with a bare line feed from hyper.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::framing::Framing;
use crate::registry::{ConnectionSlot, Phase};

/// A stream and the slot of its connection, which is released when the stream is dropped.
#[derive(Debug)]
pub(crate) struct MonitoredStream<S> {
    stream: S,
    slot: ConnectionSlot,
    framing: Framing,
    /// Bytes that are read instead of the input after a line was rejected.
    rejected: Option<&'static [u8]>,
}

impl<S> MonitoredStream<S> {
    pub(crate) const fn new(stream: S, slot: ConnectionSlot) -> Self {
        Self {
            stream,
            slot,
            framing: Framing::new(),
            rejected: None,
        }
    }

    /// Checks the bytes read after `before` bytes of a buffer, and removes those after a rejected line.
    fn check_lines(&mut self, buffer: &mut ReadBuf<'_>, before: usize) {
        let read = buffer.filled().get(before..).unwrap_or_default();
        if let Some(line) = self.framing.inspect(read) {
            buffer.set_filled(before + line.at);
            self.rejected = Some(line.replacement);
            self.read_rejected(buffer);
        }
    }

    /// Reads the bytes that make hyper reject the request, then the end of the stream. Returns whether a line was
    /// rejected.
    fn read_rejected(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        let Some(rest) = self.rejected else {
            return false;
        };
        let (now, later) = rest.split_at(rest.len().min(buffer.remaining()));
        buffer.put_slice(now);
        self.rejected = Some(later);
        true
    }

    fn has_read(&self, bytes: usize) -> io::Result<()> {
        let (entry, now) = (&self.slot.entry, self.slot.registry.now());
        if bytes > 0 && entry.phase() == Phase::Idle && !entry.begin(Phase::Head, now) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        entry.record_progress(bytes, now);
        Ok(())
    }

    fn has_written(&self, bytes: usize) {
        self.slot
            .entry
            .record_progress(bytes, self.slot.registry.now());
    }

    /// Whether nothing more is read: the server is shutting down, and no request is in progress.
    fn is_over(&self) -> bool {
        self.slot.registry.is_draining() && self.slot.entry.phase() == Phase::Idle
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MonitoredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read_rejected(buffer) {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buffer) {
            // Reading no bytes signals the end of the stream.
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

impl<S: AsyncWrite + Unpin> AsyncWrite for MonitoredStream<S> {
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
        // hyper writes a whole response and flushes after its last byte.
        let (entry, registry) = (&self.slot.entry, &self.slot.registry);
        if entry.phase() == Phase::Responding && !entry.response_sent(registry.now()) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
