//! `-d` removes empty directories. It matters only under the name `rm`, because rmz is recursive by default.

use testkit::tree::plant;

use crate::support::RM;

#[test]
fn empty_directories() {
    RM.table().build(plant("empty/ full/f= file= link->empty full-link->full")).rows(
        r"
        # Empty directories and files are removed, and others stay.
        rm -d empty file
        rm --dir -v empty/ file
        rm -d full empty
        rm -dfv full missing empty
        # The reason is that of the kernel why dots are refused. Older releases look into directories first.
        newest rm -dv full/. empty/. . .. ./ empty/.. empty/.//
        # Invalid names are ignored by force, unless there is a question.
        newest rm -df empty/. .
        newest rm -df ..
        newest rm -dfi empty/. << y
        # Dots of empty directories are asked about.
        newest rm -di empty/. full/. << y
        newest rm -di empty/. << n
        # Mount points are left to the kernel.
        newest rm -d /proc /
        newest rm -d --preserve-root=all /proc
        newest rm -di /proc / << y y
        # Links are not followed.
        rm -d (link|link/)
        newest rm -di full-link/ link/ << y
        # Recursion overrides it.
        rm -dr full empty
        rm -rd full
        rmz -d full
        = -full
        # Only an empty directory is asked about.
        newest rm -di empty full file << y y
        rm -di empty << n
        # A write-protected one is, too.
        locked-full/f= locked/ %555 locked-full %555
        newest user rm -d ---presume-input-tty locked locked-full full << y
        # One that cannot be read is removed if it is empty.
        d/ %0 not-empty/f= not-empty %0 locked/d/ %0 locked %555
        newest user rm -dv d not-empty locked/d",
    );
}
