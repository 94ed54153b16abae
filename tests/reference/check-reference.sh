#!/bin/sh
# SPDX-License-Identifier: MIT
# Compares heed-embed with the reference tokenizer and a reference runtime, from packages of pinned
# versions in a virtual environment of the build directory. Prints TAP. It needs the network once;
# that it has none is a failure.  usage: check-reference.sh [BUILD_DIR]
set -u

case ${1-} in
-h | --help)
    sed -n 's/^# //; 3,5p' "$0"
    exit 0
    ;;
-*)
    echo "check-reference.sh: $1: no such option; see --help" >&2
    exit 2
    ;;
esac

here=$(cd "$(dirname "$0")" && pwd) || exit 1
source=$(cd "$here/../.." && pwd) || exit 1
build=$(cd "${1:-.}" 2>/dev/null && pwd) || {
    echo "check-reference: ${1:-.}: no such directory" >&2
    exit 1
}
embed=$build/tools/heed-embed
info=$build/tools/heed-info
work=$build/reference-check
venv=$work/venv

bail() {
    echo "not ok 1 - $*"
    echo "1..1"
    exit 1
}

# The stamp is written last, so an interrupted installation is done again.
make_environment() {
    cmp -s "$here/requirements.txt" "$venv/installed.txt" && return 0
    rm -rf "$venv"
    python3 -m venv "$venv" >&2 || return 1
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --requirement "$here/requirements.txt" >&2 || return 1
    cp "$here/requirements.txt" "$venv/installed.txt"
}

test $# -le 1 || bail "usage: check-reference.sh [BUILD_DIR]"
test -x "$embed" || bail "heed-embed was not built"
mkdir -p "$work" || bail "cannot write to $build"
model=$(sh "$source/tools/fetch-model.sh" "$build/model-cache") || bail "the model cannot be had"
make_environment || bail "the reference packages cannot be installed"
PYTHONDONTWRITEBYTECODE=1 exec "$venv/bin/python" "$here/reference.py" "$embed" "$info" "$model" "$work"
