//! Filesystems that lack extended attributes and ACLs.

use super::*;

#[test]
fn missing_attributes_are_failures_if_they_were_named() {
    needs!(root);
    let script = r#"mount -t ramfs none plain || exit 99; "$@"; s=$?; cp -rp plain kept; umount plain; exit $s"#;
    // cp gives the group the rights of the mask of an ACL, even if only named users have them.
    let without_mask = r#"case "$*" in *=xattr*) ;; *) chmod g-wx plain/with-acl ;; esac"#;
    let without_mask = script.replace("cp -rp", &format!("{without_mask}; cp -rp"));
    let table = NEWEST_CP.table();
    let table = table.setting(|parity| parity.in_scripts(script, &without_mask));
    table.rows(
        "f=x xattr:user.one=1 %4711 with-acl=x acl:u:1234:rwx d/ acl:d:u:1234:rwx none/ plain/
        cpz (-a|-p|--preserve=all|--preserve=xattr|--preserve=mode,xattr) f with-acl d none plain",
    );
}
