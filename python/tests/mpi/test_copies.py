"""Copies between the arrays of all ranks, and ghost points, against whole arrays."""

import gc

import numpy as np
import pytest
from mpi4py import MPI

import thriffty

WORLD = MPI.COMM_WORLD
RANK, RANKS = WORLD.rank, WORLD.size
LAST = RANKS - 1


class OnDevice:
    """An object that claims to be an array on a device."""

    __cuda_array_interface__ = dict(shape=(2, 3), typestr="<f8", data=(4096, False), version=3)


def all_true(mine):
    return all(WORLD.allgather(bool(mine)))


def boxes(rng, shape):
    """Bricks that tile the grid, dealt to the ranks: several for some, none for others."""
    bricks = [[(0, n) for n in shape]]
    for _ in range(rng.integers(3 * RANKS)):
        brick = bricks.pop(rng.integers(len(bricks)))
        axis = rng.integers(len(shape))
        lo, hi = brick[axis]
        cut = rng.integers(lo, hi + 1)
        halves = [list(brick), list(brick)]
        halves[0][axis], halves[1][axis] = (lo, cut), (cut, hi)
        bricks.extend(halves)
    owners = rng.integers(RANKS, size=len(bricks))
    mine = [brick for brick, owner in zip(bricks, owners) if owner == RANK]
    return [tuple(slice(*bounds) for bounds in brick) for brick in mine]


def view(rng, shape, dtype):
    """An array of this shape within a larger one, in any order of axes and with any steps."""
    order = rng.permutation(len(shape))
    steps = rng.integers(1, 3, size=len(shape))
    larger = np.full([shape[axis] * steps[axis] + 2 for axis in order], np.nan, dtype)
    inner = larger[tuple(np.s_[1 : 1 + shape[axis] * steps[axis] : steps[axis]] for axis in order)]
    return inner.transpose(np.argsort(order))


@pytest.mark.parametrize("seed", range(6))
def test_copies_bring_each_point_from_where_it_is(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 8, size=rng.integers(1, 5)))
    dtype, batch = (np.dtype("f4"), np.dtype("c16"))[seed % 2], int(rng.integers(1, 3))
    whole = rng.random((batch, *shape)).astype(dtype)
    if batch == 1:
        whole = whole[0]
    with thriffty.Plan(shape, dtype, comm=WORLD, batch=batch) as plan:
        sides = []
        for _ in range(2):
            side = []
            for slices in boxes(rng, shape):
                part = whole[(..., *slices)]
                side.append((slices, view(np.random.default_rng(RANK), part.shape, dtype)))
            sides.append(side)
        for slices, array in sides[0]:
            array[...] = whole[(..., *slices)]
        with thriffty.ParallelCopy(plan, *sides) as copy:
            copy.run()
        assert all_true(
            all(np.array_equal(array, whole[(..., *slices)]) for slices, array in sides[1])
        )


def test_halos_of_two_bricks_in_one_array():
    whole = np.arange(10.0 * RANKS).reshape(2 * RANKS, 5)
    rows = slice(2 * RANK, 2 * RANK + 2)
    with thriffty.Plan(whole.shape, float, comm=WORLD) as plan:
        u = np.zeros((4, 5))
        u[1:3] = whole[rows]
        parts = [((rows, slice(0, 2)), u[:, :2]), ((rows, slice(2, 5)), u[:, 2:])]
        with thriffty.Halo(plan, parts, (1, 0), (1, 0)) as halo:
            halo.run()
        index = np.arange(rows.start - 1, rows.stop + 1)
        assert all_true(np.array_equal(u, whole.take(index, 0, mode="wrap")))


def test_ghost_points_are_those_of_the_grid():
    shape, lower, upper = (3 * RANKS + 1, 4, 5), (2, 1, 0), (1, 0, 3)
    whole = np.random.default_rng(1).random(shape)
    with thriffty.Plan(shape, float, comm=WORLD) as plan:
        brick = plan.input_slices
        index = [
            np.arange(part.start - below, part.stop + above)
            for part, below, above in zip(brick, lower, upper)
        ]
        for periodic in (True, (True, False, True)):
            wanted = whole.take(index[0], 0, mode="wrap").take(index[1], 1, mode="wrap")
            wanted = wanted.take(index[2], 2, mode="wrap")
            if periodic is not True:
                wanted[:, index[1] < 0] = -1
            u = np.full_like(wanted, -1)
            inner = tuple(
                slice(below, below + part.stop - part.start) for part, below in zip(brick, lower)
            )
            u[inner] = whole[brick]
            with thriffty.Halo(plan, [(brick, u)], lower, upper, periodic) as halo:
                halo.run()
            assert all_true(np.array_equal(u, wanted))


def test_fields_come_from_where_the_program_has_them():
    shape = (6, 7, 8)
    rng = np.random.default_rng(3)
    whole = rng.random(shape)
    options = dict(transposed_input=True, transposed_output=True)
    with thriffty.Plan(shape, float, comm=WORLD, **options) as plan:
        x = plan.empty_input()
        mine = [(part, np.array(whole[part])) for part in boxes(rng, shape)]
        own = [(plan.input_slices, x)]
        thriffty.ParallelCopy(plan, mine, own).run()
        spectrum = plan.forward(x)
        assert all_true(np.allclose(spectrum, np.fft.rfftn(whole)[plan.output_slices]))
        there = [
            (part, np.empty_like(spectrum, shape=[s.stop - s.start for s in part]))
            for part in boxes(rng, plan.spectral_shape)
        ]
        thriffty.ParallelCopy(plan, [(plan.output_slices, spectrum)], there, "output").run()
        assert all_true(all(np.allclose(array, np.fft.rfftn(whole)[part]) for part, array in there))
        gc.collect()


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (dict(array=np.zeros((2, 3), "f4")), "dtype of the source"),
        (dict(array=np.zeros((3, 3))), "shape of the source"),
        (dict(array=[1.0]), "found list, expected a NumPy array"),
        (dict(array=OnDevice()), "found on a device, expected on the host"),
        (dict(slices=np.s_[0:2]), "slices of brick of the source"),
        (dict(array=np.zeros((2, 3))[::-1]), "strides of the source"),
        (dict(side="up"), "side"),
    ],
)
def test_what_is_wrong_on_one_rank_is_an_error_of_all(wrong, text):
    rows = np.s_[2 * RANK : 2 * RANK + 2, 0:3]
    usual = dict(slices=rows, array=np.zeros((2, 3)), side="input")
    asked = usual | (wrong if RANK == LAST else {})
    target = [(rows, np.zeros((2, 3)))]
    with thriffty.Plan((2 * RANKS, 3), float, comm=WORLD) as plan:
        with pytest.raises(ValueError, match=text):
            sources = [(asked["slices"], asked["array"])]
            thriffty.ParallelCopy(plan, sources, target, asked["side"])
        copy = thriffty.ParallelCopy(plan, [(rows, np.ones((2, 3)))], target)
        copy.run()
        assert all_true((target[0][1] == 1).all())
        copy.close()
        with pytest.raises(thriffty.Error, match="closed"):
            copy.run()


def test_two_views_of_one_array_are_source_and_target():
    shape = (RANKS, 3, 1)
    mine = np.s_[RANK : RANK + 1, 0:3, 0:1]
    both = np.arange(6.0) + 10 * RANK
    # Strides of axes with one element do not matter.
    source, target = both[None, :3, None][:, :, ::-1], both[3:].reshape(1, 3, 1)
    with thriffty.Plan(shape, float, comm=WORLD) as plan:
        with thriffty.ParallelCopy(plan, [(mine, source)], [(mine, target)]) as copy:
            copy.run()
    assert all_true(np.array_equal(both[3:], both[:3]) and both[0] == 10 * RANK)
