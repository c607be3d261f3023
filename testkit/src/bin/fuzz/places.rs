//! Finds the entries of the trees to which the paths in messages lead.
//!
//! A place is the path of an entry, relative to the working directory. Its names are text in which `U+FFFD` stands for
//! what is not UTF-8.

use std::{collections::BTreeMap, os::unix::ffi::OsStrExt as _};

use testkit::snapshot::Snapshot;

use crate::{
    case::{Case, PWD},
    plan,
    quoting::path_of_tree,
    run::{ABOVE, WORKING},
};

/// The symbolic links of a case, and those that the commands have made, by the place of each.
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
    /// Finds the links of `case` and of the trees that it has led to. A link of the case counts even if the run has
    /// replaced it.
    pub(crate) fn of(case: &Case, trees: [&Snapshot; 2]) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let target = |target: &[u8]| {
            let target = text(target);
            match target.starts_with(PWD) || target.starts_with('/') {
                true => format!("/{}", relative(&target)),
                false => target,
            }
        };
        let mut links = BTreeMap::new();
        for tree in trees {
            for (path, to) in tree.symlinks() {
                let place = of_entry(&path);
                if place.split('/').count() <= MAX_LINK_DEPTH {
                    links.insert(place, target(to.as_bytes()));
                }
            }
        }
        for (path, to) in plan::symlinks(case) {
            links.insert(normal(&text(&path)), target(&to));
        }
        Self { links }
    }

    /// Returns the places to which a path in a message may lead: by its text, and through symbolic links, perhaps
    /// even the one that it names.
    pub(crate) fn of_path(&self, path: &str) -> Vec<String> {
        let path = relative(path);
        let mut places = vec![normal(path)];
        places.extend([Last::Keep, Last::Follow].map(|last| self.resolved(path, MAX_LINKS, last)));
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
            if let Some(target) = self.links.get(&without_detour(&place).join("/"))
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
    let path = format!("/{}", path_of_tree(path));
    // The working directory is `x/y/w` in the trees.
    let working = format!("{ABOVE}/{WORKING}");
    let working = working.split_once('/').map_or("", |(_, below)| below);
    match path.strip_prefix(&format!("/{working}")) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => normal(rest),
        _ => {
            let depth = working.split('/').count();
            let above: Vec<&str> = path.split('/').filter(|name| *name != ".").collect();
            let shared = working.split('/').zip(above.iter().skip(1));
            let shared = shared.take_while(|(one, other)| one == *other).count();
            let rest = &above[(1 + shared).min(above.len())..];
            let rest = rest.join("/");
            normal(&format!("{}{rest}", "../".repeat(depth - shared)))
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

/// Returns the part of a path below the working directory, if it begins with that.
fn relative(path: &str) -> &str {
    let path = path.strip_prefix(PWD).unwrap_or(path);
    let working = format!("/{ABOVE}/{WORKING}");
    match path.split_once(&working) {
        Some((_, rest)) if path.starts_with('/') => rest,
        _ => path,
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
            ("x/y/w/caf\u{e9}/a", "caf\u{e9}/a"),
            ("x/y/w/a\\nb/a", "a\nb/a"),
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
