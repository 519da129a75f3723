//! Options by name: what `thriffty_options_set` and the other calls do.

use serde_json::{Value, json};
use thriffty::planning::{self, Form, MAX_AXES, OptionRow, Placement};
use thriffty::{Error, Kind};

use crate::values::Options;

impl Options {
    /// Sets the option of this name.
    ///
    /// # Errors
    /// [`Error::Argument`] for a name or a value that is not known.
    pub(crate) fn set(&mut self, name: &str, text: &str) -> Result<(), Error> {
        match find(name)? {
            Row::Plan(row) => row.set(&mut self.plan, text),
            Row::Placement(row) => row.set(&mut self.placement, text),
        }
    }

    /// Sets the option of this name, whose values for each axis are in the order of Fortran.
    ///
    /// # Errors
    /// As [`Options::set`].
    pub(crate) fn set_reversed(&mut self, name: &str, text: &str) -> Result<(), Error> {
        let form = match find(name)? {
            Row::Plan(row) => row.form,
            Row::Placement(row) => row.form,
        };
        self.set(name, &in_c_order(name, form, text)?)
    }

    /// The value of the option of this name.
    ///
    /// # Errors
    /// [`Error::Argument`] for a name that is not known.
    pub(crate) fn get(&self, name: &str) -> Result<String, Error> {
        Ok(match find(name)? {
            Row::Plan(row) => row.text(&self.plan),
            Row::Placement(row) => row.text(&self.placement),
        })
    }
}

/// A row of either table.
enum Row {
    Plan(&'static OptionRow<planning::Options>),
    Placement(&'static OptionRow<Placement>),
}

fn find(name: &str) -> Result<Row, Error> {
    if let Some(row) = planning::Options::TABLE.iter().find(|row| row.name == name) {
        return Ok(Row::Plan(row));
    }
    if let Some(row) = Placement::TABLE.iter().find(|row| row.name == name) {
        return Ok(Row::Placement(row));
    }
    let names = planning::Options::TABLE.iter().map(|row| row.name);
    let names: Vec<_> = names.chain(Placement::TABLE.iter().map(|row| row.name)).collect();
    Err(Error::argument("option", name, format!("one of {}", names.join(", "))))
}

/// Values for each axis in the order of C, where axes are counted from 0, of those in the order of
/// Fortran, where they are counted from 1.
fn in_c_order(name: &str, form: Form, text: &str) -> Result<String, Error> {
    if text == "default" || !matches!(form, Form::Lengths | Form::Kinds | Form::Order) {
        return Ok(text.into());
    }
    let values = text.split([',', 'x']).rev();
    let mut values: Vec<String> = values.map(|value| value.trim().to_owned()).collect();
    if form == Form::Order {
        let axes = values.len();
        for value in &mut values {
            let axis = value.parse().ok().filter(|axis| (1..=axes.min(MAX_AXES)).contains(axis));
            let expected = format!("the axes from 1 to {axes}, fastest first");
            let axis = axis.ok_or_else(|| Error::argument(name, text, expected))?;
            *value = (axes - axis).to_string();
        }
    }
    Ok(values.join(","))
}

/// All options, for programs that make their own interface of them.
pub(crate) fn describe() -> String {
    let plan = planning::Options::TABLE.iter().map(described);
    let placement = Placement::TABLE.iter().map(described);
    let rows: Vec<_> = plan.chain(placement).collect();
    json!(rows).to_string()
}

fn described<O: Default>(row: &OptionRow<O>) -> Value {
    let (form, names) = match row.form {
        Form::Flag => ("flag", Vec::new()),
        Form::Count => ("count", Vec::new()),
        Form::Names(names) => ("name", names.to_vec()),
        Form::Lengths => ("lengths", Vec::new()),
        Form::Order => ("order", Vec::new()),
        Form::Kinds => ("kinds", Kind::NAMES.to_vec()),
        _ => ("text", Vec::new()),
    };
    json!({
        "name": row.name,
        "form": form,
        "names": names,
        "scope": format!("{:?}", row.scope).to_lowercase(),
        "default": row.default_text(),
        "meaning": row.meaning(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_axes_are_turned_for_fortran() {
        let mut options = Options::default();
        for (name, fortran, c) in [
            ("zero_padded", "8, 16,32", "32,16,8"),
            ("modes", "8x16", "16,8"),
            ("modes", "8^3", "8,8,8"),
            ("kinds", "r2c,c2c", "c2c,r2c"),
            ("input_order", "1,2,3", "0,1,2"),
            ("input_order", "3,1,2", "1,2,0"),
            ("output_order", "default", "default"),
            ("batch", "3", "3"),
        ] {
            options.set_reversed(name, fortran).unwrap();
            assert_eq!(options.get(name).unwrap(), c, "{name} {fortran}");
        }
        for wrong in ["0,1", "1,3", "a,b", "1,2,3,4,6"] {
            assert!(options.set_reversed("input_order", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_option_has_a_meaning_and_a_default_that_can_be_set() {
        let mut options = Options::default();
        for row in serde_json::from_str::<Vec<Value>>(&describe()).unwrap() {
            let text = |field: &str| row[field].as_str().unwrap().to_owned();
            assert!(text("meaning").ends_with('.'), "{row}");
            options.set(&text("name"), &text("default")).unwrap();
            assert_eq!(options.get(&text("name")).unwrap(), text("default"));
        }
        let error = options.set("howmany", "3").unwrap_err().to_string();
        assert!(error.starts_with("option: found howmany, expected one of kinds, "), "{error}");
        assert!(error.ends_with("threads, device, transport"), "{error}");
    }
}
