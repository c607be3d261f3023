//! Runs the cases of a plan, and reports those that differ.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fmt,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use testkit::probe::is_root;

use crate::{
    Against, AtDifference, Outcome, Plan,
    case::{Called, Case, replaced},
    deviations::{
        Comparison, Explanation, Line, dry_run, explain,
        reruns::{self, How},
    },
    difference::Difference,
    generate::{self, Rights},
    plan,
    run::{Observed, Place, Side, Status},
    script::{command_line, script},
};

/// The release of GNU coreutils that counts.
const REFERENCE: &str = "(GNU coreutils) 9.10";
/// Most sources of a case that is explained by its parts.
const MAX_SOURCES: usize = 5;
/// Most runs for shrinking a case.
const MAX_SHRINKS: usize = 1_500;
/// Most time for shrinking a case. Runs that end only at a limit, such as that of the length of paths, take long.
const MAX_SHRINKING: Duration = Duration::from_secs(60);

pub(crate) struct Fuzzer {
    plan: Plan,
    place: Place,
    gnu: PathBuf,
    ours: PathBuf,
    /// The kinds of each reported difference, and the number of cases that have all of them.
    known: BTreeMap<BTreeSet<String>, usize>,
    /// The number of cases that a deliberate difference explains, by README and line.
    deliberate: BTreeMap<Line, usize>,
    /// The number of cases by the status of GNU's command.
    statuses: BTreeMap<String, usize>,
}

/// The result of a case.
enum Verdict {
    Same,
    /// Documented as a whole.
    Deliberate(Explanation),
    Different(Explained),
}

/// A difference that is not explained as a whole.
struct Explained {
    difference: Difference,
    explanation: Explanation,
}

impl Explained {
    fn of(case: &Case, against: Against, gnu: &Observed, ours: &Observed) -> Self {
        let difference = Difference::between(case, gnu, ours);
        let explanation = match against {
            Against::Gnu => explain(&Comparison::new(case, gnu, ours, &difference.facts)),
            Against::RealRun => dry_run::explain(&difference.facts),
        };
        Self {
            difference,
            explanation,
        }
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explanation { rest, .. } = &self.explanation;
        for fact in &self.difference.facts {
            let mark = if rest.contains(fact) {
                ""
            } else {
                "(explained) "
            };
            writeln!(f, "{mark}{fact}")?;
        }
        for (readme, line) in self.explanation.lines() {
            writeln!(f, "documented in {readme}: {line}")?;
        }
        Ok(())
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
        Ok(Self {
            gnu: place.lend(&gnu)?,
            ours: place
                .lend(&ours)
                .map_err(|e| format!("{}: {e}", ours.display()))?,
            plan,
            place,
            known: BTreeMap::new(),
            deliberate: BTreeMap::new(),
            statuses: BTreeMap::new(),
        })
    }

    /// Runs all cases. Returns the number of those that differ.
    pub(crate) fn run(mut self) -> Outcome<usize> {
        let begin = Instant::now();
        let rights = match is_root() {
            true => Rights::Root,
            false => Rights::Ordinary,
        };
        let against = self.plan.against;
        let strategy = generate::case(self.plan.pair, rights).prop_map(move |case| match against {
            Against::Gnu => case,
            Against::RealRun => Case {
                called: Called::Own,
                ..case
            },
        });
        let end = self.plan.first + self.plan.cases;
        let mut number = self.plan.first;
        let mut differing = 0;
        while number < end {
            let mut random = runner(self.plan.seed, number);
            let mut tree = strategy
                .new_tree(&mut random)
                .map_err(|reason| reason.message().to_owned())?;
            number += 1;
            let (verdict, status) = self.judge(&tree.current())?;
            *self.statuses.entry(format!("{status:?}")).or_default() += 1;
            let explained = match verdict {
                Verdict::Same => continue,
                Verdict::Deliberate(explanation) => {
                    self.show(number - 1, &tree.current(), &explanation);
                    for line in explanation.lines() {
                        *self.deliberate.entry(line).or_default() += 1;
                    }
                    continue;
                }
                Verdict::Different(explained) => explained,
            };
            let kinds = explained.explanation.kinds();
            let new = self.without_known(kinds.clone());
            if !new.is_empty() {
                let is_part = |explanation: &Explanation| {
                    let part = explanation.kinds();
                    part.is_subset(&kinds) && !part.is_disjoint(&new)
                };
                let smallest = self.shrink(&mut tree, is_part)?;
                self.report(number - 1, &smallest, &explained)?;
            }
            differing += 1;
            if self.plan.at_difference == AtDifference::Stop {
                break;
            }
        }
        let (cases, seconds) = (number - self.plan.first, begin.elapsed().as_secs_f64());
        let per_minute = cases as f64 / seconds * 60.0;
        println!("{cases} cases in {seconds:.0} s, {per_minute:.0} per minute");
        for (status, count) in &self.statuses {
            println!("{count:6} GNU's {status}");
        }
        for ((readme, line), count) in &self.deliberate {
            println!("{count:6} documented in {readme}: {line}");
        }
        for (kinds, count) in &self.known {
            let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
            println!("{count:6} DIFFERENT: {}", kinds.join(" | "));
        }
        Ok(differing)
    }

    /// Runs both commands. Returns the verdict, and the status of GNU's command.
    fn judge(&mut self, case: &Case) -> Outcome<(Verdict, Status)> {
        let (gnu, ours) = self.observe(case)?;
        let status = gnu.status;
        let mut explained = Explained::of(case, self.plan.against, &gnu, &ours);
        if self.plan.against == Against::Gnu {
            self.explain_by_reruns(case, &gnu, &ours, &mut explained)?;
            self.explain_by_parts(case, &mut explained.explanation)?;
        }
        let verdict = if explained.difference.is_empty() {
            Verdict::Same
        } else if explained.explanation.rest.is_empty() {
            Verdict::Deliberate(explained.explanation)
        } else {
            Verdict::Different(explained)
        };
        Ok((verdict, status))
    }

    /// Explains facts in which ours agrees with a further run of GNU's command.
    fn explain_by_reruns(
        &mut self,
        case: &Case,
        gnu: &Observed,
        ours: &Observed,
        explained: &mut Explained,
    ) -> Outcome<()> {
        let Explained {
            difference,
            explanation,
        } = explained;
        let it = Comparison::new(case, gnu, ours, &difference.facts);
        for (how, line) in reruns::reruns(&it) {
            if explanation.rest.is_empty() {
                break;
            }
            let steps = plan::plan(case);
            let mut side = self.gnus_side(case);
            let others = match how {
                How::InTurn => {
                    let gnu = self.place.observe_all(&case.in_turn(), &steps, &side)?;
                    // Ours may deviate from these runs, too.
                    let explained = Explained::of(case, Against::Gnu, &gnu, ours);
                    explained.explanation.rest
                }
                How::Untouched => {
                    side.first = vec!["--version"];
                    let mut untouched = self.place.observe(case, &steps, &side)?;
                    untouched.stdout.clear();
                    Difference::between(case, &untouched, ours).facts
                }
            };
            explanation.settle(line, &others);
            explanation.add_consequences(&it);
        }
        Ok(())
    }

    /// Explains the rest of a case if all of its parts are explained.
    fn explain_by_parts(&mut self, case: &Case, explanation: &mut Explanation) -> Outcome<()> {
        let sources = case.sources();
        if explanation.rest.is_empty() || sources.len() < 2 || sources.len() > MAX_SOURCES {
            return Ok(());
        }
        let mut parts = Vec::new();
        for source in sources {
            match self.judge(&case.without(&[source]))?.0 {
                Verdict::Same => {}
                Verdict::Deliberate(part) => parts.push(part),
                Verdict::Different(_) => return Ok(()),
            }
        }
        explanation.settle_by_parts(&parts);
        Ok(())
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
        // A dry run cannot know how content is copied.
        real.stdout = without_methods(&real.stdout);
        for stream in [&mut real.stdout, &mut real.stderr] {
            *stream = replaced(stream, name.as_bytes(), gnus);
        }
        let end = dry.stdout.strip_suffix(b"\n").unwrap_or_default();
        let line = end
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        if dry.stdout[line..].starts_with(b"would ") {
            dry.stdout.truncate(line);
        }
        Ok((real, dry))
    }

    fn observe_both(&mut self, case: &Case) -> Outcome<(Observed, Observed)> {
        let steps = plan::plan(case);
        let gnu = self.gnus_side(case);
        let ours = Side {
            program: self.ours.clone(),
            name: case.our_name(),
            first: Vec::new(),
        };
        let gnu = self.place.observe(case, &steps, &gnu)?;
        let ours = self.place.observe(case, &steps, &ours)?;
        Ok((gnu, ours))
    }

    fn gnus_side(&self, case: &Case) -> Side {
        Side {
            program: self.gnu.clone(),
            name: case.gnus_name(),
            first: match case.called {
                Called::Own => vec!["-r"],
                Called::Gnus(_) => Vec::new(),
            },
        }
    }

    /// Counts the reported differences that are part of a difference of these kinds. Returns the other kinds.
    fn without_known(&mut self, kinds: BTreeSet<String>) -> BTreeSet<String> {
        let mut others = kinds.clone();
        for (known, count) in &mut self.known {
            if known.is_subset(&kinds) {
                *count += 1;
                others.retain(|kind| !known.contains(kind));
            }
        }
        others
    }

    /// Returns the smallest case found whose difference is part of that of `tree`.
    fn shrink(
        &mut self,
        tree: &mut impl ValueTree<Value = Case>,
        is_part: impl Fn(&Explanation) -> bool,
    ) -> Outcome<Case> {
        let mut smallest = tree.current();
        let mut goes_on = tree.simplify();
        let begin = Instant::now();
        for _ in 0..MAX_SHRINKS {
            if !goes_on || begin.elapsed() > MAX_SHRINKING {
                break;
            }
            let case = tree.current();
            let (verdict, _) = self.judge(&case)?;
            let is_smaller = match &verdict {
                Verdict::Different(explained) => is_part(&explained.explanation),
                Verdict::Same | Verdict::Deliberate(_) => false,
            };
            goes_on = match is_smaller {
                true => {
                    smallest = case;
                    tree.simplify()
                }
                false => tree.complicate(),
            };
        }
        Ok(smallest)
    }

    /// Prints the facts of a case that are documented by the line that the plan asks for.
    fn show(&self, number: u64, case: &Case, explanation: &Explanation) {
        let Some(wanted) = &self.plan.row else {
            return;
        };
        let documented = explanation.documented.iter();
        let mut facts = documented
            .filter(|((_, line), _)| line.contains(wanted))
            .peekable();
        if facts.peek().is_some() {
            println!("case {number}: {}", command_line(case));
        }
        for (_, fact) in facts {
            println!("    {fact}");
        }
    }

    /// Prints a case, and how the commands differ in it: again, or else when it was `first` seen.
    fn report(&mut self, number: u64, case: &Case, first: &Explained) -> Outcome<()> {
        let (gnu, ours) = self.observe(case)?;
        let again = Explained::of(case, self.plan.against, &gnu, &ours);
        println!(
            "===== {} of seed {}, case {number}: - GNU, + ours",
            case.pair.ours(),
            self.plan.seed
        );
        match again.explanation.rest.is_empty() {
            true => print!("The difference does not occur in every run:\n{first}"),
            false => {
                print!("{again}");
                self.known.entry(again.explanation.kinds()).or_insert(1);
            }
        }
        println!("--- script\n{}", script(case));
        Ok(())
    }
}

/// Returns lines without those of `--debug` that say how content was copied.
fn without_methods(stdout: &[u8]) -> Vec<u8> {
    let lines = stdout.split_inclusive(|&byte| byte == b'\n');
    let others = lines.filter(|line| !line.starts_with(b"copy offload: "));
    others.collect::<Vec<_>>().concat()
}

/// Returns the source of randomness for one case.
pub(crate) fn runner(seed: u64, number: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    TestRunner::new_with_rng(Config::default(), random)
}
