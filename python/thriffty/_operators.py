"""Operators on the spectra of plans."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from . import _arrays
from ._described import Described
from ._groups import Group, agree
from ._library import doubles
from ._mpi import Ranks
from ._options import argument

# The values of `thriffty_operator`, and the numbers of components that each takes and returns if
# `n` axes are transformed.
_OPERATORS = {
    "derivative": (0, lambda n: (1, 1)),
    "gradient": (1, lambda n: (1, n)),
    "divergence": (2, lambda n: (n, 1)),
    "curl": (3, lambda n: (2, 1) if n == 2 else (n, n)),
    "laplacian": (4, lambda n: (1, 1)),
    "poisson": (5, lambda n: (1, 1)),
    "helmholtz": (6, lambda n: (1, 1)),
    "project": (7, lambda n: (n, n)),
    "gaussian": (8, lambda n: (1, 1)),
    "cutoff": (9, lambda n: (1, 1)),
}

# The meaning of the parameter, for operators that have one.
_PARAMETERS = {
    "derivative": "the axis",
    "helmholtz": "the shift",
    "gaussian": "the standard deviation",
    "cutoff": "the fraction of the highest wavenumber",
}


class Spectra(Described):
    """Operators that a plan applies to spectra. Unless noted, none is collective.

    A call that fails on one of several ranks raises an error there, and the next transform raises
    the same error on all ranks. If ranks divide the axis of kind tridiagonal of the spectrum,
    :meth:`apply` is collective, and raises the error on all ranks at once.
    """

    _ranks: Ranks | Group | None
    _on_device: bool
    _failed: Exception | None = None

    def empty_output(self) -> Any:
        raise NotImplementedError

    def refuse(self, error: Exception) -> None:
        raise NotImplementedError

    def _divides_systems(self) -> bool:
        """Whether ranks divide the axis of tridiagonal systems, and wait in each operator."""
        axes = zip(self._kinds, self._slices[1], self._global_shapes[1], strict=True)
        return any(kind == "tridiagonal" and axis.stop - axis.start < n for kind, axis, n in axes)

    def apply(
        self,
        operator: str,
        x: Any,
        lengths: float | Sequence[float] = 2 * math.pi,
        parameter: float | None = None,
        out: Any = None,
    ) -> Any:
        """Applies an operator to each mode of spectral data on a box.

        Parameters
        ----------
        operator : str
            "gradient", "divergence", "curl", "laplacian"; "derivative" along the axis `parameter`;
            "poisson" solves ``-laplacian(y) = x`` with a mean of 0, and "helmholtz" solves
            ``(parameter - laplacian)(y) = x``; "project" subtracts the gradient part of a vector;
            "gaussian" convolves with a normalised Gaussian with the standard deviation `parameter`,
            0 or more; "cutoff" keeps modes below the fraction `parameter`, 0 or more, of the
            highest wavenumber of each axis.
        x : array
            Spectral data of this rank. Vectors have a leading axis with one component for each
            transformed axis. Further leading axes are for several operands.
        lengths : float or sequence of float
            The lengths of the box, or one for all axes: by default 2 pi, so that wavenumbers are
            whole numbers.
        parameter : float, optional
            Required by "derivative", "helmholtz", "gaussian" and "cutoff"; others take none.
        out : array, optional
            Takes the result. It may be `x` if both have the same number of components.

        Returns
        -------
        array
            `out`, or a new array of the same library as `x`.

        Examples
        --------
        >>> import numpy as np, thriffty
        >>> x = np.linspace(0, 2 * np.pi, 16, endpoint=False)
        >>> with thriffty.Plan(16, float) as plan:
        ...     wave = plan.forward(np.sin(x))
        ...     slope = plan.inverse(plan.apply("derivative", wave, parameter=0))
        >>> bool(np.allclose(slope, np.cos(x)))
        True
        """
        handle = self._open()
        try:
            if not isinstance(operator, str) or operator not in _OPERATORS:
                raise argument("operator", repr(operator), "one of " + ", ".join(_OPERATORS))
            number, components = _OPERATORS[operator]
            value = _parameter(operator, parameter)
            read = self._spectrum("x", x)
            shape = self._result(operator, components, read.shape)
            if out is None:
                out = self._empty_spectrum(x, shape)
            written = self._spectrum("out", out)
            if written.shape != shape:
                raise argument("shape of out", written.shape, shape)
            self._writable(written)
            box = doubles(self._per_axis("lengths", lengths))
        except Exception as error:
            if self._divides_systems():
                self.refuse(error)
            self._tell_others(error)
            raise
        both = (read.address, read.bytes, written.address, written.bytes)
        c = self._library.c
        self._library.check(c.thriffty_apply(handle, number, value, box, *both))
        return out

    def set_schemes(self, schemes: str | Sequence[str]) -> None:
        """Sets the difference schemes whose symbols operators use instead of wavenumbers.

        Parameters
        ----------
        schemes : str or sequence of str
            One for each axis, or one for all: "exact", the default; "central2" or "central4" for
            central differences of second or fourth order; "staggered2" or "staggered4" if vectors
            are stored at the faces between cells. The spacing follows from the lengths of the box,
            which for cosine and sine transforms is the distance between the ends where a value or
            a slope is 0. On devices, first derivatives do not support staggered schemes.

        Examples
        --------
        >>> import numpy as np, thriffty
        >>> with thriffty.Plan(8, float, kinds="neumann") as plan:
        ...     plan.set_schemes("staggered2")
        ...     rho = np.cos(np.pi * (np.arange(8) + 0.5) / 8)
        ...     phi = plan.inverse(plan.apply("poisson", plan.forward(rho), lengths=8))
        >>> ghosts = np.concatenate([phi[:1], phi, phi[-1:]])
        >>> bool(np.allclose(-np.diff(ghosts, 2), rho))
        True
        """
        names = schemes if isinstance(schemes, str) else ",".join(schemes)
        self._library.check(self._library.c.thriffty_set_schemes(self._open(), names.encode()))

    def set_tridiagonal(
        self, lower: Sequence[float], diagonal: Sequence[float], upper: Sequence[float]
    ) -> None:
        """Sets the second derivative along the axis of kind tridiagonal.

        "poisson" and "helmholtz" then solve a system for each mode of the other axes, and
        "laplacian" applies it. If neither end fixes the mean of the solution, the solution has mean
        0, and the mean of the right-hand side is ignored. Both means are weighted so that fluxes
        cancel, for example by the widths of cells.

        Parameters
        ----------
        lower, diagonal, upper : sequence of float
            The derivative at point j is ``lower[j] * f[j - 1] + diagonal[j] * f[j] + upper[j] *
            f[j + 1]``. ``lower[0]`` multiplies the last point and ``upper[-1]`` the first; both are
            0 unless the axis is periodic.
        """
        rows = [doubles(row) for row in (lower, diagonal, upper)]
        if len({len(row) for row in rows}) != 1:
            lengths = ", ".join(str(len(row)) for row in rows)
            raise argument("numbers of coefficients", lengths, "equal ones")
        call = self._library.c.thriffty_set_tridiagonal
        self._library.check(call(self._open(), *rows, len(rows[0])))

    def set_stretched(self, ends: str, faces: Sequence[float]) -> None:
        """Sets the second derivative of a stretched grid along the axis of kind tridiagonal.

        Parameters
        ----------
        ends : str
            The boundary conditions: "periodic", "neumann", "dirichlet", "neumann-dirichlet" or
            "dirichlet-neumann". All but "periodic" can be followed by "@faces" if the points are
            the faces, except ends where the value is 0.
        faces : sequence of float
            The positions of the faces, in ascending order: one more than there are cells.

        Examples
        --------
        >>> import numpy as np, thriffty
        >>> z = np.array([0, 1, 3, 7])  # cells that grow from a wall
        >>> kinds = ("periodic", "periodic", "tridiagonal")
        >>> with thriffty.Plan((8, 8, 3), float, kinds=kinds) as plan:
        ...     plan.set_stretched("dirichlet-neumann", z)
        ...     phi = plan.inverse(plan.apply("poisson", plan.forward(np.ones((8, 8, 3)))))
        >>> bool(np.allclose(phi[0, 0, 0], 7 * 0.5))
        True
        """
        places = doubles(faces)
        call = self._library.c.thriffty_set_stretched
        self._library.check(call(self._open(), ends.encode(), places, len(places)))

    def convolve(self, kernel: Any, x: Any, correlate: bool = False) -> Any:
        """Convolves periodically: multiplies each mode of `x` in place by the kernel's.

        Parameters
        ----------
        kernel : array
            The transform of one kernel, whose centre is its first point.
        x : array
            Spectral data of one or several arrays.
        correlate : bool
            Whether to multiply by the complex conjugate instead.

        Returns
        -------
        array
            `x`.
        """
        handle = self._open()
        try:
            by, data = self._spectrum("kernel", kernel), self._spectrum("x", x)
            self._writable(data)
        except Exception as error:
            self._tell_others(error)
            raise
        both = (by.address, by.bytes, int(correlate), data.address, data.bytes)
        self._library.check(self._library.c.thriffty_convolve(handle, *both))
        return x

    def green_function(self, spacing: float | Sequence[float]) -> Any:
        """The transform of the Green's function in open space. Collective.

        With this kernel, :meth:`convolve` solves ``-laplacian(y) = x`` without walls or periods, on
        a grid with this spacing along 2 or 3 axes. The plan's `zero_padded` must be at least twice
        its shape.

        Examples
        --------
        >>> import numpy as np, thriffty
        >>> with thriffty.Plan((8, 8, 8), float, zero_padded=16) as plan:
        ...     kernel, charge = plan.green_function(0.1), np.zeros((8, 8, 8))
        ...     charge[4, 4, 4] = 1
        ...     phi = plan.inverse(plan.convolve(kernel, plan.forward(charge)))
        >>> bool(abs(phi[4, 1, 4] * 4 * np.pi * 0.3 / 0.1**3 - 1) < 1e-3)
        True
        """
        call, handle = self._library.c.thriffty_green_function, self._open()
        given = agree(self._ranks, lambda: self._open_space(spacing))
        if self._on_device:
            kernel = self.empty_output()
        else:
            shape = self._shapes[1][-len(given) :]
            kernel = _arrays.empty_like(None, shape, self._dtypes[1], self._output_order)
        place = self._spectrum("kernel", kernel)
        self._library.check(call(handle, doubles(given), place.address, place.bytes))
        return kernel

    def wavenumbers(
        self, lengths: float | Sequence[float] = 2 * math.pi, derivative: bool = False
    ) -> tuple[np.ndarray, ...]:
        """The wavenumbers of this rank's spectral data, as one array per axis that broadcasts.

        Parameters
        ----------
        lengths : float or sequence of float
            The lengths of the box, as for :meth:`apply`.
        derivative : bool
            Whether they are for derivatives of odd order, where the middle mode of an even number
            of points is 0.
        """
        axes = len(self._output_order)
        given = self._per_axis("lengths", lengths)
        found = []
        for axis, length in enumerate(given):
            room = self._shapes[1][axis - axes]
            k, odd = (ctypes.c_double * room)(), (ctypes.c_double * room)()
            call = self._library.c.thriffty_wavenumbers
            self._library.check(call(self._open(), axis, float(length), k, odd, room))
            shape = [1] * axes
            shape[axis] = room
            found.append(np.array(odd if derivative else k).reshape(shape))
        return tuple(found)

    def _per_axis(self, what: str, given: float | Sequence[float]) -> tuple[float, ...]:
        """One number for each axis."""
        axes = len(self._output_order)
        try:
            each = (given,) * axes if isinstance(given, Real) else tuple(given)
            numbers = tuple(float(number) for number in each)
        except (TypeError, ValueError):
            raise argument(what, repr(given), "a number, or one for each axis") from None
        if len(numbers) != axes:
            raise argument(f"number of {what}", len(numbers), axes)
        return numbers

    def _open_space(self, spacing: float | Sequence[float]) -> tuple[float, ...]:
        """The spacing along each axis, after checking that the plan has one array."""
        given = self._per_axis("spacings", spacing)
        if len(self._shapes[1]) > len(given):
            raise argument("batch in open space", self._shapes[1][0], 1)
        return given

    def _tell_others(self, error: Exception) -> None:
        """Keeps an error for the next transform, where other ranks wait for this one."""
        if self._ranks is not None and self._ranks.size > 1:
            self._failed = error

    def _result(self, operator: str, components: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the result for an operand of this shape."""
        axes = len(self._output_order)
        dimensions = sum(kind not in ("none", "tridiagonal") for kind in self._kinds)
        before, after = components(dimensions)
        leading, brick = shape[: len(shape) - axes], shape[len(shape) - axes :]
        if operator in ("divergence", "curl", "project"):
            if not leading or leading[-1] != before:
                raise argument("shape of x", shape, f"({before}, ...), a vector")
            leading = leading[:-1]
        is_vector = operator in ("gradient", "project") or operator == "curl" and dimensions != 2
        return (*leading, after, *brick) if is_vector else (*leading, *brick)

    def _spectrum(self, what: str, array: Any) -> _arrays.Memory:
        """The memory of spectral data, which may have leading axes."""
        found = _arrays.memory(array)
        if found is None:
            raise argument(what, type(array).__name__, "an array")
        if found.dtype != self._dtypes[1]:
            raise argument(f"dtype of {what}", found.dtype, self._dtypes[1])
        axes = len(self._output_order)
        leading, brick = len(found.shape) - axes, self._shapes[1][-axes:]
        if leading < 0 or found.shape[leading:] != brick:
            raise argument(f"shape of {what}", found.shape, f"{brick}, behind any others")
        if not _arrays.is_packed(found, self._order_after(leading)):
            strides = f"strides of {found.strides} bytes"
            raise argument(f"memory of {what}", strides, f"the order {self._order_after(leading)}")
        if found.device != self._on_device:
            places = ("on the host", "on a device")
            raise argument(what, places[found.device], places[not found.device])
        return found

    def _order_after(self, leading: int) -> tuple[int, ...]:
        """The order of axes in memory, after `leading` others."""
        return (*range(leading), *(leading + axis for axis in self._output_order))

    def _empty_spectrum(self, like: Any, shape: tuple[int, ...]) -> Any:
        order = self._order_after(len(shape) - len(self._output_order))
        return _arrays.empty_like(like, shape, self._dtypes[1], order)

    def _writable(self, memory: _arrays.Memory) -> None:
        if not memory.writable:
            raise argument("out", "read-only", "an array that can be written")


def _parameter(operator: str, given: float | None) -> float:
    """The parameter of an operator, or 0 if it takes none."""
    expected = _PARAMETERS.get(operator)
    if given is None and expected is None:
        return 0.0
    if given is not None and expected is not None:
        try:
            return float(given)
        except (TypeError, ValueError):
            pass
    found = "none" if given is None else repr(given)
    raise argument(f"parameter of {operator}", found, expected or "none")
