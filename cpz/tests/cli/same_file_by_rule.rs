//! Source and dest are one file, and a flag decides what happens to the dest. `cp` copies if the source survives.

use testkit::{
    probe::{Fs, LoopMount, is_root},
    skip,
    tree::plant,
};

use crate::support::CP;

/// Compares cpz with cp twice: with links copied as links, and with links followed.
#[track_caller]
fn all_pairs(flags: &str) {
    let names = plant("f=f h==f s->f s2->s s3==s o=o so->o");
    CP.table().build(names).rows(&format!(
        "(cpz|cp) ({flags}) (f f|f h|f s|s f|s s2|s2 s|s s|f ./f|s s3|so s|s o)"
    ));
}

#[test]
fn backups() {
    all_pairs("-bv|--backup=t -v|-fbv");
}

#[test]
fn removed_first() {
    all_pairs("--remove-destination -v|--remove-destination -fv");
}

/// The answer is missing.
#[test]
fn updated_or_not() {
    all_pairs("-uv|-nv|-uiv");
}

#[test]
fn updated_by_hard_links() {
    all_pairs("-luv|-lufv|-Pluv|-Plufv|-Plbuv");
}

/// `m` is another mount of `d`.
#[test]
fn through_a_bind_mount() {
    if !is_root() || LoopMount::new(Fs::Tmpfs, 1).is_err() {
        skip!("nothing can be mounted here");
    }
    let script = r#"mount --bind d m && "$@"; s=$?; umount m; exit $s"#;
    let table = CP.table().setting(|parity| parity.in_script(script));
    table.rows("d/f=content m/ \n cpz (-bv|-fbv|--remove-destination -v|-uv|-nv) d/f m/f");
}
