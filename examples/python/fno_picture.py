"""A picture of three fields and of the loss, as SVG, for fno.py."""

import base64
import struct
import zlib

import numpy as np

SIDE, GAP = 200, 24
NAMES = ("given: time 0", "solver: time 0.5", "network: time 0.5")


def save(path, fields, losses):
    """Writes fields next to each other with one colour scale, and the loss by step."""
    most = np.abs(fields).max()
    parts = []
    for number, (name, field) in enumerate(zip(NAMES, fields)):
        left = GAP + number * (SIDE + GAP)
        picture = base64.b64encode(_png(_colours(field / most))).decode()
        parts.append(
            f'<image x="{left}" y="30" width="{SIDE}" height="{SIDE}"'
            f' preserveAspectRatio="none" href="data:image/png;base64,{picture}"/>'
            f'<text x="{left}" y="22">{name}</text>'
        )
    parts.append(_curve(losses, GAP + 3 * (SIDE + GAP) + 40))
    width, height = GAP + 4 * (SIDE + GAP) + 60, SIDE + 60
    with open(path, "w") as file:
        file.write(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
            f' font-family="sans-serif" font-size="13" fill="#333">'
            f'<rect width="{width}" height="{height}" fill="#fff"/>{"".join(parts)}</svg>\n'
        )


def _colours(field):
    """Blue for -1, white for 0, red for 1."""
    up, down = np.clip(field, 0, 1)[..., None], np.clip(-field, 0, 1)[..., None]
    white, red, blue = np.array([255, 255, 255]), np.array([178, 24, 43]), np.array([33, 102, 172])
    return (white + up * (red - white) + down * (blue - white)).astype(np.uint8)


def _png(pixels):
    def chunk(name, data):
        end = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + end

    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def _curve(losses, left):
    """The loss on a logarithmic axis, with a line for each power of ten."""
    logs = np.log10(losses)
    low, high = np.floor(logs.min()), np.ceil(logs.max())

    def height(log):
        return 30 + SIDE * (high - log) / (high - low)

    across = left + SIDE * np.arange(len(logs)) / max(1, len(logs) - 1)
    points = " ".join(f"{x:.1f},{height(log):.1f}" for x, log in zip(across, logs))
    parts = [f'<text x="{left}" y="22">loss by step</text>']
    for power in range(int(low), int(high) + 1):
        y = height(power)
        parts.append(f'<path d="M{left} {y:.1f}h{SIDE}" stroke="#ccc"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">1e{power}</text>')
    parts.append(f'<polyline points="{points}" fill="none" stroke="#b2182b" stroke-width="1.5"/>')
    parts.append(f'<text x="{left + SIDE}" y="{SIDE + 48}" text-anchor="end">{len(logs)}</text>')
    return "".join(parts)
