#!/bin/sh
# SPDX-License-Identifier: MIT
# README's program and those of doc/examples against the installed library, shared and static, by pkg-config: each
# prints what README, or its first comment, says.
#
# usage: installcheck.sh SRCDIR LIBDIR PKGCONFIGDIR [DESTDIR]; reads CC, CFLAGS and PKG_CONFIG
set -eu
if [ $# -lt 3 ] || [ $# -gt 4 ]; then
    echo 'usage: installcheck.sh SRCDIR LIBDIR PKGCONFIGDIR [DESTDIR]' >&2
    exit 2
fi
source=$1
libdir=${4-}$2
pkg_config=${PKG_CONFIG:-pkg-config}
if ! command -v "$pkg_config" >/dev/null 2>&1; then
    echo "installcheck: skipped, no pkg-config"
    exit 0
fi
if ! ls "$libdir"/libheed.* >/dev/null 2>&1; then
    echo "installcheck: there is no libheed in $libdir: run make install first, with the same DESTDIR" >&2
    exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PKG_CONFIG_PATH=${4-}$3
export PKG_CONFIG_PATH
if [ -n "${4-}" ]; then
    # heed.pc names the directories that the files will lie in. Without the latter two pkg-config leaves out those
    # that compilers search anyway, which they do outside DESTDIR.
    PKG_CONFIG_SYSROOT_DIR=$4
    PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1
    PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
    export PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_ALLOW_SYSTEM_CFLAGS PKG_CONFIG_ALLOW_SYSTEM_LIBS
fi
mkdir "$work/programs"
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$source/README.md" >"$work/programs/readme.c"
sed -n 's/^    \(success: \)/\1/p' "$source/README.md" >"$work/programs/readme"
: >"$work/programs/readme.libs"
for example in "$source"/doc/examples/*.c; do
    name=$(basename "$example" .c)
    cp "$example" "$work/programs"
    sed -n '/&& \.\/a\.out$/{n;s/^ \* //p;q;}' "$example" >"$work/programs/$name"
    sed -n 's/^ \* cc .*) *\(.*\)&& \.\/a\.out$/\1/p' "$example" >"$work/programs/$name.libs"
done

# build KIND FLAGS...
build() {
    kind=$1
    shift
    for program in "$work"/programs/*.c; do
        name=$(basename "$program" .c)
        promised=$work/programs/$name
        if ! [ -s "$program" ] || ! [ -s "$promised" ]; then
            echo "installcheck: $name: there is no program, or it is not said what it prints" >&2
            exit 1
        fi
        # shellcheck disable=SC2046,SC2086 # lists of flags; what a program itself needs is in its own command
        ${CC:-cc} ${CFLAGS-} -o "$work/program" "$program" "$@" $(cat "$promised.libs")
        LD_LIBRARY_PATH=$libdir DYLD_LIBRARY_PATH=$libdir "$work/program" >"$work/out"
        if ! cmp -s "$promised" "$work/out"; then
            echo "installcheck: $name, $kind, prints: $(cat "$work/out")" >&2
            echo "installcheck: it should print: $(cat "$promised")" >&2
            exit 1
        fi
        echo "installcheck: $name, $kind, prints: $(head -n 1 "$work/out")"
    done
    tested=yes
}

tested=no
ask=
if [ -e "$libdir/libheed.so" ] || [ -e "$libdir/libheed.dylib" ]; then
    ask=--static # elsewhere users need not
    # shellcheck disable=SC2046 # lists of flags
    build shared $("$pkg_config" --cflags --libs heed)
fi
if [ -e "$libdir/libheed.a" ]; then
    # shellcheck disable=SC2086
    static=$("$pkg_config" $ask --cflags --libs heed | sed "s|-lheed|$libdir/libheed.a|")
    # shellcheck disable=SC2086
    build static $static
fi
if [ $tested = no ]; then
    echo "installcheck: $libdir has no libheed.so, libheed.dylib or libheed.a" >&2
    exit 1
fi
