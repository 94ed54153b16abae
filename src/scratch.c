/* SPDX-License-Identifier: MIT
 * Scratch memory, from the caller's workspace or the context's allocator, in cache-line parts.
 */
#include "internal.h"

#define LINE 64

size_t heed_scratch_part(size_t count, size_t size)
{
    size_t bytes = heed_times(count, size);
    return bytes > SIZE_MAX - LINE ? SIZE_MAX : (bytes + LINE - 1) / LINE * LINE;
}

size_t heed_scratch_total(size_t parts)
{
    return parts == 0 ? 0 : heed_plus(parts, LINE);
}

heed_status heed_scratch_open(struct heed_scratch *scratch, const struct heed_context *context,
                              const heed_workspace *workspace, size_t bytes)
{
    *scratch = (struct heed_scratch){.context = context};
    if (bytes == 0)
        return HEED_OK;
    unsigned char *memory = workspace ? workspace->memory : NULL;
    if (!workspace) {
        memory = scratch->owned = context->allocator.allocate(context->allocator.state, bytes);
        if (!memory)
            return HEED_ERR_MEMORY;
    }
    scratch->next = memory + (LINE - (uintptr_t)memory % LINE) % LINE;
    return HEED_OK;
}

void *heed_scratch_take(struct heed_scratch *scratch, size_t count, size_t size)
{
    void *part = scratch->next;
    if (part)
        scratch->next += heed_scratch_part(count, size);
    return part;
}

void heed_scratch_close(struct heed_scratch *scratch)
{
    if (scratch->owned)
        scratch->context->allocator.release(scratch->context->allocator.state, scratch->owned);
}

heed_status heed_workspace_answer(size_t parts, size_t *bytes)
{
    if (!bytes)
        return HEED_ERR_NULL;
    size_t total = heed_scratch_total(parts);
    if (total > PTRDIFF_MAX)
        return HEED_ERR_OVERFLOW;
    *bytes = total;
    return HEED_OK;
}
