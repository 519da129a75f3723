"""Times thriffty.torch and thriffty.jax beside torch.fft with NCCL and beside jax.numpy.fft.

Run on a host with two GPUs: torchrun --nproc-per-node 2 benches/peers/gradients.py [SECTION ...]
Without GPUs it transforms small arrays, to see that all works.

The sections, all by default, each print a table. Times are medians in ms, of rounds in which the
sides take turns; of several processes, the slowest.

  c2c    complex cubes, slabs along X to slabs along Y, forward
  conv   a spectral convolution of an FNO, forward and backward, with the memory of a GPU
  local  rfftn of one GPU
  jax    last; as c2c: one process with shard_map, and thriffty.jax with a process for each GPU
"""

import os
import socket
import statistics
import subprocess
import sys
import time

ROUNDS = 20
SMALL = {512: 16, 1024: 20, 256: 16, 64: 8, 500: 12, 768: 10, 1000: 18}


def timed(sides, wait, together=None):
    """The median times of calls by name.

    `wait` ends what was begun. `together` finds the slowest process's seconds, from which all
    choose how many calls are timed at once.
    """
    calls = {}
    for name, call in sides.items():
        for _ in range(3):
            call()
        wait()
        begin = time.perf_counter()
        call()
        wait()
        seconds = time.perf_counter() - begin
        calls[name] = 4 if together is None else max(1, int(10e-3 / together(seconds)))
    together = together or (lambda seconds: seconds)
    seconds = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, call in sides.items():
            wait()
            together(0)
            begin = time.perf_counter()
            for _ in range(calls[name]):
                call()
            wait()
            seconds[name].append(together(time.perf_counter() - begin) / calls[name])
    return {name: 1e3 * statistics.median(each) for name, each in seconds.items()}


# -- torch ----------------------------------------------------------------------------------------


class Ranks:
    """The two processes of torchrun."""

    def __init__(self):
        import torch
        import torch.distributed as dist

        self.rank = int(os.environ["LOCAL_RANK"])
        self.on_gpu = torch.cuda.is_available()
        self.device = torch.device("cuda", self.rank) if self.on_gpu else torch.device("cpu")
        if self.on_gpu:
            torch.cuda.set_device(self.rank)
            dist.init_process_group("nccl", device_id=self.device)
        else:
            dist.init_process_group("gloo")
        self.group, self.size = dist.group.WORLD, dist.get_world_size()
        self.torch, self.dist = torch, dist

    def slowest(self, seconds):
        value = self.torch.tensor(seconds, dtype=self.torch.float64, device=self.device)
        self.dist.all_reduce(value, self.dist.ReduceOp.MAX)
        return float(value)

    def time(self, sides):
        return timed(sides, self.wait, self.slowest)

    def wait(self):
        if self.on_gpu:
            self.torch.cuda.synchronize()

    def size_of(self, n):
        return n if self.on_gpu else SMALL[n]

    def empty_cache(self):
        if self.on_gpu:
            self.torch.cuda.empty_cache()

    def peak(self, call):
        """The bytes that a call allocates at most, beside what is there."""
        if not self.on_gpu:
            call()
            return 1
        cuda = self.torch.cuda
        for _ in range(2):
            cuda.synchronize()
            cuda.reset_peak_memory_stats()
            before = cuda.memory_allocated()
            call()
        cuda.synchronize()
        return cuda.max_memory_allocated() - before

    def print(self, *words):
        if self.rank == 0:
            print(*words, flush=True)

    def slab(self, n, axis, axes=3):
        each = n // self.size
        part = slice(self.rank * each, (self.rank + 1) * each)
        return tuple(part if other == axis else slice(0, n) for other in range(axes))

    def plan(self, n, dtype, **options):
        import thriffty

        ends = dict(input=self.slab(n, 0))
        device = self.rank if self.on_gpu else "host"
        return thriffty.Plan((n,) * 3, dtype, comm=self.group, device=device, **ends, **options)


def c2c(ranks):
    words = "NCCL: torch.fft and all_to_all_single"
    ranks.print(f"\nc2c, slabs along X to slabs along Y, forward, ms; {words}")
    ranks.print(f"{'N':>6} {'type':>12} {'thriffty':>9} {'NCCL':>9} {'ratio':>6}")
    for n in (512, 1024):
        for name in ("complex64", "complex128"):
            ours, theirs = cube(ranks, ranks.size_of(n), name)
            ranks.print(f"{n:6} {name:>12} {ours:9.3f} {theirs:9.3f} {ours / theirs:6.2f}")
            ranks.empty_cache()


def cube(ranks, n, name):
    """The times of both sides."""
    import thriffty.torch as fft

    torch, dist, size = ranks.torch, ranks.dist, ranks.size
    each = n // size
    x = torch.randn(each, n, n, dtype=getattr(torch, name), device=ranks.device)

    def nccl():
        y = torch.fft.fftn(x, dim=(1, 2))
        y = y.view(each, size, each, n).transpose(0, 1).contiguous()
        z = torch.empty_like(y)
        dist.all_to_all_single(z, y)
        return torch.fft.fft(z.view(n, each, n), dim=0)

    with ranks.plan(n, name, output=ranks.slab(n, 1)) as plan:
        far = (fft.forward(x, plan) - nccl()).abs().max() / n**1.5
        assert far < 1e-5, far
        return ranks.time({"ours": lambda: fft.forward(x, plan), "nccl": nccl}).values()


CHANNELS, POINTS, MODES = 8, 256, 64


def conv(ranks):
    """Layers that multiply 64 x 64 x 33 modes of each channel by matrices."""
    import torch.distributed.nn.functional as exchange

    import thriffty.torch as fft

    torch, size = ranks.torch, ranks.size
    n, modes = ranks.size_of(POINTS), ranks.size_of(MODES)
    half = modes // 2
    x = torch.randn(CHANNELS, n // size, n, n, device=ranks.device, requires_grad=True)
    gradient = torch.randn(x.shape, device=ranks.device)
    kept = [*range(half), *range(n - half, n)]
    kept = torch.tensor(kept, device=ranks.device)

    def turned(y, split, gather):
        """Exchanges parts of an axis for parts of another."""
        parts = torch.stack(y.chunk(size, split)).contiguous()
        room = torch.empty(parts.shape, dtype=parts.dtype, device=parts.device)
        return torch.cat(list(exchange.all_to_all_single(room, parts)), gather)

    def padded(y, axis, length):
        whole = y.new_zeros([length if a == axis else m for a, m in enumerate(y.shape)])
        return whole.index_copy(axis, kept, y)

    shape = (CHANNELS, CHANNELS, modes, modes, half + 1)
    generator = torch.Generator(ranks.device).manual_seed(0)
    whole = torch.randn(shape, dtype=torch.complex64, device=ranks.device, generator=generator)
    # Plans have no middle mode of an even number.
    whole[:, :, half] = whole[:, :, :, half] = whole[..., half] = 0

    def weights(*part):
        return whole[(slice(None), slice(None), *part)].clone().requires_grad_()

    mine = slice(ranks.rank * modes // size, (ranks.rank + 1) * modes // size)
    with ranks.plan(n, "float32", batch=CHANNELS, modes=modes, norm="ortho") as plan:
        sides = {
            "thriffty": weights(*plan.output_slices),
            "truncated": weights(slice(None), mine),
            "channels": weights(mine),
        }

        def multiplied(y, w):
            return (y[:, None] * w).sum(0)

        def thriffty(x, w):
            return fft.inverse(multiplied(fft.forward(x, plan), w), plan)

        def truncated(x, w):
            """Two exchanges, of what is kept along two axes."""
            y = torch.fft.rfftn(x, dim=(2, 3))[..., : half + 1].index_select(2, kept)
            y = torch.fft.fft(turned(y, 2, 1), dim=1).index_select(1, kept)
            y = torch.fft.ifft(padded(multiplied(y, w), 1, n), dim=1)
            y = padded(turned(y, 1, 2), 2, n)
            return torch.fft.irfftn(y, (n, n), (2, 3))

        def channels(x, w):
            """Four exchanges, to parts of the channels and back, of whole spectra."""
            y = turned(torch.fft.rfftn(x, dim=(2, 3)), 0, 1)
            y = torch.fft.fft(y, dim=1).index_select(1, kept)
            y = turned(y, 1, 0)[..., : half + 1].index_select(2, kept)
            y = padded(multiplied(y, w), 2, n)
            y = torch.nn.functional.pad(y, (0, n // 2 - half))
            y = padded(turned(y, 0, 1), 1, n)
            y = turned(torch.fft.ifft(y, dim=1), 1, 0)
            return torch.fft.irfftn(y, (n, n), (2, 3))

        layers = dict(thriffty=thriffty, truncated=truncated, channels=channels)
        calls, memory, first = {}, {}, None
        for name, layer in layers.items():

            def call(layer=layer, w=sides[name]):
                x.grad = w.grad = None
                layer(x, w).backward(gradient)

            y = layer(x, sides[name]).detach()
            first = y if name == "thriffty" else first
            far = (y - first).norm() / first.norm()
            assert far < 1e-5, (name, float(far))
            memory[name] = ranks.peak(call)
            calls[name] = call
        # The plan's memory is not the allocator's. Of this norm, gradients need no other plan.
        memory["thriffty"] += plan.workspace_bytes
        times = ranks.time(calls)
        with torch.no_grad():
            y = fft.forward(x, plan)
            parts = {
                "forward": lambda: fft.forward(x, plan),
                "inverse": lambda: fft.inverse(y, plan),
                "multiplied": lambda: multiplied(y, sides["thriffty"]),
            }
            parts = ranks.time(parts)
    ranks.print(
        f"\nspectral convolution: {CHANNELS} channels of {n}^3 f32, {modes}^3 modes, slabs along X,"
        " forward and backward"
    )
    ranks.print(f"{'side':>10} {'ms':>8} {'GB':>6}  of torch.fft: ratio of ours, time and memory")
    for name in layers:
        ratios = (times["thriffty"] / times[name], memory["thriffty"] / memory[name])
        shown = "{:6.2f} {:6.2f}".format(*ratios) if name != "thriffty" else ""
        ranks.print(f"{name:>10} {times[name]:8.3f} {memory[name] / 1e9:6.2f}  {shown}")
    shown = ", ".join(f"{name} {ms:.3f}" for name, ms in parts.items())
    ranks.print(f"parts of ours, without gradients: {shown}")


def local(ranks):
    import thriffty.torch as fft

    torch = ranks.torch
    ranks.print(
        "\nrfftn of one GPU, ms (both GPUs at once, the slower one); with a gradient: behind"
    )
    ranks.print("     N      type  thriffty     torch  ratio  thriffty     torch  ratio")
    for n in (256, 500, 512, 768, 1000):
        for dtype in (torch.float32, torch.float64):
            shown = []
            for ours, theirs in transforms(ranks, ranks.size_of(n), dtype):
                shown.append(f"{ours:9.3f} {theirs:9.3f} {ours / theirs:6.2f}")
            name = str(dtype).removeprefix("torch.")
            ranks.print(f"{n:6} {name:>9}", *shown)
            fft.clear_plans()
            ranks.empty_cache()


def transforms(ranks, n, dtype):
    """The times of both sides, forward, and of forward and backward."""
    import thriffty.torch as fft

    torch = ranks.torch
    x = torch.randn(n, n, n, dtype=dtype, device=ranks.device)
    y = torch.fft.rfftn(x)
    far = (fft.rfftn(x) - y).abs().max() / n**1.5
    assert far < 1e-5, far
    yield ranks.time({"ours": lambda: fft.rfftn(x), "torch": lambda: torch.fft.rfftn(x)}).values()
    x.requires_grad_()

    def gradient(rfftn):
        torch.autograd.grad(rfftn(x), x, y)

    sides = {
        "ours": lambda: gradient(fft.rfftn),
        "torch": lambda: gradient(torch.fft.rfftn),
    }
    yield ranks.time(sides).values()


# -- JAX ------------------------------------------------------------------------------------------


def jax_cubes(side, cut, make):
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec

    import thriffty.jax as fft

    jax.config.update("jax_enable_x64", True)
    mesh = cut[0].mesh

    def shard_map(x):
        y = jnp.fft.fftn(x, axes=(1, 2))
        y = jax.lax.all_to_all(y, "a", 1, 0, tiled=True)
        return jnp.fft.fft(y, axis=0)

    if side == "jax":
        specs = [PartitionSpec("a"), PartitionSpec(None, "a")]
        call = jax.shard_map(shard_map, mesh=mesh, in_specs=specs[0], out_specs=specs[1])
    else:
        call = lambda x: fft.fftn(x, sharding=cut[0], out_sharding=cut[1])  # noqa: E731
    call = jax.jit(call)
    for n in (512, 1024):
        for name in ("complex64", "complex128"):
            points = SMALL[n] if jax.default_backend() == "cpu" else n
            ms = jax_cube(call, make((points,) * 3, name))
            if jax.process_index() == 0:
                print(f"{n:6} {name:>12} {ms:9.3f}  {side}", flush=True)


def jax_cube(call, x):
    import jax

    result = [None]

    def run():
        result[0] = call(x)

    return timed({"it": run}, lambda: jax.block_until_ready(result[0]))["it"]


def jax_process(side, rank, port):
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    if side != "jax":
        jax.distributed.initialize(f"127.0.0.1:{port}", 2, rank, local_device_ids=[rank])
    mesh = Mesh(np.array(jax.devices()), "a")
    cut = [NamedSharding(mesh, PartitionSpec(*[None] * axis, "a")) for axis in (0, 1)]

    def make(shape, dtype):
        key = jax.random.key(0)
        new = jax.jit(lambda: jax.random.normal(key, shape, dtype), out_shardings=cut[0])
        return new()

    jax_cubes(side, cut, make)


def jax(ranks):
    # NCCL's kernels would wait on the GPUs.
    ranks.dist.destroy_process_group()
    if ranks.rank == 0:
        print("\nJAX, c2c as above, ms", flush=True)
        own = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
        environment = {name: value for name, value in os.environ.items() if name not in own}
        environment["XLA_PYTHON_CLIENT_MEM_FRACTION"] = ".6"
        if not ranks.on_gpu:
            environment["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
        for side, processes in (("jax", 1), ("thriffty.jax", 2)):
            if processes == 2:
                environment.pop("XLA_FLAGS", None)
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            commands = [
                [sys.executable, __file__, "--jax", side, str(rank), str(port)]
                for rank in range(processes)
            ]
            started = [subprocess.Popen(command, env=environment) for command in commands]
            for process in started:
                try:
                    process.wait(150)
                except subprocess.TimeoutExpired:
                    process.kill()
                    print(f"{side}: no end after 150 s", flush=True)


def main():
    if "--jax" in sys.argv:
        side, rank, port = sys.argv[2:]
        jax_process(side, int(rank), int(port))
        return
    ranks = Ranks()
    sections = dict(c2c=c2c, conv=conv, local=local, jax=jax)
    for name in sys.argv[1:] or sections:
        sections[name](ranks)
        ranks.empty_cache()
    if ranks.dist.is_initialized():
        ranks.dist.destroy_process_group()


if __name__ == "__main__":
    main()
