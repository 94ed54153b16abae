#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests of heed-bench with tiny shapes; run from the build directory. Prints TAP.
set -u

bench=${HEED_BENCH:-bench/heed-bench}
bench_source=$(dirname "$0")/../bench
unset HEED_ISA
columns=suite,shape,isa,threads,impl,seconds,rate,unit,limit,percent

if ! test -x "$bench"; then
    echo "1..0 # SKIP heed-bench was not built"
    exit 0
fi

count=0
failures=0
work=$(mktemp -d "${TMPDIR:-/tmp}/heed-test.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
out=$work/out
err=$work/err
csv=$work/results.csv

# expect NAME CONDITION...
expect() {
    name=$1
    shift
    count=$((count + 1))
    if "$@"; then
        echo "ok $count - $name"
    else
        failures=$((failures + 1))
        echo "not ok $count - $name"
        sed 's/^/# /' "$err" | head -n 5
    fi
}

# one_line STATUS PATTERN: how the last command ended, and its one line on standard error.
one_line() {
    test "$status" -eq "$1" && test "$(wc -l <"$err")" -eq 1 && grep -q -- "$2" "$err"
}

# refuse PATTERN ARGUMENT...: a wrong command line.
refuse() {
    pattern=$1
    shift
    "$bench" "$@" >"$out" 2>"$err" </dev/null
    status=$?
    expect "refused: $*" refused "$pattern"
}

refused() {
    one_line 2 "$1" && ! test -s "$out"
}

# rows SUITE SHAPE: whether the CSV file has the heading, and in each row these and sound numbers.
rows() {
    test "$status" -eq 0 && ! test -s "$err" && test "$(head -n 1 "$csv")" = "$columns" &&
        awk -F, -v suite="$1" -v shape="$2" '
            NR == 1 { next }
            NF != 10 || $1 != suite || (shape != "" && $2 != shape) { exit bad = 1 }
            $4 + 0 < 1 || $6 + 0 <= 0 || $7 + 0 <= 0 { exit bad = 1 }
            $8 !~ /^(GFLOP|Gop|GB)\/s$/ || $9 !~ /^(fma|instructions|L1|L2|L3|DRAM)$/ { exit bad = 1 }
            $10 !~ /^[0-9]+\.[0-9]+$/ || $10 + 0 <= 0 { exit bad = 1 }
            END { exit bad || NR < 2 }' "$csv"
}

# run SUITE SHAPE ARGUMENT...: a short run, SHAPE may be empty.
run() {
    suite=$1 shape=$2
    shift 2
    rm -f "$csv"
    "$bench" "$suite" ${shape:+--shape "$shape"} --seconds 0.01 --csv "$csv" "$@" >"$out" 2>"$err" </dev/null
    status=$?
    expect "$suite $shape $*" rows "$suite" "$shape"
}

has_impl() {
    awk -F, -v impl="$1" 'NR > 1 && $5 == impl { found = 1 } END { exit !found }' "$csv"
}

only_impl() {
    awk -F, -v impl="$1" 'NR > 1 && $5 != impl { exit bad = 1 } END { exit bad }' "$csv"
}

has_rows() {
    test "$(wc -l <"$csv")" -eq $(($1 + 1))
}

# ---- suites --------------------------------------------------------------------------------------

run peak "" --threads 1
run matmul 8x8x8
expect "heed is among the rows" has_impl heed
expect "the table has the shape" grep -q '^8x8x8 ' "$out"
run matmul 1x1x1 --threads 1
run linear 7x33x20
run linear 7x33x20+gelu-erf
for form in nt tn tt; do
    run matmul 7x33x20+$form
done
run linear 3x5x7 --threads 1 --impl heed --isa all
expect "--impl leaves out the others" only_impl heed
run gemv 1x48x32 --threads 1
run matmul 8x8x8 --shape 8x8x8 --shape 8x08x8 --threads 1,1 --isa scalar,scalar --impl heed
expect "what is named twice is measured once" test "$(wc -l <"$csv")" -eq 2
for function in softmax log-softmax layernorm rmsnorm relu gelu-erf gelu-tanh silu swiglu add-layernorm add-rmsnorm; do
    run rows $function:3x21 --threads 1
done
run attention 1x2x7x9x8 --threads 1
expect "the unfused form is among the rows" has_impl unfused
run attention 2x4/2x9x9x16+causal
run decode 1x4/2x3x40x16+causal --threads 1
for shape in bert:2x7x24x3x40 gpt2:1x9x24x2x33 llama:2x50x32x4/2x48; do
    run layer $shape --threads 1
done
for suite in attention decode; do
    set --
    for masks in +boolean +additive +alibi +window3 +causal+alibi +causal+window2+alibi+additive; do
        set -- "$@" --shape 1x6/3x9x21x8$masks
    done
    run $suite "" --threads 1 --impl heed,unfused "$@" --shape 2x4x9x5x8+causal+window2
    expect "masks as arguments give what they give in one tensor" has_rows 14
done
run linear 96x256x256 --in-turn --threads 1,4 --impl heed
# A busy machine may slow all of the few milliseconds that one of the two is measured for.
four_are_faster() {
    awk -F, 'NR > 1 { seconds[$4] = $6 } END { exit !(seconds[4] > 0 && seconds[4] < 0.6 * seconds[1]) }' "$csv"
}
four_are_faster_at_last() {
    for again in 1 2; do
        four_are_faster && return
        echo "# measured again: $again" >&2
        "$bench" linear --shape 96x256x256 --in-turn --threads 1,4 --impl heed --seconds 0.05 --csv "$csv" \
            >"$out" 2>"$err" </dev/null
    done
    four_are_faster
}
expect "four threads in turn would be faster than one" four_are_faster_at_last
run attention 2x4/2x9x9x16+causal --in-turn --threads 3
expect "in turn, heed and its unfused form are alone" has_rows 2
for loop in heads rows keys; do
    run attention 2x4/2x9x600x16+causal --impl heed,unfused --loop $loop
    expect "a forced loop is in the output" grep -q "^# heed's attention loop: $loop" "$out"
    run decode 1x4/2x3x600x16+causal --impl heed,unfused --loop $loop
done
# moved BYTES FLOPS: whether the work of the last run's shape is one of these, whichever limit binds.
moved() {
    awk -F, -v bytes="$1" -v flops="$2" '
        NR > 1 { work = $6 * $7 * 1e9 / ($8 == "GB/s" ? bytes : flops); bad = work < 0.99 || work > 1.01 }
        END { exit bad || NR != 2 }' "$csv"
}
keys=$((4096 * 64 * 2 * 4)) ends=$((64 * 2 * 4)) flops=$((4 * 64 * 4096))
run decode 1x1x1x8192x64+causal+window4095 --threads 1 --impl heed
expect "keys outside the window are no bytes" moved $((keys + ends)) $flops
run decode 1x1x1x8192x64+causal+window4095+additive --threads 1 --impl heed
expect "nor is their mask" moved $((keys + ends + 4096 * 4)) $flops
run attention 1x2x7x9x8 --threads 1 --impl heed --loop auto
expect "heed's choice is not" test "$(grep -c 'attention loop' "$out")" -eq 0
for suite in linear gemv rows attention decode layer; do
    run $suite "" --threads 1 --impl heed --random 2
done
run matmul "" --threads 1 --impl heed --random 3 --seed 7
expect "--random gives so many rows" has_rows 3
expect "--random lists the worst" test "$(grep -c '^#   [0-9.]* % of ' "$out")" -eq 3
cp "$csv" "$work/first.csv"
run matmul "" --threads 1 --impl heed --random 3 --seed 7
same_shapes() {
    test "$(cut -d, -f2 "$csv")" = "$(cut -d, -f2 "$work/first.csv")"
}
expect "--seed gives the same shapes again" same_shapes
# This seed begins with 1x1x1 twice.
run gemv "" --threads 1 --impl heed --random 2 --seed 1369
expect "a random shape that comes twice is measured once" has_rows 1
run matmul "" --threads 1 --impl heed --random 3 --worst 1
expect "--worst lists so many" test "$(grep -c '^#   [0-9.]* % of ' "$out")" -eq 1

run rows "" --shape softmax:3x21 --shape relu:40x64 --threads 1 --isa scalar --impl heed --worst 1
# Microseconds and rates of the table, which has fewer digits than the CSV file.
same_rows() {
    awk 'function near(a, b, digit) { return a - b <= digit + 1e-5 * b && b - a <= digit + 1e-5 * b }
        NR == FNR { split($0, f, ","); us[f[2]] = 1e6 * f[6]; rate[f[2]] = f[7]; next }
        $2 == "scalar" { n++; bad = bad || !near($5, us[$1], 0.001) || !near($6, rate[$1], 0.01) }
        END { exit bad || n != 2 }' "$csv" "$out"
}
summary_of_csv() {
    awk -F, 'NR > 1 { logs += log($10) }
        NR == 2 || (NR > 2 && $10 < worst) { worst = $10; at = $2; limit = $9 }
        END {
            printf "# heed, scalar, 1 thread: geometric mean %.1f %% of the limit over 2 shapes, worst %.1f %% at %s\n",
                exp(logs / 2), worst, at
            printf "#   %.1f %% of %s at %s\n", worst, limit, at
        }' "$csv"
}
expect "the table has the rows of the CSV file" same_rows
summary_of_csv >"$work/expected"
grep -e '^# heed, ' -e '^#   ' "$out" >"$work/told"
expect "its summary is that of the rows" cmp -s "$work/told" "$work/expected"

# More than there are addresses, so that no page of it is touched.
ASAN_OPTIONS=allocator_may_return_null=1 "$bench" matmul --shape 500000000x500000000x1 --threads 1 --impl heed \
    >"$out" 2>"$err"
status=$?
no_memory() {
    test "$status" -eq 1 && grep -q '^heed-bench: 500000000x500000000x1: out of memory: [1-9][0-9]* bytes$' "$err"
}
expect "what there is no memory for, and how much" no_memory

# ---- summary -----------------------------------------------------------------------------------------

# Two shapes, of which the second one reaches 50 % of the limit and is half as fast as a peer.
made_csv() {
    echo "$columns"
    echo 'linear,8x8x8,avx2,1,heed,1e-6,1,GFLOP/s,fma,90.00'
    echo 'linear,8x8x8,avx2,1,unfused,1e-6,1,GFLOP/s,fma,99.00'
    echo 'linear,8x8x9,avx2,1,heed,1e-6,1,GFLOP/s,fma,50.00'
    echo 'linear,8x8x9,avx2,1,mkl,1e-6,1,GFLOP/s,fma,100.00'
}
made_csv >"$work/made.csv"

summarize() {
    sh "$bench_source/summary" "$@" "$work/made.csv" >"$out" 2>"$err"
    status=$?
}

summarize
expect "summary without targets succeeds" test "$status" -eq 0
expect "summary has geometric means" grep -q '2 shapes, 67.1 % of the limit, 0.500 times the best peer' "$out"
summarize --limit 60 --worst 0
expect "summary --limit fails" test "$status" -eq 1
expect "summary --limit lists what is below" test "$(grep -c 'below target' "$out")" -eq 1
summarize --peer 0.4 --shape '9$'
expect "summary --peer succeeds where it is met" test "$status" -eq 0
summarize --unfused 0.95 --worst 0
expect "summary --unfused fails" test "$status" -eq 1
expect "summary --unfused lists what is below" grep -q 'fused: 0.909 times unfused at 8x8x8  below target' "$out"
summarize --nonsense
expect "summary with a wrong option" one_line 2 'no such option'
summarize --worst 1.5
expect "summary with a part of a shape" one_line 2 'worst 1.5: expected a count'
summarize --
expect "summary after --" test "$status" -eq 0
summarize --shape '('
expect "summary with a wrong pattern" one_line 2 'no extended regular expression'
summarize --shape typo
expect "summary of nothing" one_line 1 'no rows of heed match'
summary=$(cd "$bench_source" && pwd)/summary
(cd "$work" && cp made.csv threads=2.csv && sh "$summary" threads=2.csv) >"$out" 2>"$err" </dev/null
expect "summary of a file with = in its name" grep -q '2 shapes, 67.1 %' "$out"
cp "$work/made.csv" "$work/whole.csv"
echo 'linear,8x8x9,avx2,1,heed,1e-6,1,GFLOP/s,fma,0' >>"$work/made.csv"
summarize
expect "summary of a share of 0" one_line 1 'made.csv: line 6: is no row'
for row in ',,,,heed,,,,,5' '../x,8x8x8,avx2,1,heed,1e-6,1,GFLOP/s,fma,5' 'linear,8x8x8,av x2,1,heed,1e-6,1,GFLOP/s,fma,5' \
    'linear,8x8x8,avx2,1,heed,1e-6,1,GFLOP/s,fma,1.2.3' 'linear,8x8x8,avx2,1,heed,1e-6,1,GFLOP/s,fma,1e999'; do
    cp "$work/whole.csv" "$work/made.csv"
    echo "$row" >>"$work/made.csv"
    summarize
    expect "summary of $row" one_line 1 'made.csv: line 6: is no row'
done
cp "$work/whole.csv" "$work/made.csv"
second='line [0-9]*: is a second row of linear 8x8x9, avx2, threads: 1, mkl$'
echo 'linear,8x8x9,avx2,1,mkl,2e-6,1,GFLOP/s,fma,50.00' >>"$work/made.csv"
summarize
expect "summary of a second row of the same" one_line 1 "^summary: $work/made.csv: line 6:.*"
expect "summary says of what" one_line 1 "$second"
summarize --shape '8$'
expect "summary of one that does not match" one_line 1 "$second"
{
    echo "$columns"
    tail -n 1 "$work/made.csv"
} >"$work/other=.csv"
cp "$work/whole.csv" "$work/made.csv"
(cd "$work" && sh "$summary" made.csv other=.csv) >"$out" 2>"$err" </dev/null
status=$?
expect "summary of a second row in another file" one_line 1 '^summary: other=.csv: line 2:'
for row in matmul,8x8x9,avx2,1,mkl linear,8x8x10,avx2,1,mkl linear,8x8x9,sse2,1,mkl linear,8x8x9,avx2,2,mkl \
    linear,8x8x9,avx2,1,blis; do
    {
        echo "$columns"
        echo "$row,2e-6,1,GFLOP/s,fma,50.00"
    } >"$work/other=.csv"
    summarize "$work/other=.csv"
    expect "summary of another row, $row" test "$status" -eq 0
done
sh "$bench_source/summary" "$work/made.csv" 2>"$err" >&-
status=$?
expect "summary without standard output" one_line 1 'standard output: cannot be written'

# Peers before heed, after it and without it, and what is no shape. The first means are those of 80, 20, 40 and 40 %,
# and of 4/5 and 1/2.
mixed_csv() {
    echo "$columns"
    echo 'peak,fma,avx2,1,limit,1e-6,1,GFLOP/s,fma,99.00'
    echo 'linear,8x8x8,avx2,1,mkl,1e-6,1,GFLOP/s,fma,100.00'
    echo 'linear,8x8x8,avx2,1,heed,1e-6,1,GFLOP/s,fma,80.00'
    echo 'linear,8x8x8,avx2,1,onednn,1e-6,1,GFLOP/s,fma,50.00'
    echo 'attention,1x1x8x8x8,avx2,2,heed,1e-6,1,GFLOP/s,fma,50.00'
    echo 'attention,1x1x8x8x8,avx2,2,unfused,1e-6,1,GFLOP/s,fma,25.00'
    echo 'attention,1x1x8x8x9,avx2,2,heed,1e-6,1,GFLOP/s,fma,50.00'
    echo 'linear,8x8x9,avx2,1,heed,1e-6,1,GB/s,L2,20.00'
    echo 'linear,8x8x9,avx2,1,mkl,1e-6,1,GB/s,L2,10.00'
    echo 'linear,8x8x9,avx2,1,onednn,1e-6,1,GB/s,L2,40.00'
    echo 'linear,8x8x10,avx2,1,heed,1e-6,1,GFLOP/s,fma,40.00'
    echo 'linear,8x8x11,avx2,1,heed,1e-6,1,GFLOP/s,fma,40.00'
    echo 'linear,8x8x9,avx2,2,heed,1e-6,1,GB/s,L2,30.00'
    echo 'linear,8x8x9,sse2,1,heed,1e-6,1,GB/s,L2,60.00'
    echo 'linear,8x8x9,neon,1,mkl,1e-6,1,GB/s,L2,60.00'
}
mixed_csv >"$work/made.csv"
cat >"$work/expected" <<'END'
linear, avx2, threads: 1: 4 shapes, 40.0 % of the limit, 0.632 times the best peer
  limit:  20.0 % of L2 at 8x8x9
  limit:  40.0 % of fma at 8x8x10
  limit:  40.0 % of fma at 8x8x11
  peer:  0.500 times onednn at 8x8x9
  peer:  0.800 times mkl at 8x8x8
attention, avx2, threads: 2: 2 shapes, 50.0 % of the limit, 2.000 times unfused
  limit:  50.0 % of fma at 1x1x8x8x8
  limit:  50.0 % of fma at 1x1x8x8x9
  fused: 2.000 times unfused at 1x1x8x8x8
linear, avx2, threads: 2: 1 shape, 30.0 % of the limit
  limit:  30.0 % of L2 at 8x8x9
linear, sse2, threads: 1: 1 shape, 60.0 % of the limit
  limit:  60.0 % of L2 at 8x8x9
END
summarize
expect "summary of all suites, levels and threads" cmp -s "$out" "$work/expected"
summarize --limit 20 --peer 0.5 --unfused 2 --worst 1
expect "summary of what just meets its targets" test "$status" -eq 0
expect "summary --worst shows so many of each" test "$(grep -c '^  ' "$out")" -eq 6
summarize --limit 20.1 --worst 0
expect "summary of what just does not" test "$status $(grep -c '^  ' "$out")" = '1 1'
summarize --shape '^1x'
expect "summary --shape leaves out the others" test "$(grep -c '^[a-z]' "$out")" -eq 1

# ---- plot --------------------------------------------------------------------------------------------

# In place of gnuplot, which draws what it is told and given: a picture that is both.
mkdir "$work/bin" "$work/plots"
cat >"$work/bin/gnuplot" <<'END'
#!/bin/sh
cat "$1" table >"$(sed -n 's/^set output "\(.*\)"$/\1/p' "$1")"
END
chmod +x "$work/bin/gnuplot"

plot() {
    PATH=$work/bin:$PATH sh "$bench_source/plot" "$@" >"$out" 2>"$err"
    status=$?
}

# drawn PICTURE: the numbers of a picture.
drawn() {
    sed -n '/^shape/,$p' "$work/plots/$1"
}

echo 'rows,relu:3x21,avx2,1,heed,1e-6,1,GB/s,L2,70.00' >>"$work/made.csv"
plot "$work/made.csv" "$work/plots/p"
expect "plot succeeds" test "$status" -eq 0
(cd "$work/plots" && ls) | tr '\n' ' ' >"$work/told"
expect "plot draws each suite or function, level and number of threads" test "$(cat "$work/told")" = \
    "$(for name in attention-avx2-2 linear-avx2-1 linear-avx2-2 linear-neon-1 linear-sse2-1 peak-avx2-1 \
        rows-relu-avx2-1; do
        printf 'p-%s.png p-%s.svg ' $name $name
    done)"
cat >"$work/expected" <<'END'
shape mkl heed onednn
8x8x8 100.00 80.00 50.00
8x8x9 10.00 20.00 40.00
8x8x10 ? 40.00 ?
8x8x11 ? 40.00 ?
END
drawn p-linear-avx2-1.svg >"$work/told"
expect "plot draws percents of the limit, and nothing where there is none" cmp -s "$work/told" "$work/expected"
expect "plot draws a line for each implementation" grep -q '^plot for \[i=2:4\] ' "$work/plots/p-linear-avx2-1.svg"
expect "plot has room for each shape" grep -q '^set xrange \[-0.5:4-0.5\]$' "$work/plots/p-linear-avx2-1.svg"
expect "plot draws PNG as such" grep -q '^set terminal pngcairo ' "$work/plots/p-linear-avx2-1.png"
expect "plot draws rows without the function" test "$(drawn p-rows-relu-avx2-1.svg | tail -n 1)" = '3x21 70.00'
cp "$work/made.csv" "$work/plots/x.csv"
plot "$work/plots/x.csv"
expect "plot calls pictures after the file" test -s "$work/plots/x-linear-sse2-1.svg"
mkdir "$work/plots/d-peak-avx2-1.svg"
plot "$work/plots/x.csv" "$work/plots/d"
expect "plot where a directory has the name" one_line 1 'd-peak-avx2-1.svg: cannot be written'
plot --nonsense
expect "plot with a wrong option" one_line 2 'no such option'
echo "$columns" >"$work/made.csv"
plot "$work/made.csv"
expect "plot of nothing" one_line 1 'made.csv: has no rows'
for row in 'linear,8x8x9,avx2,1,heed,1e-6,1,GFLOP/s,fma,80,0' 'linear,8x8x9,avx2,1,heed,1e-6,1,GFLOP/s,fma'; do
    {
        echo "$columns"
        echo "$row"
    } >"$work/made.csv"
    plot "$work/made.csv"
    expect "plot of $row" one_line 1 'made.csv: line 2: is no row'
done
printf '#!/bin/sh\nexit 1\n' >"$work/bin/gnuplot"
plot "$work/plots/x.csv"
expect "plot where gnuplot fails" one_line 1 'gnuplot failed for peak-avx2-1.svg'
plot
expect "plot without a file" one_line 2 'expected CSV'

# ---- Python libraries --------------------------------------------------------------------------------

# python ANSWER: an interpreter that knows no more than how to greet and to answer requests to open.
python() {
    printf '#!/bin/sh\necho hello fake\nwhile read -r name rest; do echo "%s"; done\n' "$1" >"$work/python"
    chmod +x "$work/python"
}

"$bench" matmul --shape 8x8x8 --threads 1 --python "$work/absent" >"$out" 2>"$err"
status=$?
expect "an interpreter that is not there" one_line 1 'absent: none of its libraries can be used'
expect "why it is not" grep -q '^# torch: .*No such file' "$out"
python unable
run matmul 8x8x8 --threads 1 --python "$work/python"
expect "an interpreter that is" grep -q '^# torch: fake' "$out"
expect "a library that is unable is left out" test "$(grep -c ',torch,' "$csv")" -eq 0
# found PEERS: whether the interpreter is given a script that is there, with this folder for scripts in the environment.
found() {
    HEED_BENCH_PEERS=$1 "$bench" matmul --shape 8x8x8 --threads 1 --impl heed,torch --seconds 0.01 \
        --python "$work/python" >"$out" 2>"$err"
    grep -q '^# torch: found' "$out"
}
printf '#!/bin/sh\ntest -f "$2" && echo hello found\n' >"$work/python"
expect "an empty HEED_BENCH_PEERS names nothing" found ''
mkdir "$work/peers"
: >"$work/peers/serve.py"
expect "one that is not is where the script is" found "$work/peers"
rm "$work/peers/serve.py"
expect "and nowhere else" test "$(found "$work/peers" && echo found)" = ''
python 'error broken'
"$bench" matmul --shape 8x8x8 --threads 1 --python "$work/python" >"$out" 2>"$err"
status=$?
expect "a library that fails" one_line 1 'torch: broken'

# ---- shared libraries --------------------------------------------------------------------------------

"$bench" matmul --shape 8x8x8 --threads 1 --library "mkl=$work/absent.so" >"$out" 2>"$err"
status=$?
expect "a shared library that is not there" one_line 1 '--library mkl: .*absent.so'

# Another build, or this one again, computes what a context of its own computes, in every suite of single operators.
build=$(ls .libs/libheed.so .libs/libheed.dylib 2>/dev/null | head -n 1)
# Without OpenMP one thread is all there is.
threads=1,2
"$bench" matmul --shape 1x1x1 --threads 2 --impl heed --seconds 0.001 >/dev/null 2>&1 || threads=1
for shape in matmul:5x7x9+nt linear:5x7x9+gelu-erf rows:add-layernorm:9x77 attention:1x2x9x77x16+causal decode:1x2x1x77x16
do
    name="another build: ${shape%%:*}"
    if [ -z "$build" ]; then
        count=$((count + 1))
        echo "ok $count - $name # SKIP no shared library"
        continue
    fi
    "$bench" "${shape%%:*}" --shape "${shape#*:}" --threads $threads --seconds 0.01 --impl heed,build \
        --library "build=$build" --csv - >"$out" 2>"$err"
    expect "$name" test "$(grep -c ',build,' "$out")" -eq "$(echo $threads | tr , '\n' | wc -l)"
done
"$bench" matmul --shape 8x8x8 --threads 1 --library "build=$work/absent.so" >"$out" 2>"$err"
status=$?
expect "a build that is not there" one_line 1 '--library build: .*absent.so'

# blas BITS: a run with a BLAS that rounds operands to so many bits.
blas() {
    "$bench" matmul --threads 1 --library "blis=$work/blas$1.so" --impl blis --seconds 0.01 --shape 5x7x4096 \
        --shape 40x24x3 --shape 8x8x1 >"$out" 2>"$err"
    status=$?
}

# shellcheck disable=SC2086  # CC may hold flags
make_blas() {
    for bits in 24 11 8; do
        ${CC:-cc} -DBITS=$bits -shared -fPIC -o "$work/blas$bits.so" "$(dirname "$0")/rounding_blas.c" || return 1
    done
}
if make_blas >"$out" 2>&1; then
    blas 24
    expect "products in float, from the last to the first" test "$status" -eq 0
    expect "threads that are not heed's" grep -q '^# blis: .*, threads of its own$' "$out"
    for bits in 11 8; do
        blas $bits
        expect "products of operands of $bits bits are not taken for float's" \
            one_line 1 'blis: wrong result for 5x7x4096'
    done
else
    count=$((count + 1))
    echo "ok $count - products of few bits # SKIP no shared libraries"
fi
"$bench" linear --shape 8x8x8+relu --threads 1 --impl openblas >"$out" 2>"$err"
status=$?
expect "nothing measured" one_line 1 'nothing was measured'

# ---- help and wrong command lines ------------------------------------------------------------------

"$bench" --help >"$out" 2>"$err"
expect "--help fits a terminal" awk 'length > 80 { bad = 1 } END { exit bad }' "$out"
expect "--help has an example" grep -q '^example: heed-bench ' "$out"
"$bench" --version >"$out" 2>"$err"
expect "--version" grep -q '^heed-bench [0-9]' "$out"
"$bench" -V >"$work/version" 2>"$err"
expect "-V" cmp -s "$out" "$work/version"

refuse 'no suite'
refuse 'no such suite' nonsense
refuse 'one suite' matmul linear
refuse 'no such option' matmul --nonsense
refuse 'needs an argument' matmul --shape
refuse 'expected MxNxK' matmul --shape 8x8
refuse 'expected MxNxK' matmul --shape 8x8x8x8
refuse 'expected MxNxK' matmul --shape 8x0x8
refuse 'expected MxNxK' matmul --shape 8x-8x8
refuse 'expected MxNxK' matmul --shape 8x8x99999999999999999999
refuse 'expected MxNxK' matmul --shape 8x8x1000000001
refuse 'expected numbers' matmul --threads 0
refuse 'expected numbers' matmul --threads 1,,1
refuse 'expected numbers' matmul --threads 4097
refuse 'no level has that name' matmul --isa nonsense
refuse 'expected one of heed' matmul --impl nonsense
refuse 'expected one of build, openblas' matmul --library nonsense=x
refuse 'expected one of build, openblas' matmul --library heed=x
refuse 'needs --library build' matmul --impl heed,build
refuse 'expected NAME=PATH' matmul --library onednn
refuse 'expected NAME=PATH' matmul --library onednn=
refuse 'for heed and unfused alone' matmul --in-turn --impl onednn
refuse 'peak does not take --in-turn' peak --in-turn
refuse 'expected a number' matmul --seconds 0
refuse 'expected a number' matmul --seconds nan
refuse 'expected a number' matmul --seconds 1000001
refuse 'expected a number' matmul --random 0
refuse 'needs --random' matmul --seed 1
refuse 'expected a number' matmul --worst -1
refuse 'do not go together' matmul --shape 8x8x8 --random 1
refuse 'expected auto, heads, rows or keys' attention --loop nonsense
refuse 'for attention and decode' matmul --loop rows
refuse 'for attention and decode' peak --loop auto
refuse 'neither' peak --shape 8x8x8
refuse 'expected 1xNxK' gemv --shape 2x8x8
refuse 'expected FUNCTION' rows --shape 8x8
refuse 'expected FUNCTION' rows --shape soft:8x8
refuse 'expected FUNCTION' rows --shape softmax:8x8x8
refuse 'expected BATCHxHEADS' attention --shape 1x4/3x8x8x8
refuse 'expected BATCHxHEADS' decode --shape 1x4x8x8x8+nonsense
refuse 'expected BATCHxHEADS' attention --shape 1x4x8x8x8+window
refuse 'expected BATCHxHEADS' attention --shape 1x4x8x8x8+window0
refuse 'expected BATCHxHEADS' attention --shape 1x4x8x8x8+causals
refuse 'expected BATCHxHEADS' attention --shape 1x4x8x8x8+additive+boolean
refuse 'expected BATCHxHEADS' attention --shape 1x4x8x8x8+causal+causal
refuse 'expected BATCHxHEADS' attention --shape 1x4x8x8x8+alibi+alibi
refuse 'expected BATCHxHEADS' attention --shape 1x4x8x8x8+window2+window3
for shape in 1x8x24x3x40 t5:1x8x24x3x40 bert:1x8x24x5x40 bert:1x8x24x4/2x40 bert:1x8x24x3x40x2 bert:1x8x24x3 \
    llama:1x8x24x8x40 llama:1x8x24x4/3x40 gpt2:0x8x24x3x40 gpt2:1x8x24x3x40+causal; do
    refuse 'expected MODEL:BATCHx' layer --shape $shape
done
refuse 'expected MxNxK' linear --shape 8x8x8+nonsense
refuse 'expected MxNxK' matmul --shape 8x8x8+bias
refuse 'expected MxNxK' matmul --shape 8x8x8+t
refuse 'expected MxNxK' linear --shape 8x8x8+nt

# ---- output that cannot be written -------------------------------------------------------------------

fast() {
    "$bench" matmul --shape 8x8x8 --threads 1 --impl heed --seconds 0.01 "$@" 2>"$err"
}

only_err_and_out() {
    one_line "$1" "$2" && test "$(ls "$work/dir")" = ""
}

mkdir "$work/dir"
fast --csv - >"$work/standard.csv"
status=$?
expect "--csv -: succeeds, makes no file" test "$status$(test -e ./- && echo made)" = 0
expect "--csv -: CSV alone on standard output" \
    awk -F, 'NF != 10 { bad = 1 } END { exit bad || NR != 2 || $5 != "heed" }' "$work/standard.csv"
expect "--csv -: the table on standard error" grep -q '^8x8x8 .* heed ' "$err"
# A library that keeps the second shape waiting for a file.
cat >"$work/slow" <<END
#!/bin/sh
echo hello fake
while read -r request; do
    case \$request in
    *8x8x9*) until test -e '$work/go'; do sleep 1; done ;;
    esac
    echo unable
done
END
chmod +x "$work/slow"
first_row_comes_first() {
    : >"$work/rows.csv"
    fast --shape 8x8x9 --impl heed,torch --python "$work/slow" --csv - >"$work/rows.csv" &
    tries=0
    while test "$(wc -l <"$work/rows.csv")" -lt 2 && test $tries -lt 30; do
        sleep 1
        tries=$((tries + 1))
    done
    came=$(wc -l <"$work/rows.csv")
    : >"$work/go"
    wait $!
    test "$came" -eq 2 && test "$(wc -l <"$work/rows.csv")" -eq 3
}
expect "--csv -: rows as they come" first_row_comes_first
fast --csv "$work/absent/x.csv" >"$out"
status=$?
expect "a CSV file that cannot be made" one_line 1 'No such file'
if test -c /dev/full; then
    fast --csv "$work/dir/x.csv" >/dev/full
    status=$?
    expect "a full device: an error, no CSV file" only_err_and_out 1 'standard output'
    fast --csv /dev/full >"$out"
    status=$?
    expect "CSV to a full device" one_line 1 '/dev/full'
fi
{
    fast --csv "$work/dir/x.csv"
    echo $? >"$work/status"
} | :
# Some shells wait only for the last command.
tries=0
while ! test -s "$work/status" && test $tries -lt 10; do
    sleep 1
    tries=$((tries + 1))
done
status=$(cat "$work/status")
expect "a closed pipe: an error, no CSV file" only_err_and_out 1 'standard output'

echo "1..$count"
test $failures -eq 0
