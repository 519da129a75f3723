"""Draws the energy spectrum of a random velocity field with a slope of -5/3.

Run: mpirun -n 2 python spectrum.py [picture.png]; the picture needs matplotlib.
"""

import sys

import numpy as np
from mpi4py import MPI

import thriffty

N = 64


def main() -> None:
    comm = MPI.COMM_WORLD
    with thriffty.Plan((N, N, N), float, comm=comm, batch=3) as plan:
        frequencies = [thriffty.fftfreq(N, 1 / N)] * 2 + [thriffty.rfftfreq(N, 1 / N)]
        k = [f[part] for f, part in zip(frequencies, plan.output_slices)]
        shells = np.sqrt(k[0][:, None, None] ** 2 + k[1][:, None] ** 2 + k[2] ** 2)

        # Noise, with amplitudes for an energy of k^(-5/3) in each shell.
        noise = np.random.default_rng(comm.rank).standard_normal(plan.input_shape)
        modes = plan.forward(noise)
        modes *= np.where(shells > 0, np.maximum(shells, 1.0) ** (-11 / 6), 0.0)
        velocity = plan.inverse(modes)

        modes = plan.forward(velocity) / N**3
        energy = 0.5 * (np.abs(modes) ** 2).sum(axis=0)
        # Half of the last axis is stored, so all but its first and last frequency count twice.
        energy *= np.where((k[2] == 0) | (k[2] == N // 2), 1.0, 2.0)
        numbers = np.rint(shells).astype(int)
        most = N // 2
        mine = np.bincount(numbers.ravel(), energy.ravel(), minlength=2 * N)[: most + 1]
        total = comm.allreduce(mine)
        parseval = 0.5 * comm.allreduce((velocity**2).sum()) / N**3
        whole = comm.allreduce(energy.sum())

    if comm.rank == 0:
        inner = np.arange(4, most // 2)
        slope = np.polyfit(np.log(inner), np.log(total[inner]), 1)[0]
        print(f"energy {whole:.3e}, of the velocities {parseval:.3e}, slope {slope:.2f}")
        assert abs(whole / parseval - 1) < 1e-12 and abs(slope + 5 / 3) < 0.15
        if len(sys.argv) > 1:
            import matplotlib.pyplot as plt

            plt.loglog(np.arange(1, most), total[1:most], label="spectrum")
            plt.loglog(inner, total[4] * (inner / 4.0) ** (-5 / 3), "--", label="$k^{-5/3}$")
            plt.xlabel("wave number")
            plt.legend()
            plt.savefig(sys.argv[1])


if __name__ == "__main__":
    main()
