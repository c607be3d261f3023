//! The form of data in messages.
//!
//! A type that travels is described once, by the list of its members or of its values. Writing and reading follow
//! from this list, so that they cannot differ.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, OsString};
use std::num::NonZeroUsize;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Data that travels between ranks.
pub(crate) trait Wire: Sized {
    /// Appends the data.
    fn put(&self, bytes: &mut Vec<u8>);

    /// Reads what [`put`](Self::put) has written, from the start of `bytes`, which it shortens. Returns `None` if
    /// these bytes cannot come from there.
    fn take(bytes: &mut &[u8]) -> Option<Self>;
}

/// Returns the data as bytes.
pub(crate) fn encode(data: &impl Wire) -> Vec<u8> {
    let mut bytes = Vec::new();
    data.put(&mut bytes);
    bytes
}

/// Reads what [`encode`] has returned. Returns `None` for anything else.
pub(crate) fn decode<T: Wire>(mut bytes: &[u8]) -> Option<T> {
    let data = T::take(&mut bytes)?;
    bytes.is_empty().then_some(data)
}

/// Implements [`Wire`] for a struct whose members are all listed: the compiler finds a missing one.
macro_rules! wire_struct {
    ($type:ty { $($member:ident),* $(,)? }) => {
        impl $crate::wire::Wire for $type {
            fn put(&self, bytes: &mut Vec<u8>) {
                $(self.$member.put(bytes);)*
            }

            fn take(bytes: &mut &[u8]) -> Option<Self> {
                Some(Self { $($member: $crate::wire::Wire::take(bytes)?),* })
            }
        }
    };
}

/// Implements [`Wire`] for a struct of another crate that may get more members. Those that are not listed would have
/// their default on other ranks, so a test compares [`MEMBERS`](Members::MEMBERS) with the real ones.
macro_rules! wire_open_struct {
    ($type:ty { $($member:ident),* $(,)? }) => {
        impl $crate::wire::Wire for $type {
            fn put(&self, bytes: &mut Vec<u8>) {
                $(self.$member.put(bytes);)*
            }

            fn take(bytes: &mut &[u8]) -> Option<Self> {
                let mut data = Self::default();
                $(data.$member = $crate::wire::Wire::take(bytes)?;)*
                Some(data)
            }
        }

        #[cfg(test)]
        impl $crate::wire::Members for $type {
            const MEMBERS: &[&str] = &[$(stringify!($member)),*];
        }
    };
}

/// Implements [`Wire`] for an enum without data.
macro_rules! wire_enum {
    ($type:ty { $($value:ident),* $(,)? }) => {
        impl $crate::wire::Wire for $type {
            fn put(&self, bytes: &mut Vec<u8>) {
                let values = [$(Self::$value),*];
                let number = values.iter().position(|value| value == self);
                let number = number.expect("BUG: a value that is not in the list");
                (number as u8).put(bytes);
            }

            fn take(bytes: &mut &[u8]) -> Option<Self> {
                let values = [$(Self::$value),*];
                values.get(usize::from(u8::take(bytes)?)).copied()
            }
        }
    };
}

/// Implements [`Wire`] for a type of the engine that describes its form itself.
macro_rules! wire_by_serde {
    ($type:ty) => {
        impl $crate::wire::Wire for $type {
            fn put(&self, bytes: &mut Vec<u8>) {
                let encoded = postcard::to_allocvec(self).expect("BUG: data without a form");
                bytes.extend(encoded);
            }

            fn take(bytes: &mut &[u8]) -> Option<Self> {
                let (data, rest) = postcard::take_from_bytes(bytes).ok()?;
                *bytes = rest;
                Some(data)
            }
        }
    };
}

pub(crate) use {wire_by_serde, wire_enum, wire_open_struct, wire_struct};

impl Wire for u8 {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.push(*self);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let (&first, rest) = bytes.split_first()?;
        *bytes = rest;
        Some(first)
    }
}

impl Wire for bool {
    fn put(&self, bytes: &mut Vec<u8>) {
        u8::from(*self).put(bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        match u8::take(bytes)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Wire for u64 {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let (first, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(Self::from_le_bytes(*first))
    }
}

impl Wire for u32 {
    fn put(&self, bytes: &mut Vec<u8>) {
        u64::from(*self).put(bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        u64::take(bytes)?.try_into().ok()
    }
}

impl Wire for NonZeroUsize {
    fn put(&self, bytes: &mut Vec<u8>) {
        (self.get() as u64).put(bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Self::new(u64::take(bytes)?.try_into().ok()?)
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.is_some().put(bytes);
        self.iter().for_each(|data| data.put(bytes));
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        match bool::take(bytes)? {
            true => T::take(bytes).map(Some),
            false => Some(None),
        }
    }
}

impl<T: Wire> Wire for Box<T> {
    fn put(&self, bytes: &mut Vec<u8>) {
        (**self).put(bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        T::take(bytes).map(Self::new)
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.0.put(bytes);
        self.1.put(bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Some((A::take(bytes)?, B::take(bytes)?))
    }
}

fn put_all<'a, T: Wire + 'a>(items: impl ExactSizeIterator<Item = &'a T>, bytes: &mut Vec<u8>) {
    (items.len() as u64).put(bytes);
    items.for_each(|item| item.put(bytes));
}

fn take_all<T: Wire, C: FromIterator<T>>(bytes: &mut &[u8]) -> Option<C> {
    let count = u64::take(bytes)?;
    (0..count).map(|_| T::take(bytes)).collect()
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_all(self.iter(), bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        take_all(bytes)
    }
}

impl<T: Wire + Ord> Wire for BTreeSet<T> {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_all(self.iter(), bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        take_all(bytes)
    }
}

impl<K: Wire + Ord + Clone, V: Wire + Clone> Wire for BTreeMap<K, V> {
    fn put(&self, bytes: &mut Vec<u8>) {
        (self.len() as u64).put(bytes);
        for (key, value) in self {
            key.put(bytes);
            value.put(bytes);
        }
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        take_all::<(K, V), _>(bytes)
    }
}

impl Wire for OsString {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.as_bytes().to_vec().put(bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Vec::take(bytes).map(Self::from_vec)
    }
}

impl Wire for PathBuf {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.as_os_str().to_owned().put(bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        OsString::take(bytes).map(Self::from)
    }
}

impl Wire for CString {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.to_bytes().to_vec().put(bytes);
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Self::new(Vec::take(bytes)?).ok()
    }
}

/// The members that travel of a struct of another crate.
#[cfg(test)]
pub(crate) trait Members {
    const MEMBERS: &[&str];
}

/// Asserts that all members of a struct travel.
#[cfg(test)]
#[track_caller]
pub(crate) fn assert_complete<T: Members + Default + std::fmt::Debug>() {
    let text = format!("{:#?}", T::default());
    let members = text.lines().filter_map(|line| line.strip_prefix("    "));
    let members = members.filter(|line| !line.starts_with(' '));
    let names = members.filter_map(|line| Some(line.split_once(':')?.0));
    // Tokens and descriptors belong to one process. No option sets the scope.
    let names = names.filter(|name| !["setup", "dest_dir", "tables", "scope"].contains(name));
    assert_eq!(names.collect::<Vec<_>>(), T::MEMBERS);
}

/// Asserts that data is read as it was written, and that no part of its bytes is.
#[cfg(test)]
#[track_caller]
pub(crate) fn assert_travels<T: Wire + std::fmt::Debug>(data: &T) {
    let bytes = encode(data);
    let read = decode::<T>(&bytes).map(|read| format!("{read:?}"));
    assert_eq!(read, Some(format!("{data:?}")));
    for end in 0..bytes.len() {
        assert!(decode::<T>(&bytes[..end]).is_none(), "{end} bytes");
    }
    assert!(decode::<T>(&[&bytes[..], b"x"].concat()).is_none());
}
