"""Whether cuFFT gives a line the same bits alone, among others, and as a column.

Needs CuPy: ``python3 benches/peers/cufft_bits.py``
"""

import cupy
from cupy.cuda import cufft

LENGTHS = [16, 30, 64, 100, 128, 210, 256, 360, 384, 500, 512, 729, 1000, 1024, 2048, 4096]
LENGTHS += [101, 1009]
BATCHES = [2, 3, 7, 16, 64, 100, 512, 1000]


def transform(lines, columns, kind):
    """The forward transforms of ``lines``, as rows or as columns of memory."""
    count, n = lines.shape
    source = cupy.ascontiguousarray(lines.T) if columns else cupy.ascontiguousarray(lines)
    result = cupy.empty_like(source)
    stride, dist = (count, 1) if columns else (1, n)
    plan = cufft.PlanNd((n,), (n,), stride, dist, (n,), stride, dist, kind, count, "C", 0, n)
    plan.fft(source, result, cufft.CUFFT_FORWARD)
    return result.T if columns else result


def main():
    random = cupy.random.RandomState(1)
    for dtype, kind in [(cupy.complex64, cufft.CUFFT_C2C), (cupy.complex128, cufft.CUFFT_Z2Z)]:
        rows, columns = [], []
        for n in LENGTHS:
            numbers = random.standard_normal((max(BATCHES), n, 2)).view(cupy.complex128)[..., 0]
            lines = numbers.astype(dtype)
            alone = {}

            def differs(count, columns):
                found = transform(lines[:count], columns, kind)
                for line in {0, count // 2, count - 1}:
                    if line not in alone:
                        alone[line] = transform(lines[line : line + 1], False, kind)[0]
                    if not cupy.array_equal(found[line], alone[line]):
                        return True
                return False

            rows += [(n, count) for count in BATCHES if differs(count, False)]
            columns += [(n, count) for count in BATCHES if differs(count, True)]
        total = len(LENGTHS) * len(BATCHES)
        print(f"{dtype.__name__}: of {total} lengths and numbers of lines, some line differs")
        print(f"  among rows    {len(rows):4}: lengths {sorted({n for n, _ in rows})}")
        print(f"  among columns {len(columns):4}: lengths {sorted({n for n, _ in columns})}")


main()
