/* From words to symbols: which characters a vocabulary starts from, and each word as a run of them.
 *
 * Kept are the most frequent characters until they make up the asked share of the text (a tie goes
 * to the smaller code point), so a stray character of another script does not cost a vocabulary
 * entry. */
#include "text/train.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define N_CODE_POINTS 0x110000

typedef enum form { PLAIN, CONTINUING, END, FORMS } form; /* of a character in a word */

typedef struct character {
    int32_t cp;
    uint64_t count;
} character;

typedef struct alphabet {
    uint64_t *count; /* by code point: how often */
    uint8_t *seen;   /* by code point: bit f = stands in form f somewhere */
    int32_t *symbol; /* by code point × FORMS */
    character *kept;
    size_t n_kept;
} alphabet;

static form form_of(const qkv_word_marks *marks, bool first, bool last) {
    if (last && marks->end) return END;
    return !first && marks->continuing ? CONTINUING : PLAIN;
}

static void count_characters(const qkv_words *words, const qkv_word_marks *marks, alphabet *a) {
    for (size_t w = 0; w < words->n; w++) {
        const qkv_word *word = &words->at[w];
        for (size_t i = 0, n; i < word->len; i += n) {
            int32_t cp;
            n = (size_t)qkv_utf8_decode(word->text + i, word->len - i, &cp);
            if (cp < 0) continue;
            a->count[cp] += word->count;
            a->seen[cp] |= (uint8_t)(1 << form_of(marks, i == 0, i + n == word->len));
        }
    }
}

static int by_count(const void *a, const void *b) {
    const character *x = a, *y = b;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    return x->cp - y->cp;
}

static int by_code_point(const void *a, const void *b) {
    return ((const character *)a)->cp - ((const character *)b)->cp;
}

/* Decides which characters stay: the required ones, then the most frequent. */
static qkv_status choose(const qkv_alphabet_rule *rule, alphabet *a) {
    for (const char *r = rule->required; r && *r;) {
        int32_t cp;
        r += qkv_utf8_decode(r, strlen(r), &cp);
        a->count[cp] = UINT64_MAX >> 1; /* above any count, and sums stay in range */
    }
    size_t n = 0;
    for (int32_t cp = 0; cp < N_CODE_POINTS; cp++) n += a->count[cp] > 0;
    QKV_TRY_ALLOC(a->kept = qkv_zalloc(n, sizeof *a->kept));
    double total = 0, covered = 0;
    n = 0;
    for (int32_t cp = 0; cp < N_CODE_POINTS; cp++) {
        if (a->count[cp] == 0) continue;
        a->kept[n++] = (character){cp, a->count[cp]};
        if (a->count[cp] < UINT64_MAX >> 1) total += (double)a->count[cp];
    }
    qsort(a->kept, n, sizeof *a->kept, by_count);
    size_t room = rule->room;
    for (a->n_kept = 0; a->n_kept < n && a->n_kept < rule->max; a->n_kept++) {
        const character *c = &a->kept[a->n_kept];
        const size_t forms = 1 + (a->seen[c->cp] >> CONTINUING & 1) + (a->seen[c->cp] >> END & 1);
        if (forms > room) break;
        room -= forms;
        if (c->count == UINT64_MAX >> 1) continue;
        if (covered >= rule->coverage * total) break;
        covered += (double)c->count;
    }
    qsort(a->kept, a->n_kept, sizeof *a->kept, by_code_point);
    return QKV_OK;
}

/* Enters the kept characters into the vocabulary, one form after the other. */
static qkv_status enter(const qkv_word_marks *marks, alphabet *a, qkv_words *vocab) {
    memset(a->symbol, 0xff, (size_t)N_CODE_POINTS * FORMS * sizeof *a->symbol); /* QKV_NO_SYMBOL */
    qkv_buf text = {0};
    qkv_status status = QKV_OK;
    for (form f = PLAIN; f < FORMS && status == QKV_OK; f++) {
        for (size_t i = 0; i < a->n_kept && status == QKV_OK; i++) {
            int32_t cp = a->kept[i].cp;
            char utf8[4];
            if (f != PLAIN && !(a->seen[cp] >> f & 1)) continue;
            qkv_buf_clear(&text);
            if (f == CONTINUING) qkv_buf_puts(&text, marks->continuing);
            qkv_buf_add(&text, utf8, (size_t)qkv_utf8_encode(cp, utf8));
            if (f == END) qkv_buf_puts(&text, marks->end);
            status = text.status;
            uint32_t index;
            if (status == QKV_OK)
                status = qkv_words_add(vocab, text.data, text.len, 0, true, &index);
            if (status == QKV_OK) a->symbol[(size_t)cp * FORMS + f] = (int32_t)index;
        }
    }
    qkv_buf_free(&text);
    return status;
}

static qkv_status write_symbols(const qkv_words *words, const qkv_word_marks *marks,
                                const alphabet *a, qkv_symbols *out) {
    size_t bytes = 0;
    for (size_t w = 0; w < words->n; w++) bytes += words->at[w].len;
    QKV_TRY_ALLOC(out->at = qkv_zalloc(bytes, sizeof *out->at));
    QKV_TRY_ALLOC(out->start = qkv_zalloc(words->n + 1, sizeof *out->start));
    QKV_TRY_ALLOC(out->count = qkv_zalloc(words->n, sizeof *out->count));
    for (size_t w = 0; w < words->n; w++) {
        const qkv_word *word = &words->at[w];
        for (size_t i = 0, n; i < word->len; i += n) {
            int32_t cp;
            n = (size_t)qkv_utf8_decode(word->text + i, word->len - i, &cp);
            form f = form_of(marks, i == 0, i + n == word->len);
            out->at[out->n++] = cp < 0 ? QKV_NO_SYMBOL : a->symbol[(size_t)cp * FORMS + f];
        }
        out->count[w] = word->count;
        out->start[w + 1] = out->n;
    }
    out->n_words = words->n;
    return QKV_OK;
}

qkv_status qkv_symbols_make(const qkv_words *words, const qkv_alphabet_rule *rule, qkv_words *vocab,
                            qkv_symbols *out) {
    *out = (qkv_symbols){0};
    alphabet a = {.count = qkv_zalloc(N_CODE_POINTS, sizeof *a.count)};
    a.seen = qkv_zalloc(N_CODE_POINTS, 1);
    a.symbol = qkv_zalloc((size_t)N_CODE_POINTS * FORMS, sizeof *a.symbol);
    qkv_status status = a.count && a.seen && a.symbol ? QKV_OK : QKV_FAILED;
    if (status == QKV_OK) {
        count_characters(words, &rule->marks, &a);
        status = choose(rule, &a);
    }
    if (status == QKV_OK) status = enter(&rule->marks, &a, vocab);
    if (status == QKV_OK) status = write_symbols(words, &rule->marks, &a, out);
    if (status != QKV_OK) qkv_symbols_free(out);
    qkv_free(a.count);
    qkv_free(a.seen);
    qkv_free(a.symbol);
    qkv_free(a.kept);
    return status;
}

void qkv_symbols_free(qkv_symbols *s) {
    qkv_free(s->at);
    qkv_free(s->start);
    qkv_free(s->count);
    *s = (qkv_symbols){0};
}
