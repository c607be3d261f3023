//! Measures the reason for one task per directory: threads create and delete files, each in its own directory or all
//! in one.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Barrier,
    thread,
    time::Instant,
};

use anyhow::{Context as _, Result, anyhow};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, mknodat, openat, unlinkat};

use crate::{
    host::{interrupt, machine},
    results::{ContentionRow, median},
};

/// The number of files of each thread.
const FILES: usize = 16_384;
const ROUNDS: usize = 5;

/// Measures with one thread, then with twice as many each time up to the number of cores, but at least with two.
pub(crate) fn measure(dir: &Path) -> Result<Vec<ContentionRow>> {
    let most = machine::cores().max(2);
    let counts = std::iter::successors(Some(1), |&n| (n < most).then_some((2 * n).min(most)));
    counts.map(|threads| row(dir, threads)).collect()
}

fn row(dir: &Path, threads: usize) -> Result<ContentionRow> {
    let own: Vec<_> = (0..threads).map(|i| dir.join(format!("own-{i}"))).collect();
    let shared = vec![dir.join("shared"); threads];
    for dir in own.iter().chain(&shared[..1]) {
        fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    }
    let (mut apart, mut together) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        interrupt::check()?;
        apart.push(rate(&own)?);
        together.push(rate(&shared)?);
    }
    Ok(ContentionRow {
        threads,
        apart_per_second: median(apart.into_iter()).unwrap_or(0.0),
        together_per_second: median(together.into_iter()).unwrap_or(0.0),
    })
}

/// Returns the calls per second of one thread per element of `dirs`, all together.
fn rate(dirs: &[PathBuf]) -> Result<f64> {
    let barrier = Barrier::new(dirs.len() + 1);
    let seconds = thread::scope(|scope| {
        let threads: Vec<_> = dirs
            .iter()
            .enumerate()
            .map(|(thread, dir)| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let names = (0..FILES)
                        .map(|i| format!("{thread}-{i}"))
                        .collect::<Vec<_>>();
                    barrier.wait();
                    create_and_delete(dir, &names)
                })
            })
            .collect();
        barrier.wait();
        let start = Instant::now();
        for thread in threads {
            thread.join().map_err(|_| anyhow!("a thread panicked"))??;
        }
        Ok::<_, anyhow::Error>(start.elapsed().as_secs_f64())
    })?;
    Ok((2 * FILES * dirs.len()) as f64 / seconds)
}

fn create_and_delete(dir: &Path, names: &[String]) -> Result<()> {
    let context = || format!("cannot create and delete in {}", dir.display());
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir_fd = openat(CWD, dir, flags, Mode::empty()).with_context(context)?;
    for name in names {
        mknodat(
            &dir_fd,
            name,
            FileType::RegularFile,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .with_context(context)?;
    }
    for name in names {
        unlinkat(&dir_fd, name, AtFlags::empty()).with_context(context)?;
    }
    Ok(())
}
