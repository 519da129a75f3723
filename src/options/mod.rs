//! The options of a plan: one table, from which every interface takes names, defaults and texts.
//!
//! `table.rs` declares the options. `declare.rs` turns the declaration into the struct [`Options`],
//! its defaults, the setters of drafts, and [`Options::TABLE`], by which options are read, set and
//! compared as text. `value.rs` says how a value is written. The C interface, Fortran, Python and
//! `fft-cli` use [`Options::set`] and the table, so that they have the same options.

mod declare;
mod device_choice;
mod machine_choice;
mod placement;
mod problem;
mod resolved;
mod row;
mod settings;
mod table;
mod tuning;
mod value;

pub(crate) use declare::setters;
pub use device_choice::DeviceChoice;
pub use machine_choice::MachineChoice;
pub use placement::Placement;
pub use problem::GlobalArrays;
pub use row::{OptionInfo, OptionRow, Scope};
pub use settings::Settings;
pub use table::Options;
pub(crate) use table::options_table;
pub use tuning::Tuning;
pub use value::Form;
