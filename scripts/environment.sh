# Sourced by the scripts beside it: makes the virtual environment .venv with this project in it, once, and puts it
# on PATH. `environment test` adds what the tests need. Nothing is installed outside of the checkout.

environment() {
    extra=${1:-}
    if [ ! -x .venv/bin/python ] || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
        rm -rf .venv
        echo "making .venv" >&2
        if ! "${PYTHON:-python3}" -m venv .venv >&2; then
            # Debian's python3 comes without ensurepip; virtualenv carries its own pip
            rm -rf .venv
            "${PYTHON:-python3}" -m pip install --quiet --target .cache/virtualenv virtualenv >&2
            PYTHONPATH=.cache/virtualenv "${PYTHON:-python3}" -m virtualenv --quiet .venv >&2
        fi
    fi
    stamp=.venv/installed-$extra
    if [ ! -e "$stamp" ] || [ pyproject.toml -nt "$stamp" ]; then
        echo "installing ggufbpe${extra:+ with what its $extra extra needs} into .venv" >&2
        .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable ".${extra:+[$extra]}" >&2
        touch "$stamp"
    fi
    PATH=$PWD/.venv/bin:$PATH
    export PATH
}
