"""The programs of ranks with DTensors in `test_groups.py`. Imports torch."""

import functools

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

import thriffty
import thriffty.torch as fft


def close(found, expected):
    """Whether numbers are equal up to rounding."""
    far = torch.linalg.vector_norm(found - expected)
    return bool(far <= 1e-14 * torch.linalg.vector_norm(expected) + 1e-300)


def checks(world, device="cpu"):
    """Runs all checks on the group of all ranks."""
    mesh = dist.init_device_mesh(device, (world.size,))
    for cuts in [((0,), (0,)), ((0,), (1,)), ((2,), (0,)), ((1,), (2,)), ((-1,), (-3,))]:
        every_transform(world, mesh, (5, 7, 6), (0, 1, 2), cuts)
    # Leading batch axes, cut or whole, and axes in between that are not transformed.
    every_transform(world, mesh, (2, 3, 4, 6), (2, 3), ((2,), (3,)))
    every_transform(world, mesh, (4, 3, 4, 6), (2, 3), ((0,), (0,)))
    every_transform(world, mesh, (3, 4, 6), (1, 2), ((0,), (1,)))
    every_transform(world, mesh, (3, 4, 6), (0, 2), ((1,), (2,)))
    if world.size % 2 == 0:
        several = dist.init_device_mesh(device, (2, world.size // 2), mesh_dim_names=("a", "b"))
        for cuts in [((0, 1), (1, 2)), ((0, 0), (1, 0)), ((2, 1), (2, 1))]:
            every_transform(world, several, (5, 7, 6), (0, 1, 2), cuts)
        every_transform(world, several, (3, 5, 6), (1, 2), ((0, 1), (0, 2)))
        every_transform(world, several, (3, 5, 6), (1, 2), ((1, 0), (1, 0)))
    refusals(world, mesh)
    if world.size == 2:
        # This takes longer than everything else.
        compiled(world, mesh)
    if device == "cpu":
        errors_are_those_of_all(world)
        bricks_of_a_plan(world)


def every_transform(world, mesh, shape, dim, cuts):
    """Values and gradients equal those on one device."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(shape, dtype=torch.float64, generator=generator).to(mesh.device_type)
    given, made = ([Shard(axis) for axis in cut] for cut in cuts)
    s = [x.shape[axis] for axis in dim]
    longer = [n + 2 for n in s]
    for call, whole in [
        (lambda x, **to: fft.fftn(x, dim=dim, **to), x + 1j),
        (lambda x, **to: fft.rfftn(x, dim=dim, norm="ortho", **to), x),
        (lambda x, **to: fft.rfftn(x, longer, dim, **to), x),
        (lambda x, **to: fft.irfftn(x, s, dim, **to), torch.fft.rfftn(x, dim=dim)),
        (lambda x, **to: fft.rfftn(x, dim=dim, modes=3, **to), x),
        (lambda x, **to: fft.irfftn(x, s, dim, modes=2, **to), fft.rfftn(x, dim=dim, modes=2)),
        (lambda x, **to: fft.dctn(x, 3, dim=dim, **to), x),
    ]:
        whole = whole.clone().requires_grad_()
        parts = distribute_tensor(whole.detach(), mesh, given).requires_grad_()
        expected, y = call(whole), call(parts, placements=made)
        assert list(y.placements) == [Shard(axis % len(shape)) for axis in cuts[1]]
        weights = torch.arange(expected.numel(), device=x.device).view(expected.shape) + 1.0
        assert y.shape == expected.shape
        assert world.all_true(close(y.full_tensor(), expected))
        (expected * weights).abs().square().sum().backward()
        scaled = y * distribute_tensor(weights, mesh, made)
        scaled.abs().square().sum().backward()
        assert isinstance(parts.grad, DTensor)
        assert world.all_true(close(parts.grad.full_tensor(), whole.grad))
    parts = distribute_tensor(x, mesh, given)
    same = [Shard(axis % len(shape)) for axis in cuts[0]]
    assert list(fft.fftn(parts, dim=dim).placements) == same


def refusals(world, mesh):
    ones = functools.partial(torch.ones, device=mesh.device_type)
    x = distribute_tensor(ones(4, 6), mesh, [Shard(0)])
    world.same_error(lambda: fft.fftn(x, placements=[Replicate()]), "would all")
    partial = DTensor.from_local(ones(4, 6), mesh, [Partial()])
    world.same_error(lambda: fft.fftn(partial), "redistribute")
    world.same_error(lambda: fft.fftn(x.redistribute(mesh, [Replicate()])), "would all")
    world.same_error(lambda: fft.fftn(x, placements=[]), "one for each of 1 axes")
    world.same_error(lambda: fft.fftn(x, (3, 6)), "points along axis 0 of a DTensor: found 4")
    world.same_error(lambda: fft.dctn(x, norm="ortho"), "norm")
    five = ones(1, 2, 4, 2, 3)
    cut = distribute_tensor(five, mesh, [Shard(0)])
    world.same_error(lambda: fft.fftn(cut), "number of axes: found 5")


def errors_are_those_of_all(world):
    plan = thriffty.Plan((4, 6), float, comm=dist.group.WORLD)
    good = torch.zeros(plan.input_shape, dtype=torch.float64)
    for bad, text in [
        (good.float(), "dtype of x"),
        (torch.zeros(9, 9, 9, dtype=torch.float64), "shape of x"),
        (good.numpy(), "x: found ndarray"),
    ]:
        given = bad if world.rank == world.last else good
        world.same_error(lambda: fft.forward(given, plan), f"rank {world.last}", text)
    # The same for gradients, which use another plan.
    y = fft.forward(good.requires_grad_(), plan)
    if world.rank == world.last:
        plan._exchanged()._failed = OSError("no such field")
    else:
        plan._exchanged()
    world.same_error(lambda: y.abs().sum().backward(), "no such field")
    plan.close()


def compiled(world, mesh):
    x = torch.randn(4, 6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    x = x.to(mesh.device_type)
    parts = distribute_tensor(x, mesh, [Shard(0)]).requires_grad_()

    def loss(x):
        y = fft.rfftn(x, placements=[Shard(1)])
        return fft.irfftn(y * y, x.shape, placements=[Shard(0)]).square().sum()

    function = torch.compile(loss, fullgraph=True, backend="aot_eager")
    gradients = []
    for call in (loss, function):
        (gradient,) = torch.autograd.grad(call(parts), parts)
        gradients.append(gradient.full_tensor())
    assert world.all_true(close(gradients[1], gradients[0]))


def bricks_of_a_plan(world):
    """Gradients of plans with bricks of any size, against differences."""
    for arguments in [
        dict(shape=(5, 4, 6), dtype=float, modes=(4, 3, 5), norm="ortho"),
        dict(shape=(5, 4, 6), dtype=complex, transposed_output=True),
        dict(shape=(5, 4), dtype=float, kinds=("dct2", "dst3"), batch=2),
        dict(shape=(5, 6), dtype=float, zero_padded=(8, 6)),
    ]:
        with thriffty.Plan(**arguments, comm=dist.group.WORLD) as plan:
            for call, side in ((fft.forward, 0), (fft.inverse, 1)):
                generator = torch.Generator().manual_seed(world.rank)
                form = dict(dtype=getattr(torch, plan._dtypes[side].name), generator=generator)
                x, step = (torch.randn(plan._shapes[side], **form) for _ in range(2))
                x.requires_grad_()
                y = call(x, plan)
                y.abs().square().sum().backward()
                # The derivative of a square is twice the product with the image of the step.
                change = 2 * (y.detach().conj() * call(step, plan)).real.sum()
                slope = (x.grad.conj() * step).real.sum()
                all_of = [torch.stack([change, slope]).tolist()]
                total = np.sum([it[0] for it in world.gather(all_of)], axis=0)
                assert world.all_true(abs(total[0] - total[1]) <= 1e-12 * abs(total[0]) + 1e-9)
