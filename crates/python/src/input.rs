//! Files and standard input, through the readers.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dptop_readers as readers;
use dptop_readers::{Block, Format, Options};
use dptop_summaries::Kind;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::batch::{LabelBatch, Labels};
use crate::errors::{InvalidParameter, SourceError, UnsupportedLabel};

/// How long a call that waits for others goes on without looking for a signal.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// An opened file or standard input: looked at, not yet read.
#[pyclass(frozen, module = "dptop._native")]
pub struct Input(Mutex<Option<readers::Input>>);

/// The labels of a text.
#[pyclass(frozen, module = "dptop._native")]
pub struct LabelReader(Mutex<readers::Reader>);

/// A file or pipe whose reads end when Python has a signal to handle, such as Ctrl-C. The exception that the handler
/// raised stays pending on this thread, where [`refused`] finds it.
struct Interruptible {
    file: File,
    looked: Instant,
}

impl Interruptible {
    fn new(file: File) -> Self {
        let looked = Instant::now();
        Self { file, looked }
    }

    fn look_for_signals(&mut self) -> io::Result<()> {
        self.looked = Instant::now();
        Python::attach(|py| {
            py.check_signals().map_err(|signal| {
                signal.restore(py);
                io::Error::other("interrupted by a signal")
            })
        })
    }
}

impl Read for Interruptible {
    /// A signal that comes just before a read would not end it: so the wait for input is one of many short ones.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let ready = can_read(&self.file)?;
            if !ready || self.looked.elapsed() >= SIGNAL_INTERVAL {
                self.look_for_signals()?;
            }
            if ready {
                match self.file.read(into) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    other => return other,
                }
            }
        }
    }
}

/// Wait for a file to have something to read, or an end or error to tell, but not for long.
fn can_read(file: &File) -> io::Result<bool> {
    let interval = Timespec::try_from(SIGNAL_INTERVAL).map_err(io::Error::other)?;
    match poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&interval)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Open a file. A named pipe opens only once somebody writes to it, and the call starts again after a signal: so
/// another thread makes it, and this one looks for signals.
fn open(py: Python<'_>, path: &Path) -> PyResult<File> {
    let failed = |error: io::Error| {
        SourceError::new_err(format!(
            "the file cannot be opened: {error}. Check its path and permissions."
        ))
    };
    let (sender, receiver) = mpsc::channel();
    let receiver = Mutex::new(receiver); // to be lent to a closure that runs detached from Python
    let owned = path.to_owned();
    let thread = thread::Builder::new().spawn(move || sender.send(File::open(owned)));
    thread.map_err(failed)?;
    let opened = loop {
        match py.detach(|| lock(&receiver).recv_timeout(SIGNAL_INTERVAL)) {
            Ok(opened) => break opened,
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => break Err(io::ErrorKind::Other.into()),
        }
    };
    let file = opened.map_err(failed)?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(SourceError::new_err(
            "this is a folder, and labels come from files. Name the files in it.",
        ));
    }
    Ok(file)
}

fn refused(py: Python<'_>, error: &readers::Error) -> PyErr {
    if let Some(signal) = PyErr::take(py) {
        return signal;
    }
    let message = error.to_string();
    match error.kind() {
        readers::ErrorKind::Usage => InvalidParameter::new_err(message),
        readers::ErrorKind::UnsupportedLabel => UnsupportedLabel::new_err(message),
        _ => SourceError::new_err(message),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Input {
    fn of(
        py: Python<'_>,
        stream: impl Read + Send + 'static,
        path: Option<&Path>,
    ) -> PyResult<Self> {
        let input = py.detach(|| readers::Input::from_read(Box::new(stream), path));
        let input = input.map_err(|error| refused(py, &error))?;
        Ok(Self(Mutex::new(Some(input))))
    }

    fn with<R>(&self, f: impl FnOnce(&mut readers::Input) -> R) -> PyResult<R> {
        let mut input = lock(&self.0);
        input.as_mut().map(f).ok_or_else(taken)
    }
}

fn taken() -> PyErr {
    SourceError::new_err("this input is being read already; open it again.")
}

#[pymethods]
impl Input {
    /// Open a file.
    #[staticmethod]
    fn from_path(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let file = Interruptible::new(open(py, &path)?);
        Self::of(py, file, Some(&path))
    }

    /// Take standard input, after those bytes of it that were read already.
    #[staticmethod]
    fn from_stdin(py: Python<'_>, ahead: Vec<u8>) -> PyResult<Self> {
        let file = readers::standard_input().map_err(|error| refused(py, &error))?;
        Self::of(py, Cursor::new(ahead).chain(Interruptible::new(file)), None)
    }

    /// "text", "parquet", "arrow-file", "arrow-stream", "utf-16", or the name of a format that holds no labels.
    #[getter]
    fn detected(&self) -> PyResult<&'static str> {
        self.with(|input| input.detected().name())
    }

    /// The text format that the file name says: "lines", "csv", "tsv" or "jsonl".
    #[getter]
    fn format(&self) -> PyResult<&'static str> {
        self.with(|input| input.format().name())
    }

    #[getter]
    fn compressed(&self) -> PyResult<bool> {
        self.with(|input| input.compression().is_some())
    }

    /// Up to `size` bytes of the decompressed content; none only at its end.
    fn read<'py>(&self, py: Python<'py>, size: usize) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = vec![0; size];
        let read = py.detach(|| self.with(|input| input.read(&mut bytes)))?;
        match read {
            Ok(length) => Ok(PyBytes::new(py, &bytes[..length])),
            Err(error) => match error.get_ref().and_then(|inner| inner.downcast_ref()) {
                Some(error) => Err(refused(py, error)),
                None => Err(SourceError::new_err("the input cannot be read to its end.")),
            },
        }
    }

    /// Take the content as text.
    fn labels(
        &self,
        py: Python<'_>,
        text_format: &str,
        column: Option<Vec<u8>>,
        nulls: Vec<Vec<u8>>,
    ) -> PyResult<LabelReader> {
        let format = Format::named(text_format)
            .ok_or_else(|| InvalidParameter::new_err("there is no such text format"))?;
        let options = Options {
            format,
            column,
            nulls,
        };
        let input = lock(&self.0).take().ok_or_else(taken)?;
        let reader = py.detach(|| input.into_reader(options));
        let reader = reader.map_err(|error| refused(py, &error))?;
        Ok(LabelReader(Mutex::new(reader)))
    }
}

#[pymethods]
impl LabelReader {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<LabelBatch>> {
        let block = py.detach(|| lock(&self.0).next_block());
        let Some(block) = block.map_err(|error| refused(py, &error))? else {
            return Ok(None);
        };
        let (kind, labels) = match block {
            Block::Bytes(block) => (Kind::Bytes, Labels::Block(block)),
            Block::Text(block) => (Kind::String, Labels::Block(block)),
            Block::Signed(values) => (Kind::Integer, Labels::signed(values)),
            Block::Unsigned(values) => (Kind::Integer, Labels::unsigned(values)),
        };
        Ok(Some(LabelBatch::new(kind, labels)))
    }

    /// Bytes consumed of the input as it is stored.
    #[getter]
    fn position(&self) -> u64 {
        lock(&self.0).position()
    }
}
