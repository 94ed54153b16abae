/* SPDX-License-Identifier: MIT
 * Other libraries, opened at run time.
 */
#include "config.h"

#include "peers.h"

#include <dlfcn.h>
#include <string.h>

#define N_FILES 5

/* MKL_THREADING_GNU: the OpenMP that this program uses as well, so that no second pool of threads
 * disturbs the first. */
enum { MKL_GNU_THREADS = 3 };

static const char *const files[N_PEERS][N_FILES] = {
    {"libopenblas.so.0", "libopenblas.so", "libopenblas.dylib"},
    {"libblis.so.4", "libblis.so.5", "libblis.so.3", "libblis.so", "libblis.dylib"},
    {"libmkl_rt.so.2", "libmkl_rt.so.3", "libmkl_rt.so.1", "libmkl_rt.so"},
};

static struct peer peers[N_PEERS] = {{.name = "openblas"}, {.name = "blis"}, {.name = "mkl"}};

/* dlsym gives void *, which ISO C does not convert to a function. */
#define LOOK_UP(function, library, name)                                                                               \
    do {                                                                                                               \
        void *symbol = dlsym(library, name);                                                                           \
        memcpy(&(function), &symbol, sizeof(function));                                                                \
    } while (0)

static void look_up_common(struct peer *peer, void *library)
{
    LOOK_UP(peer->sgemm, library, "cblas_sgemm");
    LOOK_UP(peer->sgemv, library, "cblas_sgemv");
    LOOK_UP(peer->pack_bytes, library, "cblas_sgemm_pack_get_size");
    LOOK_UP(peer->pack, library, "cblas_sgemm_pack");
    LOOK_UP(peer->compute, library, "cblas_sgemm_compute");
}

static void look_up_threads(struct peer *peer, void *library)
{
    LOOK_UP(peer->set_threads_int, library, "openblas_set_num_threads");
    LOOK_UP(peer->set_threads_long, library, "bli_thread_set_num_threads");
    int (*set_layer)(int layer);
    LOOK_UP(set_layer, library, "MKL_Set_Threading_Layer");
    if (!set_layer)
        return;
    set_layer(MKL_GNU_THREADS);
    LOOK_UP(peer->set_threads_int, library, "MKL_Set_Num_Threads");
}

/* A library older than the CPU may fall back to kernels that are far from its best. */
static void look_up_kernels(struct peer *peer, void *library)
{
    char *(*openblas)(void);
    int (*blis_id)(void);
    char *(*blis_string)(int id);
    LOOK_UP(openblas, library, "openblas_get_corename");
    LOOK_UP(blis_id, library, "bli_arch_query_id");
    LOOK_UP(blis_string, library, "bli_arch_string");
    if (openblas)
        peer->kernels = openblas();
    else if (blis_id && blis_string)
        peer->kernels = blis_string(blis_id());
}

static void open_peer(struct peer *peer, const char *const *names)
{
    for (size_t i = 0; i < N_FILES && names[i] && !peer->file; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (!library)
            continue;
        look_up_common(peer, library);
        look_up_threads(peer, library);
        look_up_kernels(peer, library);
        if (peer->sgemm && peer->sgemv)
            peer->file = names[i];
        else
            dlclose(library);
    }
}

void peers_open(void)
{
    static bool opened;
    if (opened)
        return;
    opened = true;
    for (size_t i = 0; i < N_PEERS; i++)
        open_peer(&peers[i], files[i]);
}

const struct peer *peers_at(size_t index)
{
    return &peers[index];
}

bool peer_can_pack(const struct peer *peer)
{
    return peer->pack_bytes && peer->pack && peer->compute;
}

void peer_set_threads(const struct peer *peer, size_t threads)
{
    if (peer->set_threads_int)
        peer->set_threads_int((int)threads);
    if (peer->set_threads_long)
        peer->set_threads_long((ptrdiff_t)threads);
}
