//! Boundary conditions along an axis, and the transforms that fulfil them.

use super::kind::Kind;
use crate::base::named::names;

/// The boundary conditions along an axis: which of a value and its slope is 0 at its first and at
/// its last end, and where the points are.
///
/// At cells, the ends are half a spacing beyond the first and the last point. At faces, an end
/// where the slope is 0 is a point of the data; one where the value is 0 is not, and lies one
/// spacing beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ends {
    /// The first point follows the last: C2C, or R2C along the last such axis of real data.
    Periodic,
    /// No slope at either end, at cells: DCT-II.
    Neumann,
    /// 0 at both ends, at cells: DST-II.
    Dirichlet,
    /// No slope at the first end, 0 at the last, at cells: DCT-IV.
    NeumannDirichlet,
    /// 0 at the first end, no slope at the last, at cells: DST-IV.
    DirichletNeumann,
    /// No slope at either end, at faces: DCT-I.
    NeumannAtFaces,
    /// 0 at both ends, at faces: DST-I.
    DirichletAtFaces,
    /// No slope at the first end, 0 at the last, at faces: DCT-III.
    NeumannDirichletAtFaces,
    /// 0 at the first end, no slope at the last, at faces: DST-III.
    DirichletNeumannAtFaces,
    /// The ends are in the caller's coefficients of tridiagonal systems.
    Tridiagonal,
    /// The axis is left alone.
    None,
}

names!(Ends, "ends", {
    Periodic = "periodic",
    Neumann = "neumann",
    Dirichlet = "dirichlet",
    NeumannDirichlet = "neumann-dirichlet",
    DirichletNeumann = "dirichlet-neumann",
    NeumannAtFaces = "neumann@faces",
    DirichletAtFaces = "dirichlet@faces",
    NeumannDirichletAtFaces = "neumann-dirichlet@faces",
    DirichletNeumannAtFaces = "dirichlet-neumann@faces",
    Tridiagonal = "tridiagonal",
    None = "none",
});

impl Ends {
    /// Whether the slope is 0 at the first end and at the last, or there are no ends.
    pub fn slopes(self) -> [bool; 2] {
        match self {
            Self::Periodic | Self::Neumann | Self::NeumannAtFaces => [true, true],
            Self::Tridiagonal | Self::None => [true, true],
            Self::Dirichlet | Self::DirichletAtFaces => [false, false],
            Self::NeumannDirichlet | Self::NeumannDirichletAtFaces => [true, false],
            Self::DirichletNeumann | Self::DirichletNeumannAtFaces => [false, true],
        }
    }

    /// Whether the points are at faces.
    pub fn is_at_faces(self) -> bool {
        self.name().ends_with("@faces")
    }

    /// The transform whose waves fulfil them; for periodic ends C2C, with the last axis halved for
    /// real data.
    pub fn kind(self) -> Kind {
        match self {
            Self::Periodic => Kind::C2C,
            Self::Neumann => Kind::Dct2,
            Self::Dirichlet => Kind::Dst2,
            Self::NeumannDirichlet => Kind::Dct4,
            Self::DirichletNeumann => Kind::Dst4,
            Self::NeumannAtFaces => Kind::Dct1,
            Self::DirichletAtFaces => Kind::Dst1,
            Self::NeumannDirichletAtFaces => Kind::Dct3,
            Self::DirichletNeumannAtFaces => Kind::Dst3,
            Self::Tridiagonal => Kind::Tridiagonal,
            Self::None => Kind::None,
        }
    }
}
