"""The reference for `test_pfft.py`: transforms of whole arrays, which every rank has.

Padding uses dense matrices over all frequencies of complex transforms, and half spectra are
completed by symmetry. The package and this module share no code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.fft
from mpi4py import MPI

COMM = MPI.COMM_WORLD


def check(holds: Any, *told: Any) -> None:
    """Fails on all ranks if a condition is false on one, because the others would wait for it."""
    failures = [text for text in COMM.allgather(None if holds else str(told)) if text]
    assert not failures, failures[0]


def close(found: np.ndarray, expected: np.ndarray, *told: Any) -> None:
    """Checks that two arrays agree to the precision of the first, relative to the largest value."""
    same = found.shape == expected.shape
    limit = 1e-5 if found.dtype in (np.float32, np.complex64) else 1e-11
    error = np.abs(found - expected).max() if same and found.size else 0.0
    check(same and error <= limit * max(1.0, np.abs(expected).max(initial=0)), error, *told)


def whole(shape: Sequence[int], dtype: Any, seed: int = 1) -> np.ndarray:
    """The same random numbers on every rank."""
    random = np.random.default_rng(seed)
    values = random.standard_normal(tuple(shape))
    if np.dtype(dtype).kind == "c":
        values = values + 1j * random.standard_normal(tuple(shape))
    return values.astype(dtype)


def truncation(fine: int, coarse: int) -> np.ndarray:
    """The matrix from all frequencies of a grid to those of a coarser one."""
    matrix = np.zeros((coarse, fine))
    for wave in range(-(coarse // 2), coarse // 2 + 1):
        matrix[wave % coarse, wave % fine] = 1
    return matrix


def extension(coarse: int, fine: int) -> np.ndarray:
    """The matrix from all frequencies of a grid to those of a finer one."""
    matrix = truncation(fine, coarse).T
    return matrix / matrix.sum(axis=0)


class Axis:
    """The transform along one axis: its kind, its number of points, and how many are kept."""

    def __init__(self, axis: int, kind: str, points: int, kept: int | None = None) -> None:
        self.axis, self.kind, self.points = axis, kind, points
        self.kept = points if kept is None else kept
        self.factor = points
        if kind[:3] in ("dct", "dst"):
            self.factor = 2 * (points + {"dct1": -1, "dst1": 1}.get(kind, 0))

    def forward(self, x: np.ndarray) -> np.ndarray:
        x = np.moveaxis(x, self.axis, -1)
        if self.kind in ("c2c", "r2c"):
            y = np.fft.fft(x) @ truncation(self.points, self.kept).T
            if self.kind == "r2c":
                y = y[..., : self.kept // 2 + 1]
        else:
            y = self._real(x, scipy.fft.dct, scipy.fft.dst)
        return np.moveaxis(y / self.factor, -1, self.axis)

    def backward(self, y: np.ndarray) -> np.ndarray:
        y = np.moveaxis(y, self.axis, -1)
        if self.kind == "r2c":
            y = self._symmetric(y)
        if self.kind in ("c2c", "r2c"):
            x = np.fft.ifft(y @ extension(self.kept, self.points).T)
            x = x.real if self.kind == "r2c" else x
        else:
            x = self._real(y, scipy.fft.idct, scipy.fft.idst)
        return np.moveaxis(x * self.factor, -1, self.axis)

    def _real(self, x: np.ndarray, dct: Any, dst: Any) -> np.ndarray:
        transform = dct if self.kind.startswith("dct") else dst
        if np.iscomplexobj(x):
            return self._real(x.real, dct, dst) + 1j * self._real(x.imag, dct, dst)
        return transform(x, type=int(self.kind[3]))

    def _symmetric(self, half: np.ndarray) -> np.ndarray:
        """All frequencies of real data, from half of them."""
        full = np.zeros(half.shape[:-1] + (self.kept,), complex)
        full[..., : half.shape[-1]] = half
        for wave in range(self.kept):
            opposite = -wave % self.kept
            if opposite == wave:
                full[..., wave] = full[..., wave].real
            elif wave >= half.shape[-1]:
                full[..., wave] = half[..., opposite].conj()
        return full


def forward(x: np.ndarray, axes: Sequence[Axis]) -> np.ndarray:
    """The scaled transform along axes in this order."""
    x = x.astype(np.result_type(x, np.float64))
    for axis in axes:
        x = axis.forward(x)
    return x


def backward(y: np.ndarray, axes: Sequence[Axis]) -> np.ndarray:
    """The inverse transform, unscaled."""
    y = y.astype(np.result_type(y, np.float64))
    for axis in reversed(axes):
        y = axis.backward(y)
    return y


def both_ways(fft: Any, axes: Sequence[Axis], *told: Any) -> None:
    """Checks a PFFT in both directions."""
    u = whole(fft.global_shape(False), fft.dtype(False))
    u_hat = whole(fft.global_shape(True), fft.dtype(True), 2)
    physical, spectral = fft.local_slice(False), fft.local_slice(True)
    found = fft.forward(np.ascontiguousarray(u[physical]))
    close(found, forward(u, axes)[spectral], "forward", *told)
    found = fft.backward(np.ascontiguousarray(u_hat[spectral]))
    close(found, backward(u_hat, axes)[physical], "backward", *told)
