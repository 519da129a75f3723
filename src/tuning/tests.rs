//! Tests of choosing among recipes: the candidates, the winner of a race, and trials that fail.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use fft_comm::{exchanger_in, threads, threads_on};
use fft_core::{
    Comm, Direction, Epochs, Error, Exchange, Grid, HostExecutor, How, Kind, Layout, Precision,
    Problem, ProcGrid, Recipe, Tolerance, Wire, bind_on_host,
};

use super::candidates::{Candidate, Choice, Favourite, candidates, favourite, shortlist};
use super::race::{Outcome, Progress, Trial, race};
use super::report::{Report, Source};
use super::tune::tune;

fn problem(shape: [usize; 3], hosts: &[usize]) -> Problem {
    let grid = Grid::new(shape).unwrap();
    let layout = Layout::even(grid, ProcGrid::cubic(grid, hosts.len()), hosts.len());
    let mut problem =
        Problem::new([Kind::C2C; 3], true, Precision::F64, layout.clone(), layout).unwrap();
    problem.hosts = hosts.to_vec();
    problem
}

#[test]
fn candidates_are_the_same_on_all_ranks_sorted_and_each_there_once() {
    for (shape, hosts) in [([16; 3], vec![0; 4]), ([32, 8, 20], vec![0, 0, 1, 1, 2, 2])] {
        let found = threads_on(&hosts, |_| {
            let problem = problem(shape, &hosts);
            candidates(&problem, &Choice::of_clock(&problem, None, true, false)).unwrap()
        });
        let first = &found[0];
        assert!(found.iter().all(|other| other == first));
        assert!(first.is_sorted_by(|a, b| a.predicted <= b.predicted + 1e-12));
        let name = |candidate: &Candidate| (candidate.recipe.to_string(), candidate.chunk());
        let mut names: Vec<_> = first.iter().map(name).collect();
        names.sort();
        let all = names.len();
        names.dedup();
        // Recipes may differ by more than their names only if their bricks print alike.
        assert!(
            names.len() == all || first.iter().any(|c| c.recipe.to_string().contains("bricks"))
        );
        let cheapest = Recipe::new(problem(shape, &hosts)).unwrap().predict().seconds;
        assert!(first[0].predicted <= cheapest);
        let few = shortlist(first.clone(), 8);
        assert!(few.len() <= 8 && few[0] == first[0]);
    }
}

#[test]
fn exchanges_are_those_that_make_sense() {
    let of = |shape, hosts: &[usize], can_put| {
        let problem = problem(shape, hosts);
        let choice = Choice::of_clock(&problem, None, can_put, false);
        choice.exchanges.iter().map(Exchange::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(of([8; 3], &[0], true), "shared");
    assert_eq!(of([256; 3], &[0; 4], true), "shared p2p pipelined alltoallv");
    assert_eq!(of([8; 3], &[0; 3], true), "shared p2p pipelined alltoallv kway2");
    assert_eq!(of([8; 3], &[0; 9], false), "shared p2p pipelined alltoallv kway2 kway4 kway8");
    assert_eq!(of([256; 3], &[0, 1], true), "shared p2p alltoallv ring ring-flush");
    assert_eq!(of([256; 3], &[0, 1], false), "shared p2p alltoallv");
    assert_eq!(of([256; 3], &[0, 0, 1], false), "shared hosts p2p pipelined alltoallv");
}

#[test]
fn chunks_wires_and_families_are_tried_where_they_matter() {
    let mut far = problem([64; 3], &[0, 1, 2, 3]);
    (far.options.tolerance, far.options.wire) =
        (Some(Tolerance::relative(1e-6).unwrap()), Wire::Tolerance);
    let free = Choice::of_clock(&far, Some(Exchange::Shared), false, false);
    let found = candidates(&far, &free).unwrap();
    for chunk in [1 << 17, 1 << 19, 1 << 21] {
        for wire in [Wire::Tolerance, Wire::Raw] {
            let is = |c: &&Candidate| {
                c.chunk() == Some(chunk) && c.recipe.problem().options.wire == wire
            };
            assert!(found.iter().any(|candidate| is(&candidate)), "{chunk} {wire}");
        }
    }
    let fixed = Choice::of_clock(&far, Some(Exchange::Shared), false, true);
    let found = candidates(&far, &fixed).unwrap();
    assert!(found.iter().all(|c| c.recipe.problem().options.wire == Wire::Tolerance));
    // Plans that share all memory have no chunks.
    let near = problem([64; 3], &[0; 4]);
    let shared = Choice::of_clock(&near, Some(Exchange::Shared), false, false);
    let found = candidates(&near, &shared).unwrap();
    assert!(found.iter().all(|c| c.chunk().is_none()));
    assert!(found.len() > 1, "slabs or pencils are not all the search finds: {found:?}");
    let only = Choice::of_model(&near, None);
    assert!(candidates(&near, &only).unwrap().iter().any(|c| c.chunk().is_none()));
}

#[test]
fn the_model_prefers_what_is_named_first_unless_another_is_clearly_faster() {
    let of = |machine: fft_core::Machine| {
        let mut problem = problem([64; 3], &[0; 8]);
        problem.machine = machine.into();
        let choice = Choice::of_model(&problem, None);
        let all = candidates(&problem, &choice).unwrap();
        let Favourite { place, reason } = favourite(&all, &choice);
        let chosen = &all[place];
        (chosen.exchange(), chosen.predicted / all[0].predicted, reason)
    };
    assert_eq!(of(fft_core::Machine::default()).0, Exchange::Shared);
    // If exposure epochs take forever, ranks of a host should send messages.
    let mut slow = fft_core::Machine::default();
    slow.barrier.value = 1.0;
    let (exchange, over, reason) = of(slow);
    assert!(exchange != Exchange::Shared && over == 1.0, "{exchange} {over}");
    assert_eq!(reason, "predicted to be the fastest");
    let mut hardly = fft_core::Machine::default();
    (hardly.near.latency.value, hardly.near.overhead.value) = (0.0, 0.0);
    hardly.barrier.value = 1.6e-4;
    let (exchange, over, reason) = of(hardly);
    assert!(exchange == Exchange::Shared && over > 1.0, "{exchange} {over}");
    let words: Vec<_> = reason.split(' ').collect();
    assert!(reason.starts_with("shared is predicted to take "), "{reason}");
    assert!(
        reason.ends_with("but another exchange must be faster by 25% and 20.00 µs"),
        "{reason}"
    );
    let [own, least] = [5, 9].map(|word| words[word].parse::<f64>().unwrap());
    assert!(words[6] == words[10].trim_end_matches(','), "{reason}");
    assert!((own / least - over).abs() < 0.02, "{reason}: {over}");
    let alone = problem([64; 3], &[0]);
    let choice = Choice::of_model(&alone, None);
    let only = favourite(&candidates(&alone, &choice).unwrap(), &choice);
    assert_eq!((only.place, only.reason.as_str()), (0, "the only candidate"));
}

#[test]
fn a_report_says_where_its_choice_is_from() {
    let choice = Choice::of_model(&problem([16; 3], &[0; 2]), None);
    let all = candidates(&problem([16; 3], &[0; 2]), &choice).unwrap();
    let first_line = |report: Report| report.to_string().lines().next().unwrap().to_owned();
    let model = first_line(Report::of_model(&all, &choice));
    assert!(model.starts_with("chosen by the model: "), "{model}");
    let remembered = Report::remembered(&all[0], 0.0338);
    assert_eq!(remembered.chosen().measured(), Some(0.0338));
    assert_eq!(first_line(remembered), "from wisdom, measured 33.80 ms");
    assert_eq!(first_line(Report::given(&all[0])), "given as a recipe");
    let budget = Duration::from_millis(50);
    let timed = threads(2, |comm| tune_on_host(&comm, &all, budget, &mut |_| ()).unwrap());
    let by_clock = first_line(timed[0].clone());
    assert!(by_clock.starts_with("chosen by the clock: the fastest of "), "{by_clock}");
}

#[test]
fn predictions_are_trusted_more_where_links_were_measured() {
    let hosts = [0, 0, 1, 1];
    let chosen = |barrier: f64, [near, far]: [How; 2]| {
        let mut machine = fft_core::Machine::default();
        (machine.near.bandwidth.how, machine.far.bandwidth.how) = (near, far);
        machine.barrier.value = barrier;
        // Processors so slow that exchanges make little difference.
        (machine.memory.value, machine.flops[0].rate.value) = (1e10, 4e9);
        let mut problem = problem([64; 3], &hosts);
        problem.machine = machine.into();
        let choice = Choice::of_model(&problem, None);
        let all = candidates(&problem, &choice).unwrap();
        let is_shared =
            |one: &&Candidate| one.recipe.problem().options.exchange == Exchange::Shared;
        let shared = all.iter().find(is_shared).unwrap();
        (is_shared(&&all[favourite(&all, &choice).place]), shared.predicted / all[0].predicted)
    };
    let assumed = [How::Assumed; 2];
    // The slower ranks meet, the more another exchange gains.
    let mut between = 0;
    for barrier in (0..100).map(|step| 1e-5 * f64::from(step)) {
        let (is_shared, ratio) = chosen(barrier, assumed);
        if (1.12..1.24).contains(&ratio) {
            between += 1;
            assert!(is_shared, "{ratio}");
            for how in [How::Measured, How::Fitted] {
                assert!(!chosen(barrier, [How::Assumed, how]).0, "{ratio}");
            }
            assert!(chosen(barrier, [How::Measured, How::Assumed]).0, "another link: {ratio}");
        }
    }
    assert!(between > 0);
}

#[test]
fn a_problem_that_cannot_be_is_refused_and_so_is_nothing_to_choose_from() {
    let mut none = problem([8; 3], &[0; 2]);
    none.batch = 0;
    let choice = Choice::of_model(&none, None);
    assert!(candidates(&none, &choice).unwrap_err().to_string().contains("batch"));
    let found = threads(2, |comm| {
        tune_on_host(&comm, &[], Duration::ZERO, &mut |_| ()).unwrap_err().to_string()
    });
    assert_eq!(found, ["candidates: found 0, expected at least 1"; 2]);
}

/// A recipe bound on the host, with arrays of its own.
struct Bound(Box<dyn HostExecutor>, [Vec<f64>; 2]);

impl Trial for Bound {
    fn run(&mut self) -> Result<(), Error> {
        let [input, output] = &mut self.1;
        let (input, output) = (bytemuck::cast_slice(input), bytemuck::cast_slice_mut(output));
        self.0.run(Direction::Forward, Some(input), output)
    }
}

/// Times candidates on the host; one of them, which has another exchange than its name says, fails.
fn tune_on_host(
    comm: &dyn Comm,
    all: &[Candidate],
    budget: Duration,
    on_progress: &mut dyn FnMut(Progress),
) -> Result<Report, Error> {
    let mut make = |candidate: &Candidate| -> Result<Box<dyn Trial>, Error> {
        let (recipe, problem) = (&candidate.recipe, candidate.recipe.problem());
        let make = exchanger_in(problem.options.memory);
        let executor = bind_on_host(recipe, comm.dup()?, make)?;
        let (found, asked) =
            (executor.exchange(problem.options.exchange), problem.options.exchange);
        if found != asked {
            return Err(Error::argument("exchange", found, asked));
        }
        let arrays = problem.reals(comm.rank()).map(|reals| vec![1.0; reals]);
        Ok(Box::new(Bound(executor, arrays)))
    };
    tune(comm, all, budget, &mut make, on_progress)
}

/// Sleeps, and fails in the given run on one rank.
struct Sleeper {
    seconds: f64,
    fails_in: Option<usize>,
    runs: usize,
    log: Rc<RefCell<Vec<usize>>>,
    number: usize,
}

impl Trial for Sleeper {
    fn run(&mut self) -> Result<(), Error> {
        std::thread::sleep(Duration::from_secs_f64(self.seconds));
        self.log.borrow_mut().push(self.number);
        self.runs += 1;
        match self.fails_in {
            Some(run) if run == self.runs => Err(Error::argument("trial", run, "another")),
            _ => Ok(()),
        }
    }
}

/// What happens on a rank: how long each trial takes there, in which run it fails, whether it
/// cannot be made.
type Script = fn(rank: usize, number: usize) -> (f64, Option<usize>, bool);

/// Races on `ranks` ranks: outcomes and runs, which must be the same on all.
fn run(ranks: usize, count: usize, budget: Duration, script: Script) -> (Vec<Outcome>, Vec<usize>) {
    let mut found = threads(ranks, |comm| {
        let log = Rc::new(RefCell::new(Vec::new()));
        let mut make = |number: usize| -> Result<Box<dyn Trial>, Error> {
            let (seconds, fails_in, never) = script(comm.rank(), number);
            if never {
                return Err(Error::argument("maker", number, "another"));
            }
            Ok(Box::new(Sleeper { seconds, fails_in, runs: 0, log: log.clone(), number }))
        };
        let outcomes = race(&comm, count, budget, &mut make, &mut |_| ()).unwrap();
        let runs = log.borrow().clone();
        (outcomes, runs)
    });
    let first = found.swap_remove(0);
    assert!(found.iter().all(|other| *other == first), "{ranks} ranks decide differently");
    first
}

/// Is fast only once, after the run that is not timed.
struct Lucky(usize);

impl Trial for Lucky {
    fn run(&mut self) -> Result<(), Error> {
        self.0 += 1;
        std::thread::sleep(Duration::from_millis(if self.0 == 2 { 5 } else { 60 }));
        Ok(())
    }
}

#[test]
fn one_lucky_run_drops_nobody() {
    let steady = |number| {
        let log = Rc::default();
        Sleeper { seconds: 0.03, fails_in: None, runs: 0, log, number }
    };
    let outcomes = threads(1, |comm| {
        let mut make = |number: usize| -> Result<Box<dyn Trial>, Error> {
            Ok(if number == 0 { Box::new(Lucky(0)) } else { Box::new(steady(number)) })
        };
        race(&comm, 2, LONG, &mut make, &mut |_| ()).unwrap()
    });
    assert!(matches!(&outcomes[0][1], Outcome::Timed(_)), "{outcomes:?}");
}

const LONG: Duration = Duration::from_secs(3600);

#[test]
fn one_that_is_slow_on_one_rank_is_dropped_at_once_on_all() {
    for ranks in [1, 2, 4] {
        // Number 1 is slow on the last rank of up to four; the fast one gets all its turns alone.
        let (outcomes, runs) = run(ranks, 3, LONG, |rank, number| {
            let slow = number == 1 && rank == 0 || number == 2;
            (if slow { 0.05 } else { 0.002 }, None, false)
        });
        assert!(matches!(&outcomes[0], Outcome::Timed(_)), "{outcomes:?}");
        for slow in [1, 2] {
            assert!(
                matches!(&outcomes[slow], Outcome::Dropped(times) if times.len() == 2),
                "{outcomes:?}"
            );
            assert_eq!(runs.iter().filter(|number| **number == slow).count(), 3);
        }
        assert!(outcomes[0].seconds() < outcomes[1].seconds());
    }
}

#[test]
fn one_that_fails_on_one_rank_is_dropped_on_all_and_the_others_go_on() {
    for ranks in [1, 2, 4] {
        // 0 cannot be made on rank 0, 1 fails there in its third run, 2 in its fourth; 3 and 4 are
        // there to the end.
        let (outcomes, _) = run(ranks, 5, LONG, |rank, number| {
            let bad = rank == 0;
            let fails = [None, Some(3), Some(4), None, None][number].filter(|_| bad);
            (0.004, fails, bad && number == 0)
        });
        assert_eq!(outcomes[0], Outcome::Failed("rank 0: maker: found 0, expected another".into()));
        assert_eq!(outcomes[1], Outcome::Failed("rank 0: trial: found 3, expected another".into()));
        // If other programs run, it may have lost before.
        let failed = Outcome::Failed("rank 0: trial: found 4, expected another".into());
        assert!(
            outcomes[2] == failed || matches!(outcomes[2], Outcome::Dropped(_)),
            "{outcomes:?}"
        );
        assert!(
            outcomes[3..].iter().any(|outcome| matches!(outcome, Outcome::Timed(_))),
            "{outcomes:?}"
        );
    }
}

#[test]
fn without_time_the_first_that_works_is_all_that_is_tried() {
    let (outcomes, runs) = run(2, 4, Duration::ZERO, |_, number| (0.001, None, number == 0));
    assert!(matches!(outcomes[0], Outcome::Failed(_)));
    assert!(matches!(&outcomes[1], Outcome::Timed(times) if times.len() == 2));
    assert_eq!((&outcomes[2..], runs.len()), (&[Outcome::NotTried, Outcome::NotTried][..], 3));
}

#[test]
fn when_all_fail_that_is_said_by_all() {
    let (outcomes, _) = run(3, 2, LONG, |rank, _| (0.0, None, rank == 2));
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Failed(_))));
}

#[test]
fn a_rank_that_goes_ends_the_race_for_all() {
    let found = threads(3, |comm| {
        let mut make = |_: usize| -> Result<Box<dyn Trial>, Error> {
            let log = Rc::default();
            Ok(Box::new(Sleeper { seconds: 0.0, fails_in: None, runs: 0, log, number: 0 }))
        };
        (comm.rank() != 1).then(|| race(&comm, 2, LONG, &mut make, &mut |_| ()).is_err())
    });
    assert_eq!(found, [Some(true), None, Some(true)]);
}

#[test]
fn recipes_are_timed_and_one_is_chosen_on_every_rank_alike() {
    for hosts in [vec![0], vec![0, 0], vec![0, 1], vec![0, 0, 1, 1]] {
        let found = threads_on(&hosts, |comm| {
            let problem = problem([12, 10, 8], &hosts);
            let all =
                candidates(&problem, &Choice::of_clock(&problem, None, false, false)).unwrap();
            let few = shortlist(all, 6);
            let on_progress = Cell::new(0);
            let mut hear = |news: Progress| {
                assert!(news.candidate < news.candidates && news.budget == LONG / 3600);
                on_progress.set(on_progress.get() + 1);
            };
            let report = tune_on_host(&comm, &few, LONG / 3600, &mut hear).unwrap();
            assert!(on_progress.get() > 0);
            report
        });
        let report = &found[0];
        assert!(found.iter().all(|other| other == report), "{hosts:?}");
        assert_eq!(report.source, Source::Measured);
        let chosen = report.chosen().measured().unwrap();
        for row in &report.rows {
            let worse = match &row.outcome {
                Outcome::Timed(_) => row.measured().unwrap() >= chosen,
                Outcome::Dropped(times) => !times.is_empty(),
                Outcome::NotTried => true,
                Outcome::Failed(why) => panic!("{why}"),
                Outcome::Remembered(seconds) => panic!("{seconds} s of an earlier run"),
            };
            assert!(worse && row.predicted > 0.0, "{report}");
        }
        let text = report.to_string();
        assert_eq!(text.lines().filter(|line| line.starts_with('*')).count(), 1, "{text}");
        assert_eq!(text.lines().count(), 2 + report.rows.len(), "{text}");
    }
}

#[test]
fn what_the_communicator_cannot_do_fails_and_is_not_chosen() {
    let found = threads_on(&[0, 1], |comm| {
        let mut put = problem([8; 3], &[0, 1]);
        put.options.exchange = Exchange::Ring(Epochs::Fence);
        let all = [put, problem([8; 3], &[0, 1])]
            .map(|problem| Candidate::of(Recipe::new(problem).unwrap()));
        let both = tune_on_host(&comm, &all, Duration::from_millis(50), &mut |_| ()).unwrap();
        let none = tune_on_host(&comm, &all[..1], Duration::ZERO, &mut |_| ()).unwrap_err();
        (both, none)
    });
    let (report, error) = &found[0];
    assert_eq!(found[0], found[1]);
    assert_eq!(report.chosen, 1);
    assert!(matches!(report.rows[0].outcome, Outcome::Failed(_)), "{report}");
    assert!(error.to_string().starts_with("candidates that work: found"), "{error}");
}
