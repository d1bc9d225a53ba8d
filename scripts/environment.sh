# Sourced by the scripts beside it: makes the virtual environment .venv with this project in it, once, and puts it
# on PATH. `environment test` adds what the tests need. Nothing is installed outside of the checkout.
#
# Where sources of the compiled engine have changed, it is built again, and only what has changed is compiled: what
# builds it stays in .venv, too. Where it cannot be built, the project is installed without it.

environment() {
    extra=${1:-}
    stamp=.venv/installed-$extra
    made=
    if [ ! -x .venv/bin/python ] || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
        made=.venv
    fi
    if [ -z "$made" ] && is_current "$stamp"; then
        PATH=$PWD/.venv/bin:$PATH
        export PATH
        return
    fi
    step=0
    steps=2
    if [ "$made" ]; then
        steps=3
        saying "making .venv" make_venv
    fi
    PATH=$PWD/.venv/bin:$PATH
    export PATH
    touch "$stamp.begun" # what changes while it is built is built again
    if [ -z "$made" ] && is_built; then
        steps=1
        [ -z "$extra" ] || saying "installing what the extra $extra needs; the engine is compiled already" \
            pip_install "ggufbpe[$extra]"
    else
        saying "installing what builds ggufbpe" install_build_requirements
        saying "compiling the engine and installing ggufbpe${extra:+ with what its extra $extra needs}: minutes, the first time" \
            pip_install --no-build-isolation --editable ".${extra:+[$extra]}"
    fi
    mv "$stamp.begun" "$stamp"
    warn_without_engine
}

# Whether what an extra needs is installed, and no source has changed since.
is_current() {
    [ -e "$1" ] && [ -z "$(find pyproject.toml CMakeLists.txt ggufbpe/native/src -newer "$1")" ]
}

# Whether ggufbpe is installed with any other extras, so that nothing needs to be compiled.
is_built() {
    for other in .venv/installed-*; do
        case $other in *.begun) continue ;; esac
        is_current "$other" && return
    done
    return 1
}

# In the folder that is given, or .venv.
make_venv() {
    rm -rf "${1:-.venv}"
    if ! "${PYTHON:-python3}" -m venv "${1:-.venv}"; then
        # Debian's python3 comes without ensurepip; virtualenv carries its own pip
        rm -rf "${1:-.venv}"
        "${PYTHON:-python3}" -m pip install --quiet --target .cache/virtualenv virtualenv
        PYTHONPATH=.cache/virtualenv "${PYTHON:-python3}" -m virtualenv --quiet "${1:-.venv}"
    fi
}

warn_without_engine() {
    why=$(GGUFBPE_ENGINE= python -c 'from ggufbpe.native import why_not_native; print(why_not_native)')
    if [ "$why" ]; then
        echo "WARNING: the compiled engine does not run: $why. The reference engine does its work, and is much slower." \
            "To try again, install a C++17 compiler and remove .venv" >&2
        rm -rf build/*-*-* # CMake would remember that there was no compiler
    fi
}

# Says which step a command is and what for, and runs it; says every ten seconds how long that has taken. The clock ends
# with the shell.
saying() {
    step=$((step + 1))
    echo "$step of $steps: $1" >&2
    shift
    (
        seconds=0
        while sleep 10 >/dev/null 2>&1 </dev/null && kill -0 $$ 2>/dev/null; do
            seconds=$((seconds + 10))
            echo "  $seconds s" >&2
        done
    ) &
    clock=$!
    "$@" >&2
    kill $clock 2>/dev/null || true
}

# What pyproject.toml says, and of cmake, ninja and make what the machine does not have.
install_build_requirements() {
    python -c 'import json, re
print(*json.loads(re.search("^requires = (.*)$", open("pyproject.toml").read(), re.MULTILINE)[1]), sep="\n")' \
        >.venv/build-requirements
    command -v cmake >/dev/null || echo cmake >>.venv/build-requirements
    command -v ninja >/dev/null || command -v make >/dev/null || echo ninja >>.venv/build-requirements
    pip_install --requirement .venv/build-requirements
}

# Python compiles a module where it is first imported, which most of these never are.
pip_install() {
    python -m pip install --quiet --disable-pip-version-check --no-compile "$@"
}
