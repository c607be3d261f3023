//! A list of patterns, of which the last one that matches decides.
//!
//! Most patterns match a name. So a path is built only for those that do not, and only if no later pattern
//! matches the name.

use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};

use super::pattern::{Matches, Pattern};

/// The decision of a list of patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Exclude,
    Include,
}

/// A file that patterns decide about.
pub(super) struct Subject<'a> {
    pub(super) name: &'a [u8],
    pub(super) is_directory: bool,
}

/// A list of patterns that belong to one directory.
#[derive(Debug)]
pub(super) struct Patterns {
    rules: Vec<Rule>,
    by_name: Globs,
    by_path: Globs,
}

#[derive(Debug)]
struct Rule {
    decision: Decision,
    only_directories: bool,
}

/// Globs, each with the index of its rule. The indices increase.
#[derive(Debug)]
struct Globs {
    set: GlobSet,
    rules: Vec<usize>,
}

impl Patterns {
    /// Compiles the patterns. Returns `None` if there are too many complicated ones.
    pub(super) fn new(patterns: &[Pattern]) -> Option<Self> {
        let rules = patterns.iter().map(|pattern| Rule {
            decision: match pattern.is_negated {
                true => Decision::Include,
                false => Decision::Exclude,
            },
            only_directories: pattern.only_directories,
        });
        Some(Self {
            rules: rules.collect(),
            by_name: Globs::new(patterns, Matches::Name)?,
            by_path: Globs::new(patterns, Matches::Path)?,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the decision of the last pattern that matches. `path` returns the path relative to the directory of the
    /// patterns.
    pub(super) fn decide<'p>(
        &self,
        subject: &Subject<'_>,
        path: impl FnOnce() -> &'p [u8],
    ) -> Option<Decision> {
        let by_name = self.last(&self.by_name, subject.name, subject.is_directory);
        let may_be_later = |name: usize| self.by_path.rules.last().is_some_and(|path| *path > name);
        let by_path = match by_name.map_or(!self.by_path.rules.is_empty(), may_be_later) {
            true => self.last(&self.by_path, path(), subject.is_directory),
            false => None,
        };
        by_name.max(by_path).map(|rule| self.rules[rule].decision)
    }

    fn last(&self, globs: &Globs, text: &[u8], is_directory: bool) -> Option<usize> {
        if globs.rules.is_empty() {
            return None;
        }
        let mut matches = Vec::new();
        let candidate = Candidate::from_bytes(text);
        globs.set.matches_candidate_into(&candidate, &mut matches);
        let rules = matches.into_iter().map(|glob| globs.rules[glob]);
        rules
            .rev()
            .find(|rule| is_directory || !self.rules[*rule].only_directories)
    }
}

impl Globs {
    fn new(patterns: &[Pattern], matches: Matches) -> Option<Self> {
        let mut set = GlobSetBuilder::new();
        let mut rules = Vec::new();
        for (rule, pattern) in patterns.iter().enumerate() {
            if pattern.matches == matches {
                let glob = GlobBuilder::new(&pattern.glob)
                    // A name has no slash. Then globset matches the most common globs without regular expressions.
                    .literal_separator(matches == Matches::Path)
                    .backslash_escape(true)
                    .build();
                set.add(glob.ok()?);
                rules.push(rule);
            }
        }
        let set = set.build().ok()?;
        Some(Self { set, rules })
    }
}

#[cfg(test)]
mod tests {
    use super::super::pattern::parse;
    use super::*;

    fn decide(patterns: &[&[u8]], path: &[u8], is_directory: bool) -> Option<Decision> {
        let parsed: Vec<_> = patterns.iter().map(|text| parse(text).unwrap()).collect();
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap();
        let subject = Subject { name, is_directory };
        Patterns::new(&parsed).unwrap().decide(&subject, || path)
    }

    #[test]
    fn the_last_pattern_that_matches_decides() {
        let patterns: [&[u8]; 4] = [b"*.o", b"!d/keep.o", b"/top", b"dirs/"];
        for (path, is_directory, expected) in [
            ("a.o", false, Some(Decision::Exclude)),
            ("d/a.o", false, Some(Decision::Exclude)),
            ("d/keep.o", false, Some(Decision::Include)),
            ("e/d/keep.o", false, Some(Decision::Exclude)),
            ("top", false, Some(Decision::Exclude)),
            ("d/top", false, None),
            ("dirs", false, None),
            ("a/dirs", true, Some(Decision::Exclude)),
            ("a", false, None),
        ] {
            let decision = decide(&patterns, path.as_bytes(), is_directory);
            assert_eq!(decision, expected, "{path}");
        }
    }

    #[test]
    fn names_are_bytes() {
        assert_eq!(
            decide(&[b"*.o"], b"\xff\xfe.o", false),
            Some(Decision::Exclude)
        );
        assert_eq!(
            decide(&[b"d/caf?"], b"d/caf\xe9", false),
            Some(Decision::Exclude)
        );
        // An e with an accent has two bytes in UTF-8.
        assert_eq!(decide(&[b"caf?"], "café".as_bytes(), false), None);
        assert_eq!(
            decide(&["café".as_bytes()], "café".as_bytes(), false),
            Some(Decision::Exclude)
        );
        assert_eq!(
            decide(&[b"*"], b"line\nbreak", false),
            Some(Decision::Exclude)
        );
    }

    #[test]
    fn thousands_of_patterns_are_compiled() {
        let patterns: Vec<_> = (0..2_000)
            .map(|number| parse(format!("dir{number}/*-?{number}.o").as_bytes()).unwrap())
            .collect();
        let patterns = Patterns::new(&patterns).unwrap();
        let subject = Subject {
            name: b"a-b77.o",
            is_directory: false,
        };
        let decision = patterns.decide(&subject, || b"dir77/a-b77.o");
        assert_eq!(decision, Some(Decision::Exclude));
    }
}
