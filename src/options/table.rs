//! The declaration of the options.

use super::declare::define_options;
use super::machine_choice::MachineChoice;
use super::tuning::Tuning;
use super::value::Form;
use fft_core::{DynBrick, Exchange, Kind, Layouts, Memory, PerAxis, Scale, Tolerance, Wire};
use std::path::PathBuf;

/// Calls a macro with the declaration of all options.
///
/// The comments are the documentation in every language, on the command line and in
/// `docs/options.md`, so that they name no type. A row has the type of the field, its default, and
/// the argument from which a draft's setter makes the value; `D` is the draft's number of axes.
macro_rules! options_table {
    ($callback:ident) => {
        $callback! {
            /// The options of a plan. They are equal on all ranks, except for bricks.
            ///
            /// ```
            /// use thriffty::planning::Options;
            /// let mut options = Options { batch: 3, ..Options::default() };
            /// options.set("tolerance", "1e-6")?;
            /// assert!(options.set("tolerance", "2").is_err());
            /// # Ok::<(), thriffty::Error>(())
            /// ```
            Options {
                /// The transform along each axis: c2c, r2c, dct1 to dct4, dst1 to dst4,
                /// tridiagonal, for systems that operators solve along lines of spectral data, or
                /// none. By default c2c for complex data, for real data with a complex
                /// spectrum r2c along the last axis and c2c along the others, and otherwise dct2.
                /// Boundary conditions
                /// stand for the transform that fulfils them: periodic; neumann, dirichlet,
                /// neumann-dirichlet or dirichlet-neumann, where points are at cells, or with
                /// @faces behind. The last of several c2c axes of real data is r2c.
                Problem kinds: Option<PerAxis<Kind>> = None, |kinds: [fft_core::Kind; D]| Some(kinds.into());
                /// The order of the axes of physical data in memory, slowest first. By default the
                /// last axis is contiguous.
                Problem input_order: Option<PerAxis<usize>> [Form::Order] = None,
                |order: [usize; D]| Some(order.into());
                /// The order of the axes of spectral data in memory, slowest first. By default the
                /// last axis is contiguous.
                Problem output_order: Option<PerAxis<usize>> [Form::Order] = None,
                |order: [usize; D]| Some(order.into());
                /// Transforms this number of arrays at once, stored one after another. They share
                /// messages, and one tolerance.
                Problem batch: usize = 1, |batch: usize| batch;
                /// The factor of forward transforms: none is 1, full is 1/N and symmetric is
                /// 1/sqrt(N), where N is the number of points, or for cosine and sine transforms
                /// the product of FFTW's logical lengths.
                Problem forward_scale: Scale = Scale::None, |scale: fft_core::Scale| scale;
                /// The factor of inverse transforms, with the same values as forward_scale.
                Problem inverse_scale: Scale = Scale::Full, |scale: fft_core::Scale| scale;
                /// The length of the transform along each axis. Physical data is 0 beyond its
                /// points, and the inverse discards that part; zeros are neither sent nor
                /// transformed. For axes of kind c2c and r2c, and messages that lose nothing. By
                /// default the lengths are those of physical data.
                Problem zero_padded: Option<PerAxis<usize>> = None, |lengths: [usize; D]| Some(lengths.into());
                /// The number of lowest frequencies that are kept along each axis. The spectrum
                /// then has the shape of a transform of that many points, and the inverse takes the
                /// others as 0. If their number is even and below the length, the middle mode is 0.
                /// By default all are kept.
                Problem modes: Option<PerAxis<usize>> = None, |modes: [usize; D]| Some(modes.into());
                /// The exchange, the algorithm that carries messages: shared, hosts, p2p,
                /// pipelined, alltoallv, kway2 to kway255, ring or ring-flush. By default it is
                /// chosen with the recipe.
                Method exchange: Option<Exchange> = None, |exchange: fft_core::Exchange| Some(exchange);
                /// The encoding of messages to other hosts: raw, f32, f16, bf16, mantissa:0 to
                /// mantissa:52, bits:2 to bits:52, lossless or tolerance. By default tolerance, if
                /// there is one, and otherwise raw.
                Method wire: Option<Wire> = None, |wire: fft_core::Wire| Some(wire);
                /// The relative error that encoded messages may add to the transform, in the l2
                /// norm, as in 1e-6. Messages use no more bits than it
                /// requires. `1e-6 strict` is a bound
                /// for any data, at one or two more bits per number. For real transforms, which
                /// store half the spectrum, the error is measured over the full spectrum. By
                /// default messages lose nothing.
                Method tolerance: Option<Tolerance> = None, |tolerance: fft_core::Tolerance| Some(tolerance);
                /// Sends and encodes all data that changes ranks, as if each rank were on a host of
                /// its own.
                Method ignore_shared_memory: bool = false, |ignored: bool| ignored;
                /// How the recipe is chosen. model: by a model of the machine, and nothing is run.
                /// measure: by timings, within 10 s or the time of, for example, measure:500ms.
                /// wisdom:FILE: by earlier timings that were saved in this file, or by the model if
                /// it has none of this transform on this machine. recipe:TEXT: the recipe that
                /// prints as this text.
                Choice tuning: Tuning = Tuning::Model, |tuning: $crate::options::Tuning| tuning;
                /// The machine of the model: default, which is the default; summit, frontier,
                /// ethernet, h200; or a file that `fft-cli calibrate` has written.
                Choice machine: Option<MachineChoice> = None,
                |machine: impl Into<$crate::options::MachineChoice>| Some(machine.into());
                /// A file for a trace: what each rank does, and when, in the format that Perfetto
                /// and browsers show, and `fft-cli trace` sums up. Plans of different groups of
                /// ranks need a file each. By default the file that the environment variable
                /// THRIFFTY_TRACE names, with the number of the process for plans of one process
                /// alone, or none.
                Choice trace: Option<PathBuf> = None, |file: impl Into<std::path::PathBuf>| Some(file.into());
                /// The layouts between input and output that are considered: any, slabs or pencils.
                Method layouts: Layouts = Layouts::Any, |layouts: fft_core::Layouts| layouts;
                /// The memory of a plan on the host besides input and output. ample: as much as is
                /// fast. least: little more than one copy of the data; messages go in rounds, each
                /// of which ends before the next.
                Method memory: Memory = Memory::Ample, |memory: fft_core::Memory| memory;
                /// Results are bitwise identical for any number of ranks and threads, any bricks
                /// and orders of axes, and any exchange. The axes are transformed in a fixed order,
                /// which may cost one more exchange, and all lines of a length use the same
                /// algorithm. Wires must be lossless, and data must be in host memory.
                Method reproducible: bool = false, |reproducible: bool| reproducible;
                /// Promises that all arrays are ones that the plan has allocated as shared arrays.
                /// The processes of a host then read and write each other's arrays directly,
                /// without copies. Threads, and ranks that share a device, see all memory anyway.
                Arrays shared_arrays: bool = false, |shared: bool| shared;
                /// Takes physical data in the bricks and the order of axes that cost least. The
                /// plan has properties for them. A brick or an order of the input is refused with
                /// it, and one process with several threads ignores it.
                Problem transposed_input: bool = false, |transposed: bool| transposed;
                /// Leaves spectral data in the bricks and the order of axes that cost least, for
                /// programs that work on spectra mode by mode. The plan has properties for them. A
                /// brick or an order of the output is refused with it, and one process with several
                /// threads ignores it.
                Problem transposed_output: bool = false, |transposed: bool| transposed;
                /// Takes physical data of a single axis in a cyclic layout: of p ranks, rank r has
                /// the points r, r + p, r + 2p and so on. p must divide the number of points, and
                /// its square must if both sides are cyclic. Cyclic to cyclic takes one exchange.
                Problem input_cyclic: Option<PerAxis<usize>> = None, |parts: [usize; D]| Some(parts.into());
                /// Leaves spectral data of a single axis in a cyclic layout, as input_cyclic.
                Problem output_cyclic: Option<PerAxis<usize>> = None, |parts: [usize; D]| Some(parts.into());
                /// Lets one rank do the complex transform of a single axis if its length or bricks
                /// have no suitable factors. By default this is an error, because that rank needs
                /// memory for all of the data.
                Problem one_rank: bool = false, |one_rank: bool| one_rank;
            }
            /// This rank's part of physical data; by default an even cut, or where ranks share a
            /// single axis, a block that suits its factors.
            input: Option<DynBrick>;
            /// This rank's part of spectral data, by default as that of physical data.
            output: Option<DynBrick>;
        }
    };
}

options_table!(define_options);

pub(crate) use options_table;
