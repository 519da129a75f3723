//! Parsing of printed recipes.

use std::cmp::Reverse;

use super::candidates::Layouts;
use super::search::{Search, State};
use crate::base::Error;
use crate::codec::Wire;
use crate::geometry::layout::axis_names;
use crate::problem::{Exchange, Problem, TransportOptions};
use crate::recipe::Recipe;

enum Word<'t> {
    Exchange(&'t str, Exchange, Wire),
    Transform(usize),
    Scale,
}

/// Steps and their texts.
type Words<'t> = Vec<(&'t str, Word<'t>)>;

impl Recipe {
    /// Parses a printed recipe for an equal problem. The text determines the exchange, the encoding
    /// and the chunks, by default [`TransportOptions::CHUNK`] bytes.
    ///
    /// ```
    /// use fft_core::*;
    /// let grid = DynGrid::new([32, 32, 32])?;
    /// let bricks = Layout::even(grid, ProcGrid::cubic(grid, 4), 4);
    /// let problem = Problem::new([Kind::C2C; 3], true, Precision::F64, bricks.clone(), bricks)?;
    /// let recipe = Recipe::new(problem.clone())?;
    /// assert_eq!(Recipe::exact(problem.clone(), &recipe.to_string())?, recipe);
    /// // This transform is along an axis that is not whole.
    /// let wrong = recipe.to_string().replacen("(fft z)", "(fft x)", 1);
    /// assert!(Recipe::exact(problem, &wrong).is_err());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Recipe::new`]; [`Error::Argument`] for an invalid text, another problem, or
    /// a step that cannot follow.
    pub fn exact(mut problem: Problem, text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let (header, words) = parse(text, problem.kinds.len())?;
        let mut exchanges = words.iter().filter_map(|(_, word)| match word {
            Word::Exchange(_, exchange, wire) => Some((*exchange, *wire)),
            _ => None,
        });
        if let Some((exchange, wire)) = exchanges.next() {
            problem.options.exchange = exchange;
            if wire != problem.wire() {
                problem.options.wire = wire;
            }
        }
        problem.options.chunk = match header.split(' ').find_map(|word| word.strip_prefix("chunk="))
        {
            None => TransportOptions::CHUNK,
            Some(bytes) => match bytes.parse() {
                Ok(bytes) => bytes,
                Err(_) => return wrong(text, "chunk", bytes, "a number of bytes".into()),
            },
        };
        problem.check()?;
        problem.check_systems()?;
        let search = Search::new(&problem, Layouts::Any, [false; 2]);
        let path = search.follow(text, words)?;
        let (nodes, steps) = search.recipe(&path);
        let (last, end) = (path[path.len() - 1], &nodes[nodes.len() - 1].layout);
        // A cut with the same bricks as the output counts as the output.
        if !search.is_done(last) || *end != problem.output {
            let expected = format!("the output {}, all axes done", problem.output);
            return wrong(text, "end", text, expected);
        }
        let recipe = Self::from_parts(problem, nodes, steps);
        match recipe.to_string() {
            same if same == text => Ok(recipe),
            other => wrong(text, "problem", header, format!("that of {other}")),
        }
    }
}

fn wrong<V>(text: &str, what: &str, found: &str, expected: String) -> Result<V, Error> {
    let of = if found == text { "the recipe".into() } else { format!("the recipe {text}") };
    Err(Error::argument(format!("{what} of {of}"), found, expected))
}

impl Search<'_> {
    /// The states of a path with these steps.
    fn follow(&self, text: &str, words: Words<'_>) -> Result<Vec<State>, Error> {
        let mut path = vec![Self::start()];
        let is_exchange = |(_, word): &&(&str, Word<'_>)| matches!(word, Word::Exchange(..));
        let mut left = words.iter().filter(is_exchange).count();
        for (step, word) in words {
            let here = path[path.len() - 1];
            let there = match word {
                Word::Scale => continue,
                Word::Exchange(name, ..) => {
                    left -= 1;
                    self.named(name, here, left == 0)
                }
                Word::Transform(axis) => self.may_transform(axis, here).then(|| {
                    let Reverse(done) = here.done;
                    State { done: Reverse(done | 1 << axis), ..here }
                }),
            };
            match there {
                Some(there) => path.push(there),
                None => return wrong(text, "step", step, "one that can come there".into()),
            }
        }
        Ok(path)
    }

    /// The state after a reshape to the layout with this name.
    fn named(&self, name: &str, here: State, is_last: bool) -> Option<State> {
        // The last reshape leads to the input only if no other layout has this name.
        let first = usize::from(is_last);
        let all = (first..self.candidates.all.len()).chain(0..first);
        let mut states = all.map(|candidate| State { candidate, ..here });
        // With peer reads, orders follow from the steps; the caller compares the whole text.
        let known = |name: &str| {
            if self.problem().fetches() {
                name.trim_end_matches(char::is_alphabetic).to_string()
            } else {
                name.to_string()
            }
        };
        let name = known(name);
        states
            .find(|state| *state != here && self.name(*state).is_some_and(|it| known(&it) == name))
    }
}

/// The text before the steps, and the steps with their texts.
fn parse(text: &str, axes: usize) -> Result<(&str, Words<'_>), Error> {
    let Some((header, steps)) = split(text) else {
        return wrong(text, "shape", text, "(problem layout (step) (step) ...)".into());
    };
    let parsed = steps.into_iter().map(|step| match read(step, axes) {
        Ok(word) => Ok((step, word)),
        Err(expected) => wrong(text, "step", step, expected),
    });
    Ok((header, parsed.collect::<Result<_, Error>>()?))
}

/// The text before the steps, and the steps without parentheses.
fn split(text: &str) -> Option<(&str, Vec<&str>)> {
    let inner = text.strip_prefix('(')?.strip_suffix(')')?;
    let Some(first) = inner.find(" (") else { return Some((inner, Vec::new())) };
    let (header, steps) = inner.split_at(first);
    let steps = steps.strip_prefix(" (")?.strip_suffix(')')?;
    Some((header, steps.split(") (").collect()))
}

/// Parses one step; the error is the expected form.
fn read(step: &str, axes: usize) -> Result<Word<'_>, String> {
    let words: Vec<_> = step.split(' ').collect();
    match words[..] {
        ["scale", _] => Ok(Word::Scale),
        ["exchange", layout, exchange, wire] => {
            let exchange = exchange.parse().map_err(|error: Error| error.to_string())?;
            let wire = wire.parse().map_err(|error: Error| error.to_string())?;
            Ok(Word::Exchange(layout, exchange, wire))
        }
        [_, axis] => {
            let names = axis_names(axes);
            let found = names.iter().position(|name| axis == name.to_string());
            found
                .map(Word::Transform)
                .ok_or_else(|| format!("an axis among {}", names.iter().collect::<String>().trim()))
        }
        _ => Err("exchange LAYOUT EXCHANGE WIRE, a transform and its axis, or scale".into()),
    }
}
