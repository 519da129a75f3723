"""Plans: transforms of a whole grid by one process, or of its bricks by several ranks."""

from __future__ import annotations

import ctypes
import os
import re
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _arrays, _library
from ._groups import agree, ranks_of
from ._operators import Spectra
from ._options import (
    NORMS,
    SCALES,
    Request,
    Slices,
    argument,
    as_path,
    scales,
    stream_address,
)


class Plan(Spectra, _library.Uncopied):
    """A transform that you can run any number of times in both directions.

    Without a communicator, one process transforms the whole grid with several threads. With a
    communicator, each rank has a brick of the physical and of the spectral grid. All calls are then
    collective except properties, and :meth:`empty_input` without ``shared_arrays``.

    Parameters
    ----------
    shape : int or sequence of int
        Points along each of 1 to 4 axes.
    dtype : dtype
        The type of physical data: complex128, complex64, float64 or float32.
    comm : mpi4py.MPI.Comm, torch.distributed.ProcessGroup or object, optional
        The ranks. All of them make the plan, with equal arguments except `input` and `output`. An
        object must have `rank`, `size`, ``allgather(mine)``, which returns the bytes of each rank,
        and ``alltoallv(parts)``, which takes bytes for each rank and returns the bytes from each.
        It may also have `isend`, `irecv` and `test`, `device_alltoallv`, `host`, `lost` and
        `abandon`, which docs/without-mpi.md describes.
    input, output : sequence of slice, optional
        This rank's brick of physical and of spectral data, as one slice for each axis. By default
        the grid is cut evenly. A brick may be empty. The bricks of all ranks must tile the grid.
    norm : {"backward", "ortho", "forward"}, optional
        As in NumPy, instead of `forward_scale` and `inverse_scale`.
    stream : int or stream, optional
        The CUDA stream for all work on a device: a stream of CuPy or torch, or its address.

    Other Parameters
    ----------------
    kinds : str or sequence of str, optional
        The transform along each axis: c2c, r2c, dct1 to dct4, dst1 to dst4, tridiagonal, for
        systems that operators solve along lines of spectral data, or none. By default c2c for
        complex data, for real data with a complex spectrum r2c along the last axis and c2c along
        the others, and otherwise dct2. Boundary conditions stand for the transform that fulfils
        them: periodic; neumann, dirichlet, neumann-dirichlet or dirichlet-neumann, where points
        are at cells, or with @faces behind. The last of several c2c axes of real data is r2c.
    input_order : "C", "F" or sequence of int, optional
        The order of the axes of physical data in memory, slowest first. By default the last axis
        is contiguous.
    output_order : "C", "F" or sequence of int, optional
        The order of the axes of spectral data in memory, slowest first. By default the last axis
        is contiguous.
    batch : int
        Transforms this number of arrays at once, stored one after another. They share messages,
        and one tolerance.
    forward_scale : {"none", "full", "symmetric"}
        The factor of forward transforms: none is 1, full is 1/N and symmetric is 1/sqrt(N), where
        N is the number of points, or for cosine and sine transforms the product of FFTW's logical
        lengths.
    inverse_scale : {"none", "full", "symmetric"}
        The factor of inverse transforms, with the same values as forward_scale.
    zero_padded : int or sequence of int, optional
        The length of the transform along each axis. Physical data is 0 beyond its points, and the
        inverse discards that part; zeros are neither sent nor transformed. For axes of kind c2c
        and r2c, and messages that lose nothing. By default the lengths are those of physical data.
    modes : int or sequence of int, optional
        The number of lowest frequencies that are kept along each axis. The spectrum then has the
        shape of a transform of that many points, and the inverse takes the others as 0. If their
        number is even and below the length, the middle mode is 0. By default all are kept.
    exchange : str, optional
        The exchange, the algorithm that carries messages: shared, hosts, p2p, pipelined,
        alltoallv, kway2 to kway255, ring or ring-flush. By default it is chosen with the recipe.
    wire : str, optional
        The encoding of messages to other hosts: raw, f32, f16, bf16, mantissa:0 to mantissa:52,
        bits:2 to bits:52, lossless or tolerance. By default tolerance, if there is one, and
        otherwise raw.
    tolerance : float or str, optional
        The relative error that encoded messages may add to the transform, in the l2 norm, as in
        1e-6. Messages use no more bits than it requires. `1e-6 strict` is a bound for any data, at
        one or two more bits per number. For real transforms, which store half the spectrum, the
        error is measured over the full spectrum. By default messages lose nothing.
    ignore_shared_memory : bool
        Sends and encodes all data that changes ranks, as if each rank were on a host of its own.
    tuning : str
        How the recipe is chosen. model: by a model of the machine, and nothing is run. measure: by
        timings, within 10 s or the time of, for example, measure:500ms. wisdom:FILE: by earlier
        timings that were saved in this file, or by the model if it has none of this transform on
        this machine. recipe:TEXT: the recipe that prints as this text.
    machine : str or path, optional
        The machine of the model: default, which is the default; summit, frontier, ethernet, h200;
        or a file that `fft-cli calibrate` has written.
    trace : str or path, optional
        A file for a trace: what each rank does, and when, in the format that Perfetto and browsers
        show, and `fft-cli trace` sums up. Plans of different groups of ranks need a file each. By
        default the file that the environment variable THRIFFTY_TRACE names, with the number of the
        process for plans of one process alone, or none.
    layouts : {"any", "slabs", "pencils"}
        The layouts between input and output that are considered: any, slabs or pencils.
    memory : {"ample", "least"}
        The memory of a plan on the host besides input and output. ample: as much as is fast.
        least: little more than one copy of the data; messages go in rounds, each of which ends
        before the next.
    reproducible : bool
        Results are bitwise identical for any number of ranks and threads, any bricks and orders of
        axes, and any exchange. The axes are transformed in a fixed order, which may cost one more
        exchange, and all lines of a length use the same algorithm. Wires must be lossless, and
        data must be in host memory.
    shared_arrays : bool
        Promises that all arrays are ones that the plan has allocated as shared arrays. The
        processes of a host then read and write each other's arrays directly, without copies.
        Threads, and ranks that share a device, see all memory anyway.
    transposed_input : bool
        Takes physical data in the bricks and the order of axes that cost least. The plan has
        properties for them. A brick or an order of the input is refused with it, and one process
        with several threads ignores it.
    transposed_output : bool
        Leaves spectral data in the bricks and the order of axes that cost least, for programs that
        work on spectra mode by mode. The plan has properties for them. A brick or an order of the
        output is refused with it, and one process with several threads ignores it.
    input_cyclic : int or sequence of int, optional
        Takes physical data of a single axis in a cyclic layout: of p ranks, rank r has the points
        r, r + p, r + 2p and so on. p must divide the number of points, and its square must if both
        sides are cyclic. Cyclic to cyclic takes one exchange.
    output_cyclic : int or sequence of int, optional
        Leaves spectral data of a single axis in a cyclic layout, as input_cyclic.
    one_rank : bool
        Lets one rank do the complex transform of a single axis if its length or bricks have no
        suitable factors. By default this is an error, because that rank needs memory for all of
        the data.
    threads : int, optional
        The threads of this process that share its work. By default a process without a
        communicator has as many as THRIFFTY_THREADS or OMP_NUM_THREADS say, or as there are cores;
        with a communicator it has one. Plans of a process share their threads. A single axis has
        one thread, unless its transform is complex. With MPI, the thread that makes the plan sends
        for the others, so that MPI_THREAD_FUNNELED is enough; transposed data is refused there.
    device : {"host", "cuda"} or int
        Where the data is: host; the number of a CUDA device, which ranks may share; or cuda, the
        host's CUDA devices, which its ranks use in rotation.
    transport : {"peer_to_peer", "gpu_direct", "host_staged"}
        How data on devices gets to other ranks. peer_to_peer: it is read from their devices if
        possible, and otherwise sent in messages, from the device if MPI or the group can.
        gpu_direct, host_staged: all in messages, from the device or from the host.

    Raises
    ------
    ArgumentError
        If an argument is invalid; on all ranks.

    Notes
    -----
    A plan over MPI that is garbage-collected without :meth:`close` is freed when its ranks next
    make a plan on the same communicator, or when MPI ends. Close plans before you free the
    communicator.

    Examples
    --------
    >>> import numpy as np, thriffty
    >>> with thriffty.Plan((4, 6), float) as plan:
    ...     spectrum = plan.forward(np.ones((4, 6)))
    >>> spectrum.shape, float(spectrum[0, 0].real)
    ((4, 4), 24.0)
    """

    def __init__(
        self,
        shape: int | Sequence[int],
        dtype: Any = complex,
        *,
        comm: Any = None,
        input: Slices | None = None,
        output: Slices | None = None,
        norm: str | None = None,
        stream: Any = None,
        # The options, as `cargo xtask header` writes them.
        kinds: str | Sequence[str | None] | None = None,
        input_order: str | Sequence[int] | None = None,
        output_order: str | Sequence[int] | None = None,
        batch: int = 1,
        forward_scale: str = "none",
        inverse_scale: str = "full",
        zero_padded: int | Sequence[int] | None = None,
        modes: int | Sequence[int] | None = None,
        exchange: str | None = None,
        wire: str | None = None,
        tolerance: float | str | None = None,
        ignore_shared_memory: bool = False,
        tuning: str = "model",
        machine: str | os.PathLike[str] | None = None,
        trace: str | os.PathLike[str] | None = None,
        layouts: str = "any",
        memory: str = "ample",
        reproducible: bool = False,
        shared_arrays: bool = False,
        transposed_input: bool = False,
        transposed_output: bool = False,
        input_cyclic: int | Sequence[int] | None = None,
        output_cyclic: int | Sequence[int] | None = None,
        one_rank: bool = False,
        threads: int | None = None,
        device: str | int = "host",
        transport: str = "peer_to_peer",
    ) -> None:
        # Written by `cargo xtask header`, too.
        options = {
            "kinds": kinds,
            "input_order": input_order,
            "output_order": output_order,
            "batch": batch,
            "forward_scale": forward_scale,
            "inverse_scale": inverse_scale,
            "zero_padded": zero_padded,
            "modes": modes,
            "exchange": exchange,
            "wire": wire,
            "tolerance": tolerance,
            "ignore_shared_memory": ignore_shared_memory,
            "tuning": tuning,
            "machine": machine,
            "trace": trace,
            "layouts": layouts,
            "memory": memory,
            "reproducible": reproducible,
            "shared_arrays": shared_arrays,
            "transposed_input": transposed_input,
            "transposed_output": transposed_output,
            "input_cyclic": input_cyclic,
            "output_cyclic": output_cyclic,
            "one_rank": one_rank,
            "threads": threads,
            "device": device,
            "transport": transport,
        }
        self._handle: ctypes.c_void_p | None = None
        self._partner: Plan | None = None
        self._partner_of: weakref.ref[Plan] | None = None
        self._comm = comm
        self._stream = stream_address(stream) or 0
        # Held by modules of the package while they run the plan, which one thread may do at a time.
        self._lock = threading.Lock()
        self._ranks = ranks_of(comm)
        self._library = _library.serial() if self._ranks is None else self._ranks.library
        self._lent = False

        def asked() -> Request:
            if comm is None and (input is not None or output is not None):
                raise argument("input, output", "slices", "none without a communicator")
            if norm is not None:
                if (forward_scale, inverse_scale) != NORMS["backward"]:
                    raise argument("norm", f"{norm!r} and a scale", "one of them")
                options.update(scales(norm))
            return Request(self._library, shape, dtype, options, (input, output), stream)

        request = agree(self._ranks, asked)
        self._arguments = {
            "shape": shape,
            "dtype": dtype,
            "comm": comm,
            "input": input,
            "output": output,
            "stream": stream,
            **options,
        }
        self._on_device = request.options["device"] != "host"
        self._shared = self._on_device or request.options["shared_arrays"] == "true"
        self._handle = self._create(request)
        self._number = 0 if self._ranks is None else self._ranks.number()
        self._describe(request)

    def _create(self, request: Request) -> ctypes.c_void_p:
        handle, axes = ctypes.c_void_p(), len(request.shape)
        shape = (ctypes.c_int64 * axes)(*request.shape)
        c, asked = self._library.c, (request.transform, axes, shape)
        options = request.options.handle
        if self._ranks is None:
            status = c.thriffty_plan_create_serial(handle, *asked, options)
        else:
            status = self._ranks.create(handle, *asked, *request.bricks, options)
        self._library.check(status)
        return handle

    @property
    def comm(self) -> Any:
        """The communicator that the plan was made on, or None."""
        return self._comm

    def _exchanged(self) -> Plan:
        """This plan with its two scales exchanged, for adjoints. Collective.

        It is made at the first call and closed with this plan.
        """
        first, second = (self._arguments[name] for name in SCALES)
        whose = None if self._partner_of is None else self._partner_of()
        if first == second or whose is not None:
            return whose or self
        if self._partner is None:
            # The same recipe except for the scales, so that bricks and orders are equal.
            words = {"(scale forward)": "(scale inverse)", "(scale inverse)": "(scale forward)"}
            recipe = re.sub(r"\(scale \w+\)", lambda it: words.get(it[0], it[0]), self.recipe)
            exchanged = {"forward_scale": second, "inverse_scale": first}
            arguments = {**self._arguments, **exchanged, "tuning": f"recipe:{recipe}"}
            self._partner = Plan(**arguments)
            self._partner._partner_of = weakref.ref(self)
        return self._partner

    # -- arrays ---------------------------------------------------------------------------------

    def empty_input(self) -> Any:
        """An array for physical data.

        Shared arrays and arrays on devices are zeroed, and making them is collective.
        """
        return self._empty(0)

    def empty_output(self) -> Any:
        """An array for spectral data, made like :meth:`empty_input`."""
        return self._empty(1)

    def empty_in_place(self) -> tuple[Any, Any]:
        """Arrays for physical and for spectral data that share their memory."""
        if self._shared:
            allocation = self._allocate()
            return self._view(allocation, 0), self._view(allocation, 1)
        room = np.empty(self._in_place_bytes, np.uint8)
        return self._view(room, 0), self._view(room, 1)

    def _empty(self, side: int) -> Any:
        if self._shared:
            return self._view(self._allocate(), side)
        return _arrays.empty_like(None, self._shapes[side], self._dtypes[side], self._orders[side])

    def _allocate(self) -> Any:
        address = ctypes.c_void_p()
        handle, c = self._open(), self._library.c
        self._library.check(c.thriffty_allocate(handle, address))
        self._lent = True
        return _arrays.lent(address.value or 0, self._in_place_bytes, self._on_device, self)

    def _view(self, room: Any, side: int) -> Any:
        return _arrays.view(room, self._shapes[side], self._dtypes[side], self._orders[side])

    # -- transforms -----------------------------------------------------------------------------

    def forward(self, x: Any, out: Any = None) -> Any:
        """Transforms physical to spectral data.

        Parameters
        ----------
        x : array
            This rank's physical data: a NumPy array, or one with ``__cuda_array_interface__`` or
            DLPack (CuPy, torch). It must have the plan's type, shape and order in memory.
        out : array, optional
            Takes the result. The transform is in place if `out` is in the memory of `x` on all
            ranks.

        Returns
        -------
        array
            `out`, or a new array of the same library as `x`.

        Raises
        ------
        ArgumentError
            If the type, shape or order of an array is wrong; on all ranks.
        """
        c = self._library.c
        return self._run((c.thriffty_forward, c.thriffty_forward_in_place), x, 0, out, 1)

    def inverse(self, x: Any, out: Any = None) -> Any:
        """Transforms spectral to physical data, with the arguments of :meth:`forward`.

        If the result is real, the part of the spectrum that cannot come from real data is ignored.
        """
        c = self._library.c
        return self._run((c.thriffty_inverse, c.thriffty_inverse_in_place), x, 1, out, 0)

    def _run(self, both: tuple[Any, Any], x: Any, source: int, out: Any, target: int) -> Any:
        handle = self._open()
        try:
            if self._failed is not None:
                failed, self._failed = self._failed, None
                raise failed
            if out is None:
                form = (self._shapes[target], self._dtypes[target], self._orders[target])
                out = _arrays.empty_like(x, *form)
            read = self._checked("x" if out is not x else "x and out", x, source)
            written = self._checked("out", out, target)
            if not written.writable:
                raise argument("out", "read-only", "an array that can be written")
            in_place = read.address == written.address and read.address != 0
            room = max(read.bytes, written.bytes)
            if in_place and not read.device and room < self._in_place_bytes:
                # The memory is too small, because an odd number of reals is padded to complex ones.
                x, in_place = _arrays.copied(x), False
                read = self._checked("x", x, source)
        except Exception as error:  # Of any kind, because other ranks wait for this one.
            self.refuse(error)
            raise
        if in_place:
            status = both[1](handle, read.address, self._in_place_bytes)
        else:
            status = both[0](handle, read.address, read.bytes, written.address, written.bytes)
        if status != 0:
            self._library.check(status)
        return out

    def _checked(self, what: str, array: Any, side: int) -> _arrays.Memory:
        """The memory of an array, after checking that the plan can use it."""
        found = _arrays.memory(array)
        if found is None:
            raise argument(what, type(array).__name__, "an array")
        if found.dtype != self._dtypes[side]:
            raise argument(f"dtype of {what}", found.dtype, self._dtypes[side])
        if found.shape != self._shapes[side]:
            raise argument(f"shape of {what}", found.shape, self._shapes[side])
        if not _arrays.is_packed(found, self._orders[side]):
            expected = "axes in the order {}, slowest first, without gaps".format
            strides = f"strides of {found.strides} bytes"
            raise argument(f"memory of {what}", strides, expected(self._orders[side]))
        if found.device != self._on_device:
            places = ("on the host", "on a device")
            raise argument(what, places[found.device], places[not found.device])
        return found

    def refuse(self, error: Exception) -> None:
        """Fails instead of running a transform, so that other ranks do not wait for this one.

        Raises
        ------
        ArgumentError
            On every rank, with the text of the lowest rank that refuses. Without a communicator,
            `error` itself is raised.
        """
        handle, self._failed = self._open(), None
        if self._comm is None:
            raise error
        what, _, values = str(error).partition(": found ")
        found, _, expected = values.partition(", expected ")
        if not values:
            what, found, expected = "data of this rank", repr(error), "data to transform"
        words = [word.encode(errors="backslashreplace") for word in (what, found, expected)]
        self._library.check(self._library.c.thriffty_plan_refuse(handle, *words))

    def save_wisdom(self, path: str | os.PathLike[str]) -> None:
        """Adds the timings of ``tuning="measure"`` to a file for ``tuning=f"wisdom:{path}"``."""
        save, handle = self._library.c.thriffty_plan_save_wisdom, self._open()
        text = agree(self._ranks, lambda: as_path("path", path))
        self._library.check(save(handle, os.fsencode(text)))

    # -- its end --------------------------------------------------------------------------------

    def _open(self) -> ctypes.c_void_p:
        if self._handle is None:
            raise _library.Error("the plan is closed")
        return self._handle

    def close(self) -> None:
        """Frees the plan. Collective.

        If the plan has made arrays in shared or device memory, it is freed when these are unused,
        too.
        """
        if self._handle is None or self._lent:
            return
        if self._partner is not None:
            self._partner.close()
        handle, self._handle = self._handle, None
        self._library.destroy(self._library.c.thriffty_plan_destroy, handle)

    def __enter__(self) -> Plan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is None:
            return
        if self._ranks is None:
            self._library.c.thriffty_plan_destroy(handle)
        else:
            # Destroying is collective, but ranks collect garbage at different times.
            destroy = self._library.c.thriffty_plan_destroy
            self._ranks.leave(self._number, self._library, destroy, handle)

    def __repr__(self) -> str:
        kind = "closed" if self._handle is None else self.recipe
        return f"<thriffty.Plan {self.shape} {self.input_dtype}: {kind}>"
