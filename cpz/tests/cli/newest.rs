//! Behaviour of cp that differs between its releases, or that the newest one defines. Older ones are not compared.

use std::{fs, os::unix::fs::MetadataExt, time::Duration};

use testkit::{
    or_skip,
    probe::{Fs, LoopMount, NOBODY, is_root, supports_acls},
    run::{Input, Parity, Run, Status},
    skip,
    tree::{Scratch, Tree},
};

use crate::support::{CP, CPZ};

/// Compares cpz, called as `cp` without `-r`, with the newest cp.
fn newest(args: &[&str]) -> Parity {
    CP.strict().only_newest().args(args)
}

#[track_caller]
fn check(args: &[&str], build: impl Fn(&Tree)) {
    newest(args).check(build);
}

/// Builds a file and a directory with one name, and a dest.
fn file_and_directory(tree: &Tree) {
    tree.file("x/c", "new").file("c/f", "sub").dir("d");
}

#[test]
fn a_directory_does_not_replace_a_file_that_was_just_created() {
    for option in ["-b", "--backup=simple", "--backup=t", "-bu", "-f"] {
        check(&["-r", option, "x/c", "c", "d"], file_and_directory);
        check(&["-r", option, "x/c", "c", "d"], |tree| {
            file_and_directory(tree);
            tree.file("d/c", "precious");
        });
        check(&["-r", option, "x/c", "c", "d"], |tree| {
            tree.symlink("x/c", "y").file("c/f", "sub").dir("d");
        });
    }
}

#[test]
fn a_directory_that_is_named_through_a_link_is_copied_once() {
    let build = |tree: &Tree| {
        tree.file("c/f", "x").symlink("x/c", "../c").dir("d");
    };
    check(&["-rL", "c", "x/c", "d"], build);
    check(&["-rH", "c", "x/c", "d"], build);
    check(&["-r", "c", "x/c/", "d"], build);
    check(&["-rLb", "c", "x/c", "d"], build);
}

#[test]
fn a_directory_is_not_merged_into_itself_if_nothing_would_change() {
    let build = |tree: &Tree| {
        tree.file("f/x", "1").symlink("f/l", "x").fifo("f/p");
    };
    for option in [
        "-l",
        "-n",
        "--update=none",
        "--update=none-fail",
        "-al",
        "-an",
    ] {
        check(&["-rvT", option, "f", "f"], build);
        check(&["-r", option, "f", "."], build);
    }
    for option in ["-u", "-f", "-b", "-s", "--remove-destination", "-a"] {
        check(&["-rT", option, "f", "f"], build);
    }
}

#[test]
fn a_link_to_a_directory_is_not_replaced_by_a_second_name() {
    for sources in [["c", "e"], ["e", "c"]] {
        check(&["-a", sources[0], sources[1], "d"], |tree| {
            tree.file("c", "x").hardlink("c", "e").symlink("d/c", ".");
        });
    }
}

#[test]
fn a_failed_copy_leaves_the_permissions_of_its_dest() {
    for mode in [0o666, 0o4755, 0o2640] {
        for options in ["-p", "-a", "--preserve=ownership"] {
            check(&[options, "--reflink=always", "a", "e"], |tree| {
                tree.file("a", "x").mode(0o600).file("e", "y").mode(mode);
            });
        }
    }
}

#[test]
fn a_failed_copy_leaves_the_acl_of_its_dest() {
    check(&["-p", "--reflink=always", "a", "e"], |tree| {
        tree.file("a", "x").mode(0o600).file("e", "y").mode(0o664);
        if supports_acls(tree.path()) {
            tree.select("e").acl("u:1:rw,m::rw");
        }
    });
}

#[test]
fn a_full_disk_leaves_the_permissions_of_the_dest() {
    let small = or_skip!(LoopMount::new(Fs::Tmpfs, 1));
    let source = Scratch::new();
    Tree::at(source.path())
        .file("a", vec![1; 3 << 20])
        .mode(0o600);
    Tree::at(small.path()).file("e", "y").mode(0o664);
    let dest = small.path().join("e");
    let run = Run::new(CPZ).args(["-p", "a"]).arg(&dest);
    let outcome = run.current_dir(&source).output();
    assert_eq!(outcome.status, Status::Exit(1), "{outcome}");
    assert!(outcome.stderr_text().contains("No space left"), "{outcome}");
    assert_eq!(fs::metadata(&dest).unwrap().mode() & 0o7777, 0o664);
}

#[test]
fn a_fifo_is_not_opened_before_its_dest_is_checked() {
    let build = |tree: &Tree| {
        tree.fifo("a").hardlink("a", "b").symlink("l", "a");
        tree.dir("d/a").fifo("s/a").dir("e/s/a");
    };
    check(&["a", "a"], build);
    check(&["-f", "a", "a"], build);
    check(&["a", "b"], build);
    check(&["l", "a"], build);
    check(&["-r", "--copy-contents", "a", "b"], build);
    newest(&["a", "d"]).check(build);
    newest(&["-r", "--copy-contents", "s", "e"]).check(build);
}

#[test]
fn a_directory_in_the_way_of_a_device_is_reported_as_for_a_file() {
    let build = |tree: &Tree| {
        tree.dir("d/null").dir("d/a").file("a", "x").socket("s/a");
    };
    for options in ["-b", "-S.o", "-bf", "--backup=t"] {
        check(&[options, "/dev/null", "d"], build);
        check(&[options, "a", "d"], build);
        check(&[options, "s/a", "d"], build);
        check(&["-r", "--copy-contents", options, "/dev/null", "d"], build);
    }
    check(&["/dev/null", "d"], build);
}

#[test]
fn parents_get_attributes_if_one_was_missing() {
    let time = Duration::from_secs(1_000_000_000);
    let build = |tree: &Tree| {
        tree.file("a/b/d/foo", "x").dir("e/a/b");
        for (name, mode) in [("a/b/d", 0o2700), ("a/b", 0o705), ("a", 0o751)] {
            tree.select(name).mode(mode).mtime(time);
        }
    };
    let complete = |tree: &Tree| {
        build(tree);
        tree.dir("e/a/b/d");
    };
    for options in [
        &["-p"][..],
        &["-a"],
        &["--preserve=timestamps"],
        &["--preserve=mode"],
        &[],
    ] {
        let args = [options, &["--parents", "a/b/d/foo", "e"]].concat();
        check(&args, build);
        check(&args, complete);
    }
}

#[test]
fn a_hard_link_to_a_link_changes_nothing_if_that_leads_to_the_dest() {
    for options in ["-dl", "-al", "-lP", "-lPf", "-l", "-lH"] {
        check(&[options, "symlink", "foo"], |tree| {
            tree.file("foo", "x").symlink("symlink", "foo");
        });
        check(&[options, "foo", "symlink"], |tree| {
            tree.file("foo", "x").symlink("symlink", "foo");
        });
    }
}

#[test]
fn a_hard_link_replaces_a_link_to_its_source() {
    for options in ["-al", "-rl", "-rlP", "-rlL", "-rlf", "-a", "-r"] {
        check(&[options, "c", "d"], |tree| {
            tree.fifo("c").symlink("d/c", "../c");
        });
    }
}

#[test]
fn only_a_hard_link_replaces_a_dest_after_a_question() {
    for options in ["-si", "-li", "-sif", "-lif"] {
        let asked = newest(&[options, "c", "e"]).input(Input::Pipe).stdin("y\n");
        asked.check(|tree| {
            tree.file("c", "1").file("e", "2");
        });
    }
}

#[test]
fn a_link_replaces_a_dest_by_force_even_without_content() {
    for options in [
        &["-a"][..],
        &["-af"],
        &["-df"],
        &["-a", "--remove-destination"],
        &["-ab"],
    ] {
        for make in [
            |tree: &Tree| _ = tree.symlink("b", "y"),
            |tree: &Tree| _ = tree.file("b", "y"),
            |tree: &Tree| _ = tree.fifo("b"),
        ] {
            let args = [options, &["--attributes-only", "a", "b"]].concat();
            check(&args, |tree| {
                tree.symlink("a", "x");
                make(tree);
            });
        }
    }
}

#[test]
fn a_link_that_leads_to_its_source_or_from_it_is_the_same_file() {
    for options in [
        &["-r", "--attributes-only"][..],
        &["-a", "--attributes-only"],
        &["-rf", "--attributes-only"],
        &["-rl", "--attributes-only"],
        &["-rlf", "--attributes-only"],
        &["-al", "--attributes-only"],
        &["-rs"],
        &["-rsf"],
        &["-rs", "--attributes-only"],
        &["-rl"],
        &["-r"],
    ] {
        for source in ["to_file", "to_fifo", "to_dir", "fifo", "linked"] {
            if options[0].starts_with("-rs") && source == "fifo" {
                // If the source is relative, cp removes the dest for nothing.
                continue;
            }
            check(&[options, &[source, "d"]].concat(), |tree| {
                tree.file("d/to_file", "x").symlink("to_file", "d/to_file");
                tree.fifo("d/to_fifo").symlink("to_fifo", "d/to_fifo");
                tree.dir("d/to_dir").symlink("to_dir", "d/to_dir");
                tree.fifo("fifo").symlink("d/fifo", "../fifo");
                tree.symlink("linked", "x").hardlink("linked", "d/linked");
            });
        }
        let absolute = [options, &["-v", "$PWD/fifo", "d"]].concat();
        check(&absolute, |tree| {
            tree.fifo("fifo").symlink("d/fifo", "../fifo");
        });
    }
}

#[test]
fn a_special_file_replaces_no_other_if_only_attributes_are_copied() {
    for options in ["-r", "-rf", "-a", "-af", "-rl", "-rlf", "-alf"] {
        check(&["--attributes-only", options, "fifo", "d"], |tree| {
            tree.fifo("fifo").fifo("d/fifo");
        });
    }
}

#[test]
fn a_special_file_replaces_one_name_of_several() {
    for options in ["-aL", "-rL", "-aLf", "-a"] {
        check(&[options, "a", "b"], |tree| {
            tree.fifo("a").file("b", "x").hardlink("b", "c");
        });
        check(&[options, "a", "b"], |tree| {
            tree.fifo("a").file("b", "x");
        });
    }
}

#[test]
fn a_second_name_of_a_link_is_not_reported() {
    check(&["-av", "c", "d"], |tree| {
        tree.symlink("c", "x").hardlink("c", "d");
    });
}

#[test]
fn an_unreadable_directory_takes_the_place_of_a_file_that_is_backed_up() {
    if !is_root() {
        skip!("only root can become another user");
    }
    newest(&["-rb", "e", "a"]).uid(NOBODY).check(|tree| {
        tree.file("a", "x").dir("e").mode(0);
    });
}

#[test]
fn a_directory_loses_special_bits_that_its_source_lacks() {
    for options in [
        &["-rp"][..],
        &["-a"],
        &["-r", "--preserve=mode"],
        &["-rp", "--no-preserve=mode"],
    ] {
        for (inherited, existing) in [(0o777, 0o7777), (0o2777, 0o1755), (0o2777, 0)] {
            let args = [options, &["b", "d"]].concat();
            check(&args, |tree| {
                tree.dir("b/sticky")
                    .mode(0o1755)
                    .dir("b/plain")
                    .dir("b")
                    .mode(0o755);
                tree.dir("d").mode(inherited);
                if existing != 0 {
                    tree.dir("d/b/plain")
                        .mode(existing)
                        .select("d/b")
                        .mode(existing);
                }
            });
        }
    }
}

#[test]
fn a_fifo_is_not_opened_for_a_dest_that_cannot_be_looked_at() {
    if !is_root() {
        skip!("only root can become another user");
    }
    newest(&["a", "b"]).uid(NOBODY).check(|tree| {
        tree.fifo("a").dir("b").mode(0o600);
    });
}

#[test]
fn a_fifo_is_not_opened_before_its_dest_is_removed() {
    if !is_root() {
        skip!("only root can become another user");
    }
    for (fifo, dir) in [(0o555, 0o755), (0o333, 0o777), (0o333, 0o755)] {
        for options in ["-d", "-Pf", "-Pv", "-dbv", "-du"] {
            let cp = newest(&[options, "b", "a", "e"]).uid(NOBODY);
            cp.check(|tree| {
                tree.file("b", "x").fifo("a").mode(fifo);
                tree.file("e/a", "old");
                tree.select("e").owner(1234, 1234).mode(dir);
            });
        }
    }
}

#[test]
fn an_unreadable_directory_is_not_copied_to_itself() {
    if !is_root() {
        skip!("only root can become another user");
    }
    newest(&["-r", "a", "$PWD"]).uid(NOBODY).check(|tree| {
        tree.dir("a").mode(0o311);
    });
}

#[test]
fn a_link_cannot_replace_a_directory_even_if_dests_are_backed_up() {
    for options in ["-Prb", "-Prbf", "-ab", "-abf"] {
        for source in ["link", "fifo"] {
            // cp changes the time of `d` in any case.
            check(&[options, "file", source, "d"], |tree| {
                tree.file("file", "x").symlink("link", "x").fifo("fifo");
                tree.dir("d/link").dir("d/fifo");
            });
        }
        check(&[options, "b", "c", "d"], |tree| {
            tree.symlink("b", "x").hardlink("b", "c").dir("d/c");
        });
    }
}

#[test]
fn a_dest_that_cannot_be_looked_at_is_reported_before_a_link_that_was_just_created() {
    check(&["-r", "d", "a/d", "e"], |tree| {
        tree.file("a/d", "x").symlink("d", "e/a").file("e/e", "");
    });
}

#[test]
fn an_unreadable_directory_is_not_linked_to_itself() {
    if !is_root() {
        skip!("only root can become another user");
    }
    for options in ["-rl", "-rlb", "-rn", "-rln"] {
        newest(&[options, "a", "."]).uid(NOBODY).check(|tree| {
            tree.dir("a").mode(0o311);
        });
    }
}

#[test]
fn the_copy_of_an_unreadable_directory_in_itself_gets_the_times_from_before() {
    if !is_root() {
        skip!("only root can become another user");
    }
    newest(&["-rp", "e", "e"]).uid(NOBODY).check(|tree| {
        tree.dir("e").owner(NOBODY, NOBODY).mode(0o311);
        tree.mtime(Duration::from_secs(1_000_000_000));
    });
}

#[test]
fn an_unreadable_directory_loses_the_set_group_id_bit_of_another_group() {
    if !is_root() {
        skip!("only root can become another user");
    }
    for option in [
        "-r",
        "-p",
        "-l",
        "--preserve=timestamps",
        "--preserve=ownership",
    ] {
        for mode in [0o311, 0] {
            newest(&["-r", option, "a", "b"]).uid(NOBODY).check(|tree| {
                tree.dir("a").mode(mode);
                tree.dir("b").owner(NOBODY, 1).mode(0o2777);
            });
        }
    }
}

#[test]
fn a_dest_that_cannot_be_looked_at_is_reported_before_an_unreadable_source() {
    if !is_root() {
        skip!("only root can become another user");
    }
    for option in ["-r", "-f", "-b", "-u", "-n", "-p", "--remove-destination"] {
        for dest in ["loop", "closed", "hidden", "nowhere", "d"] {
            let copy = newest(&["-r", option, "a", dest]).uid(NOBODY);
            copy.check(|tree| {
                tree.file("a", "x").mode(0);
                tree.symlink("loop", "loop").symlink("nowhere", "missing");
                tree.symlink("hidden", "secret/f").symlink("closed", "a/f");
                tree.file("secret/f", "y").symlink("d/a", "a");
                tree.select("secret").owner(0, 0).mode(0o700);
            });
        }
    }
}

#[test]
fn an_unreadable_directory_does_not_replace_a_dangling_link() {
    if !is_root() {
        skip!("only root can become another user");
    }
    for dest in ["b/", "b"] {
        newest(&["-r", "a", dest]).uid(NOBODY).check(|tree| {
            tree.dir("a").mode(0o311).symlink("b", "c");
        });
    }
}

#[test]
fn a_hard_link_that_is_there_already_is_not_just_created() {
    check(&["-l", "d/a", "a", "d"], |tree| {
        tree.file("d/a", "1").file("a", "2");
    });
    check(&["-lf", "a", "d/a", "d"], |tree| {
        tree.file("a", "1").symlink("d/a", "x");
    });
    check(&["-al", "d", "e/d", "e"], |tree| {
        tree.symlink("d", "x").dir("e");
    });
    check(&["-P", "a", "e/a", "d"], |tree| {
        tree.symlink("a", "x")
            .symlink("e/a", "y")
            .dir("d")
            .hardlink("a", "d/a");
    });
}

#[test]
fn a_forced_copy_is_refused_at_a_link_to_itself_that_was_just_created() {
    for options in ["-r", "-rf", "-rfu", "-rfn", "-rbf"] {
        check(&[options, "a/e", "e", "b"], |tree| {
            tree.symlink("a/e", "e").file("e", "").dir("b");
        });
    }
}

#[test]
fn an_unreadable_directory_that_replaces_a_file_is_printed() {
    if !is_root() {
        skip!("only root can become another user");
    }
    newest(&["-rvb", "e", "a"]).uid(NOBODY).check(|tree| {
        tree.file("a", "x").dir("e").mode(0);
    });
}

#[test]
fn the_copies_of_the_root_are_named_after_the_dest() {
    if !is_root() {
        skip!("only root can become another user");
    }
    // The dest cannot be written to, so nothing is copied.
    newest(&["-r", "/", "b"]).uid(NOBODY).check(|tree| {
        tree.dir("b").mode(0o555);
    });
}
