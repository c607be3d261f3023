//! Strategies that generate cases.

use proptest::{collection::vec, option, prelude::*, sample::select};

use crate::{
    case::{
        Acl, AclKind, Attributes, Called, Case, Entry, Flag, Joined, Names, Operand, Owner, Pair,
        SLOTS, Slots, Target, User, What, Word,
    },
    flags::{self, Table, Takes},
};

/// Generates a case for `pair`.
pub(crate) fn case(pair: Pair) -> impl Strategy<Value = Case> {
    let user = prop_oneof![Just(User::Root), Just(User::Nobody)];
    let descriptors = option::weighted(0.15, Just(24));
    let called = prop_oneof![
        2 => select(vec!["", "/usr/bin/", "../"]).prop_map(Called::Gnus),
        1 => Just(Called::Own),
    ];
    let umask = prop_oneof![
        4 => Just(0o022),
        2 => select(vec![0o000, 0o002, 0o027, 0o077]),
        1 => select(vec![0o777, 0o277, 0o111, 0o444]),
    ];
    let circumstances = (called, umask, user, descriptors, select(vec![1, 2, 8]));
    // Shrinking changes these parts in order. What removes most of a case comes first.
    (
        words(pair),
        vec(entry(), 0..10),
        vec(option::weighted(0.95, (what(), attributes())), 4..=4),
        option::weighted(0.95, (dest(), attributes())),
        names(),
        circumstances,
        answers(),
        variables(pair),
    )
        .prop_map(
            move |(words, others, named, dest, names, circumstances, answers, variables)| {
                let (called, umask, user, descriptors, threads) = circumstances;
                let mut entries = named_entries(pair, &words, named, dest);
                entries.extend(others);
                Case {
                    pair,
                    called,
                    names,
                    entries,
                    words,
                    answers,
                    variables,
                    threads,
                    umask,
                    user,
                    descriptors,
                }
            },
        )
}

/// Places entries at the paths that operands name, because hardly any command line with random paths succeeds.
fn named_entries(
    pair: Pair,
    words: &[Word],
    named: Vec<Option<(What, Attributes)>>,
    dest: Option<(What, Attributes)>,
) -> Vec<Entry> {
    let mut paths: Vec<&Slots> = words
        .iter()
        .filter_map(|word| match word {
            Word::Operand(Operand::Path { path, .. }) => Some(path),
            _ => None,
        })
        .collect();
    let last = match pair {
        Pair::Rm => None,
        Pair::Cp => paths.pop(),
    };
    let named = paths.into_iter().zip(named);
    let entry = |(at, made): (&Slots, Option<(What, Attributes)>)| {
        made.map(|(what, attributes)| Entry {
            at: at.clone(),
            what,
            attributes,
        })
    };
    named
        .chain(last.map(|last| (last, dest)))
        .filter_map(entry)
        .collect()
}

fn names() -> impl Strategy<Value = Names> {
    let plain = Just([const { None }; SLOTS]);
    let odd = [(); SLOTS].map(|()| option::weighted(0.3, odd_name()));
    prop_oneof![3 => plain, 1 => odd].prop_map(Names::new)
}

const ODD_NAMES: &[u8] =
    b"new\nline|\xff\xfe|it's| |-v|--|-rf|...|\"|\\|caf\xc3\xa9|\xe2\x80\x8b|$x|~|a:b|\
    it's\x01|\xcc\x81|a~|a.~1~|tab\t|{}|=|#|[x]|a'\n'";

fn odd_name() -> impl Strategy<Value = Vec<u8>> {
    let chosen: Vec<&[u8]> = ODD_NAMES.split(|&byte| byte == b'|').collect();
    let byte = any::<u8>().prop_filter("in names", |&byte| byte != 0 && byte != b'/');
    let any_bytes = vec(byte, 1..6).prop_filter("names", |name| name != b"." && name != b"..");
    let long = select(vec![255_usize, 254, 253, 250]).prop_map(|len| vec![b'n'; len]);
    prop_oneof![
        6 => select(chosen).prop_map(<[u8]>::to_vec),
        3 => any_bytes,
        1 => long,
    ]
}

fn slots() -> impl Strategy<Value = Slots> {
    let depth = prop_oneof![10 => Just(1_usize), 8 => Just(2), 3 => Just(3), 1 => 4_usize..8];
    let slot = 0..u8::try_from(SLOTS).expect("BUG: there are few slots");
    depth
        .prop_flat_map(move |depth| vec(slot.clone(), depth..=depth))
        .prop_map(Slots)
}

fn entry() -> impl Strategy<Value = Entry> {
    (slots(), what(), attributes()).prop_map(|(at, what, attributes)| Entry {
        at,
        what,
        attributes,
    })
}

/// Generates the dest of a copy, which is a directory most of the time.
fn dest() -> impl Strategy<Value = What> {
    prop_oneof![4 => Just(What::Dir), 1 => what()]
}

fn what() -> impl Strategy<Value = What> {
    let special = prop_oneof![
        3 => Just(What::Fifo),
        3 => Just(What::Socket),
        1 => select(vec![(0, 0), (1, 3), (240, 7)]).prop_map(|(a, b)| What::CharDevice(a, b)),
        1 => select(vec![(240, 1), (240, 99)]).prop_map(|(a, b)| What::BlockDevice(a, b)),
    ];
    prop_oneof![
        10 => content().prop_map(What::File),
        1 => (8_192_u64..300_000, vec(0_u64..8_000, 0..3))
            .prop_map(|(len, offsets)| What::Sparse(len, offsets)),
        8 => Just(What::Dir),
        5 => target().prop_map(What::Symlink),
        3 => slots().prop_map(What::HardLink),
        2 => special,
    ]
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => Just(Vec::new()),
        6 => vec(any::<u8>(), 1..5),
        1 => (0_usize..40_000).prop_map(|len| vec![0; len]),
    ]
}

fn target() -> impl Strategy<Value = Target> {
    let text = vec![
        ".",
        "..",
        "../..",
        "nowhere",
        "/nowhere/at/all",
        "a/",
        "a/.",
        "./a",
    ];
    prop_oneof![
        4 => slots().prop_map(Target::Relative),
        2 => slots().prop_map(Target::Absolute),
        2 => select(text).prop_map(Target::Text),
    ]
}

fn attributes() -> impl Strategy<Value = Attributes> {
    let mode = prop_oneof![
        8 => Just(None),
        3 => select(vec![0o600, 0o700, 0o777, 0o555, 0o444, 0o711, 0o311]).prop_map(Some),
        1 => select(vec![0o000, 0o1777, 0o2755, 0o4755, 0o6711, 0o7777]).prop_map(Some),
        1 => (0_u32..0o10000).prop_map(Some),
    ];
    let ids = select(vec![(0, 0), (1234, 1234), (65534, 0), (0, 65534)]);
    let owner = prop_oneof![
        8 => Just(Owner::Runner),
        1 => ids.prop_map(|(user, group)| Owner::Ids(user, group)),
    ];
    // Not a few nanoseconds: with -p, both commands guess the resolution of the dest's filesystem.
    let time = (0_u64..3, select(vec![0_u32, 200_000_000, 999_999_999]));
    let xattr_names = vec!["user.x", "user.y", "trusted.z"];
    let xattr = (select(xattr_names), vec(b'a'..b'e', 0..3));
    (
        mode,
        owner,
        time,
        option::weighted(0.06, xattr),
        option::weighted(0.06, acl()),
    )
        .prop_map(|(mode, owner, time, xattr, acl)| Attributes {
            mode,
            owner,
            time,
            xattr,
            acl,
        })
}

fn acl() -> impl Strategy<Value = Acl> {
    let permission = || prop_oneof![2 => Just(7_u8), 1 => 0_u8..8];
    let permissions = [(); 6].map(|()| permission());
    let kind = select(vec![AclKind::Access, AclKind::Default]);
    let id = || select(vec![0_u32, 1234, 65534]);
    (kind, permissions, id(), id()).prop_map(|(kind, permissions, user, group)| Acl {
        kind,
        permissions,
        user,
        group,
    })
}

fn operand() -> impl Strategy<Value = Operand> {
    let before = prop_oneof![
        12 => Just(""),
        1 => Just("./"),
        1 => Just(".//"),
        1 => Just("$PWD/"),
    ];
    let after = prop_oneof![
        12 => Just(""),
        2 => select(vec!["/", "//"]),
        1 => select(vec!["/.", "/./", "/..", "/../"]),
    ];
    let path = (before, slots(), after).prop_map(|(before, path, after)| Operand::Path {
        before,
        path,
        after,
    });
    prop_oneof![
        20 => path,
        1 => select(vec![".", ".", "..", "", "$PWD", "./", "missing"]).prop_map(|text| Operand::Text(text.to_owned())),
    ]
}

fn words(pair: Pair) -> impl Strategy<Value = Vec<Word>> {
    let table = flags::table(pair);
    let first = select(list(table.first)).prop_map(|flags| match flags {
        "." => None,
        flags => Some(Word::Text(flags)),
    });
    let odd = select(list(table.odd)).prop_map(Word::Text);
    let word = prop_oneof![
        8 => operand().prop_map(Word::Operand),
        24 => flag(table),
        1 => odd,
    ];
    // Without operands, a command line is hardly ever of interest.
    let operands = vec(
        operand().prop_map(Word::Operand),
        table.operands..table.operands + 2,
    );
    (first, vec(word, 0..5), operands).prop_map(|(first, words, operands)| {
        first.into_iter().chain(words).chain(operands).collect()
    })
}

fn list(words: &'static str) -> Vec<&'static str> {
    words.split(' ').collect()
}

fn flag(table: &Table) -> BoxedStrategy<Word> {
    let bundle = vec(select(table.short.chars().collect::<Vec<_>>()), 1..3);
    let bundle = bundle.prop_map(Word::Bundle);
    let plain = list(table.long)
        .into_iter()
        .map(|name| (name, Takes::Nothing));
    let long = plain.chain(table.long_with.iter().copied());
    let long = select(long.collect::<Vec<_>>()).prop_flat_map(valued);
    if table.short_with.is_empty() {
        return prop_oneof![3 => bundle, 2 => long].boxed();
    }
    let short_with = select(table.short_with).prop_flat_map(valued);
    prop_oneof![6 => bundle, 6 => long, 1 => short_with].boxed()
}

/// Generates an option, most of the time with a value if it takes one.
fn valued((name, takes): flags::Flag) -> BoxedStrategy<Word> {
    let cut = prop_oneof![8 => Just(0), 1 => 0..name.len()];
    let with = match takes {
        Takes::Nothing => 0.025,
        Takes::MaybeOneOf(_) | Takes::MaybeListOf(_) => 0.75,
        Takes::OneOf(_) | Takes::ListOf(_) | Takes::Suffix | Takes::Dir => 0.98,
    };
    let joined = match takes {
        Takes::Nothing | Takes::MaybeOneOf(_) | Takes::MaybeListOf(_) => Just(Joined::Yes).boxed(),
        _ => select(vec![Joined::Yes, Joined::No]).boxed(),
    };
    let value = option::weighted(with, (value(takes), joined));
    (cut, value)
        .prop_map(move |(cut, value)| Word::Flag(Flag { name, cut }, value))
        .boxed()
}

fn value(takes: Takes) -> BoxedStrategy<Operand> {
    let one_of = |values: &'static str| {
        let exact = select(list(values)).prop_map(str::to_owned);
        let prefix = (select(list(values)), 0_usize..4)
            .prop_map(|(value, len)| value[..len.min(value.len())].to_owned());
        prop_oneof![40 => exact, 2 => prefix, 1 => Just("bogus".to_owned())]
    };
    let text = match takes {
        Takes::Dir => return operand().boxed(),
        Takes::Nothing => Just("x".to_owned()).boxed(),
        Takes::OneOf(values) | Takes::MaybeOneOf(values) => one_of(values).boxed(),
        Takes::ListOf(values) | Takes::MaybeListOf(values) => vec(one_of(values), 1..3)
            .prop_map(|values| values.join(","))
            .boxed(),
        Takes::Suffix => select(vec![".o", "~", "b", "", "/x", "a/b", ".", "'", "x\u{e9}"])
            .prop_map(str::to_owned)
            .boxed(),
    };
    text.prop_map(Operand::Text).boxed()
}

fn answers() -> impl Strategy<Value = Vec<&'static str>> {
    let answer = prop_oneof![
        4 => Just("y"),
        2 => Just("n"),
        1 => select(vec!["", "Yes", "x", " y", "Y", "yN"]),
    ];
    vec(answer, 0..30)
}

fn variables(pair: Pair) -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let locale = prop_oneof![
        2 => Just(None),
        1 => Just(Some(("LC_ALL", "C"))),
        1 => Just(Some(("LC_ALL", "C.UTF-8"))),
        1 => Just(Some(("LANG", "C.utf8"))),
        1 => Just(Some(("LC_CTYPE", "C.UTF-8"))),
    ];
    let other: Vec<(&str, &str)> = match pair {
        Pair::Rm => vec![("POSIXLY_CORRECT", ""), ("POSIXLY_CORRECT", "1")],
        Pair::Cp => vec![
            ("POSIXLY_CORRECT", ""),
            ("SIMPLE_BACKUP_SUFFIX", ".s"),
            ("SIMPLE_BACKUP_SUFFIX", ""),
            ("SIMPLE_BACKUP_SUFFIX", "a/b"),
            ("VERSION_CONTROL", "numbered"),
            ("VERSION_CONTROL", "t"),
            ("VERSION_CONTROL", "off"),
            ("VERSION_CONTROL", "bogus"),
        ],
    };
    let other = option::weighted(0.1, select(other));
    (locale, other).prop_map(|(locale, other)| locale.into_iter().chain(other).collect())
}

/// Returns the case with nothing that takes root. It runs as the user that runs the fuzzer.
pub(crate) fn without_root(mut case: Case) -> Case {
    (case.user, case.descriptors) = (User::Root, None);
    for entry in &mut case.entries {
        if let What::CharDevice(..) | What::BlockDevice(..) = entry.what {
            entry.what = What::Fifo;
        }
        entry.attributes.owner = Owner::Runner;
        let xattr = entry.attributes.xattr.take();
        entry.attributes.xattr = xattr.filter(|(name, _)| name.starts_with("user."));
    }
    case
}
