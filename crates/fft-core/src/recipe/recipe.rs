//! The steps of a transform as data.

use std::fmt;

use crate::codec::Wire;
use crate::geometry::Layout;
use crate::geometry::layout::axis_names;
use crate::geometry::per_axis::times;
use crate::problem::Exchange;
use crate::problem::{Direction, Kind, Problem};

/// The plan of a transform: **nodes** (data distributions) and **steps** between them. It is made
/// without communication, is the same on every rank and prints as one line.
///
/// The inverse walks the same steps backwards.
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

/// The distribution of data between two steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The bricks of ranks and their order in memory.
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

/// An operation between two nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Redistribution to the next node's layout.
    Reshape {
        /// The encoding of messages.
        wire: Wire,
        /// How its messages are carried.
        exchange: Exchange,
    },
    /// Local transforms along an axis that every rank holds whole. For the kind tridiagonal nothing
    /// is transformed: the step marks where systems can be solved. If ranks divide the axis, they
    /// reduce their systems, and the step prints as `reduced`.
    Fft {
        /// The axis.
        axis: usize,
        /// The kind of transform.
        kind: Kind,
    },
    /// Multiplication by a number for each direction.
    Scale {
        /// The factor of the forward transform.
        forward: f64,
        /// The factor of the inverse transform.
        inverse: f64,
    },
}

impl Step {
    /// Whether this transforms data.
    pub(crate) fn is_transform(&self) -> bool {
        matches!(self, Self::Fft { kind, .. } if kind.is_transform())
    }

    /// Whether this is a reshape in which ranks of a host read each other's memory.
    pub(crate) fn reads_peers(&self) -> bool {
        matches!(self, Self::Reshape { exchange, .. } if exchange.reads_peers())
    }
}

impl Recipe {
    pub(crate) fn from_parts(problem: Problem, nodes: Vec<Node>, steps: Vec<Step>) -> Self {
        Self { problem, nodes, steps }
    }

    /// The problem.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The distributions before, between and after the steps.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The steps of the forward transform.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The exchanges of its reshapes, each once.
    pub fn exchanges(&self) -> Vec<Exchange> {
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

    /// Maximum real numbers of a rank between two steps.
    pub(crate) fn most_reals(&self, rank: usize) -> usize {
        let reals = |node: &Node| node.layout.brick(rank).points() * node.width();
        self.nodes.iter().map(reals).max().unwrap_or(0) * self.problem.batch
    }

    /// Every step with the nodes before and after it, in the order of this direction.
    pub fn walk(&self, direction: Direction) -> Vec<(&Node, Step, &Node)> {
        let pairs = self.nodes.windows(2).zip(&self.steps);
        match direction {
            Direction::Forward => pairs.map(|(n, step)| (&n[0], *step, &n[1])).collect(),
            Direction::Inverse => pairs.rev().map(|(n, step)| (&n[1], *step, &n[0])).collect(),
        }
    }
}

/// Serialized as its text, which [`Recipe::exact`] parses.
impl serde::Serialize for Recipe {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One line: the problem, the first layout, and the steps with the layouts after them.
///
/// A layout prints as the number of parts of each axis and, if not row-major, the order of axes.
impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { kinds, batch, precision, input, .. } = &self.problem;
        let start = &self.nodes[0].layout;
        let uniform = kinds.iter().all(|kind| *kind == kinds[0]);
        let name = match (uniform, kinds.contains(&Kind::R2C)) {
            (true, _) => kinds[0].to_string(),
            (false, _) if plain_r2c(kinds) => "r2c".into(),
            _ => kinds.map(Kind::name).join(","),
        };
        write!(f, "({name} ")?;
        if let Some(one_axis) = &self.problem.one_axis {
            write!(f, "{one_axis}=")?;
        }
        write!(f, "{} {precision}", times(&input.grid().shape()))?;
        for (what, lens) in
            [("zero_padded", self.problem.zero_padded), ("modes", self.problem.modes)]
        {
            if self.problem.is_any_resized() {
                write!(f, " {what}={}", times(&lens))?;
            }
        }
        if *batch != 1 {
            write!(f, " batch={batch}")?;
        }
        write!(f, " ranks={} {start}", input.ranks())?;
        if let Some(tolerance) = self.problem.options.tolerance {
            write!(f, " tolerance={tolerance}")?;
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
                Step::Fft { axis, kind: Kind::Tridiagonal } if !to.layout.is_whole(axis) => {
                    write!(f, " (reduced {})", axes[axis])?;
                }
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

/// Whether the kinds form an ordinary real transform: R2C along the last axis, C2C along the
/// others.
fn plain_r2c(kinds: &[Kind]) -> bool {
    let (last, others) = kinds.split_last().expect("at least one axis");
    *last == Kind::R2C && others.iter().all(|kind| *kind == Kind::C2C)
}
