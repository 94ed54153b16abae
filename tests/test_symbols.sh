#!/bin/sh
# SPDX-License-Identifier: MIT
# What the objects may define, use and contain. Reads NM, OBJDUMP, CC, CFLAGS and srcdir from the environment.
srcdir=${srcdir:-.}
CC=${CC:-cc}
NM=${NM:-nm}
OBJDUMP=${OBJDUMP:-objdump}
count=0
status=0

# result NAME TEXT: fails with the text, if there is any.
result() {
    count=$((count + 1))
    if [ -z "$2" ]; then
        echo "ok $count - $1"
    else
        echo "not ok $count - $1"
        echo "$2" | sed 's/^/# /' | head -n 20
        status=1
    fi
}

skip() {
    count=$((count + 1))
    echo "ok $count - $1 # SKIP $2"
}

if ! $NM --version >/dev/null 2>&1; then
    echo "1..0 # SKIP no nm"
    exit 0
fi

# What nm lists, without the names of files and of i686's helpers that load the program counter. In Mach-O objects
# names begin with an underscore.
names() {
    awk -v underscore="$underscore" '
        NF == 0 || /:$/ || $NF ~ /^__x86\.get_pc_thunk\./ { next }
        { sub("^" underscore, "", $NF); print $NF }' | sort -u
}

underscore=
if $NM -g --defined-only .libs/libtable_scalar.a 2>/dev/null | grep -q ' _heed_kernels_scalar$'; then
    underscore=_
fi

# other_exports ARCHIVE NAME: what is wrong with its exports, if they are not this name alone.
other_exports() {
    exported=$($NM -g --defined-only "$1" | names)
    [ "$exported" = "$2" ] || echo "exports, in place of $2: ${exported:-nothing}"
}

tables=$(ls .libs/libtable_*.a 2>/dev/null)
[ -n "$tables" ] || { echo "Bail out! no table was built"; exit 99; }

# What compilers call by themselves: copies, on macOS of patterns as well, the table of a position-independent i686,
# divisions of 32-bit ARM, what guards the stack, and on ppc64le its table and what saves registers.
emitted='mem(cpy|set|move)|memset_pattern[0-9]+|bzero|_GLOBAL_OFFSET_TABLE_|__aeabi_[a-z]*|__stack_chk_[a-z_]*|\.TOC\.|_(save|rest)[gf]pr[01]?_[0-9]+'

for archive in $tables; do
    isa=$(basename "$archive" .a | sed 's/libtable_//')
    result "$isa: exports its table and nothing else" \
        "$(other_exports "$archive" "heed_kernels_$isa")"
    result "$isa: no weak or common symbol" \
        "$($NM --defined-only "$archive" | awk '$2 ~ /^[WVvCuw]$/' | names)"
    if $NM -u "$archive" | grep -qE '__(asan|ubsan|tsan|msan|sanitizer|gcov|llvm_prof)'; then
        skip "$isa: calls and constructors" "the objects are instrumented"
        continue
    fi
    result "$isa: calls nothing but what compilers emit" \
        "$($NM -u "$archive" | names | grep -vxE "$emitted")"
    if $OBJDUMP --version >/dev/null 2>&1; then
        result "$isa: no constructor" "$($OBJDUMP -h "$archive" | grep -E '\.(init_array|ctors)')"
    fi
done

# The baseline must run on the plainest CPU, unless CFLAGS name a better one; -mfma brings AVX, so only these are held
# to SSE.
# shellcheck disable=SC2086 # flags
if $CC $CFLAGS -dM -E -x c /dev/null 2>/dev/null | grep -q ' __AVX__ '; then
    skip "no AVX register" "CFLAGS ask for AVX"
elif $OBJDUMP --version >/dev/null 2>&1; then
    for archive in .libs/libtable_scalar.a .libs/libtable_sse2.a; do
        [ -f "$archive" ] || continue
        result "$(basename "$archive"): no AVX register" "$($OBJDUMP -d "$archive" | grep -E '%[yz]mm' | head -n 3)"
    done
    baseline=$(ls src/.libs/libheed_all_la-*.o src/libheed_all_la-*.o arch/.libs/libheed_all_la-*.o \
        arch/libheed_all_la-*.o 2>/dev/null)
    result "what runs on any CPU is found" "$(echo "$baseline" | grep -q '_la-cpu\.o$' || echo 'no cpu.o')"
    # shellcheck disable=SC2086 # a list of files
    [ -z "$baseline" ] || result "what runs on any CPU: no AVX register" \
        "$($OBJDUMP -d $baseline | grep -E '%[yz]mm' | head -n 3)"
fi

library=.libs/libheed.so
if [ -f "$library" ]; then
    declared=$(sed -n 's/^HEED_API.*[ *]\(heed_[a-z0-9_]*\)(.*/\1/p' "$srcdir/include/heed.h" | sort -u)
    exported=$($NM -D --defined-only "$library" | grep -v ' A ' | names | sed 's/@.*//')
    result "the shared library exports what heed.h declares" \
        "$(printf '%s\n%s\n' "$declared" "$exported" | sort | uniq -u)"
    # 32-bit ARM divides in libgcc, whose division by zero raises a signal.
    divides=$($NM "$library" 2>/dev/null | grep -c '__aeabi_')
    result "the shared library neither ends the process nor prints" \
        "$($NM -D -u "$library" | names | sed 's/@.*//' |
            { [ "$divides" -eq 0 ] && cat || grep -vx raise; } |
            grep -xE '_?exit|_Exit|quick_exit|abort|raise|.*printf(_chk)?|f?puts|putchar|putc|perror|__assert_fail|fwrite|write|__(mem|str).*_chk')"
else
    skip "what the shared library exports and calls" "no $library"
fi

echo "1..$count"
exit $status
