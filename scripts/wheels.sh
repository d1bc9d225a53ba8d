#!/bin/sh
# Builds a release into dist/ and tries it: the source distribution, and from that a wheel for each PYTHON, which runs with
# glibc 2.17 and newer whatever this machine has. Each is installed where no compiler can be found, and held to the ids that
# llama.cpp gave.
#
#     sh scripts/wheels.sh [PYTHON...]       # /usr/bin/python3.12 python3.14t ...; by default the one of .venv
#     sh scripts/wheels.sh all               # all CPythons from 3.10 on that PATH and pyenv have
#
# The compiler is Zig's, which comes from the package index: it has every glibc's symbols and its own C++ library, which it
# links into the module. auditwheel looks at the result and gives the wheel its tag.
set -eu
cd "$(dirname "$0")/.."
. scripts/environment.sh
environment release
root=$PWD
folder=$root/.cache/release
platform=manylinux_2_17_x86_64
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
    for tool in "c++ -target x86_64-linux-gnu.2.17" ar ranlib; do
        printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$zig" "$tool" >"$folder/tools/${tool%% *}"
    done
    chmod +x "$folder"/tools/*
    export ZIG_GLOBAL_CACHE_DIR="$root/.cache/zig"
}

# From the source distribution: what it lacks is missed here.
build_wheel() {
    rm -rf "$folder/built"
    GGUFBPE_ENGINE=native CXX=$folder/tools/c++ $pip --python "$1" wheel --no-deps --wheel-dir "$folder/built" \
        --config-settings=cmake.define.CMAKE_AR="$folder/tools/ar" \
        --config-settings=cmake.define.CMAKE_RANLIB="$folder/tools/ranlib" dist/ggufbpe-*.tar.gz
    python -m auditwheel repair --plat "$platform" --wheel-dir "$folder/repaired" "$folder"/built/*-linux_x86_64.whl
    wheel=$(ls "$folder"/repaired/*.whl)
    mv "$wheel" dist/
    wheel=dist/${wheel##*/}
}

try_wheel() {
    rm -rf "$folder/environment"
    "$1" -m venv --without-pip "$folder/environment"
    python=$folder/environment/bin/python
    PATH=$folder/environment/bin CC=/bin/false CXX=/bin/false $pip --python "$python" install \
        --only-binary ggufbpe,hypothesis,numpy "$root/$wheel" hypothesis pytest
    (cd "$folder" && sh "$root/scripts/check_install.sh" native "$python")
    # Not `python -m pytest`, which would find the checkout's package first.
    GGUFBPE_ENGINE=native "$folder/environment/bin/pytest" -q -p no:cacheprovider -k "test_ids or threads or lock" \
        tests/tokenizer/test_recorded.py tests/tokenizer/test_threads.py
}

rm -rf "$folder" dist
write_compiler
# It walks all of the checkout, ignored or not, and follows links: one that leads out has no end.
timeout 300 python -m build --sdist --no-isolation --outdir dist . >"$folder/log" 2>&1 || { cat "$folder/log" && exit 1; }
if [ "${1:-}" = all ]; then
    set -- $(interpreters)
fi
for interpreter in "${@:-$root/.venv/bin/python}"; do
    echo "== $("$interpreter" -VV)"
    build_wheel "$(command -v "$interpreter")"
    try_wheel "$interpreter"
done
ls -l dist
