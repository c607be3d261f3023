//! A case: a tree, a command line, and the circumstances of a run.
//!
//! A case holds everything that a run depends on, so that it can be replayed and shrunk. Paths consist of slots
//! from a small pool. So operands, symlinks and hard links often lead to entries, also after entries have been
//! removed by shrinking.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::Path,
};

/// The pair of commands that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pair {
    Rm,
    Cp,
}

impl Pair {
    pub(crate) fn of(gnu: &str) -> Option<Self> {
        [Self::Rm, Self::Cp]
            .into_iter()
            .find(|pair| pair.gnu() == gnu)
    }

    pub(crate) fn gnu(self) -> &'static str {
        match self {
            Self::Rm => "rm",
            Self::Cp => "cp",
        }
    }

    pub(crate) fn ours(self) -> &'static str {
        match self {
            Self::Rm => "rmz",
            Self::Cp => "cpz",
        }
    }

    fn threads_variable(self) -> &'static str {
        match self {
            Self::Rm => "RMZ_THREADS",
            Self::Cp => "CPZ_THREADS",
        }
    }
}

/// A random command line in a random tree.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) pair: Pair,
    pub(crate) called: Called,
    /// The file names for which the slots of paths stand.
    pub(crate) names: Names,
    pub(crate) entries: Vec<Entry>,
    pub(crate) words: Vec<Word>,
    /// Answers to prompts, one line each. Then stdin ends.
    pub(crate) answers: Vec<&'static str>,
    pub(crate) variables: Vec<(&'static str, &'static str)>,
    pub(crate) threads: u8,
    pub(crate) umask: u32,
    pub(crate) user: User,
    pub(crate) descriptors: Descriptors,
}

/// The name by which a command is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    /// Ours is called by its own name, and GNU's gets `-r` as its first argument.
    Own,
    /// Both get the name of GNU's, after this directory.
    Gnus(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    Root,
    Nobody,
}

/// The limit of open descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Descriptors {
    Unlimited,
    AtMost(u64),
}

/// The number of slots.
pub(crate) const SLOTS: usize = 5;
const PLAIN: [&[u8]; SLOTS] = [b"a", b"b", b"c", b"d", b"e"];

/// The file names of the slots. Two slots never have the same name.
#[derive(Clone, Debug)]
pub(crate) struct Names([Vec<u8>; SLOTS]);

impl Names {
    /// Takes a name for each slot. A missing name becomes a letter.
    pub(crate) fn new(odd: [Option<Vec<u8>>; SLOTS]) -> Self {
        let mut names = PLAIN.map(<[u8]>::to_vec);
        for (slot, odd) in odd.into_iter().enumerate() {
            if let Some(odd) = odd.filter(|odd| !names.contains(odd)) {
                names[slot] = odd;
            }
        }
        Self(names)
    }
}

/// A path relative to the working directory: the slot of each component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slots(pub(crate) Vec<u8>);

impl Slots {
    pub(crate) fn path(&self, names: &Names) -> Vec<u8> {
        let names: Vec<&[u8]> = self.0.iter().map(|&s| &*names.0[usize::from(s)]).collect();
        names.join(&b'/')
    }
}

/// An entry of the tree. It is left out if its place is taken, or if a parent is not a directory.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) at: Slots,
    pub(crate) what: What,
    pub(crate) attributes: Attributes,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    File(Vec<u8>),
    /// A file of this length with data at these offsets.
    Sparse(u64, Vec<u64>),
    Dir,
    Symlink(Target),
    /// A further name of the entry there, unless that is a directory or missing.
    HardLink(Slots),
    Fifo,
    Socket,
    CharDevice(u32, u32),
    BlockDevice(u32, u32),
}

#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// The path from the directory of the symlink, as text.
    Text(&'static str),
    /// An absolute path below the working directory.
    Absolute(Slots),
    /// A path from the directory of the symlink.
    Relative(Slots),
}

#[derive(Clone, Debug)]
pub(crate) struct Attributes {
    /// Permission bits, or the default of the type.
    pub(crate) mode: Option<u32>,
    pub(crate) owner: Owner,
    /// The time of modification: seconds after [`EPOCH_SECONDS`], and nanoseconds.
    pub(crate) time: (u64, u32),
    pub(crate) xattr: Option<(&'static str, Vec<u8>)>,
    pub(crate) acl: Option<Acl>,
}

/// 2001-09-09. Times that the builder sets are near this one, so that times of the run can be told from them.
pub(crate) const EPOCH_SECONDS: u64 = 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The user that runs the command.
    Runner,
    /// These user and group numbers.
    Ids(u32, u32),
}

/// An ACL with entries for a user and a group.
#[derive(Clone, Debug)]
pub(crate) struct Acl {
    pub(crate) kind: AclKind,
    /// Permissions of the owner, the named user, the group, the named group, the mask, and others.
    pub(crate) permissions: [u8; 6],
    pub(crate) user: u32,
    pub(crate) group: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AclKind {
    Access,
    Default,
}

/// One word of a command line, or an option together with a value in the next word.
#[derive(Clone, Debug)]
pub(crate) enum Word {
    Text(&'static str),
    /// Short options in one word.
    Bundle(Vec<char>),
    /// A short option with a value, in one word or in two.
    ShortWith(char, Value, Joined),
    /// A long option without its last characters.
    Long {
        name: &'static str,
        cut: usize,
    },
    /// A long option with a value, in one word or in two.
    LongWith {
        name: &'static str,
        cut: usize,
        value: Value,
        joined: Joined,
    },
    Operand(Operand),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    Yes,
    No,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Path(Operand),
}

/// An operand: a path with text around it.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Text(&'static str),
    Path {
        before: &'static str,
        path: Slots,
        after: &'static str,
    },
}

/// The text in arguments that stands for the absolute path of the working directory.
pub(crate) const PWD: &str = "$PWD";

impl Operand {
    /// Writes the operand, with [`PWD`] in it.
    pub(crate) fn render(&self, names: &Names) -> Vec<u8> {
        match self {
            Self::Text(text) => text.as_bytes().to_vec(),
            Self::Path {
                before,
                path,
                after,
            } => [before.as_bytes(), &path.path(names), after.as_bytes()].concat(),
        }
    }
}

impl Value {
    fn render(&self, names: &Names) -> Vec<u8> {
        match self {
            Self::Text(text) => text.as_bytes().to_vec(),
            Self::Path(operand) => operand.render(names),
        }
    }
}

impl Word {
    /// Appends the arguments of this word.
    fn render(&self, names: &Names, arguments: &mut Vec<Vec<u8>>) {
        let shortened = |name: &str, cut: usize| {
            let kept = name.len().saturating_sub(cut).max(1);
            [b"--", &name.as_bytes()[..kept]].concat()
        };
        match self {
            Self::Text(text) => arguments.push(text.as_bytes().to_vec()),
            Self::Bundle(flags) => {
                arguments.push(format!("-{}", String::from_iter(flags)).into_bytes());
            }
            Self::ShortWith(flag, value, joined) => {
                let flag = format!("-{flag}").into_bytes();
                add_with_value(arguments, flag, b"", value.render(names), *joined);
            }
            Self::Long { name, cut } => arguments.push(shortened(name, *cut)),
            Self::LongWith {
                name,
                cut,
                value,
                joined,
            } => {
                let flag = shortened(name, *cut);
                add_with_value(arguments, flag, b"=", value.render(names), *joined);
            }
            Self::Operand(operand) => arguments.push(operand.render(names)),
        }
    }
}

fn add_with_value(
    arguments: &mut Vec<Vec<u8>>,
    flag: Vec<u8>,
    between: &[u8],
    value: Vec<u8>,
    joined: Joined,
) {
    match joined {
        Joined::Yes => arguments.push([&flag, between, &value].concat()),
        Joined::No => arguments.extend([flag, value]),
    }
}

/// More answers than there are prompts.
const MANY: usize = 60;

/// The long option of rm that makes it prompt as if stdin were a terminal.
pub(crate) const PRESUME_TERMINAL: &str = "-presume-input-tty";

impl Case {
    /// Returns the arguments of both commands, with [`PWD`] in place of the working directory.
    pub(crate) fn symbolic_arguments(&self) -> Vec<Vec<u8>> {
        let mut arguments = Vec::new();
        for word in &self.words {
            word.render(&self.names, &mut arguments);
        }
        arguments
    }

    /// Returns the arguments of both commands.
    pub(crate) fn arguments(&self, pwd: &Path) -> Vec<OsString> {
        let symbolic = self.symbolic_arguments();
        let real = symbolic.into_iter().map(|argument| {
            OsString::from_vec(replaced(&argument, PWD.as_bytes(), pwd.as_os_str()))
        });
        real.collect()
    }

    /// Returns the environment of both commands.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let variables = self.variables.iter();
        let variables = variables.map(|&(name, value)| (name, value.to_owned()));
        let threads = (self.pair.threads_variable(), self.threads.to_string());
        variables.chain([threads]).collect()
    }

    /// Returns the lines of stdin. If prompts come in no certain order, all of them are the same.
    pub(crate) fn stdin(&self) -> Vec<&'static str> {
        match self.answers.first() {
            Some(first) if !self.asks_in_order() => vec![first; MANY],
            _ => self.answers.clone(),
        }
    }

    /// Returns `true` if both commands ask in the same order. With several threads rmz asks about write-protected
    /// files in another order than rm, and cpz asks in another order than cp.
    pub(crate) fn asks_in_order(&self) -> bool {
        match self.pair {
            Pair::Rm => self.threads == 1 || !self.has_long(PRESUME_TERMINAL),
            Pair::Cp => false,
        }
    }

    /// Returns `true` if the command line has this long option, perhaps shortened.
    pub(crate) fn has_long(&self, wanted: &str) -> bool {
        self.words.iter().any(|word| match word {
            Word::Long { name, .. } | Word::LongWith { name, .. } => *name == wanted,
            _ => false,
        })
    }

    /// Returns `true` if an argument is this text.
    pub(crate) fn has_argument(&self, text: &str) -> bool {
        self.symbolic_arguments()
            .iter()
            .any(|argument| argument == text.as_bytes())
    }

    /// Returns `true` if an argument ends in this text.
    pub(crate) fn has_argument_ending_in(&self, end: &str) -> bool {
        let arguments = self.symbolic_arguments();
        arguments
            .iter()
            .any(|argument| argument.ends_with(end.as_bytes()))
    }

    /// Returns the paths that are dests: the last operand of cp, and values of options.
    pub(crate) fn dests(&self) -> Vec<Vec<u8>> {
        let value = |word: &Word| match word {
            Word::ShortWith(_, Value::Path(path), _)
            | Word::LongWith {
                value: Value::Path(path),
                ..
            } => Some(path.render(&self.names)),
            _ => None,
        };
        let mut dests: Vec<_> = self.words.iter().filter_map(value).collect();
        if self.pair == Pair::Cp {
            dests.extend(self.symbolic_arguments().pop());
        }
        dests
    }

    /// Returns the positions of the words that are sources of cp. Returns none if a path may be taken for an option.
    pub(crate) fn sources(&self) -> Vec<usize> {
        let operand = |(at, word): (usize, &Word)| match word {
            Word::Operand(operand) => Some((at, operand.render(&self.names))),
            _ => None,
        };
        let words = self.words.iter().enumerate();
        let mut operands: Vec<(usize, Vec<u8>)> = words.filter_map(operand).collect();
        if operands.iter().any(|(_, path)| path.starts_with(b"-")) {
            return Vec::new();
        }
        let names_target = |word: &Word| {
            matches!(
                word,
                Word::ShortWith('t', ..)
                    | Word::LongWith {
                        name: "target-directory",
                        ..
                    }
            )
        };
        if !self.words.iter().any(names_target) {
            operands.pop();
        }
        operands.into_iter().map(|(at, _)| at).collect()
    }

    /// Returns the case without the words at these positions.
    pub(crate) fn without(&self, words: &[usize]) -> Self {
        let kept = self.words.iter().enumerate();
        let kept = kept.filter(|(at, _)| !words.contains(at));
        Self {
            words: kept.map(|(_, word)| word.clone()).collect(),
            ..self.clone()
        }
    }

    /// Returns a case for each source of this one, with that as the only source.
    pub(crate) fn in_turn(&self) -> Vec<Self> {
        let sources = self.sources();
        let single = |source: &usize| {
            let others: Vec<usize> = sources.iter().copied().filter(|at| at != source).collect();
            self.without(&others)
        };
        sources.iter().map(single).collect()
    }

    /// Returns the name by which GNU's command is called.
    pub(crate) fn gnus_name(&self) -> String {
        match self.called {
            Called::Own => self.pair.gnu().to_owned(),
            Called::Gnus(dir) => format!("{dir}{}", self.pair.gnu()),
        }
    }

    /// Returns the name by which our command is called.
    pub(crate) fn our_name(&self) -> String {
        match self.called {
            Called::Own => self.pair.ours().to_owned(),
            Called::Gnus(_) => self.gnus_name(),
        }
    }
}

/// Replaces each `pattern` in `text`.
pub(crate) fn replaced(text: &[u8], pattern: &[u8], by: impl AsRef<OsStr>) -> Vec<u8> {
    let mut rest = text;
    let mut result = Vec::with_capacity(text.len());
    while let Some((&first, later)) = rest.split_first() {
        match rest.strip_prefix(pattern) {
            Some(later) => {
                result.extend(by.as_ref().as_bytes());
                rest = later;
            }
            None => {
                result.push(first);
                rest = later;
            }
        }
    }
    result
}
