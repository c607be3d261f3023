//! Runs the cases of a plan, and reports those that differ.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use testkit::{
    probe::is_root,
    run::{as_done, replaced},
};

use crate::{
    Against, Outcome, Plan,
    case::{Called, Case},
    deviations::{self, Deviation},
    difference::Difference,
    generate, plan,
    run::{Observed, Place, Side, Status},
    script::script,
};

/// The release of GNU coreutils that counts.
const REFERENCE: &str = "(GNU coreutils) 9.10";
/// Most runs for shrinking a case.
const MAX_SHRINKS: usize = 1_500;
/// Most time for shrinking a case. Runs that end only at a limit, such as that of the length of paths, take long.
const MAX_SHRINKING: Duration = Duration::from_secs(60);
/// The greatest share of cases that a row may leave out, in percent. A row that leaves out everything hides every bug.
const MAX_LEFT_OUT_PERCENT: u64 = 10;
/// Fewer cases than this say nothing about shares.
const MIN_CASES_FOR_SHARES: u64 = 500;

pub(crate) struct Fuzzer {
    plan: Plan,
    place: Place,
    gnu: PathBuf,
    ours: PathBuf,
    /// The page that documents the differences, and the differences.
    page: &'static str,
    rows: &'static [Deviation],
    /// The cases of each row.
    left_out: Vec<LeftOut>,
    /// The kinds of each reported difference, and the number of cases that have all of them.
    known: BTreeMap<BTreeSet<String>, usize>,
}

/// Counts of cases that a row leaves out.
#[derive(Clone, Copy, Default)]
struct LeftOut {
    all: u64,
    differing: u64,
}

/// The result of a case.
struct Verdict {
    difference: Difference,
    /// The row that leaves the case out, by its number.
    row: Option<usize>,
}

impl Verdict {
    fn is_bug(&self) -> bool {
        self.row.is_none() && !self.difference.0.is_empty()
    }
}

impl Fuzzer {
    pub(crate) fn new(plan: Plan) -> Outcome<Self> {
        let place = Place::new()?;
        let reference = env::var_os("FUC_REFERENCE").ok_or("FUC_REFERENCE is not set")?;
        let gnu = Path::new(&reference).join(plan.pair.gnu());
        let version = Command::new(&gnu).arg("--version").output()?;
        if !String::from_utf8_lossy(&version.stdout).contains(REFERENCE) {
            return Err(format!("{} is not of {REFERENCE}", gnu.display()).into());
        }
        let ours = env::current_exe()?.with_file_name(plan.pair.ours());
        let lent = place.lend(&ours);
        let (page, rows) = deviations::rows(plan.pair, plan.against);
        Ok(Self {
            gnu: place.lend(&gnu)?,
            ours: lent.map_err(|e| format!("{}: {e}", ours.display()))?,
            plan,
            place,
            left_out: vec![LeftOut::default(); rows.len()],
            page,
            rows,
            known: BTreeMap::new(),
        })
    }

    /// Runs all cases. Returns the number of those that differ, and of rows that leave out too many.
    pub(crate) fn run(mut self) -> Outcome<usize> {
        let begin = Instant::now();
        let against = self.plan.against;
        let strategy = generate::case(self.plan.pair).prop_map(move |mut case| {
            if against == Against::RealRun {
                case.called = Called::Own;
            }
            if is_root() {
                case
            } else {
                generate::without_root(case)
            }
        });
        let mut cases = 0;
        let mut differing = 0;
        for number in self.plan.first..self.plan.first + self.plan.cases {
            let mut tree = strategy
                .new_tree(&mut runner(self.plan.seed, number))
                .map_err(|reason| reason.message().to_owned())?;
            cases += 1;
            let verdict = self.judge(&tree.current())?;
            self.count(&verdict);
            if !verdict.is_bug() {
                continue;
            }
            differing += 1;
            if !self.is_known(&verdict.difference.kinds()) {
                let smallest = self.shrink(&mut tree, &verdict.difference.kinds())?;
                self.report(number, &smallest, &verdict.difference)?;
            }
            if !self.plan.keeps_going {
                break;
            }
        }
        let seconds = begin.elapsed().as_secs();
        println!("{cases} cases in {seconds} s");
        for (kinds, count) in &self.known {
            let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
            println!("{count:6} DIFFERENT: {}", kinds.join(" | "));
        }
        Ok(differing + self.conclude(cases))
    }

    /// Runs both commands.
    fn judge(&mut self, case: &Case) -> Outcome<Verdict> {
        let (gnu, ours) = self.observe(case)?;
        // Nothing excuses a panic or a crash.
        let has_crashed = matches!(ours.status, Status::Signal(_) | Status::Exit(101));
        let row = self
            .rows
            .iter()
            .position(|(_, applies)| applies(case, &gnu));
        Ok(Verdict {
            difference: Difference::between(case, &gnu, &ours),
            row: row.filter(|_| !has_crashed),
        })
    }

    fn observe(&mut self, case: &Case) -> Outcome<(Observed, Observed)> {
        match self.plan.against {
            Against::Gnu => self.observe_both(case),
            Against::RealRun => self.observe_dry_run(case),
        }
    }

    /// Runs our command twice. Returns what the real run prints, as GNU's command and without its effects, and
    /// the dry run without its last line.
    fn observe_dry_run(&mut self, case: &Case) -> Outcome<(Observed, Observed)> {
        let steps = plan::plan(case);
        let (name, gnus) = (case.pair.ours(), case.pair.gnu());
        let side = |first| Side {
            program: self.ours.clone(),
            name: name.to_owned(),
            first: vec![first],
        };
        let [real, dry, none] = ["--verbose", "--dry-run", "--version"].map(side);
        let mut real = self.place.observe(case, &steps, &real)?;
        let mut dry = self.place.observe(case, &steps, &dry)?;
        real.tree = self.place.observe(case, &steps, &none)?.tree;
        for stream in [&mut real.stdout, &mut real.stderr] {
            *stream = replaced(stream, name.as_bytes(), gnus.as_bytes());
        }
        dry.stdout = as_done(&dry.stdout);
        Ok((real, dry))
    }

    fn observe_both(&mut self, case: &Case) -> Outcome<(Observed, Observed)> {
        let steps = plan::plan(case);
        let [gnus_name, our_name] = case.called_names();
        let gnu = Side {
            program: self.gnu.clone(),
            name: gnus_name,
            first: match case.called {
                Called::Own => vec!["-r"],
                Called::Gnus(_) => Vec::new(),
            },
        };
        let ours = Side {
            program: self.ours.clone(),
            name: our_name,
            first: Vec::new(),
        };
        let gnu = self.place.observe(case, &steps, &gnu)?;
        let ours = self.place.observe(case, &steps, &ours)?;
        Ok((gnu, ours))
    }

    /// Counts a case for the row that leaves it out.
    fn count(&mut self, verdict: &Verdict) {
        if let Some(row) = verdict.row {
            self.left_out[row].all += 1;
            self.left_out[row].differing += u64::from(!verdict.difference.0.is_empty());
        }
    }

    /// Returns `true` if a reported difference is part of this one, and counts it.
    fn is_known(&mut self, kinds: &BTreeSet<String>) -> bool {
        let mut known = self.known.iter_mut();
        let found = known.find(|(known, _)| known.is_subset(kinds));
        found.map(|(_, count)| *count += 1).is_some()
    }

    /// Returns the smallest case found whose difference is part of that of `tree`.
    fn shrink(
        &mut self,
        tree: &mut impl ValueTree<Value = Case>,
        kinds: &BTreeSet<String>,
    ) -> Outcome<Case> {
        let mut smallest = tree.current();
        let mut goes_on = tree.simplify();
        let begin = Instant::now();
        for _ in 0..MAX_SHRINKS {
            if !goes_on || begin.elapsed() > MAX_SHRINKING {
                break;
            }
            let case = tree.current();
            let verdict = self.judge(&case)?;
            goes_on = match verdict.is_bug() && verdict.difference.kinds().is_subset(kinds) {
                true => {
                    smallest = case;
                    tree.simplify()
                }
                false => tree.complicate(),
            };
        }
        Ok(smallest)
    }

    /// Prints a case, and how the commands differ in it: again, or else when it was `first` seen.
    fn report(&mut self, number: u64, case: &Case, first: &Difference) -> Outcome<()> {
        let again = self.judge(case)?.difference;
        let (ours, seed) = (case.pair.ours(), self.plan.seed);
        println!("===== {ours} of seed {seed}, case {number}: - GNU, + ours");
        let (shown, note) = match again.0.is_empty() {
            true => (first, "The difference does not occur in every run:\n"),
            false => (&again, ""),
        };
        println!("{note}{}\n--- script\n{}", shown.0.join("\n"), script(case));
        self.known.insert(shown.kinds(), 1);
        Ok(())
    }

    /// Prints what each row has left out. Returns the number of rows that leave out too many cases.
    fn conclude(&self, cases: u64) -> usize {
        let mut wrong = 0;
        for ((line, _), count) in self.rows.iter().zip(&self.left_out) {
            let LeftOut { all, differing } = count;
            let page = self.page;
            println!("{all:6} left out, {differing:5} of them differ: {page}: {line}");
            if cases >= MIN_CASES_FOR_SHARES && all * 100 > cases * MAX_LEFT_OUT_PERCENT {
                println!("       TOO MANY: more than {MAX_LEFT_OUT_PERCENT} % of {cases}");
                wrong += 1;
            }
        }
        wrong
    }
}

/// Returns the source of randomness for one case.
pub(crate) fn runner(seed: u64, number: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    TestRunner::new_with_rng(Config::default(), random)
}
