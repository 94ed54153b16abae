# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# What summary and plot share: messages, and the CSV files of heed-bench. Read by them, with $0 theirs.

fail() {
    echo "${0##*/}: $2" >&2
    exit "$1"
}

# print TEXT: on standard output, which may be full.
print() {
    printf '%s\n' "$1" 2>/dev/null || fail 1 'standard output: cannot be written'
}

# path FILE: the file's name as awk takes it, to which a name with = is an assignment and - standard input.
path() {
    case $1 in
    /*) printf '%s\n' "$1" ;;
    *) printf './%s\n' "$1" ;;
    esac
}

# check_csv FILE: whether it is a CSV file of heed-bench.
check_csv() {
    if ! test -f "$1" || ! test -r "$1"; then
        fail 1 "$1: cannot be read"
    fi
    columns=suite,shape,isa,threads,impl,seconds,rate,unit,limit,percent
    test "$(head -n 1 <"$1")" = "$columns" || fail 1 "$1: is not a CSV file of heed-bench"
    line=$(awk -F, '
        function is_name(s) { return s ~ /^[a-z0-9][a-z0-9_-]*$/ }
        function is_number(s) { return s ~ /^[0-9]+([.][0-9]+)?(e[-+]?[0-9]+)?$/ && s + 0 > 0 && s + 0 < 1e300 }
        NR > 1 && !(NF == 10 && is_name($1) && $2 ~ /^[^ \t]+$/ && is_name($3) && $4 ~ /^[0-9]+$/ && is_name($5) &&
            is_number($6) && is_number($7) && is_number($10)) { print NR; exit }' "$(path "$1")")
    test -z "$line" || fail 1 "$1: line $line: is no row of heed-bench"
}
