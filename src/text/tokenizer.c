/* A tokenizer's life: made, finished, asked, freed. */
#include "text/models.h"
#include "text/scratch.h"
#include "text/template.h"
#include "base/mem.h"

#include <string.h>

qkv_status qkv_tokenizer_new(qkv_tokenizer **out) {
    qkv_tokenizer *tok;
    QKV_TRY_ALLOC(tok = qkv_zalloc(1, sizeof *tok));
    qkv_arena_init(&tok->arena);
    atomic_flag_clear(&tok->pool_lock);
    for (int i = 0; i < QKV_TOK_SPECIALS; i++) tok->special[i] = -1;
    *out = tok;
    return QKV_OK;
}

static void scratch_free(qkv_scratch *s) {
    qkv_draft_free(&s->work);
    qkv_free(s->cache.slots);
    qkv_free(s->symbols.at);
    qkv_free(s->heap.at);
    qkv_free(s->skipped.at);
    qkv_free(s->unmade.at);
    qkv_free(s->lattice.at);
    qkv_free(s->path.at);
    qkv_buf_free(&s->held);
    qkv_free(s->held_from.at);
    qkv_free(s->held_to.at);
    qkv_free(s->before.at);
    for (int i = 0; i < 2; i++) qkv_encoding_free(&s->part[i]);
    qkv_free(s);
}

void qkv_tokenizer_free(qkv_tokenizer *tok) {
    if (!tok) return;
    while (tok->pool) {
        qkv_scratch *s = tok->pool;
        tok->pool = s->next;
        scratch_free(s);
    }
    if (tok->model) tok->model_kind->drop(tok);
    for (int i = 0; i < QKV_STAGES; i++) qkv_text_steps_drop(&tok->stage[i]);
    qkv_template_clear(&tok->template);
    qkv_matcher_free(&tok->raw);
    qkv_matcher_free(&tok->normalized);
    qkv_free(tok->added.at);
    qkv_free(tok->is_special);
    qkv_vocab_free(&tok->vocab);
    qkv_arena_free(&tok->arena);
    qkv_free(tok);
}

qkv_status qkv_tokenizer_add_token(qkv_tokenizer *tok, const qkv_added *added) {
    if (tok->added.n >= QKV_ADDED_MAX)
        return qkv_fail(QKV_BAD_FILE, "more than %u added tokens", QKV_ADDED_MAX);
    qkv_added a = *added;
    const int32_t known = qkv_vocab_find(&tok->vocab, a.text, a.len);
    if (known >= 0)
        a.id = known; /* the model's own id counts, as in Hugging Face's reader */
    else
        QKV_TRY(qkv_vocab_put(&tok->vocab, a.text, a.len, a.id));
    QKV_TRY_ALLOC(a.text = qkv_arena_strndup(&tok->arena, added->text, added->len));
    return QKV_PUSH(tok->added, a) ? QKV_OK : QKV_FAILED;
}

/* ---- special roles, by the names that models give them ---- */

static void find_roles(qkv_tokenizer *tok) {
    static const struct {
        qkv_special role;
        const char *name;
    } names[] = {
        {QKV_TOK_PAD, "<pad>"},
        {QKV_TOK_PAD, "[PAD]"},
        {QKV_TOK_PAD, "<|pad|>"},
        {QKV_TOK_UNK, "<unk>"},
        {QKV_TOK_UNK, "[UNK]"},
        {QKV_TOK_BOS, "<s>"},
        {QKV_TOK_BOS, "<bos>"},
        {QKV_TOK_BOS, "[BOS]"},
        {QKV_TOK_BOS, "<|begin_of_text|>"},
        {QKV_TOK_BOS, "<|startoftext|>"},
        {QKV_TOK_EOS, "</s>"},
        {QKV_TOK_EOS, "<eos>"},
        {QKV_TOK_EOS, "[EOS]"},
        {QKV_TOK_EOS, "<|end_of_text|>"},
        {QKV_TOK_EOS, "<|endoftext|>"},
        {QKV_TOK_BOS, "<|endoftext|>"},
        {QKV_TOK_MASK, "[MASK]"},
        {QKV_TOK_MASK, "<mask>"},
        {QKV_TOK_CLS, "[CLS]"},
        {QKV_TOK_SEP, "[SEP]"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tok->special[names[i].role] < 0)
            tok->special[names[i].role] =
                qkv_vocab_find(&tok->vocab, names[i].name, strlen(names[i].name));
}

qkv_status qkv_tokenizer_finish(qkv_tokenizer *tok) {
    if (!tok->model) return qkv_fail(QKV_USAGE, "a tokenizer without a model");
    qkv_text_steps_settle(tok);
    QKV_TRY(tok->model_kind->prepare(tok));
    QKV_TRY(qkv_matcher_build(tok));
    const size_t n = qkv_tokenizer_size(tok);
    QKV_TRY_ALLOC(tok->is_special = qkv_zalloc(n + 1, 1));
    for (size_t i = 0; i < tok->added.n; i++)
        tok->is_special[tok->added.at[i].id] = tok->added.at[i].special;
    const qkv_template *t = &tok->template;
    for (size_t i = 0; i < t->single.n + t->pair.n; i++) {
        const int32_t id = i < t->single.n ? t->single.at[i].id : t->pair.at[i - t->single.n].id;
        if (id >= 0 && (size_t)id >= n)
            return qkv_fail(QKV_BAD_FILE, "post_processor: id %d, but the vocabulary ends at %zu",
                            id, n);
    }
    find_roles(tok);
    return QKV_OK;
}

/* ---- asking ---- */

size_t qkv_tokenizer_size(const qkv_tokenizer *tok) {
    return tok->vocab.by_id.n;
}

bool qkv_tokenizer_id(const qkv_tokenizer *tok, const char *token, size_t len, int32_t *id) {
    const int32_t found = qkv_vocab_find(&tok->vocab, token, len);
    if (found >= 0) *id = found;
    return found >= 0;
}

const char *qkv_tokenizer_token(const qkv_tokenizer *tok, int32_t id, size_t *len) {
    return qkv_vocab_text(&tok->vocab, id, len);
}

int32_t qkv_tokenizer_special(const qkv_tokenizer *tok, qkv_special role) {
    return role < QKV_TOK_SPECIALS ? tok->special[role] : -1;
}

/* ---- the pool ---- */

qkv_scratch *qkv_scratch_take(const qkv_tokenizer *tok) {
    qkv_tokenizer *t = (qkv_tokenizer *)tok; /* the pool is the one part that changes */
    while (atomic_flag_test_and_set(&t->pool_lock)) {}
    qkv_scratch *s = t->pool;
    if (s) t->pool = s->next;
    atomic_flag_clear(&t->pool_lock);
    return s ? s : qkv_zalloc(1, sizeof *s);
}

void qkv_scratch_give(const qkv_tokenizer *tok, qkv_scratch *s) {
    qkv_tokenizer *t = (qkv_tokenizer *)tok;
    if (!s) return;
    while (atomic_flag_test_and_set(&t->pool_lock)) {}
    s->next = t->pool;
    t->pool = s;
    atomic_flag_clear(&t->pool_lock);
}

qkv_draft *qkv_scratch_draft(qkv_scratch *s) {
    return &s->work;
}

qkv_status qkv_tokenizer_words(const qkv_tokenizer *tok, qkv_scratch *s, const char *text,
                               size_t len) {
    if (len > QKV_TEXT_MAX)
        return qkv_fail(QKV_USAGE, "a text of %zu bytes: at most %u", len, QKV_TEXT_MAX);
    QKV_TRY(qkv_draft_start(&s->work, text, len, 0, false));
    QKV_TRY(qkv_text_steps_normalize(tok, &s->work));
    return qkv_text_steps_split(tok, &s->work);
}
