/* Unigram language model: a text is cut into the tokens whose log-probabilities have the largest
 * sum (Viterbi).
 *
 * best[e] = max over tokens t that end at e of best[e − |t|] + score(t); a character that is no
 * token of its own may be the unknown token, at the lowest score − 10. Of equal sums the one found
 * first stays. Hugging Face adds in double, SentencePiece rounds each sum to single precision: ties
 * fall differently, so the model says which of the two it is. So that the sums of a long text keep
 * their precision, SentencePiece begins again at 0 whenever one leaves ± 100,000. */
#include "text/models.h"
#include "text/scratch.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define UNK_PENALTY 10.0
#define SUM_MAX     100000.0
#define NO_PATH     INT32_MIN

/* types NULL: all tokens are matched in texts, and sums are in double precision. */
static qkv_status install(qkv_tokenizer *tok, const qkv_text *tokens, const double *scores,
                          const uint8_t *types, size_t n, int32_t unk, bool byte_fallback) {
    qkv_unigram *m;
    QKV_TRY_ALLOC(m = qkv_arena_zalloc(&tok->arena, sizeof *m));
    tok->model = m;
    tok->model_kind = &qkv_model_unigram;
    QKV_TRY_ALLOC(m->scores = qkv_alloc((n + 1) * sizeof *m->scores));
    m->n = n;
    m->unk = unk;
    m->byte_fallback = byte_fallback;
    m->single = types != NULL;
    QKV_TRY(qkv_vocab_reserve(&tok->vocab, n, 8 * n));
    double lowest = INFINITY;
    qkv_trie_key *keys;
    QKV_TRY_ALLOC(keys = qkv_alloc((n + 1) * sizeof *keys));
    size_t n_keys = 0;
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        m->scores[i] = scores[i];
        const bool normal = !types || types[i] == QKV_PIECE_NORMAL;
        if (normal && scores[i] < lowest) lowest = scores[i];
        if (normal || types[i] == QKV_PIECE_USER)
            keys[n_keys++] = (qkv_trie_key){tokens[i].data, (uint32_t)tokens[i].len, (int32_t)i};
        status = qkv_vocab_put(&tok->vocab, tokens[i].data, tokens[i].len, (int32_t)i);
    }
    m->unk_score = (isfinite(lowest) ? lowest : 0) - UNK_PENALTY;
    tok->n_model_entries = tok->vocab.entries.n;
    if (status == QKV_OK) status = qkv_trie_build(&m->trie, keys, n_keys);
    qkv_free(keys);
    return status;
}

qkv_status qkv_tokenizer_set_unigram(qkv_tokenizer *tok, const qkv_text *tokens,
                                     const double *scores, size_t n, int32_t unk,
                                     bool byte_fallback) {
    return install(tok, tokens, scores, NULL, n, unk, byte_fallback);
}

qkv_status qkv_tokenizer_set_sentencepiece_unigram(qkv_tokenizer *tok, const qkv_text *tokens,
                                                   const double *scores, const uint8_t *types,
                                                   size_t n, int32_t unk, bool byte_fallback) {
    return install(tok, tokens, scores, types, n, unk, byte_fallback);
}

/* ---- reading the file's form ---- */

/* 10^e, the nearest double, e ≤ 308. */
static double power_of_ten(int e) {
    static const double exact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if ((size_t)e < sizeof exact / sizeof *exact) return exact[e];
    char text[8];
    double value = 1;
    qkv_number_parse(text, (size_t)snprintf(text, sizeof text, "1e%d", e), &value);
    return value;
}

/* The number as Hugging Face's JSON reader understands it: digits as a whole number, then one
 * multiplication or division by a power of ten. That rounds twice and may miss the nearest double
 * by one unit, which decides ties between paths. */
static double score_from_text(const char *text, size_t len) {
    uint64_t digits = 0;
    int64_t exponent = 0;
    size_t i = 0;
    bool full = false, point = false;
    const bool negative = len && text[0] == '-';
    for (i = negative; i < len && text[i] != 'e' && text[i] != 'E'; i++) {
        if (text[i] == '.') {
            point = true;
            continue;
        }
        const uint64_t d = (uint64_t)(text[i] - '0');
        full = full || digits > (UINT64_MAX - d) / 10;
        if (!full) digits = 10 * digits + d;
        exponent += full ? !point : -(int64_t)point;
    }
    if (i < len) {
        int64_t e = 0;
        const bool minus = ++i < len && text[i] == '-';
        for (i += minus || (i < len && text[i] == '+'); i < len && e < 100000; i++)
            e = 10 * e + (text[i] - '0');
        exponent += minus ? -e : e;
    }
    double value = (double)digits;
    for (; exponent < -308 && value != 0; exponent += 308) value /= 1e308;
    if (exponent < -308 || exponent > 308)
        exponent = 0; /* zero, or refused by the JSON reader already */
    value =
        exponent < 0 ? value / power_of_ten((int)-exponent) : value * power_of_ten((int)exponent);
    return negative ? -value : value;
}

static qkv_status read_pieces(qkv_json_at list, qkv_text *tokens, double *scores) {
    qkv_json_at pair, at;
    size_t i = 0;
    for (bool more = qkv_json_first(list, &pair); more; more = qkv_json_next(list, &pair), i++) {
        if (qkv_json_count(pair) != 2 || !qkv_json_first(pair, &at) ||
            qkv_json_kind_of(at) != QKV_JSON_STRING)
            return qkv_fail(QKV_BAD_FILE, "line %zu: vocab entry %zu is not [piece, score]",
                            qkv_json_line(pair), i);
        qkv_json_string(at, &tokens[i].data, &tokens[i].len);
        qkv_json_next(pair, &at);
        if (qkv_json_kind_of(at) != QKV_JSON_NUMBER)
            return qkv_fail(QKV_BAD_FILE, "line %zu: the score of entry %zu is no number",
                            qkv_json_line(pair), i);
        const char *number;
        size_t len;
        qkv_json_number_text(at, &number, &len);
        scores[i] = score_from_text(number, len);
    }
    return QKV_OK;
}

static qkv_status parse(qkv_tokenizer *tok, qkv_json_at json) {
    qkv_json_at list, at;
    int64_t unk = -1;
    bool byte_fallback = false;
    if (!qkv_json_member(json, "vocab", &list) || qkv_json_kind_of(list) != QKV_JSON_ARRAY)
        return qkv_fail(QKV_BAD_FILE, "line %zu: Unigram without a vocab list",
                        qkv_json_line(json));
    const size_t n = qkv_json_count(list);
    if (n > QKV_VOCAB_MAX)
        return qkv_fail(QKV_BAD_FILE, "a vocabulary of %zu tokens: at most %u are read", n,
                        QKV_VOCAB_MAX);
    if (qkv_json_member(json, "unk_id", &at) && qkv_json_kind_of(at) != QKV_JSON_NULL)
        QKV_TRY(qkv_json_get_int(json, "unk_id", true, 0, (int64_t)n - 1, &unk));
    QKV_TRY(qkv_json_get_bool(json, "byte_fallback", false, &byte_fallback));
    qkv_text *tokens = qkv_zalloc(n + 1, sizeof *tokens);
    double *scores = qkv_zalloc(n + 1, sizeof *scores);
    qkv_status status = tokens && scores ? read_pieces(list, tokens, scores) : QKV_FAILED;
    if (status == QKV_OK)
        status = install(tok, tokens, scores, NULL, n, (int32_t)unk, byte_fallback);
    qkv_free(tokens);
    qkv_free(scores);
    return status;
}

static qkv_status prepare(qkv_tokenizer *tok) {
    qkv_unigram *m = tok->model;
    qkv_byte_fallback(&tok->vocab, m->fallback);
    tok->special[QKV_TOK_UNK] = m->unk;
    return QKV_OK;
}

/* ---- the best path ---- */

/* Offers a better path to `target`. */
static inline void relax(qkv_lattice_node *target, double score, size_t from, int32_t id,
                         bool single) {
    if (single) score = (double)(float)score;
    if (target->id != NO_PATH && !(score > target->score)) return;
    *target = (qkv_lattice_node){score, (uint32_t)from, id};
}

/* Offers one more path to draw from: `score` becomes the logarithm of the summed weight of all
 * paths that end here, and the new one is taken with its share of it. Walking back along what was
 * taken then draws a path with probability ∝ its weight. */
static void draw(qkv_scratch *s, qkv_lattice_node *target, double weight, size_t from, int32_t id) {
    const bool first = target->id == NO_PATH;
    const double high = first || weight > target->score ? weight : target->score,
                 low = high == weight ? target->score : weight;
    const double sum = first ? weight : high + log1p(exp(low - high));
    if (first || qkv_scratch_draw(s) < exp(weight - sum)) {
        target->from = (uint32_t)from;
        target->id = id;
    }
    target->score = sum;
}

static inline void offer(const qkv_unigram *m, qkv_scratch *s, qkv_lattice_node *best, size_t from,
                         size_t end, int32_t id, double score) {
    if (s->dropout > 0)
        draw(s, &best[end], best[from].score + s->dropout * score, from, id);
    else
        relax(&best[end], score + best[from].score, from, id, m->single);
}

/* Takes the sum of the first node off all `n` nodes that have one. */
static void restart(qkv_lattice_node *node, size_t n) {
    const double sum = node->score;
    for (size_t i = 0; i < n; i++)
        if (node[i].id != NO_PATH) node[i].score = (double)(float)(node[i].score - sum);
}

static void forward(const qkv_unigram *m, qkv_scratch *s, qkv_lattice_node *best, const char *word,
                    size_t n) {
    for (size_t e = 1; e <= n; e++) best[e].id = NO_PATH;
    best[0] = (qkv_lattice_node){0};
    size_t reached = 0; /* the last node with a path */
    for (size_t i = 0, len; i < n; i += len) {
        int32_t cp;
        if (m->single && fabs(best[i].score) > SUM_MAX) restart(best + i, reached + 1 - i);
        len = (size_t)qkv_utf8_decode(word + i, n - i, &cp);
        bool whole_char = false;
        uint32_t node = 0;
        for (size_t e = i; e < n; e++) {
            node = qkv_trie_step(&m->trie, node, (uint8_t)word[e]);
            if (!node) break;
            const int32_t id = m->trie.units[node].value;
            if (id < 0) continue;
            offer(m, s, best, i, e + 1, id, m->scores[id]);
            whole_char |= e + 1 == i + len;
            if (e + 1 > reached) reached = e + 1;
        }
        if (!whole_char) offer(m, s, best, i, i + len, m->unk, m->unk_score);
        if (i + len > reached) reached = i + len;
    }
}

/* ---- tokens of the path ---- */

static qkv_status emit_unknown(const qkv_unigram *m, qkv_scratch *s, const char *word, qkv_piece p,
                               uint32_t at, qkv_encoding *out) {
    if (m->byte_fallback) {
        bool all = true;
        for (uint32_t i = p.begin; i < p.end && all; i++) all = m->fallback[(uint8_t)word[i]] >= 0;
        for (uint32_t i = p.begin; i < p.end && all; i++)
            if (!qkv_emit(s, out, m->fallback[(uint8_t)word[i]], at + p.begin, at + p.end))
                return QKV_FAILED;
        if (all) return QKV_OK;
    }
    if (m->unk < 0)
        return qkv_fail(
            QKV_BAD_FILE,
            "a character that is not in the vocabulary, and the tokenizer has no unknown token");
    return qkv_emit(s, out, m->unk, at + p.begin, at + p.end) ? QKV_OK : QKV_FAILED;
}

static qkv_status encode(const qkv_tokenizer *tok, qkv_scratch *s, const char *word, size_t n,
                         uint32_t at, qkv_encoding *out) {
    const qkv_unigram *m = tok->model;
    while (s->lattice.n <= n)
        if (!QKV_PUSH(s->lattice, (qkv_lattice_node){0})) return QKV_FAILED;
    qkv_lattice_node *best = s->lattice.at;
    forward(m, s, best, word, n);
    s->path.n = 0;
    for (uint32_t e = (uint32_t)n; e;) {
        uint32_t from = best[e].from;
        if (best[e].id == m->unk) /* unknown characters in a row are one token */
            while (from && best[from].id == m->unk) from = best[from].from;
        if (!QKV_PUSH(s->path, ((qkv_piece){from, e}))) return QKV_FAILED;
        e = from;
    }
    for (size_t i = s->path.n; i--;) {
        const qkv_piece p = s->path.at[i];
        const int32_t id = best[p.end].id;
        if (id == m->unk)
            QKV_TRY(emit_unknown(m, s, word, p, at, out));
        else if (!qkv_emit(s, out, id, at + p.begin, at + p.end))
            return QKV_FAILED;
    }
    return QKV_OK;
}

/* ---- writing ---- */

/* Writes digits that are read back as this very number, by us and by Hugging Face: the shortest, or
 * a neighbour of the seventeen that would do for a reader that rounds once. */
static void put_score(qkv_json_out *json, double score) {
    char text[QKV_NUMBER_TEXT];
    for (int digits = 6; digits <= 17; digits++) {
        qkv_number_print(score, digits, text);
        if (score_from_text(text, strlen(text)) == score) break;
    }
    for (int step = 1; score_from_text(text, strlen(text)) != score && step < 8; step++) {
        char near[QKV_NUMBER_TEXT];
        const double moved = score + (step % 2 ? 1 : -1) * (step + 1) / 2 * fabs(score) * 0x1p-53;
        qkv_number_print(moved, 17, near);
        if (score_from_text(near, strlen(near)) == score) memcpy(text, near, sizeof text);
    }
    qkv_json_put_raw(json, text);
}

static void write(const qkv_tokenizer *tok, qkv_json_out *json) {
    const qkv_unigram *m = tok->model;
    qkv_json_put_key(json, "unk_id");
    if (m->unk < 0)
        qkv_json_put_null(json);
    else
        qkv_json_put_int(json, m->unk);
    qkv_json_put_key(json, "vocab");
    qkv_json_open(json, '[');
    for (size_t i = 0; i < m->n; i++) {
        size_t len = 0;
        const char *text = qkv_vocab_text(&tok->vocab, (int32_t)i, &len);
        qkv_json_open(json, '[');
        qkv_json_put_string(json, text ? text : "", len);
        put_score(json, m->scores[i]);
        qkv_json_close(json, ']');
    }
    qkv_json_close(json, ']');
    qkv_json_put_key(json, "byte_fallback");
    qkv_json_put_bool(json, m->byte_fallback);
}

static void drop(qkv_tokenizer *tok) {
    qkv_unigram *m = tok->model;
    qkv_free(m->scores);
    qkv_trie_free(&m->trie);
}

const qkv_tokenizer_model qkv_model_unigram = {.name = "Unigram",
                                               .parse = parse,
                                               .prepare = prepare,
                                               .encode = encode,
                                               .write = write,
                                               .drop = drop};
