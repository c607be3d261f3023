//! `CPZ_CONFIG`: options of a user's own for every run. The tests of rmz cover the rest.

use crate::support::CP;

#[test]
fn options_of_a_file() {
    CP.rows(
        r"
        # An option of the file takes effect together with the command line.
        src/{f,g}= config='--exclude=?\n'
        CPZ_CONFIG=config cpz --exclude=!f* src d
        = d/f=
        CPZ_CONFIG=config cpz --no-config --exclude=!f* src d
        = d/{f,g}=
        # An option of cp is refused.
        a=new b=old config='--verify\n--force\n'
        CPZ_CONFIG=config cpz a b
        ! config:2: '--force' is not an extension that can be set here
        # So is an extension that does not suit every run.
        a=new b=old config=--dry-run
        CPZ_CONFIG=config cpz -a a b
        ! config:1: '--dry-run' is not an extension that can be set here
        a=new b=old config=--resume
        CPZ_CONFIG=config cpz -a a b
        ! config:1: '--resume' is not an extension that can be set here
        a=new b=old config='--files0-from=list'
        CPZ_CONFIG=config cpz -a a b
        ! config:1: '--files0-from=list' is not an extension that can be set here
        a=new b=old config='--exclude-from=-'
        CPZ_CONFIG=config cpz -a a b
        ! config:1: '--exclude-from=-' is not an extension that can be set here",
    );
}
