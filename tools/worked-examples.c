/* SPDX-License-Identifier: MIT
 * heed-examples: small attention examples, computed and drawn in the terminal. */
#include "config.h"

#include "diag.h"
#include "levels.h"
#include "program.h"

#include <heed.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define TOKENS_MAX 3
#define HEADS_MAX 2
#define WIDTH_MAX 4
#define TOLERANCE 2e-6f /* 4 units in the last place of the largest value */

static const char help[] = "usage: heed-examples\n"
                           "Computes the worked examples of the texts that heed implements, draws their attention\n"
                           "maps and compares them with the exact values.\n"
                           "\n"
                           "  --help, --version\n"
                           "\n"
                           "example: heed-examples | less\n";

struct example {
    const char *title;
    const char *keys[TOKENS_MAX];
    size_t n_heads, seq_q, seq_kv, head_dim, value_dim;
    heed_causal causal;
    float q[TOKENS_MAX * WIDTH_MAX], k[TOKENS_MAX * WIDTH_MAX], v[TOKENS_MAX * WIDTH_MAX];
    float expected[TOKENS_MAX * WIDTH_MAX]; /* [seq_q][n_heads * value_dim] */
};

/* clang-format off */
static const struct example examples[] = {
    {"\"the ring fell\", one head", {"the", "ring", "fell"}, 1, 3, 3, 4, 4, HEED_CAUSAL_NONE,
     {1, 0, 0, 0,  0, 1, 1, 0,  0, 1, 0, 0},
     {1, 0, 0, 0,  0, 1, 0, 0,  0, 1, 1, 0},
     {1, 1, 0, 0,  0, 0, 2, 2,  3, 0, 0, 3},
     {1.2740686f, 0.4518628f, 0.5481372f, 1.3703431f,
      1.7057649f, 0.1863237f, 0.6143918f, 2.1338329f,
      1.3836517f, 0.2326965f, 0.7673035f, 1.9182587f}},
    {"\"the ring fell\", two heads", {"the", "ring", "fell"}, 2, 3, 3, 2, 2, HEED_CAUSAL_NONE,
     {1, 0, 0, 1,  0, 1, 1, 0,  1, 0, 1, 0},
     {1, 0, 0, 1,  1, 0, 1, 0,  0, 1, 0, 1},
     {1, 1, 0, 0,  2, 2, 0, 0,  0, 0, 3, 3},
     {1.2033363f, 1.2033363f, 1.2033363f, 1.2033363f,
      0.7447652f, 0.7447652f, 0.7447652f, 0.7447652f,
      1.2033363f, 1.2033363f, 0.7447652f, 0.7447652f}},
    {"\"Chai piyo\"", {"Chai", "piyo"}, 1, 2, 2, 2, 2, HEED_CAUSAL_NONE,
     {2, 0,  0, 2}, {0, 2,  2, 0}, {2, 0,  0, 2},
     {0.1116144f, 1.8883856f,  1.8883856f, 0.1116144f}},
    {"two queries, three keys", {"k1", "k2", "k3"}, 1, 2, 3, 2, 2, HEED_CAUSAL_NONE,
     {1, 0,  0, 2}, {1, 0,  0, 1,  1, 1}, {10, 0,  0, 10,  5, 5},
     {6.0166814f, 3.9833186f,  3.3128759f, 6.6871241f}},
    {"\"I love math\"", {"I", "love", "math"}, 1, 3, 3, 2, 2, HEED_CAUSAL_NONE,
     {1, 0,  0, 1,  1, 1}, {0, 1,  1, 0,  1, 1}, {1, 2,  3, 4,  5, 6},
     {3.4066726f, 4.4066726f,  3, 4,  3.5104695f, 4.5104695f}},
    {"\"I love math\", causal", {"I", "love", "math"}, 1, 3, 3, 2, 2, HEED_CAUSAL_TOP_LEFT,
     {1, 0,  0, 1,  1, 1}, {0, 1,  1, 0,  1, 1}, {1, 2,  3, 4,  5, 6},
     {1, 2,  1.6604769f, 2.6604769f,  3.5104695f, 4.5104695f}},
};
/* clang-format on */

struct result {
    float out[TOKENS_MAX * WIDTH_MAX];
    float map[HEADS_MAX * TOKENS_MAX * TOKENS_MAX];
};

static heed_heads interleaved(const float *data, size_t n_heads, size_t head_dim)
{
    return (heed_heads){data, 0, head_dim, n_heads * head_dim};
}

static heed_status compute(const struct example *example, struct result *result)
{
    size_t heads = example->n_heads, seq_q = example->seq_q, seq_kv = example->seq_kv;
    heed_attention_args args = HEED_ATTENTION_ARGS_INIT;
    args.batch = 1;
    args.n_heads = args.n_kv_heads = heads;
    args.seq_q = seq_q;
    args.seq_kv = seq_kv;
    args.head_dim = example->head_dim;
    args.value_dim = example->value_dim;
    args.q = interleaved(example->q, heads, example->head_dim);
    args.k = interleaved(example->k, heads, example->head_dim);
    args.v = interleaved(example->v, heads, example->value_dim);
    args.out = (heed_heads_out){result->out, 0, example->value_dim, heads * example->value_dim};
    args.map = (heed_heads_out){result->map, heads * seq_q * seq_kv, seq_q * seq_kv, seq_kv};
    args.causal = example->causal;
    return heed_attention(NULL, &args, NULL);
}

/* ---- drawing ------------------------------------------------------------------------------- */

static bool terminal_has_utf8(void)
{
    setlocale(LC_CTYPE, "");
    const char *codeset = nl_langinfo(CODESET);
    return strcmp(codeset, "UTF-8") == 0 || strcmp(codeset, "utf8") == 0;
}

/* Four shades for weights above 0, and none for 0. */
static const char *shade(float weight, bool utf8)
{
    static const char *const blocks[] = {"  ", "░░", "▒▒", "▓▓", "██"};
    static const char *const ascii[] = {"  ", "..", "::", "**", "##"};
    int step = weight > 0 ? 1 + (int)(weight * 4) : 0;
    if (step > 4)
        step = 4;
    return utf8 ? blocks[step] : ascii[step];
}

static void draw_row(const struct example *example, const float *weights, size_t query, bool utf8)
{
    const char *name = example->seq_q == example->seq_kv ? example->keys[query] : query ? "q2" : "q1";
    printf("  %5s  ", name);
    for (size_t j = 0; j < example->seq_kv; j++)
        fputs(shade(weights[j], utf8), stdout);
    fputs(" ", stdout);
    for (size_t j = 0; j < example->seq_kv; j++)
        printf(" %.7f", (double)weights[j]);
    putchar('\n');
}

static void draw_maps(const struct example *example, const struct result *result, bool utf8)
{
    size_t map = example->seq_q * example->seq_kv;
    for (size_t head = 0; head < example->n_heads; head++) {
        if (example->n_heads > 1)
            printf("  head %zu\n", head + 1);
        for (size_t i = 0; i < example->seq_q; i++)
            draw_row(example, result->map + head * map + i * example->seq_kv, i, utf8);
    }
}

static void print_output(const struct example *example, const struct result *result)
{
    size_t width = example->n_heads * example->value_dim;
    for (size_t i = 0; i < example->seq_q; i++) {
        printf("  %s", i ? "      " : "output");
        for (size_t j = 0; j < width; j++)
            printf(" %.7f", (double)result->out[i * width + j]);
        putchar('\n');
    }
}

static float largest_difference(const struct example *example, const struct result *result)
{
    float largest = 0;
    for (size_t i = 0; i < example->seq_q * example->n_heads * example->value_dim; i++)
        largest = fmaxf(largest, fabsf(result->out[i] - example->expected[i]));
    return largest;
}

static bool show(const struct example *example, bool utf8)
{
    struct result result = {0};
    heed_status status = compute(example, &result);
    if (status) {
        diag_print("%s: %s", example->title, heed_status_string(status));
        return false;
    }
    float difference = largest_difference(example, &result);
    printf("%s\n", example->title);
    draw_maps(example, &result, utf8);
    print_output(example, &result);
    printf("  largest difference from the exact values: %.1e\n\n", (double)difference);
    if (difference <= TOLERANCE)
        return true;
    diag_print("%s: differs from the exact values by %g", example->title, (double)difference);
    return false;
}

static int show_all(void)
{
    bool utf8 = terminal_has_utf8(), passed = true;
    if (!level_check(NULL))
        return EXIT_FAILED;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        passed = show(&examples[i], utf8) && passed;
    return passed ? EXIT_DONE : EXIT_FAILED;
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {
        {"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'V'}, {NULL, 0, NULL, 0}};
    int option;
    while ((option = getopt_long(argc, argv, ":hV", options, NULL)) != -1) {
        switch (option) {
        case 'h':
            fputs(help, stdout);
            return EXIT_DONE;
        case 'V':
            puts("heed-examples " PACKAGE_VERSION);
            return EXIT_DONE;
        default:
            program_refuse_option(option, argv, options);
            return EXIT_USAGE;
        }
    }
    if (!program_has_no_arguments(argc, argv))
        return EXIT_USAGE;
    return show_all();
}

int main(int argc, char **argv)
{
    if (!program_start("heed-examples"))
        return EXIT_FAILED;
    return program_end(run(argc, argv));
}
