"""PFFT against transforms of whole arrays. Run as `mpirun -n P python -m pytest test_pfft.py`."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from math import floor
from typing import Any

import numpy as np
import pytest
import scipy.fft
from pfft_oracle import COMM, Axis, both_ways, check, close, forward, whole

import thriffty
from thriffty import PFFT, newDistArray
from thriffty.transforms import dctn, dstn, fftn, idctn, idstn, ifftn, irfftn, rfftn

RANKS = COMM.size


def fourier(
    shape: Sequence[int], dtype: Any, axes: Sequence[int] | None = None, padding: Any = None
) -> list[Axis]:
    """Fourier transforms in the order of PFFT: the last of `axes` first."""
    order = list(reversed(range(len(shape)) if axes is None else axes))
    kinds = ["c2c" if np.dtype(dtype).kind == "c" else "r2c"] + ["c2c"] * (len(order) - 1)
    factors = [1] * len(shape) if padding is None else padding
    return [
        Axis(axis % len(shape), kind, floor(shape[axis] * factors[axis]), shape[axis])
        for axis, kind in zip(order, kinds)
    ]


def pair(forward_name: Any, backward_name: Any, type: int) -> tuple[Any, Any]:
    return functools.partial(forward_name, type=type), functools.partial(backward_name, type=type)


# -- the examples of mpi4py-fft's documentation -------------------------------------------------


def test_documented_example_of_a_round_trip() -> None:
    N = np.array([12, 14, 15], dtype=int)
    fft = PFFT(COMM, N, axes=(0, 1, 2))
    u = newDistArray(fft, False)
    u[:] = np.random.random(u.shape).astype(u.dtype)
    u_hat = fft.forward(u)
    uj = np.zeros_like(u)
    uj = fft.backward(u_hat, uj)
    check(np.allclose(uj, u))


def test_documented_example_of_cosine_transforms() -> None:
    dct, idct = pair(dctn, idctn, 3)
    r2c = PFFT(COMM, (12, 14, 15), axes=((0,), (1, 2)), transforms={(1, 2): (dct, idct)})
    u = newDistArray(r2c, False)
    u[:] = np.random.random(u.shape).astype(u.dtype)
    u_hat = r2c.forward(u)
    uj = np.zeros_like(u)
    uj = r2c.backward(u_hat, uj)
    check(np.allclose(uj, u))
    check(u_hat.dtype == complex)


def test_documented_example_of_a_convolution() -> None:
    N = (16, 16)
    fft = PFFT(COMM, N, padding=[1.5, 1.5], dtype=complex)
    a_hat, b_hat = newDistArray(fft, True), newDistArray(fft, True)
    alls = [whole(N, complex, seed) for seed in (3, 4)]
    for one in alls:
        # Without the highest frequency, whose products alias.
        one[8, :] = one[:, 8] = 0
    a_hat[:], b_hat[:] = (one[fft.local_slice(True)] for one in alls)
    a, b = newDistArray(fft, False), newDistArray(fft, False)
    if 24 % RANKS == 0:
        check(a.shape == (24 // RANKS, 24))
    a = fft.backward(a_hat, a)
    b = fft.backward(b_hat, b)
    ab_hat = fft.forward(a * b)

    # Frequencies from -7 to 7, of products from -14 to 14.
    one, other = (np.fft.fftshift(each)[1:, 1:] for each in alls)
    products = np.zeros((29, 29), complex)
    for i, j in np.ndindex(15, 15):
        products[i : i + 15, j : j + 15] += one[i, j] * other
    expected = np.zeros(N, complex)
    expected[1:, 1:] = products[7:22, 7:22]
    expected = np.fft.ifftshift(expected)
    # Products at the highest frequency contain both -8 and 8.
    inner = np.abs(np.fft.fftfreq(16, 1 / 16)) < 8
    known = np.outer(inner, inner)[fft.local_slice(True)]
    close(ab_hat * known, expected[fft.local_slice(True)])


def test_documented_distributions() -> None:
    N = [16, 16, 16]
    slab = PFFT(COMM, N, grid=(-1,))
    expected = ([RANKS, 1, 1], [1, RANKS, 1])
    for forward_output in (False, True):
        check(newDistArray(slab, forward_output).commsizes == expected[forward_output])
    if RANKS == 2:
        fft = PFFT(COMM, N, axes=(2, 0, 1))
        check(fft.shape(False) == (8, 16, 16))
        check(fft.shape(True) == ((16, 5, 16), (16, 4, 16))[COMM.rank])
    if RANKS == 4:
        fft = PFFT(COMM, N, axes=(2, 0, 1))
        check(fft.shape(False) == (8, 16, 8))
        check(fft.shape(True) == (8, 5 if COMM.rank < 2 else 4, 16), fft.shape(True))
        sizes = [newDistArray(PFFT(COMM, N), output).commsizes for output in (False, True)]
        check(sizes == [[2, 2, 1], [1, 2, 2]], sizes)


# -- Fourier transforms -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["d", "F"])
@pytest.mark.parametrize(
    "axes, order",
    [
        (None, [0, 1, 2]),
        ((2, 0, 1), [2, 0, 1]),
        ((0, 1), [0, 1]),
        (np.array([0, 2]), [0, 2]),
        ((1,), [1]),
        (-1, [2]),
        (((0,), (1, 2)), [0, 1, 2]),
        (([1, 0], -1), [1, 0, 2]),
    ],
)
def test_axes(axes: Any, order: list[int], dtype: str) -> None:
    shape = (6, 7, 5)
    fft = PFFT(COMM, shape, axes=axes, dtype=dtype)
    both_ways(fft, fourier(shape, dtype, order))
    fft.destroy()


@pytest.mark.parametrize("shape", [(8, 9), (5, 4, 6), (4, 3, 5, 6), (2, 3, 2)])
@pytest.mark.parametrize("options", [{}, {"grid": (-1,)}, {"collapse": True}, {"slab": True}])
def test_grids(shape: tuple[int, ...], options: dict) -> None:
    fft = PFFT(COMM, shape, **options)
    both_ways(fft, fourier(shape, float), shape, options)
    check(fft.dimensions == len(shape) and fft.subcomm.sizes[-1] == 1)
    sizes = [int(np.prod(part)) for part in COMM.allgather(fft.shape(True))]
    check(sum(sizes) == np.prod(fft.global_shape(True)))


def test_one_axis_on_one_rank() -> None:
    both_ways(PFFT(None, (9,)), fourier((9,), float))
    both_ways(PFFT(None, (9,), dtype="F"), fourier((9,), "F"))
    both_ways(PFFT(None, (6,), padding=1.5), fourier((6,), float, None, [1.5]))


@pytest.mark.parametrize("dtype", ["d", "D"])
@pytest.mark.parametrize("shape", [(8, 6, 7), (5, 7, 8), (6, 8, 9), (4, 5, 6), (6, 4, 11)])
def test_padding(shape: tuple[int, ...], dtype: str) -> None:
    for padding in ([1.5, 1.5, 1.5], [1, 1.5, 2], [2, 1, 1], [1.3, 1.01, 1.5]):
        fft = PFFT(COMM, shape, dtype=dtype, padding=padding)
        fine = tuple(floor(n * factor) for n, factor in zip(shape, padding))
        check(fft.global_shape(False) == fine)
        both_ways(fft, fourier(shape, dtype, None, padding), padding)
        fft.destroy()


@pytest.mark.parametrize("dtype", ["d", "D"])
def test_padding_of_other_shapes(dtype: str) -> None:
    for shape, axes in (((6, 5), None), ((2, 4, 3, 5), None), ((6, 5, 8), (2, 0, 1)), ((6, 8), 0)):
        padding = [1.5] * len(shape)
        fft = PFFT(COMM, shape, axes=axes, dtype=dtype, padding=1.5)
        flat = None if axes is None else np.ravel(axes).tolist()
        plain = [1.5 if flat is None or axis in flat else 1 for axis in range(len(padding))]
        both_ways(fft, fourier(shape, dtype, flat, plain), shape, axes)
    single = PFFT(COMM, (6, 5, 8), dtype="f" if dtype == "d" else "F", padding=1.5)
    both_ways(single, fourier((6, 5, 8), dtype, None, [1.5] * 3))
    group = PFFT(COMM, (6, 5, 8), axes=((0,), (1, 2)), dtype=dtype, padding=[1, 1.5, 1.5])
    both_ways(group, fourier((6, 5, 8), dtype, None, [1, 1.5, 1.5]))
    same = PFFT(COMM, (6, 5, 8), dtype=dtype, padding=[1, 1.5, 1.5], collapse=True)
    both_ways(same, fourier((6, 5, 8), dtype, None, [1, 1.5, 1.5]))


def test_padded_fields_go_through_the_values_on_the_coarse_grid() -> None:
    shape = (8, 6, 4)
    plain, fine = PFFT(COMM, shape), PFFT(COMM, shape, padding=2)
    u = whole(shape, float)
    u_hat = newDistArray(plain)
    plain.forward(u[plain.local_slice(False)], u_hat)
    on_fine = newDistArray(fine, False)
    fine.backward(u_hat, on_fine)
    parts = [np.asarray(part) for part in COMM.allgather(on_fine.v)]
    gathered = np.zeros(fine.global_shape(False))
    for part, place in zip(parts, COMM.allgather(on_fine.local_slice())):
        gathered[place] = part
    close(gathered[::2, ::2, ::2], u)
    again = newDistArray(fine)
    fine.forward(on_fine, again)
    close(again.v, u_hat.v)


# -- cosine and sine transforms -----------------------------------------------------------------


@pytest.mark.parametrize("type", [1, 2, 3, 4])
def test_cosine_and_sine_transforms(type: int) -> None:
    shape = (5, 6, 7)
    cosine, sine = pair(dctn, idctn, type), pair(dstn, idstn, type)
    fft = PFFT(COMM, shape, axes=((0,), (1, 2)), transforms={(0,): sine, (1, 2): cosine})
    dct, dst = f"dct{type}", f"dst{type}"
    both_ways(fft, [Axis(2, dct, 7), Axis(1, dct, 6), Axis(0, dst, 5)])
    check(len(fft.plans) == 1 and np.dtype(fft.dtype(True)) == np.float64)

    # An inverse as the forward transform is another type.
    backwards = PFFT(COMM, shape, (0, 1, 2), transforms={(2,): cosine[::-1]}, dtype="f")
    other = {1: 1, 2: 3, 3: 2, 4: 4}[type]
    both_ways(backwards, [Axis(2, f"dct{other}", 7), Axis(1, "r2c", 6), Axis(0, "c2c", 5)])


def test_mixed_transforms() -> None:
    shape = (5, 6, 7)
    cosine, sine = pair(dctn, idctn, 2), pair(dstn, idstn, 1)
    real, complexes = (rfftn, irfftn), (fftn, ifftn)

    transforms = {(0,): complexes, (1,): real, (2,): cosine}
    fft = PFFT(COMM, shape, (0, 1, 2), transforms=transforms)
    both_ways(fft, [Axis(2, "dct2", 7), Axis(1, "r2c", 6), Axis(0, "c2c", 5)])

    # Cosine and sine transforms of complex data, which mpi4py-fft does not have.
    fft = PFFT(COMM, shape, (0, 1, 2), transforms={0: cosine, (1,): sine})
    both_ways(fft, [Axis(2, "r2c", 7), Axis(1, "dst1", 6), Axis(0, "dct2", 5)])
    fft = PFFT(COMM, shape, (0, 1, 2), "F", transforms={(-1,): sine})
    both_ways(fft, [Axis(2, "dst1", 7), Axis(1, "c2c", 6), Axis(0, "c2c", 5)])

    axes = ((0,), (1, 2), (3,))
    fft = PFFT(COMM, (3, 4, 5, 6), axes, transforms={(1, 2): sine, (3,): real, (0,): complexes})
    steps = [Axis(3, "r2c", 6), Axis(2, "dst1", 5), Axis(1, "dst1", 4), Axis(0, "c2c", 3)]
    both_ways(fft, steps)


def test_mixed_transforms_with_padding() -> None:
    transforms = {(2,): pair(dctn, idctn, 3)}
    fft = PFFT(COMM, (6, 8, 7), padding=[1.5, 1.5, 1], transforms=transforms)
    both_ways(fft, [Axis(2, "dct3", 7), Axis(1, "r2c", 12, 8), Axis(0, "c2c", 9, 6)])


def test_transforms_of_collapsed_groups_do_not_depend_on_ranks() -> None:
    transforms = {(1, 2): pair(dctn, idctn, 3)}
    options = {"transforms": transforms, "slab": True}
    fft = PFFT(COMM, (6, 6, 6), axes=((0,), (1, 2)), collapse=True, **options)
    both_ways(fft, [Axis(2, "dct3", 6), Axis(1, "dct3", 6), Axis(0, "r2c", 6)])


def test_functions_of_other_libraries() -> None:
    transforms = {(2,): pair(scipy.fft.dctn, scipy.fft.idctn, 4)}
    fft = PFFT(COMM, (4, 5, 6), transforms=transforms)
    both_ways(fft, [Axis(2, "dct4", 6), Axis(1, "r2c", 5), Axis(0, "c2c", 4)])


# -- calls --------------------------------------------------------------------------------------


def test_normalize() -> None:
    shape = (4, 5, 6)
    transforms = {(2,): pair(dctn, idctn, 1)}
    fft = PFFT(COMM, shape, transforms=transforms)
    points = 4 * 5 * 10
    u = newDistArray(fft, False)
    u[:] = whole(shape, float)[fft.local_slice(False)]
    u_hat = fft.forward(u).copy()
    close(fft.forward(u, normalize=False), points * u_hat)
    close(fft.forward(u, normalize=True), u_hat)
    close(fft.backward(u_hat), u.v)
    close(fft.backward(u_hat, normalize=True), u.v / points)
    close(fft.backward(u_hat, normalize=False), u.v)


@pytest.mark.parametrize("options", [{}, {"padding": 1.5}])
def test_arrays_of_a_transform(options: dict) -> None:
    shape = (4, 6, 5)
    fft = PFFT(COMM, shape, dtype=complex, **options)
    u = whole(fft.global_shape(False), complex)
    expected = forward(u, fourier(shape, complex, None, [1.5] * 3 if options else None))
    mine, theirs = u[fft.local_slice(False)], expected[fft.local_slice(True)]

    # Without arguments, and by the arrays of both directions.
    fft.forward.input_array[...] = mine
    fft.forward()
    close(fft.forward.output_array, theirs)
    check(fft.forward.output_array is fft.backward.input_array)
    check(fft.forward.input_array is fft.backward.output_array)
    back = fft.backward()
    check(back is fft.backward.output_array)

    # Into an array of another type, and into one that is not contiguous.
    single = np.zeros(fft.shape(True), np.complex64)
    check(fft.forward(mine, single) is single)
    close(single, theirs)
    room = np.zeros((*fft.shape(True), 2), complex)
    check(fft.forward(np.asfortranarray(mine), room[..., 0]).base is room)
    close(room[..., 0].copy(), theirs)
    check(not room[..., 1].any())
    close(fft.forward(mine.real.astype(int)).copy(), fft.forward(mine.real.astype(int) + 0j))

    # Between two arrays of the transform, and input that must not change.
    first = fft.forward(mine).copy()
    kept = mine.copy()
    fft.forward(kept)
    check((kept == mine).all())
    if fft.shape(True) == fft.shape(False):
        fft.forward(fft.forward.output_array)
        same = kept.copy()
        fft.forward(same, same)
        close(same, first)
    # Memory of input and output may overlap.
    (n, m), room = (mine.size, theirs.size), np.zeros(max(mine.size, theirs.size) + 1, complex)
    over, under = room[:n].reshape(mine.shape), room[-m:].reshape(theirs.shape)
    over[...] = mine
    close(fft.forward(over, under), first)


def test_vector_fields() -> None:
    fft = PFFT(COMM, (6, 7, 8))
    u, u_hat = newDistArray(fft, False, rank=1), newDistArray(fft, rank=1)
    all_u = whole((3, 6, 7, 8), float)
    u[:] = all_u[(slice(None), *fft.local_slice(False))]
    for i in range(3):
        u_hat[i] = fft.forward(u[i], u_hat[i])
    expected = np.fft.rfftn(all_u, axes=(1, 2, 3), norm="forward")
    close(u_hat.v, expected[(slice(None), *fft.local_slice(True))])


def test_tolerance() -> None:
    shape = (16, 12, 8)
    for options in ({}, {"padding": 1.5}):
        wire = {"tolerance": 1e-4, "ignore_shared_memory": True}
        exact, lossy = PFFT(COMM, shape, **options), PFFT(COMM, shape, **wire, **options)
        u = whole(exact.global_shape(False), float)[exact.local_slice(False)]
        expected, found = exact.forward(u), lossy.forward(u)
        error = COMM.allreduce(np.sum(np.abs(found - expected) ** 2))
        norm = COMM.allreduce(np.sum(np.abs(expected) ** 2))
        check(error <= 1e-8 * norm, error, norm)
        if RANKS > 1:
            check(error > 0)


# -- errors -------------------------------------------------------------------------------------


def refused(words: str, call: Any) -> None:
    """Checks that a call fails with the same error on every rank."""
    text = ""
    try:
        call()
    except thriffty.Error as error:
        text = str(error)
    texts = COMM.allgather(text)
    check(len(set(texts)) == 1, texts)
    for word in words.split("|"):
        check(word in text, word, text)


@pytest.mark.parametrize(
    "words, options",
    [
        ("number of axes|5|1 to 4", {"shape": (2, 2, 2, 2, 2)}),
        ("shape|(4, 0, 4)", {"shape": (4, 0, 4)}),
        ("shape|None", {"shape": None}),
        ("dtype|float128|float64", {"dtype": np.longdouble}),
        ("dtype|int64", {"dtype": int}),
        ("axes|3|-3 to 2", {"axes": (0, 3)}),
        ("axes|each axis once", {"axes": ((0, 1), (1, 2))}),
        ("axes", {"axes": ()}),
        ("padding|0.5", {"padding": [0.5, 1, 1]}),
        ("padding|[1.5]", {"padding": [1.5]}),
        ("padding|True", {"padding": True}),
        ("padding of axis 2|dct2", {"padding": 1.5, "transforms": {2: (dctn, idctn)}}),
        ("transforms|(7,)|-3 to 2", {"transforms": {(7,): (dctn, idctn)}}),
        ("transforms|groups", {"transforms": {(1, 2): (dctn, idctn)}}),
        ("rfftn|complex|fftn", {"transforms": {(0,): (rfftn, irfftn)}}),
        ("fftn|real|rfftn", {"transforms": {(2,): (fftn, ifftn)}}),
        ("transforms|ifftn|fftn, rfftn", {"transforms": {(2,): (ifftn, fftn)}}),
        ("idctn of type 2|dctn of type 2", {"transforms": {(2,): (dctn, idstn)}}),
        ("type 5", {"transforms": {(2,): pair(dctn, idctn, 5)}}),
        ("pair", {"transforms": {(2,): dctn}}),
        ("keyword|speed|tolerance", {"speed": 3}),
        ("grid", {"grid": (7, 1, 1)}),
        ("grid", {"grid": (1, 1, 1, 1)}),
        ("grid", {"grid": (-1,), "slab": True}),
        ("tolerance", {"tolerance": -1.0}),
    ],
)
def test_what_is_refused(words: str, options: dict) -> None:
    if "(7,)" in words:
        words = "transforms|7|-3 to 2"
    refused(words, lambda: PFFT(COMM, **{"shape": (4, 6, 8), **options}))


def test_what_several_ranks_cannot_do() -> None:
    if RANKS > 1:
        refused("grid of ranks|(1,)", lambda: PFFT(COMM, (8,)))
        refused("transformed first", lambda: PFFT(COMM, (4, 6, 8), grid=(1, 1, -1)))


def test_errors_of_one_rank_are_errors_of_all() -> None:
    last = COMM.rank == RANKS - 1
    refused(
        f"rank {RANKS - 1}|dtype",
        lambda: PFFT(COMM, (4, 6, 8), dtype="i" if last else "d"),
    )
    fft = PFFT(COMM, (4, 6, 8))
    u, u_hat = newDistArray(fft, False), newDistArray(fft)
    wrong = np.zeros((1, 2))
    for call in (
        lambda: fft.forward(wrong if last else u),
        lambda: fft.forward(u, wrong if last else u_hat),
        lambda: fft.backward(wrong if last else u_hat),
        lambda: fft.backward(u_hat, wrong if last else u),
    ):
        with pytest.raises(thriffty.Error, match=r"shape of (in|out)put_array.*\(1, 2\)"):
            call()
    text, fixed = np.full(fft.shape(False), "a"), np.zeros(fft.shape(True), complex)
    fixed.flags.writeable = False
    refused("could not convert", lambda: fft.forward(text if last else u))
    refused("can be written", lambda: fft.forward(u, fixed if last else u_hat))
    # The transform still works.
    close(fft.forward(u, u_hat).v, np.zeros(fft.shape(True)))


def test_transforms_are_names_only() -> None:
    for function in (fftn, ifftn, rfftn, irfftn, dctn, idctn, dstn, idstn):
        with pytest.raises(thriffty.Error, match=f"thriffty.{function.__name__}"):
            function(np.zeros(3))
