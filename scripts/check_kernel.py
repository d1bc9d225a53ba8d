"""Build the tests of the kernel under sanitizers and run them: `python scripts/check_kernel.py`.

    tests/native/*.cpp, ggufbpe/native/src -> .cache/kernel-tests-<sanitizers>/ -> [this file] -> exit status

Without arguments, a short run under AddressSanitizer and UndefinedBehaviorSanitizer, for CI: reused memory, words of
every length, and fuzzing of the reader of strings, the splitter and the encoder against slow models. `--long MINUTES`
fuzzes for that long; `--threads` runs many threads under ThreadSanitizer; `--sharing` counts what threads have in
common; `--plain` runs without sanitizers, and ten times the cases. A case that fails is printed with the arguments that
repeat it. So is one that is slow: not by the clock, which says little on a busy machine and under sanitizers, but by
the basic blocks that the kernel runs, which are the same every time (-fsanitize-coverage=trace-pc counts them).

`--compilers` checks all sources of the compiled engine and of its tests as strict C++17 (-pedantic -Werror) with g++
and with clang 14, the oldest clang that is supported, and makes no object files; Debian's package for that is clang-14.

`--arm64`, `--s390x` (big-endian) and `--windows` compile for that machine and run here, in QEMU or Wine, without
sanitizers. Debian's packages for that are g++-aarch64-linux-gnu or g++-s390x-linux-gnu with qemu-user, and
g++-mingw-w64-x86-64-posix with wine and wine64. `--musl` compiles for Alpine's C library, whose threads have stacks of
128 KiB, and as the wheels are compiled: with Zig's compiler and its C++ library (the package ziglang, of the extra
`release`). These programs are static and run anywhere.

Needs CMake and a C++17 compiler (CXX; g++ and clang++ have the sanitizers). Cases of the fuzzers come from a seed, so
that a run can be repeated; `--libfuzzer` lets clang's libFuzzer choose them by the code they reach.

But: the extension as Python uses it is tested by tests/; this is only the C++.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
# They always have the same cases.
CHECKS = ("check_memory", "check_polls", "check_seeds", "check_training", "check_words")
FUZZERS = ("fuzz_strings", "fuzz_split", "fuzz_encoder", "fuzz_longest", "fuzz_plamo", "fuzz_scores")
COMPILERS = ("g++", "clang++-14")
STRICT = ("-std=c++17", "-pedantic", "-Wall", "-Wextra", "-Werror")
PORTABLE = "_portable"  # the same with baseline instructions only
# In seconds.
SHORT_RUN = {
    "fuzz_strings": 3.0,
    "fuzz_split": 10.0,
    "fuzz_encoder": 12.0,
    "fuzz_longest": 5.0,
    "fuzz_plamo": 5.0,
    "fuzz_scores": 8.0,
}
SHORT_RUN_PORTABLE = {"fuzz_split": 4.0, "fuzz_encoder": 3.0}
OPTIONS = {
    "ASAN_OPTIONS": "abort_on_error=1:detect_leaks=1:strict_string_checks=1:allocator_may_return_null=0",
    "UBSAN_OPTIONS": "print_stacktrace=1:abort_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:abort_on_error=1:second_deadlock_stack=1",
    "WINEDEBUG": "-all",
}


class Kind(NamedTuple):
    """One way to build the tests: where, and what runs them."""

    name: str
    sanitize: str = ""
    configure: tuple[str, ...] = ()
    emulator: tuple[str, ...] = ()
    packages: str = ""  # of Debian, with both
    suffix: str = ""  # of programs
    left_out: tuple[str, ...] = ()
    more_checks: tuple[str, ...] = ()
    temporary_bytes: int = 0  # that the emulator writes to the temporary folder


def _cross(system: str, processor: str, compiler: str) -> tuple[str, ...]:
    names = {"SYSTEM_NAME": system, "SYSTEM_PROCESSOR": processor, "CXX_COMPILER": compiler}
    return tuple(f"-DCMAKE_{name}={value}" for name, value in names.items())


PLAIN = Kind("plain")
ADDRESS = Kind("address-undefined", "address,undefined")
THREAD = Kind("thread", "thread")
SHARING = Kind("sharing", configure=("-DGGUFBPE_COUNT_SHARING=ON",))
COUNTS_WORK = ("check_polls",)  # the same everywhere, and a minute in QEMU
MACHINES = {
    "arm64": Kind(
        "arm64",
        configure=_cross("Linux", "aarch64", "aarch64-linux-gnu-g++"),
        emulator=("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"),
        packages="g++-aarch64-linux-gnu qemu-user",
        left_out=COUNTS_WORK,
    ),
    "s390x": Kind(
        "s390x",
        configure=_cross("Linux", "s390x", "s390x-linux-gnu-g++"),
        emulator=("qemu-s390x", "-L", "/usr/s390x-linux-gnu"),
        packages="g++-s390x-linux-gnu qemu-user",
        left_out=COUNTS_WORK,
    ),
    "windows": Kind(
        "windows",
        configure=(
            *_cross("Windows", "x86_64", "x86_64-w64-mingw32-g++-posix"),
            # g++ saves vectors to the stack as if it were aligned to 32 bytes, which it is not on Windows.
            "-DCMAKE_CXX_FLAGS=-O1 -Wa,-muse-unaligned-vector-move",
            "-DCMAKE_EXE_LINKER_FLAGS=-static",
        ),
        emulator=("wine",),
        suffix=".exe",
        packages="g++-mingw-w64-x86-64-posix wine wine64",
        # Huge pages are Linux's, and a static library has its std::random_device.
        left_out=("check_memory", "check_seeds", *COUNTS_WORK),
        temporary_bytes=1 << 30,  # 693 MiB with Wine 8
    ),
    "musl": Kind(
        "musl",
        configure=(
            f"-DCMAKE_CXX_COMPILER={sys.executable}",
            "-DCMAKE_CXX_COMPILER_ARG1=-m ziglang c++ -target x86_64-linux-musl",
        ),
        left_out=COUNTS_WORK,
        more_checks=("check_threads",),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--long", type=float, metavar="MINUTES", help="fuzz for that long, all harnesses")
    parser.add_argument("--threads", action="store_true", help="run many threads, under ThreadSanitizer")
    parser.add_argument("--sharing", action="store_true", help="count locks and writes that threads share")
    parser.add_argument("--plain", action="store_true", help="without sanitizers")
    parser.add_argument(
        "--compilers", action="store_true", help=f"strict C++17 only, with {' and '.join(COMPILERS)}"
    )
    for name, machine in MACHINES.items():
        how = f"in {machine.emulator[0]}" if machine.emulator else "with Zig's compiler"
        parser.add_argument(f"--{name}", dest="machine", action="store_const", const=name, help=how)
    parser.add_argument(
        "--libfuzzer", action="store_true", help="let libFuzzer choose the cases (CXX=clang++)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the cases (default: 1)")
    arguments = parser.parse_args()
    if arguments.libfuzzer and not arguments.long:
        parser.error("--libfuzzer needs --long")
    if arguments.compilers:
        _compile_with_all()
        return
    if arguments.machine:
        kind = MACHINES[arguments.machine]
    else:
        wanted = {PLAIN: arguments.plain, SHARING: arguments.sharing, THREAD: arguments.threads}
        kind = next((kind for kind, is_wanted in wanted.items() if is_wanted), ADDRESS)
    for tool in ("cmake", *kind.emulator[:1], *_compiler(kind)):
        if shutil.which(tool) is None:
            install = f": apt-get install {kind.packages}" if kind.packages else ""
            sys.exit(f"check_kernel.py needs {tool}, which is not on PATH{install}")
    if arguments.machine == "musl":
        if importlib.util.find_spec("ziglang") is None:
            sys.exit("check_kernel.py needs ziglang: python -m pip install ziglang")
        os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", str(CACHE / "zig"))
    if kind.temporary_bytes > shutil.disk_usage(tempfile.gettempdir()).free:
        # Wine copies what fits, and its programs then fail with messages about functions that do not exist.
        sys.exit(
            f"check_kernel.py needs {kind.temporary_bytes >> 20} MiB for {kind.emulator[0]}'s files in "
            f"{tempfile.gettempdir()}, which has {shutil.disk_usage(tempfile.gettempdir()).free >> 20}"
        )
    # Not in the checkout: Wine's drive z: is a link to /, and the build of a source distribution follows links.
    with tempfile.TemporaryDirectory(prefix="wine-", ignore_cleanup_errors=True) as wine:
        options = {**OPTIONS, "WINEPREFIX": wine, "GGUFBPE_TABLES": str(_write_tables())}
        _check(arguments, kind, {**os.environ, **options})


def _compile_with_all() -> None:
    """Check each source of the engine as strict C++17 with each of COMPILERS; exit with the messages if any fails."""
    missing = [compiler for compiler in COMPILERS if shutil.which(compiler) is None]
    if missing:
        sys.exit(f"check_kernel.py needs {', '.join(missing)}: apt-get install g++ clang-14")
    import nanobind

    kernel, tests = ROOT / "ggufbpe" / "native" / "src", ROOT / "tests" / "native"
    folders = [
        f"-I{kernel}",
        f"-I{tests}",
        f"-I{ROOT / 'include'}",
        '-DGGUFBPE_BUILD="any"',  # CMake makes it from the sources
        "-isystem",
        nanobind.include_dir(),
        "-isystem",
        sysconfig.get_path("include"),
    ]
    by_folder = [
        sorted(folder.glob("*.cpp")) for folder in {source.parent for source in kernel.rglob("*.cpp")}
    ]
    alone = [[source] for source in sorted(tests.glob("*.cpp"))]  # check_threads is built nowhere else in CI
    together = [*by_folder, *alone]
    one_by_one = [[source] for group in together for source in group]
    begun = time.monotonic()

    def compiled(compiler: str, group: list[Path]) -> str:
        done = subprocess.run(
            [compiler, *STRICT, "-fsyntax-only", *folders, "-x", "c++", "-"],
            input="".join(f'#include "{source}"\n' for source in group),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.stdout if done.returncode else ""

    # Most of the time goes into headers. That each source includes what it needs is seen by one compiler as well.
    of_folders, of_sources = COMPILERS
    checks = [(of_folders, group) for group in together] + [(of_sources, group) for group in one_by_one]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        jobs = [threads.submit(compiled, compiler, group) for compiler, group in checks]
    failures = [job.result() for job in jobs if job.result()]
    if failures:
        sys.exit("".join(failures) + f"check_kernel.py: {len(failures)} of {len(jobs)} checks failed")
    print(
        f"checked {len(one_by_one)} sources with {' and '.join(COMPILERS)} in {time.monotonic() - begun:.0f} s"
    )


def _check(arguments: argparse.Namespace, kind: Kind, environment: dict[str, str]) -> None:
    if arguments.threads:
        where = _build(kind, ["check_threads"], libfuzzer=False)
        seconds = 60 * arguments.long if arguments.long else 20.0
        _run(kind, [where / "check_threads", "--seconds", seconds], environment)
    elif arguments.sharing:
        _run(kind, [_build(kind, ["count_sharing"], libfuzzer=False) / "count_sharing"], environment)
    elif arguments.long:
        _long_run(arguments.long, arguments.seed, kind, arguments.libfuzzer, environment)
    else:
        checks = [name for name in CHECKS if name not in kind.left_out] + list(kind.more_checks)
        if arguments.machine:  # the plain forms are the same on all of them
            fuzzers = {name: seconds / 2 for name, seconds in SHORT_RUN.items()}
        else:
            fuzzers = SHORT_RUN | {name + PORTABLE: seconds for name, seconds in SHORT_RUN_PORTABLE.items()}
        where = _build(kind, [*checks, *fuzzers], libfuzzer=False)
        commands: list[list[object]] = [[where / name] for name in checks]
        commands += [
            [where / name, "--seconds", seconds, "--seed", arguments.seed]
            for name, seconds in fuzzers.items()
        ]
        with ThreadPoolExecutor(1 if arguments.machine else os.cpu_count()) as threads:
            for job in [threads.submit(_run, kind, command, environment, True) for command in commands]:
                job.result()


def _long_run(minutes: float, seed: int, kind: Kind, libfuzzer: bool, environment: dict[str, str]) -> None:
    programs = [name + suffix for suffix in ("", PORTABLE) for name in FUZZERS]
    checks = [] if libfuzzer else [name for name in CHECKS if name not in kind.left_out]
    where = _build(kind, [*checks, *programs], libfuzzer)
    if not libfuzzer:
        for name in checks:
            _run(kind, [where / name], environment)
    seconds = 60 * minutes / len(programs)
    for number, program in enumerate(programs):
        if libfuzzer:
            corpus = CACHE / "kernel-corpus" / program.removesuffix(PORTABLE)
            corpus.mkdir(parents=True, exist_ok=True)
            limits = [f"-max_total_time={round(seconds)}", "-max_len=6000", "-len_control=0", "-timeout=120"]
            command = [where / program, *limits, corpus]
        else:
            command = [where / program, "--seconds", seconds, "--seed", seed + number]
        _run(kind, command, environment)


def _compiler(kind: Kind) -> list[str]:
    prefix = "-DCMAKE_CXX_COMPILER="
    return [argument.removeprefix(prefix) for argument in kind.configure if argument.startswith(prefix)]


def _write_tables() -> Path:
    """The registry as numbers: one splitting of each family, in the format that tests/native/entries.h reads."""
    sys.path.insert(0, str(ROOT))
    from ggufbpe.models.pretokenizers.automaton_tables import tables
    from ggufbpe.models.pretokenizers.registry import PRE_TOKENIZERS

    lines = []
    families = {(entry.family, entry.escape_whitespaces): entry for entry in PRE_TOKENIZERS.values()}
    for (family, escapes), entry in families.items():
        sets, rules = tables(entry)
        lines += [family, _line([int(escapes)]), _line([len(sets)]), *map(_line, sets), _line([len(rules)])]
        for program, step, step_sets, extra in rules:
            lines += [_counted(program), step or "-", _counted(step_sets), _counted(extra)]
    CACHE.mkdir(exist_ok=True)
    path = CACHE / "kernel-tables.txt"
    path.write_text("\n".join(lines) + "\n", encoding="ascii")
    return path


def _line(numbers: Iterable[int]) -> str:
    return " ".join(map(str, numbers))


def _counted(numbers: list[int]) -> str:
    return _line([len(numbers), *numbers])


def _build(kind: Kind, programs: list[str], libfuzzer: bool) -> Path:
    where = CACHE / f"kernel-tests-{kind.name}{'-libfuzzer' if libfuzzer else ''}"
    configure = ["cmake", "-S", ROOT, "-B", where, "-DGGUFBPE_TESTS=ON", "-DGGUFBPE_EXTENSION=OFF"]
    counts_work = not (libfuzzer or kind.emulator or {"check_threads", "count_sharing"} & set(programs))
    configure += [
        f"-DGGUFBPE_SANITIZE={kind.sanitize}",
        f"-DGGUFBPE_LIBFUZZER={'ON' if libfuzzer else 'OFF'}",
        f"-DGGUFBPE_COUNT_WORK={'ON' if counts_work else 'OFF'}",
    ]
    # With -O1 vectors and atomics are those of the extension, and compiling takes half the time.
    optimize = "-O1" if kind.sanitize or kind.emulator else "-O2"
    configure += ["-DCMAKE_BUILD_TYPE=None", f"-DCMAKE_CXX_FLAGS={optimize}"]
    configure += kind.configure
    compile_all = ["cmake", "--build", where, "--parallel", os.cpu_count() or 1, "--target", *programs]
    begun = time.monotonic()
    for command in (configure, compile_all):
        texts = [str(part) for part in command]
        done = subprocess.run(texts, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.exit(done.stdout + "check_kernel.py: cmake failed")
    print(f"built {where.relative_to(ROOT)} in {time.monotonic() - begun:.0f} s", flush=True)
    return where / "tests" / "native"


def _run(kind: Kind, command: list[object], environment: dict[str, str], at_end: bool = False) -> None:
    """Run a program and print its output: `at_end`, if others run beside it. `SystemExit` if it fails."""
    texts = [str(part) for part in command]
    texts[0] += kind.suffix
    called = f"{Path(texts[0]).name} {' '.join(texts[1:])}".rstrip()
    if not at_end:
        print(called, flush=True)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} if at_end else {}
    done = subprocess.run([*kind.emulator, *texts], env=environment, text=True, errors="replace", **streams)
    if at_end:
        print(f"{called}\n{done.stdout}", end="", flush=True)
    if done.returncode:
        sys.exit(f"check_kernel.py: {texts[0]} failed")


if __name__ == "__main__":
    main()
