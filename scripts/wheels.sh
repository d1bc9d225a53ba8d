#!/bin/sh
# Builds a release into dist/ and tries it: the npm package, the source distribution, and from that a wheel for each
# PYTHON, which runs with glibc 2.17 and newer whatever this machine has. Each is installed where no compiler can be found,
# and held to the ids that llama.cpp gave.
#
#     sh scripts/wheels.sh [PYTHON...]       # /usr/bin/python3.12 python3.14t ...; by default the one of .venv
#     sh scripts/wheels.sh abi3              # one for the stable ABI of 3.12, built and tried by the newest CPython at hand
#     sh scripts/wheels.sh all               # all CPythons from 3.10 on that PATH and pyenv have, and abi3
#     sh scripts/wheels.sh --target aarch64-linux-gnu [PYTHON...]      # or x86_64-linux-musl, aarch64-linux-musl
#
# A wheel for another machine is built with the headers of this one's Python, which are the same; one for aarch64 and
# Python 3.11 is tried under QEMU, with Debian's Python for arm64. Nothing here can run musl's. pip takes the wheel for the
# stable ABI only where there is none for exactly its version.
#
# The compiler is Zig's, which comes from the package index: it has every glibc's symbols and its own C++ library, which it
# links into the module. auditwheel looks at the result and gives the wheel its tag.
set -eu
cd "$(dirname "$0")/.."
. scripts/environment.sh
environment release
root=$PWD
folder=$root/.cache/release
target=x86_64-linux-gnu
if [ "${1:-}" = --target ]; then
    target=$2
    shift 2
fi
machine=${target%%-*}
case $target in
    x86_64-linux-gnu | aarch64-linux-gnu) compiled_for=$target.2.17 platform=manylinux_2_17_$machine ;;
    x86_64-linux-musl | aarch64-linux-musl) compiled_for=$target platform=musllinux_1_2_$machine ;;
    *) echo "wheels.sh: no target $target" >&2 && exit 2 ;;
esac
pip="$root/.venv/bin/python -m pip --disable-pip-version-check --quiet"

# All interpreters that can be had, once a version; those without the interpreter lock end in t.
interpreters() {
    for version in 3.10 3.11 3.12 3.13 3.13t 3.14 3.14t; do
        for candidate in "$(command -v "python$version")" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/"python$version"; do
            if "$candidate" -c 'import venv' 2>/dev/null; then
                echo "$candidate"
                break
            fi
        done
    done
}

# The program itself: pip hides from `python -m ziglang`, where it builds, what is installed here.
write_compiler() {
    zig=$(python -c 'import ziglang, pathlib; print(pathlib.Path(ziglang.__file__).with_name("zig"))')
    mkdir -p "$folder/tools"
    for tool in "c++ -target $compiled_for" ar ranlib; do
        printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$zig" "$tool" >"$folder/tools/${tool%% *}"
    done
    chmod +x "$folder"/tools/*
    export ZIG_GLOBAL_CACHE_DIR="$root/.cache/zig"
}

# From the source distribution: what it lacks is missed here.
build_wheel() {
    rm -rf "$folder/built" "$folder/repaired"
    set -- "$1" --config-settings=cmake.define.CMAKE_AR="$folder/tools/ar" \
        --config-settings=cmake.define.CMAKE_RANLIB="$folder/tools/ranlib"
    if [ "$abi3" ]; then # CMake knows the stable ABI from 3.26 on
        set -- "$@" --config-settings=wheel.py-api=cp312 --config-settings=cmake.version=">=3.26"
    fi
    if [ "$target" != x86_64-linux-gnu ]; then
        tag=$("$1" -c 'import sysconfig; print(sysconfig.get_config_var("SOABI").partition("-x86_64")[0])')
        export _PYTHON_HOST_PLATFORM="linux-$machine" SETUPTOOLS_EXT_SUFFIX=".${abi3:-$tag-$target}.so"
        set -- "$@" --config-settings=cmake.define.CMAKE_SYSTEM_NAME=Linux \
            --config-settings=cmake.define.CMAKE_SYSTEM_PROCESSOR="$machine"
    fi
    interpreter_of_wheel=$1
    shift
    GGUFBPE_ENGINE=native CXX=$folder/tools/c++ $pip --python "$interpreter_of_wheel" wheel --no-deps \
        --wheel-dir "$folder/built" "$@" dist/ggufbpe-*.tar.gz
    unset _PYTHON_HOST_PLATFORM SETUPTOOLS_EXT_SUFFIX
    if [ "$target" = x86_64-linux-gnu ]; then
        python -m auditwheel repair --plat "$platform" --wheel-dir "$folder/repaired" "$folder"/built/*-linux_x86_64.whl
    else  # auditwheel looks at wheels of its own machine alone
        mkdir "$folder/repaired"
        cp "$folder"/built/*.whl "$folder/repaired"
        python -m wheel tags --remove --platform-tag "$platform" "$folder"/repaired/*.whl >/dev/null
        python scripts/wheel_needs.py "$platform" "$folder"/repaired/*.whl
    fi
    wheel=$(ls "$folder"/repaired/*.whl)
    mv "$wheel" dist/
    wheel=dist/${wheel##*/}
}

# Under QEMU, with Debian's Python 3.11 for arm64, unpacked beside the wheel.
try_on_arm64() {
    arm=$folder/arm64
    packages="python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 libgcc-s1 libstdc++6 libexpat1 zlib1g"
    packages="$packages libssl3 libffi8 libbz2-1.0 liblzma5 libuuid1 libsqlite3-0"
    mkdir -p "$arm/packages"
    dpkg --print-foreign-architectures | grep -q arm64 || { dpkg --add-architecture arm64 && apt-get update -qq; }
    (cd "$arm/packages" && apt-get download -qq $(printf '%s:arm64 ' $packages) 2>/dev/null)
    for package in "$arm"/packages/*.deb; do
        dpkg -x "$package" "$arm/root"
    done
    $pip install --target "$arm/site" --python-version 3.11 --only-binary :all: --platform manylinux2014_aarch64 --platform manylinux_2_17_aarch64 \
        --platform manylinux_2_27_aarch64 --platform manylinux_2_28_aarch64 "$wheel"
    printf '#!/bin/sh\nexec qemu-aarch64 -L "%s" -E LD_LIBRARY_PATH=/lib/aarch64-linux-gnu:/usr/lib/aarch64-linux-gnu \\
    -E PYTHONHOME="%s/usr" -E PYTHONPATH="%s" "%s/usr/bin/python3.11" "$@"\n' \
        "$arm/root" "$arm/root" "$arm/site" "$arm/root" >"$arm/python"
    chmod +x "$arm/python"
    (cd "$folder" && sh "$root/scripts/check_install.sh" native "$arm/python")
}

try_wheel() {
    case $target-${wheel##*/} in
        aarch64-linux-gnu-*-cp311-*) try_on_arm64; return ;;
        x86_64-linux-gnu-*) ;;
        *) echo "not tried: nothing here runs $target with this Python" && return ;;
    esac
    rm -rf "$folder/environment"
    "$1" -m venv --without-pip "$folder/environment"
    python=$folder/environment/bin/python
    PATH=$folder/environment/bin CC=/bin/false CXX=/bin/false $pip --python "$python" install \
        --only-binary ggufbpe,hypothesis,numpy "$root/$wheel" hypothesis pytest
    (cd "$folder" && sh "$root/scripts/check_install.sh" native "$python")
    (cd "$folder" && "$python" -m ggufbpe page -o page --force)
    # Not `python -m pytest`, which would find the checkout's package first.
    GGUFBPE_ENGINE=native "$folder/environment/bin/pytest" -q -p no:cacheprovider -k "test_ids and not older or threads or lock" \
        tests/tokenizer/test_recorded.py tests/tokenizer/test_threads.py
}

rm -rf "$folder" dist/*.tgz dist/*.tar.gz dist/*"-$platform.whl" dist/*".$platform.whl"
sh scripts/wasm.sh pack # the wheels carry it, for `ggufbpe page`
write_compiler
# It walks all of the checkout, ignored or not, and follows links: one that leads out has no end.
timeout 300 python -m build --sdist --no-isolation --outdir dist . >"$folder/log" 2>&1 || { cat "$folder/log" && exit 1; }
if [ "${1:-}" = all ]; then
    set -- $(interpreters) abi3
fi
for interpreter in "${@:-$root/.venv/bin/python}"; do
    abi3=
    if [ "$interpreter" = abi3 ]; then
        abi3=abi3
        interpreter=$(interpreters | grep -v 't$' | tail -n 1)
    fi
    echo "== $("$interpreter" -VV)"
    build_wheel "$(command -v "$interpreter")"
    try_wheel "$interpreter"
done
ls -l dist
