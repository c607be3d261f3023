//! A suggestion for an option that the command does not know.

use super::Flag;
use crate::invocation::Personality;

/// The similarity from which a name is suggested. Equal names have 1, names of eight letters of which two are swapped
/// have 0.96, and unrelated names such as `ppath` and `update` may have 0.7.
const LEAST_SIMILARITY: f64 = 0.8;

/// Names that other commands have for options of ours.
const ELSEWHERE: [(&str, &str); 1] = [("bwlimit", "max-rate")];

/// Returns a line that suggests the known option that `name`, without its dashes, resembles most.
///
/// An extension of which `name` is the beginning comes before all others.
pub(super) fn suggest<I: Copy>(
    flags: &[Flag<I>],
    name: &[u8],
    personality: Personality,
) -> Option<String> {
    let name = &*String::from_utf8_lossy(name);
    let elsewhere = ELSEWHERE.iter().find(|(other, _)| *other == name);
    let name = elsewhere.map_or(name, |(_, ours)| ours);
    let similarity = |flag: &&Flag<I>| strsim::jaro(name, flag.long);
    let by_similarity = |a: &&Flag<I>, b: &&Flag<I>| similarity(a).total_cmp(&similarity(b));
    let offered = flags
        .iter()
        .filter(|flag| !flag.long.is_empty() && !flag.is_hidden)
        .filter(|flag| flag.is_known_to(personality));
    let is_shortened =
        |flag: &&Flag<I>| flag.is_extension && flag.long.starts_with(name) && flag.long != name;
    if let Some(flag) = offered.clone().filter(is_shortened).max_by(by_similarity) {
        let long = flag.long;
        return Some(format!(
            "did you mean '--{long}'? (extensions cannot be shortened)"
        ));
    }
    offered
        .max_by(by_similarity)
        .filter(|flag| similarity(flag) >= LEAST_SIMILARITY)
        .map(|flag| format!("did you mean '--{}'?", flag.long))
}
