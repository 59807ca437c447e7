/* Byte-pair encoding, and WordPiece: join the best pair of neighbours, again and again.
 *
 * The corpus is never counted twice. Each pair knows its count and the words it stands in; joining
 * (a, b) visits only those words and changes the counts of the neighbours there:
 *     … x a b y …  becomes  … x ab y …:   (x, a) and (b, y) lose, (x, ab) and (ab, y) gain.
 * For one merge all four kinds of pair share a or b or ab, so their changes are summed in arrays
 * indexed by the other symbol; the hash table of pairs is asked once per distinct pair,
 * not once per place.
 *
 * The next pair comes from a heap with lazy entries: an entry whose score has fallen since it was
 * pushed is pushed again with the score of now; one whose score has risen has a younger twin and is
 * dropped.
 *
 * Score: BPE takes the count; WordPiece takes the gain in the log-likelihood of the text, with
 * tokens drawn independently, that joining the pair brings:
 *     count(ab) · log( count(ab)·N / (count(a)·count(b)) ),     N: all tokens of the text.
 * (The bare ratio, often given as the rule, prefers pairs of rare characters: with 8,000 tokens of
 * film reviews it does not get as far as "the".) A pair that does not gain is not joined. Ties go
 * to the pair with the smaller first id, then the smaller second id:
 * the rule of Hugging Face `tokenizers`. */
#include "text/train.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <math.h>
#include <string.h>

typedef QKV_VEC(uint32_t) index_list;

typedef struct pair {
    int32_t left, right;
    int64_t count;    /* places where the two are neighbours, weighted by the words' counts */
    index_list words; /* where it stands or stood; a word may be there twice */
    bool ranked;      /* stands in the list of merges */
} pair;

typedef struct heap_entry {
    double score;
    uint64_t key; /* left << 32 | right: what decides a tie */
    uint32_t pair;
} heap_entry;

/* What one merge (a, b) → ab changes for a neighbour x of the joined places, on one side of them.
 */
typedef struct change {
    int64_t places;
    uint32_t new_pair; /* index of (x, ab) or (ab, x) */
    bool touched;
} change;

enum { BEFORE, AFTER, SIDES };

typedef struct merger {
    const qkv_merge_rule *rule;
    qkv_symbols *symbols;
    uint32_t *length; /* symbols now in each word */
    qkv_trained *out;
    QKV_VEC(pair) pairs;
    uint32_t *slots; /* hash table of pairs: index + 1 */
    size_t n_slots;
    QKV_VEC(heap_entry) heap;
    /* by symbol, `room` of each */
    size_t room;
    change *side[SIDES];
    int64_t *count;       /* of the symbol in the text */
    index_list *pairs_of; /* all pairs that contain the symbol; likelihood only */
    QKV_VEC(int32_t) touched[SIDES];
    int64_t total; /* of all symbols */
} merger;

/* ---- the heap: largest score on top, then smallest key ---- */

static bool above(const heap_entry *x, const heap_entry *y) {
    return x->score != y->score ? x->score > y->score : x->key < y->key;
}

static void sift_down(heap_entry *heap, size_t n, size_t i, heap_entry entry) {
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && above(&heap[child + 1], &heap[child])) child++;
        if (!above(&heap[child], &entry)) break;
        heap[i] = heap[child];
    }
    heap[i] = entry;
}

static heap_entry pop(merger *m) {
    heap_entry top = m->heap.at[0], last = m->heap.at[--m->heap.n];
    if (m->heap.n) sift_down(m->heap.at, m->heap.n, 0, last);
    return top;
}

static double score_of(const merger *m, const pair *p) {
    if (!m->rule->likelihood) return (double)p->count;
    const double single = (double)m->count[p->left] * (double)m->count[p->right];
    return (double)p->count * log((double)p->count * (double)m->total / single);
}

static heap_entry entry_of(const merger *m, uint32_t index) {
    const pair *p = &m->pairs.at[index];
    uint64_t key = (uint64_t)(uint32_t)p->left << 32 | (uint32_t)p->right;
    return (heap_entry){score_of(m, p), key, index};
}

/* Pairs too rare to be joined stay out: a count never rises again once its merge is over. */
static bool candidate(const merger *m, uint32_t index) {
    return m->pairs.at[index].count >= (int64_t)m->rule->min_count;
}

static qkv_status push(merger *m, uint32_t index) {
    if (!candidate(m, index)) return QKV_OK;
    heap_entry entry = entry_of(m, index);
    if (!QKV_PUSH(m->heap, entry)) return QKV_FAILED;
    size_t i = m->heap.n - 1;
    for (size_t parent; i > 0 && above(&entry, &m->heap.at[parent = (i - 1) / 2]); i = parent)
        m->heap.at[i] = m->heap.at[parent];
    m->heap.at[i] = entry;
    return QKV_OK;
}

/* One entry per candidate, none of them stale. */
static qkv_status rebuild_heap(merger *m) {
    m->heap.n = 0;
    for (uint32_t i = 0; i < m->pairs.n; i++)
        if (candidate(m, i) && !QKV_PUSH(m->heap, entry_of(m, i))) return QKV_FAILED;
    for (size_t i = m->heap.n / 2; i-- > 0;) sift_down(m->heap.at, m->heap.n, i, m->heap.at[i]);
    return QKV_OK;
}

/* ---- the table of pairs ---- */

static uint32_t *slot_of(const merger *m, int32_t left, int32_t right) {
    uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9e3779b97f4a7c15u;
    size_t mask = m->n_slots - 1, slot = (h ^ h >> 32) & mask;
    for (; m->slots[slot]; slot = (slot + 1) & mask) {
        const pair *p = &m->pairs.at[m->slots[slot] - 1];
        if (p->left == left && p->right == right) break;
    }
    return &m->slots[slot];
}

static qkv_status grow_slots(merger *m) {
    size_t n_slots = m->n_slots ? 2 * m->n_slots : 1024;
    uint32_t *slots;
    QKV_TRY_ALLOC(slots = qkv_zalloc(n_slots, sizeof *slots));
    qkv_free(m->slots);
    m->slots = slots;
    m->n_slots = n_slots;
    for (size_t i = 0; i < m->pairs.n; i++)
        *slot_of(m, m->pairs.at[i].left, m->pairs.at[i].right) = (uint32_t)i + 1;
    return QKV_OK;
}

/* The index of the pair, entered if it is new. */
static qkv_status find_pair(merger *m, int32_t left, int32_t right, uint32_t *index) {
    if ((m->pairs.n + 1) * 2 > m->n_slots) QKV_TRY(grow_slots(m));
    uint32_t *slot = slot_of(m, left, right);
    if (!*slot) {
        if (!QKV_PUSH(m->pairs, ((pair){.left = left, .right = right}))) return QKV_FAILED;
        *slot = (uint32_t)m->pairs.n;
        if (m->rule->likelihood && (!QKV_PUSH(m->pairs_of[left], *slot - 1) ||
                                    (left != right && !QKV_PUSH(m->pairs_of[right], *slot - 1))))
            return QKV_FAILED;
    }
    *index = *slot - 1;
    return QKV_OK;
}

static qkv_status add_word(pair *p, uint32_t word) {
    if (p->words.n && p->words.at[p->words.n - 1] == word) return QKV_OK;
    return QKV_PUSH(p->words, word) ? QKV_OK : QKV_FAILED;
}

/* Room in the arrays by symbol for all tokens of now. */
static qkv_status grow_room(merger *m) {
    if (m->out->tokens.n <= m->room) return QKV_OK;
    size_t room = m->out->tokens.n + m->out->tokens.n / 2;
    struct {
        void **at;
        size_t size;
    } arrays[] = {
        {(void **)&m->side[BEFORE], sizeof *m->side[0]},
        {(void **)&m->side[AFTER], sizeof *m->side[0]},
        {(void **)&m->count, sizeof *m->count},
        {(void **)&m->pairs_of, sizeof *m->pairs_of},
    };
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        char *grown;
        QKV_TRY_ALLOC(grown = qkv_realloc(*arrays[i].at, room * arrays[i].size));
        memset(grown + m->room * arrays[i].size, 0, (room - m->room) * arrays[i].size);
        *arrays[i].at = grown;
    }
    m->room = room;
    return QKV_OK;
}

/* ---- counting once, then merging ---- */

static qkv_status count_pairs(merger *m) {
    const qkv_symbols *s = m->symbols;
    for (size_t w = 0; w < s->n_words; w++) {
        const int32_t *at = s->at + s->start[w];
        for (uint32_t i = 0; i < m->length[w]; i++) {
            if (at[i] == QKV_NO_SYMBOL) continue;
            m->count[at[i]] += (int64_t)s->count[w];
            m->total += (int64_t)s->count[w];
            if (i + 1 == m->length[w] || at[i + 1] == QKV_NO_SYMBOL) continue;
            uint32_t index;
            QKV_TRY(find_pair(m, at[i], at[i + 1], &index));
            m->pairs.at[index].count += (int64_t)s->count[w];
            QKV_TRY(add_word(&m->pairs.at[index], (uint32_t)w));
        }
    }
    return rebuild_heap(m);
}

/* Notes that a joined place has neighbour x on a side: (x, a) becomes (x, ab), or (b, x) (ab, x).
 */
static qkv_status note(merger *m, int side, int32_t x, int32_t ab, uint32_t word) {
    if (x == QKV_NO_SYMBOL) return QKV_OK;
    change *c = &m->side[side][x];
    if (!c->touched) {
        QKV_TRY(find_pair(m, side == BEFORE ? x : ab, side == BEFORE ? ab : x, &c->new_pair));
        if (!QKV_PUSH(m->touched[side], x)) return QKV_FAILED;
        c->touched = true;
    }
    c->places += (int64_t)m->symbols->count[word];
    return add_word(&m->pairs.at[c->new_pair], word);
}

/* Replaces a b by ab in one word, from the left; adds the places to *joined. */
static qkv_status join_in_word(merger *m, uint32_t word, int32_t a, int32_t b, int32_t ab,
                               int64_t *joined) {
    int32_t *at = m->symbols->at + m->symbols->start[word];
    uint32_t n = m->length[word], to = 0;
    for (uint32_t i = 0; i < n;) {
        if (i + 1 == n || at[i] != a || at[i + 1] != b) {
            at[to++] = at[i++];
            continue;
        }
        if (to > 0) QKV_TRY(note(m, BEFORE, at[to - 1], ab, word));
        if (i + 2 < n) QKV_TRY(note(m, AFTER, at[i + 2], ab, word));
        *joined += (int64_t)m->symbols->count[word];
        at[to++] = ab;
        i += 2;
    }
    m->length[word] = to;
    return QKV_OK;
}

/* Takes the noted changes into the counts of the pairs. */
static qkv_status settle(merger *m, int32_t a, int32_t b) {
    for (int side = 0; side < SIDES; side++) {
        for (size_t i = 0; i < m->touched[side].n; i++) {
            int32_t x = m->touched[side].at[i];
            const change *c = &m->side[side][x];
            uint32_t old;
            m->pairs.at[c->new_pair].count += c->places;
            QKV_TRY(find_pair(m, side == BEFORE ? x : b, side == BEFORE ? a : x, &old));
            m->pairs.at[old].count -= c->places;
        }
    }
    return QKV_OK;
}

/* Pushes what has a higher score than before: the new pairs, and, by likelihood, all pairs of a and
 * b, since these two have become rarer. */
static qkv_status push_risen(merger *m, int32_t a, int32_t b) {
    for (int side = 0; side < SIDES; side++) {
        for (size_t i = 0; i < m->touched[side].n; i++) {
            change *c = &m->side[side][m->touched[side].at[i]];
            QKV_TRY(push(m, c->new_pair));
            *c = (change){0};
        }
        m->touched[side].n = 0;
    }
    const int32_t rarer[] = {a, b};
    for (int k = 0; m->rule->likelihood && k < (a == b ? 1 : 2); k++) {
        index_list *list = &m->pairs_of[rarer[k]];
        size_t n = 0;
        for (size_t i = 0; i < list->n; i++) {
            if (!candidate(m, list->at[i])) continue; /* and is forgotten */
            QKV_TRY(push(m, list->at[n++] = list->at[i]));
        }
        list->n = n;
    }
    return m->heap.n > 4 * m->pairs.n + 1024 ? rebuild_heap(m) : QKV_OK;
}

/* Joins a pair everywhere; `text` is scratch for the new token's name. */
static qkv_status join(merger *m, uint32_t index, qkv_buf *text) {
    pair p = m->pairs.at[index];
    const qkv_word *left = &m->out->tokens.at[p.left], *right = &m->out->tokens.at[p.right];
    size_t skip = m->rule->continuing ? strlen(m->rule->continuing) : 0;
    if (skip > right->len || (skip && memcmp(right->text, m->rule->continuing, skip) != 0))
        skip = 0;
    m->pairs.at[index].count = 0;
    m->pairs.at[index].words = (index_list){0}; /* ours now */
    qkv_buf_clear(text);
    qkv_buf_add(text, left->text, left->len);
    qkv_buf_add(text, right->text + skip, right->len - skip);
    qkv_status status = text->status;
    if (status == QKV_OK && m->rule->max_piece &&
        qkv_utf8_count(text->data, text->len) > m->rule->max_piece)
        goto done;
    uint32_t ab; /* may be there already: "ab" + "c" and "a" + "bc" are the same token */
    if (status == QKV_OK)
        status = qkv_words_add(&m->out->tokens, text->data, text->len, 0, true, &ab);
    if (status == QKV_OK) status = grow_room(m);
    if (status == QKV_OK && !p.ranked &&
        !QKV_PUSH(m->out->merges, ((qkv_merge){p.left, p.right, (int32_t)ab})))
        status = QKV_FAILED;
    int64_t joined = 0;
    for (size_t i = 0; i < p.words.n && status == QKV_OK; i++)
        status = join_in_word(m, p.words.at[i], p.left, p.right, (int32_t)ab, &joined);
    if (status == QKV_OK) status = settle(m, p.left, p.right);
    if (status == QKV_OK) {
        m->pairs.at[index].count = 0; /* runs like a a a took from it */
        m->pairs.at[index].ranked = true;
        m->count[p.left] -= joined;
        m->count[p.right] -= joined;
        m->count[ab] += joined;
        m->total -= joined;
        status = push_risen(m, p.left, p.right);
    }
done:
    qkv_free(p.words.at);
    return status;
}

static qkv_status merge_all(merger *m) {
    qkv_buf text = {0};
    qkv_status status = count_pairs(m);
    size_t first = m->out->tokens.n;
    while (status == QKV_OK && m->heap.n && m->out->tokens.n < m->rule->size) {
        heap_entry top = pop(m);
        if (top.score <= 0) break; /* scores in the heap are never too low: there is no gain left */
        double now = score_of(m, &m->pairs.at[top.pair]);
        if (now > top.score) continue;
        if (now < top.score || !candidate(m, top.pair)) {
            status = push(m, top.pair);
            continue;
        }
        status = join(m, top.pair, &text);
        if (m->rule->progress && m->out->tokens.n % 256 == 0)
            m->rule->progress(m->rule->user, "merging",
                              (double)(m->out->tokens.n - first) / (double)(m->rule->size - first));
    }
    if (status == QKV_OK) m->out->capped = m->out->tokens.n < m->rule->size;
    for (size_t i = 0; i < m->out->tokens.n && status == QKV_OK; i++)
        m->out->tokens.at[i].count = (uint64_t)m->count[i];
    qkv_buf_free(&text);
    return status;
}

qkv_status qkv_train_merges(qkv_symbols *symbols, const qkv_merge_rule *rule, qkv_trained *out) {
    merger m = {.rule = rule, .symbols = symbols, .out = out};
    qkv_status status = grow_room(&m);
    m.length = qkv_zalloc(symbols->n_words, sizeof *m.length);
    if (!m.length) status = QKV_FAILED;
    if (status == QKV_OK) {
        for (size_t w = 0; w < symbols->n_words; w++)
            m.length[w] = (uint32_t)(symbols->start[w + 1] - symbols->start[w]);
        status = merge_all(&m);
    }
    for (size_t i = 0; i < m.pairs.n; i++) qkv_free(m.pairs.at[i].words.at);
    for (size_t i = 0; m.pairs_of && i < m.room; i++) qkv_free(m.pairs_of[i].at);
    for (int side = 0; side < SIDES; side++) {
        qkv_free(m.side[side]);
        qkv_free(m.touched[side].at);
    }
    qkv_free(m.length);
    qkv_free(m.pairs.at);
    qkv_free(m.slots);
    qkv_free(m.heap.at);
    qkv_free(m.count);
    qkv_free(m.pairs_of);
    return status;
}
