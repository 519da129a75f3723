"""Transforms arrays of CuPy where they are, on this rank's GPU.

Run: python gpu.py, or mpirun -n 2 python gpu.py
"""

import cupy
import numpy as np
from mpi4py import MPI

import thriffty

SHAPE = (64, 48, 40)


def main() -> None:
    comm = MPI.COMM_WORLD
    on_host = comm.Split_type(MPI.COMM_TYPE_SHARED)
    device = on_host.rank % cupy.cuda.runtime.getDeviceCount()
    with cupy.cuda.Device(device), thriffty.Plan(SHAPE, comm=comm, device=device) as plan:
        whole = np.random.default_rng(0).standard_normal(SHAPE) + 0j
        x = cupy.asarray(whole[plan.input_slices])
        y = plan.forward(x)
        difference = cupy.asnumpy(y) - np.fft.fftn(whole)[plan.output_slices]
        error = comm.allreduce(np.abs(difference).max(initial=0.0), MPI.MAX)
        if comm.rank == 0:
            print(f"{comm.size} ranks, largest difference from NumPy {error:.1e}")
        assert error < 1e-9


if __name__ == "__main__":
    main()
