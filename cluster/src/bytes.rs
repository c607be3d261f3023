//! Reads and writes the parts of messages.

/// Appends a slice and its length.
pub(crate) fn put_slice(bytes: &mut Vec<u8>, slice: &[u8]) {
    bytes.extend_from_slice(&(slice.len() as u64).to_le_bytes());
    bytes.extend_from_slice(slice);
}

pub(crate) fn put_number(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

pub(crate) fn take_byte(bytes: &mut &[u8]) -> Option<u8> {
    let (&first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(first)
}

pub(crate) fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*first))
}

pub(crate) fn take_slice<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_number(bytes)?).ok()?;
    let (slice, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(slice)
}
