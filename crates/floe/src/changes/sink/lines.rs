//! JSON lines: each change's envelope on a line, appended to a file or printed.
//!
//! Lines are gathered in memory, and written and synced together before a checkpoint passes them. So what a checkpoint has
//! passed is on disk, and a line that was cut off by a crash comes again: it is taken away when the file is opened.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use floe_store::BoxFuture;
use tokio::sync::oneshot;

use super::Sink;
use crate::changes::envelope::Envelope;
use crate::changes::handler::{Failure, Handled};
use crate::error::{Error, ErrorKind, Result};
use crate::lock::lock;

/// How many bytes of lines are gathered before they are written without being asked.
const GATHERED_BYTES_MAX: usize = 8 << 20;

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
    /// Lines that are not written.
    gathered: Mutex<Vec<u8>>,
    output: Mutex<Output>,
}

#[derive(Debug)]
enum Output {
    File {
        file: File,
        /// Up to where the lines are whole and synced.
        length: u64,
    },
    Stdout,
}

impl JsonLines {
    /// Appends to this file, which is made if it is missing. A last line without an end is taken away.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) when the file cannot be opened.
    pub fn append(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let output = open(path).map_err(|error| {
            let message = format!(
                "the file cannot be opened, {error}: path={}",
                path.display()
            );
            Error::new(ErrorKind::InvalidUse, message)
        })?;
        Ok(Self::new(output))
    }

    /// Prints the lines.
    pub fn stdout() -> Self {
        Self::new(Output::Stdout)
    }

    fn new(output: Output) -> Self {
        Self(Arc::new(Inner {
            gathered: Mutex::default(),
            output: Mutex::new(output),
        }))
    }

    /// Writes what is gathered, on a thread of its own: syncing takes its time. What fails stays gathered.
    async fn write(&self) -> Handled {
        let (tell, told) = oneshot::channel();
        let inner = self.0.clone();
        let thread = std::thread::Builder::new().name("floe-lines".to_owned());
        thread.spawn(move || drop(tell.send(inner.write())))?;
        told.await?.map_err(Failure::new)
    }
}

/// Opens a file, and cuts off what stands behind the end of its last whole line if it is the beginning of a line as this
/// sink writes them. A file that ends in another way is not one of this sink, and is left as it is.
fn open(path: &Path) -> io::Result<Output> {
    let mut file = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(path)?;
    let length = whole_lines(&mut file)?;
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

/// Up to where the lines of a file are whole.
fn whole_lines(file: &mut File) -> io::Result<u64> {
    const BLOCK: u64 = 64 << 10;
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut block = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(start))?;
        block.clear();
        file.take(end - start).read_to_end(&mut block)?;
        if let Some(place) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + place as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

impl Inner {
    /// Writes what is gathered. Others wait, so that lines stay in their order.
    fn write(&self) -> io::Result<()> {
        let mut output = lock(&self.output);
        let lines = std::mem::take(&mut *lock(&self.gathered));
        if lines.is_empty() {
            return Ok(());
        }
        let written = output.write(&lines);
        if written.is_err() {
            let mut gathered = lock(&self.gathered);
            let later = std::mem::replace(&mut *gathered, lines);
            gathered.extend(later);
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
                // What an earlier try has left behind goes away first.
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
    fn send(&self, envelope: Envelope) -> BoxFuture<'_, Handled> {
        Box::pin(async move {
            let mut line = envelope.text();
            line.push('\n');
            let is_full = {
                let mut gathered = lock(&self.0.gathered);
                gathered.extend_from_slice(line.as_bytes());
                gathered.len() > GATHERED_BYTES_MAX
            };
            if is_full { self.write().await } else { Ok(()) }
        })
    }

    fn flush(&self) -> BoxFuture<'_, Handled> {
        // Also if nothing is gathered: somebody may be writing it just now.
        Box::pin(self.write())
    }
}
