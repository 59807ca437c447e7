/* SentencePiece's behaviour, built from pieces wherever they came from:
 * its own .model files and GGUF. */
#include "text/charsmap.h"
#include "text/models.h"
#include "text/reader.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- merges from tokens ---- */

typedef struct ranked {
    qkv_merge merge;
    uint32_t rank;
} ranked;

typedef QKV_VEC(ranked) ranked_list;

static int by_rank(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    if (x->merge.left != y->merge.left) return x->merge.left < y->merge.left ? -1 : 1;
    return x->merge.right < y->merge.right ? -1 : x->merge.right > y->merge.right;
}

/* All cuts of one token into two others. Cutting inside a character never gives two tokens that
 * matter, unless tokens are bytes, where it must be allowed. */
static qkv_status cuts_of(const qkv_vocab *v, const qkv_text *token, int32_t id, uint32_t rank,
                          ranked_list *out) {
    for (size_t cut = 1; cut < token->len; cut++) {
        const int32_t left = qkv_vocab_find(v, token->data, cut);
        const int32_t right =
            left < 0 ? -1 : qkv_vocab_find(v, token->data + cut, token->len - cut);
        if (right < 0) continue;
        if (!QKV_PUSH(*out, ((ranked){{left, right, id}, rank}))) return QKV_FAILED;
        if (out->n > QKV_MERGES_MAX)
            return qkv_fail(QKV_BAD_FILE, "more than %u merges", QKV_MERGES_MAX);
    }
    return QKV_OK;
}

qkv_status qkv_merges_from_tokens(const qkv_text *tokens, const uint32_t *rank, size_t n,
                                  qkv_merge **merges, uint32_t **ranks, size_t *n_merges) {
    qkv_vocab v = {0};
    ranked_list all = {0};
    qkv_status status = qkv_vocab_reserve(&v, n, 8 * n);
    for (size_t i = 0; i < n && status == QKV_OK; i++)
        if (tokens[i].data) status = qkv_vocab_put(&v, tokens[i].data, tokens[i].len, (int32_t)i);
    for (size_t i = 0; i < n && status == QKV_OK; i++)
        if (tokens[i].data && tokens[i].len <= 1024)
            status = cuts_of(&v, &tokens[i], (int32_t)i, rank[i], &all);
    *merges = NULL;
    *ranks = NULL;
    if (status == QKV_OK) {
        if (all.n) qsort(all.at, all.n, sizeof *all.at, by_rank);
        *merges = qkv_alloc((all.n + 1) * sizeof **merges);
        *ranks = qkv_alloc((all.n + 1) * sizeof **ranks);
        if (!*merges || !*ranks) status = QKV_FAILED;
        for (size_t i = 0; i < all.n && status == QKV_OK; i++) {
            (*merges)[i] = all.at[i].merge;
            (*ranks)[i] = all.at[i].rank;
        }
        *n_merges = all.n;
    }
    qkv_free(all.at);
    qkv_vocab_free(&v);
    return status;
}

/* ---- the pipeline around the pieces ---- */

qkv_status qkv_add_special(qkv_tokenizer *tok, const char *text, size_t len, int32_t id) {
    return qkv_tokenizer_add_token(
        tok, &(qkv_added){.text = text, .len = len, .id = id, .special = true});
}

static void put_flag(qkv_json_out *j, const char *key, bool value) {
    qkv_json_put_key(j, key);
    qkv_json_put_bool(j, value);
}

static qkv_status set_normalizer(qkv_tokenizer *tok, const qkv_pieces *p) {
    qkv_buf text = {0}, map = {0};
    qkv_json_out j = qkv_json_begin(&text, 0);
    qkv_json_open(&j, '{');
    qkv_json_put_key(&j, "type");
    qkv_json_put_text(&j, "SentencePiece");
    put_flag(&j, "add_dummy_prefix", p->add_dummy_prefix);
    put_flag(&j, "remove_extra_whitespaces", p->remove_extra_whitespaces);
    put_flag(&j, "escape_whitespaces", p->escape_whitespaces);
    put_flag(&j, "treat_whitespace_as_suffix", p->whitespace_as_suffix);
    if (p->charsmap_len) {
        qkv_base64_encode(p->charsmap, p->charsmap_len, &map);
        qkv_json_put_key(&j, "precompiled_charsmap");
        qkv_json_put_string(&j, map.data ? map.data : "", map.len);
    }
    qkv_json_put_key(&j, "user_defined");
    qkv_json_open(&j, '[');
    for (size_t i = 0; i < p->n; i++)
        if (p->type[i] == QKV_PIECE_USER) qkv_json_put_string(&j, p->text[i].data, p->text[i].len);
    qkv_json_close(&j, ']');
    qkv_json_close(&j, '}');
    qkv_status status = map.status != QKV_OK ? map.status : text.status;
    if (status == QKV_OK) status = qkv_tokenizer_set_stage(tok, QKV_STAGE_NORMALIZER, text.data);
    qkv_buf_free(&text);
    qkv_buf_free(&map);
    return status;
}

/* ---- models ---- */

/* A user-defined piece must win over any way to cut it: scores are negative, its is not, and the
 * longer of two has the higher one. */
static qkv_status set_unigram(qkv_tokenizer *tok, const qkv_pieces *p) {
    double *scores;
    QKV_TRY_ALLOC(scores = qkv_alloc((p->n + 1) * sizeof *scores));
    for (size_t i = 0; i < p->n; i++)
        scores[i] = p->type[i] == QKV_PIECE_USER ? (float)(0.1 * ((double)p->text[i].len - 1))
                                                 : p->score[i];
    const qkv_status status = qkv_tokenizer_set_sentencepiece_unigram(
        tok, p->text, scores, p->type, p->n, p->unk, p->byte_fallback);
    qkv_free(scores);
    return status;
}

typedef struct scored {
    float score;
    uint32_t id;
} scored;

static int by_score(const void *a, const void *b) {
    const scored *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The piece of highest score is merged first: its place among the scores is its rank,
 * equal for equal scores. */
static qkv_status rank_by_score(const qkv_pieces *p, uint32_t *rank, qkv_text *tokens) {
    scored *order;
    QKV_TRY_ALLOC(order = qkv_alloc((p->n + 1) * sizeof *order));
    for (size_t i = 0; i < p->n; i++) order[i] = (scored){p->score[i], (uint32_t)i};
    qsort(order, p->n, sizeof *order, by_score);
    uint32_t place = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (i && order[i].score != order[i - 1].score) place++;
        rank[order[i].id] = place;
    }
    for (size_t i = 0; i < p->n; i++) {
        const bool merged = p->type[i] == QKV_PIECE_NORMAL || p->type[i] == QKV_PIECE_UNUSED;
        tokens[i] = merged ? p->text[i] : (qkv_text){0};
    }
    qkv_free(order);
    return QKV_OK;
}

static qkv_status freeze_symbols(qkv_tokenizer *tok, const qkv_pieces *p) {
    QKV_VEC(qkv_trie_key) keys = {0};
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < p->n && status == QKV_OK; i++)
        if (p->type[i] == QKV_PIECE_USER &&
            !QKV_PUSH(keys,
                      ((qkv_trie_key){p->text[i].data, (uint32_t)p->text[i].len, (int32_t)i})))
            status = QKV_FAILED;
    if (status == QKV_OK && keys.n)
        status = qkv_trie_build(&((qkv_bpe *)tok->model)->frozen, keys.at, keys.n);
    qkv_free(keys.at);
    return status;
}

static qkv_status mark_unused(qkv_tokenizer *tok, const qkv_pieces *p) {
    qkv_bpe *m = tok->model;
    for (size_t i = 0; i < p->n; i++) {
        if (p->type[i] != QKV_PIECE_UNUSED) continue;
        if (!m->unused) QKV_TRY_ALLOC(m->unused = qkv_zalloc(p->n, 1));
        m->unused[i] = 1;
    }
    return QKV_OK;
}

static qkv_status set_bpe(qkv_tokenizer *tok, const qkv_pieces *p) {
    uint32_t *rank = qkv_alloc((p->n + 1) * sizeof *rank), *ranks = NULL;
    qkv_text *tokens = qkv_alloc((p->n + 1) * sizeof *tokens);
    qkv_merge *merges = NULL;
    size_t n_merges = 0;
    qkv_status status = rank && tokens ? rank_by_score(p, rank, tokens) : QKV_FAILED;
    if (status == QKV_OK)
        status = qkv_merges_from_tokens(tokens, rank, p->n, &merges, &ranks, &n_merges);
    char *unk = NULL;
    if (status == QKV_OK && p->unk >= 0 &&
        !(unk = qkv_strndup(p->text[p->unk].data, p->text[p->unk].len)))
        status = QKV_FAILED;
    const qkv_bpe_options options = {
        .unk = unk, .fuse_unk = true, .byte_fallback = p->byte_fallback};
    if (status == QKV_OK)
        status =
            qkv_tokenizer_set_ranked_bpe(tok, p->text, p->n, merges, ranks, n_merges, &options);
    if (status == QKV_OK) status = freeze_symbols(tok, p);
    if (status == QKV_OK) status = mark_unused(tok, p);
    qkv_free(unk);
    qkv_free(rank);
    qkv_free(ranks);
    qkv_free(tokens);
    qkv_free(merges);
    return status;
}

static qkv_status set_decoder(qkv_tokenizer *tok, const qkv_pieces *p) {
    char json[200];
    snprintf(
        json, sizeof json,
        "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"SentencePiece\",\"add_dummy_prefix\":%s,"
        "\"remove_extra_whitespaces\":%s},{\"type\":\"ByteFallback\"}]}",
        p->add_dummy_prefix ? "true" : "false", p->remove_extra_whitespaces ? "true" : "false");
    return qkv_tokenizer_set_stage(tok, QKV_STAGE_DECODER, json);
}

qkv_status qkv_pieces_build(qkv_tokenizer *tok, const qkv_pieces *p) {
    QKV_TRY(p->unigram ? set_unigram(tok, p) : set_bpe(tok, p));
    QKV_TRY(set_normalizer(tok, p));
    QKV_TRY(set_decoder(tok, p));
    tok->special[QKV_TOK_BOS] = p->bos;
    tok->special[QKV_TOK_EOS] = p->eos;
    tok->special[QKV_TOK_PAD] = p->pad;
    if (p->unk_surface.data) {
        tok->unk_surface = p->unk_surface;
        QKV_TRY_ALLOC(tok->unk_surface.data =
                          qkv_arena_strndup(&tok->arena, p->unk_surface.data, p->unk_surface.len));
    }
    QKV_TRY(qkv_set_template(tok, p->add_bos ? p->bos : -1, p->add_eos ? p->eos : -1));
    QKV_TRY(qkv_tokenizer_finish(tok));
    for (size_t i = 0; i < p->n; i++) /* decoded as nothing; not searched for in texts */
        if (p->type[i] == QKV_PIECE_CONTROL) tok->is_special[i] = 1;
    return QKV_OK;
}
