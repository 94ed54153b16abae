/* SPDX-License-Identifier: MIT
 * Wrong arguments, one at a time, for every parameter of every function: the status is exact and no byte
 * changes. Then what is allowed (aliasing, empty sizes), failing allocations, and workspaces of the exact size.
 */
#include "reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- memory in which no byte may change ---- */

#define SLOTS 12
#define SLOT 1024

static union {
    float slot[SLOTS][SLOT];
    unsigned char bytes[sizeof(float) * SLOTS * SLOT];
    size_t align;
} arena, pristine;

static float *at(size_t slot)
{
    return arena.slot[slot];
}

static void make_pristine(void)
{
    seed(1);
    fill_uniform(pristine.slot[0], SLOTS * SLOT, -1.0f, 1.0f);
}

/* A pointer that is `bytes` off. */
static void *shifted(const void *p, size_t bytes)
{
    return (void *)((uintptr_t)p + bytes);
}

static void expect(heed_status want, heed_status got, const char *what)
{
    check_that(got == want, "%s: %s, not %s", what, heed_status_string(got), heed_status_string(want));
    check_that(memcmp(&arena, &pristine, sizeof arena) == 0, "%s: memory was written", what);
    arena = pristine;
}

/* A function's arguments live in p, which reset() makes good; each row spoils one. */
#define WRONG(status, change)                                                                                          \
    do {                                                                                                               \
        reset();                                                                                                       \
        change;                                                                                                        \
        expect(status, call(), #change);                                                                               \
    } while (0)

#define GOOD(change)                                                                                                   \
    do {                                                                                                               \
        reset();                                                                                                       \
        change;                                                                                                        \
        check_that(call() == HEED_OK, "%s", #change);                                                                  \
        arena = pristine;                                                                                              \
    } while (0)

#define HUGE_SIZES(X) X(SIZE_MAX) X(SIZE_MAX / 2) X(SIZE_MAX / 4) X((size_t)1 << (sizeof(size_t) * 8 - 2))

/* A struct as a program built against a later header passes it: 16 bytes longer, `tail` in the last. */
static union {
    size_t align;
    unsigned char bytes[1024];
} later;

static void *extended(const void *given, size_t size, unsigned char tail)
{
    size_t longer = size + 16;
    memset(&later, 0, sizeof later);
    memcpy(&later, given, size);
    memcpy(&later, &longer, sizeof longer);
    later.bytes[longer - 1] = tail;
    return &later;
}

/* Rows for a struct `s` that the call reads through the pointer `given`. */
#define WRONG_STRUCTS(s, given)                                                                                        \
    do {                                                                                                               \
        WRONG(HEED_ERR_STRUCT, (s).struct_size = 0);                                                                   \
        WRONG(HEED_ERR_STRUCT, (s).struct_size = sizeof(size_t));                                                      \
        WRONG(HEED_ERR_STRUCT, (s).struct_size--);                                                                     \
        WRONG(HEED_ERR_STRUCT, (s).struct_size = SIZE_MAX);                                                            \
        WRONG(HEED_ERR_STRUCT, given = extended(&(s), sizeof(s), 1));                                                  \
        GOOD(given = extended(&(s), sizeof(s), 0));                                                                    \
    } while (0)

/* Two layers, of which the second one is of another version than the first. */
static void *unlike_layers(const heed_encoder_layer layers[2])
{
    size_t longer = sizeof *layers + 16;
    memset(&later, 0, sizeof later);
    memcpy(&later, layers, 2 * sizeof *layers);
    memcpy(later.bytes + sizeof *layers, &longer, sizeof longer);
    return &later;
}

#define NOT_IN_ENUM 99

/* ---- matmul ---- */

static void test_matmul(void)
{
    static struct {
        heed_transpose ta, tb;
        size_t m, n, k, lda, ldb, ldc;
        float alpha, beta, *a, *b, *c;
        heed_workspace memory, *workspace;
    } p;
#define reset()                                                                                                        \
    (p.ta = p.tb = HEED_NO_TRANSPOSE, p.m = 5, p.n = 6, p.k = 7, p.lda = 8, p.ldb = 9, p.ldc = 10, p.alpha = 1.0f,     \
     p.beta = 1.0f, p.a = at(0), p.b = at(1), p.c = at(2), p.workspace = NULL)
#define call()                                                                                                         \
    heed_matmul(NULL, p.ta, p.tb, p.m, p.n, p.k, p.alpha, p.a, p.lda, p.b, p.ldb, p.beta, p.c, p.ldc, p.workspace)
    begin("heed_matmul refuses");
    GOOD((void)0);
    WRONG(HEED_ERR_ENUM, p.ta = (heed_transpose)NOT_IN_ENUM);
    WRONG(HEED_ERR_ENUM, p.tb = (heed_transpose)NOT_IN_ENUM);
    WRONG(HEED_ERR_NULL, p.a = NULL);
    WRONG(HEED_ERR_NULL, p.b = NULL);
    WRONG(HEED_ERR_NULL, p.c = NULL);
    WRONG(HEED_ERR_NULL, (p.alpha = 0.0f, p.a = NULL));
    WRONG(HEED_ERR_STRIDE, (p.alpha = 0.0f, p.ldb = 5));
    WRONG(HEED_ERR_STRIDE, p.lda = 6);
    WRONG(HEED_ERR_STRIDE, p.ldb = 5);
    WRONG(HEED_ERR_STRIDE, p.ldc = 5);
    WRONG(HEED_ERR_STRIDE, (p.ta = HEED_TRANSPOSE, p.lda = 4));
    WRONG(HEED_ERR_STRIDE, (p.tb = HEED_TRANSPOSE, p.ldb = 6));
    WRONG(HEED_ERR_ALIGNMENT, p.a = shifted(p.a, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.b = shifted(p.b, 2));
    WRONG(HEED_ERR_ALIGNMENT, p.c = shifted(p.c, 3));
    WRONG(HEED_ERR_OVERLAP, p.c = p.a);
    WRONG(HEED_ERR_OVERLAP, p.c = p.b);
    WRONG(HEED_ERR_OVERLAP, p.c = p.a + 4 * 8 + 6);
    WRONG(HEED_ERR_OVERLAP, p.c = p.b - 4 * 10 - 5);
    WRONG(HEED_ERR_OVERLAP, p.c = p.b + 6 * 9 + 5);
    GOOD(p.c = p.b - 4 * 10 - 6);
    GOOD(p.c = p.b + 6 * 9 + 6);
    GOOD(p.b = p.a);
#define HUGE_STRIDE(size)                                                                                              \
    GOOD((p.m = 1, p.lda = p.ldc = size));                                                                             \
    GOOD((p.k = 1, p.ldb = size));                                                                                     \
    GOOD((p.ta = HEED_TRANSPOSE, p.k = 1, p.lda = p.ldb = size));                                                      \
    GOOD((p.tb = HEED_TRANSPOSE, p.n = 1, p.ldb = size));
    HUGE_SIZES(HUGE_STRIDE)
#undef HUGE_STRIDE
#define HUGE_SIZE(size)                                                                                                \
    WRONG(HEED_ERR_OVERFLOW, p.m = size);                                                                              \
    WRONG(HEED_ERR_OVERFLOW, (p.n = p.ldb = p.ldc = size));                                                            \
    WRONG(HEED_ERR_OVERFLOW, (p.k = p.lda = size));                                                                    \
    WRONG(HEED_ERR_OVERFLOW, p.lda = size);                                                                            \
    WRONG(HEED_ERR_OVERFLOW, p.ldb = size);                                                                            \
    WRONG(HEED_ERR_OVERFLOW, p.ldc = size);                                                                            \
    WRONG(HEED_ERR_OVERFLOW, (p.m = p.n = p.k = p.lda = p.ldb = p.ldc = size));
    HUGE_SIZES(HUGE_SIZE)
#undef HUGE_SIZE
    WRONG(HEED_ERR_OVERFLOW, p.lda = PTRDIFF_MAX / (4 * sizeof(float)) + 1);
    WRONG(HEED_ERR_OVERFLOW, p.a = (float *)(UINTPTR_MAX - 63));
    end();

    begin("heed_matmul's workspace");
    size_t bytes = 0;
    CHECK(heed_matmul_workspace(NULL, HEED_TRANSPOSE, HEED_NO_TRANSPOSE, 3, 4, 250, &bytes) == HEED_OK && bytes > 0);
    CHECK(heed_matmul_workspace(NULL, HEED_TRANSPOSE, HEED_NO_TRANSPOSE, 5, 6, 7, NULL) == HEED_ERR_NULL);
    CHECK(heed_matmul_workspace(NULL, (heed_transpose)NOT_IN_ENUM, HEED_NO_TRANSPOSE, 5, 6, 7, &bytes) ==
          HEED_ERR_ENUM);
    CHECK(heed_matmul_workspace(NULL, HEED_NO_TRANSPOSE, (heed_transpose)NOT_IN_ENUM, 5, 6, 7, &bytes) ==
          HEED_ERR_ENUM);
    CHECK(heed_matmul_workspace(NULL, HEED_TRANSPOSE, HEED_NO_TRANSPOSE, SIZE_MAX, 6, 7, &bytes) == HEED_ERR_OVERFLOW);
    const size_t long_side = (size_t)1 << 5 * sizeof(size_t); /* its square is no size */
    CHECK(heed_matmul_workspace(NULL, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, long_side, 1, long_side, &bytes) ==
          HEED_ERR_OVERFLOW);
    heed_context_options eight = HEED_CONTEXT_OPTIONS_INIT;
    heed_context *wide = NULL;
    eight.threads = 8;
    CHECK(heed_context_create(&wide, &eight) == HEED_OK);
    CHECK(heed_matmul_workspace(wide, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, SIZE_MAX, 16, 16, &bytes) ==
          HEED_ERR_OVERFLOW);
    CHECK(heed_matmul_workspace(wide, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, SIZE_MAX / 2, SIZE_MAX / 2, 1, &bytes) ==
          HEED_ERR_OVERFLOW);
    heed_context_destroy(wide);
    CHECK(heed_matmul_workspace(NULL, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, 5, SIZE_MAX, SIZE_MAX / 2, &bytes) ==
          HEED_ERR_OVERFLOW);
    for (int ta = 0; ta < 2; ta++)
        for (int tb = 0; tb < 2; tb++) {
            size_t none = 1, nor_here = 1;
            CHECK(heed_matmul_workspace(NULL, (heed_transpose)ta, (heed_transpose)tb, 0, SIZE_MAX, SIZE_MAX, &none) ==
                  HEED_OK);
            CHECK(heed_matmul_workspace(NULL, (heed_transpose)ta, (heed_transpose)tb, SIZE_MAX, 0, SIZE_MAX,
                                        &nor_here) == HEED_OK);
            CHECK(none == 0 && nor_here == 0);
        }
#define WITH_WORKSPACE(memory_, bytes_)                                                                                \
    (p.ta = HEED_TRANSPOSE, p.m = 3, p.n = 4, p.k = 250, p.lda = 3, p.ldb = 4,                                         \
     p.memory = (heed_workspace){memory_, bytes_}, p.workspace = &p.memory)
    CHECK(bytes <= (SLOTS - 4) * SLOT * sizeof(float));
    GOOD(WITH_WORKSPACE(at(4), bytes));
    WRONG(HEED_ERR_WORKSPACE, WITH_WORKSPACE(at(4), bytes - 1));
    WRONG(HEED_ERR_WORKSPACE, WITH_WORKSPACE(at(4), 0));
    WRONG(HEED_ERR_NULL, WITH_WORKSPACE(NULL, bytes));
    WRONG(HEED_ERR_ALIGNMENT, WITH_WORKSPACE(shifted(at(4), 2), bytes));
    WRONG(HEED_ERR_OVERLAP, WITH_WORKSPACE(at(0), bytes));
    WRONG(HEED_ERR_OVERLAP, WITH_WORKSPACE(at(1) + 3, bytes));
    WRONG(HEED_ERR_OVERLAP, WITH_WORKSPACE(at(1) - bytes / 4 + 1, bytes));
    WRONG(HEED_ERR_OVERLAP, WITH_WORKSPACE(at(2), bytes));
    /* Operands that there are addresses for, but not for what is packed of them. */
    WRONG(HEED_ERR_OVERFLOW, (WITH_WORKSPACE(at(4), bytes), p.k = PTRDIFF_MAX / (16 * sizeof(float)) + 1, p.c = at(0),
                              p.a = at(1), p.b = at(2)));
#undef call
    end();

    begin("heed_matmul's small products need no workspace");
    static const size_t sizes[][3] = {{5, 6, 7},    {4, 4, 64},    {256, 1, 256}, {31, 256, 16},
                                      {64, 64, 64}, {31, 512, 16}, {1, 32, 256},  {40, 80, 50}};
    enum { FOR_ONE = 4 }; /* as many are left to one thread */
    heed_context_options options = HEED_CONTEXT_OPTIONS_INIT;
    heed_context *one = NULL, *many = NULL;
    options.threads = 1;
    CHECK(heed_context_create(&one, &options) == HEED_OK);
    options.threads = 64;
    CHECK(heed_context_create(&many, &options) == HEED_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t needed[2] = {1, 1};
        CHECK(heed_matmul_workspace(one, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, sizes[i][0], sizes[i][1], sizes[i][2],
                                    &needed[0]) == HEED_OK);
        CHECK(heed_matmul_workspace(many, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, sizes[i][0], sizes[i][1], sizes[i][2],
                                    &needed[1]) == HEED_OK);
        check_that(needed[0] == 0 && (needed[1] == 0 || i >= FOR_ONE), "%zu bytes for product %zu, %zu for 64 threads",
                   needed[0], i, needed[1]);
    }
    heed_context_destroy(many);
    size_t of_none = 0;
    CHECK(heed_matmul_workspace(one, HEED_TRANSPOSE, HEED_TRANSPOSE, 300, 512, 1000, &bytes) == HEED_OK);
    CHECK(heed_matmul_workspace(NULL, HEED_TRANSPOSE, HEED_TRANSPOSE, 300, 512, 1000, &of_none) == HEED_OK &&
          of_none == bytes);
    CHECK(heed_matmul_workspace(one, HEED_NO_TRANSPOSE, HEED_NO_TRANSPOSE, 300, 512, 1000, &bytes) == HEED_OK &&
          bytes > 0);
#define call()                                                                                                         \
    heed_matmul(one, p.ta, p.tb, p.m, p.n, p.k, p.alpha, p.a, p.lda, p.b, p.ldb, p.beta, p.c, p.ldc, p.workspace)
    GOOD((p.memory = (heed_workspace){NULL, 0}, p.workspace = &p.memory));
    GOOD((p.memory = (heed_workspace){NULL, 0}, p.workspace = &p.memory, p.ta = HEED_TRANSPOSE));
    GOOD((p.memory = (heed_workspace){p.c, 64}, p.workspace = &p.memory));
    WRONG(HEED_ERR_NULL, (p.memory = (heed_workspace){NULL, 0}, p.workspace = &p.memory, p.a = NULL));
    heed_context_destroy(one);
#undef reset
#undef call
    end();
}

/* ---- weights and linear ---- */

static void test_weights(void)
{
    static struct {
        heed_type type;
        heed_weight_layout layout;
        size_t in, out, ld, bytes;
        float *src;
        void *memory;
        const heed_weights *weights, **result;
    } p;
#define reset()                                                                                                        \
    (p.type = HEED_TYPE_F32, p.layout = HEED_LAYOUT_IN_OUT, p.in = 5, p.out = 20, p.ld = 21,                           \
     p.bytes = 64 + 4 * 5 * 32, p.src = at(1), p.memory = at(2), p.result = &p.weights)
#define call() heed_weights_pack(NULL, p.type, p.layout, p.in, p.out, p.src, p.ld, p.memory, p.bytes, p.result)
    begin("heed_weights_pack refuses");
    GOOD((void)0);
    WRONG(HEED_ERR_ENUM, p.type = (heed_type)NOT_IN_ENUM);
    WRONG(HEED_ERR_ENUM, p.layout = (heed_weight_layout)NOT_IN_ENUM);
    WRONG(HEED_ERR_NULL, p.src = NULL);
    WRONG(HEED_ERR_STRIDE, p.ld = 19);
    WRONG(HEED_ERR_STRIDE, (p.layout = HEED_LAYOUT_OUT_IN, p.ld = 4));
    WRONG(HEED_ERR_ALIGNMENT, p.src = shifted(p.src, 1));
    WRONG(HEED_ERR_NULL, p.memory = NULL);
    WRONG(HEED_ERR_ALIGNMENT, p.memory = shifted(p.memory, 2));
    WRONG(HEED_ERR_OVERLAP, p.memory = p.src);
    WRONG(HEED_ERR_OVERLAP, p.memory = p.src + 50);
    WRONG(HEED_ERR_OVERLAP, p.memory = p.src - (64 / 4 + 5 * 32 - 1));
    GOOD(p.memory = p.src - (64 / 4 + 5 * 32));
    WRONG(HEED_ERR_WORKSPACE, p.bytes--);
    WRONG(HEED_ERR_WORKSPACE, p.bytes = 0);
    WRONG(HEED_ERR_NULL, p.result = NULL);
#define HUGE_SIZE(size)                                                                                                \
    WRONG(HEED_ERR_OVERFLOW, p.in = size);                                                                             \
    WRONG(HEED_ERR_OVERFLOW, (p.out = p.ld = size));                                                                   \
    WRONG(HEED_ERR_OVERFLOW, p.ld = size);
    HUGE_SIZES(HUGE_SIZE)
#undef HUGE_SIZE
    GOOD((p.in = 0, p.src = NULL));
    GOOD((p.out = 0, p.src = NULL));
    const size_t many = ((size_t)1 << sizeof(size_t) * 4) + 5; /* where size_t is wide, a number of two words */
    for (int in = 0; in < 2; in++) {
        reset();
        p.in = in ? many : 0;
        p.out = p.ld = in ? 0 : many;
        CHECK(call() == HEED_OK && heed_weights_open(p.memory, 64, &p.weights) == HEED_OK);
        CHECK(heed_weights_in(p.weights) == p.in && heed_weights_out(p.weights) == p.out);
        arena = pristine;
    }
#undef reset
#undef call
#define PACK_PAIR(gate, ld_gate, up, ld_up, bytes)                                                                     \
    heed_weights_pack_gated(NULL, HEED_TYPE_F32, HEED_LAYOUT_IN_OUT, 5, 20, gate, ld_gate, up, ld_up, at(2), bytes,    \
                            &p.weights)
    enum { PAIR = 64 + 2 * 4 * 5 * 32 };
    CHECK(PACK_PAIR(at(0), 21, at(1), 20, PAIR) == HEED_OK && heed_weights_gated(p.weights) == 1);
    CHECK(heed_weights_in(p.weights) == 5 && heed_weights_out(p.weights) == 20);
    CHECK(heed_weights_open(at(2), PAIR, &p.weights) == HEED_OK && heed_weights_gated(p.weights) == 1);
    CHECK(heed_weights_open(at(2), PAIR - 1, &p.weights) == HEED_ERR_FORMAT);
    CHECK(PACK_PAIR(NULL, 21, at(1), 20, PAIR) == HEED_ERR_NULL);
    CHECK(PACK_PAIR(at(0), 21, NULL, 20, PAIR) == HEED_ERR_NULL);
    CHECK(PACK_PAIR(at(0), 19, at(1), 20, PAIR) == HEED_ERR_STRIDE);
    CHECK(PACK_PAIR(at(0), 20, at(1), 19, PAIR) == HEED_ERR_STRIDE);
    CHECK(PACK_PAIR(at(0), 20, shifted(at(1), 1), 20, PAIR) == HEED_ERR_ALIGNMENT);
    CHECK(PACK_PAIR(at(0), 20, at(1), 20, PAIR - 1) == HEED_ERR_WORKSPACE);
    CHECK(PACK_PAIR(at(0), 20, at(2) + 8, 20, PAIR) == HEED_ERR_OVERLAP);
#undef PACK_PAIR
    size_t bytes = 0;
    CHECK(heed_weights_gated_bytes(HEED_TYPE_F32, 5, 20, &bytes) == HEED_OK && bytes == PAIR);
    CHECK(heed_weights_gated_bytes(HEED_TYPE_F32, SIZE_MAX / 8, 1, &bytes) == HEED_ERR_OVERFLOW && bytes == PAIR);
    CHECK(heed_weights_bytes(HEED_TYPE_F32, 5, 20, &bytes) == HEED_OK && bytes == 64 + 4 * 5 * 32);
    CHECK(heed_weights_bytes(HEED_TYPE_F32, 5, 20, NULL) == HEED_ERR_NULL);
    CHECK(heed_weights_bytes((heed_type)NOT_IN_ENUM, 5, 20, &bytes) == HEED_ERR_ENUM);
    CHECK(heed_weights_bytes(HEED_TYPE_F32, SIZE_MAX, 1, &bytes) == HEED_ERR_OVERFLOW);
    CHECK(heed_weights_bytes(HEED_TYPE_F32, 1, SIZE_MAX, &bytes) == HEED_ERR_OVERFLOW);
    CHECK(heed_weights_bytes(HEED_TYPE_F32, SIZE_MAX / 8, 2, &bytes) == HEED_ERR_OVERFLOW);
    CHECK(heed_weights_bytes(HEED_TYPE_F32, PTRDIFF_MAX / 64, 16, &bytes) == HEED_ERR_OVERFLOW);
    CHECK(bytes == 64 + 4 * 5 * 32);
    end();
}

static heed_status open_status(const void *memory, size_t bytes)
{
    const heed_weights *weights = (const heed_weights *)memory;
    heed_status status = heed_weights_open(memory, bytes, &weights);
    CHECK(weights == memory);
    return status;
}

static void swap_bytes(unsigned char *bytes)
{
    unsigned char copy[4];
    memcpy(copy, bytes, 4);
    for (int i = 0; i < 4; i++)
        bytes[i] = copy[3 - i];
}

static void test_open(void)
{
    enum { IN = 5, OUT = 20, BYTES = 64 + 4 * IN * 32 };
    float *copy = buffer(2 * BYTES / 4 + 1, 0);
    unsigned char *bytes = (unsigned char *)copy;
    const heed_weights *good = packed(IN, OUT, at(0)), *none;
    begin("heed_weights_open refuses");
    memcpy(copy, good, BYTES);
    CHECK(open_status(copy, BYTES) == HEED_OK);
    CHECK(open_status(copy, BYTES + 1000) == HEED_OK);
    CHECK(heed_weights_in((heed_weights *)(void *)copy) == IN && heed_weights_out((heed_weights *)(void *)copy) == OUT);
    CHECK(heed_weights_open(NULL, BYTES, &none) == HEED_ERR_NULL);
    CHECK(heed_weights_open(copy, BYTES, NULL) == HEED_ERR_NULL);
    CHECK(open_status(bytes + 1, BYTES) == HEED_ERR_ALIGNMENT);
    for (size_t n = 0; n < BYTES; n++)
        CHECK(open_status(copy, n) == HEED_ERR_FORMAT);
    for (size_t n = 0; n < 64; n += 4) { /* nor is a header read that is not there */
        void *part = guarded_bytes(n, 1);
        memcpy(part, copy, n);
        CHECK(open_status(part, n) == HEED_ERR_FORMAT);
    }
    CHECK(open_status(at(0), sizeof arena) == HEED_ERR_FORMAT);
    for (size_t word = 0; word < 4; word++) { /* magic, version, type, panel */
        memcpy(copy, good, BYTES);
        bytes[4 * word]++;
        CHECK(open_status(copy, BYTES) == HEED_ERR_FORMAT);
        memcpy(copy, good, BYTES);
        swap_bytes(bytes + 4 * word);
        CHECK(open_status(copy, BYTES) == (memcmp(copy, good, BYTES) ? HEED_ERR_FORMAT : HEED_OK));
    }
    for (size_t word = 8; word < 16; word++) { /* a second matrix that is not there, and reserved words */
        memcpy(copy, good, BYTES);
        bytes[4 * word] = word == 8 ? 2 : 1;
        CHECK(open_status(copy, 2 * BYTES) == HEED_ERR_FORMAT);
    }
    for (size_t word = 4; word < 8; word++) { /* sizes that the memory cannot hold */
        memcpy(copy, good, BYTES);
        memset(bytes + 4 * word, 0xff, 4);
        CHECK(open_status(copy, BYTES) == HEED_ERR_FORMAT);
    }
    end();
}

static void test_linear(void)
{
    static struct {
        size_t m, ldx, ldy;
        float *x, *y;
        const heed_weights *weights;
        heed_linear_options o;
        const heed_linear_options *given;
    } p;
    const heed_linear_options defaults = HEED_LINEAR_OPTIONS_INIT;
    const heed_weights *weights = packed(5, 20, at(0)), *pair = packed_pair(5, 20, at(0), at(1));
    const heed_weights *square = packed(5, 5, at(0));
    float *garbage = buffer(256, 0), *residual = NULL;
    memset(garbage, 0, 256 * sizeof(float));
#define reset()                                                                                                        \
    (p.m = 3, p.ldx = 6, p.ldy = 21, p.x = at(0), p.y = at(1), p.weights = weights, p.o = defaults, p.o.bias = at(2),  \
     p.o.residual = residual, p.o.ld_residual = 22, p.given = &p.o)
#define call() heed_linear(NULL, p.m, p.x, p.ldx, p.weights, p.given, p.y, p.ldy)
    begin("heed_linear refuses");
    for (int small = 0; small < 2; small++) { /* which has checks of its own, without a residual */
        residual = small ? NULL : at(3);
        GOOD((void)0);
        GOOD(p.given = NULL);
        WRONG(HEED_ERR_NULL, p.x = NULL);
        WRONG(HEED_ERR_NULL, p.y = NULL);
        WRONG(HEED_ERR_NULL, p.weights = NULL);
        WRONG(HEED_ERR_OVERLAP, (p.weights = square, p.y = p.x, p.ldy = p.ldx));
        WRONG(HEED_ERR_FORMAT, p.weights = (const heed_weights *)(void *)garbage);
        WRONG(HEED_ERR_ALIGNMENT, p.weights = shifted(p.weights, 2));
#define HUGE_STRIDE(size) GOOD((p.m = 1, p.ldx = p.ldy = p.o.ld_residual = size));
        HUGE_SIZES(HUGE_STRIDE)
#undef HUGE_STRIDE
        WRONG(HEED_ERR_STRIDE, p.ldx = 4);
        WRONG(HEED_ERR_STRIDE, p.ldy = 19);
        WRONG(HEED_ERR_ALIGNMENT, p.x = shifted(p.x, 1));
        WRONG(HEED_ERR_ALIGNMENT, p.y = shifted(p.y, 1));
        WRONG(HEED_ERR_ALIGNMENT, p.o.bias = shifted(p.o.bias, 1));
        WRONG(HEED_ERR_ENUM, p.o.activation = (heed_activation)NOT_IN_ENUM);
        WRONG(HEED_ERR_VALUE, p.o.up_bias = at(4));
        WRONG(HEED_ERR_OVERLAP, p.y = p.x);
        WRONG(HEED_ERR_OVERLAP, p.y = p.x + 16);
        WRONG(HEED_ERR_OVERLAP, p.x = p.y + 2 * 21 + 19);
        GOOD(p.x = p.y + 2 * 21 + 20);
        WRONG(HEED_ERR_OVERLAP, (p.y = at(2), p.o.bias = at(2) + 61));
        WRONG(HEED_ERR_OVERLAP, p.o.bias = p.y - 19);
        WRONG(HEED_ERR_OVERLAP, (p.weights = pair, p.o.up_bias = p.y - 19));
        GOOD((p.weights = pair, p.o.bias = p.o.up_bias = p.y - 20));
        WRONG(HEED_ERR_OVERLAP, (p.y = shifted(weights, 128)));
        WRONG(HEED_ERR_OVERLAP, (p.y = shifted(weights, 4 * (16 + 5 * 32 - 1))));
    }
    residual = at(3);
    WRONG(HEED_ERR_STRIDE, p.o.ld_residual = 19);
    WRONG(HEED_ERR_ALIGNMENT, p.o.residual = shifted(p.o.residual, 1));
    WRONG(HEED_ERR_OVERLAP, (p.y = at(3), p.ldy = 21));
    WRONG(HEED_ERR_OVERLAP, (p.y = at(3) + 1, p.ldy = 22));
    GOOD((p.y = at(3), p.ldy = 22));
#define HUGE_SIZE(size)                                                                                                \
    WRONG(HEED_ERR_OVERFLOW, p.m = size);                                                                              \
    WRONG(HEED_ERR_OVERFLOW, p.ldx = size);                                                                            \
    WRONG(HEED_ERR_OVERFLOW, p.ldy = size);                                                                            \
    WRONG(HEED_ERR_OVERFLOW, p.o.ld_residual = size);
    HUGE_SIZES(HUGE_SIZE)
#undef HUGE_SIZE
    WRONG_STRUCTS(p.o, p.given);
    GOOD((p.m = 0, p.x = p.y = NULL, p.o = defaults));
#undef reset
#undef call
    end();
}

/* ---- rows ---- */

typedef heed_status row_operator(size_t rows, size_t cols, const float *src, size_t ld_src, float *dst, size_t ld_dst);

static heed_status softmax(size_t rows, size_t cols, const float *src, size_t ld_src, float *dst, size_t ld_dst)
{
    return heed_softmax(NULL, rows, cols, src, ld_src, dst, ld_dst);
}

static heed_status gelu(size_t rows, size_t cols, const float *src, size_t ld_src, float *dst, size_t ld_dst)
{
    return heed_activate(NULL, HEED_ACTIVATION_GELU_ERF, rows, cols, src, ld_src, dst, ld_dst);
}

static heed_status l2(size_t rows, size_t cols, const float *src, size_t ld_src, float *dst, size_t ld_dst)
{
    return heed_l2_normalize(NULL, rows, cols, 1e-12f, src, ld_src, dst, ld_dst);
}

static heed_status layernorm(size_t rows, size_t cols, const float *src, size_t ld_src, float *dst, size_t ld_dst)
{
    return heed_layernorm(NULL, rows, cols, src, ld_src, NULL, dst, ld_dst);
}

static heed_status rmsnorm(size_t rows, size_t cols, const float *src, size_t ld_src, float *dst, size_t ld_dst)
{
    return heed_rmsnorm(NULL, rows, cols, src, ld_src, NULL, dst, ld_dst);
}

static void test_row_operator(const char *name, row_operator *run)
{
    static struct {
        size_t rows, cols, ld_src, ld_dst;
        float *src, *dst;
    } p;
#define reset() (p.rows = 4, p.cols = 9, p.ld_src = 10, p.ld_dst = 11, p.src = at(0), p.dst = at(1))
#define call() run(p.rows, p.cols, p.src, p.ld_src, p.dst, p.ld_dst)
    begin("%s refuses", name);
    GOOD((void)0);
    WRONG(HEED_ERR_NULL, p.src = NULL);
    WRONG(HEED_ERR_NULL, p.dst = NULL);
    WRONG(HEED_ERR_STRIDE, p.ld_src = 8);
    WRONG(HEED_ERR_STRIDE, p.ld_dst = 8);
    WRONG(HEED_ERR_STRIDE, (p.rows = 1, p.ld_src = 8));
    WRONG(HEED_ERR_STRIDE, (p.rows = 1, p.ld_dst = 8));
    WRONG(HEED_ERR_ALIGNMENT, p.src = shifted(p.src, 2));
    WRONG(HEED_ERR_ALIGNMENT, p.dst = shifted(p.dst, 1));
    WRONG(HEED_ERR_OVERLAP, p.dst = p.src);
    WRONG(HEED_ERR_OVERLAP, (p.dst = p.src + 1, p.ld_dst = 10));
    WRONG(HEED_ERR_OVERLAP, p.dst = p.src + 3 * 10 + 8);
    GOOD(p.dst = p.src + 3 * 10 + 9);
    GOOD((p.dst = p.src, p.ld_dst = p.ld_src));
    GOOD((p.dst = p.src, p.rows = 1));
    WRONG(HEED_ERR_OVERLAP, (p.dst = p.src + 1, p.rows = 1));
#define HUGE_SIZE(size)                                                                                                \
    WRONG(HEED_ERR_OVERFLOW, p.rows = size);                                                                           \
    WRONG(HEED_ERR_OVERFLOW, (p.cols = p.ld_src = p.ld_dst = size));                                                   \
    WRONG(HEED_ERR_OVERFLOW, p.ld_src = size);                                                                         \
    WRONG(HEED_ERR_OVERFLOW, p.ld_dst = size);
    HUGE_SIZES(HUGE_SIZE)
#undef HUGE_SIZE
    WRONG(HEED_OK, (p.rows = 0, p.src = p.dst = NULL));
    WRONG(HEED_OK, (p.cols = 0, p.src = p.dst = NULL));
    reset();
    float *in_place = at(0), *want = buffer(4 * 10, 0);
    CHECK(run(4, 9, in_place, 10, want, 10) == HEED_OK && run(4, 9, in_place, 10, in_place, 10) == HEED_OK);
    check_same(4, 9, in_place, 10, want, 10, "in place");
    arena = pristine;
#undef reset
#undef call
    end();
}

static void test_row_values(void)
{
    size_t index[4] = {7, 7, 7, 7};
    begin("activate, l2_normalize, argmax refuse");
    arena = pristine;
    expect(HEED_ERR_ENUM, heed_activate(NULL, (heed_activation)NOT_IN_ENUM, 2, 3, at(0), 3, at(1), 3), "activation");
    const float wrong[] = {-1e-6f, -INFINITY, INFINITY, NAN};
    for (size_t i = 0; i < COUNT(wrong); i++)
        expect(HEED_ERR_VALUE, heed_l2_normalize(NULL, 2, 3, wrong[i], at(0), 3, at(1), 3), "eps");
    expect(HEED_ERR_SHAPE, heed_argmax(NULL, 2, 0, at(0), 3, index), "cols");
    expect(HEED_ERR_NULL, heed_argmax(NULL, 2, 3, NULL, 3, index), "src");
    expect(HEED_ERR_NULL, heed_argmax(NULL, 2, 3, at(0), 3, NULL), "index");
    expect(HEED_ERR_STRIDE, heed_argmax(NULL, 2, 3, at(0), 2, index), "ld");
    expect(HEED_ERR_ALIGNMENT, heed_argmax(NULL, 2, 3, shifted(at(0), 2), 3, index), "src");
    expect(HEED_ERR_ALIGNMENT, heed_argmax(NULL, 2, 3, at(0), 3, shifted(index, 2)), "index");
    expect(HEED_ERR_OVERLAP, heed_argmax(NULL, 2, 3, at(0), 3, (size_t *)(void *)at(0)), "index");
    expect(HEED_ERR_OVERFLOW, heed_argmax(NULL, SIZE_MAX, 3, at(0), 3, index), "rows");
    expect(HEED_ERR_OVERFLOW, heed_argmax(NULL, 2, SIZE_MAX / 2, at(0), SIZE_MAX / 2, index), "cols");
    for (size_t i = 0; i < 4; i++)
        CHECK(index[i] == 7);
    expect(HEED_OK, heed_argmax(NULL, 0, 0, NULL, 0, NULL), "no rows");
    end();
}

static heed_status masked_softmax(size_t rows, size_t cols, const float *src, size_t ld_src, float *dst, size_t ld_dst)
{
    return heed_masked_softmax(NULL, rows, cols, src, ld_src, NULL, dst, ld_dst);
}

static heed_status log_softmax(size_t rows, size_t cols, const float *src, size_t ld_src, float *dst, size_t ld_dst)
{
    return heed_log_softmax(NULL, rows, cols, src, ld_src, NULL, dst, ld_dst);
}

/* Two batches of two heads of three rows. */
static void test_masked_softmax(int logarithm)
{
    static struct {
        size_t rows, cols, ld_src, ld_dst;
        float *src, *dst;
        heed_softmax_options o;
        const heed_softmax_options *given;
    } p;
    const heed_softmax_options defaults = HEED_SOFTMAX_OPTIONS_INIT;
    const char *name = logarithm ? "heed_log_softmax" : "heed_masked_softmax";
#define reset()                                                                                                        \
    (p.rows = 12, p.cols = 9, p.ld_src = 10, p.ld_dst = 11, p.src = at(0), p.dst = at(1), p.o = defaults,              \
     p.o.mask = (heed_mask){at(2), HEED_MASK_ADDITIVE, 60, 30, 9}, p.o.mask_rows = 3, p.o.mask_heads = 2,              \
     p.given = &p.o)
#define call()                                                                                                         \
    (logarithm ? heed_log_softmax : heed_masked_softmax)(NULL, p.rows, p.cols, p.src, p.ld_src, p.given, p.dst,        \
                                                         p.ld_dst)
    begin("%s refuses wrong options", name);
    GOOD((void)0);
    GOOD(p.given = NULL);
    WRONG(HEED_ERR_VALUE, p.o.scale = 0.0f);
    WRONG(HEED_ERR_VALUE, p.o.scale = -1.0f);
    WRONG(HEED_ERR_VALUE, p.o.scale = INFINITY);
    WRONG(HEED_ERR_VALUE, p.o.scale = NAN);
    GOOD(p.o.scale = 0x1p-149f);
    WRONG(HEED_ERR_ENUM, p.o.mask.type = (heed_mask_type)NOT_IN_ENUM);
    WRONG(HEED_ERR_NULL, p.o.mask.data = NULL);
    WRONG(HEED_ERR_ALIGNMENT, p.o.mask.data = shifted(p.o.mask.data, 2));
    GOOD((p.o.mask.type = HEED_MASK_BOOLEAN, p.o.mask.data = shifted(p.o.mask.data, 1)));
    GOOD((p.o.mask.type = HEED_MASK_NONE, p.o.mask.data = NULL));
    GOOD((p.o.mask.type = HEED_MASK_NONE, p.o.mask_rows = 5));
    WRONG(HEED_ERR_SHAPE, p.o.mask_rows = 5);
    WRONG(HEED_ERR_SHAPE, p.o.mask_heads = 3);
    WRONG(HEED_ERR_SHAPE, p.o.mask_heads = SIZE_MAX);
    WRONG(HEED_ERR_SHAPE, (p.o.mask_rows = SIZE_MAX / 2 + 1, p.o.mask_heads = 2));
    WRONG(HEED_ERR_SHAPE, p.rows = 11);
    GOOD((p.o.mask_rows = 0, p.o.mask_heads = 0));
    WRONG(HEED_OK, (p.rows = 0, p.o.mask_rows = 0));
    GOOD(p.o.mask.batch_stride = p.o.mask.head_stride = p.o.mask.row_stride = 0);
    WRONG(HEED_ERR_OVERFLOW, p.o.mask.batch_stride = SIZE_MAX);
    WRONG(HEED_ERR_OVERFLOW, p.o.mask.head_stride = SIZE_MAX / 2);
    WRONG(HEED_ERR_OVERFLOW, p.o.mask.row_stride = SIZE_MAX / 4);
    WRONG(HEED_ERR_OVERLAP, p.dst = at(2));
    WRONG(HEED_ERR_OVERLAP, p.o.mask.data = p.dst + 11 * 11 + 8);
    GOOD(p.o.mask.data = p.dst + 11 * 11 + 9);
    GOOD(p.o.mask.data = p.src);
    WRONG_STRUCTS(p.o, p.given);
    WRONG(HEED_OK, (p.rows = 0, p.src = p.dst = NULL, p.o.mask.data = NULL));
    WRONG(HEED_OK, (p.cols = 0, p.src = p.dst = NULL, p.o.mask.data = NULL));
    end();
    begin("%s and its mask's strides", name);
    float *want = buffer(12 * 9, 0), *got = buffer(12 * 9, 0);
    for (size_t row = 0; row < 12; row++) {
        reset();
        p.o.mask.data = at(2) + row / 6 * 60 + row / 3 % 2 * 30 + row % 3 * 9;
        p.o.mask_rows = p.o.mask_heads = 0;
        p.rows = 1;
        p.src += row * 10;
        p.dst = want + row * 9;
        CHECK(call() == HEED_OK);
    }
    reset();
    p.dst = got;
    p.ld_dst = 9;
    CHECK(call() == HEED_OK);
    check_same(12, 9, got, 9, want, 9, "rows one by one");
#undef reset
#undef call
    end();
}

static void test_gated(void)
{
    static struct {
        heed_activation activation;
        size_t rows, cols, ld_gate, ld_up, ld_dst;
        float *gate, *up, *dst;
    } p;
#define reset()                                                                                                        \
    (p.activation = HEED_ACTIVATION_SILU, p.rows = 4, p.cols = 9, p.ld_gate = 10, p.ld_up = 11, p.ld_dst = 12,         \
     p.gate = at(0), p.up = at(1), p.dst = at(2))
#define call()                                                                                                         \
    heed_activate_gated(NULL, p.activation, p.rows, p.cols, p.gate, p.ld_gate, p.up, p.ld_up, p.dst, p.ld_dst)
    begin("heed_activate_gated refuses");
    GOOD((void)0);
    WRONG(HEED_ERR_ENUM, p.activation = (heed_activation)NOT_IN_ENUM);
    WRONG(HEED_ERR_NULL, p.gate = NULL);
    WRONG(HEED_ERR_NULL, p.up = NULL);
    WRONG(HEED_ERR_NULL, p.dst = NULL);
    WRONG(HEED_ERR_STRIDE, p.ld_gate = 8);
    WRONG(HEED_ERR_STRIDE, p.ld_up = 8);
    WRONG(HEED_ERR_STRIDE, p.ld_dst = 8);
    WRONG(HEED_ERR_ALIGNMENT, p.gate = shifted(p.gate, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.up = shifted(p.up, 2));
    WRONG(HEED_ERR_ALIGNMENT, p.dst = shifted(p.dst, 3));
    WRONG(HEED_ERR_OVERLAP, p.dst = p.gate);
    WRONG(HEED_ERR_OVERLAP, p.dst = p.up);
    WRONG(HEED_ERR_OVERLAP, p.dst = p.up - 3 * 12 - 8);
    GOOD(p.dst = p.up - 3 * 12 - 9);
    GOOD(p.up = p.gate);
    GOOD((p.dst = p.gate, p.ld_dst = p.ld_gate));
    GOOD((p.dst = p.up, p.ld_dst = p.ld_up));
#define HUGE_SIZE(size)                                                                                                \
    WRONG(HEED_ERR_OVERFLOW, p.rows = size);                                                                           \
    WRONG(HEED_ERR_OVERFLOW, p.ld_gate = size);                                                                        \
    WRONG(HEED_ERR_OVERFLOW, p.ld_up = size);                                                                          \
    WRONG(HEED_ERR_OVERFLOW, p.ld_dst = size);
    HUGE_SIZES(HUGE_SIZE)
#undef HUGE_SIZE
    WRONG(HEED_OK, (p.rows = 0, p.gate = p.up = p.dst = NULL));
    WRONG(HEED_OK, (p.cols = 0, p.gate = p.up = p.dst = NULL));
#undef reset
#undef call
    end();
}

static void test_top_k(void)
{
    static struct {
        size_t rows, cols, k, ld, ld_values, ld_index, *index;
        float *src, *values;
    } p;
#define reset()                                                                                                        \
    (p.rows = 4, p.cols = 9, p.k = 5, p.ld = 10, p.ld_values = 6, p.ld_index = 7, p.src = at(0), p.values = at(1),     \
     p.index = (size_t *)(void *)at(2))
#define call() heed_top_k(NULL, p.rows, p.cols, p.k, p.src, p.ld, p.values, p.ld_values, p.index, p.ld_index)
    begin("heed_top_k refuses");
    GOOD((void)0);
    GOOD(p.values = NULL);
    WRONG(HEED_ERR_SHAPE, p.k = 10);
    WRONG(HEED_ERR_SHAPE, p.k = SIZE_MAX);
    GOOD((p.k = p.ld_values = p.ld_index = 9));
    WRONG(HEED_ERR_NULL, p.src = NULL);
    WRONG(HEED_ERR_NULL, p.index = NULL);
    WRONG(HEED_ERR_STRIDE, p.ld = 8);
    WRONG(HEED_ERR_STRIDE, p.ld_values = 4);
    WRONG(HEED_ERR_STRIDE, p.ld_index = 4);
    WRONG(HEED_ERR_ALIGNMENT, p.src = shifted(p.src, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.values = shifted(p.values, 2));
    WRONG(HEED_ERR_ALIGNMENT, p.index = shifted(p.index, 2));
    WRONG(HEED_ERR_OVERLAP, p.values = p.src);
    WRONG(HEED_ERR_OVERLAP, p.values = at(2));
    WRONG(HEED_ERR_OVERLAP, p.index = (size_t *)(void *)(at(0) + 38));
#define HUGE_SIZE(size)                                                                                                \
    WRONG(HEED_ERR_OVERFLOW, p.rows = size);                                                                           \
    WRONG(HEED_ERR_OVERFLOW, p.ld = size);                                                                             \
    WRONG(HEED_ERR_OVERFLOW, p.ld_values = size);                                                                      \
    WRONG(HEED_ERR_OVERFLOW, p.ld_index = size);
    HUGE_SIZES(HUGE_SIZE)
#undef HUGE_SIZE
    WRONG(HEED_OK, (p.rows = 0, p.src = p.values = NULL, p.index = NULL));
    WRONG(HEED_OK, (p.rows = 0, p.k = p.ld_values = p.ld_index = 10));
    WRONG(HEED_OK, (p.k = 0, p.src = p.values = NULL, p.index = NULL));
#undef reset
#undef call
    end();
}

/* Rows for the operands that both norms have, in slots 0 to 5. */
#define NORM_ROWS                                                                                                      \
    GOOD((void)0);                                                                                                     \
    GOOD(p.given = NULL);                                                                                              \
    WRONG(HEED_ERR_NULL, p.x = NULL);                                                                                  \
    WRONG(HEED_ERR_NULL, p.y = NULL);                                                                                  \
    WRONG(HEED_ERR_NULL, p.o.residual = NULL);                                                                         \
    WRONG(HEED_ERR_STRIDE, p.ldx = 8);                                                                                 \
    WRONG(HEED_ERR_STRIDE, p.ldy = 8);                                                                                 \
    WRONG(HEED_ERR_STRIDE, p.o.ld_residual = 8);                                                                       \
    WRONG(HEED_ERR_STRIDE, p.o.ld_sum = 8);                                                                            \
    WRONG(HEED_ERR_ALIGNMENT, p.x = shifted(p.x, 1));                                                                  \
    WRONG(HEED_ERR_ALIGNMENT, p.y = shifted(p.y, 1));                                                                  \
    WRONG(HEED_ERR_ALIGNMENT, p.o.scale = shifted(p.o.scale, 1));                                                      \
    WRONG(HEED_ERR_ALIGNMENT, p.o.residual = shifted(p.o.residual, 1));                                                \
    WRONG(HEED_ERR_ALIGNMENT, p.o.sum = shifted(p.o.sum, 1));                                                          \
    WRONG(HEED_ERR_VALUE, p.o.eps = -1e-6f);                                                                           \
    WRONG(HEED_ERR_VALUE, p.o.eps = NAN);                                                                              \
    WRONG(HEED_ERR_VALUE, p.o.eps = INFINITY);                                                                         \
    WRONG(HEED_ERR_VALUE, p.o.eps = -INFINITY);                                                                        \
    GOOD(p.o.eps = 0.0f);                                                                                              \
    WRONG(HEED_ERR_OVERLAP, p.y = p.x);                                                                                \
    WRONG(HEED_ERR_OVERLAP, p.y = at(2));                                                                              \
    WRONG(HEED_ERR_OVERLAP, p.y = at(4));                                                                              \
    WRONG(HEED_ERR_OVERLAP, (p.y = at(5), p.ldy = 13));                                                                \
    WRONG(HEED_ERR_OVERLAP, p.y = p.x + 38);                                                                           \
    WRONG(HEED_ERR_OVERLAP, p.o.sum = p.x);                                                                            \
    WRONG(HEED_ERR_OVERLAP, p.o.sum = at(4));                                                                          \
    WRONG(HEED_ERR_OVERLAP, p.o.sum = at(2) + 8);                                                                      \
    GOOD((p.y = p.x, p.ldy = p.ldx));                                                                                  \
    GOOD((p.y = at(4), p.ldy = 12));                                                                                   \
    GOOD((p.o.sum = p.x, p.o.ld_sum = p.ldx));                                                                         \
    GOOD((p.o.sum = at(4), p.o.ld_sum = 12));                                                                          \
    WRONG(HEED_ERR_OVERLAP, (p.y = p.o.sum = p.x, p.ldy = p.o.ld_sum = p.ldx));                                        \
    HUGE_SIZES(NORM_SIZE)                                                                                              \
    WRONG_STRUCTS(p.o, p.given);                                                                                       \
    WRONG(HEED_OK, (p.rows = 0, p.x = p.y = NULL));                                                                    \
    WRONG(HEED_OK, (p.cols = 0, p.x = p.y = NULL));

#define NORM_SIZE(size)                                                                                                \
    WRONG(HEED_ERR_OVERFLOW, p.rows = size);                                                                           \
    WRONG(HEED_ERR_OVERFLOW, p.ldx = size);                                                                            \
    WRONG(HEED_ERR_OVERFLOW, p.ldy = size);                                                                            \
    WRONG(HEED_ERR_OVERFLOW, p.o.ld_residual = size);                                                                  \
    WRONG(HEED_ERR_OVERFLOW, p.o.ld_sum = size);

static void test_layernorm(void)
{
    static struct {
        size_t rows, cols, ldx, ldy;
        float *x, *y;
        heed_layernorm_options o;
        const heed_layernorm_options *given;
    } p;
    const heed_layernorm_options defaults = HEED_LAYERNORM_OPTIONS_INIT;
#define reset()                                                                                                        \
    (p.rows = 4, p.cols = 9, p.ldx = 10, p.ldy = 11, p.x = at(0), p.y = at(1), p.o = defaults, p.o.scale = at(2),      \
     p.o.residual = at(4), p.o.ld_residual = 12, p.o.sum = at(5), p.o.ld_sum = 13, p.o.shift = at(3),                  \
     p.o.mean = at(6), p.o.inverse_deviation = at(7), p.given = &p.o)
#define call() heed_layernorm(NULL, p.rows, p.cols, p.x, p.ldx, p.given, p.y, p.ldy)
    begin("heed_layernorm refuses");
    NORM_ROWS
    WRONG(HEED_ERR_ALIGNMENT, p.o.shift = shifted(p.o.shift, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.o.mean = shifted(p.o.mean, 1));
    WRONG(HEED_OK, (p.cols = 0, p.o.mean = shifted(p.o.mean, 1)));
    WRONG(HEED_ERR_ALIGNMENT, p.o.inverse_deviation = shifted(p.o.inverse_deviation, 1));
    WRONG(HEED_ERR_OVERLAP, p.y = at(3));
    WRONG(HEED_ERR_OVERLAP, p.o.sum = at(3) + 8);
    WRONG(HEED_ERR_OVERLAP, p.o.mean = p.x + 38);
    WRONG(HEED_ERR_OVERLAP, p.o.mean = p.y - 3);
    WRONG(HEED_ERR_OVERLAP, p.o.inverse_deviation = p.y - 3);
    WRONG(HEED_ERR_OVERLAP, p.o.inverse_deviation = p.o.mean);
    WRONG(HEED_ERR_OVERLAP, p.o.inverse_deviation = p.o.sum);
    WRONG(HEED_ERR_OVERLAP, p.o.inverse_deviation = at(2));
    GOOD(p.o.mean = NULL);
    GOOD(p.o.inverse_deviation = NULL);
#undef reset
#undef call
    end();
}

static void test_rmsnorm(void)
{
    static struct {
        size_t rows, cols, ldx, ldy;
        float *x, *y;
        heed_rmsnorm_options o;
        const heed_rmsnorm_options *given;
    } p;
    const heed_rmsnorm_options defaults = HEED_RMSNORM_OPTIONS_INIT;
#define reset()                                                                                                        \
    (p.rows = 4, p.cols = 9, p.ldx = 10, p.ldy = 11, p.x = at(0), p.y = at(1), p.o = defaults, p.o.scale = at(2),      \
     p.o.residual = at(4), p.o.ld_residual = 12, p.o.sum = at(5), p.o.ld_sum = 13, p.o.inverse_rms = at(6),            \
     p.given = &p.o)
#define call() heed_rmsnorm(NULL, p.rows, p.cols, p.x, p.ldx, p.given, p.y, p.ldy)
    begin("heed_rmsnorm refuses");
    NORM_ROWS
    WRONG(HEED_ERR_ALIGNMENT, p.o.inverse_rms = shifted(p.o.inverse_rms, 1));
    WRONG(HEED_ERR_OVERLAP, p.o.inverse_rms = p.x + 38);
    WRONG(HEED_ERR_OVERLAP, p.o.inverse_rms = p.y);
    WRONG(HEED_ERR_OVERLAP, p.o.inverse_rms = at(2) + 8);
#undef reset
#undef call
    end();
}

/* y and sum in every place that they may take give the bits of separate memory. */
static void test_layernorm_aliases(void)
{
    float *y = buffer(40, 0), *sum = buffer(40, 0);
    heed_layernorm_options o = HEED_LAYERNORM_OPTIONS_INIT;
    begin("heed_layernorm in place");
    for (int alias = 0; alias < 6; alias++) {
        arena = pristine;
        o.residual = at(1);
        o.ld_residual = o.ld_sum = 10;
        o.sum = sum;
        CHECK(heed_layernorm(NULL, 4, 9, at(0), 10, &o, y, 10) == HEED_OK);
        float *const outputs[] = {at(2), at(0), at(1)}, *out = outputs[alias % 3];
        float *const sums[] = {at(3), alias % 3 == 0 ? at(0) : alias % 3 == 1 ? at(1) : at(0)};
        o.sum = sums[alias / 3];
        CHECK(heed_layernorm(NULL, 4, 9, at(0), 10, &o, out, 10) == HEED_OK);
        check_same(4, 9, out, 10, y, 10, "y");
        check_same(4, 9, o.sum, 10, sum, 10, "sum");
    }
    arena = pristine;
    end();
}

static void test_pool(void)
{
    static struct {
        heed_pooling pooling;
        size_t sequences, cols, ld_src, ld_dst, offset[4], *offsets;
        float *src, *dst;
    } p;
#define reset()                                                                                                        \
    (p.pooling = HEED_POOLING_MEAN, p.sequences = 3, p.cols = 5, p.ld_src = 6, p.ld_dst = 7, p.offset[0] = 1,          \
     p.offset[1] = 3, p.offset[2] = 3, p.offset[3] = 8, p.offsets = p.offset, p.src = at(0), p.dst = at(1))
#define call() heed_pool(NULL, p.pooling, p.sequences, p.offsets, p.cols, p.src, p.ld_src, p.dst, p.ld_dst)
    begin("heed_pool refuses");
    GOOD((void)0);
    GOOD(p.pooling = HEED_POOLING_FIRST);
    GOOD(p.pooling = HEED_POOLING_MAX);
    GOOD(p.pooling = HEED_POOLING_LAST);
    WRONG(HEED_ERR_ENUM, p.pooling = (heed_pooling)NOT_IN_ENUM);
    WRONG(HEED_ERR_NULL, p.offsets = NULL);
    WRONG(HEED_ERR_ALIGNMENT, p.offsets = shifted(p.offsets, 2));
    WRONG(HEED_ERR_INDEX, p.offset[0] = 4);
    WRONG(HEED_ERR_INDEX, p.offset[1] = 9);
    WRONG(HEED_ERR_INDEX, p.offset[3] = 2);
    WRONG(HEED_ERR_NULL, p.src = NULL);
    WRONG(HEED_ERR_NULL, p.dst = NULL);
    WRONG(HEED_ERR_STRIDE, p.ld_src = 4);
    WRONG(HEED_ERR_STRIDE, p.ld_dst = 4);
    WRONG(HEED_ERR_ALIGNMENT, p.src = shifted(p.src, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.dst = shifted(p.dst, 1));
    WRONG(HEED_ERR_OVERLAP, p.dst = p.src);
    WRONG(HEED_ERR_OVERLAP, p.dst = p.src + 46);
#define HUGE_SIZE(size)                                                                                                \
    WRONG(HEED_ERR_OVERFLOW, p.sequences = size);                                                                      \
    WRONG(HEED_ERR_OVERFLOW, p.offset[3] = size);                                                                      \
    WRONG(HEED_ERR_OVERFLOW, p.ld_src = size);                                                                         \
    WRONG(HEED_ERR_OVERFLOW, p.ld_dst = size);
    HUGE_SIZES(HUGE_SIZE)
#undef HUGE_SIZE
    WRONG(HEED_OK, (p.sequences = 0, p.offsets = NULL, p.src = p.dst = NULL));
    WRONG(HEED_OK, (p.cols = 0, p.src = p.dst = NULL));
    GOOD((p.offset[0] = p.offset[1] = p.offset[2] = p.offset[3] = 0, p.src = NULL));
    GOOD((p.offset[0] = p.offset[1] = p.offset[2] = p.offset[3] = 5, p.src = NULL));
    /* Rows before the first offset are no part of a call. */
    WRONG(HEED_ERR_OVERFLOW, (p.offset[0] = SIZE_MAX / 8, p.offset[1] = p.offset[2] = p.offset[3] = SIZE_MAX / 8 + 1));
    WRONG(HEED_OK, (p.cols = 0, p.offset[0] = p.offset[1] = 1, p.src = shifted(p.src, 1)));
#undef reset
#undef call
    end();
}

static void test_embed(void)
{
    static struct {
        size_t n, cols, tables, sequences, ld, offset[3], *offsets;
        heed_embedding_table table[9], *given;
        int32_t ids[6];
        float *dst;
    } p;
#define reset()                                                                                                        \
    (p.n = 6, p.cols = 5, p.tables = 2, p.sequences = 2, p.ld = 6, p.offset[0] = 0, p.offset[1] = 2, p.offset[2] = 6,  \
     p.offsets = p.offset, p.table[0] = (heed_embedding_table){at(0), 4, 7, p.ids, 0},                                 \
     p.table[1] = (heed_embedding_table){at(1), 5, 6, NULL, 1}, p.given = p.table,                                     \
     memcpy(p.ids, (const int32_t[]){0, 3, 1, 2, 3, 0}, sizeof p.ids), p.dst = at(2))
#define call() heed_embed(NULL, p.n, p.cols, p.tables, p.given, p.sequences, p.offsets, p.dst, p.ld)
    begin("heed_embed refuses");
    GOOD((void)0);
    GOOD((p.tables = 8, p.table[2] = p.table[3] = p.table[4] = p.table[5] = p.table[6] = p.table[7] = p.table[0]));
    WRONG(HEED_ERR_VALUE, p.tables = 0);
    WRONG(HEED_ERR_VALUE, p.tables = 9);
    WRONG(HEED_ERR_VALUE, p.tables = SIZE_MAX);
    WRONG(HEED_ERR_NULL, p.given = NULL);
    WRONG(HEED_ERR_NULL, p.table[0].table = NULL);
    WRONG(HEED_ERR_NULL, p.table[1].table = NULL);
    WRONG(HEED_ERR_NULL, p.dst = NULL);
    WRONG(HEED_ERR_STRIDE, p.table[0].ld = 4);
    WRONG(HEED_ERR_STRIDE, p.table[1].ld = 4);
    WRONG(HEED_ERR_STRIDE, p.ld = 4);
    WRONG(HEED_ERR_ALIGNMENT, p.table[1].table = shifted(p.table[1].table, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.table[0].ids = shifted(p.ids, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.dst = shifted(p.dst, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.offsets = shifted(p.offsets, 2));
    WRONG(HEED_ERR_INDEX, p.ids[0] = -1);
    WRONG(HEED_ERR_INDEX, p.ids[5] = 4);
    WRONG(HEED_ERR_INDEX, p.ids[3] = INT32_MIN);
    WRONG(HEED_ERR_INDEX, p.table[0].rows = 3);
    WRONG(HEED_ERR_INDEX, p.table[0].rows = 0);
    WRONG(HEED_ERR_INDEX, p.table[1].rows = 4);
    WRONG(HEED_ERR_INDEX, p.table[1].first = 2);
    WRONG(HEED_ERR_OVERFLOW, p.sequences = SIZE_MAX);
    WRONG(HEED_ERR_OVERFLOW, p.sequences = SIZE_MAX / 4);
    WRONG(HEED_ERR_INDEX, p.table[1].first = SIZE_MAX);
    WRONG(HEED_ERR_INDEX, p.offset[1] = 7);
    WRONG(HEED_ERR_SHAPE, p.offset[2] = 5);
    WRONG(HEED_ERR_SHAPE, p.offset[0] = 1);
    WRONG(HEED_ERR_SHAPE, (p.offset[0] = 1, p.offset[2] = 7));
    WRONG(HEED_ERR_OVERLAP, p.dst = at(0));
    WRONG(HEED_ERR_OVERLAP, p.dst = at(1) + 28);
    WRONG(HEED_ERR_OVERLAP, p.dst = shifted(&p.offset[2], 0));
    WRONG(HEED_ERR_OVERLAP, p.dst = shifted(&p.ids[5], 0));
#define HUGE_SIZE(size)                                                                                                \
    WRONG(HEED_ERR_OVERFLOW, p.table[0].rows = size);                                                                  \
    WRONG(HEED_ERR_OVERFLOW, p.table[0].ld = size);                                                                    \
    WRONG(HEED_ERR_OVERFLOW, (p.offsets = NULL, p.tables = 1, p.n = size));                                            \
    WRONG(HEED_ERR_OVERFLOW, p.ld = size);
    HUGE_SIZES(HUGE_SIZE)
#undef HUGE_SIZE
    GOOD((p.offsets = NULL, p.table[1].rows = 7));
    WRONG(HEED_OK, (p.n = 0, p.offsets = NULL, p.table[0].table = p.table[1].table = p.dst = NULL));
    WRONG(HEED_OK, (p.cols = 0, p.table[0].table = p.table[1].table = p.dst = NULL));
#undef reset
#undef call
    end();
}

static void test_embed_layernorm(void)
{
    static struct {
        size_t n, cols, tables, sequences, ld, offset[3], *offsets;
        heed_embedding_table table[2], *given;
        int32_t ids[6];
        float *dst;
        heed_layernorm_options o;
        const heed_layernorm_options *options;
    } p;
    const heed_layernorm_options defaults = HEED_LAYERNORM_OPTIONS_INIT;
#define reset()                                                                                                        \
    (p.n = 6, p.cols = 5, p.tables = 2, p.sequences = 2, p.ld = 6, p.offset[0] = 0, p.offset[1] = 2, p.offset[2] = 6,  \
     p.offsets = p.offset, p.table[0] = (heed_embedding_table){at(0), 4, 7, p.ids, 0},                                 \
     p.table[1] = (heed_embedding_table){at(1), 5, 6, NULL, 1}, p.given = p.table,                                     \
     memcpy(p.ids, (const int32_t[]){0, 3, 1, 2, 3, 0}, sizeof p.ids), p.dst = at(2), p.o = defaults,                  \
     p.o.scale = at(3), p.o.shift = at(4), p.o.sum = at(5), p.o.ld_sum = 7, p.o.mean = at(6),                          \
     p.o.inverse_deviation = at(7), p.options = &p.o)
#define call()                                                                                                         \
    heed_embed_layernorm(NULL, p.n, p.cols, p.tables, p.given, p.sequences, p.offsets, p.options, p.dst, p.ld)
    begin("heed_embed_layernorm refuses");
    GOOD((void)0);
    GOOD(p.options = NULL);
    GOOD(p.o.scale = p.o.shift = NULL);
    GOOD(p.o.sum = p.o.mean = p.o.inverse_deviation = NULL);
    WRONG(HEED_ERR_VALUE, p.tables = 0);
    WRONG(HEED_ERR_VALUE, p.tables = 9);
    WRONG(HEED_ERR_NULL, p.given = NULL);
    WRONG(HEED_ERR_NULL, p.table[0].table = NULL);
    WRONG(HEED_ERR_NULL, p.dst = NULL);
    WRONG(HEED_ERR_STRIDE, p.table[1].ld = 4);
    WRONG(HEED_ERR_STRIDE, p.ld = 4);
    WRONG(HEED_ERR_STRIDE, p.o.ld_sum = 4);
    WRONG(HEED_ERR_ALIGNMENT, p.dst = shifted(p.dst, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.o.scale = shifted(p.o.scale, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.o.shift = shifted(p.o.shift, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.o.sum = shifted(p.o.sum, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.o.mean = shifted(p.o.mean, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.o.inverse_deviation = shifted(p.o.inverse_deviation, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.offsets = shifted(p.offsets, 2));
    WRONG(HEED_ERR_INDEX, p.ids[5] = 4);
    WRONG(HEED_ERR_INDEX, p.table[1].rows = 4);
    WRONG(HEED_ERR_SHAPE, p.offset[2] = 5);
    WRONG(HEED_ERR_VALUE, p.o.eps = -1.0f);
    WRONG(HEED_ERR_VALUE, p.o.eps = NAN);
    WRONG(HEED_ERR_VALUE, p.o.residual = at(8));
    WRONG(HEED_ERR_OVERLAP, p.dst = at(0));
    WRONG(HEED_ERR_OVERLAP, p.dst = at(3) - 10);
    WRONG(HEED_ERR_OVERLAP, p.o.scale = p.dst - 4);
    WRONG(HEED_ERR_OVERLAP, p.o.shift = p.dst - 4);
    WRONG(HEED_ERR_OVERLAP, p.o.mean = p.dst - 5);
    WRONG(HEED_ERR_OVERLAP, p.o.inverse_deviation = p.dst - 5);
    WRONG(HEED_ERR_OVERLAP, p.o.sum = p.dst);
    WRONG(HEED_ERR_OVERLAP, p.o.mean = p.dst + 34);
    WRONG(HEED_ERR_OVERLAP, p.o.mean = p.o.inverse_deviation);
    WRONG(HEED_ERR_OVERLAP, p.o.inverse_deviation = at(1));
#define HUGE_SIZE(size)                                                                                                \
    WRONG(HEED_ERR_OVERFLOW, p.table[0].ld = size);                                                                    \
    WRONG(HEED_ERR_OVERFLOW, p.o.ld_sum = size);                                                                       \
    WRONG(HEED_ERR_OVERFLOW, p.ld = size);
    HUGE_SIZES(HUGE_SIZE)
#undef HUGE_SIZE
    WRONG_STRUCTS(p.o, p.options);
    WRONG(HEED_OK, (p.n = 0, p.offsets = NULL, p.table[0].table = p.table[1].table = p.dst = NULL));
#undef reset
#undef call
    end();
}

static void test_positions(void)
{
    static struct {
        size_t first, n, cols, ld;
        double base;
        float *dst;
    } p;
#define reset() (p.first = 3, p.n = 4, p.cols = 6, p.ld = 7, p.base = 10000.0, p.dst = at(0))
#define call() heed_sinusoidal_positions(NULL, p.first, p.n, p.cols, p.base, p.dst, p.ld)
    begin("heed_sinusoidal_positions refuses");
    GOOD((void)0);
    WRONG(HEED_ERR_NULL, p.dst = NULL);
    WRONG(HEED_ERR_STRIDE, p.ld = 5);
    WRONG(HEED_ERR_ALIGNMENT, p.dst = shifted(p.dst, 1));
    const double wrong[] = {0.0, 0.5, -10000.0, (double)NAN, (double)INFINITY, -(double)INFINITY, 0x1p1001};
    for (size_t i = 0; i < COUNT(wrong); i++)
        WRONG(HEED_ERR_VALUE, p.base = wrong[i]);
    GOOD(p.base = 1.0);
    GOOD(p.base = 0x1p1000);
    WRONG(HEED_ERR_VALUE, p.first = SIZE_MAX);
    WRONG(HEED_ERR_VALUE, p.n = SIZE_MAX);
    WRONG(HEED_ERR_VALUE, p.first = ((size_t)1 << 31) - 3);
    GOOD(p.first = ((size_t)1 << 31) - 4);
    WRONG(HEED_ERR_OVERFLOW, p.ld = SIZE_MAX);
    WRONG(HEED_ERR_OVERFLOW, (p.cols = p.ld = SIZE_MAX / 4));
    WRONG(HEED_OK, (p.n = 0, p.dst = NULL));
    WRONG(HEED_OK, (p.cols = 0, p.dst = NULL));
#undef reset
#undef call
    end();
}

/* ---- attention ---- */

static heed_attention_args good_attention(void)
{
    enum { BATCH = 2, HEADS = 4, KV_HEADS = 2, QUERIES = 3, KEYS = 5, DIM = 4, VALUES = 6 };
    heed_attention_args a = HEED_ATTENTION_ARGS_INIT;
    a.batch = BATCH;
    a.n_heads = HEADS;
    a.n_kv_heads = KV_HEADS;
    a.seq_q = QUERIES;
    a.seq_kv = KEYS;
    a.head_dim = DIM;
    a.value_dim = VALUES;
    a.q = (heed_heads){at(0), HEADS * QUERIES * DIM, QUERIES * DIM, DIM};
    a.k = (heed_heads){at(1), KV_HEADS * KEYS * DIM, KEYS * DIM, DIM};
    a.v = (heed_heads){at(2), KV_HEADS * KEYS * VALUES, KEYS * VALUES, VALUES};
    a.out = (heed_heads_out){at(3), HEADS * QUERIES * VALUES, QUERIES * VALUES, VALUES};
    a.map = (heed_heads_out){at(4), HEADS * QUERIES * KEYS, QUERIES * KEYS, KEYS};
    a.mask = (heed_mask){at(5), HEED_MASK_ADDITIVE, 0, QUERIES * KEYS, KEYS};
    return a;
}

static void test_rotary_table(void)
{
    static struct {
        size_t n, first, dims, ld_cosine, ld_sine;
        int32_t positions[4], *given_positions;
        double factors[3];
        heed_rotary_options o;
        const heed_rotary_options *given;
        float *cosine, *sine;
    } p;
    const heed_rotary_options defaults = HEED_ROTARY_OPTIONS_INIT;
#define reset()                                                                                                        \
    (p.n = 4, p.first = 0, p.dims = 6, p.ld_cosine = 4, p.ld_sine = 5, p.cosine = at(0), p.sine = at(1),               \
     p.o = defaults, p.o.factors = p.factors, p.given = &p.o, p.given_positions = p.positions,                         \
     memcpy(p.positions, (const int32_t[]){3, 0, -7, 9}, sizeof p.positions),                                          \
     memcpy(p.factors, (const double[]){1.0, 0.5, -0.25}, sizeof p.factors))
#define call()                                                                                                         \
    heed_rotary_table(NULL, p.n, p.given_positions, p.first, p.dims, p.given, p.cosine, p.ld_cosine, p.sine, p.ld_sine)
    begin("heed_rotary_table refuses");
    GOOD((void)0);
    GOOD(p.given = NULL);
    GOOD(p.o.factors = NULL);
    WRONG(HEED_ERR_NULL, p.cosine = NULL);
    WRONG(HEED_ERR_NULL, p.sine = NULL);
    WRONG(HEED_ERR_STRIDE, p.ld_cosine = 2);
    WRONG(HEED_ERR_STRIDE, p.ld_sine = 2);
    WRONG(HEED_ERR_ALIGNMENT, p.cosine = shifted(p.cosine, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.sine = shifted(p.sine, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.given_positions = shifted(p.positions, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.o.factors = shifted(p.factors, 4));
    WRONG(HEED_ERR_SHAPE, p.dims = 5);
    const double wrong[] = {0.5, -10000.0, (double)NAN, (double)INFINITY, 0x1p1001};
    for (size_t i = 0; i < COUNT(wrong); i++)
        WRONG(HEED_ERR_VALUE, p.o.base = wrong[i]);
    GOOD(p.o.base = 1.0);
    WRONG(HEED_ERR_VALUE, p.o.position_scale = (double)NAN);
    WRONG(HEED_ERR_VALUE, p.o.position_scale = 0x1p40);
    WRONG(HEED_ERR_VALUE, p.o.position_scale = -0x1p40);
    WRONG(HEED_ERR_VALUE, p.o.magnitude = (double)INFINITY);
    WRONG(HEED_ERR_VALUE, p.factors[1] = (double)NAN);
    WRONG(HEED_ERR_VALUE, p.factors[2] = -(double)INFINITY);
    WRONG(HEED_ERR_VALUE, p.factors[2] = 0x1p30);
    WRONG(HEED_ERR_VALUE, p.factors[2] = -0x1p30);
    WRONG(HEED_ERR_VALUE, (p.positions[2] = -(1 << 30), p.o.position_scale = 4.0));
    WRONG(HEED_ERR_VALUE, (p.o.factors = NULL, p.positions[2] = 1 << 30, p.o.position_scale = 4.0));
    WRONG(HEED_ERR_VALUE, (p.given_positions = NULL, p.first = SIZE_MAX));
    WRONG(HEED_ERR_VALUE, (p.given_positions = NULL, p.first = ((size_t)1 << 31) - 3));
    GOOD((p.given_positions = NULL, p.first = ((size_t)1 << 31) - 4));
    GOOD(p.first = SIZE_MAX);
    GOOD((p.given_positions = NULL, p.first = ((size_t)1 << 30) - 3, p.o.position_scale = 2.0));
    WRONG(HEED_ERR_VALUE, (p.given_positions = NULL, p.first = ((size_t)1 << 30) - 2, p.o.position_scale = 2.0));
    WRONG(HEED_ERR_OVERLAP, p.cosine = p.sine);
    WRONG(HEED_ERR_OVERLAP, p.sine = p.cosine + 14);
    GOOD(p.sine = p.cosine + 15);
    WRONG(HEED_ERR_OVERFLOW, p.ld_cosine = SIZE_MAX);
    WRONG(HEED_ERR_OVERFLOW, p.ld_sine = SIZE_MAX / 4);
    WRONG_STRUCTS(p.o, p.given);
    WRONG(HEED_OK, (p.n = 0, p.cosine = p.sine = NULL));
    WRONG(HEED_OK, (p.dims = 0, p.cosine = p.sine = NULL));
#undef reset
#undef call
    double factors[4] = {7.0, 7.0, 7.0, 7.0}, magnitude = 7.0;
    CHECK(heed_rotary_llama3(7, 10000.0, 8.0, 1.0, 4.0, 8192, factors) == HEED_ERR_SHAPE);
    CHECK(heed_rotary_llama3(8, 1.0, 8.0, 1.0, 4.0, 8192, factors) == HEED_ERR_VALUE);
    CHECK(heed_rotary_llama3(8, 10000.0, 0.5, 1.0, 4.0, 8192, factors) == HEED_ERR_VALUE);
    CHECK(heed_rotary_llama3(8, 10000.0, 8.0, 4.0, 4.0, 8192, factors) == HEED_ERR_VALUE);
    CHECK(heed_rotary_llama3(8, 10000.0, 8.0, 0.0, 4.0, 8192, factors) == HEED_ERR_VALUE);
    CHECK(heed_rotary_llama3(8, 10000.0, 8.0, 1.0, 4.0, 0, factors) == HEED_ERR_VALUE);
    const double infinite[] = {(double)INFINITY, (double)NAN};
    for (size_t i = 0; i < COUNT(infinite); i++) {
        double x = infinite[i];
        CHECK(heed_rotary_llama3(8, x, 8.0, 1.0, 4.0, 8192, factors) == HEED_ERR_VALUE);
        CHECK(heed_rotary_llama3(8, 10000.0, x, 1.0, 4.0, 8192, factors) == HEED_ERR_VALUE);
        CHECK(heed_rotary_llama3(8, 10000.0, 8.0, x, 4.0, 8192, factors) == HEED_ERR_VALUE);
        CHECK(heed_rotary_llama3(8, 10000.0, 8.0, 1.0, x, 8192, factors) == HEED_ERR_VALUE);
    }
    const size_t longest = (size_t)1 << 31;
    CHECK(heed_rotary_llama3(8, 10000.0, 8.0, 1.0, 4.0, longest + 1, factors) == HEED_ERR_VALUE);
    CHECK(heed_rotary_llama3(8, 10000.0, 8.0, 1.0, 4.0, 8192, NULL) == HEED_ERR_NULL);
    CHECK(heed_rotary_llama3(8, 10000.0, 8.0, 1.0, 4.0, 8192, shifted(factors, 4)) == HEED_ERR_ALIGNMENT);
    CHECK(heed_rotary_llama3(SIZE_MAX - 1, 10000.0, 8.0, 1.0, 4.0, 8192, factors) == HEED_ERR_OVERFLOW);
    CHECK(heed_rotary_yarn(SIZE_MAX - 1, 10000.0, 8.0, 32.0, 1.0, 8192, factors, &magnitude) == HEED_ERR_OVERFLOW);
    CHECK(heed_rotary_yarn(7, 10000.0, 8.0, 32.0, 1.0, 8192, factors, &magnitude) == HEED_ERR_SHAPE);
    CHECK(heed_rotary_yarn(8, 1.0, 8.0, 32.0, 1.0, 8192, factors, &magnitude) == HEED_ERR_VALUE);
    CHECK(heed_rotary_yarn(8, 10000.0, 8.0, 1.0, 32.0, 8192, factors, &magnitude) == HEED_ERR_VALUE);
    CHECK(heed_rotary_yarn(8, 10000.0, 8.0, (double)NAN, 1.0, 8192, factors, &magnitude) == HEED_ERR_VALUE);
    CHECK(heed_rotary_yarn(8, 10000.0, (double)INFINITY, 32.0, 1.0, 8192, factors, &magnitude) == HEED_ERR_VALUE);
    CHECK(heed_rotary_yarn(8, 10000.0, 8.0, 32.0, 1.0, SIZE_MAX, factors, &magnitude) == HEED_ERR_VALUE);
    CHECK(heed_rotary_yarn(8, 10000.0, 0.5, 32.0, 1.0, 8192, factors, &magnitude) == HEED_ERR_VALUE);
    CHECK(heed_rotary_yarn(8, 10000.0, 8.0, 0x1p101, 1.0, 8192, factors, &magnitude) == HEED_ERR_VALUE);
    CHECK(heed_rotary_yarn(8, 10000.0, 8.0, 32.0, 0x1p-101, 8192, factors, &magnitude) == HEED_ERR_VALUE);
    CHECK(heed_rotary_yarn(8, 10000.0, 8.0, 32.0, 1.0, longest + 1, factors, &magnitude) == HEED_ERR_VALUE);
    CHECK(heed_rotary_yarn(8, 10000.0, 8.0, 32.0, 1.0, 0, factors, &magnitude) == HEED_ERR_VALUE);
    CHECK(heed_rotary_yarn(8, 10000.0, 8.0, 32.0, 1.0, 8192, NULL, &magnitude) == HEED_ERR_NULL);
    CHECK(heed_rotary_yarn(8, 10000.0, 8.0, 32.0, 1.0, 8192, factors, NULL) == HEED_ERR_NULL);
    CHECK(heed_rotary_yarn(8, 10000.0, 8.0, 32.0, 1.0, 8192, factors, shifted(&magnitude, 4)) == HEED_ERR_ALIGNMENT);
    for (size_t i = 0; i < COUNT(factors); i++)
        CHECK(heed_rotary_yarn(8, 10000.0, 8.0, 32.0, 1.0, 8192, factors, &factors[i]) == HEED_ERR_OVERLAP);
    for (size_t i = 0; i < COUNT(factors); i++)
        CHECK(factors[i] == 7.0 && magnitude == 7.0);
    CHECK(heed_rotary_llama3(8, 10000.0, 8.0, 1.0, 4.0, longest, factors) == HEED_OK);
    CHECK(heed_rotary_yarn(6, 10000.0, 8.0, 32.0, 1.0, 8192, factors, &factors[3]) == HEED_OK);
    end();
}

static void test_rotary(void)
{
    static struct {
        int32_t ids[6];
        heed_rotary_args a;
        const heed_rotary_args *given;
    } p;
    const heed_rotary_args defaults = HEED_ROTARY_ARGS_INIT;
#define reset()                                                                                                        \
    (p.a = defaults, p.a.batch = 2, p.a.seq = 3, p.a.n_heads = 2, p.a.head_dim = 9, p.a.tables.dims = 8,               \
     p.a.tables.cosine = at(0), p.a.tables.sine = at(1), p.a.tables.ld_cosine = 5, p.a.tables.ld_sine = 6,             \
     p.a.tables.positions = 7, p.a.ids = p.ids, p.a.src = (heed_heads){at(2), 54, 9, 18},                              \
     p.a.dst = (heed_heads_out){at(3), 54, 27, 9}, p.given = &p.a,                                                     \
     memcpy(p.ids, (const int32_t[]){0, 6, 2, 2, 1, 5}, sizeof p.ids))
#define call() heed_rotary(NULL, p.given)
    begin("heed_rotary refuses");
    GOOD((void)0);
    WRONG(HEED_ERR_NULL, p.given = NULL);
    WRONG(HEED_ERR_ENUM, p.a.tables.pairs = (heed_rotary_pairs)NOT_IN_ENUM);
    WRONG(HEED_ERR_SHAPE, p.a.tables.dims = 7);
    WRONG(HEED_ERR_SHAPE, p.a.tables.dims = 10);
    WRONG(HEED_ERR_NULL, p.a.tables.cosine = NULL);
    WRONG(HEED_ERR_NULL, p.a.tables.sine = NULL);
    WRONG(HEED_ERR_NULL, p.a.src.data = NULL);
    WRONG(HEED_ERR_NULL, p.a.dst.data = NULL);
    WRONG(HEED_ERR_STRIDE, p.a.tables.ld_cosine = 3);
    WRONG(HEED_ERR_STRIDE, p.a.tables.ld_sine = 3);
    WRONG(HEED_ERR_STRIDE, p.a.dst.row_stride = 8);
    WRONG(HEED_ERR_STRIDE, p.a.dst.head_stride = 8);
    WRONG(HEED_ERR_STRIDE, p.a.dst.batch_stride = 30);
    WRONG(HEED_ERR_ALIGNMENT, p.a.tables.cosine = shifted(p.a.tables.cosine, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.tables.sine = shifted(p.a.tables.sine, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.ids = shifted(p.ids, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.src.data = shifted(p.a.src.data, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.dst.data = shifted(p.a.dst.data, 1));
    WRONG(HEED_ERR_INDEX, p.ids[5] = 7);
    WRONG(HEED_ERR_INDEX, p.ids[0] = -1);
    WRONG(HEED_ERR_INDEX, p.a.tables.positions = 6);
    WRONG(HEED_ERR_INDEX, (p.a.ids = NULL, p.a.first = 5));
    WRONG(HEED_ERR_INDEX, (p.a.ids = NULL, p.a.first = SIZE_MAX));
    GOOD((p.a.ids = NULL, p.a.first = 4));
    WRONG(HEED_ERR_OVERLAP, p.a.dst.data = at(2));
    WRONG(HEED_ERR_OVERLAP, p.a.dst.data = at(0));
    WRONG(HEED_ERR_OVERLAP, p.a.dst.data = at(1) + 39);
    WRONG(HEED_ERR_OVERLAP, (p.a.dst = (heed_heads_out){at(2) + 1, 54, 9, 18}));
    GOOD((p.a.dst = (heed_heads_out){at(2), 54, 9, 18}));
    WRONG(HEED_ERR_OVERLAP, (p.a.dst = (heed_heads_out){at(2), 60, 9, 18}));
    GOOD((p.a.batch = 1, p.a.dst = (heed_heads_out){at(2), 60, 9, 18}));
    GOOD((p.a.n_heads = 1, p.a.dst = (heed_heads_out){at(2), 54, 3, 18}));
    GOOD((p.a.seq = 1, p.a.dst = (heed_heads_out){at(2), 54, 9, 5}));
    WRONG(HEED_ERR_OVERLAP, (p.a.dst = (heed_heads_out){at(2), 55, 9, 18}));
    WRONG(HEED_ERR_OVERLAP, (p.a.seq = 1, p.a.dst = (heed_heads_out){at(2), 54, 10, 18}));
    WRONG(HEED_ERR_OVERLAP, (p.a.src.batch_stride = 60, p.a.dst = (heed_heads_out){at(2), 60, 9, 19}));
    WRONG(HEED_ERR_OVERLAP, p.a.dst.data = shifted(&p.ids[5], 0));
    WRONG(HEED_ERR_OVERFLOW, p.a.src.batch_stride = SIZE_MAX);
    WRONG(HEED_ERR_OVERFLOW, p.a.dst.batch_stride = SIZE_MAX / 2);
    WRONG(HEED_ERR_OVERFLOW, p.a.tables.ld_cosine = SIZE_MAX / 4);
    WRONG(HEED_ERR_OVERFLOW, (p.a.ids = NULL, p.a.first = 4, p.a.batch = SIZE_MAX));
    WRONG_STRUCTS(p.a, p.given);
    WRONG(HEED_OK, (p.a.batch = 0, p.a.src.data = NULL, p.a.dst.data = NULL));
    WRONG(HEED_OK, (p.a.seq = 0, p.a.tables.cosine = p.a.tables.sine = NULL, p.a.src.data = NULL, p.a.dst.data = NULL));
    WRONG(HEED_OK, (p.a.n_heads = 0, p.a.src.data = NULL, p.a.dst.data = NULL));
    GOOD((p.a.tables.dims = 0, p.a.tables.cosine = p.a.tables.sine = NULL));
    GOOD((p.a.tables.dims = p.a.tables.positions = 0, p.a.tables.cosine = p.a.tables.sine = NULL));
    GOOD((p.a.tables.dims = p.a.tables.positions = 0, p.a.tables.cosine = p.a.tables.sine = NULL, p.a.ids = NULL));
#undef reset
#undef call
    end();
}

/* Of many keys, which few queries leave in place, what few keys want is part. */
static void check_workspace_of_few_keys(heed_attention_args a)
{
    const size_t few = 8;
    size_t of_many = 0, of_few = 0;
    a.batch = a.seq_q = 1;
    a.seq_kv = 1000;
    a.head_dim = 64;
    CHECK(heed_attention_workspace(NULL, &a, &of_many) == HEED_OK);
    a.kv_lengths = &few;
    CHECK(heed_attention_workspace(NULL, &a, &of_few) == HEED_OK);
    check_that(0 < of_few && of_few <= of_many, "%zu bytes for 8 keys, %zu for 1000", of_few, of_many);
}

/* Values so wide are refused whatever the factor by which their bytes would wrap. */
static void check_workspace_of_wide_values(heed_attention_args a)
{
    size_t bytes = 0;
    a.batch = a.n_heads = a.n_kv_heads = a.seq_q = 1;
    a.head_dim = 8;
    a.map.data = NULL;
    for (size_t factor = 2; factor < 500; factor++) {
        a.value_dim = a.v.row_stride = a.out.row_stride = (SIZE_MAX / factor / 16 + 1) * 16;
        check_that(heed_attention_workspace(NULL, &a, &bytes) == HEED_ERR_OVERFLOW && bytes == 0,
                   "%zu values: %zu bytes", a.value_dim, bytes);
    }
}

static void test_attention(void)
{
    static struct {
        heed_attention_args a;
        const heed_attention_args *given;
        size_t lengths[2], q_offsets[3], kv_offsets[3];
        heed_workspace memory, *workspace;
    } p;
#define reset()                                                                                                        \
    (p.a = good_attention(), p.given = &p.a, p.workspace = NULL, p.lengths[0] = 2, p.lengths[1] = 5,                   \
     p.q_offsets[0] = p.kv_offsets[0] = 0, p.q_offsets[1] = p.kv_offsets[1] = 2, p.q_offsets[2] = 5,                   \
     p.kv_offsets[2] = 7)
#define RAGGED                                                                                                         \
    (p.a.q_offsets = p.q_offsets, p.a.kv_offsets = p.kv_offsets, p.a.out.head_stride = 6, p.a.out.row_stride = 24)
#define call() heed_attention(NULL, p.given, p.workspace)
    begin("heed_attention refuses");
    GOOD((void)0);
    GOOD(RAGGED);
    GOOD(p.a.kv_lengths = p.lengths);
    WRONG(HEED_ERR_NULL, p.given = NULL);
    WRONG(HEED_ERR_NULL, p.a.q.data = NULL);
    WRONG(HEED_ERR_NULL, p.a.k.data = NULL);
    WRONG(HEED_ERR_NULL, p.a.v.data = NULL);
    WRONG(HEED_ERR_NULL, p.a.out.data = NULL);
    WRONG(HEED_ERR_NULL, p.a.mask.data = NULL);
    WRONG(HEED_ERR_ALIGNMENT, p.a.q.data = shifted(at(0), 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.k.data = shifted(at(1), 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.v.data = shifted(at(2), 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.out.data = shifted(at(3), 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.map.data = shifted(at(4), 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.mask.data = shifted(at(5), 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.kv_lengths = shifted(p.lengths, 2));
    WRONG(HEED_ERR_ALIGNMENT, (RAGGED, p.a.q_offsets = shifted(p.q_offsets, 2)));
    WRONG(HEED_ERR_ALIGNMENT, (RAGGED, p.a.kv_offsets = shifted(p.kv_offsets, 2)));
    WRONG(HEED_ERR_ENUM, p.a.causal = (heed_causal)NOT_IN_ENUM);
    WRONG(HEED_ERR_ENUM, p.a.mask.type = (heed_mask_type)NOT_IN_ENUM);
    WRONG(HEED_ERR_ENUM, p.a.scale = (heed_scale)NOT_IN_ENUM);
    WRONG(HEED_ERR_ENUM, p.a.loop = (heed_attention_loop)NOT_IN_ENUM);
    WRONG(HEED_ERR_ENUM, p.a.loop = (heed_attention_loop)(HEED_ATTENTION_LOOP_KEYS + 1));
    WRONG(HEED_ERR_VALUE, (p.a.scale = HEED_SCALE_VALUE, p.a.scale_value = NAN));
    WRONG(HEED_ERR_VALUE, (p.a.scale = HEED_SCALE_VALUE, p.a.scale_value = INFINITY));
    WRONG(HEED_ERR_VALUE, (p.a.scale = HEED_SCALE_VALUE, p.a.scale_value = -INFINITY));
    GOOD((p.a.scale = HEED_SCALE_VALUE, p.a.scale_value = -0.5f));
    GOOD((p.a.scale = HEED_SCALE_VALUE, p.a.scale_value = 0.0f));
    WRONG(HEED_ERR_VALUE, p.a.scale_value = 0.125f);
    WRONG(HEED_ERR_VALUE, p.a.scale_value = NAN);
    WRONG(HEED_ERR_SHAPE, p.a.n_kv_heads = 3);
    WRONG(HEED_ERR_SHAPE, p.a.n_kv_heads = 0);
    WRONG(HEED_ERR_SHAPE, p.a.n_kv_heads = 8);
    WRONG(HEED_ERR_VALUE, p.a.softcap = -1.0f);
    WRONG(HEED_ERR_VALUE, p.a.softcap = NAN);
    WRONG(HEED_ERR_VALUE, p.a.softcap = INFINITY);
    WRONG(HEED_ERR_VALUE, p.a.softcap = 1e-45f);
    WRONG(HEED_ERR_VALUE, p.a.softcap = 3e38f);
    GOOD((p.a.window_left = p.a.window_right = 0, p.a.softcap = 30.0f));
    GOOD((p.a.window_left = p.a.window_right = SIZE_MAX - 1));
    GOOD((p.a.slopes = at(6), p.a.sinks = at(6) + 2));
    WRONG(HEED_ERR_ALIGNMENT, p.a.slopes = shifted(at(6), 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.sinks = shifted(at(6), 1));
    WRONG(HEED_ERR_OVERLAP, p.a.slopes = at(3) - 3);
    WRONG(HEED_ERR_OVERLAP, p.a.sinks = at(3));
    GOOD(p.a.log_sum_exp = ((heed_heads_out){at(6), 12, 3, 1}));
    WRONG(HEED_ERR_ALIGNMENT, p.a.log_sum_exp = ((heed_heads_out){shifted(at(6), 1), 12, 3, 1}));
    WRONG(HEED_ERR_STRIDE, p.a.log_sum_exp = ((heed_heads_out){at(6), 12, 2, 1}));
    WRONG(HEED_ERR_STRIDE, p.a.log_sum_exp = ((heed_heads_out){at(6), 12, 3, 0}));
    WRONG(HEED_ERR_OVERLAP, p.a.log_sum_exp = ((heed_heads_out){at(0), 12, 3, 1}));
    WRONG(HEED_ERR_OVERFLOW, p.a.log_sum_exp = ((heed_heads_out){at(6), SIZE_MAX, 3, 1}));
    GOOD(p.a.mean_map = ((heed_heads_out){at(6), 15, 0, 5}));
    WRONG(HEED_ERR_ALIGNMENT, p.a.mean_map = ((heed_heads_out){shifted(at(6), 1), 15, 0, 5}));
    WRONG(HEED_ERR_STRIDE, p.a.mean_map = ((heed_heads_out){at(6), 14, 0, 5}));
    WRONG(HEED_ERR_STRIDE, p.a.mean_map = ((heed_heads_out){at(6), 15, 0, 4}));
    WRONG(HEED_ERR_OVERLAP, p.a.mean_map = ((heed_heads_out){at(4), 15, 0, 5}));
    WRONG(HEED_ERR_OVERFLOW, p.a.mean_map = ((heed_heads_out){at(6), 15, 0, SIZE_MAX}));
    WRONG(HEED_ERR_SHAPE, (p.lengths[1] = 6, p.a.kv_lengths = p.lengths));
    WRONG(HEED_ERR_SHAPE, (RAGGED, p.lengths[0] = 3, p.a.kv_lengths = p.lengths));
    WRONG(HEED_ERR_SHAPE, (p.lengths[0] = SIZE_MAX, p.a.kv_lengths = p.lengths));
    WRONG(HEED_ERR_OVERFLOW, (p.a.batch = SIZE_MAX / 4, p.a.seq_q = p.a.seq_kv = 0, p.a.kv_lengths = p.lengths));
    WRONG(HEED_ERR_OVERFLOW, (RAGGED, p.a.batch = SIZE_MAX / 4));
    WRONG(HEED_ERR_OVERFLOW, (RAGGED, p.a.seq_q = SIZE_MAX, p.a.map.data = NULL));
    WRONG(HEED_ERR_OVERFLOW, (RAGGED, p.a.seq_kv = SIZE_MAX, p.a.map.data = NULL, p.a.mask.type = HEED_MASK_NONE));
    WRONG(HEED_ERR_INDEX, (RAGGED, p.q_offsets[2] = 1));
    WRONG(HEED_ERR_INDEX, (RAGGED, p.kv_offsets[2] = 1));
    WRONG(HEED_ERR_INDEX, (RAGGED, p.q_offsets[1] = p.q_offsets[2] = 0, p.kv_offsets[2] = 1));
    WRONG(HEED_ERR_SHAPE, (RAGGED, p.q_offsets[2] = 6));
    WRONG(HEED_ERR_SHAPE, (RAGGED, p.a.seq_q = 0));
    WRONG(HEED_ERR_SHAPE, (RAGGED, p.kv_offsets[2] = 8));
    WRONG(HEED_ERR_STRIDE, p.a.out.batch_stride = 0);
    WRONG(HEED_ERR_STRIDE, p.a.out.head_stride = 17);
    WRONG(HEED_ERR_STRIDE, p.a.out.row_stride = 5);
    WRONG(HEED_ERR_STRIDE, p.a.map.batch_stride = 59);
    WRONG(HEED_ERR_STRIDE, p.a.map.head_stride = 0);
    WRONG(HEED_ERR_STRIDE, p.a.map.row_stride = 4);
    GOOD(p.a.q.batch_stride = p.a.k.batch_stride = p.a.v.head_stride = p.a.mask.row_stride = 0);
    end();

    float slopes[3] = {7.0f, 7.0f, 7.0f};
    begin("heed_alibi_slopes refuses");
    expect(HEED_ERR_NULL, heed_alibi_slopes(3, 8.0, NULL), "no slopes");
    expect(HEED_ERR_ALIGNMENT, heed_alibi_slopes(3, 8.0, shifted(slopes, 1)), "slopes");
    expect(HEED_ERR_OVERFLOW, heed_alibi_slopes(SIZE_MAX, 8.0, slopes), "heads");
    expect(HEED_ERR_OVERFLOW, heed_alibi_slopes(SIZE_MAX / 4, 8.0, slopes), "heads");
    expect(HEED_ERR_VALUE, heed_alibi_slopes(3, 0.0, slopes), "0");
    expect(HEED_ERR_VALUE, heed_alibi_slopes(3, 101.0, slopes), "101");
    expect(HEED_ERR_VALUE, heed_alibi_slopes(3, (double)NAN, slopes), "NaN");
    CHECK(slopes[0] == 7.0f && slopes[2] == 7.0f);
    CHECK(heed_alibi_slopes(0, 8.0, NULL) == HEED_OK);
    CHECK(heed_alibi_slopes(3, 100.0, slopes) == HEED_OK);
    CHECK(heed_alibi_slopes(3, 8.0, slopes) == HEED_OK);
    CHECK(slopes[0] == 0x1p-4f && slopes[1] == 0x1p-8f && slopes[2] == 0x1p-2f);
    end();

    begin("heed_attention refuses overlaps and sizes");
    WRONG(HEED_ERR_OVERLAP, p.a.out.data = at(0));
    WRONG(HEED_ERR_OVERLAP, p.a.out.data = at(1) + 79);
    WRONG(HEED_ERR_OVERLAP, p.a.out.data = at(2) + 119);
    GOOD(p.a.out.data = at(1) + 80);
    WRONG(HEED_ERR_OVERLAP, p.a.out.data = at(4));
    WRONG(HEED_ERR_OVERLAP, p.a.out.data = at(5));
    WRONG(HEED_ERR_OVERLAP, p.a.map.data = at(0));
    WRONG(HEED_ERR_OVERLAP, p.a.map.data = at(1) + 79);
    WRONG(HEED_ERR_OVERLAP, p.a.map.data = at(2));
    WRONG(HEED_ERR_OVERLAP, p.a.map.data = at(5));
#define HUGE_SIZE(size)                                                                                                \
    WRONG(HEED_ERR_OVERFLOW, (p.a.n_heads = p.a.n_kv_heads = size));                                                   \
    WRONG(HEED_ERR_OVERFLOW, p.a.q.batch_stride = size);                                                               \
    WRONG(HEED_ERR_OVERFLOW, p.a.k.head_stride = size);                                                                \
    WRONG(HEED_ERR_OVERFLOW, p.a.v.row_stride = size);                                                                 \
    WRONG(HEED_ERR_OVERFLOW, p.a.out.batch_stride = size);                                                             \
    WRONG(HEED_ERR_OVERFLOW, p.a.map.batch_stride = size);                                                             \
    WRONG(HEED_ERR_OVERFLOW, p.a.mask.head_stride = size);                                                             \
    WRONG(HEED_ERR_OVERFLOW, p.a.head_dim = size);
    HUGE_SIZES(HUGE_SIZE)
#undef HUGE_SIZE
    /* The outputs' strides meet what grows before the size as a whole is judged. */
    reset();
    p.a.seq_q = SIZE_MAX / 4;
    CHECK(call() != HEED_OK);
    reset();
    p.a.seq_kv = SIZE_MAX / 4;
    CHECK(call() != HEED_OK);
    reset();
    p.a.value_dim = SIZE_MAX / 4;
    CHECK(call() != HEED_OK);
    CHECK(memcmp(&arena, &pristine, sizeof arena) == 0);
    WRONG_STRUCTS(p.a, p.given);
    end();

    begin("heed_attention's workspace, and empty sizes");
    size_t bytes = 0, more = 0;
    reset();
    CHECK(heed_attention_workspace(NULL, &p.a, &bytes) == HEED_OK && bytes > 0);
    CHECK(heed_attention_workspace(NULL, &p.a, NULL) == HEED_ERR_NULL);
    CHECK(heed_attention_workspace(NULL, NULL, &more) == HEED_ERR_NULL);
    p.a.struct_size = 8;
    CHECK(heed_attention_workspace(NULL, &p.a, &more) == HEED_ERR_STRUCT);
    reset();
    check_workspace_of_few_keys(p.a);
    p.a.n_heads = p.a.n_kv_heads = 1;
    p.a.value_dim = p.a.v.row_stride = 16; /* whole panels, which are not packed either */
    p.a.map.data = NULL;
    check_workspace_of_few_keys(p.a);
    reset();
    p.a.head_dim = SIZE_MAX;
    CHECK(heed_attention_workspace(NULL, &p.a, &more) == HEED_ERR_OVERFLOW && more == 0);
    check_workspace_of_wide_values(p.a);
    float *memory = buffer(bytes / sizeof(float) + 16, 1);
#define WITH(memory_, bytes_) (p.memory = (heed_workspace){memory_, bytes_}, p.workspace = &p.memory)
    GOOD(WITH(memory, bytes));
    WRONG(HEED_ERR_WORKSPACE, WITH(memory, bytes - 1));
    WRONG(HEED_ERR_NULL, WITH(NULL, bytes));
    WRONG(HEED_ERR_ALIGNMENT, WITH(shifted(memory, 1), bytes));
    for (size_t i = 0; i < 6; i++)
        WRONG(HEED_ERR_OVERLAP, WITH(at(i), bytes));
    WRONG(HEED_OK, (p.a.batch = 0, p.a.q.data = p.a.k.data = p.a.v.data = p.a.out.data = p.a.map.data = NULL));
    WRONG(HEED_OK, (p.a.n_heads = p.a.n_kv_heads = 0,
                    p.a.q.data = p.a.k.data = p.a.v.data = p.a.out.data = p.a.map.data = NULL));
    WRONG(HEED_OK, (p.a.seq_q = 0, p.a.q.data = p.a.out.data = p.a.map.data = NULL));
    WRONG(HEED_OK, (p.a.seq_q = 0, p.a.batch = SIZE_MAX / 4, p.a.q.data = p.a.out.data = p.a.map.data = NULL));
    WRONG(HEED_OK, (p.a.value_dim = 0, p.a.v.data = p.a.out.data = p.a.map.data = NULL));
    GOOD((p.a.head_dim = 0, p.a.q.data = p.a.k.data = NULL));
    GOOD((p.a.value_dim = 0, p.a.v.data = p.a.out.data = NULL));
    GOOD((p.a.seq_kv = 0, p.a.k.data = p.a.v.data = p.a.mask.data = p.a.map.data = NULL));
#undef reset
#undef call
    end();
}

/* ---- layers ---- */

static struct {
    struct layer_problem problem;
    struct packed_layer layer;
} model;

enum { D_MODEL = 8, D_FF = 12, WIDE_FF = 4000, TOKENS = 6 };

static void make_model(void)
{
    model.problem = (struct layer_problem){.d_model = D_MODEL,
                                           .d_ff = D_FF,
                                           .n_heads = 2,
                                           .n_kv_heads = 1,
                                           .head_dim = 4,
                                           .value_dim = 3,
                                           .activation = HEED_ACTIVATION_RELU,
                                           .eps = 1e-5f};
    random_layer(&model.problem);
    pack_layer(&model.layer, &model.problem);
}

static void test_ffn(void)
{
    static struct {
        heed_ffn_weights w;
        const heed_ffn_weights *given;
        size_t m, ldx, ldr, ldy;
        float *x, *residual, *y;
        heed_workspace memory, *workspace;
    } p;
    size_t bytes = 0;
#define reset()                                                                                                        \
    (p.w = model.layer.ffn, p.given = &p.w, p.m = 3, p.ldx = 9, p.ldr = 10, p.ldy = 11, p.x = at(0),                   \
     p.residual = at(1), p.y = at(2), p.workspace = NULL)
#define call() heed_ffn(NULL, p.given, p.m, p.x, p.ldx, p.residual, p.ldr, p.y, p.ldy, p.workspace)
    begin("heed_ffn refuses");
    GOOD((void)0);
    GOOD(p.residual = NULL);
    WRONG(HEED_ERR_OVERLAP, (p.w.down = packed(D_FF, D_MODEL / 2, at(0)), p.residual = NULL, p.y = p.x, p.ldy = p.ldx));
    /* As long as x, but of other rows. */
    WRONG(HEED_ERR_OVERLAP, (p.w.down = packed(D_FF, D_MODEL + 2, at(0)), p.w.down_bias = NULL, p.residual = NULL,
                             p.y = p.x, p.ldx = 11, p.ldy = 10));
    WRONG(HEED_OK, (p.m = 0, p.w.up_bias = shifted(at(5), 1)));
    WRONG(HEED_ERR_NULL, p.given = NULL);
    WRONG(HEED_ERR_NULL, p.w.up = NULL);
    WRONG(HEED_ERR_NULL, p.w.down = NULL);
    WRONG(HEED_ERR_SHAPE, p.w.down = p.w.up);
    const heed_weights *pair = packed_pair(D_MODEL, D_FF, at(0), at(1));
    GOOD(p.w.up = pair);
    GOOD((p.w.up = pair, p.w.gate_bias = at(5)));
    WRONG(HEED_ERR_VALUE, p.w.gate_bias = at(5));
    WRONG(HEED_ERR_VALUE, p.w.down = packed_pair(D_FF, D_MODEL, at(0), at(1)));
    WRONG(HEED_ERR_FORMAT, p.w.up = (const heed_weights *)(void *)at(5));
    WRONG(HEED_ERR_ENUM, p.w.activation = (heed_activation)NOT_IN_ENUM);
    WRONG(HEED_ERR_ALIGNMENT, p.w.up_bias = shifted(at(5), 1));
    WRONG(HEED_ERR_ALIGNMENT, p.w.down_bias = shifted(at(5), 1));
    WRONG(HEED_ERR_NULL, p.x = NULL);
    WRONG(HEED_ERR_NULL, p.y = NULL);
    WRONG(HEED_ERR_STRIDE, p.ldx = D_MODEL - 1);
    WRONG(HEED_ERR_STRIDE, p.ldr = D_MODEL - 1);
    WRONG(HEED_ERR_STRIDE, p.ldy = D_MODEL - 1);
    WRONG(HEED_ERR_ALIGNMENT, p.x = shifted(p.x, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.residual = shifted(p.residual, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.y = shifted(p.y, 1));
    WRONG(HEED_ERR_OVERLAP, p.y = p.x);
    WRONG(HEED_ERR_OVERLAP, p.y = p.residual);
    WRONG(HEED_ERR_OVERLAP, p.w.up_bias = p.y);
    WRONG(HEED_ERR_OVERLAP, p.w.up_bias = p.y - (D_FF - 1));
    WRONG(HEED_ERR_OVERLAP, (p.w.up = pair, p.w.gate_bias = p.y - (D_FF - 1)));
    WRONG(HEED_ERR_OVERLAP, p.w.down_bias = p.y - (D_MODEL - 1));
    WRONG(HEED_ERR_OVERLAP, p.w.down_bias = p.y + 25);
    WRONG(HEED_ERR_OVERLAP, p.y = shifted(p.w.up, 64));
    WRONG(HEED_ERR_OVERLAP, p.y = shifted(p.w.down, 64));
    WRONG(HEED_ERR_OVERLAP, (p.w.up = packed(D_MODEL + 1, D_FF, at(0)), p.y = p.x + 1, p.ldy = p.ldx));
    GOOD((p.y = p.x, p.ldy = p.ldx));
    GOOD((p.y = p.residual, p.ldy = p.ldr));
#define HUGE_SIZE(size)                                                                                                \
    WRONG(HEED_ERR_OVERFLOW, p.m = size);                                                                              \
    WRONG(HEED_ERR_OVERFLOW, p.ldx = size);                                                                            \
    WRONG(HEED_ERR_OVERFLOW, p.ldr = size);                                                                            \
    WRONG(HEED_ERR_OVERFLOW, p.ldy = size);
    HUGE_SIZES(HUGE_SIZE)
#undef HUGE_SIZE
    WRONG_STRUCTS(p.w, p.given);
    reset();
    CHECK(heed_ffn_workspace(NULL, &p.w, 3, &bytes) == HEED_OK && bytes == 192 + 64); /* of 3 * D_FF floats */
    CHECK(heed_ffn_workspace(NULL, &p.w, 3, NULL) == HEED_ERR_NULL);
    CHECK(heed_ffn_workspace(NULL, NULL, 3, &bytes) == HEED_ERR_NULL);
    CHECK(heed_ffn_workspace(NULL, &p.w, SIZE_MAX, &bytes) == HEED_ERR_OVERFLOW);
    CHECK(heed_ffn_workspace(NULL, &p.w, PTRDIFF_MAX / 40, &bytes) == HEED_ERR_OVERFLOW && bytes == 192 + 64);
    GOOD(WITH(at(6), bytes));
    WRONG(HEED_ERR_WORKSPACE, WITH(at(6), bytes - 1));
    WRONG(HEED_ERR_NULL, WITH(NULL, bytes));
    WRONG(HEED_ERR_ALIGNMENT, WITH(shifted(at(6), 1), bytes));
    for (size_t i = 0; i < 3; i++)
        WRONG(HEED_ERR_OVERLAP, WITH(at(i), bytes));
    WRONG(HEED_ERR_OVERLAP, WITH(shifted(p.w.up, 64), bytes));
    WRONG(HEED_ERR_OVERLAP, WITH(shifted(p.w.down, 64), bytes));
    WRONG(HEED_OK, (p.m = 0, p.x = p.y = p.residual = NULL));
#undef reset
#undef call
    end();
}

static heed_mha_args good_mha(void)
{
    heed_mha_args a = HEED_MHA_ARGS_INIT;
    a.batch = 2;
    a.seq_q = 3;
    a.seq_kv = 4;
    a.x = at(0);
    a.ldx = 9;
    a.memory = at(1);
    a.ld_memory = 10;
    a.residual = at(2);
    a.ld_residual = 11;
    a.y = at(3);
    a.ldy = 12;
    a.map = (heed_heads_out){at(4), 24, 12, 4};
    a.mask = (heed_mask){at(5), HEED_MASK_ADDITIVE, 0, 0, 4};
    return a;
}

/* A cache that fits the model where value_dim is 3. */
static heed_kv_cache *make_cache(size_t value_dim, void *memory, size_t bytes)
{
    heed_kv_cache_options o = HEED_KV_CACHE_OPTIONS_INIT;
    heed_kv_cache *cache = NULL;
    o.batch = 3;
    o.n_kv_heads = 1;
    o.head_dim = 4;
    o.value_dim = value_dim;
    o.capacity = 10;
    CHECK(heed_kv_cache_create(&o, memory, bytes, &cache) == HEED_OK);
    return cache;
}

/* The same in memory that is watched as the operands are. */
static heed_kv_cache *cache_in_arena(size_t slot, size_t value_dim)
{
    heed_kv_cache *cache = make_cache(value_dim, at(slot), 2 * sizeof arena.slot[slot]);
    pristine = arena;
    return cache;
}

static void test_mha(void)
{
    static struct {
        heed_mha_weights w;
        heed_mha_args a;
        const heed_mha_weights *weights;
        const heed_mha_args *args;
        size_t offsets[3], lengths[2], sequences[2];
        int32_t ids[6];
        heed_workspace memory, *workspace;
    } p;
    size_t bytes = 0;
#define reset()                                                                                                        \
    (memcpy(p.ids, (const int32_t[]){0, 2, 2, 1, 0, 1}, sizeof p.ids), p.w = model.layer.attention, p.a = good_mha(),  \
     p.weights = &p.w, p.args = &p.a, p.offsets[0] = 0, p.offsets[1] = 3, p.offsets[2] = 6, p.lengths[0] = 2,          \
     p.lengths[1] = 4, p.sequences[0] = 2, p.sequences[1] = 0, p.workspace = NULL)
#define SELF (p.a.memory = NULL, p.a.map.data = NULL, p.a.mask.type = HEED_MASK_NONE)
#define call() heed_mha(NULL, p.weights, p.args, p.workspace)
    begin("heed_mha refuses");
    GOOD((void)0);
    GOOD(SELF);
    GOOD((p.a.offsets = p.offsets, p.a.kv_lengths = p.lengths));
    WRONG(HEED_ERR_NULL, p.weights = NULL);
    WRONG(HEED_ERR_NULL, p.args = NULL);
    WRONG(HEED_ERR_NULL, p.w.query = NULL);
    WRONG(HEED_ERR_NULL, p.w.key = NULL);
    WRONG(HEED_ERR_NULL, p.w.value = NULL);
    WRONG(HEED_ERR_NULL, p.w.output = NULL);
    WRONG(HEED_ERR_FORMAT, p.w.value = (const heed_weights *)(void *)at(6));
    const heed_weights *pair = packed_pair(D_MODEL, D_MODEL, at(0), at(1));
    WRONG(HEED_ERR_VALUE, p.w.query = pair);
    WRONG(HEED_ERR_VALUE, p.w.key = pair);
    WRONG(HEED_ERR_VALUE, p.w.value = pair);
    WRONG(HEED_ERR_VALUE, p.w.output = pair);
    WRONG(HEED_ERR_SHAPE, p.w.query = p.w.key);
    WRONG(HEED_ERR_SHAPE, p.w.key = p.w.query);
    WRONG(HEED_ERR_SHAPE, p.w.value = p.w.query);
    WRONG(HEED_ERR_SHAPE, p.w.output = p.w.query);
    WRONG(HEED_ERR_SHAPE, p.w.value = packed(D_MODEL + 1, 3, at(0)));
    WRONG(HEED_ERR_SHAPE, (SELF, p.w.key = packed(D_MODEL + 1, 4, at(0)), p.w.value = packed(D_MODEL + 1, 3, at(0))));
    GOOD((p.w.key = packed(D_MODEL + 1, 4, at(0)), p.w.value = packed(D_MODEL + 1, 3, at(0))));
    WRONG(HEED_ERR_SHAPE, p.w.n_heads = 3);
    WRONG(HEED_ERR_SHAPE, p.w.n_heads = 0);
    WRONG(HEED_ERR_SHAPE, p.w.n_kv_heads = 2);
    WRONG(HEED_ERR_SHAPE, p.w.n_kv_heads = SIZE_MAX);
    WRONG(HEED_ERR_SHAPE, p.w.head_dim = 5);
    WRONG(HEED_ERR_SHAPE, p.w.value_dim = 4);
    WRONG(HEED_ERR_NULL, p.a.x = NULL);
    WRONG(HEED_ERR_NULL, p.a.y = NULL);
    WRONG(HEED_ERR_NULL, p.a.mask.data = NULL);
    WRONG(HEED_ERR_STRIDE, p.a.ldx = D_MODEL - 1);
    WRONG(HEED_ERR_STRIDE, p.a.ld_memory = D_MODEL - 1);
    WRONG(HEED_ERR_STRIDE, p.a.ld_residual = D_MODEL - 1);
    WRONG(HEED_ERR_STRIDE, p.a.ldy = D_MODEL - 1);
    WRONG(HEED_ERR_STRIDE, p.a.map.row_stride = 3);
    WRONG(HEED_ERR_ALIGNMENT, p.a.x = shifted(p.a.x, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.memory = shifted(p.a.memory, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.residual = shifted(p.a.residual, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.y = shifted(p.a.y, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.map.data = shifted(p.a.map.data, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.mask.data = shifted(p.a.mask.data, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.w.query_bias = shifted(p.w.query_bias, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.w.key_bias = shifted(p.w.key_bias, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.w.value_bias = shifted(p.w.value_bias, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.w.output_bias = shifted(p.w.output_bias, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.offsets = shifted(p.offsets, 2));
    WRONG(HEED_ERR_ENUM, p.a.causal = (heed_causal)NOT_IN_ENUM);
    WRONG(HEED_ERR_ENUM, p.a.mask.type = (heed_mask_type)NOT_IN_ENUM);
    WRONG(HEED_ERR_ENUM, p.a.scale = (heed_scale)NOT_IN_ENUM);
    WRONG(HEED_ERR_VALUE, (p.a.scale = HEED_SCALE_VALUE, p.a.scale_value = NAN));
    WRONG(HEED_ERR_SHAPE, (p.lengths[1] = 5, p.a.kv_lengths = p.lengths));
    WRONG(HEED_ERR_VALUE, p.a.softcap = -1.0f);
    WRONG(HEED_ERR_ALIGNMENT, p.a.slopes = shifted(p.a.x, 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.sinks = shifted(p.a.x, 1));
    WRONG(HEED_ERR_OVERLAP, p.a.slopes = p.a.y);
    WRONG(HEED_ERR_OVERLAP, p.a.sinks = p.a.y + 1);
    WRONG(HEED_ERR_OVERLAP, (p.a.mean_map = p.a.map, p.a.mean_map.data = (float *)(uintptr_t)p.a.x));
    WRONG(HEED_ERR_STRIDE, (p.a.mean_map = p.a.map, p.a.map.data = NULL, p.a.mean_map.row_stride = 3));
    WRONG(HEED_ERR_INDEX, (p.offsets[0] = 1, p.a.offsets = p.offsets));
    WRONG(HEED_ERR_INDEX, (p.offsets[2] = 2, p.a.offsets = p.offsets));
    WRONG(HEED_ERR_SHAPE, (p.offsets[1] = 4, p.a.offsets = p.offsets));
    WRONG(HEED_ERR_INDEX, (p.offsets[0] = 1, p.a.memory_offsets = p.offsets));
    WRONG_STRUCTS(p.w, p.weights);
    WRONG_STRUCTS(p.a, p.args);
    end();

    begin("heed_mha refuses overlaps and sizes");
    WRONG(HEED_ERR_OVERLAP, p.a.y = at(0));
    WRONG(HEED_ERR_OVERLAP, p.a.y = at(1));
    WRONG(HEED_ERR_OVERLAP, p.a.y = at(2));
    WRONG(HEED_ERR_OVERLAP, p.a.y = at(4));
    WRONG(HEED_ERR_OVERLAP, p.a.y = at(5));
    WRONG(HEED_ERR_OVERLAP, p.a.map.data = at(0));
    WRONG(HEED_ERR_OVERLAP, p.a.map.data = at(1));
    WRONG(HEED_ERR_OVERLAP, p.a.map.data = at(2));
    WRONG(HEED_ERR_OVERLAP, p.a.map.data = at(5));
    WRONG(HEED_ERR_OVERLAP, (p.a.seq_kv = 3, p.a.y = at(1), p.a.ldy = 10));
    WRONG(HEED_ERR_OVERLAP, (p.a.offsets = p.offsets, p.a.y = shifted(&p.offsets[2], 0)));
    WRONG(HEED_ERR_OVERLAP, (p.a.memory_offsets = p.offsets, p.a.y = shifted(&p.offsets[2], 0)));
    WRONG(HEED_ERR_OVERLAP, (p.a.kv_lengths = p.lengths, p.a.y = shifted(&p.lengths[1], 0)));
    WRONG(HEED_ERR_OVERLAP, p.w.query_bias = p.a.y - (2 * 4 - 1));
    WRONG(HEED_ERR_OVERLAP, p.w.key_bias = p.a.y - 3);
    WRONG(HEED_ERR_OVERLAP, p.w.value_bias = p.a.y - 2);
    WRONG(HEED_ERR_OVERLAP, p.w.output_bias = p.a.y - (D_MODEL - 1));
    WRONG(HEED_ERR_OVERLAP, p.a.slopes = p.a.y - 1);
    WRONG(HEED_ERR_OVERLAP, p.a.sinks = p.a.y - 1);
    WRONG(HEED_ERR_OVERLAP, p.a.y = shifted(p.w.query, 64));
    WRONG(HEED_ERR_OVERLAP, p.a.y = shifted(p.w.key, 64));
    WRONG(HEED_ERR_OVERLAP, p.a.y = shifted(p.w.value, 64));
    WRONG(HEED_ERR_OVERLAP, p.a.y = shifted(p.w.output, 64));
    GOOD((p.a.y = at(0), p.a.ldy = 9));
    GOOD((p.a.y = at(2), p.a.ldy = 11));
#define HUGE_SIZE(size)                                                                                                \
    WRONG(HEED_ERR_OVERFLOW, p.a.seq_q = size);                                                                        \
    WRONG(HEED_ERR_OVERFLOW, p.a.seq_kv = size);                                                                       \
    WRONG(HEED_ERR_OVERFLOW, p.a.ldx = size);                                                                          \
    WRONG(HEED_ERR_OVERFLOW, p.a.ld_memory = size);                                                                    \
    WRONG(HEED_ERR_OVERFLOW, p.a.ld_residual = size);                                                                  \
    WRONG(HEED_ERR_OVERFLOW, p.a.ldy = size);
    HUGE_SIZES(HUGE_SIZE)
#undef HUGE_SIZE
    reset();
    CHECK(heed_mha_workspace(NULL, &p.w, &p.a, &bytes) == HEED_OK && bytes > 0);
    CHECK(heed_mha_workspace(NULL, &p.w, &p.a, NULL) == HEED_ERR_NULL);
    CHECK(heed_mha_workspace(NULL, NULL, &p.a, &bytes) == HEED_ERR_NULL);
    CHECK(heed_mha_workspace(NULL, &p.w, NULL, &bytes) == HEED_ERR_NULL);
    float *memory = buffer(bytes / sizeof(float) + 16, 1);
    GOOD(WITH(memory, bytes));
    WRONG(HEED_ERR_WORKSPACE, WITH(memory, bytes - 1));
    WRONG(HEED_ERR_NULL, WITH(NULL, bytes));
    WRONG(HEED_ERR_ALIGNMENT, WITH(shifted(memory, 1), bytes));
    for (size_t i = 0; i < 6; i++)
        WRONG(HEED_ERR_OVERLAP, WITH(at(i), bytes));
    WRONG(HEED_OK, (p.a.batch = 0, p.a.x = p.a.memory = p.a.residual = p.a.y = NULL));
    WRONG(HEED_OK, (SELF, p.a.seq_q = 0, p.a.x = p.a.residual = p.a.y = NULL));
    WRONG(HEED_OK, (p.offsets[1] = p.offsets[2] = 0, p.a.offsets = p.offsets, p.a.mask.data = p.a.map.data = NULL));
    end();

    begin("heed_mha with a cache refuses");
    heed_kv_cache *cache = cache_in_arena(7, 3), *other = cache_in_arena(9, 4);
#define CACHED (SELF, p.a.cache = cache, p.a.cache_sequences = p.sequences, p.a.seq_kv = 5)
    GOOD(CACHED);
    GOOD((CACHED, p.a.cache_sequences = NULL));
    GOOD((CACHED, p.a.memory = at(1), p.a.memory_offsets = p.offsets));
    GOOD((CACHED, p.a.memory = shifted(at(1), 1)));
    GOOD((CACHED, p.a.seq_q = 0, p.a.x = p.a.residual = p.a.y = NULL, p.a.memory = at(1),
          p.a.memory_offsets = p.offsets));
    WRONG(HEED_OK, (CACHED, p.a.seq_q = 0, p.a.x = p.a.residual = p.a.y = NULL));
    WRONG(HEED_ERR_SHAPE, (CACHED, p.a.seq_kv = 2));
    WRONG(HEED_ERR_SHAPE, (CACHED, p.a.seq_q = p.a.seq_kv = 11));
    WRONG(HEED_ERR_SHAPE, (CACHED, p.a.cache = other));
    WRONG(HEED_ERR_SHAPE, (CACHED, p.a.kv_lengths = p.lengths));
    WRONG(HEED_ERR_SHAPE, (CACHED, p.a.memory = at(1), p.a.memory_offsets = p.offsets, p.a.seq_kv = 2));
    WRONG(HEED_ERR_INDEX, (CACHED, p.a.cache_sequences = NULL, p.a.batch = 4));
    WRONG(HEED_ERR_INDEX, (CACHED, p.sequences[1] = 3));
    WRONG(HEED_ERR_INDEX, (CACHED, p.a.memory = at(1), p.a.memory_offsets = p.offsets, p.offsets[2] = 2));
    WRONG(HEED_ERR_OVERLAP, (CACHED, p.sequences[1] = 2));
    WRONG(HEED_ERR_ALIGNMENT, (CACHED, p.a.cache_sequences = shifted(p.sequences, 2)));
    WRONG(HEED_ERR_NULL, (CACHED, p.a.x = NULL));
    WRONG(HEED_ERR_OVERLAP, (CACHED, p.a.x = at(7)));
    WRONG(HEED_ERR_OVERLAP, (CACHED, p.a.y = at(7) + 100));
    WRONG(HEED_ERR_OVERLAP, (CACHED, p.a.residual = at(7)));
    WRONG(HEED_ERR_OVERLAP, (CACHED, p.w.key_bias = at(7)));
    WRONG(HEED_ERR_OVERLAP, (CACHED, p.a.y = shifted(p.sequences, 0)));
    WRONG(HEED_ERR_OVERLAP, (CACHED, WITH(at(7), (size_t)1 << 20)));
    WRONG(HEED_ERR_WORKSPACE, (CACHED, WITH(memory, 64)));
    end();

    begin("heed_mha with rotary and norms of heads refuses");
#define TURNED                                                                                                         \
    (SELF, p.a.rotary = (heed_rotary_tables){HEED_ROTARY_HALVES, 4, at(10), at(11), 2, 3, 3}, p.w.query_norm = at(4),  \
     p.w.key_norm = at(5))
    GOOD(TURNED);
    GOOD((TURNED, p.a.position_ids = p.ids));
    GOOD((TURNED, p.a.offsets = p.offsets, p.a.rotary.dims = 2, p.a.rotary.pairs = HEED_ROTARY_INTERLEAVED));
    GOOD((TURNED, p.a.rotary.dims = 0, p.a.rotary.cosine = p.a.rotary.sine = NULL, p.a.rotary.positions = 0));
    GOOD((TURNED, p.a.rotary.dims = 0, p.a.memory = at(1)));
    WRONG(HEED_OK, (TURNED, p.offsets[1] = p.offsets[2] = 0, p.a.offsets = p.offsets,
                    p.a.rotary.cosine = p.a.rotary.sine = NULL));
    WRONG(HEED_ERR_VALUE, (TURNED, p.a.memory = at(1)));
    WRONG(HEED_ERR_VALUE, p.w.norm_eps = -1.0f);
    WRONG(HEED_ERR_VALUE, (TURNED, p.w.norm_eps = NAN));
    WRONG(HEED_ERR_VALUE, (TURNED, p.w.norm_eps = INFINITY));
    WRONG(HEED_ERR_ENUM, (TURNED, p.a.rotary.pairs = (heed_rotary_pairs)NOT_IN_ENUM));
    WRONG(HEED_ERR_SHAPE, (TURNED, p.a.rotary.dims = 3));
    WRONG(HEED_ERR_SHAPE, (TURNED, p.a.rotary.dims = 6));
    WRONG(HEED_ERR_NULL, (TURNED, p.a.rotary.cosine = NULL));
    WRONG(HEED_ERR_NULL, (TURNED, p.a.rotary.sine = NULL));
    WRONG(HEED_ERR_STRIDE, (TURNED, p.a.rotary.ld_cosine = 1));
    WRONG(HEED_ERR_STRIDE, (TURNED, p.a.rotary.ld_sine = 1));
    WRONG(HEED_ERR_OVERFLOW, (TURNED, p.a.rotary.ld_cosine = SIZE_MAX / 4));
    WRONG(HEED_ERR_OVERFLOW, (TURNED, p.a.rotary.ld_sine = SIZE_MAX / 4));
    WRONG(HEED_ERR_ALIGNMENT, (TURNED, p.a.rotary.cosine = shifted(at(10), 1)));
    WRONG(HEED_ERR_ALIGNMENT, (TURNED, p.a.rotary.sine = shifted(at(11), 1)));
    WRONG(HEED_ERR_ALIGNMENT, (TURNED, p.a.position_ids = shifted(p.ids, 1)));
    WRONG(HEED_ERR_ALIGNMENT, (TURNED, p.w.query_norm = shifted(at(4), 1)));
    WRONG(HEED_ERR_ALIGNMENT, (TURNED, p.w.key_norm = shifted(at(5), 1)));
    WRONG(HEED_ERR_INDEX, (TURNED, p.a.rotary.positions = 2));
    WRONG(HEED_ERR_INDEX, (TURNED, p.a.position_ids = p.ids, p.a.rotary.positions = 2));
    WRONG(HEED_ERR_INDEX, (TURNED, p.a.position_ids = p.ids, p.ids[5] = 3));
    WRONG(HEED_ERR_INDEX, (TURNED, p.a.position_ids = p.ids, p.ids[0] = -1));
    WRONG(HEED_ERR_OVERLAP, (TURNED, p.a.rotary.cosine = p.a.y - (2 * 2 + 1)));
    WRONG(HEED_ERR_OVERLAP, (TURNED, p.a.rotary.sine = p.a.y - (2 * 3 + 1)));
    WRONG(HEED_ERR_OVERLAP, (TURNED, p.w.query_norm = p.a.y - 3));
    WRONG(HEED_ERR_OVERLAP, (TURNED, p.w.key_norm = p.a.y - 3));
    WRONG(HEED_ERR_OVERLAP, (TURNED, p.a.position_ids = p.ids, p.a.y = shifted(&p.ids[5], 0)));
    WRONG(HEED_ERR_OVERFLOW, (TURNED, p.a.batch = SIZE_MAX / 64));
    reset();
    TURNED;
    size_t counted = 0, given = 0;
    CHECK(heed_mha_workspace(NULL, &p.w, &p.a, &counted) == HEED_OK);
    p.a.position_ids = p.ids;
    CHECK(heed_mha_workspace(NULL, &p.w, &p.a, &given) == HEED_OK && counted == given + 64);
    const heed_heads key = {at(0), 0, 4, 4}, value = {at(0), 0, 3, 3};
    CHECK(heed_kv_cache_append(NULL, cache, p.sequences[1], 1, &key, &value) == HEED_OK);
    pristine = arena;
    WRONG(HEED_ERR_INDEX, (CACHED, TURNED));
    GOOD((CACHED, TURNED, p.a.rotary.positions = 4));
    GOOD((CACHED, TURNED, p.a.position_ids = p.ids));
#undef TURNED
#undef CACHED
#undef reset
#undef call
    end();
}

static void test_encoder(void)
{
    static struct {
        heed_encoder_layer layers[3];
        heed_mha_weights w, second_w;
        heed_ffn_weights f, second_f;
        heed_encoder_args a;
        const heed_encoder_layer *given_layers;
        const heed_encoder_args *given;
        size_t n, offsets[3], lengths[2], sequences[2];
        int32_t ids[6];
        heed_workspace memory, *workspace;
    } p;
    const heed_encoder_args defaults = HEED_ENCODER_ARGS_INIT;
    const heed_rotary_tables turning = {HEED_ROTARY_HALVES, 4, at(8), at(9), 2, 3, 3};
    size_t bytes = 0;
#define reset()                                                                                                        \
    (memcpy(p.ids, (const int32_t[]){0, 2, 2, 1, 0, 1}, sizeof p.ids), p.w = p.second_w = model.layer.attention,       \
     p.f = p.second_f = model.layer.ffn, p.layers[0] = model.layer.layer, p.layers[0].attention = &p.w,                \
     p.layers[0].ffn = &p.f, p.layers[1] = p.layers[2] = p.layers[0], p.layers[1].attention = &p.second_w,             \
     p.layers[1].ffn = &p.second_f, p.n = 2, p.given_layers = p.layers, p.a = defaults, p.a.batch = 2, p.a.seq = 3,    \
     p.a.x = at(0), p.a.ldx = 9, p.a.y = at(1), p.a.ldy = 10, p.a.final_scale = at(2), p.a.final_shift = at(3),        \
     p.a.mask = (heed_mask){at(4), HEED_MASK_ADDITIVE, 0, 0, 3}, p.given = &p.a, p.offsets[0] = 0, p.offsets[1] = 3,   \
     p.offsets[2] = 5, p.lengths[0] = 1, p.lengths[1] = 3, p.sequences[0] = 2, p.sequences[1] = 0, p.workspace = NULL)
#define call() heed_encoder(NULL, p.n, p.given_layers, p.given, p.workspace)
    float *scratch = buffer((size_t)1 << 16, 0);
    memset(scratch, 0, sizeof(float) << 16);
    const heed_weights *pair = packed_pair(D_MODEL, D_FF, at(0), at(1));
    heed_mha_weights wider = model.layer.attention;
    wider.query = packed(D_MODEL + 1, 2 * 4, at(0));
    wider.key = packed(D_MODEL + 1, 4, at(0));
    wider.value = packed(D_MODEL + 1, 3, at(0));
    begin("heed_encoder refuses");
    GOOD((void)0);
    GOOD(p.a.offsets = p.offsets);
    WRONG(HEED_ERR_SHAPE, p.n = 0);
    WRONG(HEED_ERR_NULL, p.given_layers = NULL);
    WRONG(HEED_ERR_NULL, p.given = NULL);
    for (size_t i = 0; i < 2; i++) {
        WRONG(HEED_ERR_NULL, p.layers[i].attention = NULL);
        WRONG(HEED_ERR_NULL, p.layers[i].ffn = NULL);
        WRONG(HEED_ERR_VALUE, p.layers[i].eps = -1.0f);
        WRONG(HEED_ERR_VALUE, p.layers[i].eps = NAN);
        WRONG(HEED_ERR_VALUE, p.layers[i].eps = INFINITY);
        WRONG(HEED_ERR_ENUM, p.layers[i].order = (heed_norm_order)NOT_IN_ENUM);
        WRONG(HEED_ERR_ALIGNMENT, p.layers[i].norm1_scale = shifted(at(5), 1));
        WRONG(HEED_ERR_ALIGNMENT, p.layers[i].norm1_shift = shifted(at(5), 1));
        WRONG(HEED_ERR_ALIGNMENT, p.layers[i].norm2_scale = shifted(at(5), 1));
        WRONG(HEED_ERR_ALIGNMENT, p.layers[i].norm2_shift = shifted(at(5), 1));
        WRONG(HEED_ERR_OVERLAP, p.layers[i].norm1_scale = p.a.y);
        WRONG(HEED_ERR_OVERLAP, p.layers[i].norm1_shift = p.a.y - (D_MODEL - 1));
        WRONG(HEED_ERR_OVERLAP, p.layers[i].norm2_scale = p.a.y - (D_MODEL - 1));
        WRONG(HEED_ERR_OVERLAP, p.layers[i].norm2_shift = p.a.y);
        WRONG(HEED_ERR_STRUCT, p.layers[i].struct_size = 0);
        WRONG(HEED_ERR_SHAPE, p.layers[i].attention = &wider);
        GOOD(p.layers[i].eps = 0.0f);
        WRONG(HEED_ERR_ENUM, p.layers[i].norm = (heed_norm)NOT_IN_ENUM);
        WRONG(HEED_ERR_VALUE, (p.layers[i].norm = HEED_NORM_RMSNORM, p.layers[i].norm1_shift = at(5)));
        WRONG(HEED_ERR_VALUE, (p.layers[i].norm = HEED_NORM_RMSNORM, p.layers[i].norm2_shift = at(5)));
        GOOD((p.layers[i].norm = HEED_NORM_RMSNORM, p.layers[i].norm1_shift = p.layers[i].norm2_shift = NULL));
        GOOD(p.layers[i].rotary = turning);
        WRONG(HEED_ERR_INDEX, (p.layers[i].rotary = turning, p.layers[i].rotary.positions = 2));
        WRONG(HEED_ERR_SHAPE, (p.layers[i].rotary = turning, p.layers[i].rotary.dims = 6));
        WRONG(HEED_ERR_OVERLAP, (p.layers[i].rotary = turning, p.a.y = at(8)));
        WRONG(HEED_ERR_OVERLAP, (p.layers[i].rotary = turning, p.a.y = at(9)));
        GOOD((p.layers[i].rotary = turning, p.a.position_ids = p.ids));
        WRONG(HEED_ERR_INDEX, (p.layers[i].rotary = turning, p.a.position_ids = p.ids, p.ids[5] = 3));
        WRONG(HEED_ERR_ALIGNMENT, (p.layers[i].rotary = turning, p.a.position_ids = shifted(p.ids, 1)));
        WRONG(HEED_ERR_ENUM, p.layers[i].scale = (heed_scale)NOT_IN_ENUM);
        WRONG(HEED_ERR_VALUE, (p.layers[i].scale = HEED_SCALE_VALUE, p.layers[i].scale_value = NAN));
        WRONG(HEED_ERR_VALUE, p.layers[i].scale_value = 1.0f);
        WRONG(HEED_ERR_VALUE, p.layers[i].softcap = -1.0f);
        WRONG(HEED_ERR_ALIGNMENT, p.layers[i].slopes = shifted(at(5), 1));
        WRONG(HEED_ERR_ALIGNMENT, p.layers[i].sinks = shifted(at(5), 1));
        WRONG(HEED_ERR_OVERLAP, p.layers[i].slopes = p.a.y);
        WRONG(HEED_ERR_OVERLAP, p.layers[i].sinks = p.a.y);
    }
    WRONG(HEED_ERR_SHAPE, p.f.down = p.f.up);
    WRONG(HEED_ERR_SHAPE, p.w.n_heads = 4);
    WRONG(HEED_ERR_SHAPE, p.w.output = packed(2 * 3, D_MODEL + 1, at(0)));
    WRONG(HEED_ERR_SHAPE, p.f.up = packed(D_MODEL + 1, D_FF, at(0)));
    WRONG(HEED_ERR_SHAPE, p.f.down = packed(D_FF, D_MODEL + 1, at(0)));
    WRONG(HEED_ERR_ENUM, p.f.activation = (heed_activation)NOT_IN_ENUM);
    WRONG(HEED_ERR_NULL, p.w.output = NULL);
    GOOD((p.f.up = pair, p.f.gate_bias = at(5)));
    GOOD(
        (p.f.up = packed(D_MODEL, WIDE_FF, scratch), p.f.down = packed(WIDE_FF, D_MODEL, scratch), p.f.up_bias = NULL));
    WRONG(HEED_ERR_ENUM, p.a.final_norm = (heed_norm)NOT_IN_ENUM);
    WRONG(HEED_ERR_VALUE, p.a.final_norm = HEED_NORM_RMSNORM);
    GOOD((p.a.final_norm = HEED_NORM_RMSNORM, p.a.final_shift = NULL));
    WRONG(HEED_ERR_VALUE, p.a.final_eps = NAN);
    WRONG(HEED_ERR_VALUE, p.a.final_eps = -1.0f);
    GOOD(p.a.final_eps = 0.0f);
    WRONG(HEED_ERR_NULL, p.a.x = NULL);
    WRONG(HEED_ERR_NULL, p.a.y = NULL);
    WRONG(HEED_ERR_NULL, p.a.mask.data = NULL);
    GOOD(p.a.mask = ((heed_mask){shifted(at(4), 1), HEED_MASK_BOOLEAN, 0, 0, 3}));
    WRONG(HEED_ERR_STRIDE, p.a.ldx = 7);
    WRONG(HEED_ERR_STRIDE, p.a.ldy = 7);
    WRONG(HEED_ERR_ALIGNMENT, p.a.x = shifted(at(0), 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.y = shifted(at(1), 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.final_scale = shifted(at(2), 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.final_shift = shifted(at(3), 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.mask.data = shifted(at(4), 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.offsets = shifted(p.offsets, 2));
    WRONG(HEED_ERR_ENUM, p.a.causal = (heed_causal)NOT_IN_ENUM);
    WRONG(HEED_ERR_ENUM, p.a.mask.type = (heed_mask_type)NOT_IN_ENUM);
    WRONG(HEED_ERR_INDEX, (p.a.offsets = p.offsets, p.offsets[0] = 1));
    WRONG(HEED_ERR_INDEX, (p.a.offsets = p.offsets, p.offsets[2] = 2));
    WRONG(HEED_ERR_SHAPE, (p.a.offsets = p.offsets, p.offsets[2] = 7));
    WRONG(HEED_ERR_SHAPE, (p.a.kv_lengths = p.lengths, p.lengths[0] = 4));
    WRONG(HEED_ERR_OVERLAP, p.a.y = at(0));
    WRONG(HEED_ERR_OVERLAP, p.a.y = at(0) + 1);
    WRONG(HEED_ERR_OVERLAP, p.a.y = at(2));
    WRONG(HEED_ERR_OVERLAP, p.a.y = at(3));
    WRONG(HEED_ERR_OVERLAP, p.a.y = at(4));
    WRONG(HEED_ERR_OVERLAP, p.a.y = shifted(p.w.query, 64));
    WRONG(HEED_ERR_OVERLAP, p.a.y = shifted(p.w.key, 64));
    WRONG(HEED_ERR_OVERLAP, p.a.y = shifted(p.w.value, 64));
    WRONG(HEED_ERR_OVERLAP, p.a.y = shifted(p.w.output, 64));
    WRONG(HEED_ERR_OVERLAP, p.a.y = shifted(p.f.up, 64));
    WRONG(HEED_ERR_OVERLAP, p.a.y = shifted(p.f.down, 64));
    WRONG(HEED_ERR_OVERLAP, (p.a.offsets = p.offsets, p.a.y = shifted(&p.offsets[2], 0)));
    WRONG(HEED_ERR_OVERLAP, (p.a.kv_lengths = p.lengths, p.a.y = shifted(&p.lengths[1], 0)));
    WRONG(HEED_ERR_FORMAT, p.w.query = (const heed_weights *)(const void *)at(6));
    WRONG(HEED_ERR_STRUCT, (p.w.struct_size = 0, p.w.query = NULL));
    WRONG(HEED_ERR_OVERLAP,
          (p.a.mask.data = scratch, p.memory = (heed_workspace){scratch, 4 << 16}, p.workspace = &p.memory));
    GOOD((p.a.y = at(0), p.a.ldy = 9));
#define HUGE_SIZE(size)                                                                                                \
    WRONG(HEED_ERR_OVERFLOW, p.a.seq = size);                                                                          \
    WRONG(HEED_ERR_OVERFLOW, p.a.ldx = size);                                                                          \
    WRONG(HEED_ERR_OVERFLOW, p.a.ldy = size);
    HUGE_SIZES(HUGE_SIZE)
#undef HUGE_SIZE
    WRONG_STRUCTS(p.a, p.given);
    GOOD((p.n = 1, p.given_layers = extended(&p.layers[0], sizeof p.layers[0], 0)));
    WRONG(HEED_ERR_STRUCT, (p.n = 1, p.given_layers = extended(&p.layers[0], sizeof p.layers[0], 1)));
    WRONG(HEED_ERR_STRUCT, p.given_layers = unlike_layers(p.layers));
    GOOD(p.a.cache_sequences = shifted(p.a.y, 1));
    reset();
    CHECK(heed_encoder_workspace(NULL, 2, p.layers, &p.a, &bytes) == HEED_OK && bytes > 0);
    CHECK(heed_encoder_workspace(NULL, 2, p.layers, &p.a, NULL) == HEED_ERR_NULL);
    CHECK(heed_encoder_workspace(NULL, 0, p.layers, &p.a, &bytes) == HEED_ERR_SHAPE);
    CHECK(heed_encoder_workspace(NULL, 2, NULL, &p.a, &bytes) == HEED_ERR_NULL);
    CHECK(heed_encoder_workspace(NULL, 2, p.layers, NULL, &bytes) == HEED_ERR_NULL);
    size_t pre_first = 0, pre_last = 0; /* that norms come first in any layer takes room */
    p.layers[0].order = HEED_NORM_PRE;
    p.layers[1].order = HEED_NORM_POST;
    CHECK(heed_encoder_workspace(NULL, 2, p.layers, &p.a, &pre_first) == HEED_OK);
    p.layers[0].order = HEED_NORM_POST;
    p.layers[1].order = HEED_NORM_PRE;
    CHECK(heed_encoder_workspace(NULL, 2, p.layers, &p.a, &pre_last) == HEED_OK);
    check_that(pre_first == pre_last, "%zu bytes, %zu with the layers swapped", pre_first, pre_last);
    reset();
    float *memory = buffer(bytes / sizeof(float) + 16, 1);
    GOOD(WITH(memory, bytes));
    WRONG(HEED_ERR_WORKSPACE, WITH(memory, bytes - 1));
    WRONG(HEED_ERR_NULL, WITH(NULL, bytes));
    WRONG(HEED_ERR_ALIGNMENT, WITH(shifted(memory, 1), bytes));
    for (size_t i = 0; i < 4; i++)
        WRONG(HEED_ERR_OVERLAP, WITH(at(i), bytes));
    WRONG(HEED_OK, (p.a.batch = 0, p.a.x = p.a.y = NULL));
    end();

    begin("heed_encoder refuses before the first layer what is wrong with the second one");
    const heed_weights *down = NULL; /* in memory that is watched */
    CHECK(heed_weights_pack(NULL, HEED_TYPE_F32, HEED_LAYOUT_IN_OUT, D_FF, D_MODEL, scratch, D_MODEL, at(11),
                            sizeof arena.slot[11], &down) == HEED_OK);
    pristine = arena;
    WRONG(HEED_ERR_OVERLAP, (p.second_f.down = down, p.a.y = at(11) + 20));
    const struct {
        const float **bias;
        size_t n;
    } biases[] = {{&p.second_w.query_bias, 2 * 4},    {&p.second_w.key_bias, 4},   {&p.second_w.value_bias, 3},
                  {&p.second_w.output_bias, D_MODEL}, {&p.second_f.up_bias, D_FF}, {&p.second_f.gate_bias, D_FF},
                  {&p.second_f.down_bias, D_MODEL}};
    for (size_t i = 0; i < COUNT(biases); i++) {
        WRONG(HEED_ERR_ALIGNMENT, (p.second_f.up = pair, *biases[i].bias = shifted(at(5), 1)));
        WRONG(HEED_ERR_OVERLAP, (p.second_f.up = pair, *biases[i].bias = p.a.y - (biases[i].n - 1)));
        GOOD((p.second_f.up = pair, *biases[i].bias = p.a.y - biases[i].n));
    }
    end();

    begin("heed_encoder with caches refuses");
    heed_kv_cache *caches[] = {cache_in_arena(7, 3), cache_in_arena(9, 3)};
#define CACHED                                                                                                         \
    (p.layers[0].cache = caches[0], p.layers[1].cache = caches[1], p.a.cache_sequences = p.sequences, p.a.seq_kv = 3)
    GOOD(CACHED);
    GOOD((CACHED, p.a.cache_sequences = NULL, p.a.offsets = p.offsets));
    for (size_t i = 0; i < 2; i++) {
        WRONG(HEED_ERR_NULL, (CACHED, p.layers[i].cache = NULL));
        WRONG(HEED_ERR_OVERLAP, (CACHED, p.layers[i].cache = caches[1 - i]));
        WRONG(HEED_ERR_OVERLAP, (CACHED, p.layers[i].norm1_scale = at(7 + 2 * i)));
        WRONG(HEED_ERR_OVERLAP, (CACHED, p.a.x = at(7 + 2 * i)));
        WRONG(HEED_ERR_OVERLAP, (CACHED, p.a.y = at(7 + 2 * i)));
        WRONG(HEED_ERR_OVERLAP, (CACHED, p.a.final_scale = at(7 + 2 * i)));
        WRONG(HEED_ERR_OVERLAP, (CACHED, p.a.mask.data = at(7 + 2 * i)));
        WRONG(HEED_ERR_OVERLAP, (CACHED, WITH(at(7 + 2 * i), (size_t)1 << 20)));
    }
    WRONG(HEED_ERR_SHAPE, (CACHED, p.a.seq_kv = 2));
    WRONG(HEED_ERR_SHAPE, (CACHED, p.a.seq = p.a.seq_kv = 11));
    WRONG(HEED_ERR_OVERLAP, (CACHED, p.sequences[0] = 0));
    WRONG(HEED_ERR_INDEX, (CACHED, p.sequences[0] = 3));
    WRONG(HEED_ERR_ALIGNMENT, (CACHED, p.a.cache_sequences = shifted(p.sequences, 2)));
    WRONG(HEED_ERR_OVERLAP, (CACHED, p.a.y = shifted(&p.sequences[1], 0)));
    WRONG(HEED_ERR_OVERLAP, (CACHED, p.a.seq_kv = 5, p.a.y = at(4) + 2 * 3 + 4));
    WRONG(HEED_ERR_OVERLAP, (CACHED, p.n = 3, p.layers[2] = p.layers[0]));
#define ROTATED                                                                                                        \
    (CACHED, p.a.seq_kv = 4,                                                                                           \
     p.layers[0].rotary = p.layers[1].rotary = (heed_rotary_tables){HEED_ROTARY_HALVES, 4, at(5), at(6), 2, 3, 4})
    const heed_heads key = {at(0), 0, 4, 4}, value = {at(0), 0, 3, 3};
    for (size_t i = 0; i < 2; i++)
        CHECK(heed_kv_cache_append(NULL, caches[i], p.sequences[1], 1, &key, &value) == HEED_OK);
    pristine = arena;
    GOOD(ROTATED);
    WRONG(HEED_ERR_INDEX, (ROTATED, p.layers[0].rotary.positions = 3));
    WRONG(HEED_ERR_INDEX, (ROTATED, p.layers[1].rotary.positions = 3));
#undef ROTATED
#undef CACHED
#undef reset
#undef call
    end();
}

/* Of the tokens, and of what an encoder's layer has too, only one mistake each: test_encoder has them all. */
static void test_decoder(void)
{
    static struct {
        heed_encoder_layer self[2];
        heed_decoder_layer layers[3];
        heed_mha_weights cross[2];
        heed_encoder_args tokens;
        heed_decoder_args a;
        const heed_decoder_layer *given_layers;
        const heed_decoder_args *given;
        size_t n, offsets[3], lengths[2], sequences[2];
        heed_workspace memory, *workspace;
    } p;
    const heed_encoder_args no_tokens = HEED_ENCODER_ARGS_INIT;
    const heed_decoder_args no_memory = HEED_DECODER_ARGS_INIT;
    const heed_decoder_layer no_layer = HEED_DECODER_LAYER_INIT;
    size_t bytes = 0;
#define reset()                                                                                                        \
    (p.self[0] = p.self[1] = model.layer.layer, p.cross[0] = p.cross[1] = model.layer.attention,                       \
     p.layers[0] = p.layers[1] = no_layer, p.layers[0].self = &p.self[0], p.layers[1].self = &p.self[1],               \
     p.layers[0].cross = &p.cross[0], p.layers[1].cross = &p.cross[1], p.layers[0].norm_scale = at(5),                 \
     p.layers[1].norm_shift = at(5), p.layers[2] = p.layers[0], p.n = 2, p.given_layers = p.layers,                    \
     p.tokens = no_tokens, p.tokens.batch = 2, p.tokens.seq = 3, p.tokens.causal = HEED_CAUSAL_TOP_LEFT,               \
     p.tokens.x = at(0), p.tokens.ldx = 9, p.tokens.y = at(1), p.tokens.ldy = 10, p.a = no_memory,                     \
     p.a.self = &p.tokens, p.a.memory = at(2), p.a.ld_memory = 11, p.a.memory_seq = 4,                                 \
     p.a.memory_mask = (heed_mask){at(4), HEED_MASK_ADDITIVE, 0, 0, 4}, p.given = &p.a, p.offsets[0] = 0,              \
     p.offsets[1] = 4, p.offsets[2] = 6, p.lengths[0] = 1, p.lengths[1] = 3, p.sequences[0] = 2, p.sequences[1] = 0,   \
     p.workspace = NULL)
#define call() heed_decoder(NULL, p.n, p.given_layers, p.given, p.workspace)
    float *scratch = buffer((size_t)1 << 12, 0);
    memset(scratch, 0, sizeof(float) << 12);
    begin("heed_decoder refuses");
    GOOD((void)0);
    GOOD(p.a.memory_offsets = p.offsets);
    GOOD(p.a.memory_lengths = p.lengths);
    GOOD((p.a.memory_seq = 0, p.a.memory = NULL));
    WRONG(HEED_ERR_SHAPE, p.n = 0);
    WRONG(HEED_ERR_NULL, p.given_layers = NULL);
    WRONG(HEED_ERR_NULL, p.given = NULL);
    WRONG(HEED_ERR_NULL, p.a.self = NULL);
    for (size_t i = 0; i < 2; i++) {
        WRONG(HEED_ERR_NULL, p.layers[i].self = NULL);
        WRONG(HEED_ERR_NULL, p.layers[i].cross = NULL);
        WRONG(HEED_ERR_NULL, p.self[i].attention = NULL);
        WRONG(HEED_ERR_NULL, p.self[i].ffn = NULL);
        WRONG(HEED_ERR_STRUCT, p.self[i].struct_size = 0);
        WRONG(HEED_ERR_STRUCT, p.layers[i].struct_size = 0);
        WRONG(HEED_ERR_STRUCT, p.cross[i].struct_size = 0);
        WRONG(HEED_ERR_VALUE, p.self[i].eps = NAN);
        WRONG(HEED_ERR_VALUE, (p.self[i].norm = HEED_NORM_RMSNORM, p.self[i].norm1_shift = NULL,
                               p.self[i].norm2_shift = NULL, p.layers[i].norm_shift = at(5)));
        WRONG(HEED_ERR_ENUM, p.layers[i].scale = (heed_scale)NOT_IN_ENUM);
        WRONG(HEED_ERR_VALUE, (p.layers[i].scale = HEED_SCALE_VALUE, p.layers[i].scale_value = NAN));
        WRONG(HEED_ERR_VALUE, p.layers[i].scale_value = 1.0f);
        WRONG(HEED_ERR_SHAPE, p.cross[i].query = packed(D_MODEL + 1, 2 * 4, at(0)));
        WRONG(HEED_ERR_SHAPE, p.cross[i].output = packed(2 * 3, D_MODEL + 1, at(0)));
        WRONG(HEED_ERR_SHAPE, p.cross[i].n_heads = 4);
        WRONG(HEED_ERR_ALIGNMENT, p.layers[i].norm_scale = shifted(at(5), 1));
        WRONG(HEED_ERR_ALIGNMENT, p.layers[i].norm_shift = shifted(at(5), 1));
        WRONG(HEED_ERR_ALIGNMENT, p.cross[i].key_bias = shifted(at(5), 1));
        WRONG(HEED_ERR_OVERLAP, p.layers[i].norm_scale = p.tokens.y - (D_MODEL - 1));
        WRONG(HEED_ERR_OVERLAP, p.layers[i].norm_shift = p.tokens.y - (D_MODEL - 1));
        WRONG(HEED_ERR_OVERLAP, p.cross[i].value_bias = p.tokens.y - 2);
    }
    GOOD((p.cross[1].key = packed(D_MODEL - 1, 4, at(0)), p.cross[1].value = packed(D_MODEL - 1, 3, at(0))));
    WRONG(HEED_ERR_STRIDE,
          (p.cross[1].key = packed(D_MODEL + 4, 4, at(0)), p.cross[1].value = packed(D_MODEL + 4, 3, at(0))));
    WRONG(HEED_ERR_NULL, p.tokens.x = NULL);
    WRONG(HEED_ERR_NULL, p.a.memory = NULL);
    WRONG(HEED_ERR_NULL, p.a.memory_mask.data = NULL);
    WRONG(HEED_ERR_STRIDE, p.a.ld_memory = D_MODEL - 1);
    WRONG(HEED_ERR_ALIGNMENT, p.a.memory = shifted(at(2), 1));
    WRONG(HEED_ERR_ALIGNMENT, p.a.memory_offsets = shifted(p.offsets, 2));
    WRONG(HEED_ERR_ALIGNMENT, p.a.memory_lengths = shifted(p.lengths, 2));
    WRONG(HEED_ERR_ENUM, p.a.memory_mask.type = (heed_mask_type)NOT_IN_ENUM);
    WRONG(HEED_ERR_ENUM, p.tokens.causal = (heed_causal)NOT_IN_ENUM);
    WRONG(HEED_ERR_ENUM, p.tokens.final_norm = (heed_norm)NOT_IN_ENUM);
    WRONG(HEED_ERR_INDEX, (p.a.memory_offsets = p.offsets, p.offsets[0] = 1));
    WRONG(HEED_ERR_INDEX, (p.a.memory_offsets = p.offsets, p.offsets[2] = 3));
    WRONG(HEED_ERR_SHAPE, (p.a.memory_offsets = p.offsets, p.offsets[2] = 9));
    WRONG(HEED_ERR_SHAPE, (p.a.memory_lengths = p.lengths, p.lengths[1] = 5));
    WRONG(HEED_ERR_OVERLAP, p.tokens.y = at(0) + 1);
    WRONG(HEED_ERR_OVERLAP, p.tokens.y = at(2));
    WRONG(HEED_ERR_OVERLAP, (p.a.memory_seq = 3, p.tokens.y = at(2), p.tokens.ldy = p.a.ld_memory));
    WRONG(HEED_ERR_OVERLAP, p.tokens.y = at(2) + 7 * 11 + D_MODEL - 1);
    WRONG(HEED_ERR_OVERLAP, p.tokens.y = at(4));
    WRONG(HEED_ERR_OVERLAP, p.tokens.y = shifted(p.cross[0].output, 64));
    WRONG(HEED_ERR_OVERLAP, (p.a.memory_offsets = p.offsets, p.tokens.y = shifted(&p.offsets[2], 0)));
    WRONG(HEED_ERR_OVERLAP, (p.a.memory_lengths = p.lengths, p.tokens.y = shifted(&p.lengths[1], 0)));
    GOOD((p.tokens.y = at(0), p.tokens.ldy = 9));
    GOOD(p.a.memory = p.tokens.x);
    GOOD((p.tokens.seq = 0, p.a.memory = NULL, p.a.memory_mask.type = HEED_MASK_NONE));
    WRONG(HEED_ERR_STRUCT, p.self[1].struct_size += sizeof(size_t)); /* whatever follows is not 0 */
    WRONG(HEED_ERR_OVERFLOW, p.a.memory_seq = SIZE_MAX);
    WRONG(HEED_ERR_OVERFLOW, p.a.memory_seq = SIZE_MAX / 64);
    WRONG(HEED_ERR_OVERFLOW, p.a.ld_memory = SIZE_MAX / 4);
    WRONG(HEED_ERR_OVERFLOW, p.tokens.batch = SIZE_MAX / 4);
    WRONG_STRUCTS(p.a, p.given);
    reset();
    CHECK(heed_decoder_workspace(NULL, 2, p.layers, &p.a, &bytes) == HEED_OK && bytes > 0);
    CHECK(heed_decoder_workspace(NULL, 2, p.layers, &p.a, NULL) == HEED_ERR_NULL);
    CHECK(heed_decoder_workspace(NULL, 0, p.layers, &p.a, &bytes) == HEED_ERR_SHAPE);
    CHECK(heed_decoder_workspace(NULL, 2, NULL, &p.a, &bytes) == HEED_ERR_NULL);
    CHECK(heed_decoder_workspace(NULL, 2, p.layers, NULL, &bytes) == HEED_ERR_NULL);
    float *memory = buffer(bytes / sizeof(float) + 16, 1);
    GOOD(WITH(memory, bytes));
    WRONG(HEED_ERR_WORKSPACE, WITH(memory, bytes - 1));
    WRONG(HEED_ERR_ALIGNMENT, WITH(shifted(memory, 1), bytes));
    static const size_t operands[] = {0, 1, 2, 4, 5};
    for (size_t i = 0; i < COUNT(operands); i++)
        WRONG(HEED_ERR_OVERLAP, WITH(at(operands[i]), bytes));
    WRONG(HEED_OK, (p.tokens.batch = 0, p.tokens.x = p.tokens.y = NULL, p.a.memory = NULL));
    end();

    begin("heed_decoder with caches refuses");
    heed_kv_cache *caches[] = {cache_in_arena(6, 3), cache_in_arena(8, 3), cache_in_arena(10, 3),
                               make_cache(3, scratch, sizeof(float) << 12)};
#define CACHED                                                                                                         \
    (p.self[0].cache = caches[0], p.self[1].cache = caches[1], p.layers[0].memory_cache = caches[2],                   \
     p.layers[1].memory_cache = caches[3], p.tokens.seq_kv = 3, p.a.memory_offsets = p.offsets,                        \
     p.a.memory_sequences = p.sequences)
#define EMPTY (heed_kv_cache_truncate(caches[3], 0, 0), heed_kv_cache_truncate(caches[3], 2, 0))
    GOOD(CACHED);
    EMPTY;
    GOOD((CACHED, p.tokens.seq = 0, p.tokens.x = p.tokens.y = NULL));
    EMPTY;
    GOOD((CACHED, p.a.memory = NULL, p.a.memory_offsets = NULL));
    GOOD((CACHED, p.a.memory = NULL, p.a.memory_offsets = NULL, p.sequences[1] = 2));
    GOOD((p.self[0].cache = caches[0], p.self[1].cache = caches[1], p.tokens.seq_kv = 3));
    GOOD((CACHED, p.self[0].cache = p.self[1].cache = NULL));
    EMPTY;
    WRONG(HEED_ERR_NULL, (CACHED, p.a.memory = NULL));
    WRONG(HEED_ERR_NULL, (CACHED, p.a.memory_offsets = NULL));
    for (size_t i = 0; i < 2; i++) {
        WRONG(HEED_ERR_NULL, (CACHED, p.self[i].cache = NULL));
        WRONG(HEED_ERR_NULL, (CACHED, p.layers[i].memory_cache = NULL));
        WRONG(HEED_ERR_OVERLAP, (CACHED, p.self[i].cache = caches[1 - i]));
        WRONG(HEED_ERR_OVERLAP, (CACHED, p.self[i].cache = caches[2]));
        WRONG(HEED_ERR_OVERLAP, (CACHED, p.self[i].cache = caches[3]));
        WRONG(HEED_ERR_OVERLAP, (CACHED, p.layers[i].memory_cache = caches[3 - i]));
    }
    WRONG(HEED_ERR_OVERLAP, (CACHED, p.n = 3, p.layers[2] = p.layers[0]));
    WRONG(HEED_ERR_OVERLAP, (CACHED, p.sequences[1] = 2));
    WRONG(HEED_ERR_INDEX, (CACHED, p.sequences[1] = 3));
    WRONG(HEED_ERR_SHAPE, (CACHED, p.a.memory_seq = 3));
    WRONG(HEED_ERR_SHAPE, (CACHED, p.offsets[2] = p.a.memory_seq = 15));
    WRONG(HEED_ERR_OVERLAP, (CACHED, p.tokens.y = at(10)));
    WRONG(HEED_ERR_OVERLAP, (CACHED, p.a.memory = at(10)));
    WRONG(HEED_ERR_OVERLAP, (CACHED, p.tokens.y = shifted(&p.sequences[1], 0)));
    WRONG(HEED_ERR_ALIGNMENT, (CACHED, p.a.memory_sequences = shifted(p.sequences, 2)));
#undef EMPTY
#undef CACHED
#undef reset
#undef call
    end();
}

/* Offsets, lengths and ids are inputs like any other. */
static void test_index_overlaps(void)
{
    const size_t zeros[4] = {0, 0, 0, 0};
    const size_t offsets[4] = {0, 1, 2, 3};
    for (size_t slot = 6; slot < 9; slot++)
        memcpy(pristine.slot[slot], slot == 6 ? zeros : offsets, sizeof offsets);
    arena = pristine;
    const size_t *lengths = (const size_t *)(void *)at(6), *q = (const size_t *)(void *)at(7);
    const size_t *kv = (const size_t *)(void *)at(8);
    const heed_embedding_table table = {at(0), 4, 7, (const int32_t *)(const void *)lengths, 0};
    begin("an output over offsets, lengths or ids is refused");
    expect(HEED_ERR_OVERLAP, heed_embed(NULL, 4, 5, 1, &table, 0, NULL, at(6), 5), "ids");
    expect(HEED_ERR_OVERLAP, heed_pool(NULL, HEED_POOLING_MEAN, 3, q, 5, at(0), 6, at(7), 7), "offsets");
    heed_attention_args a = good_attention();
    a.kv_lengths = lengths;
    a.out.data = at(6);
    expect(HEED_ERR_OVERLAP, heed_attention(NULL, &a, NULL), "kv_lengths");
    a.out.data = at(6) + sizeof(size_t) / sizeof(float);
    expect(HEED_ERR_OVERLAP, heed_attention(NULL, &a, NULL), "the last of kv_lengths");
    a.kv_lengths = NULL;
    a.sinks = a.out.data - 3;
    expect(HEED_ERR_OVERLAP, heed_attention(NULL, &a, NULL), "the last sink");
    a = good_attention();
    a.q_offsets = q;
    a.out.data = at(7);
    expect(HEED_ERR_OVERLAP, heed_attention(NULL, &a, NULL), "q_offsets");
    a = good_attention();
    a.kv_offsets = kv;
    a.map.data = at(8);
    expect(HEED_ERR_OVERLAP, heed_attention(NULL, &a, NULL), "kv_offsets");
    end();
    make_pristine();
    arena = pristine;
}

static const size_t huge_batches[] = {SIZE_MAX, SIZE_MAX / 4, SIZE_MAX / 64, (size_t)1 << (sizeof(size_t) * 8 - 3)};

/* A batch that no memory holds is refused at once, not counted through. */
static void test_huge_batches(void)
{
    arena = pristine;
    begin("huge batches are refused at once");
    alarm(20);
    for (size_t i = 0; i < COUNT(huge_batches); i++) {
        size_t bytes = 0;
        heed_attention_args a = good_attention();
        a.batch = huge_batches[i];
        expect(HEED_ERR_OVERFLOW, heed_attention(NULL, &a, NULL), "heed_attention");
        /* The workspace has two counters for each sequence, and else does not grow with the batch. */
        expect(huge_batches[i] > SIZE_MAX / 2 / sizeof(size_t) ? HEED_ERR_OVERFLOW : HEED_OK,
               heed_attention_workspace(NULL, &a, &bytes), "heed_attention_workspace");
        heed_mha_args m = good_mha();
        m.batch = huge_batches[i];
        expect(HEED_ERR_OVERFLOW, heed_mha(NULL, &model.layer.attention, &m, NULL), "heed_mha");
        heed_encoder_args e = HEED_ENCODER_ARGS_INIT;
        e.batch = huge_batches[i];
        e.seq = 1;
        e.x = at(0);
        e.y = at(1);
        e.ldx = e.ldy = D_MODEL;
        expect(HEED_ERR_OVERFLOW, heed_encoder(NULL, 1, &model.layer.layer, &e, NULL), "heed_encoder");
    }
    alarm(0);
    end();
}

/* Heads that lie in the same place are not counted through either. */
static void test_huge_heads(void)
{
    begin("a workspace for huge numbers of heads is told at once");
    alarm(20);
    size_t bytes = 0;
    heed_attention_args heads = HEED_ATTENTION_ARGS_INIT;
    heads.batch = heads.seq_q = 1;
    heads.n_heads = heads.n_kv_heads = (size_t)1 << (sizeof(size_t) * 5);
    heads.seq_kv = (size_t)1 << 16;
    heads.head_dim = heads.value_dim = 16;
    heads.q = heads.k = heads.v = (heed_heads){at(0), 0, 0, 32};
    heads.out = (heed_heads_out){at(1), 0, 16, 16 * heads.n_heads};
    heed_status told = heed_attention_workspace(NULL, &heads, &bytes);
    CHECK(told == HEED_OK || told == HEED_ERR_OVERFLOW);
    alarm(0);
    end();
}

/* Nor one without queries, which is there to succeed and write nothing. */
static void test_huge_batches_of_nothing(void)
{
    arena = pristine;
    begin("huge batches without queries succeed at once");
    alarm(20);
    for (size_t i = 0; i < COUNT(huge_batches); i++) {
        size_t bytes = 1;
        heed_mha_args m = good_mha();
        m.batch = huge_batches[i];
        m.seq_q = 0;
        expect(HEED_OK, heed_mha(NULL, &model.layer.attention, &m, NULL), "heed_mha, cross-attention");
        expect(HEED_OK, heed_mha_workspace(NULL, &model.layer.attention, &m, &bytes), "heed_mha_workspace");
        CHECK(bytes == 0);
        m.memory = NULL;
        expect(HEED_OK, heed_mha(NULL, &model.layer.attention, &m, NULL), "heed_mha");
        heed_encoder_args e = HEED_ENCODER_ARGS_INIT;
        e.batch = huge_batches[i];
        expect(HEED_OK, heed_encoder(NULL, 1, &model.layer.layer, &e, NULL), "heed_encoder");
    }
    alarm(0);
    end();
}

/* Scratch that no memory holds, however few elements the operands have. */
static void test_huge_scratch(void)
{
    const size_t dims[] = {SIZE_MAX / 4, SIZE_MAX / 32, SIZE_MAX / 64 + 1};
    size_t bytes = 0;
    arena = pristine;
    begin("huge scratch is refused");
    for (size_t i = 0; i < COUNT(dims); i++) {
        heed_attention_args a = good_attention();
        a.value_dim = dims[i];
        expect(HEED_ERR_OVERFLOW, heed_attention_workspace(NULL, &a, &bytes), "value_dim");
        a = good_attention();
        a.seq_kv = a.q.row_stride = dims[i];
        expect(HEED_ERR_OVERFLOW, heed_attention_workspace(NULL, &a, &bytes), "seq_kv");
    }
    heed_encoder_args e = HEED_ENCODER_ARGS_INIT;
    e.batch = PTRDIFF_MAX / 120; /* what a layer needs would fit, and so would what the stack adds */
    e.seq = 1;
    e.x = e.y = at(0);
    e.ldx = e.ldy = D_MODEL;
    heed_encoder_layer layer = model.layer.layer;
    layer.order = HEED_NORM_PRE;
    expect(HEED_ERR_OVERFLOW, heed_encoder_workspace(NULL, 1, &layer, &e, &bytes), "a stack's workspace");
    expect(HEED_ERR_OVERFLOW, heed_encoder(NULL, 1, &layer, &e, NULL), "a stack");
    heed_mha_args m = HEED_MHA_ARGS_INIT;
    m.batch = PTRDIFF_MAX / 90;
    m.seq_q = 1;
    m.x = m.y = at(0);
    m.ldx = m.ldy = D_MODEL;
    expect(HEED_ERR_OVERFLOW, heed_mha(NULL, &model.layer.attention, &m, NULL), "projections and attention");
    heed_attention_args one = HEED_ATTENTION_ARGS_INIT;
    one.batch = PTRDIFF_MAX / (2 * sizeof(size_t)) + 1;
    one.n_heads = one.n_kv_heads = one.seq_q = one.seq_kv = one.head_dim = one.value_dim = 1;
    one.q = one.k = one.v = (heed_heads){at(0), 0, 1, 1};
    one.out = (heed_heads_out){at(1), 1, 1, 1};
    expect(HEED_ERR_OVERFLOW, heed_attention(NULL, &one, NULL), "counters of sequences");
    heed_attention_args a = good_attention();
    a.scale = HEED_SCALE_VALUE;
    a.scale_value = 3e38f;
    expect(HEED_ERR_VALUE, heed_attention(NULL, &a, NULL), "a scale that overflows in base 2");
    end();
}

/* ---- contexts and levels ---- */

static void *refuse(void *state, size_t bytes)
{
    (void)state;
    (void)bytes;
    return NULL;
}

static void ignore(void *state, void *memory)
{
    (void)state;
    (void)memory;
}

static void run_nothing(void *host, size_t n, void (*task)(void *, size_t, size_t), void *arg)
{
    (void)host;
    (void)n;
    (void)task;
    (void)arg;
}

static void test_context(void)
{
    static struct {
        heed_context_options o;
        const heed_context_options *given;
        heed_context *context, **result;
    } p;
    const heed_context_options defaults = HEED_CONTEXT_OPTIONS_INIT;
    heed_level_info info;
    const char *name = NULL;
#define reset()                                                                                                        \
    (heed_context_destroy(p.context), p.context = NULL, p.o = defaults, p.given = &p.o, p.result = &p.context)
#define call() heed_context_create(p.result, p.given)
    begin("contexts and levels refuse");
    GOOD((void)0);
    GOOD(p.given = NULL);
    CHECK(heed_context_threads(p.context) == (heed_has_openmp() ? heed_default_threads() : 1) &&
          heed_context_level(p.context)[0]);
    WRONG(HEED_ERR_NULL, p.result = NULL);
    WRONG(HEED_ERR_LEVEL_UNKNOWN, p.o.level = "");
    WRONG(HEED_ERR_LEVEL_UNKNOWN, p.o.level = "avx1024");
    WRONG(HEED_ERR_LEVEL_UNKNOWN, p.o.level = "Scalar");
    GOOD(p.o.level = "scalar");
    WRONG(HEED_ERR_ENUM, p.o.executor = (heed_executor)NOT_IN_ENUM);
    GOOD(p.o.threads = 65536);
    WRONG(HEED_ERR_VALUE, p.o.threads = 65537);
    WRONG(HEED_ERR_VALUE, p.o.threads = SIZE_MAX);
    WRONG(HEED_ERR_NULL, (p.o.executor = HEED_EXECUTOR_HOST, p.o.threads = 2));
    WRONG(HEED_ERR_VALUE, (p.o.executor = HEED_EXECUTOR_HOST, p.o.host.run = run_nothing));
    GOOD((p.o.executor = HEED_EXECUTOR_HOST, p.o.threads = 2, p.o.host.run = run_nothing));
    GOOD((p.o.executor = HEED_EXECUTOR_SERIAL, p.o.threads = 3));
    CHECK(heed_context_threads(p.context) == 1);
    GOOD(p.o.threads = 3);
    CHECK(heed_context_threads(p.context) == (heed_has_openmp() ? 3 : 1));
    WRONG(HEED_ERR_NULL, p.o.allocator.allocate = refuse);
    WRONG(HEED_ERR_NULL, p.o.allocator.release = ignore);
    WRONG(HEED_ERR_MEMORY, p.o.allocator = ((heed_allocator){refuse, ignore, NULL}));
    CHECK(p.context == NULL);
    WRONG_STRUCTS(p.o, p.given);
    reset();
    heed_context_options *lonely = guarded_bytes(sizeof *lonely, 1);
    *lonely = defaults;
    lonely->struct_size = SIZE_MAX; /* it is not read so far to see what is there */
    WRONG(HEED_ERR_STRUCT, p.given = lonely);
    reset();
    heed_context_destroy(NULL);
    CHECK(heed_context_threads(NULL) == 1);
    for (size_t i = 0; i < heed_level_count(); i++) {
        CHECK(heed_level_query(i, &info) == HEED_OK && info.name && (info.reason != NULL) == !info.supported);
        p.o = defaults;
        p.o.level = info.name;
        CHECK(call() == (info.supported ? HEED_OK : HEED_ERR_LEVEL_UNSUPPORTED));
        CHECK(!info.supported || strcmp(heed_context_level(p.context), info.name) == 0);
        reset();
    }
    CHECK(heed_level_query(heed_level_count(), &info) == HEED_ERR_VALUE);
    CHECK(heed_level_query(SIZE_MAX, &info) == HEED_ERR_VALUE);
    CHECK(heed_level_query(0, NULL) == HEED_ERR_NULL);
    CHECK(heed_level_default(NULL) == HEED_ERR_NULL);
    CHECK(heed_level_default(&name) == HEED_OK && name);
    for (int s = -1; s < 20; s++)
        CHECK(heed_status_string((heed_status)s) && heed_status_string((heed_status)s)[0]);
#undef reset
#undef call
    end();
}

/* ---- allocation ---- */

static struct {
    size_t calls, live, fail_at; /* fail_at: number of the call that fails, from 1; 0: none */
    int persistent;
} heap;

static void *counted_allocate(void *state, size_t bytes)
{
    (void)state;
    heap.calls++;
    if (heap.fail_at && (heap.calls == heap.fail_at || (heap.persistent && heap.calls > heap.fail_at)))
        return NULL;
    heap.live++;
    return malloc(bytes);
}

static void counted_release(void *state, void *memory)
{
    (void)state;
    heap.live--;
    free(memory);
}

/* One call of an operator that needs memory: as run(), with its size query and what it writes. */
struct allocating {
    const char *name;
    heed_status (*run)(const heed_context *context, float *y, const heed_workspace *workspace);
    heed_status (*query)(const heed_context *context, size_t *bytes);
    size_t outputs; /* floats that it writes at y */
};

enum { BIG = 80 };
static const float *input;

static heed_status run_matmul(const heed_context *context, float *y, const heed_workspace *workspace)
{
    return heed_matmul(context, HEED_TRANSPOSE, HEED_TRANSPOSE, BIG, BIG, BIG, 1.0f, input, BIG, input, BIG, 0.0f, y,
                       BIG, workspace);
}

static heed_status query_matmul(const heed_context *context, size_t *bytes)
{
    return heed_matmul_workspace(context, HEED_TRANSPOSE, HEED_TRANSPOSE, BIG, BIG, BIG, bytes);
}

static heed_status run_ffn(const heed_context *context, float *y, const heed_workspace *workspace)
{
    return heed_ffn(context, &model.layer.ffn, TOKENS, input, D_MODEL, NULL, 0, y, D_MODEL, workspace);
}

static heed_status query_ffn(const heed_context *context, size_t *bytes)
{
    return heed_ffn_workspace(context, &model.layer.ffn, TOKENS, bytes);
}

/* Values that are no whole panels, so that they are packed as well; y holds the output, then the map. */
static heed_attention_args big_attention(float *y)
{
    heed_attention_args a = HEED_ATTENTION_ARGS_INIT;
    a.batch = 2;
    a.n_heads = 2;
    a.n_kv_heads = 1;
    a.seq_q = 20;
    a.seq_kv = 30;
    a.head_dim = 8;
    a.value_dim = 10;
    a.q = (heed_heads){input, 320, 160, 8};
    a.k = (heed_heads){input, 240, 0, 8};
    a.v = (heed_heads){input, 300, 0, 10};
    a.out = (heed_heads_out){y, 400, 200, 10};
    a.map = (heed_heads_out){y + 800, 1200, 600, 30};
    return a;
}

static heed_status run_attention(const heed_context *context, float *y, const heed_workspace *workspace)
{
    heed_attention_args a = big_attention(y);
    return heed_attention(context, &a, workspace);
}

static heed_status query_attention(const heed_context *context, size_t *bytes)
{
    static float unused[801]; /* only addresses are taken, up to the map's */
    heed_attention_args a = big_attention(unused);
    return heed_attention_workspace(context, &a, bytes);
}

static heed_mha_args big_mha(float *y)
{
    heed_mha_args a = HEED_MHA_ARGS_INIT;
    a.batch = 2;
    a.seq_q = TOKENS;
    a.x = input;
    a.ldx = D_MODEL;
    a.y = y;
    a.ldy = D_MODEL;
    return a;
}

static heed_status run_mha(const heed_context *context, float *y, const heed_workspace *workspace)
{
    heed_mha_args a = big_mha(y);
    return heed_mha(context, &model.layer.attention, &a, workspace);
}

static heed_status query_mha(const heed_context *context, size_t *bytes)
{
    heed_mha_args a = big_mha(NULL);
    return heed_mha_workspace(context, &model.layer.attention, &a, bytes);
}

static heed_kv_cache *growing;

static heed_mha_args big_cached_mha(float *y)
{
    heed_mha_args a = big_mha(y);
    a.seq_kv = TOKENS;
    a.cache = growing;
    return a;
}

/* Where it fails nothing has been appended. */
static heed_status run_cached_mha(const heed_context *context, float *y, const heed_workspace *workspace)
{
    heed_mha_args a = big_cached_mha(y);
    heed_status status = heed_mha(context, &model.layer.attention, &a, workspace);
    for (size_t i = 0; i < a.batch; i++) {
        size_t length = 99;
        CHECK(heed_kv_cache_length(growing, i, &length) == HEED_OK && length == (status == HEED_OK ? TOKENS : 0));
        CHECK(heed_kv_cache_truncate(growing, i, 0) == HEED_OK);
    }
    return status;
}

static heed_status query_cached_mha(const heed_context *context, size_t *bytes)
{
    heed_mha_args a = big_cached_mha(NULL);
    return heed_mha_workspace(context, &model.layer.attention, &a, bytes);
}

static heed_encoder_args big_encoder(float *y)
{
    heed_encoder_args a = HEED_ENCODER_ARGS_INIT;
    a.batch = 2;
    a.seq = TOKENS;
    a.x = input;
    a.ldx = D_MODEL;
    a.y = y;
    a.ldy = D_MODEL;
    return a;
}

static heed_status run_encoder(const heed_context *context, float *y, const heed_workspace *workspace)
{
    heed_encoder_args a = big_encoder(y);
    return heed_encoder(context, 1, &model.layer.layer, &a, workspace);
}

static heed_status query_encoder(const heed_context *context, size_t *bytes)
{
    heed_encoder_args a = big_encoder(NULL);
    return heed_encoder_workspace(context, 1, &model.layer.layer, &a, bytes);
}

static const struct allocating allocating[] = {
    {"heed_matmul", run_matmul, query_matmul, BIG *BIG},
    {"heed_ffn", run_ffn, query_ffn, TOKENS *D_MODEL},
    {"heed_attention", run_attention, query_attention, 3200},
    {"heed_mha", run_mha, query_mha, 2 * TOKENS *D_MODEL},
    {"heed_mha with a cache", run_cached_mha, query_cached_mha, 2 * TOKENS *D_MODEL},
    {"heed_encoder", run_encoder, query_encoder, 2 * TOKENS *D_MODEL},
};

static void fill_marks(size_t n, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = 12345.0f;
}

static int marks_stand(size_t n, const float *y)
{
    size_t i = 0;
    while (i < n && y[i] == 12345.0f)
        i++;
    return i == n;
}

static void check_failing_allocations(const struct allocating *o, const heed_context *context, float *y)
{
    heap.calls = heap.fail_at = 0;
    size_t live = heap.live;
    CHECK(o->run(context, y, NULL) == HEED_OK);
    size_t calls = heap.calls;
    CHECK(calls > 0 && heap.live == live);
    for (size_t i = 1; i <= calls; i++)
        for (heap.persistent = 0; heap.persistent < 2; heap.persistent++) {
            fill_marks(o->outputs, y);
            heap.calls = 0;
            heap.fail_at = i;
            CHECK(o->run(context, y, NULL) == HEED_ERR_MEMORY);
            CHECK(heap.calls >= i && heap.live == live);
            check_that(marks_stand(o->outputs, y), "%s: output written", o->name);
        }
    heap.fail_at = 0;
}

/* Exactly the queried bytes, flush against a guard page on either side: the same bits, no allocation. */
static void check_exact_workspace(const struct allocating *o, const heed_context *context, float *y)
{
    size_t bytes = 0;
    float *want = buffer(o->outputs, 0);
    CHECK(o->query(context, &bytes) == HEED_OK && bytes > 0);
    CHECK(o->run(context, want, NULL) == HEED_OK);
    for (int at_end = 0; at_end < 2; at_end++) {
        heed_workspace workspace = {guarded_bytes(bytes, at_end), bytes};
        memset(workspace.memory, 0xff, bytes);
        heap.calls = 0;
        CHECK(o->run(context, y, &workspace) == HEED_OK && heap.calls == 0);
        check_same(1, o->outputs, y, 0, want, 0, o->name);
    }
}

static void test_allocation(void)
{
    heed_context_options options = HEED_CONTEXT_OPTIONS_INIT;
    heed_context *context = NULL;
    float *numbers = buffer(BIG * BIG, 1), *y = buffer(BIG * BIG, 3);
    options.allocator = (heed_allocator){counted_allocate, counted_release, NULL};
    options.threads = 2;
    seed(3);
    fill_uniform(numbers, BIG * BIG, -1.0f, 1.0f);
    input = numbers;
    growing = make_cache(3, buffer(4096, 0), 4 * 4096);
    begin("heed_context_create without memory");
    heap.fail_at = 1;
    CHECK(heed_context_create(&context, &options) == HEED_ERR_MEMORY && context == NULL && heap.live == 0);
    heap.fail_at = 0;
    CHECK(heed_context_create(&context, &options) == HEED_OK && context && heap.live == 1);
    end();
    begin("nothing is allocated where there is nothing to do");
    heap.fail_at = 1;
    heap.calls = 0;
    CHECK(heed_ffn(context, &model.layer.ffn, 0, NULL, D_MODEL, NULL, 0, NULL, D_MODEL, NULL) == HEED_OK);
    CHECK(heed_matmul(context, HEED_NO_TRANSPOSE, HEED_TRANSPOSE, 4, 4, 4, 1.0f, input, 4, input, 4, 0.0f, y, 4,
                      NULL) == HEED_OK);
    CHECK(heap.calls == 0);
    heap.fail_at = 0;
    end();
    for (size_t i = 0; i < COUNT(allocating); i++) {
        begin("%s without memory, and in a workspace of the exact size", allocating[i].name);
        check_failing_allocations(&allocating[i], context, y);
        check_exact_workspace(&allocating[i], context, y);
        end();
    }
    heed_context_destroy(context);
    begin("every allocation was released");
    CHECK(heap.live == 0);
    end();
}

int main(void)
{
    make_pristine();
    arena = pristine;
    make_model();
    test_matmul();
    test_weights();
    test_open();
    test_linear();
    test_row_operator("heed_softmax", softmax);
    test_row_operator("heed_activate", gelu);
    test_row_operator("heed_l2_normalize", l2);
    test_row_operator("heed_layernorm", layernorm);
    test_row_operator("heed_rmsnorm", rmsnorm);
    test_row_values();
    test_row_operator("heed_masked_softmax", masked_softmax);
    test_row_operator("heed_log_softmax", log_softmax);
    test_masked_softmax(0);
    test_masked_softmax(1);
    test_gated();
    test_top_k();
    test_layernorm();
    test_layernorm_aliases();
    test_rmsnorm();
    test_pool();
    test_embed();
    test_embed_layernorm();
    test_positions();
    test_rotary_table();
    test_rotary();
    test_attention();
    test_ffn();
    test_mha();
    test_encoder();
    test_decoder();
    test_context();
    test_allocation();
    test_huge_batches();
    test_huge_heads();
    test_huge_batches_of_nothing();
    test_huge_scratch();
    test_index_overlaps();
    return finish();
}
