//! The ordered steps of a transform, as data.

use std::fmt;

use crate::base::Error;
use crate::codec::Wire;
use crate::geometry::Layout;
use crate::geometry::layout::axis_names;
use crate::geometry::per_axis::times;
use crate::planner::Family;
use crate::planner::search::{Costs, Found, NetworkWeight, Search};
use crate::planner::volume;
use crate::problem::Algorithm;
use crate::problem::{Direction, Kind, Problem};

/// How a transform is done: data passes through **nodes** (what each rank holds) by **steps** (the edges
/// between them). Pure data, made without communication, the same on every rank, printed as one line.
///
/// The forward transform walks from the first node to the last; the inverse walks back.
///
/// ```
/// use fft_core::*;
/// let grid = DynGrid::new([32, 32, 32])?;
/// let bricks = Layout::even(grid, ProcGrid::cubic(grid, 4), 4);
/// let problem =
///     Problem::new([Kind::C2C; 3], true, Precision::F64, bricks.clone(), bricks)?;
/// let recipe = Recipe::new(problem)?;
/// assert_eq!(
///     recipe.to_string(),
///     "(c2c 32x32x32 f64 ranks=4 [2x2x1] (fft z) (exchange [1x1x4] shared raw) (fft y) (fft x) \
///      (scale inverse) (exchange [2x2x1] shared raw))"
/// );
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    problem: Problem,
    nodes: Vec<Node>,
    steps: Vec<Step>,
}

/// What the ranks hold between two steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Who holds what, in which order.
    pub layout: Layout,
    /// Whether elements are complex.
    pub complex: bool,
}

impl Node {
    /// Real numbers per element.
    pub fn width(&self) -> usize {
        if self.complex { 2 } else { 1 }
    }
}

/// What leads from one node to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Data moves to the next node's layout.
    Reshape {
        /// How messages are represented.
        wire: Wire,
        /// How they travel.
        exchange: Algorithm,
    },
    /// Local transforms along an axis that is whole on every rank.
    Fft {
        /// Which axis.
        axis: usize,
        /// Which transform.
        kind: Kind,
    },
    /// Multiplication by a number, which each direction has its own.
    Scale {
        /// Of the forward transform.
        forward: f64,
        /// Of the inverse transform.
        inverse: f64,
    },
}

impl Recipe {
    /// The cheapest recipe for a problem by the cost model, which see ([`crate::cost`]). Of two that
    /// take the same time, as far as the model can tell, it is the one that sends less to other hosts; of more than 64
    /// ranks, where what is sent is estimated, bytes count twice instead. Deterministic.
    ///
    /// # Errors
    /// [`Error::TooLarge`]; [`Error::Argument`] for no transform at all, a wire that does not exist, a tolerance below
    /// what rounding adds, or a number of the machine that cannot be.
    pub fn new(problem: Problem) -> Result<Self, Error> {
        Self::of_family(problem, Family::Any)
    }

    /// The same among the recipes that pass through layouts of one family alone, beside the input and the output.
    ///
    /// # Errors
    /// Those of [`Recipe::new`]; [`Error::Argument`] when the family has none.
    pub fn of_family(problem: Problem, family: Family) -> Result<Self, Error> {
        check(&problem)?;
        let search = Search::new(&problem, family);
        let mut costs = Costs::new(&search);
        let cheapest = search.shortest_path(&mut costs, NetworkWeight::SOME)?;
        let mut others = Vec::new();
        if cheapest.network > 0.0 && problem.input.ranks() <= volume::FEW {
            // Some of them pass layouts over, and may find none.
            let mut find = |thrift| search.shortest_path(&mut costs, thrift).ok();
            others.extend(NetworkWeight::MORE.into_iter().filter_map(&mut find));
        }
        let (mut least, mut chosen) = (cheapest.network, Self::found(&problem, cheapest)?);
        let close = chosen.predict().seconds * (1.0 + EQUAL);
        for other in others {
            // One with too few reshapes for the wires that were chosen by hand is none.
            let network = other.network;
            let Ok(other) = Self::found(&problem, other) else { continue };
            if network < least && other.predict().seconds <= close {
                (least, chosen) = (network, other);
            }
        }
        Ok(chosen)
    }

    pub(crate) fn from_parts(problem: Problem, nodes: Vec<Node>, steps: Vec<Step>) -> Self {
        Self { problem, nodes, steps }
    }

    fn found(problem: &Problem, found: Found) -> Result<Self, Error> {
        let Found { nodes, steps, .. } = found;
        let reshapes = steps.iter().filter(|step| matches!(step, Step::Reshape { .. })).count();
        if let Some((number, _)) = problem.wires.iter().find(|(number, _)| *number >= reshapes) {
            let expected = format!("below {reshapes}, as many as the recipe has");
            return Err(Error::argument(
                "number of a reshape with a wire of its own",
                number,
                expected,
            ));
        }
        Ok(Self { problem: problem.clone(), nodes, steps })
    }

    /// What it is for.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// What the ranks hold before the first, between all, and after the last step: one more than steps.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The steps of the forward transform.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The exchanges that its reshapes use, each once.
    pub fn algorithms(&self) -> Vec<Algorithm> {
        let mut found = Vec::new();
        for step in &self.steps {
            if let Step::Reshape { exchange, .. } = step
                && !found.contains(exchange)
            {
                found.push(*exchange);
            }
        }
        found
    }

    /// Real numbers that a rank holds at most between two steps.
    pub(crate) fn most_reals(&self, rank: usize) -> usize {
        let reals = |node: &Node| node.layout.brick(rank).points() * node.width();
        self.nodes.iter().map(reals).max().unwrap_or(0) * self.problem.howmany
    }

    /// Every step with the nodes before and after it, in the order of this direction: for the inverse, the
    /// same steps reversed.
    pub fn walk(&self, direction: Direction) -> Vec<(&Node, Step, &Node)> {
        let pairs = self.nodes.windows(2).zip(&self.steps);
        match direction {
            Direction::Forward => pairs.map(|(n, step)| (&n[0], *step, &n[1])).collect(),
            Direction::Inverse => pairs.rev().map(|(n, step)| (&n[1], *step, &n[0])).collect(),
        }
    }
}

/// One line: the problem, the first layout, the steps with the layouts they lead to. A layout is printed as
/// the number of parts of each axis, followed by the order of axes in memory when it is not row-major ([`Layout`] has more); two of
/// one grid that are printed as the same are the same.
impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { kinds, howmany, precision, input, .. } = &self.problem;
        let start = &self.nodes[0].layout;
        let uniform = kinds.iter().all(|kind| *kind == kinds[0]);
        let name = match (uniform, kinds.contains(&Kind::R2C)) {
            (true, _) => kinds[0].to_string(),
            (false, _) if plain_r2c(kinds) => "r2c".into(),
            _ => kinds.map(Kind::name).join(","),
        };
        write!(f, "({name} {} {precision}", times(&input.grid().shape()))?;
        if *howmany != 1 {
            write!(f, " howmany={howmany}")?;
        }
        write!(f, " ranks={} {start}", input.ranks())?;
        if let Some(tolerance) = self.problem.tolerance {
            write!(f, " tol={tolerance}")?;
        }
        if let Some(chunk) = self.problem.uncommon_chunk() {
            write!(f, " chunk={chunk}")?;
        }
        let axes = axis_names(kinds.len());
        for (_, step, to) in self.walk(Direction::Forward) {
            match step {
                Step::Reshape { wire, exchange } => {
                    write!(f, " (exchange {} {exchange} {wire})", to.layout)?;
                }
                Step::Fft { axis, kind: Kind::C2C } => write!(f, " (fft {})", axes[axis])?,
                Step::Fft { axis, kind } => write!(f, " ({kind} {})", axes[axis])?,
                Step::Scale { forward, inverse } => match (forward == 1.0, inverse == 1.0) {
                    (true, _) => write!(f, " (scale inverse)")?,
                    (false, true) => write!(f, " (scale forward)")?,
                    (false, false) => write!(f, " (scale both)")?,
                },
            }
        }
        f.write_str(")")
    }
}

/// The share by which times may differ that the model cannot tell apart.
const EQUAL: f64 = 0.05;

/// Bytes of the largest chunk: as good as none.
const MOST_CHUNK: usize = 1 << 40;

pub(crate) fn check(problem: &Problem) -> Result<(), Error> {
    if problem.howmany == 0 {
        return Err(Error::argument("howmany", 0, "at least 1"));
    }
    // Its fields may have been changed since it was made.
    let axes = problem.grid().axes();
    for (what, found) in [
        ("axes with a kind", problem.kinds.len()),
        ("axes of the output", problem.output.grid().axes()),
    ] {
        if found != axes {
            return Err(Error::argument(what, found, axes));
        }
    }
    let (hosts, ranks) = (problem.hosts.len(), problem.input.ranks());
    if hosts != 0 && hosts != ranks {
        return Err(Error::argument("hosts of ranks", hosts, format!("{ranks}, or none")));
    }
    if !(1..=MOST_CHUNK).contains(&problem.chunk) {
        let expected = format!("1 to {MOST_CHUNK}");
        return Err(Error::argument("bytes of a chunk", problem.chunk, expected));
    }
    problem.grid().checked_points(problem.howmany)?;
    problem.check_wires()?;
    problem.machine.check()
}

/// Whether the kinds are those of an ordinary real transform: the last axis halved, the others complex.
fn plain_r2c(kinds: &[Kind]) -> bool {
    let (last, others) = kinds.split_last().expect("at least one axis");
    *last == Kind::R2C && others.iter().all(|kind| *kind == Kind::C2C)
}
