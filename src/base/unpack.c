/* One loop per library, all into the same bounded buffer. Several packed pieces one behind another
 * (as `cat a.gz b.gz` makes, and parallel packers) are one file. */
#include "base/unpack.h"
#include "base/machine.h"
#include "base/mem.h"

#include <limits.h>
#include <lzma.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

enum {
    PIECE = 1 << 20,      /* bytes unpacked at a time */
    RATIO = 250,          /* what no text reaches: books give 3, logs 20, one line repeated 1,000 */
    FREE_RATIO = 64 << 20 /* up to here any ratio will do */
};

/* What is being unpacked, and where to. */
typedef struct unpacking {
    const char *path, *packing;
    const char *data;
    size_t n;
    size_t most; /* bytes that may come out */
    double free; /* memory that was free, 0: unknown */
    qkv_buf out;
} unpacking;

static qkv_status damaged(const unpacking *u, const char *why) {
    return qkv_fail(QKV_BAD_FILE, "%s: its %s data is damaged (%s); fetch or pack it again",
                    u->path, u->packing, why);
}

static qkv_status cut_short(const unpacking *u) {
    return qkv_fail(QKV_BAD_FILE,
                    "%s: its %s data ends in the middle, after %zu bytes of text: the file was cut "
                    "short; fetch it again",
                    u->path, u->packing, u->out.len);
}

static qkv_status too_much(const unpacking *u) {
    const double mb = (double)u->most / 1e6;
    if (u->free > 0 && (double)u->most >= 0.49 * u->free)
        return qkv_fail(QKV_FAILED,
                        "%s: unpacks to more than %.0f MB, half of the memory that is free; unpack "
                        "it to a file, which need not fit",
                        u->path, mb);
    return qkv_fail(QKV_BAD_FILE,
                    "%s: %.1f MB that unpack to more than %.0f MB; no text packs so well. If it is "
                    "meant, unpack it to a file first",
                    u->path, (double)u->n / 1e6, mb);
}

/* Room for the next piece; NULL without memory, or when there is too much (a message says which). */
static char *next_piece(unpacking *u) {
    if (u->out.len > u->most) {
        u->out.status = too_much(u);
        return NULL;
    }
    return qkv_buf_extend(&u->out, PIECE);
}

/* Gives back what was not filled of the piece. */
static void unused(unpacking *u, size_t n) {
    u->out.len -= n;
}

/* ---- gzip ---- */

/* Behind the last member: nothing, or the zeros that fill a tape's last block. */
static bool only_zeros(const z_stream *z) {
    for (size_t i = 0; i < z->avail_in; i++)
        if (z->next_in[i]) return false;
    return true;
}

/* zlib counts what is left in 32 bits. */
static void refill(z_stream *z, const unpacking *u) {
    const size_t left = u->n - (size_t)((const char *)z->next_in - u->data);
    z->avail_in = left < UINT_MAX ? (unsigned)left : UINT_MAX;
}

static qkv_status gzip_members(unpacking *u, z_stream *z) {
    for (;;) {
        char *to = next_piece(u);
        if (!to) return u->out.status;
        z->next_out = (unsigned char *)to;
        z->avail_out = PIECE;
        refill(z, u);
        const int code = inflate(z, Z_NO_FLUSH);
        unused(u, z->avail_out);
        refill(z, u);
        if (code == Z_STREAM_END) {
            if (z->avail_in == 0 || only_zeros(z)) return QKV_OK;
            if (inflateReset(z) != Z_OK) return damaged(u, "its state");
        } else if (code == Z_MEM_ERROR) {
            return qkv_fail(QKV_FAILED, "%s: out of memory while unpacking", u->path);
        } else if (code != Z_OK && code != Z_BUF_ERROR) {
            return damaged(u, z->msg ? z->msg : "no such method");
        } else if (z->avail_in == 0 && z->avail_out > 0) {
            return cut_short(u);
        }
    }
}

static qkv_status unpack_gzip(unpacking *u) {
    enum { GZIP_ONLY = 16 };
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)u->data};
    if (inflateInit2(&z, GZIP_ONLY + MAX_WBITS) != Z_OK)
        return qkv_fail(QKV_FAILED, "%s: out of memory while unpacking", u->path);
    const qkv_status status = gzip_members(u, &z);
    inflateEnd(&z);
    return status;
}

/* ---- xz ---- */

static qkv_status xz_failed(const unpacking *u, lzma_ret code) {
    switch (code) {
    case LZMA_BUF_ERROR:
        return cut_short(u);
    case LZMA_MEM_ERROR:
        return qkv_fail(QKV_FAILED, "%s: out of memory while unpacking", u->path);
    case LZMA_MEMLIMIT_ERROR:
        return qkv_fail(QKV_BAD_FILE,
                        "%s: packed with a dictionary that takes more memory than text is worth; "
                        "unpack it first: xz -dk",
                        u->path);
    case LZMA_OPTIONS_ERROR:
        return damaged(u, "no such method");
    case LZMA_FORMAT_ERROR:
        return damaged(u, "something else stands behind its end");
    default:
        return damaged(u, "its check sums differ");
    }
}

static qkv_status xz_streams(unpacking *u, lzma_stream *x) {
    for (;;) {
        char *to = next_piece(u);
        if (!to) return u->out.status;
        x->next_out = (uint8_t *)to;
        x->avail_out = PIECE;
        const lzma_ret code = lzma_code(x, LZMA_FINISH);
        unused(u, x->avail_out);
        if (code == LZMA_STREAM_END) return QKV_OK;
        if (code != LZMA_OK) return xz_failed(u, code);
    }
}

static qkv_status unpack_xz(unpacking *u) {
    const uint64_t memory = (uint64_t)512 << 20; /* xz -9 takes 65 MB */
    lzma_stream x = LZMA_STREAM_INIT;
    x.next_in = (const uint8_t *)u->data;
    x.avail_in = u->n;
    if (lzma_stream_decoder(&x, memory, LZMA_CONCATENATED) != LZMA_OK)
        return qkv_fail(QKV_FAILED, "%s: out of memory while unpacking", u->path);
    const qkv_status status = xz_streams(u, &x);
    lzma_end(&x);
    return status;
}

/* ---- zstd ---- */

static qkv_status zstd_frames(unpacking *u, ZSTD_DCtx *z) {
    ZSTD_inBuffer in = {u->data, u->n, 0};
    for (;;) {
        char *to = next_piece(u);
        if (!to) return u->out.status;
        ZSTD_outBuffer out = {to, PIECE, 0};
        const size_t left = ZSTD_decompressStream(z, &out, &in);
        unused(u, PIECE - out.pos);
        if (ZSTD_isError(left)) return damaged(u, ZSTD_getErrorName(left));
        if (in.pos < in.size) continue;
        if (left == 0) return QKV_OK; /* a frame ends with the file */
        if (out.pos < out.size) return cut_short(u);
    }
}

static qkv_status unpack_zstd(unpacking *u) {
    ZSTD_DCtx *z = ZSTD_createDCtx(); /* its window is bounded by 128 MB unless told otherwise */
    if (!z) return qkv_fail(QKV_FAILED, "%s: out of memory while unpacking", u->path);
    const qkv_status status = zstd_frames(u, z);
    ZSTD_freeDCtx(z);
    return status;
}

/* ---- the table ---- */

static const struct {
    const char *name, *ending;
    const char *magic;
    size_t n;
    qkv_status (*unpack)(unpacking *u);
} packings[] = {
    {"gzip", ".gz", "\x1F\x8B", 2, unpack_gzip},
    {"xz", ".xz",
     "\xFD"
     "7zXZ\0",
     6, unpack_xz},
    {"zstd", ".zst", "\x28\xB5\x2F\xFD", 4, unpack_zstd},
};
enum { N_PACKINGS = sizeof packings / sizeof *packings };

static size_t packing(const char *data, size_t n) {
    size_t i = 0;
    while (i < N_PACKINGS &&
           !(n >= packings[i].n && !memcmp(data, packings[i].magic, packings[i].n)))
        i++;
    return i;
}

const char *qkv_packing_of(const char *data, size_t n) {
    const size_t i = packing(data, n);
    return i < N_PACKINGS ? packings[i].name : NULL;
}

size_t qkv_unpacked_name(const char *path) {
    const size_t n = strlen(path);
    for (size_t i = 0; i < N_PACKINGS; i++) {
        const size_t k = strlen(packings[i].ending);
        if (n > k && strcmp(path + n - k, packings[i].ending) == 0) return n - k;
    }
    return n;
}

/* Bytes that may come out of n: text packs only so well, and half of the memory is for the rest. */
static void set_bound(unpacking *u) {
    double total;
    u->free = qkv_machine_memory(&total);
    u->most = u->n < SIZE_MAX / RATIO ? RATIO * u->n : SIZE_MAX;
    if (u->most < FREE_RATIO) u->most = FREE_RATIO;
    if (u->free > 0 && (double)u->most > u->free / 2) u->most = (size_t)(u->free / 2);
}

qkv_status qkv_file_unpack(const char *path, qkv_file *file) {
    const size_t i = packing(file->data, file->size);
    if (i == N_PACKINGS) return QKV_OK;
    unpacking u = {.path = path, .packing = packings[i].name, .data = file->data, .n = file->size};
    set_bound(&u);
    qkv_status status = packings[i].unpack(&u);
    if (status == QKV_OK && u.out.len > u.most) status = too_much(&u);
    qkv_file_close(file);
    if (status != QKV_OK) {
        qkv_buf_free(&u.out);
        return status;
    }
    *file = (qkv_file){.data = u.out.data, .size = u.out.len, .packed = packings[i].name};
    return QKV_OK;
}
