/* Checkpoints: after any kill, crash, full disk or power cut, `last` and `best` are each a complete
 * checkpoint.
 *
 *   RUN/checkpoints/step-00001200/{…files…, manifest.json}
 *   RUN/checkpoints/last → step-…   best → step-…
 *
 * Protocol: write into .tmp-<step>-<pid>, fsync each file, manifest with size and hash of each
 * last, fsync the folder, rename, fsync the parent, replace the link, fsync; only then remove old
 * ones (never the newest verified one, nor what best or last name). */
#ifndef QKV_STORE_CHECKPOINT_H
#define QKV_STORE_CHECKPOINT_H

#include "base/file.h"

typedef struct qkv_checkpoint qkv_checkpoint;

/* Begins one: the files are then written by the caller into qkv_checkpoint_folder(). `bytes` is the
 * estimate checked against the free space first ("no space: need X MB, have Y MB").
 * Left-overs of dead runs are removed. */
qkv_status qkv_checkpoint_begin(const char *run, uint64_t step, size_t bytes, qkv_checkpoint **out);
const char *qkv_checkpoint_folder(const qkv_checkpoint *c);
/* Seals, publishes as `last` (and `best` when asked), rotates old ones keeping `keep`.
 * Frees c in any case. */
qkv_status qkv_checkpoint_commit(qkv_checkpoint *c, bool best, int keep);
void qkv_checkpoint_abandon(qkv_checkpoint *c);

/* The folder of the newest valid checkpoint named by `which` ("last" or "best"): verified by hash.
 * When it is damaged, the newest valid one, and *note says which was skipped and why (""
 * otherwise). QKV_OK with an empty path: there is none. */
qkv_status qkv_checkpoint_find(const char *run, const char *which, qkv_buf *path, qkv_buf *note);
/* Checks every file of one checkpoint folder against its manifest. */
qkv_status qkv_checkpoint_verify(const char *folder);

/* A run folder has one owner at a time. The lock dies with the process. */
qkv_status qkv_run_lock(const char *run, int *fd);
void qkv_run_unlock(int fd);

#endif
