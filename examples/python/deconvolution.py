"""Sharpens a blurred image on one machine, by Wiener's filter.

Run: python deconvolution.py
"""

import numpy as np

import thriffty

SIZE, WIDTH, NOISE = 480, 2.5, 1e-4


def image() -> np.ndarray:
    """Discs and bars of several sizes."""
    y, x = np.mgrid[:SIZE, :SIZE] / SIZE
    picture = np.zeros((SIZE, SIZE))
    for i, (u, v) in enumerate([(0.3, 0.3), (0.7, 0.35), (0.45, 0.72)]):
        picture[np.hypot(x - u, y - v) < 0.05 * (i + 1)] = 1.0
    picture[(x > 0.8) & (np.sin(2 * np.pi * y * 20) > 0)] = 0.7
    return picture


def main() -> None:
    sharp = image()
    # The transform of a Gaussian, along each axis.
    k = 2 * np.pi * thriffty.fftfreq(SIZE)
    blur = np.exp(-0.5 * WIDTH**2 * (k[:, None] ** 2 + k[None, : SIZE // 2 + 1] ** 2))
    seen = thriffty.irfft2(thriffty.rfft2(sharp) * blur, s=sharp.shape)
    seen += NOISE * np.random.default_rng(0).standard_normal(seen.shape)

    wiener = blur / (blur**2 + NOISE**2 / sharp.var())
    restored = thriffty.irfft2(thriffty.rfft2(seen) * wiener, s=sharp.shape)

    before, after = (np.linalg.norm(x - sharp) / np.linalg.norm(sharp) for x in (seen, restored))
    print(f"distance from the sharp image: blurred {before:.3f}, restored {after:.3f}")
    assert after < 0.75 * before


if __name__ == "__main__":
    main()
