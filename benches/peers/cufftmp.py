"""Times cuFFTMp on several GPUs of one host, with a process for each, through nvmath-python.

Run: python benches/peers/cufftmp.py check
     python benches/peers/cufftmp.py shuffled|natural GPUS N f32|f64 c2c|r2c

`check` fails where nvmath-python, CuPy, PyTorch or cuFFTMp's library is missing. Otherwise N^3
points in slabs along X are transformed forward in place: `shuffled` leaves slabs along Y,
`natural` slabs along X. The seconds include what nvmath-python adds: its calls, and for `natural` a
copy of the result into the operand.

Prints `ready`; for each line `go` the seconds of the slowest process; ends at `quit` or the end of
the input.
"""

import multiprocessing
import os
import socket
import sys
import time
import traceback
from multiprocessing import connection

# The seconds that processes have to end by themselves.
FAREWELL = 4


def check():
    """Loads what a run needs."""
    import cupy  # noqa: F401
    import nvmath.distributed  # noqa: F401
    import torch.distributed  # noqa: F401
    from nvmath.bindings import cufftMp

    cufftMp.get_version()


def settings(gpus, n, precision):
    """Settings of libraries for processes that NVLink joins, where the user has none."""
    part = n**3 * (8 if precision == "f32" else 16) // gpus
    # cuFFTMp's work areas are there, too.
    usual = {
        "NVSHMEM_SYMMETRIC_SIZE": str(4 * part + (1 << 31)),
        "NVSHMEM_REMOTE_TRANSPORT": "none",
        "NVSHMEM_DISABLE_NVLS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
    }
    for name, value in usual.items():
        os.environ.setdefault(name, value)


def run(*arguments):
    """One process. After an error it ends at once, where NVSHMEM would wait for the others."""
    # Libraries print to standard output, which is for answers.
    os.dup2(2, 1)
    try:
        work(*arguments)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def work(rank, order, gpus, n, precision, kind, port, pipe):
    """Transforms for each message, and answers with the seconds."""
    import cupy
    import nvmath.distributed as distributed
    import torch.distributed as group
    from nvmath.distributed.distribution import Slab
    from nvmath.distributed.process_group import TorchProcessGroup

    cupy.cuda.Device(rank).use()
    address = f"tcp://127.0.0.1:{port}"
    group.init_process_group("gloo", init_method=address, rank=rank, world_size=gpus)
    distributed.initialize(rank, TorchProcessGroup(device_id="cpu"), backends=["nvshmem"])
    # The first processes have what is left over.
    planes = n // gpus + (rank < n % gpus)
    real = cupy.float32 if precision == "f32" else cupy.float64
    number = real if kind == "r2c" else cupy.result_type(real, cupy.complex64)
    shape = (planes, n, n)
    # Symmetric memory has the same size on all processes, and room for slabs along Y.
    data = distributed.fft.allocate_operand(shape, cupy, input_dtype=number, distribution=Slab.X)
    # Rows of real data have padding behind them: such an array has no other view.
    reals = data if kind == "r2c" else data.view(real)
    # Numbers of ordinary size.
    formula = "value = (unsigned long long)i * 2654435761ull % 1000 / 1000.0 - 0.5"
    fill = cupy.ElementwiseKernel("", "T value", formula, "fill")
    fill(reals)
    options = {"redistribute": order == "natural", "blocking": True}
    with distributed.fft.FFT(data, distribution=Slab.X, options=options) as transform:
        transform.plan()
        pipe.send("ready")
        while pipe.recv():
            fill(reals)
            transform.reset_operand(data, distribution=Slab.X)
            cupy.cuda.Device().synchronize()
            group.barrier()
            start = time.perf_counter()
            transform.execute()
            cupy.cuda.Device().synchronize()
            pipe.send(time.perf_counter() - start)
    distributed.free_symmetric_memory(data)


def serve(order, gpus, n, precision, kind):
    """Starts the processes, and hands on the orders of standard input."""
    settings(gpus, n, precision)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    processes, pipes = [], []
    for rank in range(gpus):
        mine, theirs = context.Pipe()
        arguments = (rank, order, gpus, n, precision, kind, port, theirs)
        # They end with this process, whatever ends it.
        processes.append(context.Process(target=run, args=arguments, daemon=True))
        processes[-1].start()
        theirs.close()
        pipes.append(mine)

    def answers():
        """One of each process; an error as soon as one has ended."""
        found, waiting = [], list(pipes)
        while waiting:
            for pipe in connection.wait(waiting):
                found.append(pipe.recv())
                waiting.remove(pipe)
        return found

    answers()
    print("ready", flush=True)
    for line in sys.stdin:
        go = line.strip() == "go"
        for pipe in pipes:
            pipe.send(go)
        if not go:
            break
        print(f"{max(answers()):.9f}", flush=True)
    else:
        for pipe in pipes:
            pipe.send(False)
    end = time.monotonic() + FAREWELL
    for process in processes:
        process.join(max(0, end - time.monotonic()))


if __name__ == "__main__":
    if sys.argv[1:] == ["check"]:
        check()
    elif len(sys.argv) == 6 and sys.argv[1] in ("shuffled", "natural"):
        serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
    else:
        sys.exit("usage: cufftmp.py check, or shuffled|natural GPUS N f32|f64 c2c|r2c")
