//! The choice of a recipe: the cheapest path through the search's graph, and its close competitors.

use super::search::{Costs, Found, NetworkWeight, Search};
use super::{Family, volume};
use crate::base::Error;
use crate::problem::Problem;
use crate::recipe::Recipe;

/// The share by which times may differ that the model cannot tell apart.
const EQUAL: f64 = 0.05;

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
        problem.check()?;
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

    fn found(problem: &Problem, found: Found) -> Result<Self, Error> {
        let Found { nodes, steps, .. } = found;
        Ok(Self::from_parts(problem.clone(), nodes, steps))
    }
}
