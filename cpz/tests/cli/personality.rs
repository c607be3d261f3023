//! Under the name `cp`, cpz has the defaults of cp.

use testkit::{run::Run, tree::plant};

use crate::support::{CP, CPZ};

const SMALL: &str = "d/f=content f=content into/ l->d";

#[test]
fn a_link_called_cp_is_cp() {
    CP.table().build(plant(SMALL)).rows(
        r"
        # It omits directories.
        cp (d|l) new
        cp d f l into
        cp d/ . into
        cp d new
        ! -r not specified; omitting directory 'd'
        # It is recursive if told to.
        cp (-r|--recur) d new
        cp -R d l into
        # It copies files.
        cp f (new|into)
        cp -v f d/f into
        newest cp -T f into
        # It knows no extension.
        cp (--threads=2|--no-recursive|--stats|--progress|--exclude=x|--exclude-from=x|--gitignore) f new
        cp (--files0-from=-|-a --resume f) into << f\0
        # It obeys the environment as to threads, and reads no configuration.
        CPZ_THREADS=3 cp -r d new
        CPZ_CONFIG=config cp f new
        # cpz omits directories if told to.
        cpz (--no-recursive|-a --no-recursive) d f into
        ! -r not specified; omitting directory 'd'
        = into/f=content
        cpz (--no-recursive -r|--no-recursive -a) d f into
        = into/f=content into/d/f=content",
    );
}

#[test]
fn help_and_version_go_to_stdout() {
    for (option, text) in [
        ("--help", "Usage: "),
        ("--version", env!("CARGO_PKG_VERSION")),
    ] {
        let outcome = Run::new(CPZ).arg(option).output();
        let shown = outcome.assert_success().stdout_text();
        assert!(shown.contains(text), "{shown}");
    }
}
