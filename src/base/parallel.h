/* Several processes, one training: each rank runs a part of every step's examples, then all add up.
 *
 * Gradients are sums over targets (task.h), so the sum over ranks is the gradient of the whole
 * batch and the result is that of one process with the same batch, but for the order of sums. That
 * order is the ranks' own: the flat store is cut into one segment per rank, and the owner of a
 * segment adds what the ranks have, from rank 0 upwards. So a run with N ranks has the same bits
 * every time. The owner alone keeps the optimiser's state of its segment and updates it; then the
 * values go round.
 *
 * Ranks are the processes that an MPI launcher started (`mpirun -n 4 qkv train …`) of a build
 * with QKV_MPI; else there is one, and all of this costs nothing. A rank that dies takes the
 * others with it, as MPI does; checkpoints are whole at any moment. */
#ifndef QKV_BASE_PARALLEL_H
#define QKV_BASE_PARALLEL_H

#include "base/error.h"
#include "base/real.h"

/* Joins the ranks that the launcher started, if one did; again, it does nothing. */
qkv_status qkv_parallel_begin(void);
/* Leaves. To be called by all ranks, or by none: one that goes without it ends the others. */
void qkv_parallel_end(void);

/* The name of what carries the ranks in this build, in at most n − 1 bytes. */
void qkv_parallel_library(char *out, size_t n);

int qkv_parallel_rank(void);
int qkv_parallel_size(void);

/* ---- between all ranks; each call must be made by every one of them, in the same order ---- */

/* QKV_OK, or status and message of the first rank that failed: the same on all. Waits for all. */
qkv_status qkv_parallel_agree(qkv_status mine);
/* Does any rank say so? */
bool qkv_parallel_any(bool mine);
/* x[i] becomes the sum over the ranks, added in their order. */
void qkv_parallel_sum(double *x, int n);
/* Everyone gets rank 0's bytes. */
void qkv_parallel_share(void *data, size_t n);

/* Segment r of a flat array is its elements cut[r] … cut[r + 1] − 1; rank r owns it. */

/* x's own segment becomes the sum over the ranks, in their order; the other segments become
 * zero. False: no memory (message set). */
bool qkv_parallel_reduce(real *x, const int64_t *cut);
/* Begins that early, or goes on with it, as far as this can be done without waiting: the elements
 * from `final` on have their last value here. qkv_parallel_reduce must follow, whatever happens in
 * between. Ranks need not make the same calls. */
void qkv_parallel_reduce_from(real *x, const int64_t *cut, int64_t final);
/* Every segment becomes its owner's; `item` is the size of an element. */
void qkv_parallel_gather(void *x, size_t item, const int64_t *cut);
/* The same on rank 0 alone. */
void qkv_parallel_collect(void *x, size_t item, const int64_t *cut);
/* Gives the memory of the other segments back to the system; they read as zeros. */
void qkv_parallel_release(real *x, const int64_t *cut);

#endif
