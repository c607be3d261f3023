//! The form of paths for `serde`, which has one only for those that are UTF-8.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_os_str().serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(bytes: D) -> Result<PathBuf, D::Error> {
    OsString::deserialize(bytes).map(PathBuf::from)
}
