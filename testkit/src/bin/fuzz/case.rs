//! A case: a tree, a command line, and the circumstances of a run.
//!
//! A case holds everything that a run depends on, so that it can be replayed and shrunk. Paths consist of slots
//! from a small pool. So operands, symlinks and hard links often lead to entries, also after entries have been
//! removed by shrinking.

use std::{ffi::OsString, os::unix::ffi::OsStringExt as _, path::Path};

use testkit::run::replaced;

/// The pair of commands that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pair {
    Rm,
    Cp,
}

impl Pair {
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
    /// The limit of open descriptors.
    pub(crate) descriptors: Option<u64>,
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

impl Target {
    /// Writes the target, with [`PWD`] in it.
    pub(crate) fn render(&self, names: &Names) -> Vec<u8> {
        match self {
            Self::Text(text) => text.as_bytes().to_vec(),
            Self::Relative(path) => path.path(names),
            Self::Absolute(path) => [PWD.as_bytes(), b"/", &path.path(names)].concat(),
        }
    }
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
    /// An option with its value.
    Flag(Flag, Option<(Operand, Joined)>),
    Operand(Operand),
}

/// An option. A name of one letter is a short one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flag {
    pub(crate) name: &'static str,
    /// The number of characters that a long name lacks at its end.
    pub(crate) cut: usize,
}

/// Says whether a value is in the word of its option, or in the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    Yes,
    No,
}

/// An operand or a value: a text, or a path with text around it.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Text(String),
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

impl Word {
    /// Appends the arguments of this word.
    fn render(&self, names: &Names, arguments: &mut Vec<Vec<u8>>) {
        match self {
            Self::Text(text) => arguments.push(text.as_bytes().to_vec()),
            Self::Bundle(flags) => {
                arguments.push(format!("-{}", String::from_iter(flags)).into_bytes());
            }
            Self::Flag(flag, value) => {
                let (mut flag, between) = flag.render();
                match value {
                    Some((value, Joined::Yes)) => {
                        flag.push_str(between);
                        arguments.push([flag.as_bytes(), &value.render(names)].concat());
                    }
                    Some((value, Joined::No)) => {
                        arguments.extend([flag.into_bytes(), value.render(names)]);
                    }
                    None => arguments.push(flag.into_bytes()),
                }
            }
            Self::Operand(operand) => arguments.push(operand.render(names)),
        }
    }
}

impl Flag {
    /// Returns the option, and what comes between it and a value in the same word.
    fn render(self) -> (String, &'static str) {
        let Self { name, cut } = self;
        match name.len() {
            1 => (format!("-{name}"), ""),
            len => (
                format!("--{}", &name[..len.saturating_sub(cut).max(1)]),
                "=",
            ),
        }
    }
}

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
            OsString::from_vec(replaced(
                &argument,
                PWD.as_bytes(),
                pwd.as_os_str().as_encoded_bytes(),
            ))
        });
        real.collect()
    }

    /// Returns the environment of both commands.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let variables = self.variables.iter();
        let variables = variables.map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let threads = (
            self.pair.ours().to_uppercase() + "_THREADS",
            self.threads.to_string(),
        );
        variables.chain([threads]).collect()
    }

    /// Returns the lines of stdin. If prompts come in no certain order, all are the same, and more than there are prompts.
    pub(crate) fn stdin(&self) -> Vec<&'static str> {
        match self.answers.first() {
            Some(first) if !self.asks_in_order() => vec![first; 60],
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
        let mut words = self.words.iter();
        words.any(|word| matches!(word, Word::Flag(flag, _) if flag.name == wanted))
    }

    /// Returns `true` if the command line has this short option or this long one, perhaps shortened.
    pub(crate) fn has_option(&self, short: char, long: &str) -> bool {
        let is_bundle = |text: &[u8]| {
            text.starts_with(b"-") && !text.starts_with(b"--") && text.contains(&(short as u8))
        };
        self.has_long(long)
            || self.words.iter().any(|word| match word {
                Word::Text(text) => is_bundle(text.as_bytes()),
                Word::Bundle(flags) => flags.contains(&short),
                Word::Flag(flag, _) => flag.name.len() == 1 && flag.name.starts_with(short),
                // A name can look like options.
                Word::Operand(operand) => is_bundle(&operand.render(&self.names)),
            })
    }

    /// Returns `true` if the names of all slots are letters, which messages quote without escapes.
    pub(crate) fn has_plain_names(&self) -> bool {
        self.names.0 == PLAIN
    }

    /// Returns the paths that are dests of cp: the values of options, or the last operand.
    pub(crate) fn dests(&self) -> Vec<Vec<u8>> {
        let (mut operands, mut dests) = (self.operands(), self.target_directories());
        if dests.is_empty() && self.pair == Pair::Cp {
            dests.extend(operands.pop());
        }
        dests
    }

    /// Returns the operands before the dest of cp.
    pub(crate) fn sources(&self) -> Vec<Vec<u8>> {
        let mut operands = self.operands();
        if self.target_directories().is_empty() && self.pair == Pair::Cp {
            operands.pop();
        }
        operands
    }

    /// Returns the operands, except those that may be taken for options.
    fn operands(&self) -> Vec<Vec<u8>> {
        let operand = |word: &Word| match word {
            Word::Operand(operand) => Some(operand.render(&self.names)),
            _ => None,
        };
        let operands = self.words.iter().filter_map(operand);
        operands.filter(|path| !path.starts_with(b"-")).collect()
    }

    fn target_directories(&self) -> Vec<Vec<u8>> {
        let value = |word: &Word| match word {
            Word::Flag(flag, Some((path, _))) if ["t", "target-directory"].contains(&flag.name) => {
                Some(path.render(&self.names))
            }
            _ => None,
        };
        self.words.iter().filter_map(value).collect()
    }

    /// Returns the names by which GNU's command and ours are called.
    pub(crate) fn called_names(&self) -> [String; 2] {
        let [gnu, ours] = [self.pair.gnu(), self.pair.ours()];
        match self.called {
            Called::Own => [gnu.to_owned(), ours.to_owned()],
            Called::Gnus(dir) => [format!("{dir}{gnu}"), format!("{dir}{gnu}")],
        }
    }
}
