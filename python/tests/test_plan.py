"""Plans of one process, and arrays of other libraries."""

import copy
import gc
import multiprocessing
import pickle
import threading
import time
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import TOLERANCE, cases, distance, field, problems, transformed

import thriffty


@cases(150)
@given(problems(), st.integers(1, 3), st.booleans())
def test_plans_are_scipys(problem, threads, in_place):
    x = field(problem, 1)
    with thriffty.Plan(**problem.arguments(), threads=threads) as plan:
        assert plan.input_shape == x.shape
        if in_place:
            here, there = plan.empty_in_place()
        else:
            here, there = plan.empty_input(), plan.empty_output()
        here[...] = x
        y = plan.forward(here, out=there)
        assert y is there
        expected = transformed(problem, x)
        assert y.dtype == expected.dtype
        assert distance(y, expected) < TOLERANCE[problem.dtype]
        assert distance(plan.inverse(y, out=here), x) < TOLERANCE[problem.dtype]
        if not in_place:
            np.testing.assert_array_equal(plan.forward(here), plan.forward(here, out=there))


def test_what_a_plan_says():
    with thriffty.Plan((4, 6, 5), np.float32, threads=2) as plan:
        assert plan.shape == (4, 6, 5)
        assert plan.spectral_shape == plan.output_shape == (4, 6, 3)
        assert plan.input_slices == (slice(0, 4), slice(0, 6), slice(0, 5))
        assert (plan.input_dtype, plan.output_dtype) == (np.float32, np.complex64)
        assert plan.recipe.startswith("(r2c 4x6x5 f32 ranks=2")
        assert plan.recipe in plan.report
        assert plan.wire_error == (0.0, 0.0)
        plan.forward(np.zeros((4, 6, 5), np.float32))
        assert plan.timings["fft"] > 0
        plan.clear_timings()
        assert set(plan.timings.values()) == {0}
        assert plan.comm is None
        assert plan.workspace_bytes >= 0
        assert "ranks=2" in repr(plan)
    assert "closed" in repr(plan)
    with pytest.raises(thriffty.Error, match="closed"):
        plan.forward(np.zeros((4, 6, 5), np.float32))
    plan.close()


@pytest.mark.parametrize(
    "arguments, text",
    [
        (dict(shape=()), "number of axes: found 0"),
        (dict(shape=(2,) * 5), "number of axes: found 5, expected 1 to 4"),
        (dict(shape=(0, 4)), "0"),
        (dict(shape=(-1, 4)), "-1"),
        (dict(shape=4, dtype=int), "dtype: found int64, expected one of float32, float64"),
        (dict(shape=4, kinds="dct5"), "kinds: found dct5, expected one of none, c2c"),
        (dict(shape=4, kinds=("c2c", "c2c")), "kinds"),
        (dict(shape=4, kinds="r2c"), "kind"),
        (dict(shape=(4, 6), kinds=("c2c",)), "axes of kinds: found 1, expected 2"),
        (dict(shape=4, norm="unit"), "norm: found 'unit'"),
        (dict(shape=4, input_order=(1,)), "order: found"),
        (dict(shape=(4, 6), output_order=(1, 1)), "order: found"),
        (dict(shape=4, input_order="A"), "input_order: found A"),
        (dict(shape=4, wire="f33"), "wire"),
        (dict(shape=4, wire=5), "wire: found 5, expected one of raw"),
        (dict(shape=4, tuning=b"x"), "tuning: found x, expected model"),
        (dict(shape=4, tuning="wisdom:"), "tuning: found wisdom:, expected model"),
        (dict(shape=4, machine=3), "machine file 3"),
        (dict(shape=4, tuning="measure:-1s"), "-1s"),
        (dict(shape=4, device=-1), "device: found -1, expected host, cuda or the number"),
        (dict(shape=(4.0, 4)), "float"),
        (dict(shape=4, dtype="foo"), "foo"),
        (dict(shape=(2**64 + 4,)), "points: found 18446744073709551620"),
        (dict(shape=4, batch=2**64 + 1), "batch: found 18446744073709551617"),
        (dict(shape=4, threads=2**64 + 1), "threads: found 18446744073709551617"),
        (dict(shape=4, exchange="carrier pigeon"), "exchange"),
        (dict(shape=4, input=slice(0, 4)), "input"),
        (dict(shape=4, tuning="guess"), "tuning: found guess"),
        (dict(shape=4, norm="ortho", forward_scale="full"), "norm: found 'ortho' and a scale"),
        (dict(shape=4, tuning="recipe:(c2c"), "recipe"),
        (dict(shape=4, tolerance=-1.0), "tolerance"),
        (dict(shape=4, batch=0), "batch: found 0"),
        (dict(shape=4, threads=-1), "threads"),
    ],
)
def test_requests_without_meaning(arguments, text):
    with pytest.raises(ValueError, match=text):
        thriffty.Plan(**arguments)


def test_arrays_that_do_not_fit():
    plan = thriffty.Plan((4, 6))
    good = np.ones((4, 6), complex)
    read_only = np.ones((4, 6), complex)
    read_only.flags.writeable = False
    for x, out, text in [
        (good.real, None, "dtype of x: found float64, expected complex128"),
        (good[:3], None, r"shape of x: found \(3, 6\), expected \(4, 6\)"),
        (np.asfortranarray(good), None, "memory of x: found strides"),
        ([1, 2], None, "x: found list, expected an array"),
        (good, [1, 2], "out: found list, expected an array"),
        (good, good.astype(np.complex64), "dtype of out: found complex64"),
        (good, read_only, "out: found read-only"),
    ]:
        with pytest.raises(thriffty.ArgumentError, match=text):
            plan.forward(x, out=out)
    room = np.ones(40, complex)
    with pytest.raises(ValueError, match="overlap, expected arrays that lie apart, or"):
        plan.forward(room[:24].reshape(4, 6), out=room[8:32].reshape(4, 6))
    for call in (thriffty.ParallelCopy, thriffty.Halo):
        with pytest.raises(ValueError, match="plan: found int, expected a Plan"):
            call(7, [], [], [])
    with pytest.raises(ValueError, match="darray: found ndarray, expected a DistArray"):
        thriffty.PFFT(None, darray=good)
    assert plan.forward(read_only)[0, 0] == 24


class Foreign:
    """An array of another library, which NumPy can only take through DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **named):
        return self.array.__dlpack__(**named)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack():
    plan = thriffty.Plan((4, 6))
    x, out = np.arange(24.0).reshape(4, 6) + 0j, np.zeros((4, 6), complex)
    returned = plan.forward(Foreign(x), out=Foreign(out))
    assert isinstance(returned, Foreign)
    np.testing.assert_allclose(out, np.fft.fftn(x), atol=1e-12)


def test_torch():
    torch = pytest.importorskip("torch")
    plan = thriffty.Plan((4, 6), np.float32, input_order="F", output_order="F")
    x = torch.arange(24, dtype=torch.float32).reshape(6, 4).T
    y = plan.forward(x)
    assert isinstance(y, torch.Tensor)
    torch.testing.assert_close(y, torch.fft.rfftn(x), rtol=1e-5, atol=1e-4)


def test_memory_on_a_device_is_refused_without_one():
    class OnDevice:
        __cuda_array_interface__ = {
            "data": (4096, False),
            "shape": (4,),
            "typestr": "<c16",
            "version": 3,
            "strides": None,
        }

    with pytest.raises(ValueError, match="x: found on a device, expected on the host"):
        thriffty.Plan(4).forward(OnDevice(), out=np.zeros(4, complex))
    with pytest.raises(thriffty.DeviceError):
        thriffty.Plan(4, device=99)


def test_the_machine_of_the_model(tmp_path):
    assert thriffty.Plan((4, 6), machine="summit").shape == (4, 6)
    with pytest.raises(thriffty.ArgumentError, match=r"machine file .*none\.toml"):
        thriffty.Plan((4, 6), machine=tmp_path / "none.toml")


def test_shared_arrays_outlive_their_plan():
    plan = thriffty.Plan((4, 6), shared_arrays=True)
    x, y = plan.empty_input(), plan.empty_output()
    assert not x.any()
    x[...] = 1
    plan.forward(x, out=y)
    gone = weakref.ref(plan)
    plan.close()
    del plan
    gc.collect()
    assert y[0, 0] == 24 and gone() is not None
    del x, y
    gc.collect()
    assert gone() is None


def test_the_interpreter_runs_meanwhile():
    """Another thread repeatedly gets the GIL during one transform."""
    plan = thriffty.Plan((128, 128, 64), threads=1)
    x, y = plan.empty_input(), plan.empty_output()
    x[...] = 1
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.perf_counter()
    plan.forward(x, out=y)
    end = time.perf_counter()
    done.set()
    thread.join()
    inside = [t for t in ticks if begin < t < end]
    assert len(inside) > 100


def test_wisdom(tmp_path):
    path = tmp_path / "wisdom.toml"
    with thriffty.Plan((8, 12), threads=2, tuning="measure:200ms") as plan:
        plan.save_wisdom(path)
        recipe = plan.recipe
    with thriffty.Plan((8, 12), threads=2, tuning=f"wisdom:{path}") as plan:
        assert plan.report.startswith("from wisdom, measured ")
        assert plan.recipe == recipe
    with thriffty.Plan((8, 12), threads=2, tuning=f"recipe:{recipe}") as plan:
        assert plan.recipe == recipe
        with pytest.raises(ValueError, match="wisdom of a plan"):
            plan.save_wisdom(path)
        with pytest.raises(ValueError, match="path: found 7, expected a path"):
            plan.save_wisdom(7)


def test_what_holds_plans_is_not_copied():
    plan, x = thriffty.Plan((4, 6)), np.ones((4, 6), complex)
    part = [(np.s_[0:4, 0:6], x)]
    fft = thriffty.PFFT(None, (4, 6), dtype=complex)
    held = [
        plan,
        thriffty.ParallelCopy(plan, part, [(np.s_[0:4, 0:6], x.copy())]),
        thriffty.Halo(plan, part, 0, 0),
        fft,
        fft.forward,
    ]
    for one in held:
        for copies in (copy.copy, copy.deepcopy, pickle.dumps, lambda one: copy.deepcopy([one])):
            text = f"a {type(one).__name__} cannot be copied or pickled"
            with pytest.raises(TypeError, match=text):
                copies(one)
    with pytest.raises(TypeError, match="a Plan cannot be copied or pickled"):
        multiprocessing.get_context("spawn").Process(target=print, args=(plan,)).start()
    assert plan.forward(x)[0, 0] == fft.forward(x)[0, 0] * 24 == 24


def test_what_plans_say_is_copied():
    with thriffty.Plan((4, 6), shared_arrays=True) as plan:
        error, slices, x = plan.wire_error, plan.input_slices, plan.empty_input()
        x[...] = 1
    for copies in (copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))):
        assert copies(error) == error and type(copies(error)) is thriffty.WireError
        assert copies(slices) == slices and (copies(x) == 1).all()
    for error in [thriffty.ArgumentError("x: found 1"), thriffty.OutOfMemoryError("none")]:
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error)


@pytest.mark.parametrize("threads", [1, 2])
def test_what_threads_lose_is_reported(threads):
    """Messages between threads only exist on request."""
    x = np.random.default_rng(0).standard_normal((32, 32)) + 0j
    lossy = dict(tolerance="1e-2 strict", ignore_shared_memory=True)
    with thriffty.Plan(x.shape, threads=threads, **lossy) as plan:
        error = distance(plan.forward(x), np.fft.fftn(x))
        assert error <= plan.wire_error.bound <= 1e-2 if threads > 1 else error < 1e-15
        assert (plan.wire_error.bound > 0) == (threads > 1)


def test_real_arrays_in_place_that_are_no_whole_complex_numbers():
    """Three real numbers become two complex ones: the memory of the longer array is enough."""
    room = np.zeros(2, complex)
    x = room.view(float)[:3]
    x[...] = 1, 2, 3
    with thriffty.Plan(3, float) as plan:
        plan.forward(x, out=room)
        np.testing.assert_allclose(room, np.fft.rfft([1, 2, 3]))
