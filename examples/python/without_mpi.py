"""Without MPI: a process group over pipes, and a transform that equals NumPy's."""

import multiprocessing

import numpy as np

import thriffty

RANKS, SHAPE = 4, (128, 128, 128)


class PipeGroup:
    """Processes connected by pipes, one for each pair of ranks."""

    def __init__(self, rank, pipes):
        self.rank, self.size, self.pipes = rank, len(pipes), pipes

    def allgather(self, mine):
        return self.alltoallv([mine] * self.size)

    def alltoallv(self, parts):
        received = list(parts)
        # Pairs are in the same order everywhere, and the lower rank sends first: no deadlock.
        for peer in (peer for peer in range(self.size) if peer != self.rank):
            if self.rank < peer:
                self.pipes[peer].send_bytes(parts[peer])
            received[peer] = self.pipes[peer].recv_bytes()
            if self.rank > peer:
                self.pipes[peer].send_bytes(parts[peer])
        return received


def transform(rank, pipes):
    whole = np.random.default_rng(0).standard_normal(SHAPE)
    with thriffty.Plan(SHAPE, float, comm=PipeGroup(rank, pipes)) as plan:
        spectrum = plan.forward(np.ascontiguousarray(whole[plan.input_slices]))
        np.testing.assert_allclose(spectrum, np.fft.rfftn(whole)[plan.output_slices], atol=1e-9)
        print(f"rank {rank}: {spectrum.shape} of {plan.spectral_shape} modes are NumPy's")


if __name__ == "__main__":
    pipes = np.full((RANKS, RANKS), None)
    for a, b in zip(*np.tril_indices(RANKS, -1)):
        pipes[a, b], pipes[b, a] = multiprocessing.Pipe()
    processes = [multiprocessing.Process(target=transform, args=each) for each in enumerate(pipes)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    raise SystemExit(any(process.exitcode for process in processes))
