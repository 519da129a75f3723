//! Options as text: one table of names for printing, parsing and listing.

use std::fmt;
use std::ops::RangeInclusive;

use super::error::Error;

/// The name of a value. A number may follow it, as in `bits:16`.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) text: &'static str,
    pub(crate) number: Option<Number>,
}

/// A number that is part of a value, and its range.
#[derive(Clone, Debug)]
pub(crate) struct Number {
    pub(crate) value: u8,
    pub(crate) range: RangeInclusive<u8>,
}

impl Name {
    pub(crate) fn plain(text: &'static str) -> Self {
        Self { text, number: None }
    }

    pub(crate) fn numbered(text: &'static str, value: u8, range: RangeInclusive<u8>) -> Self {
        Self { text, number: Some(Number { value, range }) }
    }

    /// The names of all numbers, for example `bits:2 to bits:52`.
    pub(crate) fn listed(&self) -> String {
        match &self.number {
            None => self.text.into(),
            Some(Number { range, .. }) => {
                let text = self.text;
                format!("{text}{} to {text}{}", range.start(), range.end())
            }
        }
    }
}

/// Values that are chosen by name. [`text!`](crate::base::named::text) makes
/// [`Display`](fmt::Display) and [`FromStr`](std::str::FromStr) from this.
pub(crate) trait Named: Copy + 'static {
    /// The kind of thing that is chosen, for error texts.
    const WHAT: &'static str;

    /// All values, or for values with a number at least one of each.
    fn all() -> &'static [Self];

    fn full_name(self) -> Name;

    /// The same with another number.
    fn with_number(self, _number: u8) -> Self {
        self
    }
}

pub(crate) fn print<V: Named>(value: V, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Name { text, number } = value.full_name();
    match number {
        None => f.pad(text),
        Some(Number { value, .. }) => f.pad(&format!("{text}{value}")),
    }
}

/// The value that prints as this text.
pub(crate) fn parse<V: Named>(text: &str) -> Result<V, Error> {
    for known in V::all() {
        let name = known.full_name();
        let Some(rest) = text.strip_prefix(name.text) else { continue };
        match name.number {
            None if rest.is_empty() => return Ok(*known),
            None => {}
            Some(Number { range, .. }) => match rest.parse() {
                Ok(number) if range.contains(&number) => return Ok(known.with_number(number)),
                _ => {}
            },
        }
    }
    Err(Error::argument(V::WHAT, text, format!("one of {}", patterns::<V>().join(", "))))
}

/// All names; those with a number as a range.
pub(crate) fn patterns<V: Named>() -> Vec<String> {
    let mut names: Vec<_> = V::all().iter().map(|value| value.full_name().listed()).collect();
    names.dedup();
    names
}

/// Prints and parses a [`Named`] type.
macro_rules! text {
    ($type:ty) => {
        impl $type {
            /// The names of all values; those with a number as a range, as in `bits:2 to bits:52`.
            pub fn patterns() -> Vec<String> {
                $crate::base::named::patterns::<Self>()
            }
        }

        /// Writes its name.
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::base::named::print(*self, f)
            }
        }

        /// Parses a name.
        impl std::str::FromStr for $type {
            type Err = $crate::base::Error;

            fn from_str(text: &str) -> Result<Self, $crate::base::Error> {
                $crate::base::named::parse(text)
            }
        }
    };
}

/// Gives the variants of an enum their names.
macro_rules! names {
    ($type:ident, $what:literal, { $($variant:ident = $name:literal),+ $(,)? }) => {
        impl $type {
            /// All values.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Their names.
            pub const NAMES: [&'static str; Self::ALL.len()] = [$($name),+];

            /// The name, as it is printed and parsed.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }

        impl $crate::base::named::Named for $type {
            const WHAT: &'static str = $what;

            fn all() -> &'static [Self] {
                &Self::ALL
            }

            fn full_name(self) -> $crate::base::named::Name {
                $crate::base::named::Name::plain(self.name())
            }
        }

        $crate::base::named::text!($type);
    };
}

pub(crate) use {names, text};
