//! Which column: the rules that CSV and TSV share.

use crate::error::{Error, ErrorKind, Result};

/// At most this many names are listed in an error ...
const LISTED: usize = 30;
/// ... each of at most this many characters.
const LISTED_CHARACTERS: usize = 40;

/// The index of the chosen column: the one named `column`, or the only one there is.
pub(crate) fn choose<N: AsRef<[u8]>>(names: &[N], column: Option<&[u8]>) -> Result<usize> {
    let Some(column) = column else {
        return match names.len() {
            1 => Ok(0),
            count => {
                let rule = format!(
                    "the header has {count} columns and none was chosen; choose one of {}",
                    listing(names)
                );
                Err(Error::new(ErrorKind::MissingColumn, rule))
            }
        };
    };
    let mut found = names
        .iter()
        .enumerate()
        .filter(|(_, name)| name.as_ref() == column)
        .map(|(index, _)| index);
    match (found.next(), found.count()) {
        (Some(index), 0) => Ok(index),
        (None, _) => {
            let rule = format!(
                "the header has no column {}; choose one of {}",
                shown(column),
                listing(names)
            );
            Err(Error::new(ErrorKind::MissingColumn, rule))
        }
        (Some(_), more) => {
            let rule = format!(
                "the header has the column {} {} times; rename all but one",
                shown(column),
                more + 1
            );
            Err(Error::new(ErrorKind::DuplicateColumn, rule))
        }
    }
}

/// The names, quoted and shortened, as a message lists them.
pub(crate) fn listing<N: AsRef<[u8]>>(names: &[N]) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(LISTED)
        .map(|name| shown(name.as_ref()))
        .collect();
    let more = names.len().saturating_sub(LISTED);
    let tail = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    shown.join(", ") + &tail
}

/// One name, quoted and shortened, safe to print on a terminal.
pub(crate) fn shown(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let mut characters = name.chars();
    let mut short: String = characters.by_ref().take(LISTED_CHARACTERS).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    let short: String = short
        .chars()
        .map(|c| if c.is_control() { '\u{FFFD}' } else { c })
        .collect();
    format!("\"{short}\"")
}
