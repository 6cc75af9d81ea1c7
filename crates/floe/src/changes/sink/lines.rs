//! JSON lines: one envelope per line, appended to a file or printed.
//!
//! Lines are buffered, and written and synced together before a checkpoint passes them. Changes before a checkpoint
//! are thus on disk, and a line torn by a crash is delivered again: it is removed when the file is opened.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use floe_store::BoxFuture;
use tokio::sync::oneshot;

use super::Sink;
use crate::changes::envelope::Envelope;
use crate::changes::handler::{Failure, HandlerResult};
use crate::error::{Error, ErrorKind, Result};
use crate::lock::lock;

/// Size of the buffer that triggers a write before the next flush.
const BUFFER_BYTES_MAX: usize = 8 << 20;

/// A sink of JSON lines.
///
/// ```
/// use floe::changes::sink::JsonLines;
/// use floe::changes::{Pattern, Router};
///
/// # let directory = tempfile::tempdir().expect("a directory");
/// # let path = directory.path().join("removed.jsonl");
/// let removed = Pattern::parse(r#"{ "detail-type": ["REMOVE"] }"#)?;
/// let router = Router::new().forward(removed, JsonLines::append(&path)?);
/// # Ok::<(), floe::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct JsonLines(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Lines that are not written yet.
    buffer: Mutex<Vec<u8>>,
    output: Mutex<Output>,
}

#[derive(Debug)]
enum Output {
    File {
        file: File,
        /// The length of complete, synced lines.
        length: u64,
    },
    Stdout,
}

impl JsonLines {
    /// Appends to this file and creates it if it is missing. An incomplete last line is removed.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) if the file cannot be opened.
    pub fn append(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let output = open(path).map_err(|error| {
            let message = format!("cannot open the file, {error}: path={}", path.display());
            Error::new(ErrorKind::InvalidUse, message)
        })?;
        Ok(Self::new(output))
    }

    /// Prints the lines to standard output.
    pub fn stdout() -> Self {
        Self::new(Output::Stdout)
    }

    fn new(output: Output) -> Self {
        Self(Arc::new(Inner {
            buffer: Mutex::default(),
            output: Mutex::new(output),
        }))
    }

    /// Writes the buffer, on a separate thread because syncing blocks. After a failure, the lines stay buffered.
    async fn write(&self) -> HandlerResult {
        let (sender, receiver) = oneshot::channel();
        let inner = self.0.clone();
        let thread = std::thread::Builder::new().name("floe-lines".to_owned());
        thread.spawn(move || drop(sender.send(inner.write())))?;
        receiver.await?.map_err(Failure::new)
    }
}

/// Opens a file, and truncates an incomplete last line if it starts like a line of this sink. A file with another end
/// was not written by this sink and is left unchanged.
fn open(path: &Path) -> io::Result<Output> {
    let mut file = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(path)?;
    let length = complete_lines_length(&mut file)?;
    file.seek(SeekFrom::Start(length))?;
    let mut first = Vec::new();
    (&mut file).take(1).read_to_end(&mut first)?;
    if !matches!(first[..], [] | [b'{']) {
        let what = "it does not end with a line of JSON, so nothing is appended to it";
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    file.set_len(length)?;
    file.seek(SeekFrom::Start(length))?;
    Ok(Output::File { file, length })
}

/// The length of the complete lines of a file.
fn complete_lines_length(file: &mut File) -> io::Result<u64> {
    const BLOCK: u64 = 64 << 10;
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut block = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(start))?;
        block.clear();
        file.take(end - start).read_to_end(&mut block)?;
        if let Some(index) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + index as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

impl Inner {
    /// Writes the buffer. Concurrent writers wait, so that lines stay in order.
    fn write(&self) -> io::Result<()> {
        let mut output = lock(&self.output);
        let lines = std::mem::take(&mut *lock(&self.buffer));
        if lines.is_empty() {
            return Ok(());
        }
        let written = output.write(&lines);
        if written.is_err() {
            let mut buffer = lock(&self.buffer);
            let later = std::mem::replace(&mut *buffer, lines);
            buffer.extend(later);
        }
        written
    }
}

impl Output {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(lines)?;
                stdout.flush()
            }
            Self::File { file, length } => {
                // Removes the rest of a failed write first.
                file.set_len(*length)?;
                file.seek(SeekFrom::Start(*length))?;
                file.write_all(lines)?;
                file.sync_data()?;
                *length += lines.len() as u64;
                Ok(())
            }
        }
    }
}

impl Sink for JsonLines {
    fn send(&self, envelope: Envelope) -> BoxFuture<'_, HandlerResult> {
        Box::pin(async move {
            let mut line = envelope.text();
            line.push('\n');
            let is_full = {
                let mut buffer = lock(&self.0.buffer);
                buffer.extend_from_slice(line.as_bytes());
                buffer.len() > BUFFER_BYTES_MAX
            };
            if is_full { self.write().await } else { Ok(()) }
        })
    }

    fn flush(&self) -> BoxFuture<'_, HandlerResult> {
        // Waits even if the buffer is empty, because another caller may be writing it.
        Box::pin(self.write())
    }
}
