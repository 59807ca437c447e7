/* Ranks over MPI. Only point-to-point messages of bounded size and a few small collectives are
 * used: what an implementation may add up in an order of its own (MPI_Allreduce) is not asked to
 * add.
 *
 * Segments travel in blocks: every rank sends block b of each segment to its owner while it
 * receives block b of its own from all others, so scratch is one block a rank whatever the
 * model's size. */
#ifdef QKV_MPI
#include "train/parallel.h"
#include "base/mem.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCK = 1 << 18 /* elements of a message */, MOST_RANKS = 1024, MESSAGE = 1024 };

static int rank = 0, size = 1;
static bool joined = false;

/* Was this process started by a launcher? Else MPI is left alone: joining it takes time, and may
 * not work. */
static bool launched(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK",
                                        "MPI_LOCALNRANKS", NULL};
    for (const char *const *name = names; *name; name++)
        if (getenv(*name)) return true;
    return false;
}

qkv_status qkv_parallel_begin(void) {
    int done = 0, level;
    if (joined || !launched()) return QKV_OK;
    MPI_Finalized(&done);
    if (done)
        return qkv_fail(QKV_USAGE,
                        "a process can train over MPI once; start it again for another run");
    MPI_Initialized(&done);
    if (!done && MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS)
        return qkv_fail(QKV_FAILED, "MPI cannot be started");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    joined = true;
    if (size <= MOST_RANKS) return QKV_OK;
    return qkv_fail(QKV_USAGE, "%d ranks; there may be %d", size, MOST_RANKS);
}

void qkv_parallel_end(void) {
    if (joined) MPI_Finalize();
    joined = false;
    size = 1; /* the rank stays: only one of the processes goes on to speak */
}

void qkv_parallel_library(char *out, size_t n) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int len;
    MPI_Get_library_version(text, &len);
    text[strcspn(text, ",\n")] = 0;                          /* "Open MPI v4.1.4, package: …" */
    for (char *tab; (tab = strchr(text, '\t'));) *tab = ' '; /* MPICH's */
    snprintf(out, n, "%s", text);
}

int qkv_parallel_rank(void) {
    return rank;
}

int qkv_parallel_size(void) {
    return size;
}

/* ---- small things ---- */

qkv_status qkv_parallel_agree(qkv_status mine) {
    int all[MOST_RANKS], own = (int)mine, first = 0;
    if (size == 1) return mine;
    MPI_Allgather(&own, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    while (first < size && all[first] == QKV_OK) first++;
    if (first == size) return QKV_OK;
    char text[MESSAGE] = "";
    if (rank == first) strncpy(text, qkv_error(), sizeof text - 1);
    MPI_Bcast(text, sizeof text, MPI_CHAR, first, MPI_COMM_WORLD);
    return qkv_fail((qkv_status)all[first], "%s", text);
}

bool qkv_parallel_any(bool mine) {
    double x = mine;
    qkv_parallel_sum(&x, 1);
    return x > 0;
}

void qkv_parallel_sum(double *x, int n) {
    enum { MOST = 16 };
    double all[MOST_RANKS * MOST];
    if (size == 1) return;
    for (int from = 0; from < n; from += MOST) {
        const int part = n - from < MOST ? n - from : MOST;
        MPI_Allgather(x + from, part, MPI_DOUBLE, all, part, MPI_DOUBLE, MPI_COMM_WORLD);
        for (int i = 0; i < part; i++) {
            x[from + i] = all[i];
            for (int r = 1; r < size; r++) x[from + i] += all[r * part + i];
        }
    }
}

void qkv_parallel_share(void *data, size_t n) {
    if (size > 1) MPI_Bcast(data, (int)n, MPI_BYTE, 0, MPI_COMM_WORLD);
}

/* ---- segments ---- */

/* Elements of block `at` … of segment r; 0 past its end. */
static int64_t block_of(const int64_t *cut, int r, int64_t at) {
    const int64_t left = cut[r + 1] - cut[r] - at;
    return left < 0 ? 0 : left < BLOCK ? left : BLOCK;
}

static int64_t longest(const int64_t *cut) {
    int64_t most = 0;
    for (int r = 0; r < size; r++) most = cut[r + 1] - cut[r] > most ? cut[r + 1] - cut[r] : most;
    return most;
}

/* The messages of one block: at most one to and one from each other rank. */
typedef struct mail {
    MPI_Request open[2 * MOST_RANKS];
    MPI_Status
        done[2 *
             MOST_RANKS]; /* not looked at; gcc takes MPICH's MPI_STATUSES_IGNORE for an error */
    int n;
} mail;

static void send_to(mail *m, int to, const void *x, size_t bytes) {
    if (bytes) MPI_Isend(x, (int)bytes, MPI_BYTE, to, 0, MPI_COMM_WORLD, &m->open[m->n++]);
}

static void receive_from(mail *m, int from, void *x, size_t bytes) {
    if (bytes) MPI_Irecv(x, (int)bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD, &m->open[m->n++]);
}

static void wait_all(mail *m) {
    MPI_Waitall(m->n, m->open, m->done);
    m->n = 0;
}

/* The own block and those of the others, added from rank 0 upwards into `own`. */
static void add_up(real *restrict own, const real *restrict others, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        real sum = rank == 0 ? own[i] : others[i];
        for (int r = 1; r < size; r++) sum += r == rank ? own[i] : others[(int64_t)r * BLOCK + i];
        own[i] = sum;
    }
}

bool qkv_parallel_reduce(real *x, const int64_t *cut) {
    if (size == 1) return true;
    real *others = qkv_alloc_aligned((size_t)size * BLOCK * sizeof *others);
    if (!others) return false;
    mail m;
    m.n = 0;
    const int64_t end = longest(cut);
    for (int64_t at = 0; at < end; at += BLOCK) {
        const int64_t n = block_of(cut, rank, at);
        for (int r = 0; r < size; r++) {
            if (r == rank) continue;
            receive_from(&m, r, others + (int64_t)r * BLOCK, (size_t)n * sizeof *x);
            send_to(&m, r, x + cut[r] + at, (size_t)block_of(cut, r, at) * sizeof *x);
        }
        wait_all(&m);
        add_up(x + cut[rank] + at, others, n);
        for (int r = 0; r < size; r++)
            if (r != rank) memset(x + cut[r] + at, 0, (size_t)block_of(cut, r, at) * sizeof *x);
    }
    qkv_free(others);
    return true;
}

/* Sends the own segment to the ranks that want it (all, or rank 0) and receives what this one
 * wants. */
static void deliver(char *x, size_t item, const int64_t *cut, bool to_all) {
    mail m;
    m.n = 0;
    const int64_t end = size == 1 ? 0 : longest(cut);
    for (int64_t at = 0; at < end; at += BLOCK) {
        for (int r = 0; r < size; r++) {
            if (r == rank) continue;
            if (to_all || rank == 0)
                receive_from(&m, r, x + (size_t)(cut[r] + at) * item,
                             (size_t)block_of(cut, r, at) * item);
            if (to_all || r == 0)
                send_to(&m, r, x + (size_t)(cut[rank] + at) * item,
                        (size_t)block_of(cut, rank, at) * item);
        }
        wait_all(&m);
    }
}

void qkv_parallel_gather(void *x, size_t item, const int64_t *cut) {
    deliver(x, item, cut, true);
}

void qkv_parallel_collect(void *x, size_t item, const int64_t *cut) {
    deliver(x, item, cut, false);
}

/* Whole pages between two addresses; private memory that is not needed any more reads as zeros. */
static void release_between(const real *from, const real *to) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = ((uintptr_t)from + page - 1) & ~(page - 1),
                    last = (uintptr_t)to & ~(page - 1);
    if (first < last) madvise((void *)first, last - first, MADV_DONTNEED);
}

void qkv_parallel_release(real *x, const int64_t *cut) {
    if (size == 1 || !x) return;
    release_between(x, x + cut[rank]);
    release_between(x + cut[rank + 1], x + cut[size]);
}

#endif
