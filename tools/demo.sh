#!/bin/sh
# SPDX-License-Identifier: MIT
# Shows heed at work: sentence embeddings with a real model, or small attention examples where no
# model can be had.  usage: demo.sh [BUILD_DIR]
set -u

# shellcheck source=tools/usage.sh
. "$(dirname "$0")/usage.sh"
check_arguments "usage: demo.sh [BUILD_DIR]" 0 "$@"

source=$(cd "$(dirname "$0")/.." && pwd) || exit 1
build=${1:-.}
embed=$build/tools/heed-embed
info=$build/tools/heed-info
examples=$build/tools/heed-examples

sentences() {
    cat <<'END'
A man is eating a piece of bread.
Someone is having a bite of food.
The orchestra tuned its instruments before the concert.
Musicians got ready to play for the audience.
The café's crème brûlée is exquisite.
The dessert at that coffee shop tastes wonderful.
La crème brûlée du café est exquise.
How do I renew my passport?
END
}

# The rows of heed-info that say which kernels ran.
show_kernels() {
    echo
    echo "What ran:"
    "$info" | sed -n '/^threads:/p; /^level:/,/^[^ ]/{/^level:/p; /^  /p;}'
}

show_examples() {
    echo "Here are small attention examples instead."
    echo
    "$examples" || exit 1
}

show_embeddings() {
    echo
    echo "Cosines between the sentence embeddings of ${HEED_MODEL:-all-MiniLM-L6-v2}:"
    sentences | "$embed" --model "$1" --similarity || exit 1
    echo
    echo "Most similar to \"preparing a performance\":"
    sentences | "$embed" --model "$1" --similar "preparing a performance" --top 3 --verbose || exit 1
}

if ! test -x "$info"; then
    echo "demo: $info was not built: build with tools (configure without --disable-tools) for a demo" >&2
    exit 1
elif ! test -x "$embed"; then
    echo "heed-embed was not built: it needs cJSON and utf8proc (see the summary of configure)."
    show_examples
elif model=$(sh "$source/tools/fetch-model.sh" "$build/model-cache"); then
    show_embeddings "$model"
elif test -n "${HEED_MODEL-}"; then
    exit 1
else
    echo "No model can be had: set HEED_MODEL to the directory of a BERT sentence model."
    show_examples
fi
show_kernels
