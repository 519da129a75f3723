//! Values of options as text.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use fft_core::{
    Ends, Error, Exchange, GpuTransport, Kind, Layouts, MAX_AXES, Memory, PerAxis, Precision,
    Scale, Tolerance, Wire,
};

use super::device_choice::DeviceChoice;
use super::machine_choice::MachineChoice;
use super::tuning::Tuning;

/// The text of an option that has no value of its own: the library decides.
pub(super) const DEFAULT: &str = "default";

/// How the value of an option is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Count,
    /// A number, after which `strict` may follow: `1e-6 strict`.
    Tolerance,
    /// A text with a syntax of its own.
    Text,
    /// A name, or the path of a file.
    Path,
    /// One of these names.
    Names(&'static [&'static str]),
    /// One of these names, or a whole number.
    NamesOrCount(&'static [&'static str]),
    /// A length for each axis: `64,32`, `64x32`, or `64^2`.
    Lengths,
    /// The axes, slowest first: `1,0`.
    Order,
    /// A kind for each axis: `c2c,r2c`.
    Kinds,
}

/// A value that has a text, which parses to it again; a machine that was given prints as a
/// checksum.
pub(super) trait OptionValue: Sized {
    /// How it is written.
    const FORM: Form;

    /// The value that prints as this text, for the option of this name.
    fn parse(name: &str, text: &str) -> Result<Self, Error>;

    /// The text.
    fn text(&self) -> String;
}

/// Values that implement `FromStr` and `Display`.
macro_rules! by_display {
    ($($type:ty: $form:expr;)*) => {$(
        impl OptionValue for $type {
            const FORM: Form = $form;

            fn parse(name: &str, text: &str) -> Result<Self, Error> {
                parse_as(name, text)
            }

            fn text(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

by_display! {
    Exchange: Form::Text;
    Wire: Form::Text;
    Tolerance: Form::Tolerance;
    Tuning: Form::Text;
    MachineChoice: Form::Path;
    DeviceChoice: Form::NamesOrCount(&["host", "cuda"]);
    Layouts: Form::Names(&Layouts::NAMES);
    Memory: Form::Names(&Memory::NAMES);
    GpuTransport: Form::Names(&GpuTransport::NAMES);
    Scale: Form::Names(&Scale::NAMES);
    Precision: Form::Names(&Precision::NAMES);
}

/// As `FromStr`, but errors name the option.
fn parse_as<V: FromStr<Err = Error> + Display>(name: &str, text: &str) -> Result<V, Error> {
    text.parse().map_err(|error: Error| error.of(name))
}

/// Values whose errors describe the expected form.
macro_rules! by_parsing {
    ($($type:ty: $form:expr, $expected:literal;)*) => {$(
        impl OptionValue for $type {
            const FORM: Form = $form;

            fn parse(name: &str, text: &str) -> Result<Self, Error> {
                text.parse().map_err(|_| Error::argument(name, text, $expected))
            }

            fn text(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

by_parsing! {
    bool: Form::Flag, "true or false";
    usize: Form::Count, "a whole number, 0 or more";
}

impl OptionValue for PathBuf {
    const FORM: Form = Form::Path;

    fn parse(name: &str, text: &str) -> Result<Self, Error> {
        match text {
            "" => Err(Error::argument(name, "nothing", "the path of a file")),
            _ => Ok(text.into()),
        }
    }

    fn text(&self) -> String {
        self.display().to_string()
    }
}

impl<V: OptionValue> OptionValue for Option<V> {
    const FORM: Form = V::FORM;

    fn parse(name: &str, text: &str) -> Result<Self, Error> {
        V::parse(name, text).map(Some)
    }

    fn text(&self) -> String {
        self.as_ref().map_or_else(|| DEFAULT.into(), V::text)
    }
}

/// Lengths, and orders of axes, which are written alike.
impl OptionValue for PerAxis<usize> {
    const FORM: Form = Form::Lengths;

    fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let wrong = || Error::argument(name, text, "a whole number for each axis, as in 64,32");
        let number = |part: &str| part.trim().parse::<usize>().map_err(|_| wrong());
        let numbers = match text.split_once('^') {
            Some((base, power)) => vec![number(base)?; number(power)?.min(MAX_AXES + 1)],
            None => text.split([',', 'x']).map(number).collect::<Result<_, _>>()?,
        };
        per_axis(name, &numbers)
    }

    fn text(&self) -> String {
        self.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
    }
}

impl OptionValue for PerAxis<Kind> {
    const FORM: Form = Form::Kinds;

    fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let kind = |part: &str| match part.trim().parse::<Ends>() {
            Ok(ends) => Ok(ends.kind()),
            Err(_) => parse_as::<Kind>(name, part.trim()),
        };
        let kinds = text.split(',').map(kind).collect::<Result<Vec<_>, _>>()?;
        per_axis(name, &kinds)
    }

    fn text(&self) -> String {
        self.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(",")
    }
}

fn per_axis<V: Copy>(name: &str, values: &[V]) -> Result<PerAxis<V>, Error> {
    match values.len() {
        axes @ 1..=MAX_AXES => Ok(PerAxis::from_fn(axes, |axis| values[axis])),
        axes => Err(Error::argument(format!("axes of {name}"), axes, format!("1 to {MAX_AXES}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machines;
    use crate::options::Options;

    /// The prose names the values, for readers of the help and the documents.
    #[test]
    fn meanings_name_every_value() {
        let meaning = |name: &str| {
            let row = Options::TABLE.iter().find(|row| row.name == name).unwrap();
            row.meaning()
        };
        let check = |name: &str, value: &str| {
            // Names of kinds and numbered values are given as ranges.
            let stem = value.trim_end_matches(|letter: char| letter.is_ascii_digit());
            assert!(meaning(name).contains(stem), "{name} does not tell of {value}");
        };
        Kind::ALL.iter().for_each(|kind| check("kinds", kind.name()));
        let conditions = Ends::NAMES.map(|ends| ends.trim_end_matches("@faces"));
        conditions.iter().for_each(|ends| check("kinds", ends));
        Exchange::ALL.iter().for_each(|exchange| check("exchange", &exchange.to_string()));
        Wire::ALL.iter().for_each(|wire| check("wire", &wire.to_string()));
        machines::NAMES.iter().for_each(|name| check("machine", name));
        Layouts::NAMES.iter().for_each(|name| check("layouts", name));
        Memory::NAMES.iter().for_each(|name| check("memory", name));
        Scale::NAMES.iter().for_each(|name| check("forward_scale", name));
    }
}
