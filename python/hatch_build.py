"""Puts libthriffty.so into the wheel: libraries that exist, or those that cargo builds.

`THRIFFTY_LIBRARIES` names a folder with `MPI/libthriffty.so` for each MPI. Without it the library
without MPI is built, and that of `mpicc`, if there is one.
"""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# What a library needs, and the name of its MPI.
MPI = {
    r"libmpi\.so\.40": "openmpi",
    r"libmpi(ch)?\.so\.12": "mpich",
    r"libmpi_abi\.so\.[01]": "mpi_abi",
}


class BuildHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict) -> None:
        if sys.platform != "linux":
            self.app.abort("thriffty: the Python package is for Linux")
        libraries = self.given() or self.built()
        for mpi, library in libraries.items():
            inside = f"thriffty/lib/{mpi}/libthriffty.so"
            if version == "editable":
                # Python then imports the package from here.
                place = Path(self.root, "python", inside)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(library, place)
            else:
                build_data["force_include"][str(library)] = inside
        build_data["pure_python"] = False
        build_data["tag"] = self.tag(libraries.values())

    def given(self) -> dict[str, Path]:
        folder = os.environ.get("THRIFFTY_LIBRARIES")
        if not folder:
            return {}
        found = {path.parent.name: path for path in Path(folder).glob("*/libthriffty.so")}
        if not found:
            self.app.abort(f"thriffty: no */libthriffty.so in THRIFFTY_LIBRARIES={folder}")
        for mpi, library in found.items():
            if (needed := self.mpi(library)) != mpi:
                self.app.abort(f"thriffty: {library} belongs to {needed}, not to {mpi}")
        return found

    def built(self) -> dict[str, Path]:
        """Builds with cargo."""
        libraries = [self.build("serial", mpi=False)]
        compiler = os.environ.get("MPICC", "mpicc")
        if shutil.which(compiler):
            # The bindings are not made anew for another MPI: each has a folder of its own.
            shown = self.run([compiler, "-show"])
            libraries.append(self.build(hashlib.sha256(shown.encode()).hexdigest()[:8], mpi=True))
        return {self.mpi(library): library for library in libraries}

    def build(self, name: str, mpi: bool) -> Path:
        if not shutil.which("cargo"):
            self.app.abort("thriffty: no cargo on PATH; the library needs Rust 1.88 or later")
        target = Path(self.root, os.environ.get("CARGO_TARGET_DIR", "target"), "wheel", name)
        # Bindings to MPI and to NVTX both need libclang.
        features = "fft-capi/mpi,fft-capi/cuda,fft-capi/nvtx" if mpi else "fft-capi/cuda"
        command = ["cargo", "build", "--release", "--locked", "--package", "fft-capi"]
        command += ["--features", features, "--target-dir", str(target)]
        if subprocess.run(command, cwd=self.root).returncode != 0:
            hint = "; MPI needs libclang, and an empty MPICC leaves MPI out" if mpi else ""
            self.app.abort(f"thriffty: `{' '.join(command)}` failed{hint}")
        library = target / "libthriffty.so"
        self.run(["objcopy", "--strip-unneeded", target / "release/libfft_capi.so", library])
        return library

    def mpi(self, library: Path) -> str:
        """The MPI that a library needs, or "serial"."""
        for needed in re.findall(r"NEEDED +(libmpi.*)", self.headers(library)):
            for pattern, mpi in MPI.items():
                if re.fullmatch(pattern, needed):
                    return mpi
            self.app.abort(f"thriffty: {library} needs {needed}, of an unknown MPI")
        return "serial"

    def tag(self, libraries) -> str:
        """Names the oldest GNU C library that all libraries run with."""
        versions = [re.findall(r"GLIBC_2\.(\d+)", self.headers(library)) for library in libraries]
        newest = max(int(minor) for found in versions for minor in found)
        return f"py3-none-manylinux_2_{newest}_{platform.machine()}"

    def headers(self, library: Path) -> str:
        return self.run(["objdump", "-p", library])

    def run(self, command: list) -> str:
        try:
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout
        except OSError as why:
            self.app.abort(f"thriffty: cannot start {command[0]}: {why}")
        except subprocess.CalledProcessError as why:
            self.app.abort(f"thriffty: {why}\n{why.stderr}")
