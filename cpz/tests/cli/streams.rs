//! Full and closed streams. The tests of rmz cover closed pipes.

use std::process::{Command, Stdio};

use testkit::{run::Link, tree::Scratch};

use crate::support::{CP, CPZ};

#[test]
fn streams_that_are_full_or_closed() {
    for (redirection, rows) in [
        (">/dev/full", "cpz (-v d new|--help)"),
        (">&-", "cpz d new"),
        ("2>&-", "cpz missing d ."),
        ("<&-", "cpz d new"),
    ] {
        let script = format!(r#"exec "$@" {redirection}"#);
        let table = CP.table().setting(|parity| parity.in_script(&script));
        table.rows(&format!("d/f=content \n {rows}"));
    }
}

#[test]
fn a_closed_stream_is_neither_copied_nor_written_to() {
    let cp = Link::named("cp", CPZ);
    for script in [
        r#""$0" /dev/stdin old <&-"#,
        r#""$0" -t . /dev/stdin <&-"#,
        r#""$0" new /dev/stdout >&-"#,
        r#""$0" new /proc/self/fd/2 2>&-"#,
    ] {
        let scratch = Scratch::with("old=old new=new");
        let status = Command::new("sh")
            .args(["-c", script])
            .arg(cp.path())
            .current_dir(&scratch)
            .stderr(Stdio::null())
            .status();
        assert_eq!(status.unwrap().code(), Some(1), "{script}");
        let kept = std::fs::read_to_string(scratch.at("old")).unwrap();
        assert_eq!(kept, "old", "{script}");
        assert!(!scratch.at("stdin").exists(), "{script}");
    }
}
