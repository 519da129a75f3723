"""The options of plans match the options of the library."""

import contextlib
import gc
import inspect
import json
from types import SimpleNamespace

import numpy as np
import pytest

import thriffty
from thriffty import _library
from thriffty._options import Options, Request

LIBRARY = _library.serial()
ROWS = json.loads(LIBRARY.text(LIBRARY.c.thriffty_options_describe))
# Options that follow from the dtype.
FROM_DTYPE = {"precision"}
# Arguments that are not options.
OTHERS = {"self", "shape", "dtype", "comm", "input", "output", "norm", "stream"}


def test_plans_have_every_option_with_its_default():
    arguments = dict(inspect.signature(thriffty.Plan.__init__).parameters)
    assert arguments.keys() - OTHERS == {row["name"] for row in ROWS} - FROM_DTYPE
    documented = inspect.getdoc(thriffty.Plan)
    for row in ROWS:
        name, usual = row["name"], row["default"]
        if name in FROM_DTYPE:
            continue
        default = arguments[name].default
        assert Options(LIBRARY, {name: default})[name] == usual
        assert (default is None) == (usual == "default"), name
        assert f"\n{name} : " in documented
        words = " ".join(documented.split())
        assert " ".join(row["meaning"].split()) in words, name


@pytest.mark.parametrize(
    "name, value, text",
    [
        ("kinds", ("c2c", None, "r2c"), "c2c,none,r2c"),
        ("kinds", "dct2", "dct2,dct2,dct2"),
        ("kinds", "c2c, dct2,r2c", "c2c,dct2,r2c"),
        ("input_order", "F", "2,1,0"),
        ("output_order", "C", "0,1,2"),
        ("output_order", np.array([1, 0, 2]), "1,0,2"),
        ("zero_padded", 16, "16,16,16"),
        ("modes", [np.int32(3), 4, 5], "3,4,5"),
        ("modes", None, "default"),
        ("batch", np.int64(3), "3"),
        ("tolerance", 1e-6, "1e-6"),
        ("tolerance", np.float32(0.5), "5e-1"),
        ("tolerance", "1e-3 strict", "1e-3 strict"),
        ("shared_arrays", np.True_, "true"),
        ("device", "cuda", "cuda"),
        ("device", 2, "2"),
    ],
)
def test_values_have_the_text_of_the_library(name, value, text):
    request = _request({name: value})
    assert request.options[name] == text


def test_types_decide_precisions():
    for dtype, precision in [("complex64", "f32"), (np.float32, "f32"), (complex, "f64")]:
        assert _request({}, dtype).options["precision"] == precision


def test_names_and_values_that_are_not_known():
    with pytest.raises(TypeError, match="howmany"):
        thriffty.Plan(4, howmany=3)
    with pytest.raises(thriffty.ArgumentError, match="found most, expected one of ample, least"):
        thriffty.Plan(4, memory="most")


@pytest.mark.parametrize("values", [{}, {"memory": "most"}])
def test_options_are_destroyed_once(values):
    destroyed = []
    calls = SimpleNamespace(
        thriffty_options_create=LIBRARY.c.thriffty_options_create,
        thriffty_options_set=LIBRARY.c.thriffty_options_set,
        thriffty_options_set_stream=LIBRARY.c.thriffty_options_set_stream,
        thriffty_options_destroy=lambda handle: destroyed.append(handle.value),
    )
    library = SimpleNamespace(c=calls, check=LIBRARY.check, options=LIBRARY.options)
    with contextlib.suppress(thriffty.ArgumentError):
        options = Options(library, values)
        assert not destroyed
        del options
    gc.collect()
    (handle,) = destroyed
    LIBRARY.check(LIBRARY.c.thriffty_options_destroy(handle))


def test_norms_are_scales():
    x = np.arange(8.0) + 0j
    for norm, forward, inverse in [
        ("backward", "none", "full"),
        ("ortho", "symmetric", "symmetric"),
        ("forward", "full", "none"),
    ]:
        with (
            thriffty.Plan(8, norm=norm) as named,
            thriffty.Plan(8, forward_scale=forward, inverse_scale=inverse) as scaled,
        ):
            np.testing.assert_array_equal(named.forward(x), scaled.forward(x))
            np.testing.assert_array_equal(named.inverse(x), scaled.inverse(x))
            np.testing.assert_allclose(named.forward(x), np.fft.fft(x, norm=norm), atol=1e-12)


def _request(values, dtype=complex):
    return Request(LIBRARY, (2, 3, 4), dtype, values)
