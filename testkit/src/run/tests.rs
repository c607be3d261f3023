use std::{thread, time::Instant};

use super::*;
use crate::{probe, tree::Scratch};

fn sh(script: &str) -> Run {
    Run::new("sh").args(["-c", script])
}

#[test]
fn more_than_a_pipe_holds_passes() {
    let bytes = vec![b'x'; 1 << 20];
    assert_eq!(Run::new("cat").stdin(&bytes).output().stdout, bytes);
}

#[test]
fn unread_input_is_no_failure() {
    Run::new("true")
        .stdin(vec![0; 1 << 20])
        .output()
        .assert_success();
}

#[test]
fn a_terminal_is_one_and_ends() {
    let outcome = sh("test -t 0 && cat")
        .input(Input::Terminal)
        .stdin("one\ntwo\n")
        .output();
    assert_eq!(outcome.assert_success().stdout_text(), "one\ntwo\n");
}

#[test]
fn descriptors_are_limited_both_ways() {
    let outcome = sh("ulimit -Sn; ulimit -Hn").nofile_limit(20).output();
    assert_eq!(outcome.stdout_text(), "20\n20\n");
}

#[test]
fn a_command_with_few_descriptors_has_all_of_them() {
    let limited =
        sh("for fd in 3 5 9; do [ -e /proc/$$/fd/$fd ] && echo $fd; done").nofile_limit(9);
    let outcome = limited
        .under(sh(r#"exec "$@" 3<&0 5<&0 9<&0"#).arg("sh"))
        .output();
    assert_eq!(outcome.stdout_text(), "");
}

#[test]
fn another_user_runs_it_even_from_a_locked_directory() {
    if !probe::is_root() {
        crate::skip!("only root can become another user");
    }
    let scratch = Scratch::new();
    scratch.plant("locked/program='#!/bin/sh\nid -u; id -g; id -G; ulimit -n\n' %755 locked %700");
    let outcome = Run::new(scratch.at("locked/program"))
        .current_dir("/")
        .uid(probe::NOBODY)
        .nofile_limit(30)
        .output();
    assert_eq!(outcome.stdout_text(), "65534\n65534\n65534\n30\n");
}

#[test]
#[should_panic(expected = "hung: killed after 100ms")]
fn a_command_that_hangs_is_killed() {
    sh("sleep 100")
        .time_limit(Duration::from_millis(100))
        .output();
}

#[test]
#[should_panic(expected = "sleep 100 \n    ")]
fn the_processes_of_a_command_that_hangs_are_described() {
    sh("sleep 100; true")
        .time_limit(Duration::from_millis(300))
        .output();
}

#[test]
fn the_whole_group_of_a_command_that_hangs_is_killed() {
    let scratch = Scratch::new();
    let run = sh("sleep 100 & echo $! >pid; exit 0")
        .current_dir(&scratch)
        .time_limit(Duration::from_millis(300));
    // The child itself ends at once, but its child keeps the streams open.
    thread::spawn(move || run.output()).join().unwrap_err();
    let pid = std::fs::read_to_string(scratch.at("pid")).unwrap();
    let stat = Path::new("/proc").join(pid.trim()).join("stat");
    let dead = || match std::fs::read_to_string(&stat) {
        Err(_) => true,
        // The process was killed, but init has not waited for it yet.
        Ok(stat) => stat.contains(") Z "),
    };
    let deadline = Instant::now() + Duration::from_secs(5);
    while !dead() {
        assert!(Instant::now() < deadline, "the grandchild is alive");
        thread::sleep(Duration::from_millis(5));
    }
}
