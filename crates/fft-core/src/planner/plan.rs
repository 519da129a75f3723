//! The choice of a recipe: the cheapest path through the search graph or a close competitor.

use super::search::{Costs, Found, NetworkWeight, Search};
use super::{Layouts, volume};
use crate::base::Error;
use crate::geometry::Layout;
use crate::problem::Problem;
use crate::recipe::{Recipe, Step};

/// Relative difference of times below which the model cannot rank them.
const EQUAL: f64 = 0.05;

impl Recipe {
    /// The cheapest recipe by the cost model ([`crate::cost`]). Deterministic.
    ///
    /// If two take about the same time, the one that sends less to other hosts is chosen. For many
    /// ranks, bytes have double weight instead.
    ///
    /// # Errors
    /// [`Error::TooLarge`]; [`Error::Argument`] for a problem without transforms, an invalid
    /// encoding, tolerance or machine.
    pub fn new(problem: Problem) -> Result<Self, Error> {
        Self::with_layouts(problem, Layouts::Any)
    }

    /// The cheapest recipe with these layouts between input and output.
    ///
    /// # Errors
    /// The errors of [`Recipe::new`]; [`Error::Argument`] if there is none.
    pub fn with_layouts(problem: Problem, layouts: Layouts) -> Result<Self, Error> {
        problem.check()?;
        problem.check_systems()?;
        let search = Search::new(&problem, layouts, [false; 2]);
        let mut costs = Costs::new(&search);
        let cheapest = search.shortest_path(&mut costs, NetworkWeight::SOME)?;
        let (mut least, mut chosen) = (cheapest.network, Self::from_found(&problem, cheapest));
        if least <= 0.0 || problem.input.ranks() > volume::FEW {
            return Ok(chosen);
        }
        let close = chosen.predict().seconds * (1.0 + EQUAL);
        for weight in NetworkWeight::MORE {
            // Some weights exclude layouts and may find no path.
            let Ok(other) = search.shortest_path(&mut costs, weight) else { continue };
            let network = other.network;
            if network < least {
                let other = Self::from_found(&problem, other);
                if other.predict().seconds <= close {
                    (least, chosen) = (network, other);
                }
            }
        }
        Ok(chosen)
    }

    /// The layouts in which it is cheapest to take physical data of a problem, and to produce
    /// spectral data: the layouts before the first transform and after the last one, on all ranks.
    /// Each side that is not `anywhere` stays as it is. The problem's own layouts are considered,
    /// too.
    ///
    /// # Errors
    /// The errors of [`Recipe::with_layouts`].
    pub fn transposed_layouts(
        problem: &Problem,
        layouts: Layouts,
        anywhere: [bool; 2],
    ) -> Result<[Layout; 2], Error> {
        problem.check()?;
        let search = Search::new(problem, layouts, anywhere);
        let found = search.shortest_path(&mut Costs::new(&search), NetworkWeight::SOME);
        // If no layout has whole lines, report that for the given output.
        let Found { nodes, steps, .. } =
            found.map_err(|error| problem.check_systems().err().unwrap_or(error))?;
        let first = usize::from(matches!(steps.first(), Some(Step::Reshape { .. })));
        let layout = |number: usize| nodes[number].layout.uncalled();
        let [input, output] = anywhere;
        Ok([
            if input { layout(first) } else { problem.input.clone() },
            if output { layout(nodes.len() - 1) } else { problem.output.clone() },
        ])
    }

    fn from_found(problem: &Problem, found: Found) -> Self {
        Self::from_parts(problem.clone(), found.nodes, found.steps)
    }
}
