"""One of the two processes of `test_jax.py`, which have one device each and exchange data.

Run with JAX_PLATFORMS=cuda for two GPUs.
"""

import os
import socket
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import thriffty
import thriffty._jax_sharded as sharded
import thriffty.jax as fft


def address(rank, folder):
    """The address of the first process, which finds a free port."""
    file = folder / "address"
    if rank == 0:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        (folder / "new").write_text(f"127.0.0.1:{port}")
        (folder / "new").rename(file)
    while not file.exists():
        time.sleep(0.01)
    return file.read_text()


def local(whole, sharding):
    """A distributed array, of which this process has one part."""
    return jax.make_array_from_callback(whole.shape, sharding, lambda part: whole[part])


def same(found, whole):
    for shard in found.addressable_shards:
        np.testing.assert_allclose(shard.data, whole[shard.index], rtol=0, atol=1e-9)


def main(rank, folder):
    mine = [rank] if os.environ["JAX_PLATFORMS"] == "cuda" else None
    jax.distributed.initialize(address(rank, folder), 2, rank, local_device_ids=mine)
    jax.config.update("jax_enable_x64", True)
    # As on GPUs. On CPUs this only works if no two calls of a program are independent.
    if mine is None:
        sharded._ordered = lambda mesh: True
    mesh = Mesh(np.array(jax.devices()), "a")
    cut = [NamedSharding(mesh, PartitionSpec(*[None] * axis, "a")) for axis in range(3)]
    whole = np.random.default_rng(0).standard_normal((2, 4, 6, 8))
    cut4 = [NamedSharding(mesh, PartitionSpec(None, *it.spec)) for it in cut]
    axes = (1, 2, 3)
    x = local(whole, cut4[0])
    there = dict(axes=axes, sharding=cut4[0], out_sharding=cut4[1])
    back = dict(axes=axes, sharding=cut4[1], out_sharding=cut4[0])
    for modes in (None, (4, 4, 5)):
        y = jax.jit(lambda x: fft.rfftn(x, modes=modes, **there))(x)
        spectrum = fft.rfftn(whole, axes=axes, modes=modes)
        same(y, spectrum)
        same(
            jax.jit(lambda y: fft.irfftn(y, whole.shape[1:], modes=modes, **back))(y),
            np.asarray(fft.irfftn(spectrum, whole.shape[1:], axes, modes=modes)),
        )

    def loss(x, there, back):
        y = fft.rfftn(x, modes=(4, 4, 5), **there)
        return (fft.irfftn(y * y, whole.shape[1:], modes=(4, 4, 5), **back) ** 3).sum()

    expected = jax.grad(loss)(jnp.asarray(whole), dict(axes=axes), dict(axes=axes))
    same(jax.jit(jax.grad(lambda x: loss(x, there, back)))(x), np.asarray(expected))
    # Arrays under vmap share one exchange.
    many = jax.vmap(lambda x: fft.fftn(x, sharding=cut[0], out_sharding=cut[2]))
    same(jax.jit(many)(x + 0j), np.fft.fftn(whole, axes=axes))
    # An error of the library is raised on both processes.
    ends = dict(sharding=cut[0], out_sharding=cut[1])
    for _ in range(2):
        try:
            fft.dctn(local(np.ones((2, 4, 1)), cut[0]), 1, **ends).block_until_ready()
            raise AssertionError("a call that does not fail")
        except (jax.errors.JaxRuntimeError, ValueError) as error:
            assert "dct1" in str(error), error
    assert thriffty.fft(np.ones(2))[0] == 2


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
