/* SPDX-License-Identifier: MIT
 * Which process may use OpenMP: its threads do not survive a fork, and a child would wait for them for ever.
 */
#include "internal.h"

#include <stdatomic.h>
#include <unistd.h>

#if HAVE_WIPEONFORK
#include <sys/mman.h>
#endif

/* The process that was the first to ask, 0 for none. */
static atomic_long first_process;

static bool is_first_by_number(void)
{
    long nobody = 0, self = (long)getpid();
    return atomic_compare_exchange_strong(&first_process, &nobody, self) || nobody == self;
}

#if HAVE_WIPEONFORK
/* In a page that Linux clears in a child: one load, where getpid takes as long as a third of a parallel region. NULL
 * before anybody has asked, &no_page where there is none. */
static _Atomic(atomic_uint *) mark;
static atomic_uint no_page;

/* Emulators that take any advice, and do not follow it, take one that does not exist. */
static bool is_cleared_on_fork(void *page, size_t bytes)
{
    return madvise(page, bytes, -1) != 0 && madvise(page, bytes, MADV_WIPEONFORK) == 0;
}

static atomic_uint *map_page(size_t bytes)
{
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return &no_page;
    if (is_cleared_on_fork(page, bytes)) {
        atomic_init((atomic_uint *)page, 1);
        return page;
    }
    munmap(page, bytes);
    return &no_page;
}

static atomic_uint *make_mark(void)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    atomic_uint *made = map_page(bytes), *other = NULL;
    if (atomic_compare_exchange_strong(&mark, &other, made))
        return made;
    if (made != &no_page)
        munmap(made, bytes);
    return other;
}

bool heed_is_first_process(void)
{
    atomic_uint *page = atomic_load_explicit(&mark, memory_order_acquire);
    if (!page)
        page = make_mark();
    return page == &no_page ? is_first_by_number() : atomic_load_explicit(page, memory_order_relaxed) != 0;
}
#else
bool heed_is_first_process(void)
{
    return is_first_by_number();
}
#endif
