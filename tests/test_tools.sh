#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests of heed-embed with a tiny model, heed-info and heed-examples; run from the build directory. Prints TAP.
# shellcheck disable=SC2016  # awk programs are in single quotes
set -u

embed=${HEED_EMBED:-tools/heed-embed}
info=${HEED_INFO:-tools/heed-info}
examples=${HEED_EXAMPLES:-tools/heed-examples}
make_model=${MAKE_TINY_MODEL:-tests/make_tiny_model}
scripts=$(dirname "$0")/../tools
unset HEED_ISA

if ! test -x "$embed"; then
    echo "1..0 # SKIP heed-embed was not built: it needs cJSON and utf8proc"
    exit 0
fi
# From any directory.
embed_path=$(cd "$(dirname "$embed")" && pwd)/$(basename "$embed")

count=0
failures=0
work=$(mktemp -d "${TMPDIR:-/tmp}/heed-test.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
model=$work/model
out=$work/out
err=$work/err

pass() {
    count=$((count + 1))
    echo "ok $count - $1"
}

fail() {
    count=$((count + 1))
    failures=$((failures + 1))
    echo "not ok $count - $1"
    sed 's/^/# /' "$err" | head -n 5
}

skip() {
    count=$((count + 1))
    echo "ok $count - $1 # SKIP $2"
}

# expect NAME CONDITION...
expect() {
    name=$1
    shift
    if "$@"; then pass "$name"; else fail "$name"; fi
}

# refuse NAME STATUS PATTERN COMMAND...: that status, nothing on standard output and one line on
# standard error, which has the pattern.
refuse() {
    name=$1 wanted=$2 pattern=$3
    shift 3
    "$@" >"$out" 2>"$err" </dev/null
    status=$?
    if test $status -eq "$wanted" && test "$(wc -l <"$err")" -eq 1 && grep -q -- "$pattern" "$err" && ! test -s "$out"
    then
        pass "$name"
    else
        echo "# status $status, not $wanted, or not one line like: $pattern"
        fail "$name"
    fi
}

# Runs heed-embed with the tiny model.
run() {
    "$embed" --model "$model" "$@" 2>"$err"
}

same() {
    cmp -s "$1" "$2"
}

differ() {
    test -s "$1" && ! cmp -s "$1" "$2"
}

# Whether the directory holds nothing but what is named.
holds_only() {
    directory=$1
    shift
    test "$(ls -A "$directory")" = "$*"
}

is_quiet() {
    ! test -s "$err"
}

# Whether the last command ended with 0 and wrote to standard output only.
printed() {
    test "$status" -eq 0 && test -s "$out" && is_quiet
}

# has_mode OCTAL FILE
has_mode() {
    test "$(find "$2" -prune -perm "$1")" = "$2"
}

is_link_to_lines() {
    test -h "$1" && test "$(wc -l <"$1")" -eq "$2"
}

new_model() {
    rm -rf "$1"
    mkdir "$1" && "$make_model" "$@" 2>"$err"
}

# ---- a sound model -------------------------------------------------------------------------------

new_model "$model" f32 || exit 1
cat >"$work/lines" <<'END'
the cat sat on the mat.
The dog ran, un-doable!

今天 cafe Élève
a b c 1 2 11 22 121
END

# npy_header ROWS COLUMNS: 128 bytes, for this machine's order of bytes.
npy_header() {
    case $(printf '\001\000' | od -An -td2) in *256) order='>' ;; *) order='<' ;; esac
    printf '\223NUMPY\001\000v\000'
    printf '%-117s\n' "{'descr': '${order}f4', 'fortran_order': False, 'shape': ($1, $2), }"
}

# end_with FILE OCTALS: puts these bytes over the last ones.
end_with() {
    printf '%b' "$2" >"$work/end"
    dd if="$work/end" of="$1" bs=1 seek=$(($(wc -c <"$1") - $(wc -c <"$work/end"))) conv=notrunc 2>"$err"
}

test_formats() {
    run --format text --output "$work/text" "$work/lines"
    expect "text: one line for each line" test "$(wc -l <"$work/text")" -eq 5
    expect "text: 32 numbers in each" awk 'NF != 32 { bad = 1 } END { exit bad }' "$work/text"
    expect "nothing on standard error" is_quiet
    run --verbose --threads 2 --isa scalar --format text "$work/lines" >"$out"
    expect "--verbose says what ran" grep -q '^heed-embed: level scalar, threads: 2, lines: 5, tokens: 41, ' "$err"
    run "$work/lines" >"$work/jsonl"
    expect "jsonl is the default: one line for each line" test "$(wc -l <"$work/jsonl")" -eq 5
    expect "jsonl: line, text and number of tokens" \
        grep -q '^{"line":3,"tokens":2,"text":"","embedding":\[' "$work/jsonl"
    sed 's/.*"embedding":\[//; s/\]}$//; y/,/ /' "$work/jsonl" >"$work/numbers"
    expect "jsonl: the numbers of text" same "$work/numbers" "$work/text"
    run --format text --output - "$work/lines" >"$work/standard"
    expect "--output -: standard output" same "$work/standard" "$work/text"
    expect "--output -: no file" test ! -e ./-
    run --format npy --output "$work/a.npy" "$work/lines"
    run --format npy "$work/lines" >"$work/b.npy"
    expect "npy: the size of header and numbers" test "$(wc -c <"$work/a.npy")" -eq $((128 + 5 * 32 * 4))
    expect "npy: the shape" grep -q "'shape': (5, 32)" "$work/a.npy"
    expect "npy: the same on standard output" same "$work/a.npy" "$work/b.npy"
    npy_header 5 32 >"$work/header"
    dd if="$work/a.npy" of="$out" bs=128 count=1 2>"$err"
    expect "npy: the header of version 1.0" same "$out" "$work/header"
    dd if="$work/a.npy" bs=128 skip=1 2>"$err" | od -An -v -tfF | tr -s ' ' '\n' | sed '/^$/d' >"$work/numbers"
    tr ' ' '\n' <"$work/text" | paste - "$work/numbers" >"$out"
    expect "npy: the numbers of text" awk '{ d = $1 - $2 } d * d > 1e-12 { bad = 1 } END { exit bad || NR != 160 }' "$out"
    run --format npy --output "$work/c.npy" /dev/null
    expect "npy: no lines" grep -q "'shape': (0, 32)" "$work/c.npy"
}

test_input() {
    run --format text <"$work/lines" >"$out"
    expect "standard input" same "$out" "$work/text"
    run --format text - <"$work/lines" >"$out"
    expect "standard input by its name" same "$out" "$work/text"
    mkfifo "$work/fifo"
    cat "$work/lines" >"$work/fifo" &
    run --format text "$work/fifo" >"$out"
    expect "a FIFO" same "$out" "$work/text"
    head -n 2 "$work/lines" >"$work/first"
    tail -n 3 "$work/lines" >"$work/last"
    run --format text "$work/first" "$work/last" >"$out"
    expect "two files" same "$out" "$work/text"
    awk '{ printf "%s\r\n", $0 }' "$work/lines" >"$work/crlf"
    run --format text "$work/crlf" >"$out"
    expect "lines that end in carriage return and line feed" same "$out" "$work/text"
    run "$work/crlf" >"$out"
    expect "the carriage return is not part of the line" same "$out" "$work/jsonl"
    printf '%s' "$(cat "$work/lines")" >"$work/unfinished"
    run --format text "$work/unfinished" >"$out"
    expect "a last line without its end" same "$out" "$work/text"
    printf 'a\r' | run >"$out"
    expect "but for one that no line feed follows" grep -q '"text":"a\\u000d"' "$out"
    printf 'a\000b\n' | run --tokens >"$out"
    expect "a NUL in a line vanishes" test "$(cat "$out")" = "[2,1,3]"
}

test_tokens() {
    cat >"$work/expected" <<'END'
[2,8,9,11,12,8,13,20,3]
[2,8,10,1,21,14,24,1,19,3]
[2,3]
[2,29,30,17,18,3]
[2,5,6,7,25,26,25,27,26,28,25,28,27,3]
END
    run --tokens "$work/lines" >"$out"
    expect "token ids" same "$out" "$work/expected"
    echo 'a [MASK]b [cls]' | run --tokens >"$out"
    expect "special tokens in the text" test "$(cat "$out")" = "[2,5,4,6,1,1,1,3]"
    echo unables | run --tokens >"$out"
    expect "a piece as long as any" test "$(cat "$out")" = "[2,14,16,31,3]"
    mv "$model/tokenizer.json" "$work"
    run --tokens "$work/lines" >"$out"
    expect "token ids by vocab.txt" same "$out" "$work/expected"
    mv "$work/tokenizer.json" "$model"
    new_model "$work/cased" f32
    sed 's/"lowercase":true/"lowercase":false/' "$model/tokenizer.json" >"$work/cased/tokenizer.json"
    echo 'eleve élève Cat' | "$embed" --model "$work/cased" --tokens >"$out" 2>"$err"
    expect "without lower case accents stay, too" test "$(cat "$out")" = "[2,18,1,1,3]"
}

test_types() {
    for type in f16 bf16; do
        new_model "$work/$type" $type
        "$embed" --model "$work/$type" --format text "$work/lines" >"$out" 2>"$err"
        expect "weights of type $type" same "$out" "$work/text"
    done
    for variant in prefixed misaligned old-names no-elements; do
        new_model "$work/$variant" f32 $variant
        "$embed" --model "$work/$variant" --format text "$work/lines" >"$out" 2>"$err"
        expect "weights: $variant" same "$out" "$work/text"
    done
}

# Numbers that are the same in both types: -1023 * 2^-24, which is subnormal in one of them, and -inf.
test_values() {
    new_model "$work/single" f32
    new_model "$work/half" f16
    for bytes in '\0377\0203 \0000\0300\0177\0270' '\0000\0374 \0000\0000\0200\0377'; do
        end_with "$work/half/model.safetensors" "${bytes% *}"
        end_with "$work/single/model.safetensors" "${bytes#* }"
        "$embed" --model "$work/single" --format text --no-normalize "$work/lines" >"$work/expected" 2>"$err"
        "$embed" --model "$work/half" --format text --no-normalize "$work/lines" >"$out" 2>"$err"
        expect "a value of f32 and of f16" same "$out" "$work/expected"
        expect "is not ignored" differ "$out" "$work/raw"
    done
    "$embed" --model "$work/single" --no-normalize "$work/first" >"$out" 2>"$err"
    expect "jsonl: null for what JSON has no number for" test "$(grep -c ',null\]}$' "$out")" -eq 2
}

# The last norm gives 32 numbers of 2^-48: a length of 2^-45.5, in place of which 1e-12 divides, as in PyTorch.
test_faint_embedding() {
    new_model "$work/faint" f32
    end_with "$work/faint/model.safetensors" \
        "$(printf '%0128d' 0 | sed 's/0/\\0000/g')$(printf '%032d' 0 | sed 's/0/\\0000\\0000\\0200\\0047/g')"
    "$embed" --model "$work/faint" --format text "$work/lines" >"$out" 2>"$err"
    expect "an embedding of nearly no length is not made one of length 1" awk '
        { for (i = 1; i <= NF; i++) if ($i < 0.99999e12 / 2 ^ 48 || $i > 1.00001e12 / 2 ^ 48) bad = 1 }
        END { exit bad || NR != 5 }' "$out"
}

# variant FILE EXPRESSION: a model whose FILE is edited by sed embeds the lines.
variant() {
    new_model "$work/variant" f32
    sed "$2" "$model/$1" >"$work/variant/$1"
    "$embed" --model "$work/variant" --format text "$work/lines" >"$out" 2>"$err"
}

test_config() {
    variant config.json 's/"gelu"/"gelu_new"/'
    cp "$out" "$work/tanh"
    expect "gelu_new is another activation" differ "$work/tanh" "$work/text"
    variant config.json 's/"gelu"/"gelu_pytorch_tanh"/'
    expect "gelu_pytorch_tanh is the same one" same "$out" "$work/tanh"
    variant config.json 's/"gelu"/"relu"/'
    expect "relu is none of them" differ "$out" "$work/text"
    expect "nor the other one" differ "$out" "$work/tanh"
    variant config.json 's/"hidden_act":"gelu",//'
    expect "gelu is the default" same "$out" "$work/text"
    variant config.json 's/,"layer_norm_eps":1e-12//'
    expect "as is an eps of 1e-12" same "$out" "$work/text"
    for place in embeddings layers; do
        new_model "$work/variant" f32 eps-of-$place
        "$embed" --model "$work/variant" --format text "$work/lines" >"$work/expected" 2>"$err"
        sed 's/1e-12/0.5/' "$model/config.json" >"$work/variant/config.json"
        "$embed" --model "$work/variant" --format text "$work/lines" >"$out" 2>"$err"
        expect "another eps counts in the $place" differ "$out" "$work/expected"
    done
    variant config.json 's/"num_attention_heads":4/"num_attention_heads":2/'
    expect "another number of heads counts" differ "$out" "$work/text"
    variant config.json 's/"num_hidden_layers":2/"num_hidden_layers":1/'
    expect "another number of layers counts" differ "$out" "$work/text"
}

# ids NAME IDS TEXT: the tokens of a model in $work/variant.
ids() {
    printf '%b\n' "$3" | "$embed" --model "$work/variant" --tokens >"$out" 2>"$err"
    expect "$1" test "$(cat "$out")" = "$2"
}

# without_json SETTINGS: a model by vocab.txt and these settings.
without_json() {
    new_model "$work/variant" f32
    rm "$work/variant/tokenizer.json"
    echo "$1" >"$work/variant/tokenizer_config.json"
}

test_tokenizer_settings() {
    variant tokenizer.json 's/"handle_chinese_chars":true/"handle_chinese_chars":false/'
    ids "handle_chinese_chars: false" '[2,1,3]' '今天'
    variant tokenizer.json 's/"clean_text":true/"clean_text":false/'
    ids "clean_text: false" '[2,1,5,3]' 'a\0001 a'
    variant tokenizer.json 's/"strip_accents":null/"strip_accents":false/'
    ids "strip_accents: false" '[2,18,1,3]' 'ELEVE élève'
    prefix=$(printf '%064d' 0)
    variant tokenizer.json "s/##/$prefix/g; s/\"unk_token\"/\"continuing_subword_prefix\":\"$prefix\",&/"
    ids "continuing_subword_prefix: 64 bytes" '[2,14,15,16,3]' 'undoable'
    new_model "$work/variant" f32
    awk '{ printf "%s\r\n", $0 }' "$model/vocab.txt" >"$work/variant/vocab.txt"
    rm "$work/variant/tokenizer.json"
    ids "vocab.txt with carriage returns" '[2,18,18,9,3]' 'eleve élève Cat'
    without_json '{"do_lower_case": false}'
    ids "do_lower_case: false" '[2,18,1,1,3]' 'eleve élève Cat'
    without_json '{"strip_accents": false}'
    ids "vocab.txt, strip_accents: false" '[2,18,1,9,3]' 'eleve élève Cat'
    without_json '{"tokenize_chinese_chars": false}'
    ids "tokenize_chinese_chars: false" '[2,1,3]' '今天'
    without_json '{"cls_token": "the", "sep_token": {"content": "cat"}}'
    ids "other tokens around" '[8,5,9]' 'a'
    echo '{"max_seq_length": 2}' >"$work/variant/sentence_bert_config.json"
    ids "a limit that is the tokens around" '[8,9]' 'a'
}

# add TOKEN...: a model with these added tokens, whose vocabulary ends before them at 35.
add() {
    new_model "$work/variant" f32
    entries=$(id=36 && for token in "$@"; do
        printf '{"id":%d,"content":"%s","normalized":false},' $id "$token"
        id=$((id + 1))
    done)
    sed "s/\"added_tokens\":\[/&$entries/" "$model/tokenizer.json" >"$work/variant/tokenizer.json"
    sed "s/\"vocab_size\":36/\"vocab_size\":$((36 + $#))/" "$model/config.json" >"$work/variant/config.json"
}

test_added_tokens() {
    add dogs '##zz'
    ids "added tokens that are not in the vocabulary" '[2,8,36,37,3]' 'the dogs ##zz'
    ids "are no pieces of words" '[2,10,31,1,3]' 'Dogs azz'
    add ' dog' 'cat '
    ids "added tokens that begin or end with a space" '[2,37,4,36,3]' 'cat [MASK] dog'
    sed -e 's/"content":"\[MASK\]"/&,"lstrip":true,"rstrip":true/' \
        -e 's/\(" dog","normalized":\)false/\1true/; s/\("cat ","normalized":\)false/\1true/' \
        "$work/variant/tokenizer.json" >"$work/edited"
    mv "$work/edited" "$work/variant/tokenizer.json"
    ids "behind one that takes spaces along" '[2,9,4,10,36,3]' 'cat [MASK] dog dog'
}

repeat() {
    awk -v times="$1" \
        '{ line[NR] = $0 } END { for (i = 0; i < times; i++) for (j = 1; j <= NR; j++) print line[j] }' "$2"
}

test_invariance() {
    # So many lines that operators are large enough to be shared.
    repeat 40 "$work/lines" >"$work/many"
    repeat 40 "$work/text" >"$work/expected"
    for threads in 1 2 3 8; do
        run --format text --threads $threads "$work/many" >"$out"
        expect "threads: $threads, the same bytes" same "$out" "$work/expected"
    done
    for tokens in 1 7 100000; do
        run --format text --batch-tokens $tokens "$work/lines" >"$out"
        expect "batches of $tokens tokens: the same bytes" same "$out" "$work/text"
    done
    run --batch-tokens 1 "$work/lines" >"$out"
    expect "batches of 1 token: the same lines" same "$out" "$work/jsonl"
    paste "$work/lines" "$work/text" | sort >"$work/pairs"
    cut -f 1 "$work/pairs" >"$work/sorted"
    cut -f 2 "$work/pairs" >"$work/expected"
    run --format text "$work/sorted" >"$out"
    expect "another order of the lines: the same bytes" same "$out" "$work/expected"
}

test_settings() {
    run --format text --no-normalize "$work/lines" >"$work/raw"
    expect "--no-normalize: other numbers" test "$(head -n 1 "$work/raw")" != "$(head -n 1 "$work/text")"
    expect "embeddings have length 1" awk \
        '{ s = 0; for (i = 1; i <= NF; i++) s += $i * $i; if (s < 0.99999 || s > 1.00001) bad = 1 } END { exit bad }' \
        "$work/text"
    run --format text --pooling cls "$work/lines" >"$work/cls"
    expect "--pooling cls: other numbers" test "$(head -n 1 "$work/cls")" != "$(head -n 1 "$work/text")"
    mkdir -p "$model/1_Pooling"
    echo '{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}' >"$model/1_Pooling/config.json"
    run --format text "$work/lines" >"$out"
    expect "pooling as the model says" same "$out" "$work/cls"
    run --format text --pooling mean "$work/lines" >"$out"
    expect "--pooling mean in its place" same "$out" "$work/text"
    echo '{"pooling_mode_mean_tokens": true}' >"$model/1_Pooling/config.json"
    echo '[{"path":"","type":"a.Transformer"},{"path":"1_Pooling","type":"a.Pooling"}]' >"$model/modules.json"
    run --format text "$work/lines" >"$out"
    expect "no normalisation as the model says" same "$out" "$work/raw"
    run --format text --normalize "$work/lines" >"$out"
    expect "--normalize in its place" same "$out" "$work/text"
    rm -r "$model/1_Pooling"
    run --format text --normalize --pooling mean "$work/lines" >"$out"
    expect "--pooling in place of a module that is not there" same "$out" "$work/text"
    rm "$model/modules.json"
}

long_line() {
    awk -v words="$1" 'BEGIN { for (i = 0; i < words; i++) printf "cat "; print "" }'
}

count_ids() {
    awk -F, '{ print NF }' "$out"
}

test_truncation() {
    long_line 600 | run --tokens >"$out"
    expect "tokenizer.json limits the tokens" test "$(count_ids)" -eq 24
    expect "lines that were cut are counted" grep -q '^heed-embed: lines cut to 24 tokens: 1$' "$err"
    echo '{"max_seq_length": 30}' >"$model/sentence_bert_config.json"
    long_line 600 | run --tokens >"$out"
    expect "sentence_bert_config.json comes first" test "$(count_ids)" -eq 30
    echo '{"max_seq_length": 3000}' >"$model/sentence_bert_config.json"
    long_line 600 | run --tokens >"$out"
    expect "the positions of the model limit the tokens" test "$(count_ids)" -eq 48
    rm "$model/sentence_bert_config.json"
    long_line 600 | run --tokens --max-tokens 5 --quiet >"$out"
    expect "--max-tokens" test "$(cat "$out")" = "[2,9,9,9,3]"
    expect "--quiet: no note" is_quiet
    long_line 3 | run --tokens --max-tokens 5 >"$out"
    expect "a line that just fits is not counted" is_quiet
    long_line 600 | run --format text --max-tokens 48 >"$out"
    expect "a line of all positions" test "$(wc -l <"$out")" -eq 1
}

test_invalid_utf8() {
    printf 'a\377b\n\342\202\n' | run --tokens >"$out"
    expect "invalid UTF-8 is replaced" test "$(cat "$out")" = "$(printf '[2,1,3]\n[2,3]')"
    expect "invalid UTF-8 is counted" grep -q '^heed-embed: invalid UTF-8 sequences replaced by U+FFFD: 2$' "$err"
    expect "in one line" test "$(wc -l <"$err")" -eq 1
    printf 'a\377b\n' | run --quiet --tokens >"$out"
    expect "--quiet: it is not" is_quiet
    printf 'a\377b\n' | run >"$out"
    expect "the text is written repaired" grep -q "\"text\":\"a$(printf '\357\277\275')b\"" "$out"
}

# spoil MODEL ID: makes the embedding of a token NaN; that of the first one is what the weights begin with.
spoil() {
    weights=$1/model.safetensors
    header=$(od -An -v -tu1 -N8 "$weights" | awk '{ for (i = 8; i > 0; i--) n = 256 * n + $i; print n }')
    printf '\000\000\300\177' | dd of="$weights" bs=1 seek=$((8 + header + 32 * 4 * $2)) conv=notrunc 2>"$err"
}

# ranks NAME NUMBERS TOP LINE...: which lines --similar lists, where those with a dog have no cosine.
ranks() {
    name=$1 numbers=$2 top=$3
    shift 3
    printf '%s\n' "$@" | "$embed" --model "$work/spoiled" --similar cat --top "$top" >"$out" 2>"$err"
    expect "$name" test "$(awk 'NR > 1 { printf "%s ", $2 }' "$out")" = "$numbers"
}

test_similar_nan() {
    new_model "$work/spoiled" f32
    spoil "$work/spoiled" 10
    ranks "--similar: NaN goes last, the earlier line first" "3 6 4 1 2 5 " 10 dog 'the dog' cat mat dog cat
    ranks "--top: NaN is not among the best" "3 " 1 dog 'the dog' cat mat dog cat
    ranks "--top: NaN goes last whenever lines are sorted" "2 1 " 2 dog cat dog dog dog dog dog dog
}

# The text is cut as lines are, and its changes told apart from theirs.
test_similar_changes() {
    text=$(repeat 30 "$work/first" | tr '\n' ' ')
    run --similar "$text" "$work/first" >"$out"
    expect "--similar: a text that is cut" grep -q '^heed-embed: --similar: lines cut to 24 tokens: 1$' "$err"
    broken=$(printf 'a\377')
    if test "$(sh -c 'printf %s "$1"' sh "$broken" 2>"$err" | wc -c)" -eq 2; then
        run --similar "$broken" "$work/first" >"$out"
        expect "--similar: a text that is repaired" grep -q '^heed-embed: --similar: invalid UTF-8 .*: 1$' "$err"
    else
        skip "--similar: a text that is repaired" "this shell passes no byte that is no character"
    fi
}

test_tables() {
    run --similar "the cat sat on the mat." --top 2 "$work/lines" >"$out"
    expect "--similar: the line itself comes first" grep -q '^1\.0000 *1  the cat sat on the mat\.$' "$out"
    expect "--top: so many lines and a heading" test "$(wc -l <"$out")" -eq 3
    run --similar "a" --top 1 "$work/lines" "$work/lines" "$work/lines" >"$out"
    expect "--top 1 of many lines" test "$(wc -l <"$out")" -eq 2
    run --similar "a" "$work/lines" "$work/lines" "$work/lines" >"$out"
    expect "--top is 10 if not given" test "$(wc -l <"$out")" -eq 11
    repeat 2 "$work/first" | run --similar "the cat sat on the mat." --top 2 >"$out"
    expect "--similar: of equal ones the earlier line first" \
        test "$(awk 'NR > 1 { printf "%s ", $2 }' "$out")" = "1 3 "
    test_similar_nan
    test_similar_changes
    printf 'a\033b\177c\302\237d\342\200\256e\n' | run --similar a >"$out"
    expect "--similar: no control characters" grep -q ' a b c  d   e$' "$out"
    repeat 20 "$work/lines" | run --similarity >"$out"
    expect "--similarity of 100 lines" test "$(wc -l <"$out")" -eq 101
    expect "--similarity: lines are numbered from 1" \
        test "$(awk 'NR == 1 { print $1, $NF } NR == 101 { print $1 }' "$out" | tr '\n' ' ')" = "1 100 100 "
    run --similarity "$work/lines" >"$out"
    expect "--similarity: a row for each line and a heading" test "$(wc -l <"$out")" -eq 6
    expect "--similarity: ones on the diagonal" awk 'NR > 1 && $NR != "1.000" { bad = 1 } END { exit bad }' "$out"
    refuse "--similarity of too many lines" 1 'at most 100 lines' sh -c \
        "awk 'BEGIN { for (i = 0; i < 101; i++) print i }' | '$embed' --model '$model' --similarity"
}

# ---- bad input -----------------------------------------------------------------------------------

test_bad_models() {
    broken=$work/broken
    for fault in \
        'truncated|is it truncated' 'short|not a safetensors file' 'long-header|is it truncated' \
        'past-end|is it truncated' 'huge-header|over the limit' \
        'bad-json|not valid JSON' 'wrong-type|dtype I32 is not supported' \
        'unknown-type|dtype X9 is not supported' 'wrong-shape|shape does not fit' 'shape-overflow|shape overflows' \
        'deep-shape|shape has too many dimensions' 'transposed|dense.weight: shape does not fit' \
        'flat|token_type_embeddings.weight: shape does not fit' \
        'wrong-size|do not fit dtype and shape' 'overlap|overlap another tensor' 'gap|leave a gap' \
        'decreasing|decrease' 'outside|outside the file' 'negative|not two whole numbers' \
        'trailing|follow the last tensor' 'duplicate|is given twice' 'missing|is missing'; do
        new_model "$broken" f32 "${fault%%"|"*}"
        mkdir -p "$work/empty"
        refuse "model.safetensors: ${fault%%"|"*}" 1 "model\\.safetensors: .*${fault#*"|"}" \
            "$embed" --model "$broken" --output "$work/empty/out" "$work/lines"
        expect "and no output file" holds_only "$work/empty" ''
    done
    new_model "$broken" f32
    printf '\001' | dd of="$broken/model.safetensors" bs=1 seek=4 conv=notrunc 2>"$err"
    refuse "model.safetensors: a header of 4 GiB" 1 'header length .* is over the limit' "$embed" --model "$broken"
    for file in config.json model.safetensors; do
        new_model "$broken" f32
        rm "$broken/$file"
        refuse "no $file" 1 "$file: No such file" "$embed" --model "$broken"
    done
    for file in config.json model.safetensors tokenizer.json modules.json; do
        new_model "$broken" f32
        rm -f "$broken/$file"
        mkfifo "$broken/$file"
        # Whoever opens it to read would wait for the writer, which comes later.
        (sleep 5 && : >"$broken/$file") >/dev/null 2>&1 &
        refuse "$file is a FIFO" 1 "$file: not a regular file" "$embed" --model "$broken"
        expect "and nobody waited for its writer" kill $!
    done
    new_model "$broken" f32
    rm "$broken/tokenizer.json" "$broken/vocab.txt"
    refuse "no tokenizer" 1 'vocab.txt: no such file, and no tokenizer.json' "$embed" --model "$broken"
    refuse "no directory" 1 'config.json: No such file' "$embed" --model "$work/nowhere"
}

# change FILE EXPRESSION NAME PATTERN: a model whose FILE is edited by sed is refused.
change() {
    new_model "$broken" f32
    sed "$2" "$broken/$1" >"$work/edited"
    mv "$work/edited" "$broken/$1"
    refuse "$3" 1 "$1: .*$4" "$embed" --model "$broken"
}

test_bad_configs() {
    change config.json 's/"bert"/"gpt2"/' 'another model_type' 'model_type "gpt2" is not supported'
    change config.json 's/"gelu"/"silu"/' 'another activation' 'hidden_act "silu" is not supported'
    change config.json 's/"model_type"/"position_embedding_type":"relative_key","model_type"/' \
        'another kind of positions' 'position_embedding_type "relative_key"'
    change config.json 's/"hidden_size":32/"hidden_size":"32"/' 'hidden_size is a string' 'hidden_size is not a whole'
    change config.json 's/"hidden_size":32/"hidden_size":-32/' 'hidden_size is negative' 'hidden_size is not a whole'
    change config.json 's/"hidden_size":32/"hidden_size":32.5/' 'hidden_size is a fraction' 'hidden_size is not a whole'
    change config.json 's/"hidden_size":32/"hidden_size":0/' 'hidden_size is zero' 'hidden_size is missing or zero'
    change config.json 's/"hidden_size":32,//' 'no hidden_size' 'hidden_size is missing or zero'
    change config.json 's/{/{"is_decoder":true,/' 'a decoder' 'a decoder is not supported'
    change config.json 's/{/{"add_cross_attention":true,/' 'cross-attention' 'a decoder is not supported'
    change config.json 's/1e-12/2/' 'a large layer_norm_eps' 'layer_norm_eps is not a number'
    change config.json 's/"num_attention_heads":4/"num_attention_heads":5/' 'heads that do not divide' 'not a multiple'
    change config.json 's/1e-12/-1/' 'negative layer_norm_eps' 'layer_norm_eps is not a number'
    change config.json 's/}//' 'config.json is cut short' 'not valid JSON'
    change config.json 's/^.*$//' 'config.json is empty' 'not valid JSON'
    change tokenizer.json 's/"WordPiece"/"BPE"/' 'another model of tokenizer' 'model "BPE" is not supported'
    change tokenizer.json 's/"BertNormalizer"/"NFC"/' 'another normalizer' 'normalizer "NFC" is not supported'
    change tokenizer.json 's/"BertPreTokenizer"/"Whitespace"/' 'another pre_tokenizer' 'pre_tokenizer "Whitespace"'
    change tokenizer.json 's/"BertProcessing"/"ByteLevel"/' 'another post_processor' 'post_processor "ByteLevel"'
    change tokenizer.json 's/"##x":35/"##x":36/' 'an id outside the table' 'has id 36'
    change tokenizer.json 's/"##x":35/"##x":-1/' 'a negative id' 'no valid id'
    change tokenizer.json 's/"\[UNK\]":1,//' 'no unknown token' 'not in the vocabulary'
    new_model "$broken" f32
    echo '[{"path":"2_Dense","type":"sentence_transformers.models.Dense"}]' >"$broken/modules.json"
    refuse "another module" 1 'modules.json: module "sentence_transformers.models.Dense"' "$embed" --model "$broken"
    echo '[{"path":"pool","type":"a.Pooling"}]' >"$broken/modules.json"
    refuse "a module that is not there" 1 'pool/config.json: No such file' "$embed" --model "$broken"
    for modules in '[]' '[{"path":"","type":"a.Transformer"}]'; do
        echo "$modules" >"$broken/modules.json"
        refuse "modules.json: $modules" 1 'modules.json: no pooling module' "$embed" --model "$broken"
    done
    for modules in 3 '{}' null; do
        echo "$modules" >"$broken/modules.json"
        refuse "modules.json: $modules" 1 'modules.json: not an array' "$embed" --model "$broken"
    done
    for file in config.json tokenizer.json tokenizer_config.json sentence_bert_config.json 1_Pooling/config.json; do
        new_model "$broken" f32
        mkdir "$broken/1_Pooling"
        # tokenizer_config.json is not read where tokenizer.json has a limit.
        sed 's/"max_length":24//' "$model/tokenizer.json" >"$broken/tokenizer.json"
        echo '[]' >"$broken/$file"
        refuse "$file: []" 1 "$file: not an object" "$embed" --model "$broken"
    done
    added='"added_tokens":[{"content":"zz"'
    change tokenizer.json "s/\"added_tokens\":\[{/$added},{/" 'an added token without id' 'token "zz" has no id'
    change tokenizer.json "s/\"added_tokens\":\[{/$added,\"id\":35},{\"content\":\"zz\",\"id\":0},{/" \
        'added tokens of one name' 'token "zz" has id 0, but 35 before'
    change tokenizer.json 's/"content":"\[CLS\]",//' 'an added token without content' 'token "" has no content'
    change tokenizer.json 's/"id":4,/"id":5,/' 'an added token that contradicts' '"\[MASK\]" has id 5, but 4 before'
    change tokenizer.json 's/"id":4,/"id":4,"single_word":true,/' 'an added token that is a word' 'single_word of added'
    change tokenizer.json 's/"\[SEP\]",3\]/"[SEP]",36]/' 'a separator outside the table' 'BertProcessing with such an id'
    change tokenizer.json 's/"max_length":24/"max_length":24,"direction":"Left"/' 'truncation of the left' \
        'truncation direction "Left"'
    long=$(printf '%04001d' 0)
    change tokenizer.json "s/\"added_tokens\":\[{/\"added_tokens\":[{\"content\":\"$long\",\"id\":35},{/" \
        'an added token of 4001 bytes' 'added token "0*..." has more than 4000 bytes'
    long=$(printf '%06000d' 0)
    change config.json "s/\"gelu\"/\"$long\"/" 'a message of a long name' 'hidden_act "0*\.\.\.0*" is not supported$'
    change config.json 's/"hidden_act"/"vocab_size":36,"hidden_act"/' 'a key twice' '"vocab_size" is given twice'
    change config.json 's/"hidden_act"/"hidden_act":null,"hidden_act"/' 'a key twice, once null' \
        '"hidden_act" is given twice'
    change tokenizer.json 's/"normalizer":/"normalizer":{},"normalizer":/' 'a part twice' '"normalizer" is given twice'
    change tokenizer.json 's/"##x":35/"cat":35/' 'a token twice' '"cat" is given twice'
    change tokenizer.json 's/"##x":35/"##x\\u0000":35/' 'a NUL in a token' 'NUL near byte'
    change tokenizer.json 's/"##x":35/"##x\\\\\\u0000":35/' 'a NUL behind a backslash' 'NUL near byte'
    change config.json 's/"gelu"/"gelu\\u0000"/' 'a NUL in a name' 'NUL near byte'
    new_model "$broken" f32
    printf '\000more' >>"$broken/config.json"
    refuse "a NUL and more after the object" 1 'config.json: NUL near byte' "$embed" --model "$broken"
    # With its end as many bytes as are allocated at the least: nothing may be looked for behind them.
    printf '{"model":"bert\134' >"$broken/config.json"
    refuse "a backslash at the end" 1 'config.json: not valid JSON' "$embed" --model "$broken"
    new_model "$broken" f32
    sed 's/"##x":35/"\\\\u0000":35/' "$model/tokenizer.json" >"$broken/tokenizer.json"
    "$embed" --model "$broken" --tokens "$work/lines" >"$out" 2>"$err"
    run --tokens "$work/lines" >"$work/expected"
    expect "an escaped backslash before u0000 is no NUL" same "$out" "$work/expected"
    change tokenizer.json 's/"truncation":{.*}/"truncation":3/' 'truncation: 3' 'truncation is not an object'
    change tokenizer.json 's/"added_tokens":.*/"added_tokens":"x",/' 'added_tokens: "x"' 'added_tokens is not an array'
    new_model "$broken" f32
    mkdir "$broken/1_Pooling"
    echo '{"pooling_mode_max_tokens": true}' >"$broken/1_Pooling/config.json"
    refuse "another pooling" 1 'pooling mode "max_tokens" is not supported' "$embed" --model "$broken"
    echo '{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true}' >"$broken/1_Pooling/config.json"
    refuse "two poolings" 1 'more than one pooling mode' "$embed" --model "$broken"
    echo '{"pooling_mode_cls_token": false}' >"$broken/1_Pooling/config.json"
    refuse "no pooling" 1 'no pooling mode is set' "$embed" --model "$broken"
    echo '[{"path":"0_Transformer","type":"a.Transformer"}]' >"$broken/modules.json"
    refuse "a transformer in a folder" 1 'modules.json: module "a.Transformer"' "$embed" --model "$broken"
    new_model "$broken" f32
    echo '{"do_lower_case": true}' >"$broken/sentence_bert_config.json"
    refuse "do_lower_case" 1 'sentence_bert_config.json: do_lower_case is not supported' "$embed" --model "$broken"
}

test_bad_limits() {
    change tokenizer.json 's/"max_length":24/"max_length":1/' 'truncation without room' \
        'a limit of 1 tokens leaves no room for the 2'
    change config.json 's/"max_position_embeddings":48/"max_position_embeddings":1/' 'positions without room' \
        'a limit of 1 tokens leaves no room for the 2'
    new_model "$broken" f32
    echo '{"max_seq_length": 1}' >"$broken/sentence_bert_config.json"
    refuse "max_seq_length without room" 1 'sentence_bert_config.json: a limit of 1' "$embed" --model "$broken"
    new_model "$broken" f32
    sed 's/"max_length":24//' "$model/tokenizer.json" >"$broken/tokenizer.json"
    echo '{"model_max_length": 1}' >"$broken/tokenizer_config.json"
    refuse "model_max_length without room" 1 'tokenizer_config.json: a limit of 1' "$embed" --model "$broken"
    rm "$broken/tokenizer.json"
    echo '{"do_basic_tokenize": false}' >"$broken/tokenizer_config.json"
    refuse "no basic tokenizer" 1 'tokenizer_config.json: do_basic_tokenize "false"' "$embed" --model "$broken"
    sed 's/"max_length":24//' "$model/tokenizer.json" >"$broken/tokenizer.json"
    echo '{"model_max_length": "1"}' >"$broken/tokenizer_config.json"
    refuse "model_max_length that is no number" 1 'tokenizer_config.json: model_max_length' "$embed" --model "$broken"
    rm "$broken/tokenizer.json"
    echo '{"cls_token": 5}' >"$broken/tokenizer_config.json"
    refuse "a cls_token that is no string" 1 'tokenizer_config.json: cls_token is not' "$embed" --model "$broken"
    echo '{"cls_token": {"content": 5}}' >"$broken/tokenizer_config.json"
    refuse "nor has one as its content" 1 'tokenizer_config.json: content is not' "$embed" --model "$broken"
    echo '{"cls_token": "x y"}' >"$broken/tokenizer_config.json"
    refuse "a cls_token that is not there" 1 'vocab.txt: token x y is not in' "$embed" --model "$broken"
    change tokenizer.json 's/"unk_token"/"max_input_chars_per_word":1001,"unk_token"/' 'words that are too long' \
        'max_input_chars_per_word is not a whole number from 0 to 1000'
    change tokenizer.json "s/\"unk_token\"/\"continuing_subword_prefix\":\"$(printf '%065d' 0)\",&/" \
        'a prefix of 65 bytes' 'continuing_subword_prefix has more than 64 bytes'
}

# What is too large is refused before its content, which would be, too.
test_reading() {
    new_model "$broken" f32
    dd if=/dev/null of="$broken/config.json" bs=1048576 seek=256 2>"$err"
    refuse "a file of 256 MiB" 1 'config.json: NUL near byte' "$embed" --model "$broken"
    printf '\000' >>"$broken/config.json"
    refuse "a larger one" 1 'config.json: file is larger than 268435456 bytes' "$embed" --model "$broken"
    rm "$broken/config.json"
    if ! test -f /proc/self/mem; then
        skip "a file that cannot be read" "there is no /proc/self/mem"
        return
    fi
    # Nothing is mapped at 0.
    ln -s /proc/self/mem "$broken/config.json"
    refuse "a file that cannot be read" 1 'config.json: Input/output error' "$embed" --model "$broken"
}

# Four million numbers, for each of which cJSON takes 64 bytes and more.
test_no_memory() {
    new_model "$broken" f32
    limited="ulimit -v 200000 && exec '$embed' --model '$broken' --tokens"
    if ! sh -c "$limited" </dev/null >"$out" 2>"$err"; then
        skip "too little memory for a file" "the program does not run with less"
        return
    fi
    awk 'BEGIN { printf "[0"; for (i = 0; i < 4000000; i++) printf ",0"; print "]" }' >"$broken/config.json"
    refuse "too little memory for a file" 1 'config.json: out of memory' sh -c "$limited"
    refuse "with enough it is read" 1 'config.json: not an object' "$embed" --model "$broken" --tokens
}

cls='{"SpecialToken":{"id":"[CLS]","type_id":0}}' sequence='{"Sequence":{"id":"A","type_id":0}}'
sep='{"SpecialToken":{"id":"[SEP]","type_id":0}}'
specials='{"[CLS]":{"id":"[CLS]","ids":[2]},"[SEP]":{"id":"[SEP]","ids":[3]}}'

# template PIECES SPECIAL-TOKENS: a sed expression that makes it the post-processor.
template() {
    printf 's/^"post_processor".*/"post_processor":{"type":"TemplateProcessing",%s},/' \
        "\"single\":[$1],\"special_tokens\":$2"
}

test_templates() {
    new_model "$work/template" f32
    sed "$(template "$cls,$sequence,$sep" "$specials")" "$model/tokenizer.json" >"$work/template/tokenizer.json"
    "$embed" --model "$work/template" --format text "$work/lines" >"$out" 2>"$err"
    expect "a template" same "$out" "$work/text"
    no_ids='special token "\[CLS\]" of the template has no ids' such='TemplateProcessing with such a template'
    change tokenizer.json "$(template "$cls,$sequence,$sep" null)" 'a template without special_tokens' "$no_ids"
    change tokenizer.json "$(template "$cls,$sequence" '{"[SEP]":{"ids":[3]}}')" 'a token it does not have' "$no_ids"
    change tokenizer.json "$(template "$cls,$sequence" '{"[CLS]":{"ids":[]}}')" 'a token without ids' "$no_ids"
    change tokenizer.json "$(template "$cls,$sequence" '{"[CLS]":{"ids":2}}')" 'ids that are no list' "$no_ids"
    change tokenizer.json "$(template "$cls,$sequence" '{"[CLS]":{"ids":[36]}}')" 'an id outside the table' \
        'id of special token "\[CLS\]" is not supported'
    change tokenizer.json "$(template "$cls,$sequence,$sep" "$specials" | sed 's/"type_id":0/"type_id":1/')" \
        'another type_id' "$such"
    change tokenizer.json "$(template '{"SpecialToken":{}}' "$specials")" 'a token without a name' 'token "" of'
    change tokenizer.json "$(template '"junk"' null)" 'a piece that is none' "$such"
    change tokenizer.json "$(template '{"Sequence":3}' null)" 'a sequence that is no object' "$such"
    change tokenizer.json "$(template '{"Sequence":{"id":"B"}}' null)" 'the sequence B' "$such"
    change tokenizer.json "$(template "$sequence,$sequence" null)" 'two sequences' "$such"
    change tokenizer.json "$(template "$cls" "$specials")" 'no sequence' 'without a sequence'
    many=$(printf "%01000d" 0 | sed "s/0/$cls,/g")
    change tokenizer.json "$(template "$many$sequence" "$specials")" '1001 pieces' 'with so many pieces'
    ids=$(printf '%0499d' 0 | sed 's/0/2,/g')2
    change tokenizer.json "$(template "$cls,$sequence,$cls" "{\"[CLS]\":{\"ids\":[$ids]}}")" \
        '1000 ids around every line' 'leaves no room for the 1000'
    change tokenizer.json "$(template "$cls,$sequence,$cls" "{\"[CLS]\":{\"ids\":[$ids,2]}}")" \
        '1002 ids around every line' 'with so many ids'
    names=$(awk 'BEGIN { for (i = 0; i < 999; i++) printf "\"%d\":0,", i }')
    change tokenizer.json "$(template "$cls,$sequence" "{$names\"[CLS]\":{\"ids\":[36]}}")" '1000 special tokens' \
        'id of special token "\[CLS\]" is not'
    change tokenizer.json "$(template "$cls,$sequence" "{$names\"\":0,\"[CLS]\":{\"ids\":[36]}}")" \
        '1001 special tokens' 'with so many special tokens'
}

# Numbers that belong into one slot of a vocabulary's first table. Of FNV-1a, as vocab.c has it, 42 bits count for that.
crowd() {
    awk 'function differing(a, b, bits) {
            return bits ? (a + b) % 2 + 2 * differing(int(a / 2), int(b / 2), bits - 1) : 0
        }
        BEGIN {
            for (byte = 0; byte < 256; byte++)
                for (digit = 0; digit < 10; digit++)
                    change[byte, digit] = differing(byte, 48 + digit, 8) - byte
            for (number = 0; found < 300; number++) {
                state = 981469373221
                for (at = 1; at <= length(number); at++) {
                    state += change[state % 256, substr(number, at, 1)]
                    state = (state * 435 + state % 4 * 2 ^ 40) % 2 ^ 42
                }
                if (state % 1024 == int(state / 2 ^ 32) && ++found)
                    print number
            }
        }'
}

test_crowd() {
    new_model "$work/crowd" f32
    rm "$work/crowd/tokenizer.json"
    crowd >>"$work/crowd/vocab.txt"
    sed 's/"vocab_size":36/"vocab_size":400/' "$model/config.json" >"$work/crowd/config.json"
    refuse "a vocabulary that is made for long searches" 1 'vocab.txt: token [0-9]*: too many tokens have the same hash' \
        "$embed" --model "$work/crowd" --tokens
}

# What was computed before an input fails is written.
test_lines_without_tokens() {
    new_model "$work/bare" f32
    sed "$(template "$sequence" null)" "$model/tokenizer.json" >"$work/bare/tokenizer.json"
    printf '\n\n\n\n\n' >"$work/blank"
    "$embed" --model "$work/bare" --batch-tokens 2 --format text "$work/blank" "$work/nowhere" >"$out" 2>"$err"
    expect "lines without tokens do not pile up" test "$(wc -l <"$out")" -eq 4
    "$embed" --model "$work/bare" --format text "$work/blank" >"$out" 2>"$err"
    expect "each has an embedding" test "$(wc -l <"$out")" -eq 5
}

test_bad_input() {
    refuse "no such input file" 1 'nowhere: No such file' "$embed" --model "$model" "$work/nowhere"
    refuse "no control characters in messages" 1 "/a?b?c??d$(printf '\302\240')e: No such file" \
        "$embed" --model "$model" "$work/$(printf 'a\033b\177c\302\237d\302\240e')"
    refuse "a directory as input" 1 'directory' "$embed" --model "$model" "$work"
    dd if=/dev/zero bs=1048576 count=64 2>/dev/null | tr '\000' ' ' >"$work/long"
    printf '\r\n' >>"$work/long"
    run --tokens "$work/long" >"$out"
    expect "a line of 64 MiB" test "$(cat "$out")" = "[2,3]"
    for end in '\r' 'x\r\n'; do
        dd if=/dev/null of="$work/long" bs=1048576 seek=64 2>/dev/null
        printf '%b' "$end" >>"$work/long"
        refuse "a longer one" 1 'long:1: line is longer than' "$embed" --model "$model" "$work/long"
    done
    rm "$work/long"
    refuse "an unknown --isa" 2 'isa quantum: no level has that name' "$embed" --model "$model" --isa quantum
    refuse "an unknown HEED_ISA" 1 'HEED_ISA=quantum: no level has that name' \
        env HEED_ISA=quantum "$embed" --model "$model"
    refuse "heed-info: an unknown HEED_ISA" 1 'heed-info: HEED_ISA=quantum: ' env HEED_ISA=quantum "$info"
    refuse "heed-examples: an unknown HEED_ISA" 1 'heed-examples: HEED_ISA=quantum: no level has that name' \
        env HEED_ISA=quantum "$examples"
}

# Progress is shown after a second. What takes it away is a carriage return and an escape sequence.
test_progress() {
    if ! script -qec true /dev/null </dev/null >"$out" 2>"$err"; then
        skip "progress" "there is no script with -e"
        return
    fi
    cat >"$work/slow" <<END
{ cat '$work/lines'; sleep 2; cat '$work/lines'; } | '$embed' --model '$model' - '$work/nowhere' >'$out'
END
    script -qec "sh '$work/slow'" /dev/null </dev/null >"$work/terminal" 2>"$err"
    expect "progress on a terminal" grep -q ' lines, [0-9]* lines/s' "$work/terminal"
    cleared=$(printf '\r\033\\[Kheed-embed: .*nowhere: No such file')
    expect "a message takes its place" grep -q "$cleared" "$work/terminal"
}

test_usage() {
    refuse "no model" 2 'model DIR is missing' "$embed"
    refuse "an unknown option" 2 'no such option' "$embed" --model "$model" --nonsense
    refuse "an abbreviation of several options" 2 '--m: no such option, or an abbreviation of several' \
        "$embed" --m "$model" "$work/lines"
    refuse "an unknown letter" 2 '-x: no such option;' "$embed" -x
    refuse "an unknown letter before others" 2 '-x: no such option' "$embed" --quiet -xh
    refuse "an argument that is not wanted" 2 '--help=3: takes no argument' "$embed" --quiet --help=3
    refuse "an option without its argument" 2 'needs an argument' "$embed" --model
    refuse "an unknown format" 2 'format xml' "$embed" --model "$model" --format xml
    refuse "an unknown pooling" 2 'pooling max' "$embed" --model "$model" --pooling max
    for bad in 0 -1 x 1x '' 65537 99999999999999999999; do
        refuse "--threads \"$bad\"" 2 'threads .*not a number' "$embed" --model "$model" --threads "$bad"
    done
    refuse "two tables" 2 'only one of' "$embed" --model "$model" --similar a --similarity
    refuse "a table and tokens" 2 'only one of' "$embed" --model "$model" --similar a --tokens
    refuse "--format with a table" 2 'does not go with' "$embed" --model "$model" --similar a --format text
    refuse "--format before --tokens" 2 'does not go with' "$embed" --model "$model" --format jsonl --tokens
    refuse "--tokens before --format" 2 'does not go with' "$embed" --model "$model" --tokens --format jsonl
    refuse "--top without --similar" 2 'top needs --similar' "$embed" --model "$model" --top 3
    refuse "an input file without a name" 2 'name of an input file is empty' "$embed" --model "$model" "$work/lines" ''
    refuse "a model directory without a name" 2 'name of the model directory is empty' "$embed" --model ''
    refuse "an output file without a name" 2 'name of the output file is empty' \
        "$embed" --model "$model" --output '' "$work/lines"
    refuse "--max-tokens past the positions" 2 'has 48 positions' "$embed" --model "$model" --max-tokens 49
    refuse "--max-tokens without room" 2 'max-tokens 1: leaves no room' "$embed" --model "$model" --max-tokens 1
    refuse "heed-info: an unknown option" 2 'no such option' "$info" --nonsense
    refuse "heed-info: an unknown letter before others" 2 '-x: no such option' "$info" --json -xh
    refuse "heed-info: an argument that is not wanted" 2 '--json=3: takes no argument' "$info" --json=3
    refuse "heed-info: an argument" 2 'takes no argument' "$info" something
    refuse "heed-examples: an unknown option" 2 '--nonsense: no such option' "$examples" --nonsense
    refuse "heed-examples: an unknown letter" 2 '-x: no such option' "$examples" -x
    refuse "heed-examples: an argument that is not wanted" 2 '--help=3: takes no argument' "$examples" --help=3
    refuse "heed-examples: an argument" 2 'something: takes no argument' "$examples" something
}

# Level, whether it is fused and usable; then KiB of each cache.
fields_of_page() {
    awk '/^  / { print $1, ($2 == "fused" ? "true" : "false"), ($3 ~ /^(chosen|usable)/ ? "true" : "false") }
         /cache: / { print ($(NF - 1) == "cache:" ? "null" : $(NF - 1)) }'
}

fields_of_json() {
    tr '{' '\n' | tr '}' '\n' | awk -F'[:,]' '
        /^"name":.*,"supported":.*,"reason":/ { print substr($2, 2, length($2) - 2), $8, $6 }
        /^"l1d":[0-9a-z]*,"l2":[0-9a-z]*,"l3":[0-9a-z]*$/ { print $2; print $4; print $6 }'
}

test_help() {
    for program in "$embed" "$info" "$examples"; do
        for option in --help --version; do
            "$program" $option >"$out" 2>"$err"
            status=$?
            expect "$(basename "$program") $option" printed
        done
    done
    expect "help has an example" sh -c "'$embed' --help | grep -q '^example: '"
    "$examples" >"$out" 2>"$err"
    status=$?
    expect "heed-examples" printed
    expect "heed-examples: each is compared with exact values" \
        test "$(grep -c '^  largest difference from the exact values: ' "$out")" -eq "$(grep -c '^[^ ]' "$out")"
    "$info" >"$out" 2>"$err"
    expect "heed-info: a level is chosen" grep -q '^ .* chosen$' "$out"
    kib=$(sed 's/K$//' /sys/devices/system/cpu/cpu0/cache/index3/size 2>"$err")
    if test -n "$kib"; then
        expect "heed-info: the cache that CPUs share, not those of all sockets" grep -q "^L3 cache: $kib KiB$" "$out"
    else
        skip "heed-info: the cache that CPUs share" "the system does not say it"
    fi
    "$info" --json >"$out" 2>"$err"
    expect "heed-info --json: one line" test "$(wc -l <"$out")" -eq 1
    "$info" >"$work/page"
    fields_of_page <"$work/page" >"$work/expected"
    fields_of_json <"$out" >"$work/fields"
    expect "heed-info --json: what the page says of levels and caches" same "$work/fields" "$work/expected"
    expect "heed-info: why not the others" grep -q '  usable, but not the best$' "$work/page"
    HEED_ISA=scalar "$info" >"$out" 2>"$err"
    expect "heed-info: HEED_ISA chooses" grep -q '^level: scalar$' "$out"
    expect "heed-info: and is why not the others" test "$(grep -c 'not the best$' "$out")" -eq 0
    HEED_ISA='' "$info" >"$work/unnamed"
    (unset HEED_ISA && exec "$info") >"$out" 2>"$err"
    expect "heed-info: an empty HEED_ISA names nothing" cmp -s "$work/unnamed" "$out"
}

# ---- output --------------------------------------------------------------------------------------

test_scripts() {
    for script in demo.sh fetch-model.sh; do
        sh "$scripts/$script" --help >"$out" 2>"$err"
        status=$?
        expect "$script --help" printed
        refuse "$script: an option" 2 "^usage: $script" sh "$scripts/$script" --nonsense
        refuse "$script: too many arguments" 2 "^usage: $script" sh "$scripts/$script" a b
    done
    refuse "demo.sh without tools" 1 '^demo: .*--disable-tools' sh "$scripts/demo.sh" "$work"
    for script in minimax.py bert-tables.py; do
        if ! command -v python3 >"$out" 2>"$err"; then
            skip "$script" "there is no python3"
            continue
        fi
        # Without any package: -S leaves them out, -E what the environment adds.
        python3 -SE "$scripts/$script" --help >"$out" 2>"$err"
        status=$?
        expect "$script --help" printed
        refuse "$script without packages" 1 "^$script: No module named" python3 -SE "$scripts/$script"
    done
}

test_output_errors() {
    mkdir "$work/dir"
    refuse "an output directory that is not there" 1 'No such file' \
        "$embed" --model "$model" --output "$work/nowhere/out" "$work/lines"
    refuse "a directory as output file" 1 'dir: Is a directory' \
        "$embed" --model "$model" --output "$work/dir" "$work/lines"
    refuse "an input that fails on the way" 1 'nowhere: No such file' \
        "$embed" --model "$model" --output "$work/dir/out" "$work/lines" "$work/nowhere"
    expect "leaves no output file" holds_only "$work/dir" ''
    echo old >"$work/dir/out"
    refuse "a failure" 1 'nowhere: No such file' \
        "$embed" --model "$model" --output "$work/dir/out" "$work/lines" "$work/nowhere"
    expect "leaves the old output file" test "$(cat "$work/dir/out")" = old
    run --format text --output "$work/dir/out" "$work/lines"
    expect "success replaces it" same "$work/dir/out" "$work/text"
    chmod 640 "$work/dir/out"
    run --format text --output "$work/dir/out" "$work/first"
    expect "the permissions stay" has_mode 640 "$work/dir/out"
    for modes in '022 644' '027 640'; do
        rm "$work/dir/out"
        (umask "${modes% *}" && run --format text --output "$work/dir/out" "$work/lines")
        expect "a new file has those of umask ${modes% *}" has_mode "${modes#* }" "$work/dir/out"
    done
    ln -s out "$work/dir/link"
    run --format text --output "$work/dir/link" "$work/first"
    expect "a symbolic link is followed" is_link_to_lines "$work/dir/link" 2
    rm "$work/dir/out"
    refuse "a symbolic link that leads nowhere" 1 'leads nowhere' \
        "$embed" --model "$model" --output "$work/dir/link" "$work/first"
    rm "$work/dir/link"
    long=$(printf '%0255d' 0)
    run --format text --output "$work/dir/$long" "$work/lines"
    expect "an output file of the longest name" same "$work/dir/$long" "$work/text"
    rm -f "$work/dir/$long"
    refuse "one of a longer name, before the input is read" 1 'ile *name too long' \
        "$embed" --model "$model" --output "$work/dir/0$long" "$work/nowhere"
    (cd "$work/dir" && echo a | "$embed_path" --model "$model" --format text --output here 2>"$err")
    expect "an output file in the current directory" holds_only "$work/dir" here
    rm -f "$work/dir/here"
}

# Under whatever name, what goes to standard output follows what is there.
test_names_of_standard_output() {
    if ! test -e /dev/stdout; then
        skip "a name of standard output" "there is no /dev/stdout"
        return
    fi
    echo old >"$work/log"
    {
        run --format text --output /dev/stdout "$work/lines"
        echo new
    } >>"$work/log"
    { echo old && cat "$work/text" && echo new; } >"$work/expected"
    expect "a name of standard output" same "$work/log" "$work/expected"
}

# Whatever they are called by.
test_names_of_descriptors() {
    { echo old && cat "$work/text" && echo new; } >"$work/expected"
    for name in "$work/log" /dev/fd/3; do
        echo old >"$work/log"
        {
            if test -e "$name"; then
                run --format text --output "$name" "$work/lines"
                echo new >&3
                expect "a file that a descriptor is open on" same "$work/log" "$work/expected"
            else
                skip "a file that a descriptor is open on" "there is no $name"
            fi
        } 3>>"$work/log"
    done
    echo old >"$work/log"
    "$embed" --model "$model" --format text --output "$work/log" "$work/lines" 2>>"$work/log"
    { echo old && cat "$work/text"; } >"$work/expected"
    expect "a file that standard error goes to" same "$work/log" "$work/expected"
}

test_closed_directory() {
    mkdir "$work/closed"
    echo old >"$work/closed/out"
    chmod 555 "$work/closed"
    if touch "$work/closed/new" 2>/dev/null; then
        skip "an output directory that takes no file" "root may write to any"
    else
        refuse "an output directory that takes no file" 1 'closed/out: no file can be made beside it: Permission denied' \
            "$embed" --model "$model" --output "$work/closed/out" "$work/lines"
    fi
    chmod 755 "$work/closed"
}

test_full_device() {
    if ! test -c /dev/full; then
        skip "a full device" "there is no /dev/full"
        return
    fi
    refuse "a full device as standard output" 1 'standard output: No space' \
        sh -c "'$embed' --model '$model' '$work/lines' >/dev/full"
    refuse "a full device as output file" 1 '/dev/full: No space' \
        "$embed" --model "$model" --output /dev/full "$work/lines"
    refuse "a full device as standard output, npy" 1 'standard output: No space' \
        sh -c "'$embed' --model '$model' --format npy '$work/lines' >/dev/full"
    refuse "a full device for heed-info" 1 'standard output: No space' sh -c "'$info' >/dev/full"
    refuse "a full device for heed-examples" 1 'standard output: No space' sh -c "'$examples' >/dev/full"
}

# Files that are opened must not take the place of a closed descriptor.
test_closed_descriptors() {
    for format in jsonl npy; do
        refuse "a closed standard output, $format" 1 'standard output: ' \
            sh -c "'$embed' --model '$model' --format $format '$work/lines' >&-"
    done
    refuse "a closed standard output for heed-info" 1 'standard output: ' sh -c "'$info' >&-"
    refuse "a closed standard input" 1 'standard input:1: ' \
        sh -c "'$embed' --model '$model' --output '$work/dir/out' <&-"
    expect "and no output file" holds_only "$work/dir" ''
}

# The reader is gone before the input comes.
test_closed_pipe() {
    {
        sleep 1
        cat "$work/lines"
    } | {
        "$embed" --model "$model" 2>"$err"
        echo $? >"$work/status"
    } | true
    tries=0
    while ! test -s "$work/status" && test $tries -lt 10; do
        sleep 1
        tries=$((tries + 1))
    done
    expect "a closed pipe: status 1" test "$(cat "$work/status")" = 1
    expect "a closed pipe: one line" grep -q '^heed-embed: standard output: Broken pipe$' "$err"
}

test_file_limit() {
    refuse "a limit on the size of files" 1 'dir/out: ' \
        sh -c "ulimit -f 8; exec '$embed' --model '$model' --output '$work/dir/out' '$work/many'"
    expect "leaves no output file" holds_only "$work/dir" ''
}

# To be the last command of a process, which it replaces.
without_core() {
    # shellcheck disable=SC3045  # a shell that does not know it leaves core files
    ulimit -c 0
    exec "$@"
}

# Whether the directory of the output holds one file, which has not its name yet.
holds_temporary() {
    test "$(ls -A "$work/dir" | wc -l)" -eq 1 && ! test -e "$work/dir/out"
}

awaits_output() {
    tries=0
    while holds_only "$work/dir" "" && test $tries -lt 10; do
        sleep 1
        tries=$((tries + 1))
    done
}

# Every thread may be the one that finds the weights gone.
test_shrinking_weights() {
    new_model "$work/shrinking" f32
    {
        {
            awaits_output
            : >"$work/shrinking/model.safetensors"
            cat "$work/many"
        } | (without_core "$embed" --model "$work/shrinking" --threads 3 --output "$work/dir/out")
        status=$?
    } 2>"$err"
    expect "weights that are cut short end it" test "$(kill -l $status)" = BUS
    expect "and leave nothing" holds_only "$work/dir" ''
}

# As under nohup. The FIFO is held open, so that nobody waits for the other end.
test_ignored_signal() {
    exec 3<>"$work/fifo"
    (trap '' HUP && exec "$embed" --model "$model" --format text --output "$work/dir/out" "$work/fifo" 3>&-) 2>"$err" &
    program=$!
    tries=0
    while holds_only "$work/dir" '' && test $tries -lt 1000; do tries=$((tries + 1)); done
    kill -s HUP $program
    cat "$work/lines" >&3
    exec 3>&-
    wait $program
    expect "a signal that was ignored stays so" same "$work/dir/out" "$work/text"
    rm -f "$work/dir/out"
}

# SIGQUIT is not among them: a shell may have its background processes ignore it.
test_signals() {
    for signal in TERM ABRT BUS XCPU; do
        sleep 5 >"$work/fifo" &
        sleeper=$!
        without_core "$embed" --model "$model" --output "$work/dir/out" "$work/fifo" 2>"$err" &
        program=$!
        awaits_output
        expect "the output has a temporary name first" holds_temporary
        kill -s $signal $program
        wait $program 2>/dev/null
        expect "SIG$signal ends it by that signal" test "$(kill -l $?)" = $signal
        expect "and leaves nothing" holds_only "$work/dir" ''
        rm -f "$work/dir"/*
        kill $sleeper
        wait $sleeper 2>/dev/null
    done
}

test_formats
test_input
test_tokens
test_types
test_invariance
test_settings
test_values
test_faint_embedding
test_config
test_tokenizer_settings
test_added_tokens
test_truncation
test_invalid_utf8
test_tables
test_bad_models
test_bad_configs
test_bad_limits
test_reading
test_no_memory
test_templates
test_lines_without_tokens
test_crowd
test_bad_input
test_progress
test_usage
test_help
test_scripts
test_output_errors
test_names_of_standard_output
test_names_of_descriptors
test_closed_directory
test_full_device
test_closed_descriptors
test_closed_pipe
test_file_limit
test_shrinking_weights
test_ignored_signal
test_signals
echo "1..$count"
test $failures -eq 0
