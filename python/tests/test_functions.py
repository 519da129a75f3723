"""The functions against SciPy's, which are an independent implementation."""

import gc
import inspect
import multiprocessing
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.fft
from hypothesis import given
from hypothesis import strategies as st
from reference import cases

import thriffty

C2C = ["fft", "ifft", "fft2", "ifft2", "fftn", "ifftn"]
R2C = ["rfft", "rfft2", "rfftn", "ihfft", "ihfft2", "ihfftn"]
C2R = ["irfft", "irfft2", "irfftn", "hfft", "hfft2", "hfftn"]
R2R = ["dct", "idct", "dctn", "idctn", "dst", "idst", "dstn", "idstn"]
NORMS = [None, "backward", "ortho", "forward"]
# From 20,000 random problems; errors grow with the root of the logarithm of the points.
TOLERANCE = {"float32": 1e-6, "complex64": 1e-6, "float64": 2e-15, "complex128": 2e-15}


def numbers(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def close(found, expected):
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    norm = np.linalg.norm(expected.ravel())
    error = np.linalg.norm((found - expected).ravel())
    assert error <= TOLERANCE[expected.dtype.name] * max(norm, 1e-300), error / norm


@st.composite
def calls(draw):
    """A function, an array of any memory layout, and arguments."""
    name = draw(st.sampled_from(C2C + R2C + C2R + R2R))
    least = 2 if "2" in name else 1
    shape = draw(st.lists(st.integers(1, 7), min_size=least, max_size=6))
    types = ["float32", "float64"]
    if name not in R2C:
        types += ["complex64", "complex128"]
    x = numbers(shape, draw(st.sampled_from(types)), draw(st.integers(0, 99)))
    layout = draw(st.sampled_from(["C", "permuted", "strided", "backwards", "broadcast", "part"]))
    if layout == "permuted":
        x = x.transpose(draw(st.permutations(range(x.ndim))))
    elif layout == "broadcast":
        x = np.broadcast_to(x[:1], x.shape)
    elif layout == "part":
        x = np.pad(x, 1)[(slice(1, -1),) * x.ndim].T
    elif layout == "strided":
        x = np.repeat(x, 2, axis=-1)[..., ::2]
    elif layout == "backwards":
        x = x[::-1]
    named = {
        "norm": draw(st.sampled_from(NORMS)),
        "workers": draw(st.sampled_from([None, 1, 2, -1])),
    }
    if name in R2R:
        named["type"] = draw(st.integers(1, 4))
        named["orthogonalize"] = draw(st.sampled_from([None, None, True, False]))
    points = st.integers(2, 9)
    # In sequences, -1 keeps the length.
    lengths = st.one_of(points, st.just(-1))
    if name.endswith("n"):
        axes = draw(st.permutations(range(x.ndim)))[: draw(st.integers(1, x.ndim))]
        named["axes"] = [axis - draw(st.sampled_from([0, x.ndim])) for axis in axes]
        if draw(st.booleans()):
            named["s"] = draw(st.lists(lengths, min_size=len(axes), max_size=len(axes)))
    elif name.endswith("2"):
        if draw(st.booleans()):
            named["s"] = draw(st.lists(lengths, min_size=2, max_size=2))
    else:
        named["axis"] = draw(st.integers(-x.ndim, x.ndim - 1))
        if draw(st.booleans()):
            named["n"] = draw(points)
    return name, x, named


def scipys(name, x, named):
    """SciPy's result. Its cosine transforms ignore `orthogonalize` for complex data."""
    function = getattr(scipy.fft, name)
    if name in R2R and x.dtype.kind == "c":
        return function(x.real, **named) + 1j * function(x.imag, **named)
    return function(x, **named)


def is_defined(name, x, named):
    """Excludes type 1 on one point, and half a spectrum of one frequency without a length."""
    if name in C2R and "n" not in named and "s" not in named:
        last = named.get("axes", [named.get("axis", -1)])[-1]
        if x.shape[last] == 1:
            return False
    try:
        getattr(scipy.fft, name)(x, **named)
    except (ValueError, RuntimeError):
        return False
    return True


@cases(300)
@given(calls(), st.booleans(), st.booleans())
def test_functions_are_scipys(call, overwrite, into):
    name, x, named = call
    function = getattr(thriffty, name)
    if not is_defined(name, x, named):
        with pytest.raises(ValueError):
            function(x, **named)
        return
    expected = scipys(name, x, named)
    before = x.copy()
    close(function(x, **named), expected)
    np.testing.assert_array_equal(x, before)
    if into:
        out = np.empty_like(expected)
        assert function(x, out=out, **named) is out
        close(out, expected)
    if overwrite:
        close(function(x, overwrite_x=True, **named), expected)


@cases(20)
@given(st.lists(calls(), min_size=2, max_size=12))
def test_threads_call_side_by_side(wanted):
    wanted = [call for call in wanted if is_defined(*call)]
    expected = [scipys(*call) for call in wanted]
    wrong = []

    def work(first):
        try:
            for turn in range(2 * len(wanted)):
                at = (first + turn) % len(wanted)
                name, x, named = wanted[at]
                close(getattr(thriffty, name)(x, **named), expected[at])
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(first,)) for first in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_many_lengths_in_turn():
    for turn in range(2):
        for n in range(2, 420):
            x = numbers(n, "float64", n)
            for name in ["fft", "rfft", "dct"]:
                close(getattr(thriffty, name)(x), getattr(scipy.fft, name)(x))


SHARED_THREADS = """
import os, numpy, thriffty
before = len(os.listdir("/proc/self/task"))
for n in range(20):
    x = numpy.ones((130 + n, 150), complex)
    for workers in (7, 2, 5):
        thriffty.fft2(x, workers=workers)
    thriffty.Plan(x.shape, threads=6).forward(x)
assert len(os.listdir("/proc/self/task")) == before + 6
os.environ["OMP_NUM_THREADS"] = "3"
assert thriffty.get_workers() == 3
os.environ["THRIFFTY_THREADS"] = "4"
assert thriffty.get_workers() == 4
"""


def test_plans_share_the_threads_of_the_process():
    subprocess.run([sys.executable, "-c", SHARED_THREADS], check=True)


def test_large_arrays_take_threads():
    x = numbers((40, 30, 50), "complex128", 1)
    for workers in [1, 2, 3]:
        close(thriffty.fftn(x, workers=workers), scipy.fft.fftn(x))
        close(thriffty.rfftn(x.real, workers=workers), scipy.fft.rfftn(x.real))
        close(thriffty.dctn(x, workers=workers), scipy.fft.dctn(x))


def test_numbers_become_floats():
    for dtype in ["bool", "int8", "uint64", "float16", ">f4", ">c16"]:
        x = np.arange(6).astype(dtype)
        expected = scipy.fft.fft(x)
        found = thriffty.fft(x)
        assert found.dtype == expected.dtype.newbyteorder("=")
        np.testing.assert_allclose(found, expected, atol=1e-5)
    assert thriffty.fft([1, 2, 3])[0] == 6
    for x in [np.ones(3, np.longdouble), np.array(["a"]), np.array([None])]:
        with pytest.raises(TypeError, match="dtype of x: found"):
            thriffty.fft(x)
    with pytest.raises(TypeError, match="expected real"):
        thriffty.rfft([1j])


@pytest.mark.parametrize(
    "arguments, text",
    [
        (dict(axes=(0, 0)), "axes: found"),
        (dict(axes=(2,)), "axis: found 2, expected -2 to 1"),
        (dict(s=(3,), axes=(0, 1)), "lengths: found"),
        (
            dict(s=(2, 2, 2)),
            r"lengths: found \(2, 2, 2\), expected at most 2, one for each axis of x",
        ),
        (dict(s=(0, 3)), "points: found"),
        (dict(norm="unit"), "norm: found 'unit'"),
        (dict(workers=0), "workers: found 0"),
        (dict(out=np.empty((4, 4))), "out: found"),
    ],
)
def test_arguments_without_meaning(arguments, text):
    with pytest.raises(ValueError, match=text):
        thriffty.fftn(np.ones((4, 4)), **arguments)


def test_what_is_no_array():
    with pytest.raises(ValueError, match="x: found a number, expected an array with at least one"):
        thriffty.fft(5.0)
    with pytest.raises(TypeError, match="out: found list, expected an array"):
        thriffty.fft(np.ones(2), out=[1, 2])
    for name in C2C + R2C + C2R:
        function = getattr(thriffty, name)
        x = np.ones((4, 5))
        np.testing.assert_array_equal(function(a=x), function(x=x))
        with pytest.raises(TypeError, match="twice"):
            function(x, a=x)
    with pytest.raises(TypeError, match="argument"):
        thriffty.fft()


def test_empty_and_single():
    assert thriffty.fftn(np.ones((0, 4)), axes=(1,)).shape == (0, 4)
    with pytest.raises(ValueError, match="points"):
        thriffty.fftn(np.ones((0, 4)))
    assert thriffty.fft(np.ones((3, 1)), axis=1).tolist() == [[1], [1], [1]]
    x = np.ones((2, 3))
    assert thriffty.fftn(x, axes=()).tolist() == x.tolist()


def test_workers_as_in_scipy():
    most = thriffty.get_workers()
    with thriffty.set_workers(3):
        assert thriffty.get_workers() == 3
        with thriffty.set_workers(-1):
            assert thriffty.get_workers() >= 1
        assert thriffty.get_workers() == 3
    assert thriffty.get_workers() == most


def test_scipy_calls_the_backend():
    x = numbers((6, 10), "float64", 3)
    with scipy.fft.set_backend(thriffty):
        found = scipy.fft.rfftn(x)
        assert scipy.fft.fft(np.ones(4, np.longdouble)).dtype == np.clongdouble
    np.testing.assert_array_equal(found, thriffty.rfftn(x))


def test_fast_lengths_are_products_of_2_3_and_5():
    for n in [*range(1, 3000), 10**12 + 1]:
        for real in (False, True):
            assert thriffty.next_fast_len(n, real) == scipy.fft.next_fast_len(n, real=True)
    assert thriffty.next_fast_len(2**63 - 1) == 2**63
    for wrong in (0, -1, 2**63, 2**64 + 1):
        with pytest.raises(ValueError, match=f"target: found {wrong}, expected 1 to {2**63 - 1}"):
            thriffty.next_fast_len(wrong)
    with pytest.raises(TypeError):
        thriffty.next_fast_len(1.5)


def test_memory_that_is_not_aligned_or_not_writable():
    x = np.zeros(97, np.uint8)[1:].view(complex)
    x[...] = numbers(6, "complex128", 1)
    assert not x.flags.aligned
    close(thriffty.fft(x), scipy.fft.fft(np.array(x)))
    out = np.zeros(97, np.uint8)[1:].view(complex)
    close(np.array(thriffty.fft(x, out=out)), scipy.fft.fft(np.array(x)))
    frozen = numbers((4, 6), "float64", 1)
    frozen.flags.writeable = False
    close(thriffty.fftn(frozen, overwrite_x=True), scipy.fft.fftn(frozen))
    expected = scipy.fft.dctn(frozen, 3, norm="ortho")
    close(thriffty.dctn(frozen, 3, norm="ortho", overwrite_x=True), expected)


def test_a_finaliser_may_transform():
    """The garbage collector may run one while a plan is made."""

    class Last:
        def __del__(self):
            thriffty.fft(np.ones(self.n))

    for n in range(50, 80):
        cycle = Last()
        cycle.n, cycle.itself = n, cycle
        del cycle
        thriffty.fft(np.ones(n + 100))
    gc.collect()


def test_signatures_are_scipys():
    for name in C2C + R2C + C2R + R2R:
        found = inspect.signature(getattr(thriffty, name)).parameters
        for argument in inspect.signature(getattr(scipy.fft, name)).parameters:
            assert argument in found or (name in R2R and argument == "plan"), (name, argument)
    for wrong in (dict(n=(6,)), dict(axis=None), dict(axis=(0, 1))):
        with pytest.raises(TypeError):
            thriffty.fft(np.ones((4, 4)), **wrong)
    with pytest.raises(ValueError, match="n: found -1"):
        thriffty.fft(np.ones(4), n=-1)


def test_functions_made_from_names_look_like_others():
    for name in C2C + R2C + C2R + R2R:
        function = getattr(thriffty, name)
        assert function.__name__ == function.__qualname__ == name and function.__doc__
        assert "{axes}" not in function.__doc__ and pickle.loads(pickle.dumps(function)) is function
        with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected keyword argument"):
            function(np.ones((2, 2)), worker=1)
    assert inspect.signature(thriffty.irfft2).parameters["axes"].default == (-2, -1)
    assert list(inspect.signature(thriffty.idct).parameters)[:4] == ["x", "type", "n", "axis"]


def test_many_shapes_and_threads():
    """Plans come and go while several threads use them."""
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(40):
            x = numbers(rng.integers(1, 9, 3), "complex128", 0)
            if not np.allclose(thriffty.fftn(x), np.fft.fftn(x)):
                wrong.append(x.shape)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    thriffty.clear_plans()


def in_child(pipe, plan):
    x = numbers((40, 30, 50), "complex128", 1)
    found = thriffty.fftn(x, workers=2)
    try:
        plan.forward(x)
        text = "it ran"
    except thriffty.Error as error:
        text = str(error)
    pipe.send(pickle.dumps((found, text)))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_makes_plans_of_its_own():
    x = numbers((40, 30, 50), "complex128", 1)
    expected = thriffty.fftn(x, workers=2)
    plan = thriffty.Plan(x.shape, threads=2)
    fork = multiprocessing.get_context("fork")
    mine, theirs = fork.Pipe()
    child = fork.Process(target=in_child, args=(theirs, plan))
    child.start()
    assert mine.poll(60), "the child hangs"
    found, text = pickle.loads(mine.recv())
    child.join()
    np.testing.assert_array_equal(found, expected)
    assert "forked" in text
    plan.close()
