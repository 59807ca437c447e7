/* How one text becomes tokens, told step by step: what the normalizer makes of it, the words, and
 * for each word the merges (BPE), the lattice and its best path (Unigram) or the longest matches
 * (WordPiece).
 *
 * The steps are replayed on the model's own tables; the tokens at the end are those of encoding
 * itself. */
#include "text/models.h"
#include "text/scratch.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <math.h>
#include <string.h>

#define MAX_WORDS 200 /* that are explained */

/* One explanation under way. */
typedef struct story {
    const qkv_tokenizer *tok;
    qkv_scratch *scratch;
    qkv_encoding tokens; /* of the word that is told */
    qkv_buf *out;
} story;

/* Bytes as people read them: whole characters as they are, parts of one as <C3>, blanks and other
 * bytes without a shape as in GPT-2's alphabet (a blank is Ġ). */
static void put_bytes(story *s, const char *text, size_t len) {
    for (size_t i = 0; i < len;) {
        int32_t cp;
        const size_t n = (size_t)qkv_utf8_decode(text + i, len - i, &cp);
        if (cp < 0)
            qkv_buf_printf(s->out, "<%02X>", (unsigned)(uint8_t)text[i]);
        else if (cp <= ' ' || (cp >= 0x7f && cp <= 0xa0))
            qkv_byte_level_name(text + i, n, s->out);
        else
            qkv_buf_add(s->out, text + i, n);
        i += n;
    }
}

static void put_text(story *s, const char *text, size_t len) {
    if (s->tok->byte_level)
        put_bytes(s, text, len);
    else
        qkv_buf_add(s->out, text, len);
}

static void put_token(story *s, int32_t id) {
    size_t len = 0;
    qkv_buf bytes = {0};
    const char *text = qkv_vocab_text(&s->tok->vocab, id, &len);
    if (!text)
        qkv_buf_printf(s->out, "<%d>", (int)id);
    else if (s->tok->byte_level && qkv_byte_level_bytes(text, len, &bytes))
        put_bytes(s, bytes.len ? bytes.data : "", bytes.len);
    else
        qkv_buf_add(s->out, text, len);
    qkv_buf_free(&bytes);
}

static void put_tokens(story *s, const qkv_encoding *tokens, bool with_ids) {
    for (size_t i = 0; i < tokens->n; i++) {
        if (i) qkv_buf_puts(s->out, with_ids ? "  " : " ");
        put_token(s, tokens->ids[i]);
        if (with_ids) qkv_buf_printf(s->out, " [%d]", (int)tokens->ids[i]);
    }
}

/* Encodes one word; skipping every merge, when asked, leaves BPE's first symbols. */
static qkv_status encode_word(story *s, const char *word, size_t n, bool skip_merges) {
    s->tokens.n = 0;
    s->scratch->dropout = skip_merges ? 1 : 0;
    s->scratch->ranges = false;
    qkv_status status = s->tok->model_kind->encode(s->tok, s->scratch, word, n, 0, &s->tokens);
    s->scratch->dropout = 0;
    return status;
}

/* ---- one word, by kind of model ---- */

static qkv_status tell_merges(story *s, const char *word, size_t n) {
    const qkv_bpe *m = s->tok->model;
    QKV_TRY(encode_word(s, word, n, true));
    if (s->tokens.n == 1 && m->options.ignore_merges) {
        qkv_buf_puts(s->out, "    a token as it stands: no merge is needed\n");
        return QKV_OK;
    }
    qkv_buf_puts(s->out, "    start with          ");
    put_tokens(s, &s->tokens, false);
    qkv_buf_putc(s->out, '\n');
    for (qkv_encoding *t = &s->tokens; t->n > 1;) {
        const qkv_merge_slot *best = NULL;
        size_t at = 0;
        for (size_t i = 0; i + 1 < t->n; i++) {
            const qkv_merge_slot *slot = qkv_bpe_find(m, t->ids[i], t->ids[i + 1]);
            if (slot && (!best || slot->rank < best->rank)) best = slot, at = i;
        }
        if (!best) break;
        qkv_buf_printf(s->out, "    merge %-6u", best->rank + 1);
        const size_t begin = s->out->len;
        put_token(s, best->left);
        qkv_buf_puts(s->out, " + ");
        put_token(s, best->right);
        const size_t wide = qkv_utf8_count(s->out->data + begin, s->out->len - begin);
        qkv_buf_printf(s->out, "%*s", wide < 12 ? (int)(12 - wide) : 1, "");
        t->ids[at] = best->result;
        memmove(t->ids + at + 1, t->ids + at + 2, (t->n - at - 2) * sizeof *t->ids);
        t->n--;
        put_tokens(s, t, false);
        qkv_buf_putc(s->out, '\n');
    }
    return QKV_OK;
}

/* A place of a Unigram lattice: the best way there. */
typedef struct place {
    double score;
    uint32_t from;
    int32_t id;
} place;

/* Offers a piece that leads from i to e, and tells it. */
static void offer(story *s, place *best, const char *word, size_t i, size_t e, int32_t id,
                  double score) {
    const double total = best[i].score + score;
    const bool better = total > best[e].score;
    if (better) best[e] = (place){total, (uint32_t)i, id};
    qkv_buf_printf(s->out, "    %-3zu to %-3zu  %9.3f  %10.3f %s  ", qkv_utf8_count(word, i),
                   qkv_utf8_count(word, e), score, total, better ? "*" : " ");
    put_text(s, word + i, e - i);
    qkv_buf_putc(s->out, '\n');
}

static void tell_path(story *s, const place *best, const char *word, size_t n) {
    size_t n_steps = 0;
    uint32_t ends[64];
    for (uint32_t e = (uint32_t)n; e && n_steps < 64; e = best[e].from) ends[n_steps++] = e;
    qkv_buf_puts(s->out, "    best path: ");
    for (size_t k = n_steps; k-- > 0;) {
        const place *p = &best[ends[k]];
        put_text(s, word + p->from, ends[k] - p->from);
        qkv_buf_printf(s->out, " (%.3f)%s", p->score - best[p->from].score, k ? " + " : "");
    }
    qkv_buf_printf(s->out, " = %.3f\n", best[n].score);
}

static qkv_status tell_lattice(story *s, const char *word, size_t n) {
    const qkv_unigram *m = s->tok->model;
    place *best;
    QKV_TRY_ALLOC(best = qkv_zalloc(n + 1, sizeof *best));
    for (size_t e = 1; e <= n; e++) best[e].score = -INFINITY;
    qkv_buf_puts(s->out,
                 "    characters  log prob.     in all    piece  (*: the best way so far)\n");
    for (size_t i = 0, len; i < n; i += len) {
        int32_t cp;
        len = (size_t)qkv_utf8_decode(word + i, n - i, &cp);
        bool whole = false;
        uint32_t node = 0;
        for (size_t e = i; e < n && (node = qkv_trie_step(&m->trie, node, (uint8_t)word[e])) != 0;
             e++) {
            const int32_t id = m->trie.units[node].value;
            if (id < 0) continue;
            offer(s, best, word, i, e + 1, id, m->scores[id]);
            whole |= e + 1 == i + len;
        }
        if (!whole) offer(s, best, word, i, i + len, m->unk, m->unk_score);
    }
    tell_path(s, best, word, n);
    qkv_free(best);
    return QKV_OK;
}

static qkv_status tell_matches(story *s, const char *word, size_t n) {
    const qkv_wordpiece *m = s->tok->model;
    for (size_t i = 0; i < n;) {
        int32_t id;
        const size_t len = qkv_trie_longest(i ? &m->rest : &m->first, word + i, n - i, &id);
        qkv_buf_puts(s->out, "    longest beginning of \"");
        if (i) qkv_buf_puts(s->out, m->prefix);
        put_text(s, word + i, n - i);
        qkv_buf_puts(s->out, "\" in the vocabulary: ");
        if (!len) {
            qkv_buf_puts(s->out, "none, so the whole word is unknown\n");
            return QKV_OK;
        }
        put_token(s, id);
        qkv_buf_putc(s->out, '\n');
        i += len;
    }
    return QKV_OK;
}

static qkv_status tell_lookup(story *s, const char *word, size_t n) {
    const bool known = qkv_vocab_find(&s->tok->vocab, word, n) >= 0;
    qkv_buf_puts(s->out,
                 known ? "    in the vocabulary\n" : "    not in the vocabulary: unknown\n");
    return QKV_OK;
}

static const struct teller {
    const qkv_tokenizer_model *kind;
    const char *rule;
    qkv_status (*tell)(story *s, const char *word, size_t n);
} tellers[] = {
    {&qkv_model_bpe,
     "of all neighbours, the pair that was learned first is joined, until none is left",
     tell_merges},
    {&qkv_model_unigram,
     "of all ways to cut a word, the one with the highest product of probabilities "
     "(the highest sum of their logarithms)",
     tell_lattice},
    {&qkv_model_wordpiece, "from the left, always the longest piece in the vocabulary",
     tell_matches},
    {&qkv_model_wordlevel, "a word is in the vocabulary or it is not", tell_lookup},
};

/* ---- the whole text ---- */

static qkv_status tell_words(story *s, const struct teller *teller, const char *text, size_t len) {
    QKV_TRY(qkv_tokenizer_words(s->tok, s->scratch, text, len));
    const qkv_draft *work = qkv_scratch_draft(s->scratch);
    if (work->len != len || memcmp(work->text, text, len) != 0) {
        qkv_buf_puts(s->out, "rewritten:  ");
        qkv_buf_add(s->out, work->text, work->len);
        qkv_buf_putc(s->out, '\n');
    }
    qkv_buf_printf(s->out, "words:      %zu\nrule:       %s\n", work->pieces.n, teller->rule);
    for (size_t i = 0; i < work->pieces.n; i++) {
        if (i == MAX_WORDS) {
            qkv_buf_printf(s->out, "\n… and %zu more words\n", work->pieces.n - i);
            break;
        }
        const qkv_piece *p = &work->pieces.at[i];
        const char *word = work->text + p->begin;
        const size_t n = p->end - p->begin;
        qkv_buf_printf(s->out, "\nword %zu: ", i + 1);
        put_text(s, word, n);
        qkv_buf_putc(s->out, '\n');
        QKV_TRY(teller->tell(s, word, n));
        QKV_TRY(encode_word(s, word, n, false));
        qkv_buf_puts(s->out, "    tokens:   ");
        put_tokens(s, &s->tokens, true);
        qkv_buf_putc(s->out, '\n');
    }
    return QKV_OK;
}

static qkv_status tell(story *s, const char *text, size_t len) {
    const struct teller *teller = NULL;
    for (size_t i = 0; i < sizeof tellers / sizeof *tellers; i++)
        if (tellers[i].kind == s->tok->model_kind) teller = &tellers[i];
    if (!teller) return qkv_fail(QKV_USAGE, "there is no explanation for this kind of tokenizer");
    qkv_buf_puts(s->out, "text:       ");
    qkv_buf_add(s->out, text, len);
    qkv_buf_putc(s->out, '\n');
    QKV_TRY(tell_words(s, teller, text, len));
    QKV_TRY(qkv_tokenizer_encode(s->tok, text, len, NULL, 0, NULL, &s->tokens));
    qkv_buf_puts(s->out, "\nall tokens, with those that the tokenizer adds around a text:\n    ");
    put_tokens(s, &s->tokens, true);
    qkv_buf_putc(s->out, '\n');
    return s->out->status;
}

qkv_status qkv_tokenizer_explain(const qkv_tokenizer *tok, const char *text, size_t len,
                                 char **out) {
    *out = NULL;
    qkv_buf told = {0};
    story s = {.tok = tok, .scratch = qkv_scratch_take(tok), .out = &told};
    if (!s.scratch) return QKV_FAILED;
    qkv_status status = tell(&s, text, len);
    qkv_scratch_give(tok, s.scratch);
    qkv_encoding_free(&s.tokens);
    if (status == QKV_OK)
        *out = told.data;
    else
        qkv_buf_free(&told);
    return status;
}
