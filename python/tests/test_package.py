"""The public names of the package, and the library that it loads."""

import os
import subprocess
import sys

import pytest

import thriffty
import thriffty.transforms

LOADS = """
import thriffty
try:
    thriffty.fft([1.0, 2.0])
except ImportError as error:
    print(error)
"""


def test_only_public_names_are_shown() -> None:
    shown = {name for name in dir(thriffty) if not name.startswith("__")}
    assert shown == {name for name in thriffty.__all__ if name[:2] != "__"} | {"transforms"}
    assert {"__doc__", "__name__", "__version__"} < set(dir(thriffty))
    assert all(hasattr(thriffty, name) for name in dir(thriffty))


def test_only_transforms_are_shown_by_their_module() -> None:
    shown = {name for name in dir(thriffty.transforms) if not name.startswith("__")}
    assert shown == set(thriffty.transforms.__all__)


@pytest.mark.parametrize(
    ("library", "reason"),
    [
        ("/no/such/libthriffty.so", "No such file or directory"),
        (os.path.dirname(__file__), "Is a directory"),
        (__file__, "invalid ELF header"),
        ("libm.so.6", "is no library of thriffty"),
    ],
)
def test_a_wrong_library_is_named_with_the_reason(library: str, reason: str) -> None:
    environment = os.environ | {"THRIFFTY_LIBRARY": library}
    expected = f"THRIFFTY_LIBRARY: found {library}, expected a libthriffty.so: "
    for arguments in (["-c", LOADS], ["-m", "thriffty"]):
        command = [sys.executable, *arguments]
        said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        assert expected in said.stdout and reason in said.stdout, said.stdout
