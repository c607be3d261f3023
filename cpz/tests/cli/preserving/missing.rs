//! Filesystems that lack extended attributes and ACLs.

use super::*;
use testkit::needs;
use testkit::tree::plant;

/// Compares cpz with cp on a filesystem without extended attributes and ACLs.
#[track_caller]
fn on_ramfs(flags: &[&str]) {
    needs!(root);
    let script = r#"mount -t ramfs none plain || exit 9; "$@"; s=$?; cp -rp plain kept; umount plain; exit $s"#;
    // cp gives the group the rights of the mask of an ACL, even if only named users have them.
    let without_mask = r#"case "$*" in *=xattr*) ;; *) chmod g-wx plain/with-acl ;; esac"#;
    let without_mask = script.replace("cp -rp", &format!("{without_mask}; cp -rp"));
    NEWEST_CP
        .parity()
        .in_scripts(script, &without_mask)
        .args(flags)
        .words("f with-acl d none plain")
        .check(plant(
            "f=x xattr:user.one=1 %4711 with-acl=x acl:u:1234:rwx d/ acl:d:u:1234:rwx none/ plain/",
        ));
}

#[test]
fn says_nothing_of_missing_attributes_with_a() {
    on_ramfs(&["-a"]);
}

#[test]
fn fails_for_missing_attributes_that_were_named() {
    on_ramfs(&["--preserve=xattr"]);
    on_ramfs(&["--preserve=mode,xattr"]);
}

#[test]
fn fails_for_missing_acls() {
    on_ramfs(&["-p"]);
    on_ramfs(&["--preserve=all"]);
}
