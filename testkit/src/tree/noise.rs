//! Content for files.

/// Returns `len_bytes` bytes without repetitions or runs of zeros. A shorter result is a prefix of a longer one.
#[must_use]
pub fn noise(len_bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(len_bytes).collect()
}
