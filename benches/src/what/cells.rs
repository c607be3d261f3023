//! The list of all cells.

use std::time::Duration;

use anyhow::{Result, ensure};
use testkit::probe::Fs;

use super::{
    cell::{Cell, Place, Previous, Spread, Table, Tree, Work},
    peers::{self, Peer},
};

const GB: u64 = 1_000_000_000;
const MB: u64 = 1_000_000;

/// The rounds of most cells.
const ROUNDS: usize = 3;
/// The rounds of cells in which a round takes more than half a minute.
const FEW_ROUNDS: usize = 2;
/// The commands that take part in a quick run: ours, GNU's, and the nearest competitors.
const QUICK_PEERS: usize = 4;

/// The ranks in the commands of several clients.
const RANKS: usize = 8;

const BOTH: [Work; 2] = [Work::Remove, Work::Copy];
const FILESYSTEMS: [Fs; 4] = [Fs::Tmpfs, Fs::Ext4, Fs::Xfs, Fs::Btrfs];

/// Returns every cell, in the order in which they run.
pub(crate) fn all() -> Vec<Cell> {
    let mut cells = Vec::new();
    for work in BOTH {
        for group in [made, real, filesystems, slow, large, clients] {
            cells.extend(group(work));
        }
    }
    cells.push(after_removal());
    cells.extend(BOTH.into_iter().flat_map(libraries));
    cells
}

/// Returns the cells of a quick run, or those that `only` selects, with few commands.
pub(crate) fn quick(only: &[String]) -> Result<Vec<Cell>> {
    const TREES: [&str; 6] = ["10", "10k", "100k", "100k-1gb", "flat", "5-per-dir"];
    let is_quick = |cell: &Cell| match cell.name.split_once('-') {
        Some(("remove" | "copy", tree)) => TREES.contains(&tree),
        _ => cell.name == "slow-1ms-remove-256",
    };
    let mut cells = select(only, is_quick)?;
    for cell in &mut cells {
        cell.peers.truncate(QUICK_PEERS);
    }
    Ok(cells)
}

/// Returns all cells but those of libraries, or those that `only` selects.
pub(crate) fn full(only: &[String]) -> Result<Vec<Cell>> {
    select(only, |cell| cell.table != Table::Libraries)
}

/// Returns the cells that fit, or else those that `only` names. A word is the name of a cell, or a part of names.
fn select(only: &[String], fits: impl Fn(&Cell) -> bool) -> Result<Vec<Cell>> {
    let all = all();
    let mut names = Vec::new();
    for word in only {
        let exact = all.iter().any(|cell| cell.name == *word);
        let is_named = |cell: &&Cell| match exact {
            true => cell.name == *word,
            false => cell.name.contains(word),
        };
        let before = names.len();
        names.extend(all.iter().filter(is_named).map(|cell| cell.name.clone()));
        ensure!(
            names.len() > before,
            "there is no cell {word}: `benches list` names them"
        );
    }
    let is_selected = |cell: &Cell| match only {
        [] => fits(cell),
        _ => names.contains(&cell.name),
    };
    Ok(all.into_iter().filter(is_selected).collect())
}

fn cell(table: Table, work: Work, name: String, title: &str, tree: Tree) -> Cell {
    Cell {
        name,
        table,
        title: title.to_owned(),
        work,
        tree,
        place: Place::Memory,
        previous: Previous::Removed,
        peers: work.pick(peers::REMOVE, peers::COPY).to_vec(),
        rounds: ROUNDS,
    }
}

fn made(work: Work) -> Vec<Cell> {
    const NESTED: &[&str] = &[];
    const FLAT: &[&str] = &["-d", "0"];
    const ZEROS: &[&str] = &["-d", "0", "--fill-byte", "0"];
    const FEW: &[&str] = &["-r", "5"];
    let trees = [
        ("10", "10 empty files", 10, 0, NESTED),
        ("10k", "10 000 empty files", 10_000, 0, NESTED),
        ("100k", "100 000 empty files", 100_000, 0, NESTED),
        ("1m", "1 000 000 empty files", 1_000_000, 0, NESTED),
        ("10-1gb", "10 files, 1 GB", 10, GB, NESTED),
        ("10k-1gb", "10 000 files, 1 GB", 10_000, GB, NESTED),
        ("100k-1gb", "100 000 files, 1 GB", 100_000, GB, NESTED),
        ("1m-1gb", "1 000 000 files, 1 GB", 1_000_000, GB, NESTED),
        ("flat", "100 000 empty, one directory", 100_000, 0, FLAT),
        (
            "5-per-dir",
            "100 000 empty, 5 per directory",
            100_000,
            0,
            FEW,
        ),
        (
            "flat-zeros",
            "1 GB of zeros, one directory",
            100_000,
            GB,
            ZEROS,
        ),
    ];
    let mut cells = Vec::new();
    for (short, title, files, bytes, shape) in trees {
        let tree = Tree::Made {
            files,
            bytes,
            shape,
        };
        let name = format!("{}-{short}", work.verb());
        let mut cell = cell(Table::Made, work, name, title, tree);
        // All commands compete where a round is short, and in the cells of the README's table.
        let (rounds, most_peers) = match short {
            "10" => (11, usize::MAX),
            "1m" | "1m-1gb" => (FEW_ROUNDS, 3),
            "100k" | "flat" | "5-per-dir" | "flat-zeros" => (ROUNDS, 6),
            _ => (ROUNDS, usize::MAX),
        };
        cell.rounds = rounds;
        cell.peers.truncate(most_peers);
        match (work, short) {
            (Work::Remove, "flat-zeros") => continue,
            (Work::Remove, "flat") => cell.peers.push(peers::PERL),
            _ => {}
        }
        cells.push(cell);
    }
    cells
}

fn real(work: Work) -> Vec<Cell> {
    let trees = [
        ("linux", "the Linux source"),
        ("go", "the Go source"),
        ("node-modules", "a node_modules"),
        ("registry", "a cargo registry"),
    ];
    let peers = work.pick(peers::REAL_REMOVE, peers::REAL_COPY);
    let mut cells = Vec::new();
    for (short, title) in trees {
        let name = format!("{}-{short}", work.verb());
        let warm = Cell {
            peers: peers.to_vec(),
            ..cell(Table::Real, work, name, title, Tree::Real(short))
        };
        let rounds = match (short, work) {
            ("go", _) => Some(ROUNDS),
            ("node-modules", Work::Copy) => Some(FEW_ROUNDS),
            // Writing these trees to a disk for each run takes too long.
            _ => None,
        };
        let cold = rounds.map(|rounds| Cell {
            name: format!("{}-cold", warm.name),
            title: format!("{title}, cold"),
            place: Place::Disk,
            previous: Previous::Kept,
            peers: peers[..peers.len().min(QUICK_PEERS)].to_vec(),
            rounds,
            ..warm.clone()
        });
        cells.push(warm);
        cells.extend(cold);
    }
    cells
}

fn filesystems(work: Work) -> Vec<Cell> {
    let tree = Tree::Made {
        files: 50_000,
        bytes: 200 * MB,
        shape: &[],
    };
    let on = |filesystem: Fs| {
        let name = format!("{}-{}-data", filesystem.name(), work.verb());
        let title = format!("{}, files of 4 KB", filesystem.name());
        Cell {
            place: place(filesystem),
            peers: filesystem_peers(work).to_vec(),
            ..cell(Table::Real, work, name, &title, tree)
        }
    };
    FILESYSTEMS.map(on).to_vec()
}

/// Returns the place of a filesystem of this type.
fn place(filesystem: Fs) -> Place {
    match filesystem {
        Fs::Tmpfs => Place::Memory,
        _ => Place::New(filesystem),
    }
}

fn filesystem_peers(work: Work) -> &'static [Peer] {
    work.pick(peers::FILESYSTEM_REMOVE, peers::FILESYSTEM_COPY)
}

fn slow(work: Work) -> Vec<Cell> {
    let shapes = [
        (100, "0.1", 256, "256", "256 directories"),
        (1_000, "1", 256, "256", "256 directories"),
        (100, "0.1", 1, "flat", "one directory"),
    ];
    let cells = shapes.map(|(latency_us, ms, dirs, short, long)| {
        let name = format!("slow-{ms}ms-{}-{short}", work.verb());
        let title = format!("{ms} ms late, {long}");
        let tree = Tree::Spread(Spread::new(dirs, 1_500, 1024));
        let rounds = match (work, ms) {
            (Work::Copy, "1") => FEW_ROUNDS,
            _ => ROUNDS,
        };
        Cell {
            place: Place::Served {
                latency: Duration::from_micros(latency_us),
                clients: 1,
                bandwidth: None,
            },
            peers: work.pick(peers::SLOW_REMOVE, peers::SLOW_COPY).to_vec(),
            rounds,
            ..cell(Table::Special, work, name, &title, tree)
        }
    });
    cells.to_vec()
}

fn large(work: Work) -> Vec<Cell> {
    let among = Spread {
        large_file_bytes: Some(500 * MB),
        ..Spread::new(1, 10_000, 4_000)
    };
    let one = Spread::new(1, 1, GB);
    let ten = Spread::new(1, 10, 100 * MB);
    let trees = [
        ("among", "500 MB among small files", among, Fs::Tmpfs),
        ("ten", "ten files of 100 MB", ten, Fs::Tmpfs),
        ("one", "ext4, one file of 1 GB", one, Fs::Ext4),
    ];
    let (count, more) = work.pick(
        (1, &[peers::RM_RAYON][..]),
        (3, &[peers::FCP, peers::XCP][..]),
    );
    let large = |&(short, title, spread, filesystem)| {
        let name = format!("large-{}-{short}", work.verb());
        Cell {
            place: place(filesystem),
            peers: [filesystem_peers(work), more].concat(),
            rounds: 5,
            ..cell(Table::Special, work, name, title, Tree::Spread(spread))
        }
    };
    trees[..count].iter().map(large).collect()
}

/// Returns the cells of jobs on eight clients of one server.
fn clients(work: Work) -> Vec<Cell> {
    let many = Spread::new(256, 1_500, 1024);
    let flat = Spread::new(1, 2_000, 1024);
    let [smaller, larger] = [200 << 20, 400 * MB].map(|bytes| Spread::new(1, 1, bytes));
    let shapes = [
        ("256", "256 directories", many, None),
        ("flat", "one directory", flat, None),
        ("200mib", "200 MiB at 50 MB/s", smaller, Some(50 * MB)),
        ("400mb", "400 MB at 150 MB/s", larger, Some(150 * MB)),
    ];
    let (count, peers) = work.pick((2, peers::CLIENTS_REMOVE), (4, peers::CLIENTS_COPY));
    let cell = |(short, long, spread, bandwidth)| {
        let name = format!("clients-{}-{short}", work.verb());
        let title = format!("8 clients, 1 ms late, {long}");
        Cell {
            place: Place::Served {
                latency: Duration::from_millis(1),
                clients: RANKS,
                bandwidth,
            },
            peers: peers.to_vec(),
            rounds: FEW_ROUNDS,
            ..cell(Table::Special, work, name, &title, Tree::Spread(spread))
        }
    };
    shapes.into_iter().take(count).map(cell).collect()
}

/// Returns the cell of a copy that begins directly after the removal of the previous copy.
fn after_removal() -> Cell {
    let name = "copy-after-removal".to_owned();
    let title = "cold, after a removal";
    let tree = Tree::Spread(Spread::new(256, 60_000, 2048));
    Cell {
        place: Place::Disk,
        previous: Previous::RemovedLast,
        peers: peers::REAL_COPY[..QUICK_PEERS].to_vec(),
        ..cell(Table::Special, Work::Copy, name, title, tree)
    }
}

fn libraries(work: Work) -> Vec<Cell> {
    let [empty, small] = [0, 4096].map(|bytes| Spread::new(2_000, 100_000, bytes));
    let large = Spread::new(1, 10, 100 * MB);
    let trees = [
        ("empty", "100 000 empty files", empty),
        ("4k", "100 000 files of 4 KiB", small),
        ("large", "10 files of 100 MB", large),
    ];
    let mut cells = Vec::new();
    for filesystem in [Fs::Tmpfs, Fs::Ext4] {
        let on = filesystem.name();
        for (short, title, spread) in trees {
            let name = format!("library-{on}-{}-{short}", work.verb());
            let title = format!("{title}, {on}");
            cells.push(Cell {
                place: place(filesystem),
                peers: work
                    .pick(peers::LIBRARY_REMOVE, peers::LIBRARY_COPY)
                    .to_vec(),
                rounds: 7,
                ..cell(Table::Libraries, work, name, &title, Tree::Spread(spread))
            });
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn names(cells: &[Cell]) -> Vec<&str> {
        cells.iter().map(|cell| cell.name.as_str()).collect()
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn names_are_unique_and_so_are_rows() {
        let cells = all();
        let unique: HashSet<_> = names(&cells).into_iter().collect();
        let rows: HashSet<_> = cells
            .iter()
            .map(|cell| (cell.title.as_str(), cell.work == Work::Copy))
            .collect();
        assert_eq!((unique.len(), rows.len()), (cells.len(), cells.len()));
    }

    #[test]
    fn ours_is_first_and_only_a_flat_directory_is_for_perl() {
        for cell in all() {
            let programs: Vec<_> = cell.peers.iter().map(|peer| peer.program).collect();
            let commands = ["rmz", "cpz", "rmz-mpi", "cpz-mpi"];
            let ours = [&commands[..], &["rm_fuc_engine", "cp_fuc_engine"]].concat();
            let theirs = ["rm", "cp", "rm_stdlib", "cp_stdlib"];
            assert!(ours.contains(&programs[0]), "{}", cell.name);
            assert!(theirs.contains(&programs[1]), "{}", cell.name);
            let perl = programs.contains(&"perl");
            assert_eq!(perl, cell.name == "remove-flat", "{}", cell.name);
        }
    }

    #[test]
    fn cells_are_selected_by_name_and_by_part_of_a_name() {
        let select = |word| full(&words(&[word])).unwrap();
        assert_eq!(names(&select("copy-10")), ["copy-10"]);
        assert_eq!(
            names(&select("go-cold")),
            ["remove-go-cold", "copy-go-cold"]
        );
        assert_eq!(select("slow").len(), 6);
        assert_eq!(select("library").len(), 12);
        assert!(full(&words(&["nonsense"])).is_err());
    }

    #[test]
    fn a_quick_run_has_few_commands_and_no_large_trees() {
        let cells = quick(&[]).unwrap();
        assert_eq!(cells.len(), 13);
        assert!(cells.iter().all(|cell| cell.peers.len() <= QUICK_PEERS));
        assert!(cells.iter().all(|cell| cell.space_bytes() < 4 * GB));
    }

    #[test]
    fn copies_are_kept_only_where_the_cache_is_cold() {
        for cell in all() {
            let kept = cell.previous == Previous::Kept;
            assert!(!kept || cell.place == Place::Disk, "{}", cell.name);
        }
    }
}
