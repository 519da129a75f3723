"""The program of `test_ends.py`: plans on other threads, and after the end of MPI."""

import copy
import gc
import sys
import threading

import mpi4py
import numpy as np

LEVEL = sys.argv[1]
mpi4py.rc.thread_level = LEVEL
mpi4py.rc.finalize = False

from mpi4py import MPI  # noqa: E402

import thriffty  # noqa: E402

WORLD = MPI.COMM_WORLD
SHAPE = (6, 5)


def elsewhere(call):
    """Calls on another thread, and returns or raises as the call does."""
    found = []

    def run():
        try:
            found.append(call())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def refused(text, *calls):
    """Checks that calls raise a TransportError with this text."""
    for call in calls:
        try:
            call()
        except thriffty.TransportError as error:
            assert text in str(error), error
        else:
            raise AssertionError("a call that ends no job, and raises no error")


def on_threads(threads):
    """Makes and uses a plan on several threads if MPI allows it."""
    made = elsewhere(lambda: thriffty.Plan(SHAPE, comm=WORLD, threads=threads))
    if LEVEL == "funneled":
        assert isinstance(made, thriffty.TransportError) and "SERIALIZED" in str(made), made
        made = thriffty.Plan(SHAPE, comm=WORLD, threads=threads)
    x = np.ones(made.input_shape, complex)
    found = elsewhere(lambda: made.forward(x))
    if LEVEL == "funneled":
        alone = threads > 1 and WORLD.size == 1
        assert alone or isinstance(found, thriffty.TransportError), found
        found = made.forward(x)
    if all(part.start == 0 for part in made.output_slices):
        assert abs(found[0, 0] - 30) < 1e-12
    made.close()


def main():
    assert MPI.Query_thread() == getattr(MPI, f"THREAD_{LEVEL.upper()}")
    for threads in (1, 2):
        on_threads(threads)
    plans = [thriffty.Plan(SHAPE, comm=WORLD, **options) for options in ({}, {"threads": 2}, {})]
    shared = thriffty.Plan(SHAPE, comm=WORLD, shared_arrays=True)
    room = shared.empty_input()
    plan, forgotten = plans[0], plans.pop()
    x, part = plan.empty_input(), plan.input_slices
    y = plan.forward(x)
    fft = thriffty.PFFT(WORLD, SHAPE)
    u = thriffty.newDistArray(fft, False)
    load = thriffty.ParallelCopy(plan, [(part, x)], [(part, x.copy())])
    ghosts = np.zeros([piece.stop - piece.start + 2 for piece in part], complex)
    halo = thriffty.Halo(plan, [(part, ghosts)], 1, 1)
    MPI.Finalize()

    assert shared.input_shape == room.shape
    refused(
        "MPI has been finalised",
        lambda: thriffty.Plan(SHAPE, comm=WORLD),
        lambda: thriffty.Plan(SHAPE, comm=MPI.COMM_SELF),
        lambda: plan.forward(x),
        lambda: plan.inverse(y, out=x),
        lambda: plan.refuse(OSError("none")),
        lambda: plan.save_wisdom("wisdom.toml"),
        lambda: plan.green_function(1.0),
        lambda: shared.empty_input(),
        lambda: thriffty.ParallelCopy(plan, [(part, x)], [(part, x.copy())]),
        lambda: load.run(),
        lambda: halo.run(),
        lambda: thriffty.Halo(plan, [(part, ghosts)], 1, 1),
        lambda: thriffty.PFFT(WORLD, SHAPE),
        lambda: thriffty.PFFT(None, darray=u),
        lambda: fft.forward(u),
        lambda: fft.backward(),
        lambda: thriffty.DistArray(SHAPE),
        lambda: thriffty.DistArray(SHAPE, (0, 1)),
        lambda: u.redistribute(0),
        lambda: u.get((0, 0)),
    )
    # Calls that do not need MPI still work.
    assert plan.apply("laplacian", y).shape == y.shape and "ranks" in plan.recipe
    assert (u + 1).pencil == copy.deepcopy(u).pencil == u.pencil
    assert thriffty.newDistArray(fft).shape == fft.shape(True)
    assert thriffty.fftn(np.ones(SHAPE))[0, 0] == 30
    assert thriffty.Plan(SHAPE).forward(np.ones(SHAPE, complex))[0, 0] == 30
    try:
        thriffty.PFFT(None, SHAPE)
    except thriffty.TransportError as error:
        raise AssertionError from error
    del forgotten
    gc.collect()
    for one in (load, halo, *plans):
        one.close()
    fft.destroy()
    print("all is well")


main()
