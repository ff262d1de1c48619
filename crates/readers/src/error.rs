//! What can be wrong with an input, said without quoting it.

use std::fmt;
use std::io;

/// The result of everything here that reads.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The file or stream could not be opened or read; carries the kind of the operating system's error.
    Io(io::ErrorKind),
    /// A compressed input ends before its end mark.
    Truncated,
    /// A compressed input fails its checks, or something else follows its end mark.
    Corrupt,
    /// The text is in an encoding other than UTF-8 (it starts with a UTF-16 mark).
    Encoding,
    /// The text breaks the rules of its format.
    Malformed,
    /// No column was chosen and there is more than one, or the chosen column does not exist.
    MissingColumn,
    /// The chosen column exists more than once.
    DuplicateColumn,
    /// A value cannot be a label, or is of another kind than the labels before it.
    UnsupportedLabel,
    /// The options contradict each other.
    Usage,
}

/// Where in the input it went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The physical line, counted from 1, on which the row or value starts.
    Line(u64),
    /// The offset in the input as it is stored (so in the compressed bytes, if it is compressed), counted from 0.
    Byte(u64),
}

/// An input that cannot be read to its end as what it should be.
///
/// Its text says the rule, the place and the remedy. It never contains a label, a cell or a line of the stream;
/// it may name columns of a header and members of a first JSON object. It does not name the file: the caller does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    place: Option<Place>,
    message: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error {
            kind,
            place: None,
            message: message.into(),
        }
    }

    pub(crate) fn at_line(kind: ErrorKind, line: u64, message: impl Into<String>) -> Error {
        Error {
            kind,
            place: Some(Place::Line(line)),
            message: message.into(),
        }
    }

    pub(crate) fn at_byte(kind: ErrorKind, byte: u64, message: impl Into<String>) -> Error {
        Error {
            kind,
            place: Some(Place::Byte(byte)),
            message: message.into(),
        }
    }

    /// The operating system's own words; any other error's text might quote the stream, so only its kind is told.
    pub(crate) fn io(doing: &str, error: &io::Error) -> Error {
        let why = match error.raw_os_error() {
            Some(_) => error.to_string(),
            None => error.kind().to_string(),
        };
        Error::new(ErrorKind::Io(error.kind()), format!("{doing}: {why}"))
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Where it went wrong, if it has a place.
    pub fn place(&self) -> Option<Place> {
        self.place
    }

    /// The rule and the remedy, without the place.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some(Place::Line(line)) => write!(f, "line {line}: ")?,
            Some(Place::Byte(byte)) => write!(f, "byte {byte}: ")?,
            None => {}
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        let kind = match error.kind {
            ErrorKind::Io(kind) => kind,
            ErrorKind::Truncated => io::ErrorKind::UnexpectedEof,
            _ => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}
