"""A Fourier neural operator that learns Burgers' equation, on one process or several.

The network gets a field at time 0 and learns to predict it at time 0.5. Each process has a slab of
every field, so that fields may be larger than one GPU. A layer keeps MODES frequencies of each
axis; the others are neither computed nor sent. The program makes its own data, with a solver that
uses the same transforms.

Run: python fno.py, or torchrun --nproc-per-node 2 fno.py. Losses are the same up to rounding.
Options: --steps N, --grid N, --picture FILE.svg.
"""

import argparse
import os

import fno_picture
import numpy as np
import torch
import torch.distributed as dist

import thriffty
import thriffty.torch as fft

SAMPLES, BATCH, WIDTH, MODES, LAYERS = 160, 16, 12, 13, 3
VISCOSITY, TIME, TIMESTEPS = 0.1, 0.5, 50


class Processes:
    """The group, if torchrun has started several processes, and the device of this one."""

    def __init__(self):
        self.group = None
        gpu = torch.cuda.is_available()
        self.device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        if gpu:
            torch.cuda.set_device(self.device)
        else:
            self.device = torch.device("cpu")
        if int(os.environ.get("WORLD_SIZE", 1)) > 1:
            dist.init_process_group("nccl" if gpu else "gloo")
            self.group = dist.group.WORLD

    def plan(self, grid, batch, **options):
        """A plan of fields that are cut into slabs along the first axis."""
        device = self.device.index if self.device.type == "cuda" else "host"
        shape = (grid, grid)
        if self.group is not None:
            ranks, rank = dist.get_world_size(), dist.get_rank()
            ends = [grid * k // ranks for k in (rank, rank + 1)]
            options["input"] = (slice(*ends), slice(0, grid))
        return thriffty.Plan(shape, float, comm=self.group, device=device, batch=batch, **options)

    def sum(self, x):
        """The sum over all processes."""
        if self.group is not None:
            dist.all_reduce(x)
        return x


class SpectralConv(torch.nn.Module):
    """Multiplies the lowest frequencies of the channels by matrices that it learns."""

    def __init__(self, plan):
        super().__init__()
        self.plan = plan
        kept = plan.spectral_shape
        weight = torch.randn(WIDTH, WIDTH, *kept, dtype=torch.complex128) / WIDTH**2
        self.weight = torch.nn.Parameter(weight)

    def forward(self, x):
        plan = self.plan
        # This process has some of the frequencies of all samples and channels.
        weight = self.weight[(slice(None), slice(None), *plan.output_slices)]
        y = fft.forward(x.reshape(plan.input_shape), plan)
        y = y.view(len(x), WIDTH, *y.shape[1:])
        y = torch.einsum("bixy,ioxy->boxy", y, weight)
        return fft.inverse(y.reshape(plan.output_shape), plan).view(x.shape)


class Network(torch.nn.Module):
    """Layers that add a spectral convolution and a linear map of the channels."""

    def __init__(self, plan):
        super().__init__()
        channels = [1, WIDTH, WIDTH, 1]
        linear = [torch.nn.Conv2d(a, b, 1) for a, b in zip(channels, channels[1:])]
        self.lift, self.mix, self.drop = linear
        self.spectral = torch.nn.ModuleList(SpectralConv(plan) for _ in range(LAYERS))
        self.linear = torch.nn.ModuleList(torch.nn.Conv2d(WIDTH, WIDTH, 1) for _ in range(LAYERS))

    def forward(self, x):
        y = self.lift(x)
        for spectral, linear in zip(self.spectral, self.linear):
            y = y + torch.nn.functional.gelu(spectral(y) + linear(y))
        return x + self.drop(torch.nn.functional.gelu(self.mix(y)))


def random_fields(grid, samples):
    """Smooth fields with this period, the same on all processes."""
    rng = np.random.default_rng(0)
    k = np.fft.fftfreq(grid, 1 / grid)
    size = np.hypot(k[:, None], k[: grid // 2 + 1])
    noise = rng.standard_normal((samples, grid, grid // 2 + 1, 2)).view(complex)[..., 0]
    fields = np.fft.irfft2(noise * np.exp(-(size**2) / 8) * (size > 0), (grid, grid))
    return fields / fields.std((1, 2), keepdims=True)


def solve(processes, grid, fields):
    """Burgers' equation u_t + u (u_x + u_y) = VISCOSITY (u_xx + u_yy) on a period of 2 pi."""
    with processes.plan(grid, len(fields)) as plan:
        rows, columns = plan.output_slices
        k = torch.fft.fftfreq(grid, 1 / grid, device=fields.device)[rows, None]
        l = torch.arange(grid // 2 + 1, device=fields.device)[columns]
        decay, slope = -VISCOSITY * (k**2 + l**2), 0.5j * (k + l)
        # Products have twice the frequencies of their factors, so the upper third is dropped.
        kept = (k.abs() < grid / 3) & (l < grid / 3)
        step = TIME / TIMESTEPS

        def change(spectrum):
            u = fft.inverse(spectrum, plan)
            return decay * spectrum - kept * slope * fft.forward(u * u, plan)

        y = fft.forward(fields, plan) * kept
        for _ in range(TIMESTEPS):
            first = change(y)
            second = change(y + step / 2 * first)
            third = change(y + step / 2 * second)
            last = change(y + step * third)
            y = y + step / 6 * (first + 2 * second + 2 * third + last)
        return fft.inverse(y, plan)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--grid", type=int, default=48)
    parser.add_argument("--picture")
    options = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    processes = Processes()
    first = processes.group is None or dist.get_rank() == 0

    plan = processes.plan(options.grid, BATCH * WIDTH, modes=MODES)
    network = Network(plan).to(processes.device)
    slab = (slice(None), *plan.input_slices)
    whole = random_fields(options.grid, SAMPLES)
    given = torch.from_numpy(np.ascontiguousarray(whole[slab])).to(processes.device)
    wanted = solve(processes, options.grid, given)
    points = BATCH * options.grid**2

    def error(batch):
        """This process's part of the mean square."""
        here = slice(batch * BATCH, (batch + 1) * BATCH)
        return (network(given[here, None])[:, 0] - wanted[here]).square().sum() / points

    optimizer = torch.optim.Adam(network.parameters(), 1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)
    # The last batch is held out for testing.
    batches, losses = SAMPLES // BATCH - 1, []
    for step in range(options.steps):
        optimizer.zero_grad()
        loss = error(step % batches)
        loss.backward()
        for parameter in network.parameters():
            processes.sum(parameter.grad)
        optimizer.step()
        schedule.step()
        losses.append(float(processes.sum(loss.detach())))
        if first and (step + 1) % 20 == 0:
            print(f"step {step + 1}: loss {losses[-1]:.6e}", flush=True)
    with torch.no_grad():
        unseen = float(processes.sum(error(batches)))
        here = slice(batches * BATCH, None)
        size = float(processes.sum(wanted[here].square().sum() / points))
        told = network(given[here, None])[:, 0]
    if first:
        print(f"error of fields that it has not seen: {100 * (unseen / size) ** 0.5:.1f} %")
    if options.picture:
        fields = torch.stack([given[-1], wanted[-1], told[-1]])
        together = torch.zeros(3, options.grid, options.grid, device=processes.device)
        together[slab] = fields
        together = processes.sum(together).cpu().numpy()
        if first:
            fno_picture.save(options.picture, together, losses)
    plan.close()
    if processes.group is not None:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
