//! Options in the order of Fortran, and as JSON.

use serde_json::{Value, json};
use thriffty::planning::{Form, MAX_AXES, OptionInfo, Settings};
use thriffty::{Error, Kind};

/// Converts values for each axis from the order of Fortran, where axes are counted from 1, to the
/// order of C, where they are counted from 0.
///
/// # Errors
/// [`Error::Argument`] for an unknown name, and for an order without a meaning.
pub(crate) fn in_c_order(name: &str, text: &str) -> Result<String, Error> {
    reversed(name, text, 1)
}

/// Converts values for each axis from the order of C to the order of Fortran.
///
/// # Errors
/// As [`in_c_order`].
pub(crate) fn in_fortran_order(name: &str, text: &str) -> Result<String, Error> {
    reversed(name, text, 0)
}

/// Values for each axis in reverse. Axes that are counted from 1 are then counted from 0, and the
/// other way round.
fn reversed(name: &str, text: &str, first: usize) -> Result<String, Error> {
    let form = Settings::find(name)?.form;
    if text == "default" || !matches!(form, Form::Lengths | Form::Kinds | Form::Order) {
        return Ok(text.into());
    }
    let values = text.split([',', 'x']).rev();
    let mut values: Vec<String> = values.map(|value| value.trim().to_owned()).collect();
    if form == Form::Order {
        let axes = values.len();
        let known = first..first + axes.min(MAX_AXES);
        for value in &mut values {
            let axis = value.parse().ok().filter(|axis| known.contains(axis));
            let expected = || format!("the axes from {first} to {}", first + axes - 1);
            let axis = axis.ok_or_else(|| Error::argument(name, text, expected()))?;
            *value = (axes - axis).to_string();
        }
    }
    Ok(values.join(","))
}

/// All options, for programs that make their own interface from them.
pub(crate) fn describe() -> String {
    json!(Settings::all().map(described).collect::<Vec<_>>()).to_string()
}

fn described(option: &OptionInfo) -> Value {
    let (form, names) = match option.form {
        Form::Flag => ("flag", Vec::new()),
        Form::Count => ("count", Vec::new()),
        Form::Tolerance => ("tolerance", Vec::new()),
        Form::Path => ("path", Vec::new()),
        Form::Names(names) => ("name", names.to_vec()),
        Form::NamesOrCount(names) => ("name or count", names.to_vec()),
        Form::Lengths => ("lengths", Vec::new()),
        Form::Order => ("order", Vec::new()),
        Form::Kinds => ("kinds", Kind::NAMES.to_vec()),
        _ => ("text", Vec::new()),
    };
    json!({
        "name": option.name,
        "form": form,
        "names": names,
        "scope": format!("{:?}", option.scope).to_lowercase(),
        "default": option.default_text(),
        "meaning": option.meaning(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_axes_are_turned_for_fortran() {
        let mut settings = Settings::default();
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
            settings.set(name, &in_c_order(name, fortran).unwrap()).unwrap();
            assert_eq!(settings.get(name).unwrap(), c, "{name} {fortran}");
            let back = in_fortran_order(name, c).unwrap();
            assert_eq!(in_c_order(name, &back).unwrap(), c, "{name} {fortran}");
        }
        for wrong in ["0,1", "1,3", "a,b", "1,2,3,4,6"] {
            assert!(in_c_order("input_order", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_option_has_a_meaning_and_a_default_that_can_be_set() {
        let mut settings = Settings::default();
        for row in serde_json::from_str::<Vec<Value>>(&describe()).unwrap() {
            let text = |field: &str| row[field].as_str().unwrap().to_owned();
            assert!(text("meaning").ends_with('.'), "{row}");
            settings.set(&text("name"), &text("default")).unwrap();
            assert_eq!(settings.get(&text("name")).unwrap(), text("default"));
        }
        let error = settings.set("howmany", "3").unwrap_err().to_string();
        assert!(error.starts_with("option: found howmany, expected one of kinds, "), "{error}");
        assert!(error.ends_with("threads, device, transport"), "{error}");
    }
}
