//! The steps that build the tree of a case. They are decided first, and then either done or written as a script,
//! so that a script builds the same tree as the fuzzer.

use std::{
    collections::BTreeMap, ffi::OsStr, os::unix::ffi::OsStrExt as _, path::Path, time::Duration,
};

use testkit::{probe::NOBODY, tree::Tree};

use crate::case::{
    Acl, AclKind, Attributes, Case, EPOCH_SECONDS, Owner, PWD, Target, User, What, replaced,
};
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
    MakeDir,
    MakeFile(Vec<u8>),
    MakeSparse(u64, Vec<u64>),
    MakeSymlink(Vec<u8>),
    LinkTo(Vec<u8>),
    MakeFifo,
    MakeSocket,
    MakeCharDevice(u32, u32),
    MakeBlockDevice(u32, u32),
    SetOwner(u32, u32),
    SetMode(u32),
    SetAcl(Acl),
    SetXattr(&'static str, Vec<u8>),
    SetTimes(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Dir,
    File,
    Symlink,
    Other,
}

/// The data that sparse files have at each of their offsets.
const DATA: &[u8] = b"data";

/// Makes a socket in a shell.
const SOCKET: &str =
    "perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => shift, Listen => 1)'";

/// Decides which steps build the tree of `case`.
pub(crate) fn plan(case: &Case) -> Vec<Step> {
    let mut planner = Planner {
        case,
        made: BTreeMap::new(),
        making: Vec::new(),
        setting: Vec::new(),
    };
    planner.set(Vec::new(), Kind::Dir, &Attributes::plain());
    for entry in &case.entries {
        planner.add(entry.at.0.len(), entry);
    }
    // A directory comes before its entries, so going back sets its mode and its times after those of its entries.
    let setting = planner.setting.into_iter().rev().flatten();
    planner.making.into_iter().chain(setting).collect()
}

/// Returns the path and the target of each symbolic link in the tree of `case`.
pub(crate) fn symlinks(case: &Case) -> Vec<(Vec<u8>, Vec<u8>)> {
    let link = |step: Step| match step.action {
        Action::MakeSymlink(target) => Some((step.path, target)),
        _ => None,
    };
    plan(case).into_iter().filter_map(link).collect()
}

struct Planner<'a> {
    case: &'a Case,
    made: BTreeMap<Vec<u8>, Kind>,
    making: Vec<Step>,
    /// The steps that set the attributes of each entry.
    setting: Vec<Vec<Step>>,
}

impl Planner<'_> {
    fn add(&mut self, depth: usize, entry: &crate::case::Entry) {
        let names = &self.case.names;
        for parents in 1..depth {
            let parent = crate::case::Slots(entry.at.0[..parents].to_vec()).path(names);
            match self.made.get(&parent) {
                Some(Kind::Dir) => {}
                Some(_) => return,
                None => self.make(parent, Kind::Dir, Action::MakeDir, &Attributes::plain()),
            }
        }
        let path = entry.at.path(names);
        if self.made.contains_key(&path) {
            return;
        }
        let (kind, action) = match &entry.what {
            What::File(content) => (Kind::File, Action::MakeFile(content.clone())),
            What::Sparse(len, offsets) => (Kind::File, Action::MakeSparse(*len, offsets.clone())),
            What::Dir => (Kind::Dir, Action::MakeDir),
            What::Symlink(target) => (Kind::Symlink, Action::MakeSymlink(self.target(target))),
            What::HardLink(existing) => {
                let existing = existing.path(names);
                match self.made.get(&existing) {
                    None | Some(Kind::Dir) => return,
                    Some(_) => {}
                }
                // The attributes of the inode are those of its first name.
                self.made.insert(path.clone(), self.made[&existing]);
                let action = Action::LinkTo(existing);
                self.making.push(Step { path, action });
                return;
            }
            What::Fifo => (Kind::Other, Action::MakeFifo),
            What::Socket => (Kind::Other, Action::MakeSocket),
            What::CharDevice(major, minor) => (Kind::Other, Action::MakeCharDevice(*major, *minor)),
            What::BlockDevice(major, minor) => {
                (Kind::Other, Action::MakeBlockDevice(*major, *minor))
            }
        };
        self.make(path, kind, action, &entry.attributes);
    }

    fn target(&self, target: &Target) -> Vec<u8> {
        let names = &self.case.names;
        match target {
            Target::Text(text) => text.as_bytes().to_vec(),
            Target::Relative(path) => path.path(names),
            Target::Absolute(path) => [PWD.as_bytes(), b"/", &path.path(names)].concat(),
        }
    }

    fn make(&mut self, path: Vec<u8>, kind: Kind, action: Action, attributes: &Attributes) {
        self.made.insert(path.clone(), kind);
        self.making.push(Step {
            path: path.clone(),
            action,
        });
        self.set(path, kind, attributes);
    }

    /// Plans the attributes of an entry. The owner comes before the mode and the ACL, because a change of owner
    /// clears set-id bits. The times come last.
    fn set(&mut self, path: Vec<u8>, kind: Kind, attributes: &Attributes) {
        let mut actions = Vec::new();
        match (attributes.owner, self.case.user) {
            (Owner::Runner, User::Root) => {}
            (Owner::Runner, User::Nobody) => actions.push(Action::SetOwner(NOBODY, NOBODY)),
            (Owner::Ids(user, group), _) => actions.push(Action::SetOwner(user, group)),
        }
        if kind != Kind::Symlink {
            if let Some((name, value)) = &attributes.xattr
                && (kind != Kind::Other || name.starts_with("trusted."))
            {
                actions.push(Action::SetXattr(name, value.clone()));
            }
            actions.extend(attributes.mode.map(Action::SetMode));
            if let Some(acl) = &attributes.acl
                && (acl.kind == AclKind::Access || kind == Kind::Dir)
            {
                actions.push(Action::SetAcl(acl.clone()));
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
            Action::MakeDir => tree.dir(path),
            Action::MakeFile(content) => tree.file(path, content),
            Action::MakeSparse(len, offsets) => {
                let data: Vec<_> = offsets.iter().map(|&offset| (offset, DATA)).collect();
                tree.sparse(path, *len, &data)
            }
            Action::MakeSymlink(target) => {
                let target = replaced(target, PWD.as_bytes(), tree.path());
                tree.symlink(path, OsStr::from_bytes(&target))
            }
            Action::LinkTo(existing) => tree.hardlink(OsStr::from_bytes(existing), path),
            Action::MakeFifo => tree.fifo(path),
            Action::MakeSocket => tree.socket(path),
            Action::MakeCharDevice(major, minor) => tree.char_device(path, *major, *minor),
            Action::MakeBlockDevice(major, minor) => tree.block_device(path, *major, *minor),
            Action::SetOwner(user, group) => tree.select(path).owner(*user, *group),
            Action::SetMode(mode) => tree.select(path).mode(*mode),
            Action::SetAcl(acl) => tree.select(path).xattr(acl.attribute(), acl.encoded()),
            Action::SetXattr(name, value) => tree.select(path).xattr(name, value),
            Action::SetTimes(time) => tree.select(path).mtime(*time).atime(*time),
        };
    }

    /// Writes the step as a line of a bash script.
    pub(crate) fn shell(&self) -> String {
        let path = quoted_path(&self.path);
        match &self.action {
            Action::MakeDir => format!("mkdir {path}"),
            Action::MakeFile(content) if content.len() > 4 && content.iter().all(|&b| b == 0) => {
                format!("head -c {} /dev/zero >{path}", content.len())
            }
            Action::MakeFile(content) => format!("printf %b {} >{path}", printf(content)),
            Action::MakeSparse(len, offsets) => {
                let truncate = format!("truncate -s {len} {path}");
                offsets.iter().fold(truncate, |script, offset| {
                    let dd = "dd bs=1 conv=notrunc status=none";
                    format!("{script}; printf data | {dd} seek={offset} of={path}")
                })
            }
            Action::MakeSymlink(target) => format!("ln -s -- {} {path}", quoted(target)),
            Action::LinkTo(existing) => format!("ln -P {} {path}", quoted_path(existing)),
            Action::MakeFifo => format!("mkfifo {path}"),
            Action::MakeSocket => format!("{SOCKET} {path}; chmod 0644 {path}"),
            Action::MakeCharDevice(major, minor) => format!("mknod {path} c {major} {minor}"),
            Action::MakeBlockDevice(major, minor) => format!("mknod {path} b {major} {minor}"),
            Action::SetOwner(user, group) => format!("chown -h {user}:{group} {path}"),
            Action::SetMode(mode) => format!("chmod {mode:04o} {path}"),
            Action::SetAcl(acl) => format!("setfacl --set {} {path}", acl.text()),
            Action::SetXattr(name, value) => {
                format!("setfattr -n {name} -v {} {path}", quoted(value))
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

    /// Writes the ACL for `setfacl --set`.
    fn text(&self) -> String {
        let prefix = match self.kind {
            AclKind::Access => "",
            AclKind::Default => "d:",
        };
        let (user, group) = (self.user.to_string(), self.group.to_string());
        let who = [
            ("u", ""),
            ("u", &*user),
            ("g", ""),
            ("g", &*group),
            ("m", ""),
            ("o", ""),
        ];
        let entries = who
            .iter()
            .zip(self.permissions)
            .map(|((tag, id), permissions)| {
                let bits = [(4, 'r'), (2, 'w'), (1, 'x')];
                let bits =
                    bits.map(|(bit, letter)| if permissions & bit == 0 { '-' } else { letter });
                format!("{prefix}{tag}:{id}:{}", String::from_iter(bits))
            });
        entries.collect::<Vec<_>>().join(",")
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
    use crate::{
        case::Pair,
        fuzzer::runner,
        generate::{self, Rights},
    };

    #[test]
    fn a_script_builds_the_tree_of_its_case() {
        if !is_root() {
            skip!("only root can give entries to other users");
        }
        let strategy = generate::case(Pair::Cp, Rights::Root);
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
