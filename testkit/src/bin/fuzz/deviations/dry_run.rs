//! The differences between a dry run and the real one, which cannot be avoided.

use crate::{
    deviations::Explanation,
    fact::{Fact, Side},
};

const README: &str = "rmz/README.md";
const LINE: &str = "whether a directory is empty that may not be read";

/// Explains the facts in which a dry run differs from the real run. In them, the real run is GNU's side.
///
/// A dry run takes a directory that may not be read for one that has entries. So it reports a failure, and its
/// status is not 0.
pub(crate) fn explain(facts: &[Fact]) -> Explanation {
    let is_failure = |fact: &Fact| {
        let error = fact.error(Side::Ours);
        error.is_some_and(|line| line.ends_with(": Permission denied"))
    };
    let has_failure = facts.iter().any(is_failure);
    let follows = |fact: &Fact| match fact {
        Fact::Status { .. } => has_failure,
        _ => {
            let removed = fact.output(Side::Gnu);
            has_failure && removed.is_some_and(|line| line.starts_with("removed directory "))
        }
    };
    let is_known = |fact: &Fact| is_failure(fact) || follows(fact);
    let (known, rest): (Vec<Fact>, Vec<Fact>) = facts.iter().cloned().partition(is_known);
    Explanation {
        documented: known
            .into_iter()
            .map(|fact| ((README, LINE), fact))
            .collect(),
        rest,
        ..Explanation::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fact::Stream, run::Status};

    #[test]
    fn only_failures_and_what_follows_from_them_are_explained() {
        let line = |stream, side, text: &str| Fact::Line(stream, side, text.to_owned());
        let status = Fact::Status {
            gnu: Status::Exit(0),
            ours: Status::Exit(1),
        };
        let removed = line(Stream::Stdout, Side::Gnu, "removed directory 'a'");
        let denied = line(
            Stream::Stderr,
            Side::Ours,
            "rm: cannot remove 'a': Permission denied",
        );
        let all = [status.clone(), removed.clone(), denied.clone()];
        assert!(explain(&all).rest.is_empty());
        assert_eq!(explain(&[status.clone(), removed.clone()]).rest.len(), 2);
        let file = line(Stream::Stdout, Side::Gnu, "removed 'f'");
        assert_eq!(explain(&[file.clone(), denied]).rest, [file]);
    }
}
