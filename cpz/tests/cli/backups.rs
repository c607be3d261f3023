//! `--backup`, `-b` and `-S`: an existing dest gets another name.

use testkit::served;
use testkit::tree::{Scratch, Tree};

use crate::support::{CP, complaint, cpz};

#[test]
fn an_existing_dest_gets_another_name() {
    CP.rows(
        r"
        # A tilde is added.
        a=new b=old l->b
        cpz (-b -v|--backup|--backup= -v) a b
        cpz -b a new
        # A suffix is added.
        cpz (-S .o|--suffix=.o --backup=never|-S '') -v a b
        # A suffix that would lead elsewhere is ignored.
        cpz -S (x/y|/x|/) -v a b
        # A suffix that ends in a slash makes no backup.
        newest cpz -S (x/|x//) -v a b
        # No backup is made if none is wanted.
        cpz (--backup=none -v|-b --backup=off|--backup=off -b) a b
        # These words are refused: one is unknown, and the other begins several.
        cpz --backup=(x|n) a b
        # The environment counts without flags.
        VERSION_CONTROL=t cpz (-bv|--backup=simple|) a b
        VERSION_CONTROL=zz cpz (-b|) a b
        VERSION_CONTROL=n cpz -b a b
        SIMPLE_BACKUP_SUFFIX=(.o|x/y) cpz -bv a b
        SIMPLE_BACKUP_SUFFIX=.o cpz (-S .q|-S '' -v) a b
        # A link is renamed itself.
        + dangling->nowhere
        (cpz -bv a|cp -bv a) (l|dangling)
        bare cpz -bv a l
        cpz -bv -T l b
        # A special file takes the place of a file.
        + p<fifo>
        cpz -bv p b
        # A file that is copied over itself becomes its own backup.
        + c=
        cpz (-fbv|-f --backup=t -v|-bv) b b
        cpz -fbv b ./b
        cp -fbv l l
        # A backup may not destroy the source.
        + b~=backup c=
        cpz (-b|--backup=t) b~ b
        cpz -b ./b~ $PWD/b
        cpz -b b~ c
        # After any number comes the next one.
        + b.~(18446744073709551614|18446744073709551615|18446744073709551616)~=
        cpz --backup=numbered -v a b
        # A file that is replaced by a directory is backed up.
        from/f=new to=old
        newest cpz -bT from to
        # A file gets its name back if the copy fails.
        a=new %0 b=old
        user cpz -bv a b",
    );
}

#[test]
fn dests_in_directories_are_backed_up() {
    CP.rows(
        r"
        # Backups are numbered.
        a=new b=old l->b d/a=older d/a.~7~=seven e/a=another
        cpz --backup=numbered -v a b
        cpz --backup=(t|nil) -v a d
        # Only numbered backups replace dests that were just created.
        cpz --backup=(num|t) -v a e/a d
        cpz --backup=t -v a a d
        + new/
        cpz -b -v a e/a new
        # Directories stay where they are.
        + e/
        newest cpz -bvT a d
        cpz --backup=t -v e -T d
        # A simple backup is in the directory of its dest. GNU 9.1 leaves it in the working directory.
        newest cpz -v --backup=simple a d",
    );
}

#[test]
fn backups_of_long_names_are_shortened() {
    CP.rows(
        r"
        # Names are shortened that are too long for a number.
        a=new {x*240}=old {x*247}=old {x*248}=old {x*249}=old {x*250}=old {x*251}=old {x*253}=old {x*254}=old {x*255}=old
        cpz --backup=numbered -v a ({x*250}|{x*251}|{x*254}|{x*255})
        # A simple name is shortened only if there might be numbers.
        cpz -b -v a ({x*253}|{x*254}|{x*255})
        cpz -b -S.suffix -v a ({x*247}|{x*248}|{x*255})
        cpz --backup=simple -v a ({x*254}|{x*255})
        cpz --backup=simple -S.suffix -v a {x*249}
        # Numbers go on.
        + {x*250}.~(1|9)~=
        cpz --backup=numbered -v a {x*250}
        + {x*251}(.~1|)~=
        cpz --backup=numbered -v a {x*251}
        + {x*240}.~(9999999999|99999999999)~=
        cpz --backup=numbered -v a {x*240}
        # A shortened name in use is treated as a whole one.
        + {x*253}~=
        cpz --backup=numbered -v a {x*255}
        # GNU renames the dest over a source that has the shortened name.
        {x*253}~=new {x*255}=old
        cpz -b {x*253}~ {x*255}
        ! backing up '{x*255}' might destroy source;  '{x*253}~' not copied
        # A file is not its own backup.
        a=new {x*253}~=old other=={x*253}~
        cpz -b a {x*253}~
        ! cannot backup '{x*253}~': File exists
        # GNU overwrites a shortened name that is in use.
        {x*255}=new {x*253}~=old
        cpz -f --backup=numbered {x*255} {x*255}
        ! ...",
    );
}

#[test]
fn backups_unlike_those_of_cp() {
    CP.rows(
        r"
        # GNU fails here: rename does nothing between two names of one file.
        a=new b=old b~==b
        cpz --backup=simple a b
        = -b -b~ b=new b~=old
        # If the highest number is in use, no backup can be made.
        a=new b=old b.~340282366920938463463374607431768211455~=backup
        cpz --backup=numbered a b
        ! cannot backup 'b': Value too large for defined data type",
    );
}

fn run(dir: &Scratch, args: &[&str]) -> testkit::run::Outcome {
    cpz(dir, args).output()
}

fn text(dir: &Scratch, name: &str) -> String {
    std::fs::read_to_string(dir.path().join(name)).expect("a file")
}

#[test]
fn numbers_the_backups_of_a_whole_tree() {
    CP.check("--backup=t -T from to", |tree| {
        for number in 0..40 {
            tree.file(format!("from/{}/{number}", number % 3), "new")
                .file(format!("to/{}/{number}", number % 3), "old");
        }
        tree.plant("to/1/4.~9~= to/1/4.~09~= to/1/4.~x~=");
    });
}

/// Makes a name of this many bytes.
fn long(len_bytes: usize) -> String {
    "x".repeat(len_bytes)
}

#[test]
fn believes_no_limit_that_the_name_itself_exceeds() {
    let mount = served!(zero_statfs: true);
    let dir = Scratch::new();
    let names = ["m", "n"].map(|name| name.repeat(200));
    for options in [&["-b"][..], &["-b"], &["--backup=numbered"]] {
        for name in &names {
            let path = format!("s/{name}");
            Tree::at(dir.path()).file(&path, format!("{name}{options:?}"));
        }
        let dest = mount.path().to_str().unwrap();
        let outcome = run(&dir, &[&["-rT", "s", dest], options].concat());
        outcome.assert_status(0);
    }
    for name in names {
        for end in ["", "~", ".~1~"] {
            let path = mount.at(format!("{name}{end}"));
            let content = std::fs::read_to_string(path).expect("a file");
            assert!(content.starts_with(&name), "{content}");
        }
    }
}

#[test]
fn replaces_no_file_that_has_the_shortened_name() {
    // GNU does that under -b, even if it is the backup of another file that it has just made.
    let dir = Scratch::new();
    let tree = Tree::at(dir.path());
    let ends = ["1", "2"];
    for end in ends {
        tree.file(format!("s/{}{end}", long(254)), format!("new {end}"))
            .file(format!("d/{}{end}", long(254)), format!("old {end}"));
    }
    let outcome = run(&dir, &["-bT", "s", "d"]);
    outcome.assert_status(1);
    let backup = text(&dir, &format!("d/{}~", long(253)));
    let [kept, replaced] = match &*backup {
        "old 1" => ["2", "1"],
        "old 2" => ["1", "2"],
        other => panic!("{other}"),
    };
    let dest = |end| format!("d/{}{end}", long(254));
    let words = format!("cpz: cannot backup '{}': File exists\n", dest(kept));
    assert_eq!(complaint(&outcome), words);
    assert_eq!(text(&dir, &dest(kept)), format!("old {kept}"));
    assert_eq!(text(&dir, &dest(replaced)), format!("new {replaced}"));
}
