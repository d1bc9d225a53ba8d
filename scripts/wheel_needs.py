"""Says whether the modules in a wheel need only what its platform has: `wheel_needs.py PLATFORM WHEEL`.

For wheels of other machines, which auditwheel does not look at: the machine of each module, the libraries it needs,
and the newest version of glibc's symbols.
"""

from __future__ import annotations

import io
import re
import sys
import zipfile

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

MACHINES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}
LIBRARIES = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libc.so"}
LOADERS = {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def problems(platform: str, module: bytes) -> list[str]:
    """What a module needs that its platform may not have."""
    name, machine = re.fullmatch(r"(many|musl)linux_\d+_\d+_(\w+)", platform).groups()  # type: ignore[union-attr]
    most = tuple(map(int, re.findall(r"\d+", platform)[:2])) if name == "many" else None
    file = ELFFile(io.BytesIO(module))
    found = [] if file["e_machine"] == MACHINES[machine] else [f"it is for {file['e_machine']}"]
    dynamic = file.get_section_by_name(".dynamic")
    needed = {tag.needed for tag in dynamic.iter_tags() if tag.entry.d_tag == "DT_NEEDED"}
    found += [f"it needs {library}" for library in sorted(needed - LIBRARIES - LOADERS)]
    for section in file.iter_sections():
        if not isinstance(section, GNUVerNeedSection):
            continue
        for _, versions in section.iter_versions():
            for version in versions:
                number = re.fullmatch(r"GLIBC_([\d.]+)", version.name)
                if number and (most is None or tuple(map(int, number[1].split("."))) > most):
                    found.append(f"it needs {version.name}")
    return found


def main(platform: str, wheel: str) -> int:
    """Print what is wrong with a wheel, and return the exit code."""
    with zipfile.ZipFile(wheel) as archive:
        modules = [name for name in archive.namelist() if name.endswith(".so")]
        found = [
            f"{name}: {problem}" for name in modules for problem in problems(platform, archive.read(name))
        ]
    print("\n".join(found) or f"{len(modules)} module needs only what {platform} has")
    return 1 if found or not modules else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
