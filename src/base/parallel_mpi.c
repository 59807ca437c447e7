/* Ranks over MPI. Only point-to-point messages of bounded size and a few small collectives are
 * used: what an implementation may add up in an order of its own (MPI_Allreduce) is not asked to
 * add.
 *
 * Segments travel in blocks, so that scratch is one block per rank whatever the model's size. */
#ifdef QKV_MPI
#include "base/parallel.h"
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

/* A sum that begins while gradients are still being made. Blocks go from the end of the store to
 * its beginning, the order in which backward finishes them: every block of another's segment is
 * sent once it is final, and the own blocks are received one after another and added to. MPI moves
 * messages while it is called, which is after every node of the tape. */
static struct reduction {
    bool open;
    real *x;
    const int64_t *cut;
    int to; /* the segment whose blocks are sent now, from the last rank's down; −1: none left */
    int64_t to_end;    /* its elements up to here are still to send */
    MPI_Request *sent; /* one for each block that was sent */
    int n_sent, cap_sent;
    int64_t own_end; /* the own segment is summed from here on */
    mail in;         /* the receives of the block that ends there */
    real *others;    /* what they fill: BLOCK elements per rank */
} sum;

/* Where the block of segment r that ends at `end` begins. */
static int64_t block_before(int r, int64_t end) {
    return end - sum.cut[r] > BLOCK ? end - BLOCK : sum.cut[r];
}

static bool open_reduction(real *x, const int64_t *cut) {
    if (sum.open) return true;
    const int blocks = (int)(cut[size] / BLOCK) + size;
    if (!sum.others && !(sum.others = qkv_alloc_aligned((size_t)size * BLOCK * sizeof *sum.others)))
        return false;
    if (sum.cap_sent < blocks) {
        qkv_free(sum.sent);
        sum.cap_sent = 0;
        if (!(sum.sent = qkv_zalloc((size_t)blocks, sizeof *sum.sent))) return false;
        sum.cap_sent = blocks;
    }
    sum.open = true;
    sum.x = x;
    sum.cut = cut;
    sum.to = size - 1;
    sum.to_end = cut[size];
    sum.n_sent = 0;
    sum.own_end = cut[rank + 1];
    sum.in.n = 0;
    return true;
}

/* Sends the blocks that are final: all of their elements stand at `final` or behind. */
static void send_blocks(int64_t final) {
    while (sum.to >= 0) {
        const int64_t from = block_before(sum.to, sum.to_end);
        if (sum.to == rank || from == sum.to_end) {
            sum.to_end = sum.cut[sum.to--];
        } else if (from < final) {
            return;
        } else {
            MPI_Isend(sum.x + from, (int)((size_t)(sum.to_end - from) * sizeof *sum.x), MPI_BYTE,
                      sum.to, 0, MPI_COMM_WORLD, &sum.sent[sum.n_sent++]);
            sum.to_end = from;
        }
    }
}

/* Receives and adds up own blocks: those that are there already, or (wait) all. */
static void add_blocks(int64_t final, bool wait) {
    while (sum.own_end > sum.cut[rank]) {
        const int64_t from = block_before(rank, sum.own_end), n = sum.own_end - from;
        int arrived = 1;
        for (int r = sum.in.n ? size : 0; r < size; r++)
            if (r != rank)
                receive_from(&sum.in, r, sum.others + (int64_t)r * BLOCK,
                             (size_t)n * sizeof *sum.x);
        if (wait)
            MPI_Waitall(sum.in.n, sum.in.open, sum.in.done);
        else
            MPI_Testall(sum.in.n, sum.in.open, &arrived, sum.in.done);
        if (!arrived || from < final) return;
        add_up(sum.x + from, sum.others, n);
        sum.own_end = from;
        sum.in.n = 0;
    }
}

void qkv_parallel_reduce_from(real *x, const int64_t *cut, int64_t final) {
    if (size == 1 || !open_reduction(x, cut)) return;
    send_blocks(final);
    add_blocks(final, false);
}

bool qkv_parallel_reduce(real *x, const int64_t *cut) {
    if (size == 1) return true;
    if (!open_reduction(x, cut)) return false;
    send_blocks(0);
    add_blocks(0, true);
    for (int i = 0; i < sum.n_sent; i++) MPI_Wait(&sum.sent[i], sum.in.done);
    memset(x, 0, (size_t)cut[rank] * sizeof *x);
    memset(x + cut[rank + 1], 0, (size_t)(cut[size] - cut[rank + 1]) * sizeof *x);
    sum.open = false;
    return true;
}

void qkv_parallel_end(void) {
    if (joined) MPI_Finalize();
    qkv_free(sum.others);
    qkv_free(sum.sent);
    sum = (struct reduction){0};
    joined = false;
    size = 1; /* the rank stays: only one of the processes goes on to speak */
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
