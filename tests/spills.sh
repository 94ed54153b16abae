#!/bin/sh
# SPDX-License-Identifier: MIT
# spills.sh OBJECT FUNCTION...: fails if an innermost loop of a micro-kernel moves a vector to or from the stack, which
# a compiler does that takes its sums for more than there are registers. Needs objdump, and code for x86.
set -eu
if [ $# -lt 2 ]; then
    echo 'usage: spills.sh OBJECT FUNCTION...' >&2
    exit 2
fi
object=$1
shift
for function; do
    objdump -d --no-show-raw-insn --disassemble="$function" "$object" | awk -v function_="$function" -v object="$object" '
        /^ *[0-9a-f]+:\t/ {
            address = $1
            sub(":", "", address)
            at[address] = ++n
            vectors[n] = vectors[n - 1] + ($0 ~ /(mul|add)ps|fmadd/)
            framed += $0 ~ /mov +%rsp,%rbp/
            stack = $0 ~ /\(%rsp/ || (framed && $0 ~ /-0x[0-9a-f]+\(%rbp/)
            spilled[n] = spilled[n - 1] + (stack && $0 ~ /%[xyz]mm/)
            start = $2 ~ /^j/ && $3 in at ? at[$3] : 0
            if (start == 0)
                next
            if (start > inner && vectors[n] - vectors[start - 1] >= 8) {
                loops++
                if (spilled[n] > spilled[start - 1]) {
                    bad++
                    printf "%s: %s: the loop from %s to %s keeps vectors on the stack\n", object, function_, $3, address
                }
            }
            inner = n
        }
        END {
            if (loops == 0) {
                printf "%s: %s: no loop of a micro-kernel found\n", object, function_
                exit 1
            }
            exit bad > 0
        }'
done
