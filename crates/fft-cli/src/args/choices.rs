//! The options of a plan: an argument for each row of the library's table.

use std::marker::PhantomData;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser, ValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use thriffty::Error;
use thriffty::planning::{Form, OptionInfo, Options, Placement, Settings};

/// The options that a command takes.
pub(crate) trait Offer: Clone + std::fmt::Debug + Send + Sync + 'static {
    /// Whether it takes the option of this name.
    fn takes(name: &str) -> bool;
}

/// Every option of a transform in memory.
#[derive(Clone, Debug)]
pub(crate) struct Every;

impl Offer for Every {
    fn takes(_: &str) -> bool {
        true
    }
}

/// The options of a plan, as far as a command offers them.
#[derive(Clone, Debug)]
pub(crate) struct Choices<O = Every> {
    pub(crate) options: Options,
    pub(crate) placement: Placement,
    /// The names of options that the command line sets.
    given: Vec<&'static str>,
    offer: PhantomData<O>,
}

impl<O> Choices<O> {
    /// Whether the command line sets any of these options.
    pub(crate) fn are_given(&self, names: &[&str]) -> bool {
        self.given.iter().any(|name| names.contains(name))
    }
}

impl<O: Offer> Args for Choices<O> {
    fn augment_args(mut command: Command) -> Command {
        for option in Settings::all().filter(|option| O::takes(option.name)) {
            command = command.arg(argument(option));
        }
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<O: Offer> FromArgMatches for Choices<O> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (mut settings, mut given) = (Settings::default(), Vec::new());
        for name in Settings::all().map(|option| option.name).filter(|name| O::takes(name)) {
            let is_given = matches.value_source(name) == Some(ValueSource::CommandLine);
            if let Some(text) = matches.get_one::<String>(name).filter(|_| is_given) {
                settings.set(name, text).map_err(|error| {
                    clap::Error::raw(clap::error::ErrorKind::ValueValidation, error.to_string())
                })?;
                given.push(name);
            }
        }
        let Settings { options, placement } = settings;
        Ok(Self { options, placement, given, offer: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The argument of an option.
fn argument(option: &'static OptionInfo) -> Arg {
    let mut argument = Arg::new(option.name)
        .long(option.name.replace('_', "-"))
        .help(option.meaning().replace('\n', " "))
        .value_parser(parser(option));
    if option.form == Form::Flag {
        return argument
            .value_name("BOOL")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true");
    }
    if option.default_text() != "default" {
        argument = argument.default_value(option.default_text());
    }
    argument.value_name(match option.form {
        Form::Count => "N",
        Form::Lengths => "SHAPE",
        Form::Order => "AXIS,...",
        Form::Kinds => "KIND,...",
        Form::Names(_) => "NAME",
        _ => "VALUE",
    })
}

/// Reads the value of an option, so that a wrong value is an error of the command line.
fn parser(option: &'static OptionInfo) -> ValueParser {
    if let Form::Names(names) = option.form {
        let mut values: Vec<_> = names.iter().map(|name| PossibleValue::new(*name)).collect();
        values.push(PossibleValue::new("default").hide(true));
        return PossibleValuesParser::new(values).into();
    }
    let check = |text: String| match Settings::default().set(option.name, &text) {
        Ok(()) => Ok(text),
        Err(Error::Argument { expected, .. }) => Err(format!("expected {expected}")),
        Err(other) => Err(other.to_string()),
    };
    clap::builder::StringValueParser::new().try_map(check).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arguments have the names and defaults of the table. Help shows no default for flags.
    #[test]
    fn every_option_of_the_library_is_an_argument() {
        let command = Choices::<Every>::augment_args(Command::new("bench"));
        let check = |name: &str, default: String| {
            let argument = command.get_arguments().find(|argument| argument.get_id() == name);
            let argument = argument.unwrap_or_else(|| panic!("no argument for {name}"));
            assert_eq!(argument.get_long(), Some(name.replace('_', "-").as_str()));
            let shown = argument.get_default_values().first();
            let shown = shown.map(|shown| shown.to_string_lossy().into_owned());
            let expected = (default != "default" && default != "false").then_some(default);
            assert_eq!(shown, expected, "{name}");
        };
        Settings::all().for_each(|option| check(option.name, option.default_text()));
    }

    #[test]
    fn what_is_given_is_set() {
        let command = Choices::<Every>::augment_args(Command::new("bench"));
        let words = ["bench", "--batch", "3", "--shared-arrays", "--kinds", "c2c,none"];
        let words = words.into_iter().chain(["--transposed-output=false", "--precision", "f32"]);
        let found = Choices::<Every>::from_arg_matches(&command.get_matches_from(words)).unwrap();
        let changed = Options::TABLE.iter().filter(|row| row.is_changed(&found.options));
        let changed: Vec<_> = changed.map(|row| row.name).collect();
        assert_eq!(changed, ["kinds", "batch", "shared_arrays"]);
        assert_eq!(found.placement.precision.to_string(), "f32");
    }
}
