"""Thread levels other than mpi4py's default, and the end of MPI, in separate jobs."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

if shutil.which("mpirun") is None or importlib.util.find_spec("mpi4py") is None:
    pytest.skip("no mpirun with mpi4py", allow_module_level=True)

PROGRAM = Path(__file__).parent / "mpi" / "ends.py"


@pytest.mark.parametrize("level", ["funneled", "serialized", "multiple"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_threads_and_the_end_of_mpi(ranks, level):
    command = ["mpirun", "-n", str(ranks), sys.executable, PROGRAM, level]
    job = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert job.returncode == 0 and job.stdout.count("all is well") == ranks, job.stderr[-3000:]
