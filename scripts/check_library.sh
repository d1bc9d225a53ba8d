#!/bin/sh
# Builds the C library, installs it to a temporary folder, and runs what uses it: the examples in C, Rust and Go, which must
# print README's ids, and the tests of the C interface; those of them that are not slow also with AddressSanitizer and
# UndefinedBehaviorSanitizer, with which all of them take many minutes: `--sanitized` runs all.
#
#     sh scripts/check_library.sh [--quick | --sanitized]      --quick: without sanitizers and without the tests that take seconds
#
# Needs cmake, a compiler for C and C++, pkg-config, rustc and Go; Python with the extra `dev` for the tests.
set -eu
cd "$(dirname "$0")/.."
quick=${1:-}
slow=
[ "$quick" = --sanitized ] || slow="not slow"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
model=ggufbpe/models/gpt2.gguf
printf '15496\n995\n' >"$work/expected"

build() {  # build FOLDER OPTIONS...
    folder=$1
    shift
    cmake -S . -B "$work/$folder" -DGGUFBPE_LIBRARY=ON -DGGUFBPE_EXTENSION=OFF "$@" >"$work/$folder.log" ||
        { cat "$work/$folder.log"; return 1; }
    cmake --build "$work/$folder" --parallel "$(nproc)" >"$work/$folder.log" || { cat "$work/$folder.log"; return 1; }
}

expect() {  # expect PROGRAM...: it prints README's ids
    "$@" "$model" "Hello world" >"$work/printed"
    cmp "$work/expected" "$work/printed" || { echo "$1 printed:"; cat "$work/printed"; return 1; }
    echo "$(basename "$1"): ids as in README"
}

build release -DCMAKE_BUILD_TYPE=Release
cmake --install "$work/release" --prefix "$work/installed" >/dev/null
library=$(find "$work/installed" -name libggufbpe.so | head -n 1)
folder=$(dirname "$library")
export LD_LIBRARY_PATH="$folder" PKG_CONFIG_PATH="$folder/pkgconfig"

exported=$(nm -D --defined-only "$library" | awk '$2 ~ /[TDBRW]/ {print $3}' | sort)
declared=$(grep -o 'ggufbpe_[a-z_]*(' include/ggufbpe.h | tr -d '(' | sort -u)
[ "$exported" = "$declared" ] || { echo "the library exports:"; echo "$exported"; echo "the header declares:"; echo "$declared"; exit 1; }

cmake -S examples/c -B "$work/c" -DCMAKE_PREFIX_PATH="$work/installed" >/dev/null
cmake --build "$work/c" >/dev/null
expect "$work/c/encode_shared"
expect "$work/c/encode_static"
cc -std=c99 -Wall -Wextra -Wpedantic -Werror examples/c/encode.c $(pkg-config --cflags --libs ggufbpe) -o "$work/encode_pkgconfig"
expect "$work/encode_pkgconfig"
# That of rustup asks for a toolchain at home, and does not run without one.
rust=$(for each in rustc /usr/bin/rustc; do "$each" --version >/dev/null 2>&1 && echo "$each" && break; done)
"$rust" -O -L "$folder" examples/rust/encode.rs -o "$work/encode_rust"
expect "$work/encode_rust"
GO111MODULE=off GOFLAGS=-mod=mod GOCACHE="$work/go" go build -o "$work/encode_go" examples/go/encode.go
expect "$work/encode_go"

# The installed library alone, without the package's own extension module between.
tests="tests/native/test_c_calls.py tests/native/test_c_rules.py tests/native/test_c_recorded.py tests/native/test_c_table_cache.py"
if [ "$quick" = --quick ]; then
    GGUFBPE_C_LIBRARY="$library" python -m pytest -q -n 0 -m "not slow" $tests
    exit
fi
GGUFBPE_C_LIBRARY="$library" python -m pytest -q -m "slow or not slow" $tests

build sanitized -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O1 -DGGUFBPE_SANITIZE=address,undefined
echo "with sanitizers:"
# Python itself has none, so their library comes first, with the one whose exceptions it watches. Leaks are Python's own.
GGUFBPE_C_LIBRARY="$work/sanitized/libggufbpe.so" \
    LD_PRELOAD="$(cc -print-file-name=libasan.so) $(cc -print-file-name=libstdc++.so)" \
    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 PYTHONMALLOC=malloc \
    python -m pytest -q -n 0 -m "$slow" $tests
