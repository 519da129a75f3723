"""The Taylor-Green vortex by a pseudo-spectral method: three dimensions, periodic, incompressible.

    mpirun -n 4 python examples/python/navier_stokes.py

The velocity is stored as Fourier coefficients. Products are formed on a grid that is finer by 3/2,
so that they do not alias. Time steps use the classical Runge-Kutta method of fourth order. With
mpi4py-fft, only the import would differ.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from mpi4py import MPI

from thriffty import PFFT, newDistArray

# The kinetic energy at the time 0.1, for a viscosity of 0.000625.
REFERENCE = 0.124953117517


def wavenumbers(fft: PFFT) -> list[np.ndarray]:
    """Wavenumbers of this rank's coefficients along each axis, ready to broadcast."""
    lengths = fft.global_shape(False)
    waves = [np.fft.fftfreq(n, 1 / n) for n in lengths[:-1]]
    waves.append(np.fft.rfftfreq(lengths[-1], 1 / lengths[-1]))
    for n, wave in zip(lengths, waves):
        if n % 2 == 0:
            # On the grid, the derivative of the highest frequency is 0.
            wave[n // 2] = 0
    mine = [wave[part] for wave, part in zip(waves, fft.local_slice(True))]
    return np.meshgrid(*mine, indexing="ij", sparse=True)


class Flow:
    """An incompressible flow in a periodic box of length 2 pi."""

    def __init__(self, comm: Any, points: int, viscosity: float, **options: Any) -> None:
        shape = (points,) * 3
        self.comm, self.viscosity = comm, viscosity
        self.fft = PFFT(comm, shape, **options)
        self.fine = PFFT(comm, shape, padding=[1.5] * 3, **options)
        self.k = wavenumbers(self.fft)
        self.k2 = sum(k * k for k in self.k)
        self.velocity = newDistArray(self.fft, rank=1)
        # Work arrays on the fine grid and for the rate of change.
        self.u = newDistArray(self.fine, False, rank=1)
        self.curl = newDistArray(self.fine, False, rank=1)
        self.rate = newDistArray(self.fft, rank=1)

    def start(self) -> None:
        """The vortex of Taylor and Green."""
        points = self.fft.global_shape(False)[0]
        x, y, z = (2 * np.pi / points * i for i in np.ogrid[self.fft.local_slice(False)])
        u = newDistArray(self.fft, False, rank=1)
        u[0] = np.sin(x) * np.cos(y) * np.cos(z)
        u[1] = -np.cos(x) * np.sin(y) * np.cos(z)
        for i in range(3):
            self.fft.forward(u[i], self.velocity[i])

    def rates(self, velocity: np.ndarray) -> np.ndarray:
        """The rate of change: u x curl u, without the pressure's part, and viscosity."""
        u, curl, rate, k = self.u, self.curl, self.rate, self.k
        for i, j, l in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            self.fine.backward(velocity[i], u[i])
            self.fine.backward(1j * (k[j] * velocity[l] - k[l] * velocity[j]), curl[i])
        for i, j, l in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            self.fine.forward(u[j] * curl[l] - u[l] * curl[j], rate[i])
        # Pressure keeps the flow free of divergence.
        pressure = sum(k[i] * rate[i] for i in range(3)) / np.where(self.k2 == 0, 1, self.k2)
        for i in range(3):
            rate[i] -= k[i] * pressure + self.viscosity * self.k2 * velocity[i]
        return rate

    def step(self, dt: float) -> None:
        """One Runge-Kutta step."""
        before, after = self.velocity.copy(), self.velocity.copy()
        for weight, ahead in ((1 / 6, 1 / 2), (1 / 3, 1 / 2), (1 / 3, 1), (1 / 6, 0)):
            rate = self.rates(self.velocity)
            after += weight * dt * rate
            self.velocity[:] = before + ahead * dt * rate
        self.velocity[:] = after

    def energy(self) -> float:
        """The mean kinetic energy."""
        u = [self.fft.backward(self.velocity[i]).copy() for i in range(3)]
        points = np.prod(self.fft.global_shape(False))
        return self.comm.allreduce(float(np.sum(np.square(u)))) / points / 2

    def destroy(self) -> None:
        """Ends the plans. Collective."""
        self.fft.destroy()
        self.fine.destroy()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--points", type=int, default=32, help="along each axis")
    arguments.add_argument("--steps", type=int, default=10)
    arguments.add_argument("--dt", type=float, default=0.01)
    arguments.add_argument("--viscosity", type=float, default=0.000625)
    asked = arguments.parse_args()

    flow = Flow(MPI.COMM_WORLD, asked.points, asked.viscosity)
    flow.start()
    start = MPI.Wtime()
    for _ in range(asked.steps):
        flow.step(asked.dt)
    seconds = MPI.Wtime() - start
    energy = flow.energy()
    if MPI.COMM_WORLD.rank == 0:
        print(f"time {asked.steps * asked.dt:g}: energy {energy:.12f}, {seconds:.2f} s")
    flow.destroy()


if __name__ == "__main__":
    main()
