//! Gives a command the circumstances of a case: the umask, the limit of descriptors, and the user.
//!
//! The fuzzer starts itself again as a small process, which takes them on and then becomes the command. If the fuzzer
//! started the command as another user, the standard library would fork. A fork copies the page tables, and the fuzzer
//! needs up to 1 GB after a deep tree.

use std::{
    env,
    error::Error,
    ffi::OsString,
    io,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Command, ExitCode},
};

use rustix::{
    fs::Mode,
    process::{Resource, Rlimit, setrlimit, umask},
};
use testkit::probe::NOBODY;

use crate::{
    Outcome,
    case::{Case, Descriptors, User},
};

/// The first argument of the fuzzer if it becomes a command.
pub(crate) const LAUNCH: &str = "--launch";
/// The exit status if the command could not be started.
pub(crate) const FAILED: i32 = 125;
/// Stands for a limit or a user that stays as it is.
const UNCHANGED: &str = "-";

/// Returns a command that runs `program` under `name` in the circumstances of `case`. Its arguments are still to be
/// added.
pub(crate) fn command(case: &Case, program: &Path, name: &str) -> io::Result<Command> {
    let limit = match case.descriptors {
        Descriptors::Unlimited => UNCHANGED.to_owned(),
        Descriptors::AtMost(limit) => limit.to_string(),
    };
    let user = match case.user {
        User::Root => UNCHANGED.to_owned(),
        User::Nobody => NOBODY.to_string(),
    };
    let mut command = Command::new(env::current_exe()?);
    command
        .args([LAUNCH, &case.umask.to_string(), &limit, &user, name])
        .arg(program);
    Ok(command)
}

/// Becomes the command that [`command`] has described in these arguments. Returns only if that fails.
pub(crate) fn launch(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let Err(e) = become_command(arguments);
    eprintln!("fuzz: cannot start a command: {e}");
    ExitCode::from(FAILED as u8)
}

fn become_command(
    mut arguments: impl Iterator<Item = OsString>,
) -> Result<std::convert::Infallible, Box<dyn Error>> {
    let mut text = || -> Outcome<String> {
        let argument = arguments.next().ok_or("an argument is missing")?;
        argument
            .into_string()
            .map_err(|_| "an argument is not text".into())
    };
    let (mask, limit, user, name) = (text()?, text()?, text()?, text()?);
    let mut command = Command::new(text()?);
    command.arg0(name).args(arguments);
    umask(Mode::from_raw_mode(mask.parse()?));
    if limit != UNCHANGED {
        let limit = Some(limit.parse()?);
        let limit = Rlimit {
            current: limit,
            maximum: limit,
        };
        setrlimit(Resource::Nofile, limit)?;
    }
    if user != UNCHANGED {
        let user = user.parse()?;
        command.uid(user).gid(user);
    }
    Err(command.exec().into())
}
