# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# What the scripts beside it read for their command lines.

# check_arguments USAGE LEAST [WORD]...: ends the script, with USAGE, unless there are LEAST words or one, and no option.
check_arguments() {
    usage=$1 least=$2
    shift 2
    case $#,${1:-} in
    0,) test "$least" -ne 0 || return 0 ;;
    1,[!-]*) return ;;
    1,--help)
        echo "$usage"
        exit 0
        ;;
    esac
    echo "$usage" >&2
    exit 2
}
