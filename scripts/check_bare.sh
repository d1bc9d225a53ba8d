#!/bin/sh
# Installs a wheel on a bare Debian 12 from a folder of files alone, and holds it to README's ids: as root,
#
#     sh scripts/check_bare.sh WHEEL [FOLDER]      # a wheel for CPython 3.11; the system is made in FOLDER, once
#
# The system is debootstrap's smallest, with Python and no compiler. Installing and checking have no network.
set -eu
wheel=$1
system=${2:-/var/tmp/ggufbpe-debian}
here=$(cd "$(dirname "$0")" && pwd)
if [ ! -e "$system/ready" ]; then
    mirror=$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/debian.sources | head -n 1)
    debootstrap --variant=minbase --include=python3,python3-venv bookworm "$system" "$mirror"
    touch "$system/ready"
fi
rm -rf "$system/wheels" "$system/env"
python3 -m pip download --quiet --disable-pip-version-check --only-binary :all: --dest "$system/wheels" \
    --python-version 3.11 --platform manylinux2014_x86_64 --platform manylinux_2_28_x86_64 gguf "numpy>=1.24" rich
cp "$wheel" "$system/wheels"
cp "$here/check_install.sh" "$system"
unshare --net chroot "$system" sh -ec '
    python3 -m venv /env
    /env/bin/pip install --quiet --no-index --find-links /wheels ggufbpe
    cd /tmp
    sh /check_install.sh native /env/bin/python'
