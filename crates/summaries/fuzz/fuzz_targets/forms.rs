//! Changes of saved forms that leave their structure in order: a part of a section is changed, and its length and the
//! checksums around it are made right again. So what is checked behind the checksums is reached.

/// Bytes before the first section.
const HEADER: usize = 16;
const CHECKSUM: usize = 4;
/// Tag and length of a section.
const SECTION_HEADER: usize = 12;
/// The sections that are whole forms.
const FORMS: [u32; 2] = [8, 9];

/// The tag and the bytes of a section.
type Section<'a> = (u32, &'a [u8]);

/// The sections of a form, if it has any; what is behind the last whole one is left out.
fn sections(form: &[u8]) -> Option<(&[u8], Vec<Section<'_>>)> {
    let (header, mut rest) = form.split_at_checked(HEADER)?;
    let mut found = Vec::new();
    while let Some((head, behind)) = rest.split_at_checked(SECTION_HEADER) {
        let tag = u32::from_le_bytes(head[..4].try_into().ok()?);
        let length = u64::from_le_bytes(head[4..].try_into().ok()?);
        let Some((body, behind)) = behind.split_at_checked(usize::try_from(length).ok()?) else {
            break;
        };
        found.push((tag, body));
        rest = behind;
    }
    (!found.is_empty()).then_some((header, found))
}

/// The form of these sections, with right lengths and checksum.
fn form(header: &[u8], sections: &[Section<'_>]) -> Vec<u8> {
    let mut out = header.to_vec();
    for (tag, body) in sections {
        out.extend_from_slice(&tag.to_le_bytes());
        out.extend_from_slice(&(body.len() as u64).to_le_bytes());
        out.extend_from_slice(body);
    }
    sealed(out)
}

/// The bytes and their checksum.
fn sealed(mut out: Vec<u8>) -> Vec<u8> {
    let checksum = crc32fast::hash(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

/// A form with one change, which `choice` chooses a place for, or `None` where the bytes are to be changed as they are.
/// Most often it is within a section; now and then it is anywhere, or a section goes, or comes twice.
pub fn mutated(bytes: &[u8], choice: u64, mut change: impl FnMut(&mut Vec<u8>)) -> Option<Vec<u8>> {
    within(bytes, choice, &mut change)
}

fn within(bytes: &[u8], choice: u64, change: &mut dyn FnMut(&mut Vec<u8>)) -> Option<Vec<u8>> {
    let (way, choice) = (choice % 32, choice / 32);
    if way == 0 {
        return None;
    }
    if way == 1 {
        let body = bytes.len().saturating_sub(CHECKSUM);
        let mut body = bytes[..body].to_vec();
        change(&mut body);
        return Some(sealed(body));
    }
    let changed;
    let (header, mut sections) = sections(bytes)?;
    let at = (choice % sections.len() as u64) as usize;
    let choice = choice / sections.len() as u64;
    let (tag, body) = sections[at];
    match way {
        2 => {
            sections.remove(at);
        }
        3 => sections.insert(at, (tag, body)),
        _ => {
            let nested = FORMS
                .contains(&tag)
                .then(|| within(body, choice, &mut *change));
            changed = nested.flatten().unwrap_or_else(|| {
                let mut body = body.to_vec();
                change(&mut body);
                body
            });
            sections[at] = (tag, &changed);
        }
    }
    Some(form(header, &sections))
}
