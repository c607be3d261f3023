//! Finds the entries of the trees to which the paths in messages lead.
//!
//! Messages quote odd names, and facts about trees escape them in another way. So a place is a path of which only
//! plain characters are left. Two odd names can be the same place.

use std::{collections::BTreeMap, iter::Peekable, str::Chars};

use crate::{
    case::{Case, PWD},
    plan,
    run::{ABOVE, WORKING},
};

/// The symbolic links of a case, by the place of each.
pub(crate) struct Places {
    links: BTreeMap<String, String>,
}

/// Most links on the way to a place.
const MAX_LINKS: usize = 20;
/// Most names of the path of a link in a case, with some to spare.
const MAX_LINK_DEPTH: usize = 16;

/// Says what happens to a symbolic link that is the last name of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Keep,
    Follow,
}

impl Places {
    pub(crate) fn of(case: &Case) -> Self {
        let links = plan::symlinks(case).into_iter();
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        let links = links.map(|(path, target)| {
            let target = text(&target);
            let target = match target.strip_prefix(PWD) {
                Some(rest) => format!("/{rest}"),
                None => target,
            };
            (normal(&plain(&text(&path))), plain(&target))
        });
        Self {
            links: links.collect(),
        }
    }

    /// Returns the places to which a path in a message may lead: by its text, and through symbolic links, perhaps
    /// even the one that it names.
    pub(crate) fn of_path(&self, path: &str) -> Vec<String> {
        let path = plain(relative(path));
        let mut places = vec![normal(&path)];
        places.extend([Last::Keep, Last::Follow].map(|last| self.resolved(&path, MAX_LINKS, last)));
        places.dedup();
        places
    }

    fn resolved(&self, path: &str, links: usize, last: Last) -> String {
        let mut place: Vec<&str> = Vec::new();
        let mut names = path
            .split('/')
            .filter(|name| !name.is_empty() && *name != ".");
        while let Some(name) = names.next() {
            if name == ".." && place.last().is_some_and(|last| *last != "..") {
                place.pop();
                continue;
            }
            place.push(name);
            // Paths can have hundreds of names, but the links of a case are not that deep.
            if links == 0 || place.len() > MAX_LINK_DEPTH {
                continue;
            }
            let rest: Vec<&str> = names.clone().collect();
            if let Some(target) = self.links.get(&place.join("/"))
                && (!rest.is_empty() || last == Last::Follow)
            {
                place.pop();
                let before = match target.starts_with('/') {
                    true => String::new(),
                    false => place.join("/"),
                };
                let path = format!("{before}/{target}/{}", rest.join("/"));
                return self.resolved(&path, links - 1, last);
            }
        }
        let place = without_detour(&place);
        match place.is_empty() {
            true => ".".to_owned(),
            false => place.join("/"),
        }
    }
}

/// Returns the place without a way up from the working directory and down again.
fn without_detour<'a, 'b>(place: &'a [&'b str]) -> &'a [&'b str] {
    let above: Vec<&str> = ABOVE.split('/').chain([WORKING]).collect();
    let ups = place.iter().take_while(|name| **name == "..").count();
    let ups = ups.min(above.len());
    let (_, rest) = place.split_at(ups);
    let returned = above[above.len() - ups..].iter().zip(rest);
    let returned = returned.take_while(|(one, other)| one == other).count();
    match returned == ups {
        true => &rest[returned..],
        false => place,
    }
}

/// Returns the place of a path of the compared tree.
pub(crate) fn of_entry(path: &str) -> String {
    let path = format!("/{path}");
    // The working directory is `x/y/w` in the trees.
    let working = format!("{ABOVE}/{WORKING}");
    let working = working.split_once('/').map_or("", |(_, below)| below);
    match path.strip_prefix(&format!("/{working}")) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => normal(&plain(rest)),
        _ => {
            let depth = working.split('/').count();
            let above: Vec<&str> = path.split('/').filter(|name| *name != ".").collect();
            let shared = working.split('/').zip(above.iter().skip(1));
            let shared = shared.take_while(|(one, other)| one == *other).count();
            let rest = &above[(1 + shared).min(above.len())..];
            normal(&plain(&format!(
                "{}{}",
                "../".repeat(depth - shared),
                rest.join("/")
            )))
        }
    }
}

/// Returns the place of the directory that contains the entry at a place.
pub(crate) fn parent(place: &str) -> String {
    match place.rsplit_once('/') {
        _ if place == "." || place.ends_with("..") => {
            let place = if place == "." { "" } else { place };
            format!("{place}/..").trim_start_matches('/').to_owned()
        }
        Some((parent, _)) => parent.to_owned(),
        None => ".".to_owned(),
    }
}

/// Returns `true` if `place` is `top` or below it.
pub(crate) fn is_within(place: &str, top: &str) -> bool {
    let is_below = |rest: &str| rest.is_empty() || rest.starts_with('/');
    let ups = |place: &str| place.split('/').take_while(|name| *name == "..").count();
    match top.split('/').all(|name| [".", ".."].contains(&name)) {
        true => ups(place) <= ups(top),
        false => place.strip_prefix(top).is_some_and(is_below),
    }
}

/// Returns the paths that a message quotes.
pub(crate) fn quoted(message: &str) -> Vec<&str> {
    // A quote inside of a name is followed by an escape or a letter, and one around it is not.
    let is_end = |rest: &str| {
        let end = [" ", ":", ",", "?", ";"]
            .iter()
            .any(|end| rest.starts_with(*end));
        end || ["", "/", ")"].contains(&rest)
    };
    let mut paths = Vec::new();
    // This message names its path without quotes, if it is plain.
    if let Some((path, _)) = message.split_once(": can make relative symbolic links only") {
        paths.extend(path.split_once(": ").map(|(_, path)| path));
        return paths;
    }
    let mut begin = None;
    for (at, c) in message.char_indices() {
        if !matches!(c, '\'' | '"' | '‘' | '’') {
            continue;
        }
        let after = &message[at + c.len_utf8()..];
        match begin {
            None => begin = Some(at),
            Some(from) if is_end(after) => {
                paths.push(&message[from..at]);
                begin = None;
            }
            Some(_) => {}
        }
    }
    paths
}

/// Returns the part of a path below the working directory, if it begins with that.
fn relative(path: &str) -> &str {
    let path = path.trim_start_matches(['\'', '"', '‘']);
    let path = path.strip_prefix(PWD).unwrap_or(path);
    let working = format!("/{ABOVE}/{WORKING}");
    match path.split_once(&working) {
        Some((_, rest)) if path.starts_with('/') => rest,
        _ => path,
    }
}

/// Removes quotes, and replaces escapes and odd characters, however many, by a question mark.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let text = text.replace("\\\\", "\\");
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            c if c.is_ascii_alphanumeric() || "/.~-_".contains(c) => plain.push(c),
            '\'' | '"' | '$' => {}
            '\\' if rest.peek().is_some_and(|c| "'\"".contains(*c)) => {}
            c => {
                if c == '\\' {
                    skip_escape(&mut rest);
                }
                if !plain.ends_with('?') {
                    plain.push('?');
                }
            }
        }
    }
    plain
}

/// Skips the rest of an escape.
fn skip_escape(rest: &mut Peekable<Chars<'_>>) {
    let digits = match rest.peek() {
        Some('u') => {
            rest.find(|c| *c == '}');
            return;
        }
        Some('x' | '0'..='7') => 3,
        Some(c) if c.is_ascii_lowercase() => 1,
        _ => 0,
    };
    for _ in 0..digits {
        rest.next();
    }
}

/// Resolves `.` and `..` by text.
fn normal(path: &str) -> String {
    let places = Places {
        links: BTreeMap::new(),
    };
    places.resolved(path, 0, Last::Keep)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_and_messages_have_the_same_places() {
        let places = Places {
            links: [("a/l".to_owned(), "../b".to_owned())].into(),
        };
        for (entry, path) in [
            ("x/y/w/a/b", "a/./b"),
            ("x/y/w/b/c", "a/l/c"),
            ("x/y/w/a/l", "a/l"),
            ("x/y/w/b", "a/l"),
            ("x/y/w/caf\u{e9}/a", "caf\\xc3\\xa9/a"),
            ("x/y/w/a\\nb/a", "'a'$'\\\\n''b'/a"),
            ("x/y/w", "a/.."),
            ("x/y/b", "../b"),
            ("x/b", "../../b"),
            ("x/y/w/b", "a/../../../y/w/b"),
            ("x/y/w/a", "/dev/shm/z/t/x/y/w/a"),
        ] {
            assert!(places.of_path(path).contains(&of_entry(entry)), "{entry}");
        }
    }

    #[test]
    fn messages_quote_paths() {
        let message = "cp: cannot copy a directory, 'a', into itself, 'it'\\''s/b'";
        assert_eq!(quoted(message), ["'a", "'it'\\''s/b"]);
        assert_eq!(quoted("cp: setting permissions for ‘a/b’: x"), ["‘a/b"]);
        assert_eq!(
            quoted("cp: cannot stat 'a'$'\\n''b/c': x"),
            ["'a'$'\\n''b/c"]
        );
    }

    #[test]
    fn a_place_is_within_its_parents() {
        assert_eq!(parent("a/b"), "a");
        assert_eq!(parent("a"), ".");
        assert_eq!(parent("."), "..");
        assert!(is_within("a/b", "a") && is_within("a", "."));
        assert!(is_within("a/b", "..") && is_within("../a", "..") && is_within("..", "../.."));
        assert!(!is_within("ab", "a") && !is_within("../a", "."));
        assert!(!is_within("../../a", "..") && !is_within("..", "a"));
    }
}
