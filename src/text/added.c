/* Added tokens: found in the text before (or after) normalisation, leftmost and longest, never
 * touched by the model. */
#include "text/template.h"
#include "text/scratch.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <string.h>

void qkv_matcher_free(qkv_matcher *m) {
    qkv_trie_free(&m->trie);
    *m = (qkv_matcher){0};
}

static qkv_status build(qkv_matcher *m, qkv_trie_key *keys, size_t n) {
    qkv_matcher_free(m);
    for (size_t i = 0; i < n; i++)
        if (keys[i].len) m->first[(uint8_t)keys[i].text[0]] = m->any = true;
    return qkv_trie_build(&m->trie, keys, n);
}

/* The form in which a token is looked for: its own, or what normalisation makes of it. */
static qkv_status normal_form(qkv_tokenizer *tok, qkv_draft *w, const qkv_added *a,
                              qkv_trie_key *key) {
    QKV_TRY(qkv_draft_start(w, a->text, a->len, 0, false));
    QKV_TRY(qkv_text_steps_normalize(tok, w));
    key->len = (uint32_t)w->len;
    QKV_TRY_ALLOC(key->text = qkv_arena_strndup(&tok->arena, w->text, w->len));
    return QKV_OK;
}

qkv_status qkv_matcher_build(qkv_tokenizer *tok) {
    const size_t n = tok->added.n;
    qkv_trie_key *keys;
    QKV_TRY_ALLOC(keys = qkv_alloc((n + 1) * sizeof *keys));
    qkv_draft work = {0};
    qkv_status status = QKV_OK;
    for (int normalized = 0; normalized < 2 && status == QKV_OK; normalized++) {
        size_t count = 0;
        for (size_t i = 0; i < n && status == QKV_OK; i++) {
            const qkv_added *a = &tok->added.at[i];
            if (a->normalized != normalized) continue;
            keys[count] = (qkv_trie_key){a->text, (uint32_t)a->len, (int32_t)i};
            if (normalized && tok->stage[QKV_STAGE_NORMALIZER].n)
                status = normal_form(tok, &work, a, &keys[count]);
            count++;
        }
        if (status == QKV_OK)
            status = build(normalized ? &tok->normalized : &tok->raw, keys, count);
    }
    qkv_draft_free(&work);
    qkv_free(keys);
    return status;
}

static uint8_t class_before(const char *text, size_t at) {
    const size_t i = qkv_utf8_start(text, at - 1);
    int32_t cp;
    return i + (size_t)qkv_utf8_decode(text + i, at - i, &cp) == at ? qkv_unicode_class(cp) : 0;
}

bool qkv_matcher_next(const qkv_tokenizer *tok, const qkv_matcher *m, const char *text, size_t len,
                      qkv_added_search *s) {
    size_t n;
    for (size_t i = s->at; i < len; i++) {
        if (!m->first[(uint8_t)text[i]]) continue;
        int32_t found;
        const size_t size = qkv_trie_longest(&m->trie, text + i, len - i, &found);
        if (!size) continue;
        const qkv_added *a = &tok->added.at[found];
        size_t from = i, to = i + size;
        s->at = to;
        i = to - 1;
        if (a->single_word && ((from && class_before(text, from) & QKV_U_WORD) ||
                               (to < len && qkv_unicode_class_at(text, len, to, &n) & QKV_U_WORD)))
            continue;
        if (a->lstrip)
            while (from > s->taken && class_before(text, from) & QKV_U_SPACE)
                from = qkv_utf8_start(text, from - 1);
        if (a->rstrip)
            while (to < len && qkv_unicode_class_at(text, len, to, &n) & QKV_U_SPACE) to += n;
        s->begin = from;
        s->end = to;
        s->which = (size_t)found;
        return true;
    }
    s->at = len;
    return false;
}
