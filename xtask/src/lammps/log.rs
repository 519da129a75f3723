//! What LAMMPS prints and dumps.

use std::collections::BTreeMap;

/// A number as printed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Printed(String);

impl Printed {
    /// Whether both are the same number, except for the last digit of the shorter text.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        let decimals = |text: &str| text.split_once('.').map_or(0, |(_, part)| part.len());
        let places = decimals(&self.0).min(decimals(&other.0));
        let unit = 10f64.powi(-i32::try_from(places).unwrap_or(0));
        match (self.0.parse::<f64>(), other.0.parse::<f64>()) {
            (Ok(a), Ok(b)) => (a - b).abs() < 9.5 * unit,
            _ => self == other,
        }
    }
}

/// The output of a simulation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Log {
    /// The columns of each step with output, but CPU time.
    pub(super) thermo: Vec<BTreeMap<String, Printed>>,
    /// Seconds in k-space, on average over ranks.
    pub(super) kspace: f64,
    /// Seconds of the whole loop.
    pub(super) total: f64,
}

impl Log {
    /// Reads output of `thermo_style multi` and the table of times.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut log = Self::default();
        for line in text.lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            match words[..] {
                [dashes, "Step", step, ..] if dashes.starts_with("---") => {
                    log.thermo.push(BTreeMap::from([("Step".into(), Printed(step.into()))]));
                }
                ["Loop", "time", "of", seconds, ..] => log.total = number(seconds)?,
                ["Kspace", "|", _, "|", mean, "|", ..] => log.kspace = number(mean)?,
                _ if line.contains(" = ") && log.kspace == 0.0 && log.total == 0.0 => {
                    let Some(step) = log.thermo.last_mut() else { continue };
                    for [name, equals, value] in words.as_chunks::<3>().0 {
                        if *equals == "=" {
                            step.insert((*name).into(), Printed((*value).into()));
                        }
                    }
                }
                _ => {}
            }
        }
        let is_complete = !log.thermo.is_empty() && log.kspace > 0.0;
        if is_complete { Ok(log) } else { Err("LAMMPS printed no steps or no times".into()) }
    }

    /// The first column that differs in more than its last digit.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        if self.thermo.len() != other.thermo.len() {
            return Some(format!("{} and {} steps", self.thermo.len(), other.thermo.len()));
        }
        let steps = self.thermo.iter().zip(&other.thermo).enumerate();
        steps.flat_map(|(step, (a, b))| a.iter().map(move |column| (step, column, b))).find_map(
            |(step, (name, value), others)| match others.get(name) {
                Some(found) if value.agrees(found) => None,
                found => Some(format!("output {step}: {name} is {value:?} and {found:?}")),
            },
        )
    }

    /// A column, first and last.
    pub(super) fn ends(&self, column: &str) -> Result<[f64; 2], String> {
        let ends = [self.thermo.first(), self.thermo.last()];
        let value = |step: Option<&BTreeMap<String, Printed>>| {
            let found = step.and_then(|step| step.get(column));
            number(&found.ok_or_else(|| format!("no column {column}"))?.0)
        };
        Ok([value(ends[0])?, value(ends[1])?])
    }
}

fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("not a number: {text}"))
}

/// Forces of a dump, sorted by atoms: the lines after `ITEM: ATOMS`.
pub(super) fn forces(dump: &str) -> Result<Vec<f64>, String> {
    let lines = dump.lines().skip_while(|line| !line.starts_with("ITEM: ATOMS")).skip(1);
    let lines = lines.take_while(|line| !line.starts_with("ITEM:"));
    lines.flat_map(|line| line.split_whitespace().skip(1)).map(number).collect()
}

/// The l2 norm of the difference divided by the l2 norm of the first.
pub(super) fn relative_error(exact: &[f64], found: &[f64]) -> f64 {
    let norm = |all: &mut dyn Iterator<Item = f64>| all.map(|x| x * x).sum::<f64>().sqrt();
    let off = norm(&mut exact.iter().zip(found).map(|(a, b)| a - b));
    if exact.len() == found.len() { off / norm(&mut exact.iter().copied()) } else { f64::NAN }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
------------ Step              0 ----- CPU =            0 (sec) -------------
TotEng   =    -25356.2064 KinEng   =     21444.8313 Temp     =       299.0397 
PotEng   =    -46801.0377 E_bond   =      2537.9940 
------------ Step             50 ----- CPU =     6.511602 (sec) -------------
TotEng   =    -25330.0316 KinEng   =     21501.0001 Temp     =       299.8230 
PotEng   =    -46831.0317 E_bond   =      2471.7033 
Loop time of 12.7 on 1 procs for 100 steps with 32000 atoms
Pair    | 9.1        | 9.1        | 9.1        |   0.0 | 71.65
Kspace  | 0.9        | 1.25       | 1.5        |   0.0 |  9.84
";

    #[test]
    fn output_is_read() {
        let log = Log::parse(TEXT).unwrap();
        assert_eq!((log.thermo.len(), log.thermo[1].len()), (2, 6));
        assert_eq!((log.kspace, log.total), (1.25, 12.7));
        assert_eq!(log.ends("TotEng"), Ok([-25356.2064, -25330.0316]));
        assert!(Log::parse("ERROR").is_err() && log.ends("Enthalpy").is_err());
    }

    #[test]
    fn numbers_agree_but_for_the_last_digit() {
        let log = Log::parse(TEXT).unwrap();
        let other = |from: &str, to: &str| Log::parse(&TEXT.replace(from, to)).unwrap();
        assert_eq!(log.difference(&other("21501.0001", "21500.9999")), None);
        assert_eq!(log.difference(&other("21501.0001", "21501.0009")), None);
        assert!(log.difference(&other("21501.0001", "21501.0021")).is_some());
        assert!(log.difference(&other("E_bond", "E_angle")).is_some());
        assert!(log.difference(&other("50 -----", "60 -----")).is_some());
    }

    #[test]
    fn forces_are_compared() {
        let dump = "ITEM: TIMESTEP\n0\nITEM: ATOMS id fx fy fz\n1 3 0 0\n2 0 4 0\n";
        let exact = forces(dump).unwrap();
        assert_eq!(exact, [3.0, 0.0, 0.0, 0.0, 4.0, 0.0]);
        let found = forces(&dump.replace("2 0 4 0", "2 0 4 0.5")).unwrap();
        assert_eq!(relative_error(&exact, &found), 0.1);
        assert!(relative_error(&exact, &found[..3]).is_nan());
    }
}
