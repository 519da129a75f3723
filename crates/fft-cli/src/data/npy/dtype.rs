//! The types of elements in memory, and in files that are written.

use std::alloc::Layout;
use std::fmt;

/// The type of an element, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dtype {
    F32,
    F64,
    /// `<c8`: two `F32`.
    C64,
    /// `<c16`: two `F64`.
    C128,
}

impl Dtype {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 4] = [Self::F32, Self::F64, Self::C64, Self::C128];

    /// NumPy's name for it, as in headers.
    pub(crate) const fn descr(self) -> &'static str {
        match self {
            Self::F32 => "<f4",
            Self::F64 => "<f8",
            Self::C64 => "<c8",
            Self::C128 => "<c16",
        }
    }

    pub(crate) const fn is_complex(self) -> bool {
        matches!(self, Self::C64 | Self::C128)
    }

    /// The size and alignment of an element in memory.
    pub(super) const fn layout(self) -> Layout {
        match self {
            Self::F32 => Layout::new::<f32>(),
            Self::F64 => Layout::new::<f64>(),
            Self::C64 => Layout::new::<[f32; 2]>(),
            Self::C128 => Layout::new::<[f64; 2]>(),
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.descr())
    }
}
