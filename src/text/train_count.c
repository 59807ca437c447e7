/* Counting the words of a text of any size, over all threads, with the same result for any number
 * of them.
 *
 * Lines are copied into a batch; its lines, in items of a fixed number of bytes, are cut into words
 * by the threads, each counting into a table of its own; then the tables are added to the result.
 * Sums of whole numbers do not depend on who added first, and the rarest words are dropped (when
 * there are too many distinct ones) only between batches, whose borders the text alone decides. */
#include "text/train.h"
#include "base/mem.h"
#include "base/thread.h"
#include "base/utf8.h"

#include <string.h>

#define BATCH_BYTES ((size_t)16 << 20)
#define ITEM_BYTES  ((size_t)64 << 10)
#define N_SHARDS    64 /* parts of the result, by hash: each has one owner while tables are added */

typedef struct span {
    size_t begin, end;
} span;

typedef struct batch {
    qkv_buf text;
    QKV_VEC(span) lines;
    QKV_VEC(size_t) items; /* first line of each */
} batch;

typedef struct tally { /* of one thread */
    qkv_words words;
    qkv_status status;
} tally;

typedef struct counter {
    qkv_splitter splitter;
    batch batch;
    tally *tallies;
    int n_tallies;
    qkv_words shards[N_SHARDS];
    qkv_words_limit limit;
    uint32_t halvings; /* so far: each draws its own sample */
} counter;

/* Adds one word to a thread's tally, in parts if it is long. */
static void add_word(void *user, const char *word, size_t len) {
    tally *t = user;
    while (len && t->status == QKV_OK) {
        size_t part = len;
        if (part > QKV_TRAIN_WORD_BYTES) {
            part = qkv_utf8_complete(word, QKV_TRAIN_WORD_BYTES);
            if (part == 0) part = QKV_TRAIN_WORD_BYTES;
        }
        t->status = qkv_words_add(&t->words, word, part, 1, true, NULL);
        word += part;
        len -= part;
    }
}

static void count_item(counter *c, size_t item, tally *t) {
    const batch *b = &c->batch;
    size_t end = item + 1 < b->items.n ? b->items.at[item + 1] : b->lines.n;
    for (size_t i = b->items.at[item]; i < end && t->status == QKV_OK; i++) {
        const span *line = &b->lines.at[i];
        qkv_status status = c->splitter.split(c->splitter.how, b->text.data + line->begin,
                                              line->end - line->begin, add_word, t);
        if (t->status == QKV_OK) t->status = status;
    }
}

static uint32_t shard_of(uint32_t hash) {
    return hash >> 26; /* the upper bits: tables look at the lower ones */
}

static qkv_status add_to_shard(counter *c, uint32_t shard) {
    for (int t = 0; t < c->n_tallies; t++) {
        const qkv_words *words = &c->tallies[t].words;
        for (size_t i = 0; i < words->n; i++) {
            const qkv_word *w = &words->at[i];
            if (shard_of(w->hash) == shard)
                QKV_TRY(qkv_words_add(&c->shards[shard], w->text, w->len, w->count, true, NULL));
        }
    }
    return QKV_OK;
}

/* How much there is, against the limit: over 1 is too much. */
static double fullness(const counter *c) {
    size_t words = 0, bytes = 0;
    for (int s = 0; s < N_SHARDS; s++) {
        words += c->shards[s].n;
        bytes += c->shards[s].text.used;
    }
    const double a = (double)words / (double)c->limit.words,
                 b = (double)bytes / (double)c->limit.bytes;
    return a > b ? a : b;
}

/* What stays when half of the words must go: counts above `count`, and of those with just this
 * count the words whose sample() is below `hash`: a fair sample, where all words (long ones, say)
 * were seen once. */
typedef struct floor_rule {
    uint64_t count;
    uint32_t hash; /* of 256 */
} floor_rule;

/* A number under 256 that the word and the halving decide. */
static uint32_t sample(const qkv_word *w, uint32_t halving) {
    return (w->hash ^ w->hash >> 15) * (2 * halving + 0x9e3779b1u) >> 24;
}

static floor_rule half_of(const counter *c) {
    size_t n = 0, with_count[256] = {0}; /* the last: all higher counts, never dropped */
    for (int s = 0; s < N_SHARDS; s++) {
        for (size_t i = 0; i < c->shards[s].n; i++) {
            uint64_t count = c->shards[s].at[i].count;
            with_count[count < 255 ? count : 255]++;
            n++;
        }
    }
    size_t kept = with_count[255], count = 254;
    while (count > 1 && kept + with_count[count] <= n / 2) kept += with_count[count--];
    size_t room = n / 2 > kept ? n / 2 - kept : 0;
    double share = with_count[count] ? (double)room / (double)with_count[count] : 0;
    return (floor_rule){count, share < 1 ? (uint32_t)(256 * share) : 256};
}

/* Drops the rarest words while there is too much. */
static qkv_status drop_rare(counter *c) {
    while (fullness(c) > 1) {
        const floor_rule rule = half_of(c);
        c->halvings++;
        size_t dropped = 0;
        for (int s = 0; s < N_SHARDS; s++) {
            qkv_words kept;
            qkv_words_init(&kept);
            qkv_status status = QKV_OK;
            for (size_t i = 0; i < c->shards[s].n && status == QKV_OK; i++) {
                const qkv_word *w = &c->shards[s].at[i];
                if (w->count > rule.count ||
                    (w->count == rule.count && sample(w, c->halvings) < rule.hash))
                    status = qkv_words_add(&kept, w->text, w->len, w->count, true, NULL);
                else
                    dropped++;
            }
            qkv_words_free(&c->shards[s]);
            c->shards[s] = kept;
            QKV_TRY(status);
        }
        if (!dropped) break; /* a handful of very frequent words that are over a tiny limit */
    }
    return QKV_OK;
}

/* Counts what is in the batch and empties it. */
static qkv_status count_batch(counter *c) {
    batch *b = &c->batch;
    QKV_TRY(b->text.status);
    b->items.n = 0;
    for (size_t i = 0, begin = 0; i < b->lines.n; i++) {
        if (i && b->lines.at[i].end - begin <= ITEM_BYTES) continue;
        begin = b->lines.at[i].begin;
        if (!QKV_PUSH(b->items, i)) return QKV_FAILED;
    }
    for (int t = 0; t < c->n_tallies; t++) qkv_words_clear(&c->tallies[t].words);
    QKV_PARALLEL_FOR_UNEVEN
    for (size_t i = 0; i < b->items.n; i++) count_item(c, i, &c->tallies[omp_get_thread_num()]);
    qkv_status status = QKV_OK, shard_status[N_SHARDS];
    for (int t = 0; t < c->n_tallies; t++)
        if (c->tallies[t].status != QKV_OK) status = c->tallies[t].status;
    if (status == QKV_OK) {
        QKV_PARALLEL_FOR_UNEVEN
        for (uint32_t s = 0; s < N_SHARDS; s++) shard_status[s] = add_to_shard(c, s);
        for (int s = 0; s < N_SHARDS; s++)
            if (shard_status[s] != QKV_OK) status = shard_status[s];
    }
    qkv_buf_clear(&b->text);
    b->lines.n = 0;
    if (status != QKV_OK) /* the reason was told to another thread */
        return qkv_fail(status, "counting words failed: most likely out of memory");
    return drop_rare(c);
}

static qkv_status add_line(counter *c, const char *text, size_t len) {
    batch *b = &c->batch;
    size_t begin = b->text.len;
    qkv_buf_add(&b->text, text, len);
    if (!QKV_PUSH(b->lines, ((span){begin, b->text.len}))) return QKV_FAILED;
    return b->text.len < BATCH_BYTES ? QKV_OK : count_batch(c);
}

/* A uniform sample without knowing how many lines there are: line i replaces one of the k kept with
 * probability k/i, so at any time each line so far is kept with the same probability. */
static qkv_status read_sample(counter *c, const qkv_tok_train *spec, qkv_text_source next,
                              void *user, uint64_t *lines) {
    const qkv_rng rng = {.seed = spec->seed, .stream = 0x7361};
    QKV_VEC(qkv_text) kept = {0};
    qkv_status status = QKV_OK;
    qkv_text line;
    for (uint64_t i = 0; status == QKV_OK && next(user, &line.data, &line.len); i++) {
        uint64_t place = i < spec->sample_lines ? i : qkv_rng_below(rng, i, i + 1);
        if (place >= spec->sample_lines) continue;
        if (place == kept.n && !QKV_PUSH(kept, ((qkv_text){0}))) status = QKV_FAILED;
        char *copy = status == QKV_OK ? qkv_strndup(line.data, line.len) : NULL;
        if (!copy) {
            status = QKV_FAILED;
            break;
        }
        qkv_free((void *)kept.at[place].data);
        kept.at[place] = (qkv_text){copy, line.len};
    }
    for (size_t i = 0; i < kept.n; i++) {
        if (status == QKV_OK) status = add_line(c, kept.at[i].data, kept.at[i].len);
        qkv_free((void *)kept.at[i].data);
    }
    *lines = kept.n;
    qkv_free(kept.at);
    return status;
}

static qkv_status read_all(counter *c, const qkv_tok_train *spec, qkv_text_source next, void *user,
                           uint64_t *lines) {
    qkv_text line;
    *lines = 0;
    for (; next(user, &line.data, &line.len); (*lines)++) {
        QKV_TRY(add_line(c, line.data, line.len));
        if (spec->progress && c->batch.lines.n == 0)
            spec->progress(spec->user, "counting words", 0);
    }
    return QKV_OK;
}

qkv_status qkv_words_count(qkv_words *words, const qkv_tok_train *spec, qkv_splitter splitter,
                           qkv_words_limit limit, qkv_text_source next, void *user,
                           uint64_t *lines) {
    counter c = {.splitter = splitter, .limit = limit, .n_tallies = qkv_threads()};
    QKV_TRY_ALLOC(c.tallies = qkv_zalloc((size_t)c.n_tallies, sizeof *c.tallies));
    for (int t = 0; t < c.n_tallies; t++) qkv_words_init(&c.tallies[t].words);
    for (int s = 0; s < N_SHARDS; s++) qkv_words_init(&c.shards[s]);
    qkv_status status = (spec->sample_lines ? read_sample : read_all)(&c, spec, next, user, lines);
    if (status == QKV_OK) status = count_batch(&c);
    for (int s = 0; s < N_SHARDS; s++) {
        for (size_t i = 0; i < c.shards[s].n && status == QKV_OK; i++) {
            const qkv_word *w = &c.shards[s].at[i];
            status = qkv_words_add(words, w->text, w->len, w->count, true, NULL);
        }
        qkv_words_free(&c.shards[s]);
    }
    for (int t = 0; t < c.n_tallies; t++) qkv_words_free(&c.tallies[t].words);
    qkv_free(c.tallies);
    qkv_buf_free(&c.batch.text);
    qkv_free(c.batch.lines.at);
    qkv_free(c.batch.items.at);
    if (status == QKV_OK) qkv_words_sort(words);
    return status;
}
