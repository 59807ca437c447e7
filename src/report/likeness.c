#include "report/likeness.h"
#include "data/lines.h"

#include <string.h>

qkv_status qkv_likeness_begin(qkv_likeness *l, const char *tokens) {
    *l = (qkv_likeness){.chrf_words.word_orders = QKV_CHRF_WORDS};
    for (int k = 0; tokens && k < QKV_BLEU_TOKENS; k++)
        if (strcmp(tokens, qkv_bleu_token_names[k]) == 0) {
            l->bleu.tokens = (qkv_bleu_tokens)k;
            return QKV_OK;
        }
    if (!tokens) return QKV_OK; /* 13a, the first */
    return qkv_fail(QKV_USAGE, "BLEU has the tokenisations 13a, intl, char and none, not \"%s\"",
                    tokens);
}

qkv_status qkv_likeness_add(qkv_likeness *l, qkv_text hyp, const qkv_text *refs, size_t n_refs) {
    l->lines++;
    QKV_TRY(qkv_bleu_add(&l->bleu, hyp, refs, n_refs));
    QKV_TRY(qkv_chrf_add(&l->chrf, hyp, refs, n_refs));
    return qkv_chrf_add(&l->chrf_words, hyp, refs, n_refs);
}

void qkv_likeness_free(qkv_likeness *l) {
    qkv_bleu_free(&l->bleu);
    qkv_chrf_free(&l->chrf);
    qkv_chrf_free(&l->chrf_words);
}

static double ratio(const qkv_bleu *b) {
    return b->ref_len ? (double)b->hyp_len / (double)b->ref_len : 0;
}

static void put_signature(qkv_json_out *j, const char *key, const qkv_bleu *b, const qkv_chrf *c) {
    qkv_buf text = {0};
    if (b)
        qkv_bleu_signature(b, &text);
    else
        qkv_chrf_signature(c, &text);
    qkv_json_put_key(j, key);
    if (text.data) qkv_json_put_text(j, text.data);
    if (text.status != QKV_OK) j->buf->status = text.status;
    qkv_buf_free(&text);
}

void qkv_likeness_json(const qkv_likeness *l, qkv_json_out *j) {
    const qkv_bleu_score b = qkv_bleu_result(&l->bleu);
    qkv_json_put_key(j, "lines");
    qkv_json_put_int(j, l->lines);
    qkv_json_put_key(j, "bleu");
    qkv_json_put_real(j, b.score, 7);
    put_signature(j, "bleu_signature", &l->bleu, NULL);
    qkv_json_put_key(j, "precisions");
    qkv_json_open(j, '[');
    for (int k = 0; k < QKV_BLEU_ORDERS; k++) qkv_json_put_real(j, b.precision[k], 7);
    qkv_json_close(j, ']');
    qkv_json_put_key(j, "brevity_penalty");
    qkv_json_put_real(j, b.penalty, 7);
    qkv_json_put_key(j, "ratio");
    qkv_json_put_real(j, ratio(&l->bleu), 7);
    qkv_json_put_key(j, "hyp_len");
    qkv_json_put_int(j, l->bleu.hyp_len);
    qkv_json_put_key(j, "ref_len");
    qkv_json_put_int(j, l->bleu.ref_len);
    qkv_json_put_key(j, "chrf");
    qkv_json_put_real(j, qkv_chrf_result(&l->chrf), 7);
    put_signature(j, "chrf_signature", NULL, &l->chrf);
    qkv_json_put_key(j, "chrf_words");
    qkv_json_put_real(j, qkv_chrf_result(&l->chrf_words), 7);
    put_signature(j, "chrf_words_signature", NULL, &l->chrf_words);
}

void qkv_likeness_table(const qkv_likeness *l, qkv_buf *out) {
    const qkv_bleu_score b = qkv_bleu_result(&l->bleu);
    const double *p = b.precision;
    qkv_buf_puts(out, "BLEU|");
    qkv_bleu_signature(&l->bleu, out);
    qkv_buf_printf(out,
                   " = %.2f %.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f hyp_len = %lld "
                   "ref_len = %lld)\nchrF2|",
                   b.score, p[0], p[1], p[2], p[3], b.penalty, ratio(&l->bleu),
                   (long long)l->bleu.hyp_len, (long long)l->bleu.ref_len);
    qkv_chrf_signature(&l->chrf, out);
    qkv_buf_printf(out, " = %.2f\nchrF2++|", qkv_chrf_result(&l->chrf));
    qkv_chrf_signature(&l->chrf_words, out);
    qkv_buf_printf(out, " = %.2f\n", qkv_chrf_result(&l->chrf_words));
}

/* ---- files against files ---- */

enum { MOST_REFERENCES = 16 };

typedef struct files {
    qkv_lines hyp, ref[MOST_REFERENCES];
    size_t n; /* references that are open */
} files;

static qkv_status open_files(const qkv_score_request *q, files *f) {
    QKV_TRY(qkv_lines_read(&f->hyp, q->hypotheses));
    for (const char *const *path = q->references; path && *path; path++) {
        if (f->n == MOST_REFERENCES)
            return qkv_fail(QKV_USAGE, "more than %d references", MOST_REFERENCES);
        QKV_TRY(qkv_lines_read(&f->ref[f->n], *path));
        if (f->ref[f->n++].line.n != f->hyp.line.n)
            return qkv_fail(QKV_BAD_FILE,
                            "%s has %zu lines and %s has %zu; line n of one must answer line n "
                            "of the other",
                            q->hypotheses, f->hyp.line.n, *path, f->ref[f->n - 1].line.n);
    }
    if (f->n == 0) return qkv_fail(QKV_USAGE, "a score needs a reference: --ref FILE");
    return f->hyp.line.n ? QKV_OK : qkv_fail(QKV_BAD_FILE, "%s: the file is empty", q->hypotheses);
}

static qkv_status count_files(const files *f, qkv_likeness *l) {
    for (size_t i = 0; i < f->hyp.line.n; i++) {
        qkv_text refs[MOST_REFERENCES];
        for (size_t k = 0; k < f->n; k++) refs[k] = f->ref[k].line.at[i];
        QKV_TRY(qkv_likeness_add(l, f->hyp.line.at[i], refs, f->n));
    }
    return QKV_OK;
}

qkv_status qkv_score(const qkv_score_request *request, bool json, char **text) {
    *text = NULL;
    qkv_likeness l;
    QKV_TRY(qkv_likeness_begin(&l, request->tokenize));
    files f = {0};
    qkv_buf out = {0};
    qkv_status status = open_files(request, &f);
    if (status == QKV_OK) status = count_files(&f, &l);
    if (status == QKV_OK && json) {
        qkv_json_out j = qkv_json_begin(&out, 0);
        qkv_json_open(&j, '{');
        qkv_likeness_json(&l, &j);
        qkv_json_close(&j, '}');
        qkv_buf_putc(&out, '\n');
    } else if (status == QKV_OK) {
        qkv_likeness_table(&l, &out);
    }
    if (status == QKV_OK) status = out.status;
    qkv_likeness_free(&l);
    qkv_lines_free(&f.hyp);
    for (size_t k = 0; k < f.n; k++) qkv_lines_free(&f.ref[k]);
    if (status == QKV_OK)
        *text = out.data;
    else
        qkv_buf_free(&out);
    return status;
}
