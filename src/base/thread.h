/* Threads: OpenMP, with results that do not depend on how many there are.
 *
 * The rule: work is cut into items by the problem alone, never by the thread count; each output
 * element is written by one item; sums inside an item run in a fixed order; partial sums of items
 * are added in item order. Then any schedule gives the same bits. Use it as
 *     QKV_PARALLEL_FOR
 *     for (int64_t i = 0; i < n; i++) …
 */
#ifndef QKV_BASE_THREAD_H
#define QKV_BASE_THREAD_H

#include <omp.h>

/* qkv.h; said again here so that kernels do not depend on the whole public header */
int qkv_threads(void);
void qkv_threads_set(int n);
/* Has nobody said how many, and is there more than one? */
int qkv_threads_open(void);

#define QKV_PRAGMA(x) _Pragma(#x)
/* equal items */
#define QKV_PARALLEL_FOR QKV_PRAGMA(omp parallel for schedule(static) num_threads(qkv_threads()))
/* equal items, worth sharing only when `cond` (of the problem, not of the threads) holds */
#define QKV_PARALLEL_FOR_IF(cond)                                                                  \
    QKV_PRAGMA(omp parallel for schedule(static) num_threads(qkv_threads()) if (cond))
/* elements of light work from which a parallel region pays */
#define QKV_PARALLEL_FROM 32768
/* unequal items: give large ones first */
#define QKV_PARALLEL_FOR_UNEVEN                                                                    \
    QKV_PRAGMA(omp parallel for schedule(dynamic, 1) num_threads(qkv_threads()))
#define QKV_PARALLEL_FOR_UNEVEN_IF(cond)                                                           \
    QKV_PRAGMA(omp parallel for schedule(dynamic, 1) num_threads(qkv_threads()) if (cond))

/* The most threads a parallel region will have: how many scratch buffers to keep. */
#define QKV_THREADS_MAX 256

#endif
