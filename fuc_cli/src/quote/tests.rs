//! Compares the quotes with those of GNU rm, which reports each name as missing.

use super::*;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use testkit::or_skip;
use testkit::probe::{gnu, newest_gnu};

/// Returns these names as `rm` quotes them.
///
/// One process gets many names, because starting processes takes most of the time.
fn quoted_by(rm: &Path, names: &[Vec<u8>], locale: &str) -> Vec<Vec<u8>> {
    let nowhere = std::env::temp_dir().join("fuc-cli-quote-nowhere");
    std::fs::create_dir_all(&nowhere).unwrap();
    let output = Command::new(rm)
        .arg0("rm")
        .current_dir(nowhere)
        .env("LC_ALL", locale)
        .arg("--")
        .args(names.iter().map(|name| OsStr::from_bytes(name)))
        .output()
        .unwrap();
    let lines = output.stderr.strip_suffix(b"\n").unwrap();
    lines
        .split(|&byte| byte == b'\n')
        .map(|line| {
            let line = line.strip_prefix(b"rm: cannot remove ").unwrap();
            let end = line.windows(2).rposition(|pair| pair == b": ").unwrap();
            line[..end].to_vec()
        })
        .collect()
}

fn agrees_with_rm(names: Vec<Vec<u8>>) {
    // Older releases quote a name with a quote in another way if it ends with a control character.
    let rm = or_skip!(newest_gnu("rm"));
    for (locale, charset) in [("C", Charset::Ascii), ("C.UTF-8", Charset::Utf8)] {
        for names in names.chunks(2000) {
            let theirs = quoted_by(&rm, names, locale);
            assert_eq!(names.len(), theirs.len());
            for (name, theirs) in names.iter().zip(theirs) {
                let ours = always(OsStr::from_bytes(name), charset);
                assert_eq!(ours, String::from_utf8_lossy(&theirs), "{locale}: {name:?}");
            }
        }
    }
}

/// Returns every string of up to `length` of these parts.
fn combinations(parts: &[&[u8]], length: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    let mut last = all.clone();
    for _ in 0..length {
        last = last
            .iter()
            .flat_map(|head| parts.iter().map(move |part| [head, *part].concat()))
            .collect();
        all.extend_from_slice(&last);
    }
    all
}

#[test]
fn quotes_every_byte_alone_and_beside_a_quote_as_rm_does() {
    let mut names: Vec<Vec<u8>> = Vec::new();
    for byte in (1..=255).filter(|&byte| byte != b'/') {
        names.extend((byte != b'.').then(|| vec![byte]));
        names.push(vec![b'\'', byte]);
        names.push(vec![byte, b'\'']);
        names.push(vec![b'a', byte, b'\'', byte]);
        names.push(vec![b'\n', byte, b'\n']);
    }
    let longer = [
        "-rf",
        "{}",
        "~'",
        "a#'",
        "日本語",
        "😀",
        "e\u{301}",
        "??/",
        "a'??/",
    ];
    names.extend(longer.map(|name| name.as_bytes().to_vec()));
    agrees_with_rm(names);
}

#[test]
fn quotes_combinations_of_special_characters_as_rm_does() {
    let parts: [&[u8]; 10] = [
        b"a",
        b"'",
        b"\"",
        b" ",
        b"$",
        b"\\",
        b"\n",
        b"\x7f",
        b"\xff",
        "é".as_bytes(),
    ];
    agrees_with_rm(combinations(&parts, 4));
}

#[test]
fn quotes_utf8_that_cannot_be_shown_as_rm_does() {
    let odd: [&[u8]; 16] = [
        b"\xc2\x85",                 // a control character
        b"\xe2\x80\x8b",             // no width
        b"\xe2\x80\xa8",             // a line separator
        b"\xc2\xad",                 // a soft hyphen
        b"\xee\x80\x80",             // private use
        b"\xcd\xb8",                 // unassigned
        b"\xed\xa0\x80",             // a surrogate
        b"\xf4\x90\x80\x80",         // past the last code point
        b"\xf8\x88\x80\x80\x80",     // five bytes
        b"\xfc\x84\x80\x80\x80\x80", // six
        b"\xc0\xaf",                 // overlong
        b"\xe2\x82",                 // cut short
        b"\xe2\x82x\xe2\x82\xac",    // cut short by a letter
        b"\x80\xbf",                 // no beginning
        b"\xef\xbf\xbe",             // no character
        b"\xf0\x9f\x98",             // cut short
    ];
    agrees_with_rm(combinations(&odd, 2));
}

#[test]
fn knows_the_printable_characters_of_the_basic_plane() {
    // Test only blocks that were complete long ago, so that a newer C library does not differ.
    let characters = (0x80..0x0860).chain((0x2000..0x2070).chain(0xff00..0xffff));
    let names = characters.filter_map(char::from_u32);
    agrees_with_rm(names.map(|c| c.to_string().into_bytes()).collect());
}

#[test]
fn leaves_plain_words_bare_if_no_quotes_are_needed() {
    let shown = |name: &str| if_needed(name, Charset::Utf8);
    assert_eq!(shown("-foo"), "-foo");
    assert_eq!(shown("-é#~{}:,%@+_]"), "-é#~{}:,%@+_]");
    assert_eq!(shown("-f o"), "'-f o'");
    assert_eq!(shown("-it's"), "\"-it's\"");
    assert_eq!(shown("-="), "'-='");
    assert_eq!(shown("-a\n"), r"'-a'$'\n'");
    assert_eq!(shown(""), "''");
}

#[test]
fn quotes_option_arguments_as_rm_does() {
    let rm = or_skip!(gnu("rm"));
    for (name, charset) in [("C", Charset::Ascii), ("C.UTF-8", Charset::Utf8)] {
        for value in [
            &b"foo"[..],
            b"fo'o\\\n\x01\xff\"",
            "a‘b’c\u{85}é".as_bytes(),
            b"a??/x\x07\x08\x0c\x0b\x1b\r\t1 2",
        ] {
            let option = [b"--interactive=", value].concat();
            let output = Command::new(&rm)
                .arg0("rm")
                .env("LC_ALL", name)
                .arg(OsStr::from_bytes(&option))
                .output()
                .unwrap();
            let quoted = locale(OsStr::from_bytes(value), charset);
            let ours = format!("rm: invalid argument {quoted}");
            let theirs = &output.stderr[..ours.len().min(output.stderr.len())];
            assert_eq!(ours, String::from_utf8_lossy(theirs), "{name}");
        }
    }
}
