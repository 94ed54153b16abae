/* SPDX-License-Identifier: MIT
 * Suites and shapes.
 */
#include "config.h"

#include "shape.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_LIMIT 1000000000 /* CBLAS counts in int */
#define RANDOM_SIZE 2048
#define MOST_COUNTS 3

static const struct suite suites[] = {
    {"peak", "the machine's own limits", "", SUITE_PEAK},
    {"matmul", "c = a b, nothing packed beforehand", "MxNxK", SUITE_MATMUL},
    {"linear", "y = x w, weights packed beforehand where an implementation can", "MxNxK[+EPILOGUE]", SUITE_LINEAR},
    {"gemv", "linear of a single row; peers use sgemv, or their packed form", "1xNxK[+EPILOGUE]", SUITE_GEMV},
};

static const char *const epilogues[N_EPILOGUES] = {"", "bias", "relu", "gelu-erf", "gelu-tanh"};

const struct suite *suites_at(size_t index)
{
    return index < sizeof suites / sizeof *suites ? &suites[index] : NULL;
}

const struct suite *suites_named(const char *name)
{
    for (size_t i = 0; suites_at(i); i++)
        if (strcmp(suites_at(i)->name, name) == 0)
            return suites_at(i);
    return NULL;
}

/* ---- text ----------------------------------------------------------------------------------- */

void shape_print(enum suite_kind kind, const struct shape *s, char text[SHAPE_TEXT])
{
    (void)kind;
    snprintf(text, SHAPE_TEXT, "%zux%zux%zu%s%s", s->m, s->n, s->k, s->epilogue ? "+" : "", epilogues[s->epilogue]);
}

/* Counts between x; returns what follows them, NULL if they are not as many. */
static const char *parse_counts(const char *text, size_t n, size_t *counts)
{
    for (size_t i = 0; i < n; i++) {
        char *stop;
        if (*text < '0' || *text > '9')
            return NULL;
        errno = 0;
        unsigned long long count = strtoull(text, &stop, 10);
        if (errno || count == 0 || count > SIZE_LIMIT || (i + 1 < n && *stop != 'x'))
            return NULL;
        counts[i] = (size_t)count;
        text = stop + (i + 1 < n);
    }
    return text;
}

static bool parse_epilogue(const char *text, int *epilogue)
{
    *epilogue = EPILOGUE_NONE;
    if (*text == '\0')
        return true;
    for (int i = EPILOGUE_BIAS; i < N_EPILOGUES; i++)
        if (*text == '+' && strcmp(text + 1, epilogues[i]) == 0)
            *epilogue = i;
    return *epilogue != EPILOGUE_NONE;
}

bool shape_parse(enum suite_kind kind, const char *text, struct shape *s)
{
    size_t counts[MOST_COUNTS];
    *s = (struct shape){0};
    text = parse_counts(text, 3, counts);
    if (!text || !parse_epilogue(text, &s->epilogue))
        return false;
    s->m = counts[0];
    s->n = counts[1];
    s->k = counts[2];
    if (kind == SUITE_MATMUL)
        return s->epilogue == EPILOGUE_NONE;
    return kind != SUITE_GEMV || s->m == 1;
}

/* ---- the suites' own ------------------------------------------------------------------------ */

static const struct {
    size_t m, n, k;
} products[] = {
    {4, 4, 64},       {8, 8, 8},          {16, 16, 64},       {64, 64, 64},     {128, 128, 128}, {256, 256, 256},
    {512, 512, 512},  {1024, 1024, 1024}, {2048, 2048, 2048}, {128, 128, 64},   {128, 64, 128},  {512, 512, 64},
    {512, 64, 512},   {128, 384, 384},    {128, 1536, 384},   {128, 384, 1536}, {512, 768, 768}, {512, 3072, 768},
    {512, 768, 3072}, {512, 1024, 1024},  {512, 4096, 1024},
};
#define N_PRODUCTS (sizeof products / sizeof *products)

/* Columns and depth of the linear layers of common transformers. */
static const struct {
    size_t n, k;
} layers[] = {
    {384, 384}, {1536, 384}, {384, 1536}, {512, 512},   {2048, 512},  {512, 2048},
    {768, 768}, {3072, 768}, {768, 3072}, {1024, 1024}, {4096, 1024}, {4096, 4096},
};
#define N_LAYERS (sizeof layers / sizeof *layers)

static const size_t linear_rows[] = {1, 8, 32, 64, 128, 512};
#define N_LINEAR_ROWS (sizeof linear_rows / sizeof *linear_rows)

size_t shape_default_count(enum suite_kind kind)
{
    switch (kind) {
    case SUITE_MATMUL:
        return N_PRODUCTS;
    case SUITE_LINEAR:
        return N_LAYERS * N_LINEAR_ROWS;
    case SUITE_GEMV:
        return N_LAYERS;
    default:
        return 0;
    }
}

struct shape shape_default(enum suite_kind kind, size_t index)
{
    if (kind == SUITE_MATMUL)
        return (struct shape){.m = products[index].m, .n = products[index].n, .k = products[index].k};
    size_t layer = index % N_LAYERS, m = kind == SUITE_LINEAR ? linear_rows[index / N_LAYERS] : 1;
    return (struct shape){.m = m, .n = layers[layer].n, .k = layers[layer].k};
}

/* ---- random --------------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state)
{
    /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* From 1 to most, every magnitude as likely as another. */
static size_t random_size(uint64_t *state, size_t most)
{
    double unit = (double)(next_random(state) >> 11) * 0x1p-53;
    return (size_t)exp(unit * log((double)most + 1.0));
}

struct shape shape_random(enum suite_kind kind, uint64_t *state)
{
    size_t m = random_size(state, RANDOM_SIZE), n = random_size(state, RANDOM_SIZE);
    return (struct shape){.m = kind == SUITE_GEMV ? 1 : m, .n = n, .k = random_size(state, RANDOM_SIZE)};
}
