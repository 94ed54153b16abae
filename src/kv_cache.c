/* SPDX-License-Identifier: MIT
 * The cache of keys and values: pages of keys in panels and rows of values, and for each sequence a table of
 * its pages. Without pages, each sequence has one that is as large as its capacity.
 */
#include "internal.h"

#include <string.h>

#define CACHE_LINE 64

/* Fills in everything but the pointers; SIZE_MAX bytes on overflow. */
static heed_status plan(const heed_kv_cache_options *given, struct heed_kv_cache *cache)
{
    const heed_kv_cache_options defaults = HEED_KV_CACHE_OPTIONS_INIT;
    heed_kv_cache_options o = defaults;
    heed_status status = given ? heed_struct_read(&o, sizeof o, sizeof o, given) : HEED_ERR_NULL;
    if (status != HEED_OK)
        return status;
    if (o.page_keys % HEED_PANEL != 0 || (o.page_keys == 0 && o.pages != 0))
        return HEED_ERR_SHAPE;
    bool paged = o.page_keys > 0;
    *cache = (struct heed_kv_cache){.batch = o.batch,
                                    .n_kv_heads = o.n_kv_heads,
                                    .head_dim = o.head_dim,
                                    .value_dim = o.value_dim,
                                    .capacity = o.capacity,
                                    .paged = paged,
                                    .page_keys = paged ? o.page_keys : heed_pad(o.capacity ? o.capacity : 1),
                                    .pages = paged ? o.pages : o.batch};
    /* No bytes need limit what is counted: keys of no head, or of no dimension, have none. */
    if (cache->pages > INT32_MAX || cache->page_keys > PTRDIFF_MAX || heed_pad(o.capacity) > PTRDIFF_MAX)
        return HEED_ERR_OVERFLOW;
    cache->table_cols = heed_ceil_div(o.capacity, cache->page_keys);
    cache->head_floats = heed_times(cache->page_keys, heed_plus(o.head_dim, heed_pad(o.value_dim)));
    cache->page_floats = heed_times(cache->head_floats, o.n_kv_heads);
    size_t bytes = heed_plus(sizeof *cache, heed_times(o.batch, sizeof cache->length[0]));
    bytes = heed_plus(bytes, heed_times(heed_times(o.batch, cache->table_cols), sizeof *cache->table));
    bytes = heed_plus(bytes, heed_times(heed_times(cache->page_floats, cache->pages), sizeof *cache->data));
    cache->bytes = heed_scratch_part(heed_plus(bytes, CACHE_LINE), 1);
    return cache->bytes > PTRDIFF_MAX ? HEED_ERR_OVERFLOW : HEED_OK;
}

heed_status heed_kv_cache_bytes(const heed_kv_cache_options *options, size_t *bytes)
{
    struct heed_kv_cache cache;
    if (!bytes)
        return HEED_ERR_NULL;
    heed_status status = plan(options, &cache);
    if (status == HEED_OK)
        *bytes = cache.bytes;
    return status;
}

heed_status heed_kv_cache_create(const heed_kv_cache_options *options, void *memory, size_t bytes,
                                 heed_kv_cache **cache)
{
    struct heed_kv_cache planned;
    heed_status status = plan(options, &planned);
    if (status != HEED_OK)
        return status;
    if (!memory || !cache)
        return HEED_ERR_NULL;
    if ((uintptr_t)memory % sizeof(size_t) != 0)
        return HEED_ERR_ALIGNMENT;
    if (bytes < planned.bytes)
        return HEED_ERR_WORKSPACE;
    struct heed_kv_cache *made = memory;
    size_t entries = planned.batch * planned.table_cols;
    planned.table = (int32_t *)(void *)(made->length + planned.batch);
    uintptr_t data = (uintptr_t)(planned.table + entries);
    data = (data + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    planned.data = (float *)(void *)((unsigned char *)memory + (data - (uintptr_t)memory));
    memcpy(made, &planned, sizeof planned);
    for (size_t i = 0; i < planned.batch; i++)
        made->length[i] = 0;
    for (size_t i = 0; i < entries; i++)
        made->table[i] = planned.paged ? -1 : (int32_t)i;
    *cache = made;
    return HEED_OK;
}

heed_status heed_kv_cache_check_pages(const heed_kv_cache *cache, size_t sequence, size_t begin, size_t end)
{
    const int32_t *table = cache->table + sequence * cache->table_cols;
    size_t pages = heed_ceil_div(end, cache->page_keys);
    for (size_t i = begin / cache->page_keys; i < pages; i++)
        if (table[i] < 0)
            return HEED_ERR_INDEX;
    return HEED_OK;
}

heed_status heed_kv_cache_set_pages(heed_kv_cache *cache, size_t sequence, size_t first, size_t n, const int32_t *pages)
{
    if (!cache || (n > 0 && !pages))
        return HEED_ERR_NULL;
    if ((uintptr_t)pages % sizeof *pages != 0)
        return HEED_ERR_ALIGNMENT;
    if (sequence >= cache->batch)
        return HEED_ERR_INDEX;
    if (!cache->paged || first > cache->table_cols || n > cache->table_cols - first)
        return HEED_ERR_SHAPE;
    for (size_t i = 0; i < n; i++)
        if (pages[i] < -1 || (pages[i] >= 0 && (size_t)pages[i] >= cache->pages))
            return HEED_ERR_INDEX;
    for (size_t i = 0; i < n; i++)
        cache->table[sequence * cache->table_cols + first + i] = pages[i];
    return HEED_OK;
}

void heed_put_keys(const struct heed_kernels *kernels, size_t dim, size_t first, size_t n, const float *src, size_t ld,
                   float *panels)
{
    float *dst = panels + first / HEED_PANEL * HEED_PANEL * dim;
    size_t column = first % HEED_PANEL;
    for (; column > 0 && column < HEED_PANEL && n > 0; column++, n--, src += ld)
        for (size_t p = 0; p < dim; p++)
            dst[p * HEED_PANEL + column] = src[p];
    if (n > 0)
        kernels->pack(true, HEED_PACK_PREFETCH_BELOW, n, dim, src, ld, dst + (column > 0 ? HEED_PANEL * dim : 0));
}

/* The panels of a head in the page of a key; its values come after them. */
static float *page_of(const heed_kv_cache *cache, size_t sequence, size_t key, size_t head)
{
    int32_t page = cache->table[sequence * cache->table_cols + key / cache->page_keys];
    return cache->data + (size_t)page * cache->page_floats + head * cache->head_floats;
}

static float *values_of(const heed_kv_cache *cache, float *page, size_t key)
{
    return page + cache->page_keys * cache->head_dim + key % cache->page_keys * heed_pad(cache->value_dim);
}

/* Keys without dimensions take none, however many heads they are said to have. */
static bool holds_floats(const heed_kv_cache *cache)
{
    return cache->page_floats > 0;
}

/* Keys of [key, end) in the page of key. */
static size_t keys_in_page(const heed_kv_cache *cache, size_t key, size_t end)
{
    size_t left = cache->page_keys - key % cache->page_keys;
    return left < end - key ? left : end - key;
}

/* Sequences in ascending order, as most are, need no search. */
static bool any_target_twice(const struct heed_kv_append *append)
{
    const size_t *to = append->sequences;
    size_t highest = 0;
    for (size_t b = 0; to && b < append->rows.batch; b++) {
        for (size_t i = 0; to[b] <= highest && i < b; i++)
            if (to[i] == to[b])
                return true;
        highest = to[b] > highest ? to[b] : highest;
    }
    return false;
}

static bool appends_nothing(const struct heed_sequences *rows)
{
    return rows->batch == 0 || (rows->offsets ? rows->offsets[rows->batch] == rows->offsets[0] : rows->length == 0);
}

static heed_status check_targets(const struct heed_kv_append *append)
{
    size_t batch = append->rows.batch, most = append->cache->batch;
    heed_status status = heed_array_check(append->sequences, sizeof *append->sequences, batch);
    if (status != HEED_OK)
        return status;
    if (!append->sequences)
        return batch > most ? HEED_ERR_INDEX : HEED_OK;
    for (size_t b = 0; b < batch; b++)
        if (append->sequences[b] >= most)
            return HEED_ERR_INDEX;
    if (appends_nothing(&append->rows))
        return HEED_OK;
    return batch > most || any_target_twice(append) ? HEED_ERR_OVERLAP : HEED_OK;
}

heed_status heed_kv_append_check(const struct heed_kv_append *append, bool lasting)
{
    const heed_kv_cache *cache = append->cache;
    heed_status status = check_targets(append);
    for (size_t b = 0; status == HEED_OK && b < append->rows.batch; b++) {
        size_t sequence = heed_kv_append_target(append, b), first = lasting ? 0 : cache->length[sequence];
        size_t n = heed_sequence_length(&append->rows, b);
        if (n > cache->capacity - first)
            return HEED_ERR_SHAPE;
        if (n > 0 && !lasting)
            status = heed_kv_cache_check_pages(cache, sequence, first, first + n);
    }
    return status;
}

struct append_job {
    const struct heed_kv_append *append;
    const struct heed_kernels *kernels;
    const heed_heads *k, *v;
};

/* Row `row` of one head of sequence b. */
static const float *source_row(const struct append_job *job, const heed_heads *heads, size_t b, size_t head, size_t row)
{
    return heads->data + heed_head_start(heads, &job->append->rows, b, head) + row * heads->row_stride;
}

static void append_sequence(const struct append_job *job, size_t b, size_t head)
{
    const heed_kv_cache *cache = job->append->cache;
    size_t sequence = heed_kv_append_target(job->append, b), width = heed_pad(cache->value_dim);
    size_t first = cache->length[sequence], end = first + heed_sequence_length(&job->append->rows, b);
    for (size_t key = first, n; key < end; key += n) {
        float *page = page_of(cache, sequence, key, head), *values = values_of(cache, page, key);
        n = keys_in_page(cache, key, end);
        if (cache->head_dim > 0)
            heed_put_keys(job->kernels, cache->head_dim, key % cache->page_keys, n,
                          source_row(job, job->k, b, head, key - first), job->k->row_stride, page);
        for (size_t i = 0; cache->value_dim > 0 && i < n; i++) {
            memcpy(values + i * width, source_row(job, job->v, b, head, key - first + i),
                   cache->value_dim * sizeof *values);
            memset(values + i * width + cache->value_dim, 0, (width - cache->value_dim) * sizeof *values);
        }
    }
}

/* One head of every sequence in turn: sequences may share a page, heads never do. */
static void append_head(void *arg, size_t head, size_t worker)
{
    const struct append_job *job = arg;
    (void)worker;
    for (size_t b = 0; b < job->append->rows.batch; b++)
        append_sequence(job, b, head);
}

void heed_kv_append_run(const struct heed_context *context, const struct heed_kv_append *append, size_t rows,
                        const heed_heads *k, const heed_heads *v)
{
    heed_kv_cache *cache = append->cache;
    struct append_job job = {append, context->kernels, k, v};
    if (holds_floats(cache))
        heed_run(context, cache->n_kv_heads, (double)rows * (double)cache->page_floats / (double)cache->page_keys,
                 append_head, &job);
    for (size_t b = 0; b < append->rows.batch; b++)
        cache->length[heed_kv_append_target(append, b)] += heed_sequence_length(&append->rows, b);
}

static heed_status check_operands(const struct heed_kv_append *append, size_t rows, const heed_heads *k,
                                  const heed_heads *v)
{
    heed_kv_cache *cache = append->cache;
    struct heed_operands operands;
    heed_operands_begin(&operands, HEED_OK);
    heed_read_optional(&operands, append->sequences, sizeof(size_t), 1, append->rows.batch, append->rows.batch, 0);
    heed_read_offsets(&operands, &append->rows);
    if (rows > 0) {
        heed_read_heads(&operands, k, &append->rows, rows, cache->n_kv_heads, cache->head_dim);
        heed_read_heads(&operands, v, &append->rows, rows, cache->n_kv_heads, cache->value_dim);
    }
    heed_write(&operands, cache, 1, 1, cache->bytes, cache->bytes, 0);
    return heed_operands_check(&operands, NULL, 0);
}

heed_status heed_kv_cache_append_batch(const heed_context *context, heed_kv_cache *cache, size_t batch,
                                       const size_t *sequences, size_t n, const size_t *offsets, const heed_heads *k,
                                       const heed_heads *v)
{
    struct heed_context fallback;
    const struct heed_kv_append append = {cache, {batch, n, offsets}, sequences};
    size_t rows = 0;
    heed_status status = heed_context_resolve(context, &fallback, &context);
    if (status == HEED_OK && !cache)
        status = HEED_ERR_NULL;
    if (status == HEED_OK)
        status = heed_sequences_check(&append.rows, true, &rows);
    if (status == HEED_OK)
        status = heed_kv_append_check(&append, false);
    if (status == HEED_OK && rows > 0 && (!k || !v))
        status = HEED_ERR_NULL;
    if (status == HEED_OK)
        status = check_operands(&append, rows, k, v);
    if (status == HEED_OK && rows > 0)
        heed_kv_append_run(context, &append, rows, k, v);
    return status;
}

heed_status heed_kv_cache_append(const heed_context *context, heed_kv_cache *cache, size_t sequence, size_t n,
                                 const heed_heads *k, const heed_heads *v)
{
    return heed_kv_cache_append_batch(context, cache, 1, &sequence, n, NULL, k, v);
}

heed_status heed_kv_cache_truncate(heed_kv_cache *cache, size_t sequence, size_t length)
{
    if (!cache)
        return HEED_ERR_NULL;
    if (sequence >= cache->batch)
        return HEED_ERR_INDEX;
    if (length > cache->length[sequence])
        return HEED_ERR_SHAPE;
    cache->length[sequence] = length;
    return HEED_OK;
}

static heed_status check_source(const heed_kv_cache *cache, size_t sequence, const heed_kv_cache *from,
                                size_t from_sequence, size_t length)
{
    if (!cache || !from)
        return HEED_ERR_NULL;
    if (sequence >= cache->batch || from_sequence >= from->batch)
        return HEED_ERR_INDEX;
    if (cache->n_kv_heads != from->n_kv_heads || cache->head_dim != from->head_dim ||
        cache->value_dim != from->value_dim || length > from->length[from_sequence] || length > cache->capacity)
        return HEED_ERR_SHAPE;
    return HEED_OK;
}

/* Whether `length` keys, written to pages of sequence `to` that are there, would go over any key of `from`. */
static bool would_overwrite(const heed_kv_cache *cache, size_t to, size_t from, size_t length)
{
    size_t written = heed_ceil_div(length, cache->page_keys);
    size_t held = heed_ceil_div(cache->length[from], cache->page_keys);
    for (size_t i = 0; i < written; i++)
        for (size_t j = 0; j < held; j++)
            if (cache->table[to * cache->table_cols + i] == cache->table[from * cache->table_cols + j])
                return true;
    return false;
}

/* Panel by panel, since the pages of the two may differ in size. */
static void copy_keys(heed_kv_cache *cache, size_t sequence, const heed_kv_cache *from, size_t from_sequence,
                      size_t length)
{
    size_t width = heed_pad(cache->value_dim);
    for (size_t head = 0; head < cache->n_kv_heads; head++)
        for (size_t key = 0; key < length; key += HEED_PANEL) {
            size_t n = length - key < HEED_PANEL ? length - key : HEED_PANEL;
            float *dst = page_of(cache, sequence, key, head), *src = page_of(from, from_sequence, key, head);
            memcpy(dst + key % cache->page_keys * cache->head_dim, src + key % from->page_keys * from->head_dim,
                   HEED_PANEL * cache->head_dim * sizeof *dst);
            memcpy(values_of(cache, dst, key), values_of(from, src, key), n * width * sizeof *dst);
        }
}

heed_status heed_kv_cache_fork(heed_kv_cache *cache, size_t sequence, const heed_kv_cache *from, size_t from_sequence,
                               size_t length)
{
    heed_status status = check_source(cache, sequence, from, from_sequence, length);
    if (status == HEED_OK)
        status = heed_kv_cache_check_pages(cache, sequence, 0, length);
    if (status == HEED_OK)
        status = heed_kv_cache_check_pages(from, from_sequence, 0, length);
    if (status == HEED_OK && cache == from && would_overwrite(cache, sequence, from_sequence, length))
        status = HEED_ERR_OVERLAP;
    if (status != HEED_OK)
        return status;
    if (length > 0 && holds_floats(cache))
        copy_keys(cache, sequence, from, from_sequence, length);
    cache->length[sequence] = length;
    return HEED_OK;
}

heed_status heed_kv_cache_share(heed_kv_cache *cache, size_t sequence, size_t from_sequence, size_t length)
{
    heed_status status = check_source(cache, sequence, cache, from_sequence, length);
    if (status == HEED_OK && (!cache->paged || length % cache->page_keys != 0))
        status = HEED_ERR_SHAPE;
    if (status != HEED_OK)
        return status;
    memmove(cache->table + sequence * cache->table_cols, cache->table + from_sequence * cache->table_cols,
            length / cache->page_keys * sizeof *cache->table);
    cache->length[sequence] = length;
    return HEED_OK;
}

heed_status heed_kv_cache_length(const heed_kv_cache *cache, size_t sequence, size_t *length)
{
    if (!cache || !length)
        return HEED_ERR_NULL;
    if (sequence >= cache->batch)
        return HEED_ERR_INDEX;
    *length = cache->length[sequence];
    return HEED_OK;
}
