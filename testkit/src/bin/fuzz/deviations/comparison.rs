//! Answers the questions of the rows about a case: its options, its tree, its messages and its facts.

use std::{
    cell::{OnceCell, RefCell},
    collections::{BTreeSet, HashMap},
    rc::Rc,
};

use testkit::snapshot::{Change, Kind};

use crate::{
    case::{AclKind, Case, Entry, PWD, What, Word},
    difference::messages,
    fact::{Fact, Side},
    places::{self, Places, is_within},
    quoting,
    run::Observed,
};

/// A case, what both commands did, and how that differs.
pub(crate) struct Comparison<'a> {
    pub(crate) case: &'a Case,
    pub(crate) gnu: &'a Observed,
    pub(crate) ours: &'a Observed,
    pub(crate) facts: &'a [Fact],
    places: OnceCell<Places>,
    /// The messages that each side printed on stderr.
    errors: [Vec<String>; 2],
    /// Results that many facts of a case ask for.
    known: RefCell<Known>,
}

#[derive(Default)]
struct Known {
    /// The places of a line of a message.
    lines: HashMap<String, Rc<Vec<String>>>,
    /// The places of an entry of the trees.
    entries: HashMap<String, Rc<Vec<String>>>,
    /// The places that the errors of a side about a text name.
    named: HashMap<(Side, &'static str, Which), Rc<Vec<String>>>,
}

/// The path that counts in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Which {
    First,
    Last,
}

impl<'a> Comparison<'a> {
    pub(crate) fn new(
        case: &'a Case,
        gnu: &'a Observed,
        ours: &'a Observed,
        facts: &'a [Fact],
    ) -> Self {
        Self {
            case,
            gnu,
            ours,
            facts,
            places: OnceCell::new(),
            errors: [gnu, ours].map(|observed| messages(&observed.stderr)),
            known: RefCell::default(),
        }
    }
}

impl Comparison<'_> {
    pub(super) fn gnu_says(&self, text: &str) -> bool {
        self.errors(Side::Gnu)
            .iter()
            .any(|line| line.contains(text))
    }

    pub(super) fn ours_says(&self, text: &str) -> bool {
        self.errors(Side::Ours)
            .iter()
            .any(|line| line.contains(text))
    }

    pub(super) fn one_says(&self, text: &str) -> bool {
        self.gnu_says(text) || self.ours_says(text)
    }

    /// Returns all messages that this side printed on stderr, even those that both printed.
    pub(super) fn errors(&self, side: Side) -> &[String] {
        match side {
            Side::Gnu => &self.errors[0],
            Side::Ours => &self.errors[1],
        }
    }

    /// Returns `true` if a fact is of this kind.
    pub(super) fn has_fact(&self, is_meant: impl Fn(&Fact) -> bool) -> bool {
        self.facts.iter().any(is_meant)
    }

    /// Returns the places to which a path in a message or in an argument may lead: with the symbolic links of the case,
    /// and without them, because the run may have replaced them.
    pub(super) fn places(&self, path: &str) -> Vec<String> {
        let trees = [&self.gnu.tree, &self.ours.tree];
        let places = self.places.get_or_init(|| Places::of(self.case, trees));
        places.of_path(path)
    }

    /// Returns the places of one path in each error of this side that contains `text`.
    pub(super) fn named(&self, side: Side, text: &'static str, which: Which) -> Rc<Vec<String>> {
        if let Some(known) = self.known.borrow().named.get(&(side, text, which)) {
            return Rc::clone(known);
        }
        let errors = self.errors(side).iter().filter(|line| line.contains(text));
        let path = |line| match which {
            Which::First => quoting::paths(line).into_iter().next(),
            Which::Last => quoting::paths(line).pop(),
        };
        let places = errors
            .filter_map(|line| path(line))
            .flat_map(|path| self.places(&path));
        let places: BTreeSet<String> = places.collect();
        let places = Rc::new(places.into_iter().collect());
        let mut known = self.known.borrow_mut();
        known.named.insert((side, text, which), Rc::clone(&places));
        places
    }

    /// Returns the places of all paths that a line names.
    pub(super) fn places_in(&self, line: &str) -> Rc<Vec<String>> {
        if let Some(known) = self.known.borrow().lines.get(line) {
            return Rc::clone(known);
        }
        let paths = quoting::paths(line).into_iter();
        let places = paths.flat_map(|path| self.places(&path));
        let places: Rc<Vec<String>> = Rc::new(places.collect());
        let mut known = self.known.borrow_mut();
        known.lines.insert(line.to_owned(), Rc::clone(&places));
        places
    }

    /// Returns the place of an entry of the trees, as the only one.
    pub(super) fn place_of(&self, change: &Change) -> Rc<Vec<String>> {
        if let Some(known) = self.known.borrow().entries.get(&change.path) {
            return Rc::clone(known);
        }
        let place = Rc::new(vec![places::of_entry(&change.path)]);
        let mut known = self.known.borrow_mut();
        known.entries.insert(change.path.clone(), Rc::clone(&place));
        place
    }

    /// Returns `true` if the fact is about an entry, or a path in a message, that is one of `tops` or below it.
    pub(super) fn is_about(&self, fact: &Fact, tops: &[String]) -> bool {
        let is_in = |place: &String| tops.iter().any(|top| is_within(place, top));
        self.places_of(fact).iter().any(is_in)
    }

    /// Returns `true` if the fact is about the operand of one of these dests: it names the source or the dest, or an
    /// entry below them. A dest ends in the path of its source, or in that of a directory above the source. The
    /// path of an entry may begin with the last name of an operand.
    pub(super) fn is_about_operand(&self, fact: &Fact, dests: &[String]) -> bool {
        let is_end_of = |dest: &String, path: &str| {
            let before = dest.strip_suffix(path);
            before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        let is_source = |place: &String| {
            let ends = place.match_indices('/').map(|(end, _)| end);
            let mut tops = ends.chain([place.len()]).map(|end| &place[..end]);
            tops.any(|top| dests.iter().any(|dest| is_end_of(dest, top)))
        };
        let operands = self.operands();
        let is_below_operand = |place: &String| {
            operands.iter().any(|operand| {
                let before = operand.rfind('/').map_or(0, |slash| slash + 1);
                let path = is_within(place, operand)
                    .then(|| place.get(before..))
                    .flatten();
                let is_dest = |path: &str| dests.iter().any(|dest| is_end_of(dest, path));
                path.is_some_and(|path| path.contains('/') && is_dest(path))
            })
        };
        let places = self.places_of(fact);
        let mut places = places.iter();
        self.is_about(fact, dests)
            || places.any(|place| is_source(place) || is_below_operand(place))
    }

    /// Returns `true` if the fact names a place whose last names are this path.
    pub(super) fn has_place_ending_in(&self, fact: &Fact, path: &str) -> bool {
        let is_end = |place: &String| {
            let before = place.strip_suffix(path);
            before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        self.places_of(fact).iter().any(is_end)
    }

    /// Returns the places that a fact names.
    pub(super) fn places_of(&self, fact: &Fact) -> Rc<Vec<String>> {
        match fact {
            Fact::Line(_, _, line) => self.places_in(line),
            Fact::Tree(change) => self.place_of(change),
            Fact::Status { .. } | Fact::Order(_) => Rc::default(),
        }
    }

    /// Returns the places of the dests of the command line.
    pub(super) fn dests(&self) -> Vec<String> {
        let dests = self.case.dests().into_iter();
        dests
            .flat_map(|dest| self.places(&String::from_utf8_lossy(&dest)))
            .collect()
    }

    /// Returns the places of the sources that are in a dest themselves.
    pub(super) fn sources_in_dests(&self) -> Vec<String> {
        let sources = self.paths_in_dests().into_iter();
        sources
            .flat_map(|(_, source)| self.places(&source))
            .collect()
    }

    /// Returns the places of the copies of such sources.
    pub(super) fn copies_of_dests(&self) -> Vec<String> {
        let copies = self.paths_in_dests().into_iter().map(|(dest, source)| {
            let name = match self.has_parents() {
                true => &*source,
                false => source
                    .trim_end_matches('/')
                    .rsplit('/')
                    .next()
                    .unwrap_or_default(),
            };
            format!("{dest}/{name}")
        });
        copies.flat_map(|copy| self.places(&copy)).collect()
    }

    /// Returns each dest with each source that is in it, as far as the paths show that.
    fn paths_in_dests(&self) -> Vec<(String, String)> {
        let text = |argument: Vec<u8>| String::from_utf8_lossy(&argument).into_owned();
        let arguments = self.case.symbolic_arguments().into_iter().map(text);
        let sources: Vec<String> = arguments
            .filter(|source| !source.starts_with('-'))
            .collect();
        let mut found = Vec::new();
        for dest in self.case.dests().into_iter().map(text) {
            let tops = self.places(&dest);
            let is_in_dest = |source: &&String| {
                let mut places = self.places(source).into_iter();
                places.any(|place| {
                    !tops.contains(&place) && tops.iter().any(|top| is_within(&place, top))
                })
            };
            let sources = sources.iter().filter(is_in_dest);
            found.extend(sources.map(|source| (dest.clone(), source.clone())));
        }
        found
    }

    /// Returns the places of all arguments that can be operands.
    pub(super) fn operands(&self) -> Vec<String> {
        let arguments = self.case.symbolic_arguments().into_iter();
        let operands = arguments.filter(|argument| !argument.starts_with(b"-"));
        operands
            .flat_map(|operand| self.places(&String::from_utf8_lossy(&operand)))
            .collect()
    }

    /// Returns the places of the directories that `--parents` makes above the dests.
    pub(super) fn parents_of_dests(&self) -> Vec<String> {
        let mut parents = Vec::new();
        for dest in self.case.dests() {
            let dest = String::from_utf8_lossy(&dest);
            for operand in self.case.symbolic_arguments() {
                let operand = String::from_utf8_lossy(&operand);
                for (end, _) in operand.match_indices('/') {
                    parents.extend(self.places(&format!("{dest}/{}", &operand[..end])));
                }
            }
        }
        parents
    }

    pub(super) fn preserves_attributes(&self) -> bool {
        self.has_option('a', "archive") || self.has_option('p', "preserve")
    }

    /// Returns `true` if the command line has this long option, perhaps shortened, or this short one.
    pub(super) fn has_option(&self, short: char, long: &str) -> bool {
        let is_bundle = |text: &[u8]| {
            text.starts_with(b"-") && !text.starts_with(b"--") && text.contains(&(short as u8))
        };
        let has_short = |word: &Word| match word {
            Word::Text(text) => is_bundle(text.as_bytes()),
            Word::Bundle(flags) => flags.contains(&short),
            Word::ShortWith(flag, ..) => *flag == short,
            Word::Long { .. } | Word::LongWith { .. } => false,
            // A name can look like options.
            Word::Operand(operand) => is_bundle(&operand.render(&self.case.names)),
        };
        self.case.has_long(long) || self.case.words.iter().any(has_short)
    }

    /// Returns `true` if a path on the command line begins at the root.
    pub(super) fn has_absolute_path(&self) -> bool {
        let arguments = self.case.symbolic_arguments();
        arguments
            .iter()
            .any(|argument| argument.starts_with(PWD.as_bytes()))
    }

    /// Returns `true` if links between the names of a file may be preserved.
    pub(super) fn may_preserve_links(&self) -> bool {
        self.has_option('a', "archive")
            || self.has_option('d', "")
            || self.case.has_long("preserve")
    }

    pub(super) fn has_backup(&self) -> bool {
        self.has_option('b', "backup") || self.has_option('S', "suffix")
    }

    pub(super) fn has_parents(&self) -> bool {
        self.case.has_long("parents") || self.case.has_long("path")
    }

    /// Returns `true` if there is more than one source, as far as the arguments show that.
    pub(super) fn has_several_sources(&self) -> bool {
        let has_target = self.has_option('t', "target-directory");
        let arguments = self.case.symbolic_arguments();
        let operands = arguments
            .iter()
            .filter(|argument| !argument.starts_with(b"-"));
        operands.count() > if has_target { 1 } else { 2 }
    }

    /// Returns `true` if GNU's command can run once for each source.
    pub(super) fn can_run_in_turn(&self) -> bool {
        self.case.sources().len() > 1
    }

    /// Returns `true` if an argument is a directory by its last name, `.` or `..`.
    pub(super) fn has_dots(&self) -> bool {
        let ends = ["/.", "/./", "/..", "/../"];
        let is_dots = |text: &&str| self.case.has_argument(text);
        ends.iter().any(|end| self.case.has_argument_ending_in(end))
            || [".", "..", "./"].iter().any(is_dots)
    }

    /// Returns `true` if a dest is a directory above an operand, as far as the paths show that.
    pub(super) fn copies_upward(&self) -> bool {
        let arguments = self.case.symbolic_arguments();
        let is_above = |dest: &Vec<u8>| {
            let end = dest.iter().rposition(|&byte| byte != b'/');
            let dest = &dest[..end.map_or(0, |end| end + 1)];
            let is_below = |argument: &Vec<u8>| {
                argument
                    .strip_prefix(dest)
                    .is_some_and(|rest| rest.starts_with(b"/") && rest.len() > 1)
            };
            dest == b"." || dest == PWD.as_bytes() || arguments.iter().any(is_below)
        };
        self.case.dests().iter().any(is_above)
    }

    pub(super) fn has_entry(&self, is_meant: impl Fn(&Entry) -> bool) -> bool {
        self.case.entries.iter().any(is_meant)
    }

    pub(super) fn has_symlink(&self) -> bool {
        self.has_entry(|entry| matches!(entry.what, What::Symlink(_)))
    }

    pub(super) fn has_acl(&self, kind: AclKind) -> bool {
        self.has_entry(|entry| {
            let acl = entry.attributes.acl.as_ref();
            acl.is_some_and(|acl| acl.kind == kind)
        })
    }

    /// Returns `true` if GNU's command has changed directories that ours leaves alone, and nothing else differs in the
    /// trees.
    pub(super) fn gnu_only_touches_dirs(&self) -> bool {
        let is_meant = |fact: &Fact| !matches!(fact, Fact::Tree(_)) || fact.is_dir_changed_by_gnu();
        self.facts.iter().all(is_meant)
    }

    /// Returns the number of directories of both trees that differ.
    pub(super) fn differing_dirs(&self) -> usize {
        let dir = Some(Kind::Directory);
        let path = |fact: &Fact| match fact {
            Fact::Tree(change) if change.kinds == (dir, dir) => Some(change.path.clone()),
            _ => None,
        };
        let mut paths: Vec<String> = self.facts.iter().filter_map(path).collect();
        paths.dedup();
        paths.len()
    }
}
