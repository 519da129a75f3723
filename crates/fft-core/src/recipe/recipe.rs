//! The ordered steps of a transform, as data.

use std::fmt;

use crate::codec::Wire;
use crate::geometry::Layout;
use crate::geometry::layout::axis_names;
use crate::geometry::per_axis::times;
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
    pub(crate) fn from_parts(problem: Problem, nodes: Vec<Node>, steps: Vec<Step>) -> Self {
        Self { problem, nodes, steps }
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
/// As it prints; [`Recipe::exact`] reads it.
impl serde::Serialize for Recipe {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

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
        if let Some(tolerance) = self.problem.options.tolerance {
            write!(f, " tol={tolerance}")?;
        }
        if let Some(chunk) = self.problem.policy().uncommon_chunk {
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

/// Whether the kinds are those of an ordinary real transform: the last axis halved, the others complex.
fn plain_r2c(kinds: &[Kind]) -> bool {
    let (last, others) = kinds.split_last().expect("at least one axis");
    *last == Kind::R2C && others.iter().all(|kind| *kind == Kind::C2C)
}
