"""DistArray and newDistArray. Run as `mpirun -n P python -m pytest test_pfft_arrays.py`."""

from __future__ import annotations

import copy
import importlib.util
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pfft_oracle import COMM, check, close, whole
from reference import cases

import thriffty
from thriffty import PFFT, DistArray, newDistArray

RANKS = COMM.size


def filled(shape: tuple[int, ...], dtype: Any = float, **options: Any) -> DistArray:
    """An array with the numbers of `whole`."""
    array = DistArray(shape, dtype=dtype, **options)
    array[...] = (100 * whole(shape, float)).astype(dtype)[array.local_slice()]
    return array


def holds(array: DistArray) -> None:
    """Checks that an array has the numbers of `whole`."""
    expected = (100 * whole(array.global_shape, float)).astype(array.dtype)
    check((array.v == expected[array.local_slice()]).all(), array.commsizes)


# -- distributions ------------------------------------------------------------------------------


def test_default_distribution() -> None:
    array = DistArray((7, 5, 6), val=3)
    check(array.commsizes[2] == 1 and np.prod(array.commsizes) == RANKS)
    check((array.v == 3).all() and array.dtype == float)
    check(array.alignment == 2 and array.dimensions == 3 and array.rank == 0)
    check(array.global_shape == (7, 5, 6))
    starts = tuple(part.start for part in array.local_slice())
    check(array.substart == starts)
    check(array.shape == tuple(part.stop - part.start for part in array.local_slice()))
    check(sum(COMM.allgather(array.size)) == 7 * 5 * 6)
    # Longer parts come first.
    lengths = COMM.allgather((starts[0], array.shape[0]))
    check(max(lengths)[1] == min(length for _, length in lengths))


@pytest.mark.parametrize("alignment", [0, 1, 2, -1])
def test_alignment(alignment: int) -> None:
    array = DistArray((7, 5, 6), alignment=alignment)
    check(array.alignment == alignment % 3 and array.commsizes[alignment] == 1)
    vectors = DistArray((3, 7, 5, 6), alignment=alignment, rank=1)
    check(vectors.alignment == alignment % 3 and vectors.commsizes[1:] == array.commsizes)
    check(vectors.shape == (3, *array.shape) and vectors.global_shape == (3, 7, 5, 6))
    check(vectors.pencil.shape == (7, 5, 6))


def test_grids_of_ranks() -> None:
    array = DistArray((8, 8, 8), subcomm=(1, 0, 1))
    check(array.commsizes == [1, RANKS, 1] and array.alignment == 2)
    check([cut.Get_size() for cut in array.subcomm] == [1, RANKS, 1])
    check(array.subcomm[1].Get_rank() == COMM.rank)
    like = DistArray((6, 9, 4), subcomm=array.subcomm, alignment=0)
    check(like.commsizes == array.commsizes and like.alignment == 0)


def test_one_axis_is_not_distributed() -> None:
    array = DistArray((8,), val=2)
    check(array.shape == (8,) and array[0] == 2 and array.global_shape == (8,))
    vectors = DistArray((3, 8), rank=1)
    check(vectors.shape == (3, 8) and vectors.commsizes == [1, 1])


def test_buffer() -> None:
    like = DistArray((4, 6))
    memory = np.arange(like.size, dtype=float)
    array = DistArray((4, 6), buffer=memory, val=7)
    check(np.shares_memory(array, memory) and (array.v.ravel() == memory).all())


# -- parts and arithmetic -----------------------------------------------------------------------


def test_components_of_tensors() -> None:
    matrices = DistArray((3, 3, 4, 6), rank=2, val=1)
    check(matrices.rank == 2)
    for part, rank in ((matrices[0], 1), (matrices[1, 2], 0), (matrices[0:2], 2)):
        check(isinstance(part, DistArray) and part.rank == rank, rank)
        check(np.shares_memory(part, matrices) and part.pencil == matrices.pencil)
    check(matrices[0:2].global_shape == (2, 3, 4, 6))
    plain = (matrices[0, 0, 0], matrices[..., 0], matrices[matrices > 0], matrices[0, 0][0])
    check(all(type(part) is np.ndarray for part in plain))
    check(type(matrices[0, 0][:]) is np.ndarray and matrices[0, 0, 0, 0] == 1)
    matrices[1, 2] = 5
    check((matrices[1, 2].v == 5).all())


def test_arithmetic_keeps_the_distribution() -> None:
    u = DistArray((3, 4, 6), rank=1, val=2)
    for result in (u * u, 2 + u, np.sqrt(u), u.copy(), np.zeros_like(u), -u, u * 1j):
        check(isinstance(result, DistArray) and result.pencil == u.pencil and result.rank == 1)
    check((u * u[0]).rank == 1 and np.sum(u * u, axis=0).rank == 0)
    check(isinstance(np.sum(u), float) and np.sum(u) == 2 * u.size)
    check(np.isclose(np.linalg.norm(u), 2 * np.sqrt(u.size)))
    u += 1
    check((u.v == 3).all() and type(u.v) is np.ndarray)
    # The same shape on one rank, but another distribution.
    other = DistArray((3, 4, 6), val=2)
    if RANKS == 1:
        for x, y, out in ((u, u, other), (u, other, u), (other, u, other)):
            with pytest.raises(thriffty.ArgumentError, match="distribution of out"):
                np.add(x, y, out=out)
        check((other.v == 2).all() and (u.v == 3).all())
    kept = np.add(u, u, out=u[0:3])
    check((u.v == 6).all() and kept.rank == 1 and type(u.mean(axis=1)) is np.ndarray)


# Functions of an array, and whether each point stays in place.
POINTWISE: dict[str, Any] = {
    "arithmetic": lambda x: 2 * x + x,
    "two results": lambda x: np.modf(x)[1],
    "two places": lambda x: np.modf(x, np.empty_like(x), np.empty_like(x))[0],
    "comparison": lambda x: x > 0,
    "where": lambda x: np.sqrt(x, out=np.zeros_like(x), where=x > 0),
    "copy": lambda x: x.copy(),
    "copy.copy": copy.copy,
    "deepcopy": lambda x: copy.deepcopy({"x": x})["x"],
    "astype": lambda x: x.astype("F"),
    "real": lambda x: (x * 1j).real,
    "imag": lambda x: np.imag(x * 1j),
    "round": lambda x: np.round(x),
    "clip": lambda x: x.clip(-1, 1),
    "conjugate": lambda x: (x * 1j).conj(),
    "angle": lambda x: np.angle(x * 1j),
    "full_like": lambda x: np.full_like(x, 7),
    "tensor": lambda x: np.ones((2,) + (1,) * x.ndim) * x,
}
COMPONENTS: dict[str, Any] = {
    "component": lambda x: x[1],
    "components": lambda x: x[::-1],
    "component of result": lambda x: np.add(x, 1)[0:1],
    "each": lambda x: list(x)[-1],
    "sum": lambda x: x.sum(0),
    "norm": lambda x: np.sqrt(np.sum(x * x, axis=0)),
    "mean": lambda x: np.mean(x, axis=0, keepdims=True),
    "std": lambda x: np.std(x, axis=0),
    "max": lambda x: np.max(x, axis=-x.ndim),
    "accumulate": lambda x: np.add.accumulate(x),
}
OTHERS: dict[str, Any] = {
    "T": lambda x: x.T,
    "transpose": lambda x: np.transpose(x),
    "swapaxes": lambda x: x.swapaxes(-1, -2),
    "moveaxis": lambda x: np.moveaxis(x, -1, 0),
    "rollaxis": lambda x: np.rollaxis(x, x.ndim - 1),
    "copy of T": lambda x: x.T.copy(),
    "sum of T": lambda x: x.T + x.T,
    "reshape": lambda x: x.reshape(x.shape[::-1]),
    "ravel": lambda x: x.ravel(),
    "squeeze": lambda x: x.squeeze(),
    "flip": lambda x: np.flip(x, -1),
    "flipped copy": lambda x: np.flip(x, -1).copy(),
    "expand_dims": lambda x: np.expand_dims(x, 0),
    "broadcast_to": lambda x: np.broadcast_to(x, (2, *x.shape), subok=True),
    "view": lambda x: x.view(np.int64),
    "diagonal": lambda x: x.diagonal(0, -1, -2),
    "slice": lambda x: x[..., :1],
    "backwards": lambda x: x[..., ::-1],
    "everything": lambda x: x[...],
    "bool": lambda x: x[True],
    "mask": lambda x: x[x > 0],
    "take": lambda x: x.take(np.arange(x.shape[-1])[::-1], -1),
    "repeat": lambda x: x.repeat(1, -1),
    "sort": lambda x: np.sort(x, -1),
    "roll": lambda x: np.roll(x, 1, -1),
    "gradient": lambda x: np.gradient(np.resize(x, (2, 2)), axis=-1),
    "cumsum": lambda x: x.cumsum(-1),
    "sum along the grid": lambda x: x.sum(-1),
    "sum of all": lambda x: np.sum(x, keepdims=True),
    "matmul": lambda x: x @ np.ones((x.shape[-1], x.shape[-1])),
    "dot": lambda x: x.dot(np.ones((x.shape[-1], x.shape[-1]))),
    "outer": lambda x: np.multiply.outer(x, x),
    "concatenate": lambda x: np.concatenate([x, x], -1),
    "stack": lambda x: np.stack([x, x]),
}


@st.composite
def arrays(draw: Any) -> DistArray:
    """Short axes, often of equal lengths, so that parts of some ranks look alike or are empty."""
    shape = draw(st.lists(st.integers(1, 4), min_size=2, max_size=3))
    rank = draw(st.integers(0, 1))
    alignment = draw(st.integers(0, len(shape) - 1))
    return filled((2,) * rank + tuple(shape), alignment=alignment, rank=rank)


@cases(10)
@given(arrays())
def test_no_array_has_a_distribution_that_it_has_not(x: DistArray) -> None:
    all_of_it = 100 * whole(x.global_shape, float)
    for changes, keeps in ((POINTWISE, True), (COMPONENTS, x.rank == 1), (OTHERS, False)):
        for name, change in changes.items():
            if changes is COMPONENTS and not keeps:
                continue
            result = change(x) if keeps else tried(change, x)
            kept = COMM.allgather(getattr(result, "_layout", None) is not None)
            assert kept == [keeps] * RANKS, (name, kept)
            if keeps:
                found, expected = result.get((slice(None),) * result.ndim), change(all_of_it)
                check(found is None or np.allclose(found, expected), name)
            elif isinstance(result, DistArray):
                with pytest.raises(thriffty.ArgumentError, match="without a distribution"):
                    result.redistribute(0)
    holds(x)
    holds(x.redistribute(0))


def tried(change: Any, x: DistArray) -> Any:
    """Parts of some ranks are too small for some changes."""
    try:
        return change(x)
    except (ValueError, IndexError):
        return None


def test_a_shape_that_was_set_is_no_distribution() -> None:
    x = DistArray((4, 3 * RANKS), alignment=0)
    x.shape = x.shape[::-1]
    with pytest.raises(thriffty.ArgumentError, match="without a distribution"):
        x.global_shape
    check(type(x + 1) is np.ndarray and type(x[0]) is np.ndarray and x.T.shape == x.shape[::-1])


def test_arithmetic_of_different_distributions_has_none() -> None:
    x, y = DistArray((2 * RANKS, 2), alignment=1, val=1), DistArray((2, 2 * RANKS), alignment=0)
    check(x.shape == y.shape == (2, 2))
    total = x + y
    check(RANKS == 1 or type(total) is np.ndarray)
    check((total + x).pencil == x.pencil and (y.T + x).pencil == x.pencil)


@cases(5)
@given(arrays())
def test_pickles_are_whole_or_refused(x: DistArray) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        if RANKS > 1:
            with pytest.raises(TypeError, match="of several ranks cannot be pickled"):
                pickle.dumps(x, protocol)
        else:
            again = pickle.loads(pickle.dumps(x, protocol))
            check(again.pencil == x.pencil and again.rank == x.rank)
            holds(again)
            holds(again.redistribute(0))
        # Results without a distribution are plain arrays, and so are parts.
        for part in (x.T, x.v):
            again = pickle.loads(pickle.dumps(part, protocol))
            check(type(again) is np.ndarray and (again == part).all())
    one = pickle.loads(pickle.dumps(DistArray((8,), val=2)))
    check(one.global_shape == (8,) and one[0] == 2)
    for again in (pickle.loads(pickle.dumps(x.pencil)), copy.deepcopy(x.pencil)):
        check(again == x.pencil and again.comm == x.pencil.comm)


# -- redistribution -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D", "i", "q"])
def test_redistribute(dtype: str) -> None:
    array = filled((7, 5, 6), dtype, alignment=0)
    for axis in (2, 1, 0, 1, -1):
        array = array.redistribute(axis)
        check(array.alignment == axis % 3 and array.dtype == dtype)
        holds(array)


@pytest.mark.parametrize("shape, rank", [((6, 9), 0), ((2, 6, 9), 1), ((2, 3, 4, 5, 6), 2)])
def test_redistribute_tensors(shape: tuple[int, ...], rank: int) -> None:
    array = filled(shape, rank=rank)
    moved = array.redistribute(0).copy()
    check(moved.rank == rank and moved.alignment == 0 and moved.commsizes[rank] == 1)
    holds(moved)
    array[...] = 0
    check(moved.redistribute(out=array) is array)
    holds(array)
    check(array.redistribute(array.alignment) is array)


def test_redistribute_to_any_distribution() -> None:
    source = filled((8, 8, 8), subcomm=(0, 1, 1))
    for grid in ((1, 0, 1), (1, 1, 0), (1, 0, 0), (0, 1, 0)):
        target = DistArray((8, 8, 8), subcomm=grid)
        source.redistribute(out=target)
        holds(target)
    one = DistArray((8, 8, 8), subcomm=(0, 1, 1), alignment=1)
    one[...] = source
    # If an axis is not cut, it only becomes the aligned one.
    check(one.redistribute(2) is one and one.alignment == 2)
    holds(one)


def test_redistribute_five_axes() -> None:
    array = filled((4, 4, 3, 2, 3), subcomm=(0, 1, 1, 1, 1))
    holds(array.redistribute(0))


def test_get() -> None:
    shape = (5, 6, 7)
    array = filled(shape)
    expected = 100 * whole(shape, float)
    for index in (
        (0, slice(None), 0),
        (slice(None), 5, slice(None)),
        (4, 5, 6),
        (slice(1, 4), slice(None, None, 2), -1),
        (slice(None),) * 3,
        (slice(3, 1), 0, 0),
    ):
        for one in (array, array.redistribute(0)):
            found = one.get(index)
            if COMM.rank == 0:
                assert found is not None and found.shape == expected[index].shape
                same = (found == expected[index]).all()
            else:
                same = found is None
            check(same, index)
    vectors = DistArray((3, 4, 4), rank=1, val=COMM.rank)
    found = vectors.get((1, slice(None), 0))
    check(found is None if COMM.rank else (np.sort(found) == found).all())


# -- arrays of transforms -----------------------------------------------------------------------


@pytest.mark.parametrize("forward_output", [False, True])
def test_new_arrays(forward_output: bool) -> None:
    fft = PFFT(COMM, (8, 6, 7), padding=[1, 1.5, 1])
    for rank in (0, 1, 2):
        array = newDistArray(fft, forward_output, val=2, rank=rank)
        check(array.rank == rank and (array.v == 2).all())
        check(array.dtype == fft.dtype(forward_output))
        check(array.global_shape == (3,) * rank + fft.global_shape(forward_output))
        check(array.shape == (3,) * rank + fft.shape(forward_output))
        check(array.local_slice()[rank:] == fft.local_slice(forward_output))
        view = newDistArray(fft, forward_output, rank=rank, view=True)
        check(type(view) is np.ndarray and view.base.rank == rank and not view.any())


def test_transform_like_an_array() -> None:
    u = filled((8, 6, 7), alignment=0).redistribute(2).redistribute(1)
    expected = np.fft.fftn(100 * whole((8, 6, 7), float), norm="forward")
    fft = PFFT(COMM, darray=u)
    check(fft.axes == ((2,), (0,), (1,)) and fft.shape(False) == u.shape)
    u_hat = newDistArray(fft)
    fft.forward(u, u_hat)
    half = expected[:, :4]
    close(u_hat.v, half[u_hat.local_slice()])
    fft.backward(u_hat, u)
    close(u.v, (100 * whole((8, 6, 7), float))[u.local_slice()])
    vectors = DistArray((3, 8, 6, 7), subcomm=u.subcomm, alignment=1, rank=1, dtype=complex)
    for darray, axes in ((vectors, (0, 2, 1)), (vectors[0], (0, 2, 1))):
        other = PFFT(COMM, darray=darray, axes=axes)
        check(np.dtype(other.dtype(True)) == np.complex128 and other.axes[-1] == (1,))
    with pytest.raises(thriffty.Error, match="padding"):
        PFFT(COMM, darray=u, padding=1.5)
    if u.commsizes[0] > 1:
        with pytest.raises(thriffty.Error, match="transformed first"):
            PFFT(COMM, darray=u, axes=(1, 2, 0))


@pytest.mark.parametrize(
    "words, call",
    [
        ("rank: found 3", lambda: DistArray((4, 4), rank=3)),
        ("alignment: found 2", lambda: DistArray((4, 4), alignment=2)),
        ("grid of ranks", lambda: DistArray((4, 4), subcomm=(5, 7))),
        ("axes of subcomm: found 1", lambda: DistArray((4, 4), subcomm=(0,))),
        ("subcomm: found", lambda: DistArray((4, 4), subcomm=(COMM, COMM))),
        ("axis: found 2", lambda: DistArray((4, 4)).redistribute(2)),
        ("one of them", lambda: DistArray((4, 4)).redistribute()),
        ("a DistArray", lambda: DistArray((4, 4)).redistribute(out=np.zeros((4, 4)))),
        ("shape of out", lambda: DistArray((4, 4)).redistribute(out=DistArray((4, 5)))),
        ("dtype of out", lambda: DistArray((4, 4)).redistribute(out=DistArray((4, 4), dtype=int))),
        ("alignment of out", lambda: DistArray((4, 4)).redistribute(0, DistArray((4, 4)))),
        ("dtype: found bool", lambda: DistArray((4, 4), dtype=bool).redistribute(0)),
        ("gslice", lambda: DistArray((4, 4)).get((0,))),
        ("gslice: found 4", lambda: DistArray((4, 4)).get((0, 4))),
    ],
)
def test_errors(words: str, call: Any) -> None:
    if words == "dtype: found bool" and RANKS == 1:
        return  # Nothing moves.
    with pytest.raises(thriffty.Error, match=words):
        call()


# -- the example --------------------------------------------------------------------------------


def test_navier_stokes() -> None:
    path = Path(__file__).parents[3] / "examples" / "python" / "navier_stokes.py"
    spec = importlib.util.spec_from_file_location("navier_stokes", path)
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    flow = example.Flow(COMM, 32, 0.000625)
    flow.start()
    for _ in range(10):
        flow.step(0.01)
    check(abs(flow.energy() - example.REFERENCE) < 1e-12, flow.energy())
    flow.destroy()
