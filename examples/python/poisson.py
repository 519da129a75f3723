"""Solves -laplacian(phi) = rho on the periodic unit cube, on any number of ranks.

Run: mpirun -n 4 python poisson.py
"""

import numpy as np
from mpi4py import MPI

import thriffty

N = 48


def main() -> None:
    comm = MPI.COMM_WORLD
    with thriffty.Plan((N, N, N), float, comm=comm) as plan:
        # This rank's slices hold global indices.
        x, y, z = np.ogrid[plan.input_slices]
        tau = 2 * np.pi
        exact = np.sin(tau * x / N) * np.cos(2 * tau * y / N) * np.sin(3 * tau * z / N)
        rho = plan.empty_input()
        rho[...] = (1 + 4 + 9) * tau**2 * exact

        spectrum = plan.forward(rho)
        frequencies = [thriffty.fftfreq(N, 1 / N)] * 2 + [thriffty.rfftfreq(N, 1 / N)]
        k = [f[part] * tau for f, part in zip(frequencies, plan.output_slices)]
        squares = k[0][:, None, None] ** 2 + k[1][:, None] ** 2 + k[2] ** 2
        # The mean of phi is free.
        squares[squares == 0] = np.inf
        phi = plan.inverse(spectrum / squares)

        error = comm.allreduce(np.abs(phi - exact).max(initial=0.0), MPI.MAX)
        if comm.rank == 0:
            print(f"{comm.size} ranks, largest error {error:.1e}, {plan.recipe}")
        assert error < 1e-13


if __name__ == "__main__":
    main()
