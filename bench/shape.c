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
#define RANDOM_HEADS 16

static const struct suite suites[] = {
    {"peak", "the machine's own limits", "", SUITE_PEAK},
    {"matmul", "c = a b, nothing packed beforehand", "MxNxK[+FORM]", SUITE_MATMUL},
    {"linear", "y = x w, weights packed beforehand where an implementation can", "MxNxK[+EPILOGUE]", SUITE_LINEAR},
    {"gemv", "linear of a single row", "1xNxK[+EPILOGUE]", SUITE_GEMV},
    {"rows", "softmax, normalisation and activations of rows", "FUNCTION:ROWSxCOLUMNS", SUITE_ROWS},
    {"attention", "softmax(q k^T / sqrt(D)) v; unfused: heed's matmul, softmax and matmul",
     "BATCHxHEADS[/KV]xQUERIESxKEYSxD[+MASK]...", SUITE_ATTENTION},
    {"decode", "attention of few queries to many keys; heed's are in a cache, others' lie head by head",
     "BATCHxHEADS[/KV]xQUERIESxKEYSxD[+MASK]...", SUITE_DECODE},
    {"layer", "a whole layer of BERT, GPT-2 or Llama", "MODEL:BATCHxTOKENSxD_MODELxHEADS[/KV]xD_FF", SUITE_LAYER},
};

static const char *const epilogues[N_EPILOGUES] = {"", "bias", "relu", "gelu-erf", "gelu-tanh", "silu"};
/* As BLAS names them: which operand is stored transposed. */
static const char *const forms[] = {"", "+tn", "+nt", "+tt"};
#define N_FORMS (sizeof forms / sizeof *forms)
static const char *const functions[N_ROW_FUNCTIONS] = {
    "softmax",   "log-softmax", "layernorm", "rmsnorm",       "relu",        "gelu-erf",
    "gelu-tanh", "silu",        "swiglu",    "add-layernorm", "add-rmsnorm",
};

static const char *const layer_kinds[N_LAYER_KINDS] = {"bert", "gpt2", "llama"};

bool shape_adds_residual(enum row_function function)
{
    return function == ROW_ADD_LAYERNORM || function == ROW_ADD_RMSNORM;
}

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

#define HEADS_TEXT 48

/* The heads, and those of keys and values where they are others. */
static const char *print_heads(const struct shape *s, char text[HEADS_TEXT])
{
    if (s->kv_heads == s->heads)
        snprintf(text, HEADS_TEXT, "%zu", s->heads);
    else
        snprintf(text, HEADS_TEXT, "%zu/%zu", s->heads, s->kv_heads);
    return text;
}

static void print_attention(const struct shape *s, char text[SHAPE_TEXT])
{
    static const char *const tensors[] = {
        [TENSOR_NONE] = "", [TENSOR_ADDITIVE] = "+additive", [TENSOR_BOOLEAN] = "+boolean"};
    char heads[HEADS_TEXT], window[32] = "";
    if (s->window)
        snprintf(window, sizeof window, "+window%zu", s->window);
    snprintf(text, SHAPE_TEXT, "%zux%sx%zux%zux%zu%s%s%s%s", s->batch, print_heads(s, heads), s->m, s->n, s->k,
             s->causal ? "+causal" : "", window, s->alibi ? "+alibi" : "", tensors[s->tensor]);
}

static void print_layer(const struct shape *s, char text[SHAPE_TEXT])
{
    char heads[HEADS_TEXT];
    snprintf(text, SHAPE_TEXT, "%s:%zux%zux%zux%sx%zu", layer_kinds[s->layer], s->batch, s->m, s->k,
             print_heads(s, heads), s->n);
}

void shape_print(enum suite_kind kind, const struct shape *s, char text[SHAPE_TEXT])
{
    if (kind == SUITE_LAYER)
        print_layer(s, text);
    else if (kind == SUITE_ROWS)
        snprintf(text, SHAPE_TEXT, "%s:%zux%zu", functions[s->function], s->m, s->n);
    else if (kind == SUITE_ATTENTION || kind == SUITE_DECODE)
        print_attention(s, text);
    else if (kind == SUITE_MATMUL)
        snprintf(text, SHAPE_TEXT, "%zux%zux%zu%s", s->m, s->n, s->k, forms[s->transposed_a + 2 * s->transposed_b]);
    else
        snprintf(text, SHAPE_TEXT, "%zux%zux%zu%s%s", s->m, s->n, s->k, s->epilogue ? "+" : "", epilogues[s->epilogue]);
}

bool shape_same(const struct shape *a, const struct shape *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->batch == b->batch && a->heads == b->heads &&
           a->kv_heads == b->kv_heads && a->transposed_a == b->transposed_a && a->transposed_b == b->transposed_b &&
           a->epilogue == b->epilogue && a->function == b->function && a->layer == b->layer && a->causal == b->causal &&
           a->window == b->window && a->alibi == b->alibi && a->tensor == b->tensor;
}

/* The count at *text, which it moves past the count and `after`, a NUL being left. */
static bool take_count(const char **text, char after, size_t *count)
{
    char *stop;
    if (**text < '0' || **text > '9')
        return false;
    errno = 0;
    unsigned long long value = strtoull(*text, &stop, 10);
    if (errno || value == 0 || value > SIZE_LIMIT || (after && *stop != after))
        return false;
    *count = (size_t)value;
    *text = stop + (after != '\0');
    return true;
}

static bool parse_sizes(const char **text, struct shape *s)
{
    return take_count(text, 'x', &s->m) && take_count(text, 'x', &s->n) && take_count(text, '\0', &s->k);
}

static void set_form(size_t form, struct shape *s)
{
    s->transposed_a = form % 2 == 1;
    s->transposed_b = form / 2 == 1;
}

static bool parse_matmul(const char *text, struct shape *s)
{
    size_t form = 0;
    if (!parse_sizes(&text, s))
        return false;
    while (form < N_FORMS && strcmp(text, forms[form]) != 0)
        form++;
    set_form(form, s);
    return form < N_FORMS;
}

static bool parse_layer(const char *text, struct shape *s)
{
    if (!parse_sizes(&text, s))
        return false;
    if (*text == '\0')
        return true;
    for (int i = EPILOGUE_BIAS; i < N_EPILOGUES; i++)
        if (*text == '+' && strcmp(text + 1, epilogues[i]) == 0)
            s->epilogue = (enum epilogue)i;
    return s->epilogue != EPILOGUE_NONE;
}

/* Which of the names comes before a colon, and moves the text past it; -1: none. */
static int take_name(const char **text, const char *const names[], int count)
{
    size_t length = strcspn(*text, ":");
    int name = count - 1;
    while (name >= 0 && (strlen(names[name]) != length || strncmp(names[name], *text, length) != 0))
        name--;
    if (name < 0 || (*text)[length] != ':')
        return -1;
    *text += length + 1;
    return name;
}

static bool parse_rows(const char *text, struct shape *s)
{
    int function = take_name(&text, functions, N_ROW_FUNCTIONS);
    if (function < 0)
        return false;
    s->function = (enum row_function)function;
    return take_count(&text, 'x', &s->m) && take_count(&text, '\0', &s->n) && *text == '\0';
}

static bool take_word(const char **text, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(*text, word, length) != 0)
        return false;
    *text += length;
    return true;
}

/* Each kind once. */
static bool take_mask(const char **text, struct shape *s)
{
    if (take_word(text, "+causal"))
        return !s->causal && (s->causal = true);
    if (take_word(text, "+alibi"))
        return !s->alibi && (s->alibi = true);
    if (take_word(text, "+window"))
        return s->window == 0 && take_count(text, '\0', &s->window);
    bool additive = take_word(text, "+additive");
    if (s->tensor != TENSOR_NONE || (!additive && !take_word(text, "+boolean")))
        return false;
    s->tensor = additive ? TENSOR_ADDITIVE : TENSOR_BOOLEAN;
    return true;
}

/* HEADS[/KV]x */
static bool take_heads(const char **text, struct shape *s)
{
    if (!take_count(text, '\0', &s->heads))
        return false;
    s->kv_heads = s->heads;
    if (**text == '/') {
        ++*text;
        if (!take_count(text, '\0', &s->kv_heads) || s->heads % s->kv_heads != 0)
            return false;
    }
    return *(*text)++ == 'x';
}

/* Heads divide d_model; those of BERT and GPT-2 have keys of their own, and Llama's turn by halves. */
static bool parse_transformer(const char *text, struct shape *s)
{
    int kind = take_name(&text, layer_kinds, N_LAYER_KINDS);
    if (kind < 0 || !take_count(&text, 'x', &s->batch) || !take_count(&text, 'x', &s->m) ||
        !take_count(&text, 'x', &s->k) || !take_heads(&text, s) || !take_count(&text, '\0', &s->n) || *text != '\0')
        return false;
    s->layer = (enum layer_kind)kind;
    s->causal = s->layer != LAYER_BERT;
    if (s->k % s->heads != 0)
        return false;
    return s->layer == LAYER_LLAMA ? s->k / s->heads % 2 == 0 : s->kv_heads == s->heads;
}

static bool parse_attention(const char *text, struct shape *s)
{
    if (!take_count(&text, 'x', &s->batch) || !take_heads(&text, s) || !take_count(&text, 'x', &s->m) ||
        !take_count(&text, 'x', &s->n) || !take_count(&text, '\0', &s->k))
        return false;
    while (*text != '\0')
        if (!take_mask(&text, s))
            return false;
    return true;
}

bool shape_parse(enum suite_kind kind, const char *text, struct shape *s)
{
    *s = (struct shape){0};
    switch (kind) {
    case SUITE_ROWS:
        return parse_rows(text, s);
    case SUITE_ATTENTION:
    case SUITE_DECODE:
        return parse_attention(text, s);
    case SUITE_LAYER:
        return parse_transformer(text, s);
    case SUITE_MATMUL:
        return parse_matmul(text, s);
    default:
        return parse_layer(text, s) && (kind != SUITE_GEMV || s->m == 1);
    }
}

/* ---- the suites' own ------------------------------------------------------------------------ */

static const struct {
    size_t m, n, k, form;
} products[] = {
    {4, 4, 64, 0},        {8, 8, 8, 0},       {16, 16, 64, 0},       {64, 64, 64, 0},       {128, 128, 128, 0},
    {256, 256, 256, 0},   {512, 512, 512, 0}, {1024, 1024, 1024, 0}, {2048, 2048, 2048, 0}, {128, 128, 64, 0},
    {128, 64, 128, 0},    {512, 512, 64, 0},  {512, 64, 512, 0},     {128, 384, 384, 0},    {128, 1536, 384, 0},
    {128, 384, 1536, 0},  {512, 768, 768, 0}, {512, 3072, 768, 0},   {512, 768, 3072, 0},   {512, 1024, 1024, 0},
    {512, 4096, 1024, 0}, {1, 4096, 4096, 0}, {4, 4096, 4096, 0},    {24, 4096, 4096, 0},   {4, 16384, 4096, 0},
    {1, 3072, 768, 2},    {1, 4096, 4096, 2}, {8, 4096, 4096, 2},    {9, 768, 768, 2},      {16, 3072, 768, 2},
    {64, 768, 768, 2},    {512, 768, 768, 2}, {256, 1, 512, 0},      {4096, 1, 4096, 1},    {1000, 10, 768, 1},
    {4096, 8, 4096, 1},   {512, 31, 512, 1},  {512, 768, 768, 1},    {1000, 2, 768, 3},     {512, 512, 512, 3},
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

enum row_class { CLASS_SOFTMAX, CLASS_NORM, CLASS_ACTIVATION, CLASS_ADD_NORM };

static enum row_class class_of(enum row_function function)
{
    if (function == ROW_SOFTMAX || function == ROW_LOG_SOFTMAX)
        return CLASS_SOFTMAX;
    if (shape_adds_residual(function))
        return CLASS_ADD_NORM;
    return function == ROW_LAYERNORM || function == ROW_RMSNORM ? CLASS_NORM : CLASS_ACTIVATION;
}

/* Of published benches and models; then lengths that are no multiple of a vector, and short ones. */
static const struct {
    enum row_class class;
    size_t rows, cols;
} rows[] = {
    {CLASS_SOFTMAX, 16, 16},       {CLASS_SOFTMAX, 240, 20},       {CLASS_SOFTMAX, 7296, 57},
    {CLASS_SOFTMAX, 8192, 64},     {CLASS_SOFTMAX, 8576, 67},      {CLASS_SOFTMAX, 1536, 128},
    {CLASS_SOFTMAX, 128, 365},     {CLASS_SOFTMAX, 6144, 384},     {CLASS_SOFTMAX, 12888, 256},
    {CLASS_SOFTMAX, 96, 1000},     {CLASS_SOFTMAX, 64, 1011},      {CLASS_SOFTMAX, 1024, 1024},
    {CLASS_SOFTMAX, 4096, 4096},   {CLASS_SOFTMAX, 24, 8320},      {CLASS_SOFTMAX, 12, 15000},
    {CLASS_SOFTMAX, 4, 200000},    {CLASS_SOFTMAX, 1, 643251},     {CLASS_NORM, 15, 3},
    {CLASS_NORM, 30, 300},         {CLASS_NORM, 128, 384},         {CLASS_NORM, 128, 768},
    {CLASS_NORM, 257, 768},        {CLASS_NORM, 128, 1024},        {CLASS_NORM, 3136, 128},
    {CLASS_NORM, 784, 512},        {CLASS_NORM, 196, 512},         {CLASS_NORM, 49, 2048},
    {CLASS_NORM, 60, 33},          {CLASS_NORM, 60, 1025},         {CLASS_NORM, 128, 4096},
    {CLASS_NORM, 1, 8192},         {CLASS_NORM, 8192, 1024},       {CLASS_NORM, 24576, 1024},
    {CLASS_ACTIVATION, 8, 1536},   {CLASS_ACTIVATION, 128, 1536},  {CLASS_ACTIVATION, 128, 3072},
    {CLASS_ACTIVATION, 512, 4096}, {CLASS_ACTIVATION, 4096, 4096}, {CLASS_ADD_NORM, 128, 384},
    {CLASS_ADD_NORM, 128, 768},    {CLASS_ADD_NORM, 512, 768},     {CLASS_ADD_NORM, 128, 1024},
    {CLASS_ADD_NORM, 1, 4096},     {CLASS_ADD_NORM, 128, 4096},    {CLASS_ADD_NORM, 2432, 1024},
    {CLASS_ADD_NORM, 8192, 1024},
};
#define N_ROWS (sizeof rows / sizeof *rows)

static const size_t lengths[] = {7, 16, 32, 48, 64, 77, 80, 96, 112, 113, 128, 1000, 1008};
#define N_LENGTHS (sizeof lengths / sizeof *lengths)
#define LENGTH_ROWS 256

/* Shape `index` of those of all functions; returns how many there are. */
static size_t row_shape(size_t index, struct shape *shape)
{
    size_t count = 0;
    for (int f = 0; f < N_ROW_FUNCTIONS; f++) {
        for (size_t i = 0; i < N_ROWS; i++)
            if (rows[i].class == class_of((enum row_function)f) && count++ == index)
                *shape = (struct shape){.function = (enum row_function)f, .m = rows[i].rows, .n = rows[i].cols};
        for (size_t i = 0; i < N_LENGTHS; i++)
            if (count++ == index)
                *shape = (struct shape){.function = (enum row_function)f, .m = LENGTH_ROWS, .n = lengths[i]};
    }
    return count;
}

/* BERT, its large and small kin; ViT; GPT-2; Llama with grouped heads; odd lengths; other head sizes; then masks:
 * padding of BERT, relative positions of T5, ALiBi of BLOOM and MPT, windows of Mistral and Longformer, odd
 * lengths, and few queries before many keys; last a step of decoding by keys that are no cache, and short sentences. */
static const struct shape attentions[] = {
    {.batch = 1, .heads = 12, .kv_heads = 12, .m = 128, .n = 128, .k = 64},
    {.batch = 8, .heads = 12, .kv_heads = 12, .m = 128, .n = 128, .k = 64},
    {.batch = 1, .heads = 12, .kv_heads = 12, .m = 256, .n = 256, .k = 64},
    {.batch = 1, .heads = 12, .kv_heads = 12, .m = 512, .n = 512, .k = 64},
    {.batch = 1, .heads = 16, .kv_heads = 16, .m = 384, .n = 384, .k = 64},
    {.batch = 1, .heads = 12, .kv_heads = 12, .m = 128, .n = 128, .k = 32},
    {.batch = 1, .heads = 12, .kv_heads = 12, .m = 512, .n = 512, .k = 32},
    {.batch = 1, .heads = 12, .kv_heads = 12, .m = 197, .n = 197, .k = 64},
    {.batch = 1, .heads = 16, .kv_heads = 16, .m = 577, .n = 577, .k = 64},
    {.batch = 1, .heads = 12, .kv_heads = 12, .m = 512, .n = 512, .k = 64, .causal = true},
    {.batch = 1, .heads = 12, .kv_heads = 12, .m = 1024, .n = 1024, .k = 64, .causal = true},
    {.batch = 1, .heads = 32, .kv_heads = 8, .m = 512, .n = 512, .k = 128, .causal = true},
    {.batch = 1, .heads = 32, .kv_heads = 8, .m = 1024, .n = 1024, .k = 128},
    {.batch = 1, .heads = 8, .kv_heads = 8, .m = 2048, .n = 2048, .k = 64},
    {.batch = 2, .heads = 8, .kv_heads = 8, .m = 1024, .n = 77, .k = 80},
    {.batch = 1, .heads = 6, .kv_heads = 6, .m = 113, .n = 203, .k = 64},
    {.batch = 1, .heads = 6, .kv_heads = 6, .m = 799, .n = 799, .k = 64},
    {.batch = 1, .heads = 6, .kv_heads = 6, .m = 1023, .n = 1025, .k = 64},
    {.batch = 1, .heads = 8, .kv_heads = 8, .m = 512, .n = 512, .k = 96},
    {.batch = 1, .heads = 8, .kv_heads = 8, .m = 512, .n = 512, .k = 256},
    {.batch = 1, .heads = 16, .kv_heads = 16, .m = 729, .n = 729, .k = 72},
    {.batch = 1, .heads = 4, .kv_heads = 4, .m = 203, .n = 113, .k = 111},
    {.batch = 1, .heads = 12, .kv_heads = 12, .m = 1025, .n = 1025, .k = 64},
    {.batch = 8, .heads = 12, .kv_heads = 12, .m = 128, .n = 128, .k = 64, .tensor = TENSOR_BOOLEAN},
    {.batch = 1, .heads = 12, .kv_heads = 12, .m = 512, .n = 512, .k = 64, .tensor = TENSOR_BOOLEAN},
    {.batch = 1, .heads = 12, .kv_heads = 12, .m = 512, .n = 512, .k = 64, .tensor = TENSOR_ADDITIVE},
    {.batch = 1, .heads = 32, .kv_heads = 8, .m = 512, .n = 512, .k = 128, .tensor = TENSOR_ADDITIVE},
    {.batch = 1, .heads = 6, .kv_heads = 6, .m = 1025, .n = 1025, .k = 64, .tensor = TENSOR_ADDITIVE},
    {.batch = 1, .heads = 6, .kv_heads = 6, .m = 799, .n = 799, .k = 64, .tensor = TENSOR_BOOLEAN},
    {.batch = 1, .heads = 16, .kv_heads = 16, .m = 1024, .n = 1024, .k = 64, .causal = true, .alibi = true},
    {.batch = 1, .heads = 6, .kv_heads = 6, .m = 799, .n = 799, .k = 64, .causal = true, .alibi = true},
    {.batch = 1, .heads = 8, .kv_heads = 2, .m = 2048, .n = 2048, .k = 128, .causal = true, .window = 511},
    {.batch = 1, .heads = 6, .kv_heads = 6, .m = 1025, .n = 1025, .k = 64, .causal = true, .window = 256},
    {.batch = 1, .heads = 12, .kv_heads = 12, .m = 2048, .n = 2048, .k = 64, .window = 128},
    {.batch = 1, .heads = 6, .kv_heads = 6, .m = 113, .n = 203, .k = 64, .causal = true},
    {.batch = 1, .heads = 6, .kv_heads = 6, .m = 799, .n = 799, .k = 64, .causal = true},
    {.batch = 1, .heads = 6, .kv_heads = 6, .m = 1023, .n = 1025, .k = 64, .causal = true},
    {.batch = 1, .heads = 6, .kv_heads = 6, .m = 64, .n = 799, .k = 64, .causal = true},
    {.batch = 1, .heads = 6, .kv_heads = 6, .m = 108, .n = 256, .k = 80, .causal = true},
    {.batch = 1, .heads = 12, .kv_heads = 12, .m = 1, .n = 1024, .k = 64},
    {.batch = 1, .heads = 12, .kv_heads = 12, .m = 8, .n = 512, .k = 64},
    {.batch = 1, .heads = 32, .kv_heads = 8, .m = 1, .n = 4096, .k = 128},
    {.batch = 8, .heads = 12, .kv_heads = 12, .m = 16, .n = 16, .k = 64},
};
#define N_ATTENTIONS (sizeof attentions / sizeof *attentions)

static const size_t decode_queries[] = {1, 2, 4, 8, 16};
static const size_t decode_keys[] = {1024, 4096, 8192, 32768};
static const struct {
    size_t heads, kv_heads, head_dim;
} decode_heads[] = {{12, 12, 64}, {32, 8, 128}};
#define N_QUERIES (sizeof decode_queries / sizeof *decode_queries)
#define N_KEYS (sizeof decode_keys / sizeof *decode_keys)
#define N_DECODE_GRID (N_QUERIES * N_KEYS * (sizeof decode_heads / sizeof *decode_heads))

/* Beside the grid: lengths that are no multiple of a block, one head of keys for all, several sequences, masks. */
static const struct shape decodes[] = {
    {.batch = 1, .heads = 12, .kv_heads = 12, .m = 1, .n = 339, .k = 64},
    {.batch = 1, .heads = 12, .kv_heads = 12, .m = 3, .n = 799, .k = 64},
    {.batch = 1, .heads = 12, .kv_heads = 12, .m = 1, .n = 1025, .k = 64},
    {.batch = 1, .heads = 8, .kv_heads = 8, .m = 16, .n = 20000, .k = 128},
    {.batch = 1, .heads = 32, .kv_heads = 1, .m = 1, .n = 8192, .k = 128},
    {.batch = 8, .heads = 12, .kv_heads = 12, .m = 1, .n = 1024, .k = 64},
    {.batch = 8, .heads = 32, .kv_heads = 8, .m = 1, .n = 1024, .k = 128},
    {.batch = 1, .heads = 12, .kv_heads = 12, .m = 16, .n = 1024, .k = 64, .causal = true},
    {.batch = 1, .heads = 32, .kv_heads = 8, .m = 16, .n = 8192, .k = 128, .causal = true},
    {.batch = 1, .heads = 12, .kv_heads = 12, .m = 4, .n = 1023, .k = 64, .causal = true},
    {.batch = 1, .heads = 12, .kv_heads = 12, .m = 1, .n = 8192, .k = 64, .causal = true, .window = 4095},
    {.batch = 1, .heads = 32, .kv_heads = 8, .m = 4, .n = 8192, .k = 128, .causal = true, .window = 4095},
    {.batch = 1, .heads = 16, .kv_heads = 16, .m = 1, .n = 8192, .k = 64, .causal = true, .alibi = true},
    {.batch = 1, .heads = 16, .kv_heads = 16, .m = 8, .n = 8192, .k = 64, .causal = true, .alibi = true},
    {.batch = 1, .heads = 12, .kv_heads = 12, .m = 1, .n = 8192, .k = 64, .tensor = TENSOR_BOOLEAN},
    {.batch = 1, .heads = 12, .kv_heads = 12, .m = 4, .n = 8192, .k = 64, .tensor = TENSOR_BOOLEAN},
    {.batch = 1, .heads = 12, .kv_heads = 12, .m = 1, .n = 8192, .k = 64, .tensor = TENSOR_ADDITIVE},
    {.batch = 1, .heads = 32, .kv_heads = 8, .m = 4, .n = 8192, .k = 128, .tensor = TENSOR_ADDITIVE},
};
#define N_DECODES (N_DECODE_GRID + sizeof decodes / sizeof *decodes)

/* all-MiniLM-L6, BERT base and large, GPT-2, Llama 3.2 1B: few tokens, a page, a batch. */
static const struct shape transformers[] = {
    {.layer = LAYER_BERT, .batch = 1, .m = 16, .k = 384, .heads = 12, .kv_heads = 12, .n = 1536},
    {.layer = LAYER_BERT, .batch = 1, .m = 128, .k = 384, .heads = 12, .kv_heads = 12, .n = 1536},
    {.layer = LAYER_BERT, .batch = 32, .m = 32, .k = 384, .heads = 12, .kv_heads = 12, .n = 1536},
    {.layer = LAYER_BERT, .batch = 1, .m = 512, .k = 384, .heads = 12, .kv_heads = 12, .n = 1536},
    {.layer = LAYER_BERT, .batch = 1, .m = 8, .k = 768, .heads = 12, .kv_heads = 12, .n = 3072},
    {.layer = LAYER_BERT, .batch = 1, .m = 128, .k = 768, .heads = 12, .kv_heads = 12, .n = 3072},
    {.layer = LAYER_BERT, .batch = 8, .m = 128, .k = 768, .heads = 12, .kv_heads = 12, .n = 3072},
    {.layer = LAYER_BERT, .batch = 1, .m = 384, .k = 1024, .heads = 16, .kv_heads = 16, .n = 4096},
    {.layer = LAYER_GPT2, .batch = 1, .m = 128, .k = 768, .heads = 12, .kv_heads = 12, .n = 3072, .causal = true},
    {.layer = LAYER_GPT2, .batch = 1, .m = 1024, .k = 768, .heads = 12, .kv_heads = 12, .n = 3072, .causal = true},
    {.layer = LAYER_LLAMA, .batch = 1, .m = 8, .k = 2048, .heads = 32, .kv_heads = 8, .n = 8192, .causal = true},
    {.layer = LAYER_LLAMA, .batch = 1, .m = 128, .k = 2048, .heads = 32, .kv_heads = 8, .n = 8192, .causal = true},
    {.layer = LAYER_LLAMA, .batch = 1, .m = 512, .k = 2048, .heads = 32, .kv_heads = 8, .n = 8192, .causal = true},
};
#define N_TRANSFORMERS (sizeof transformers / sizeof *transformers)

static struct shape decode_shape(size_t index)
{
    if (index >= N_DECODE_GRID)
        return decodes[index - N_DECODE_GRID];
    size_t heads = index / (N_QUERIES * N_KEYS);
    return (struct shape){.batch = 1,
                          .heads = decode_heads[heads].heads,
                          .kv_heads = decode_heads[heads].kv_heads,
                          .m = decode_queries[index % N_QUERIES],
                          .n = decode_keys[index / N_QUERIES % N_KEYS],
                          .k = decode_heads[heads].head_dim};
}

size_t shape_default_count(enum suite_kind kind)
{
    struct shape unused;
    switch (kind) {
    case SUITE_PEAK:
        break;
    case SUITE_MATMUL:
        return N_PRODUCTS;
    case SUITE_LINEAR:
        return N_LAYERS * N_LINEAR_ROWS;
    case SUITE_GEMV:
        return N_LAYERS;
    case SUITE_ROWS:
        return row_shape(SIZE_MAX, &unused);
    case SUITE_ATTENTION:
        return N_ATTENTIONS;
    case SUITE_DECODE:
        return N_DECODES;
    case SUITE_LAYER:
        return N_TRANSFORMERS;
    }
    return 0;
}

static struct shape layer_shape(size_t m, size_t layer)
{
    return (struct shape){.m = m, .n = layers[layer].n, .k = layers[layer].k};
}

struct shape shape_default(enum suite_kind kind, size_t index)
{
    struct shape shape = {0};
    switch (kind) {
    case SUITE_PEAK:
        break;
    case SUITE_MATMUL:
        shape = (struct shape){.m = products[index].m, .n = products[index].n, .k = products[index].k};
        set_form(products[index].form, &shape);
        break;
    case SUITE_LINEAR:
        return layer_shape(linear_rows[index / N_LAYERS], index % N_LAYERS);
    case SUITE_GEMV:
        return layer_shape(1, index);
    case SUITE_ROWS:
        row_shape(index, &shape);
        break;
    case SUITE_ATTENTION:
        return attentions[index];
    case SUITE_DECODE:
        return decode_shape(index);
    case SUITE_LAYER:
        return transformers[index];
    }
    return shape;
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

static struct shape random_attention(enum suite_kind kind, uint64_t *state)
{
    struct shape s = {.batch = 1, .k = 8 * random_size(state, 32)};
    s.kv_heads = random_size(state, RANDOM_HEADS);
    s.heads = s.kv_heads * random_size(state, 4);
    s.m = random_size(state, kind == SUITE_DECODE ? 16 : RANDOM_SIZE);
    s.n = random_size(state, kind == SUITE_DECODE ? 16 * RANDOM_SIZE : RANDOM_SIZE);
    s.tensor = (enum mask_tensor)(next_random(state) % 8 < 2 ? 1 + next_random(state) % 2 : 0);
    s.alibi = next_random(state) % 8 == 0;
    if (s.m > s.n) /* the first queries would see nothing, which few libraries can bear */
        return s;
    s.causal = random_size(state, 2) == 1;
    s.window = next_random(state) % 4 == 0 ? random_size(state, s.n) : 0;
    return s;
}

/* Heads of even sizes, as Llama's have to be. */
static struct shape random_transformer(uint64_t *state)
{
    struct shape s = {.layer = (enum layer_kind)(next_random(state) % N_LAYER_KINDS), .batch = random_size(state, 8)};
    size_t head_dim = 8 * random_size(state, 16);
    s.kv_heads = random_size(state, RANDOM_HEADS / 2);
    s.heads = s.layer == LAYER_LLAMA ? s.kv_heads * random_size(state, 2) : s.kv_heads;
    s.k = s.heads * head_dim;
    s.m = random_size(state, RANDOM_SIZE / 4);
    s.n = random_size(state, 2 * RANDOM_SIZE);
    s.causal = s.layer != LAYER_BERT;
    return s;
}

struct shape shape_random(enum suite_kind kind, uint64_t *state)
{
    if (kind == SUITE_LAYER)
        return random_transformer(state);
    if (kind == SUITE_ATTENTION || kind == SUITE_DECODE)
        return random_attention(kind, state);
    struct shape s = {.m = random_size(state, RANDOM_SIZE), .n = random_size(state, RANDOM_SIZE)};
    if (kind == SUITE_ROWS)
        s.function = (enum row_function)(next_random(state) % N_ROW_FUNCTIONS);
    else
        s.k = random_size(state, RANDOM_SIZE);
    if (kind == SUITE_GEMV)
        s.m = 1;
    if (kind == SUITE_MATMUL)
        set_form(next_random(state) % N_FORMS, &s);
    return s;
}
