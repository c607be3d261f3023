//! Strategies that generate cases. What is listed twice is drawn twice as often.

use std::{ffi::OsString, os::unix::ffi::OsStringExt as _, time::Duration};

use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::{select, subsequence},
    string::string_regex,
};

use crate::case::{Attributes, Case, Circumstances, Entry, LETTERS, Pair, What};

prop_compose! {
    /// Generates a case for `pair`.
    pub(crate) fn case(pair: Pair)(
        // Shrinking changes these parts in order. What removes most of a case comes first.
        words in words(pair),
        others in vec((path(), what(), attributes()), 0..10),
        named in vec(option::weighted(0.95, (what(), attributes())), 4),
        dest in option::weighted(0.95, (prop_oneof![4 => Just(What::Dir), 1 => what()], attributes())),
        names in names(),
        circumstances in circumstances(pair),
    ) -> Case {
        // Hardly any command line with random paths succeeds, so entries are at the paths that operands name.
        let operands = words.iter().filter(|word| !word.starts_with('-'));
        let mut paths: Vec<String> = operands.map(|word| letters(word)).collect();
        let dest_path = paths.pop_if(|_| pair == Pair::Cp);
        let named = paths.into_iter().zip(named).chain(dest_path.map(|path| (path, dest)));
        let named = named.filter_map(|(at, made)| made.map(|(what, attributes)| (at, what, attributes)));
        let entries = named.chain(others).map(|(at, what, attributes)| Entry { at, what, attributes });
        let entries = entries.filter(|entry| !entry.at.is_empty()).collect();
        Case { pair, entries, words, names, circumstances }
    }
}

/// Returns the path of letters in an operand.
fn letters(operand: &str) -> String {
    let names = operand.split('/').filter(|name| LETTERS.contains(name));
    names.collect::<Vec<_>>().join("/")
}

prop_compose! {
    fn circumstances(pair: Pair)(
        has_own_name in prop::bool::weighted(0.33),
        is_nobody in any::<bool>(),
        umask in select(vec![0o022, 0o022, 0o022, 0o000, 0o002, 0o077, 0o777, 0o277, 0o444]),
        has_few_descriptors in prop::bool::weighted(0.15),
        threads in select(vec![1, 2, 8]),
        answers in vec(one_of("y|y|y|y|n|n||Yes|x| y|Y|yN"), 0..30),
        locale in one_of("||LC_ALL=C|LC_ALL=C.UTF-8|LANG=C.utf8|LC_CTYPE=C.UTF-8"),
        other in prop_oneof![9 => Just(""), 1 => one_of(other_variables(pair))],
    ) -> Circumstances {
        let variables = [locale, other];
        Circumstances { has_own_name, is_nobody, umask, has_few_descriptors, threads, answers, variables }
    }
}

fn other_variables(pair: Pair) -> &'static str {
    match pair {
        Pair::Rm => "POSIXLY_CORRECT=|POSIXLY_CORRECT=1",
        Pair::Cp => {
            "POSIXLY_CORRECT=|SIMPLE_BACKUP_SUFFIX=.s|SIMPLE_BACKUP_SUFFIX=|SIMPLE_BACKUP_SUFFIX=a/b|\
             VERSION_CONTROL=numbered|VERSION_CONTROL=t|VERSION_CONTROL=off|VERSION_CONTROL=bogus"
        }
    }
}

const ODD_NAMES: &[u8] =
    b"a|b|new\nline|\xff\xfe|it's| |-v|--|-rf|...|\"|\\|caf\xc3\xa9|\xe2\x80\x8b|$x|~|a:b|\
    it's\x01|\xcc\x81|a~|a.~1~|tab\t|{}|#|[x]|a'\n'|\x7f\xc3";

fn names() -> impl Strategy<Value = Vec<OsString>> {
    let names = ODD_NAMES.split(|&byte| byte == b'|').map(<[u8]>::to_vec);
    let long = [255, 254, 250].map(|bytes| vec![b'n'; bytes]);
    let odd = names
        .chain(long)
        .map(OsString::from_vec)
        .collect::<Vec<_>>();
    let plain = LETTERS.map(OsString::from).to_vec();
    prop_oneof![3 => Just(plain), 1 => subsequence(odd, LETTERS.len()).prop_shuffle()]
}

fn path() -> impl Strategy<Value = String> {
    prop_oneof![5 => "[a-e](/[a-e])?", 1 => "[a-e](/[a-e]){2,6}"]
}

fn what() -> impl Strategy<Value = What> {
    let target = prop_oneof![
        4 => path(),
        2 => path().prop_map(|path| format!("$PWD/{path}")),
        2 => one_of(".|..|../..|nowhere|/nowhere/at/all|a/|a/.|./a").prop_map(str::to_owned),
    ];
    prop_oneof![
        9 => "|[a-z]{1,4}".prop_map(What::File),
        1 => (0_usize..40_000).prop_map(What::Zeros),
        1 => (8_192_u64..300_000, 0_u64..8_000).prop_map(|(bytes, offset)| What::Sparse(bytes, offset)),
        8 => Just(What::Dir),
        5 => target.prop_map(What::Symlink),
        3 => path().prop_map(What::HardLink),
        1 => Just(What::Fifo),
        1 => Just(What::Socket),
        1 => select(vec![(0, 0), (1, 3), (240, 7)]).prop_map(|(major, minor)| What::Device(major, minor)),
    ]
}

fn mode() -> impl Strategy<Value = Option<u32>> {
    prop_oneof![
        8 => Just(None),
        3 => select(vec![0o600, 0o700, 0o777, 0o555, 0o444, 0o711, 0o311]).prop_map(Some),
        1 => select(vec![0o000, 0o1777, 0o2755, 0o4755, 0o6711, 0o7777]).prop_map(Some),
        1 => (0_u32..0o10000).prop_map(Some),
    ]
}

prop_compose! {
    fn attributes()(
        mode in mode(),
        owner in option::weighted(0.1, select(vec![(0, 0), (1234, 1234), (65534, 0), (0, 65534)])),
        // Not a few nanoseconds: with -p, both commands guess the resolution of the dest's filesystem.
        seconds in 0_u64..3,
        nanos in select(vec![0_u32, 200_000_000, 999_999_999]),
        xattr in option::weighted(0.06, (one_of("user.x|user.y|trusted.z"), one_of("|a|bc"))),
        acl in option::weighted(0.06, "(d:)?[ug]:(0|1234|65534):[r-][w-][x-]"),
    ) -> Attributes {
        let time = Duration::new(seconds, nanos);
        Attributes { mode, owner, time, xattr, acl }
    }
}

fn operand() -> impl Strategy<Value = String> {
    let before = one_of("||||||||||||./|.//|$PWD/");
    let after = one_of("||||||||||||/|//|/.|/..");
    prop_oneof![
        20 => (before, path(), after).prop_map(|(before, path, after)| format!("{before}{path}{after}")),
        1 => one_of(".|.|..||$PWD|./|missing").prop_map(str::to_owned),
    ]
}

fn words(pair: Pair) -> impl Strategy<Value = Vec<String>> {
    let (first, options, odd, operands) = match pair {
        Pair::Rm => (
            "-r|-r|-rf|-R|--recursive|-d|-dr|-ri|-rv|-i|-f|",
            rm_option(),
            "--|--|-|-x|--bogus|--no|--rec|--verb|--help|--version|-rx|--=|--force=x",
            1,
        ),
        Pair::Cp => (
            "-r|-r|-r|-R|--recursive|-a|-a|-rp|-rL|-rl|-rs|-rb|-rf|-ru|-rn|||",
            cp_option(),
            "--|--|-T|-T|-Z|-|-y|--bogus|--no|--re|--arch|--help|--version|--=|--context|--context=x|--link=x",
            2,
        ),
    };
    let word = prop_oneof![
        8 => operand(),
        24 => options,
        1 => one_of(odd).prop_map(str::to_owned),
    ];
    // Without operands, a command line is hardly ever of interest.
    let operands = vec(operand(), operands..operands + 2);
    (one_of(first), vec(word, 0..5), operands).prop_map(|(first, words, operands)| {
        let first = Some(first.to_owned()).filter(|first| !first.is_empty());
        first.into_iter().chain(words).chain(operands).collect()
    })
}

fn rm_option() -> BoxedStrategy<String> {
    let long =
        "--(force|recursive|dir|verbose|one-file-system|no-preserve-root|preserve-root(=all)?)";
    let when = "--interactive(=(never|no|none|once|always|yes|a|bogus))?";
    prop_oneof![6 => "-[fiIrRdv]{1,2}", 2 => long, 1 => when, 1 => "---presume-input-tty"].boxed()
}

fn cp_option() -> BoxedStrategy<String> {
    let long = "--(archive|attributes-only|copy-contents|debug|debug|dereference|force|interactive|keep-directory-symlink|link|\
                no-clobber|no-dereference|no-target-directory|one-file-system|parents|parents|path|recursive|\
                remove-destination|strip-trailing-slashes|symbolic-link|verbose)";
    let attribute = "(mode|ownership|timestamps|links|context|xattr|all|mo|bogus)";
    let with = "--(backup(=(none|off|numbered|t|existing|nil|simple|never|n))?|(no-)?preserve=A(,A)?|preserve|\
                (reflink|sparse)(=(auto|always|never))?|update(=(all|none|none-fail|older|bogus))?)";
    let with = string_regex(&with.replace('A', attribute));
    let with = with.expect("BUG: it is a regular expression");
    let suffix = r"(-S |--suffix=|--suffix )(\.o|~|b|/x|a/b|\.|'|xé)?";
    let target = (one_of("-t |--target-directory "), operand())
        .prop_map(|(option, dir)| format!("{option}{dir}"));
    prop_oneof![
        12 => "-[abdfilnprRsuvxHLP]{1,2}",
        7 => long,
        5 => with,
        1 => suffix,
        1 => target,
    ]
    .boxed()
}

/// Generates one of the texts in a list.
fn one_of(list: &'static str) -> impl Strategy<Value = &'static str> + Clone {
    select(list.split('|').collect::<Vec<_>>())
}
