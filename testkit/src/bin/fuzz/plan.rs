//! The steps that build the tree of a case. They are decided first, and then either done or written as a script,
//! so that a script builds the same tree as the fuzzer.

use std::{
    collections::BTreeMap, ffi::OsStr, os::unix::ffi::OsStrExt as _, path::Path, time::Duration,
};

use testkit::{probe::NOBODY, run::replaced, tree::Tree};

use crate::case::{Acl, AclKind, Attributes, Case, EPOCH_SECONDS, Owner, PWD, User, What};
use crate::script::{quoted, quoted_path};

/// A change of one entry.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// The path relative to the working directory; empty for that directory itself.
    path: Vec<u8>,
    action: Action,
}

#[derive(Clone, Debug)]
enum Action {
    /// Makes an entry. The path is the target of a symbolic link, or the other name of a hard link.
    Make(What, Vec<u8>),
    SetOwner(u32, u32),
    SetMode(u32),
    SetXattr(&'static str, Vec<u8>),
    SetTimes(Duration),
}

/// The data that sparse files have at each of their offsets.
const DATA: &[u8] = b"data";

/// Makes a socket in a shell.
const SOCKET: &str =
    "perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => shift, Listen => 1)'";

/// Decides which steps build the tree of `case`.
pub(crate) fn plan(case: &Case) -> Vec<Step> {
    let planner = Planner::of(case);
    // A directory comes before its entries, so going back sets its mode and its times after those of its entries.
    let setting = planner.setting.into_iter().rev().flatten();
    planner.making.into_iter().chain(setting).collect()
}

/// Returns the target of each symbolic link in the tree of `case`, by its path.
pub(crate) fn link_targets(case: &Case) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut targets = BTreeMap::new();
    for Step { path, action } in Planner::of(case).making {
        match action {
            Action::Make(What::Symlink(_), target) => drop(targets.insert(path, target)),
            Action::Make(What::HardLink(_), other) => {
                let target: Option<&Vec<u8>> = targets.get(&other);
                targets.extend(target.cloned().map(|target| (path, target)));
            }
            _ => {}
        }
    }
    targets
}

struct Planner<'a> {
    case: &'a Case,
    /// The paths that are taken, and whether each is a directory.
    made: BTreeMap<Vec<u8>, bool>,
    making: Vec<Step>,
    /// The steps that set the attributes of each entry.
    setting: Vec<Vec<Step>>,
}

impl<'a> Planner<'a> {
    fn of(case: &'a Case) -> Self {
        let mut planner = Self {
            case,
            made: BTreeMap::new(),
            making: Vec::new(),
            setting: Vec::new(),
        };
        planner.set(Vec::new(), &What::Dir, &Attributes::plain());
        for entry in &case.entries {
            planner.add(entry);
        }
        planner
    }

    fn add(&mut self, entry: &crate::case::Entry) {
        let names = &self.case.names;
        for parents in 1..entry.at.0.len() {
            let parent = crate::case::Slots(entry.at.0[..parents].to_vec()).path(names);
            match self.made.get(&parent) {
                Some(true) => {}
                Some(false) => return,
                None => self.make(parent, &What::Dir, Vec::new(), &Attributes::plain()),
            }
        }
        let path = entry.at.path(names);
        if self.made.contains_key(&path) {
            return;
        }
        let other = match &entry.what {
            What::Symlink(target) => target.render(names),
            What::HardLink(existing) => existing.path(names),
            _ => Vec::new(),
        };
        let is_link = matches!(entry.what, What::HardLink(_));
        if !is_link {
            self.make(path, &entry.what, other, &entry.attributes);
        } else if self.made.get(&other) == Some(&false) {
            // The attributes of the inode are those of its first name.
            self.made.insert(path.clone(), false);
            let action = Action::Make(entry.what.clone(), other);
            self.making.push(Step { path, action });
        }
    }

    fn make(&mut self, path: Vec<u8>, what: &What, other: Vec<u8>, attributes: &Attributes) {
        self.made.insert(path.clone(), matches!(what, What::Dir));
        self.making.push(Step {
            path: path.clone(),
            action: Action::Make(what.clone(), other),
        });
        self.set(path, what, attributes);
    }

    /// Plans the attributes of an entry. The owner comes before the mode and the ACL, because a change of owner
    /// clears set-id bits. The times come last.
    fn set(&mut self, path: Vec<u8>, what: &What, attributes: &Attributes) {
        let mut actions = Vec::new();
        match (attributes.owner, self.case.user) {
            (Owner::Runner, User::Root) => {}
            (Owner::Runner, User::Nobody) => actions.push(Action::SetOwner(NOBODY, NOBODY)),
            (Owner::Ids(user, group), _) => actions.push(Action::SetOwner(user, group)),
        }
        if !matches!(what, What::Symlink(_)) {
            let is_special = !matches!(what, What::Dir | What::File(_) | What::Sparse(..));
            if let Some((name, value)) = &attributes.xattr
                && (!is_special || name.starts_with("trusted."))
            {
                actions.push(Action::SetXattr(name, value.clone()));
            }
            actions.extend(attributes.mode.map(Action::SetMode));
            if let Some(acl) = &attributes.acl
                && (acl.kind == AclKind::Access || matches!(what, What::Dir))
            {
                actions.push(Action::SetXattr(acl.attribute(), acl.encoded()));
            }
        }
        let (seconds, nanos) = attributes.time;
        actions.push(Action::SetTimes(Duration::new(
            EPOCH_SECONDS + seconds,
            nanos,
        )));
        let steps = actions.into_iter().map(|action| Step {
            path: path.clone(),
            action,
        });
        self.setting.push(steps.collect());
    }
}

impl Step {
    /// Changes the tree whose working directory is that of `tree`.
    pub(crate) fn act(&self, tree: &Tree) {
        let path = Path::new(OsStr::from_bytes(&self.path));
        match &self.action {
            Action::Make(what, other) => match what {
                What::Dir => tree.dir(path),
                What::File(content) => tree.file(path, content),
                What::Sparse(len, offsets) => {
                    let data: Vec<_> = offsets.iter().map(|&offset| (offset, DATA)).collect();
                    tree.sparse(path, *len, &data)
                }
                What::Symlink(_) => {
                    let target =
                        replaced(other, PWD.as_bytes(), tree.path().as_os_str().as_bytes());
                    tree.symlink(path, OsStr::from_bytes(&target))
                }
                What::HardLink(_) => tree.hardlink(OsStr::from_bytes(other), path),
                What::Fifo => tree.fifo(path),
                What::Socket => tree.socket(path),
                What::CharDevice(major, minor) => tree.char_device(path, *major, *minor),
                What::BlockDevice(major, minor) => tree.block_device(path, *major, *minor),
            },
            Action::SetOwner(user, group) => tree.select(path).owner(*user, *group),
            Action::SetMode(mode) => tree.select(path).mode(*mode),
            Action::SetXattr(name, value) => tree.select(path).xattr(name, value),
            Action::SetTimes(time) => tree.select(path).mtime(*time).atime(*time),
        };
    }

    /// Writes the step as a line of a bash script.
    pub(crate) fn shell(&self) -> String {
        let path = quoted_path(&self.path);
        match &self.action {
            Action::Make(what, other) => match what {
                What::Dir => format!("mkdir {path}"),
                What::File(content) if content.len() > 4 && content.iter().all(|&b| b == 0) => {
                    format!("head -c {} /dev/zero >{path}", content.len())
                }
                What::File(content) => format!("printf %b {} >{path}", printf(content)),
                What::Sparse(len, offsets) => {
                    let truncate = format!("truncate -s {len} {path}");
                    offsets.iter().fold(truncate, |script, offset| {
                        let dd = "dd bs=1 conv=notrunc status=none";
                        format!("{script}; printf data | {dd} seek={offset} of={path}")
                    })
                }
                What::Symlink(_) => format!("ln -s -- {} {path}", quoted(other)),
                What::HardLink(_) => format!("ln -P {} {path}", quoted_path(other)),
                What::Fifo => format!("mkfifo {path}"),
                What::Socket => format!("{SOCKET} {path}; chmod 0644 {path}"),
                What::CharDevice(major, minor) => format!("mknod {path} c {major} {minor}"),
                What::BlockDevice(major, minor) => format!("mknod {path} b {major} {minor}"),
            },
            Action::SetOwner(user, group) => format!("chown -h {user}:{group} {path}"),
            Action::SetMode(mode) => format!("chmod {mode:04o} {path}"),
            Action::SetXattr(name, value) => {
                let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("setfattr -n {name} -v 0x{hex} {path}")
            }
            Action::SetTimes(time) => {
                let (seconds, nanos) = (time.as_secs(), time.subsec_nanos());
                format!("touch -hd @{seconds}.{nanos:09} {path}")
            }
        }
    }
}

/// Writes bytes for `printf %b`.
fn printf(content: &[u8]) -> String {
    let bytes = content.iter().map(|byte| match byte {
        b'a'..=b'z' | b'0'..=b'9' | b' ' => char::from(*byte).to_string(),
        byte => format!("\\0{byte:03o}"),
    });
    format!("'{}'", bytes.collect::<String>())
}

impl Attributes {
    /// The attributes of directories that no entry asks for.
    pub(crate) fn plain() -> Self {
        Self {
            mode: None,
            owner: Owner::Runner,
            time: (0, 0),
            xattr: None,
            acl: None,
        }
    }
}

impl Acl {
    fn attribute(&self) -> &'static str {
        match self.kind {
            AclKind::Access => "system.posix_acl_access",
            AclKind::Default => "system.posix_acl_default",
        }
    }

    /// Encodes the ACL for the kernel: the version, and then a tag, permissions and an id for each entry.
    fn encoded(&self) -> Vec<u8> {
        const VERSION: u32 = 2;
        const NO_ID: u32 = u32::MAX;
        let ids = [NO_ID, self.user, NO_ID, self.group, NO_ID, NO_ID];
        let tags: [u16; 6] = [0x01, 0x02, 0x04, 0x08, 0x10, 0x20];
        let mut bytes = VERSION.to_le_bytes().to_vec();
        for ((tag, permissions), id) in tags.into_iter().zip(self.permissions).zip(ids) {
            bytes.extend(tag.to_le_bytes());
            bytes.extend(u16::from(permissions).to_le_bytes());
            bytes.extend(id.to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::strategy::{Strategy as _, ValueTree as _};
    use testkit::{
        probe::is_root,
        skip,
        snapshot::{Attributes, Snapshot},
        tree::Scratch,
    };

    use super::*;
    use crate::{case::Pair, fuzzer::runner, generate};

    #[test]
    fn a_script_builds_the_tree_of_its_case() {
        if !is_root() {
            skip!("only root can give entries to other users");
        }
        let strategy = generate::case(Pair::Cp);
        for number in 0..60 {
            let case = strategy.new_tree(&mut runner(1, number)).unwrap().current();
            let steps = plan(&case);
            let scratch = Scratch::new();
            let built = |build: &dyn Fn(&Path)| {
                let place = scratch.path().join("t");
                let tree = Tree::at(&place);
                build(tree.path());
                let snapshot = Snapshot::of(&place, Attributes::ALL - Attributes::ATIME);
                testkit::tree::remove_for_sure(&place).unwrap();
                snapshot
            };
            let ours = built(&|place| {
                let tree = Tree::at(place);
                steps.iter().for_each(|step| step.act(&tree));
            });
            let script: Vec<String> = steps.iter().map(Step::shell).collect();
            let script = format!("set -e; umask 022\n{}", script.join("\n"));
            let scripts = built(&|place| {
                let mut bash = Command::new("bash");
                let output = bash.args(["-c", &script]).current_dir(place).output();
                let output = output.expect("bash is installed");
                let errors = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{errors}\n{script}");
            });
            assert_eq!(ours.diff(&scripts), "", "case {number}: {script}");
        }
    }
}
