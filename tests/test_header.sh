#!/bin/sh
# SPDX-License-Identifier: MIT
# heed.h compiles alone, with its initialisers, as C99, C11 and C++. Reads CC, CXX and srcdir.
srcdir=${srcdir:-.}
count=0
status=0
work=test_header.tmp
rm -rf "$work"
mkdir "$work" || exit 99
trap 'rm -rf "$work"' EXIT

{
    echo '#include <heed.h>'
    sed -n 's/^#define \(HEED_[A-Z0-9_]*_INIT\).*/\1/p' "$srcdir/include/heed.h" | while read -r macro; do
        type=$(echo "$macro" | sed 's/_INIT$//' | tr '[:upper:]' '[:lower:]')
        echo "$type make_$type(void);"
        echo "$type make_$type(void) { $type x = $macro; return x; }"
    done
} >"$work/header.c"
cp "$work/header.c" "$work/header.cc"

# compile NAME COMMAND...
compile() {
    count=$((count + 1))
    name=$1
    shift
    if "$@" -Werror -Wall -Wextra -I"$srcdir/include" -c -o "$work/header.o" >"$work/log" 2>&1; then
        echo "ok $count - $name"
    else
        echo "not ok $count - $name"
        sed 's/^/# /' "$work/log" | head -n 20
        status=1
    fi
}

# shellcheck disable=SC2086 # CC may hold flags
compile "heed.h as C99" ${CC:-cc} -std=c99 -Wpedantic "$work/header.c"
# shellcheck disable=SC2086
compile "heed.h as C11" ${CC:-cc} -std=c11 -Wpedantic "$work/header.c"
# shellcheck disable=SC2086
set -- ${CXX:-c++}
if command -v "$1" >/dev/null 2>&1; then
    compile "heed.h as C++" "$@" -Wpedantic -Wzero-as-null-pointer-constant "$work/header.cc"
else
    count=$((count + 1))
    echo "ok $count - heed.h as C++ # SKIP no C++ compiler"
fi

echo "1..$count"
exit $status
