//! JSON lines: the label is the value of a line, or of one member of the object on it.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::block::{BLOCK_LABELS, Block, TextBlock};
use crate::columns::{listing, shown};
use crate::error::{Error, ErrorKind, Result};
use crate::reader::{Options, is_null};
use crate::window::Window;

/// The strings or the integers of each line, whichever come first.
pub(crate) struct Jsonl {
    window: Window,
    /// The line at the start of the rest of the window, counted from 1.
    line: u64,
    member: Option<Member>,
    nulls: Vec<Vec<u8>>,
    /// Labels of the block that is being filled; its variant is the kind of every label before.
    open: Option<Block>,
}

/// The chosen member and what was seen of it.
struct Member {
    name: String,
    found: bool,
    /// The members of the first object, as a message lists them.
    first: Option<String>,
}

/// What a JSON value is to us.
enum Value<'a> {
    Null,
    Text(Cow<'a, str>),
    Signed(i64),
    Unsigned(u64),
    /// Not a label; in words.
    Other(&'static str),
}

impl Jsonl {
    pub(crate) fn new(window: Window, options: Options) -> Result<Jsonl> {
        let name = options.column.map(String::from_utf8).transpose();
        let name = name.map_err(|_| {
            Error::new(
                ErrorKind::Usage,
                "a member of a JSON object has a name in UTF-8; name the column in UTF-8",
            )
        })?;
        let member = name.map(|name| Member {
            name,
            found: false,
            first: None,
        });
        Ok(Jsonl {
            window,
            line: 1,
            member,
            nulls: options.nulls,
            open: None,
        })
    }

    pub(crate) fn position(&self) -> u64 {
        self.window.position()
    }

    pub(crate) fn next_block(&mut self) -> Result<Option<Block>> {
        while let Some(length) = self.window.line()? {
            let line = &self.window.rest()[..length];
            let value = if line.iter().all(|byte| b" \t\r\n".contains(byte)) {
                Value::Null
            } else {
                let value = read_line(line, self.member.as_mut());
                value.map_err(|(kind, rule)| Error::at_line(kind, self.line, rule))?
            };
            let full = take(&mut self.open, value, &self.nulls);
            let full =
                full.map_err(|rule| Error::at_line(ErrorKind::UnsupportedLabel, self.line, rule))?;
            self.window.consume(length);
            self.line += 1;
            if full.is_some() {
                return Ok(full);
            }
        }
        if let Some(Member {
            name,
            found: false,
            first: Some(first),
        }) = &self.member
        {
            let rule = format!(
                "no object has the member {}; choose one of the first object's: {first}",
                shown(name.as_bytes())
            );
            return Err(Error::new(ErrorKind::MissingColumn, rule));
        }
        Ok(self.open.take().filter(|block| !block.is_empty()))
    }
}

/// Adds a label to the open block. Returns a block to hand over: the open one, if it is full or if integers leave its
/// range.
fn take(
    open: &mut Option<Block>,
    value: Value<'_>,
    nulls: &[Vec<u8>],
) -> std::result::Result<Option<Block>, String> {
    const CAST: &str =
        "labels are strings or 64-bit integers, all of one kind; write it as a string";
    match (value, &mut *open) {
        (Value::Null, _) => {}
        (Value::Text(text), _) if is_null(nulls, text.as_bytes()) => {}
        (Value::Other(what), _) => return Err(format!("this value is {what}; {CAST}")),
        (Value::Text(_), Some(Block::Signed(_) | Block::Unsigned(_))) => {
            return Err("this value is a string and the labels before it are integers; write all of them as strings".into());
        }
        (Value::Signed(_) | Value::Unsigned(_), Some(Block::Text(_))) => {
            return Err("this value is an integer and the labels before it are strings; write all of them as strings".into());
        }
        (Value::Text(text), Some(Block::Text(labels))) => labels.push(text.as_bytes()),
        (Value::Text(text), _) => {
            let mut labels = TextBlock::default();
            labels.push(text.as_bytes());
            *open = Some(Block::Text(labels));
        }
        (Value::Signed(value), Some(Block::Signed(labels))) => labels.push(value),
        (Value::Unsigned(value), Some(Block::Unsigned(labels))) => labels.push(value),
        (Value::Signed(value), Some(Block::Unsigned(labels))) if value >= 0 => {
            labels.push(value.unsigned_abs())
        }
        (Value::Signed(value), _) => {
            return Ok(open
                .replace(Block::Signed(vec![value]))
                .filter(|b| !b.is_empty()));
        }
        (Value::Unsigned(value), _) => {
            return Ok(open
                .replace(Block::Unsigned(vec![value]))
                .filter(|b| !b.is_empty()));
        }
    }
    // What stays open is empty and remembers the kind.
    Ok(match open {
        Some(Block::Text(labels)) if labels.is_full() => Some(Block::Text(std::mem::take(labels))),
        Some(Block::Signed(labels)) if labels.len() >= BLOCK_LABELS => {
            Some(Block::Signed(std::mem::take(labels)))
        }
        Some(Block::Unsigned(labels)) if labels.len() >= BLOCK_LABELS => {
            Some(Block::Unsigned(std::mem::take(labels)))
        }
        _ => None,
    })
}

type Rule = (ErrorKind, String);

fn malformed(rule: &str) -> Rule {
    (ErrorKind::Malformed, rule.to_owned())
}

/// The value that may be a label on a line that is not blank. Words of the JSON library are dropped: they may quote the
/// line.
fn read_line<'a>(
    line: &'a [u8],
    member: Option<&mut Member>,
) -> std::result::Result<Value<'a>, Rule> {
    let line = std::str::from_utf8(line)
        .map_err(|_| malformed("this line is not valid UTF-8; convert the text to UTF-8"))?;
    let bad = |_| {
        malformed("this line is not one valid JSON value; write each value on a line of its own")
    };
    let Some(member) = member else {
        let value: &RawValue = serde_json::from_str(line).map_err(bad)?;
        return read_value(value);
    };
    if !line.trim_start().starts_with('{') {
        let value: &RawValue = serde_json::from_str(line).map_err(bad)?;
        let what = name_of(value.get());
        return Err((
            ErrorKind::Malformed,
            format!("this line is {what}; with a column each line is a JSON object"),
        ));
    }
    let mut names = member.first.is_none().then(Vec::new);
    let mut json = serde_json::Deserializer::from_str(line);
    let chosen = Chosen {
        name: &member.name,
        names: names.as_mut(),
    };
    let occurrences = json
        .deserialize_map(chosen)
        .and_then(|found| json.end().map(|()| found))
        .map_err(bad)?;
    if let Some(names) = names {
        member.first = Some(if names.is_empty() {
            "it has none".into()
        } else {
            listing(&names)
        });
    }
    match occurrences {
        Occurrences { value: None, .. } => Ok(Value::Null),
        Occurrences { more: true, .. } => {
            let rule = format!(
                "the object on this line has the member {} more than once; keep one",
                shown(member.name.as_bytes())
            );
            Err((ErrorKind::DuplicateColumn, rule))
        }
        Occurrences {
            value: Some(value), ..
        } => {
            member.found = true;
            read_value(value)
        }
    }
}

/// What a value is, from its text. Its syntax has been checked; what escapes in a string stand for has not.
fn read_value(value: &RawValue) -> std::result::Result<Value<'_>, Rule> {
    let text = value.get();
    Ok(match text.as_bytes() {
        b"null" => Value::Null,
        [b'"', inner @ .., b'"'] if !inner.contains(&b'\\') => {
            Value::Text(Cow::Borrowed(&text[1..text.len() - 1]))
        }
        [b'"', ..] => {
            let text: String = serde_json::from_str(text).map_err(|_| {
                malformed("a string on this line has an escape that stands for no character (half of a surrogate pair); mend it")
            })?;
            Value::Text(Cow::Owned(text))
        }
        [b'-' | b'0'..=b'9', ..] if !text.contains(['.', 'e', 'E']) => {
            match (text.parse(), text.parse()) {
                (Ok(value), _) => Value::Signed(value),
                (_, Ok(value)) => Value::Unsigned(value),
                _ => Value::Other("an integer beyond 64 bits"),
            }
        }
        _ => Value::Other(name_of(text)),
    })
}

/// The type of a JSON value in words, from its text.
fn name_of(value: &str) -> &'static str {
    match value.as_bytes().first() {
        Some(b'"') => "a string",
        Some(b'[') => "an array",
        Some(b'{') => "an object",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ if value.contains(['.', 'e', 'E']) => "a number with a fraction or an exponent",
        _ => "an integer",
    }
}

/// Visits one object: keeps the text of the chosen member, ignores the others.
struct Chosen<'a> {
    name: &'a str,
    /// Where to put the names of all members, if they are wanted.
    names: Option<&'a mut Vec<String>>,
}

/// The chosen member in one object.
struct Occurrences<'de> {
    value: Option<&'de RawValue>,
    more: bool,
}

impl<'de> Visitor<'de> for Chosen<'_> {
    type Value = Occurrences<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(
        mut self,
        mut map: M,
    ) -> std::result::Result<Self::Value, M::Error> {
        let mut found = Occurrences {
            value: None,
            more: false,
        };
        while let Some(chosen) = map.next_key_seed(Name {
            name: self.name,
            names: self.names.as_deref_mut(),
        })? {
            if chosen {
                found.more |= found.value.is_some();
                found.value = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Reads one name of a member: is it the chosen one?
struct Name<'a> {
    name: &'a str,
    names: Option<&'a mut Vec<String>>,
}

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> std::result::Result<bool, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> std::result::Result<bool, E> {
        if let Some(names) = self.names {
            names.push(name.to_owned());
        }
        Ok(name == self.name)
    }
}
