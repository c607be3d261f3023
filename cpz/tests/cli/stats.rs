//! `--stats`. The tests of rmz cover the rest.

use crate::support::CP;

#[test]
fn totals() {
    CP.rows(
        r#"
        # Entries and bytes are counted.
        t/a=12345 t/link->a a= b=
        cpz --stats=json t copy
        > {"version":2,"entries":3,"files":1,"directories":1,"symlinks":1,"hard_links":0,..."bytes":5,...
        = copy/a=12345 copy/link->a
        # A directory that existed is not copied.
        t/a=1 copy/t/ a= b=
        cpz --stats=json t copy
        > {"version":2,"entries":1,"files":1,"directories":0,..."merged":1,...
        = copy/t/a=1
        # A run that cannot begin has totals, too.
        cpz --stats=json a b none
        > {"version":2,"entries":0,..."failures":1,...
        ! target 'none'...
        cpz --stats=json --files0-from=none .
        > {"version":2,"entries":0,..."failures":1,...
        ! cannot open 'none' for reading: No such file or directory
        # A wrong command line has none.
        cpz --stats=json a
        ! missing destination file operand after 'a'
        ! try"#,
    );
}
