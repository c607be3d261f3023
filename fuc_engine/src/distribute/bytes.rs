//! Reads numbers and names from the bytes that another engine has sent.

use std::ffi::{CStr, CString};

/// Takes `N` bytes from the start of `bytes`. Returns `None` if there are fewer.
pub(super) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

/// The longest name that is accepted, in bytes. No filesystem has longer ones.
pub(super) const LONGEST_NAME: usize = 4095;

/// Takes a list of names from the start of `bytes`. Returns `None` unless each is a single component, and neither `.`
/// nor `..`.
pub(super) fn take_names(bytes: &mut &[u8]) -> Option<Vec<Box<CStr>>> {
    let count = u32::from_le_bytes(take(bytes)?);
    let mut names = Vec::new();
    for _ in 0..count {
        let name = CStr::from_bytes_until_nul(bytes).ok()?;
        *bytes = &bytes[name.count_bytes() + 1..];
        let is_one_name = !matches!(name.to_bytes(), b"" | b"." | b"..")
            && !name.to_bytes().contains(&b'/')
            && name.count_bytes() <= LONGEST_NAME;
        if !is_one_name {
            return None;
        }
        names.push(CString::from(name).into_boxed_c_str());
    }
    Some(names)
}
