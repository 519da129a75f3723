//! Data: the numbers that are transformed, arrays of them, and fields, which are arrays with their
//! brick.

mod array;
#[cfg(feature = "cuda")]
mod device_array;
#[cfg(feature = "cuda")]
mod device_field;
mod field;
mod indices;
mod part;
mod pool;
mod rank_arrays;
mod through_host;
mod transform;
#[cfg(feature = "ndarray")]
mod view;

pub use array::DynArray;
pub(crate) use array::{Bytes, BytesMut};
#[cfg(feature = "cuda")]
pub(crate) use device_array::DeviceArray;
#[cfg(feature = "cuda")]
pub(crate) use device_field::not_there;
pub use field::Field;
pub use part::{Device, Host, Location, Physical, Side, Spectral};
pub(crate) use part::{Part, Sizes};
pub(crate) use pool::Pool;
#[cfg(feature = "cuda")]
pub(crate) use pool::Pooled;
pub use rank_arrays::RankArrays;
pub use transform::{C2c, DynTransform, R2c, R2r, Transform};
