/* The parts of tokenizer training, each against a plain re-statement of what it should compute:
 * merges against recounting everything each time, the lattice against searching every substring. */
#include "harness.h"
#include "base/rng.h"
#include "text/train.h"
#include "text/train_lattice.h"
#include "text/script.h"

#include <math.h>
#include <stdlib.h>

/* ---- small corpora ---- */

typedef struct counted {
    const char *text;
    uint64_t count;
} counted;

static void add_words(qkv_words *w, const counted *list, size_t n) {
    qkv_words_init(w);
    for (size_t i = 0; i < n; i++)
        assert_ok(qkv_words_add(w, list[i].text, strlen(list[i].text), list[i].count, true, NULL));
    qkv_words_sort(w);
}

/* Words of letters a, b, … with a taste for repetition; several are the same. */
static void random_words(qkv_words *w, uint64_t seed, size_t n, size_t letters, size_t longest) {
    qkv_words_init(w);
    for (size_t i = 0; i < n; i++) {
        char text[64];
        const qkv_rng rng = {seed, i};
        size_t len = 1 + qkv_rng_below(rng, 0, longest);
        for (size_t k = 0; k < len; k++)
            text[k] = k && qkv_rng_uniform(rng, 2 * k) < 0.3
                          ? text[k - 1]
                          : (char)('a' + qkv_rng_below(rng, 2 * k + 1, letters));
        assert_ok(qkv_words_add(w, text, len, 1 + qkv_rng_below(rng, 999, 9), true, NULL));
    }
    qkv_words_sort(w);
}

static const qkv_alphabet_rule everything = {.coverage = 1, .max = SIZE_MAX, .room = SIZE_MAX};

/* ---- merges ---- */

static void learn(const qkv_words *words, const qkv_alphabet_rule *alphabet,
                  const qkv_merge_rule *rule, qkv_trained *out) {
    *out = (qkv_trained){0};
    qkv_words_init(&out->tokens);
    qkv_symbols symbols;
    assert_ok(qkv_symbols_make(words, alphabet, &out->tokens, &symbols));
    assert_ok(qkv_train_merges(&symbols, rule, out));
    qkv_symbols_free(&symbols);
}

static void assert_merge(const qkv_trained *t, size_t i, const char *left, const char *right) {
    assert_true(i < t->merges.n);
    const qkv_word *a = &t->tokens.at[t->merges.at[i].left],
                   *b = &t->tokens.at[t->merges.at[i].right];
    if (a->len != strlen(left) || memcmp(a->text, left, a->len) || b->len != strlen(right) ||
        memcmp(b->text, right, b->len))
        fail_msg("merge %zu is %.*s + %.*s, wanted %s + %s", i, (int)a->len, a->text, (int)b->len,
                 b->text, left, right);
}

static const counted toy[] = {{"low", 5}, {"lower", 2}, {"newest", 6}, {"widest", 3}};

/* By hand: e s 9, es t 9, l o 7, lo w</w> 5 before it n e 6, … ties to the smaller ids. */
static void toy_corpus(void **state) {
    (void)state;
    qkv_words words;
    add_words(&words, toy, 4);
    qkv_trained t;
    learn(&words,
          &(qkv_alphabet_rule){
              .marks = {.end = "</w>"}, .coverage = 1, .max = SIZE_MAX, .room = SIZE_MAX},
          &(qkv_merge_rule){.size = 1000, .min_count = 2}, &t);
    static const char *const merges[][2] = {
        {"e", "s"},        {"es", "t</w>"},    {"l", "o"},      {"e", "w"},
        {"n", "ew"},       {"new", "est</w>"}, {"lo", "w</w>"}, {"d", "est</w>"},
        {"i", "dest</w>"}, {"w", "idest</w>"},
    };
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++)
        assert_merge(&t, i, merges[i][0], merges[i][1]);
    assert_true(t.capped);
    qkv_trained_free(&t);
    qkv_words_free(&words);
}

enum { NAIVE = 400 }; /* tokens at most */

static double naive_score(const int64_t *single, int64_t both, int32_t a, int32_t b,
                          bool likelihood) {
    int64_t total = 0;
    for (int32_t x = 0; x < NAIVE; x++) total += single[x];
    const double apart = (double)single[a] * (double)single[b];
    return likelihood ? (double)both * log((double)both * (double)total / apart) : (double)both;
}

/* Recounts all pairs before every merge, and checks each merge that was learned. */
static void check_naively(qkv_symbols *s, const qkv_trained *t, uint64_t min_count,
                          bool likelihood) {
    static int64_t both[NAIVE][NAIVE], single[NAIVE];
    for (size_t i = 0; i < t->merges.n; i++) {
        memset(both, 0, sizeof both);
        memset(single, 0, sizeof single);
        for (size_t w = 0; w < s->n_words; w++) {
            for (size_t k = s->start[w]; k < s->start[w + 1]; k++) {
                if (s->at[k] < 0) continue;
                single[s->at[k]] += (int64_t)s->count[w];
                size_t next = k + 1;
                while (next < s->start[w + 1] && s->at[next] < 0) next++;
                if (next < s->start[w + 1]) both[s->at[k]][s->at[next]] += (int64_t)s->count[w];
            }
        }
        int32_t a = -1, b = -1;
        double best = 0;
        for (int32_t x = 0; x < NAIVE; x++)
            for (int32_t y = 0; y < NAIVE; y++) {
                if (both[x][y] < (int64_t)min_count) continue;
                const double score = naive_score(single, both[x][y], x, y, likelihood);
                if (score > best) best = score, a = x, b = y;
            }
        const qkv_merge *m = &t->merges.at[i];
        if (m->left != a || m->right != b)
            fail_msg("merge %zu is (%d, %d), wanted (%d, %d)", i, m->left, m->right, a, b);
        for (size_t w = 0; w < s->n_words; w++) { /* −1 fills what a merge leaves free */
            for (size_t k = s->start[w], next; k < s->start[w + 1]; k = next) {
                for (next = k + 1; next < s->start[w + 1] && s->at[next] < 0;) next++;
                if (next < s->start[w + 1] && s->at[k] == a && s->at[next] == b) {
                    s->at[k] = m->result;
                    s->at[next] = -1;
                }
            }
        }
    }
}

static void merges_equal_recounting(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        qkv_words words;
        random_words(&words, seed, 30 + seed, 2 + seed % 5, 12);
        const bool likelihood = seed % 2;
        const qkv_merge_rule rule = {
            .size = 20 + 4 * seed, .min_count = 1 + seed % 3, .likelihood = likelihood};
        qkv_trained t;
        learn(&words, &everything, &rule, &t);
        assert_true(t.tokens.n <= rule.size && (t.capped == (t.tokens.n < rule.size)));
        qkv_words alphabet;
        qkv_words_init(&alphabet);
        qkv_symbols symbols;
        assert_ok(qkv_symbols_make(&words, &everything, &alphabet, &symbols));
        /* two merges may give one token; the first of them is then undone by neither */
        check_naively(&symbols, &t, rule.min_count, likelihood);
        qkv_symbols_free(&symbols);
        qkv_words_free(&alphabet);
        qkv_trained_free(&t);
        qkv_words_free(&words);
    }
}

static void pieces_stay_short(void **state) {
    (void)state;
    qkv_words words;
    add_words(&words,
              (counted[]){{"aaaaaaaaaaaaaaaa", 7},
                          {"\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad\xe6\x96\x87", 9}},
              2);
    qkv_trained t;
    learn(&words, &everything, &(qkv_merge_rule){.size = 100, .min_count = 2, .max_piece = 3}, &t);
    for (size_t i = 0; i < t.tokens.n; i++) assert_true(t.tokens.at[i].len <= 9);
    assert_true(t.merges.n >= 2);
    qkv_trained_free(&t);
    qkv_words_free(&words);
}

static void wordpiece_marks(void **state) {
    (void)state;
    qkv_words words;
    add_words(&words, (counted[]){{"hugs", 5}, {"hug", 10}, {"pug", 5}, {"pun", 12}, {"bun", 4}},
              5);
    qkv_trained t;
    const qkv_alphabet_rule alphabet = {
        .marks = {.continuing = "##"}, .coverage = 1, .max = SIZE_MAX, .room = SIZE_MAX};
    learn(&words, &alphabet,
          &(qkv_merge_rule){.size = 100, .min_count = 2, .continuing = "##", .likelihood = true},
          &t);
    /* u n: 16 · log(16·113 / (36·16)) = 18.3; p u: 17 · log(17·113 / (17·36)) = 19.5;
     * h u: 15 · log(113 / 36) = 17.2; u g: 20 · log(113 / 36) = 22.9 */
    assert_merge(&t, 0, "##u", "##g");
    uint32_t i;
    assert_true(qkv_words_find(&t.tokens, "##ug", 4, &i));
    assert_true(qkv_words_find(&t.tokens, "hugs", 4, &i));
    assert_false(qkv_words_find(&t.tokens, "h##u", 4, &i));
    qkv_trained_free(&t);
    qkv_words_free(&words);
}

/* ---- the alphabet ---- */

static void coverage_drops_the_rarest(void **state) {
    (void)state;
    qkv_words words, vocab;
    add_words(&words, (counted[]){{"aab", 100}, {"c", 10}, {"d", 1}, {"a\xff", 1}}, 4);
    static const struct {
        double coverage;
        size_t max, kept;
    } cases[] = {
        {1, SIZE_MAX, 4}, {0.99, SIZE_MAX, 3}, {0.9, SIZE_MAX, 2}, {0.5, SIZE_MAX, 1}, {1, 2, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkv_symbols s;
        qkv_words_init(&vocab);
        const qkv_alphabet_rule rule = {
            .coverage = cases[i].coverage, .max = cases[i].max, .room = SIZE_MAX};
        assert_ok(qkv_symbols_make(&words, &rule, &vocab, &s));
        assert_int_equal(vocab.n, cases[i].kept);
        assert_int_equal(s.n_words, words.n);
        qkv_symbols_free(&s);
        qkv_words_free(&vocab);
    }
    qkv_words_init(&vocab);
    qkv_symbols s;
    const qkv_alphabet_rule required = {
        .coverage = 0.5, .max = SIZE_MAX, .room = SIZE_MAX, .required = "xd"};
    assert_ok(qkv_symbols_make(&words, &required, &vocab, &s));
    uint32_t at;
    assert_true(qkv_words_find(&vocab, "x", 1, &at) && qkv_words_find(&vocab, "d", 1, &at));
    assert_false(qkv_words_find(&vocab, "c", 1, &at));
    qkv_symbols_free(&s);
    qkv_words_free(&vocab);
    qkv_words_free(&words);
}

static void scripts(void **state) {
    (void)state;
    assert_int_equal(qkv_script_of('a'), qkv_script_of(0xe9));
    assert_int_equal(qkv_script_of(0x4e2d), qkv_script_of(0x3042)); /* Chinese and kana */
    assert_int_not_equal(qkv_script_of('a'), qkv_script_of(0x430));
    assert_int_equal(qkv_script_of('1'), QKV_SCRIPT_COMMON);
    assert_int_equal(qkv_script_of('.'), QKV_SCRIPT_COMMON);
    assert_int_equal(qkv_script_of(0x301), QKV_SCRIPT_INHERITED);
    assert_int_equal(qkv_script_of(0x2581), QKV_SCRIPT_COMMON);
    assert_int_equal(qkv_script_of(0x378), QKV_SCRIPT_NONE);
    assert_int_equal(qkv_script_of(-1), QKV_SCRIPT_NONE);
    assert_int_equal(qkv_script_of(0x10ffff), QKV_SCRIPT_NONE);
}

/* ---- the lattice ---- */

/* Places of all words where the piece's text stands. */
static size_t places_of(const qkv_lattice *l, const qkv_lattice_piece *p) {
    size_t n = 0;
    for (uint32_t i = 0; i + p->len <= l->n; i++)
        n += memcmp(l->text + i, l->text + p->at, p->len * sizeof *l->text) == 0;
    return n;
}

/* Every piece has an edge at each of its places and nowhere else; no piece is there twice. */
static void check_lattice(const qkv_lattice *l) {
    size_t *edges = calloc(l->n_pieces, sizeof *edges);
    assert_non_null(edges);
    for (uint32_t i = 0; i < l->n; i++) {
        for (uint32_t e = l->first[i]; e < l->first[i + 1]; e++) {
            uint32_t piece = l->edge[e] >> QKV_EDGE_BITS, len = l->edge[e] & QKV_PIECE_CHARS;
            assert_true(piece < l->n_pieces);
            edges[piece]++;
            assert_int_equal(len, l->piece[piece].len);
            if (piece)
                assert_memory_equal(l->text + i, l->text + l->piece[piece].at,
                                    len * sizeof *l->text);
        }
    }
    for (size_t k = 1; k < l->n_pieces; k++) {
        assert_int_equal(edges[k], places_of(l, &l->piece[k]));
        for (size_t j = 1; j < k; j++)
            assert_true(l->piece[j].len != l->piece[k].len ||
                        memcmp(l->text + l->piece[j].at, l->text + l->piece[k].at,
                               l->piece[k].len * sizeof *l->text) != 0);
    }
    free(edges);
}

/* Every substring that has two different continuations (or ends) must be a piece. */
static void check_complete(const qkv_lattice *l, size_t max_chars) {
    for (uint32_t i = 0; i < l->n; i++) {
        for (uint32_t len = 2; l->text[i] && len <= max_chars && l->text[i + len - 1]; len++) {
            bool branches = false;
            for (uint32_t k = 0; k + len < l->n && !branches; k++)
                branches = memcmp(l->text + i, l->text + k, len * sizeof *l->text) == 0 && k != i &&
                           (l->text[i + len] != l->text[k + len] || l->text[i + len] == 0);
            bool piece = false;
            for (uint32_t e = l->first[i]; e < l->first[i + 1] && !piece; e++)
                piece = (l->edge[e] & QKV_PIECE_CHARS) == len;
            if (branches && !piece)
                fail_msg("the substring of %u characters at %u is no piece", len, i);
        }
    }
}

static void lattice_holds_all_places(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        qkv_words words, alphabet;
        random_words(&words, seed, 40, 2 + seed % 3, 20);
        qkv_words_init(&alphabet);
        qkv_symbols symbols;
        assert_ok(qkv_symbols_make(&words, &everything, &alphabet, &symbols));
        qkv_lattice l;
        const size_t max_chars = 3 + seed % 8;
        assert_ok(qkv_lattice_make(&symbols, 0, alphabet.n, max_chars, NULL, &l));
        check_lattice(&l);
        check_complete(&l, max_chars);
        bool *keep = calloc(l.n_pieces, sizeof *keep);
        assert_non_null(keep);
        for (size_t k = 0; k < l.n_pieces; k++) keep[k] = k <= l.n_chars || k % 3;
        assert_ok(qkv_lattice_thin(&l, keep));
        check_lattice(&l);
        free(keep);
        qkv_lattice_free(&l);
        qkv_symbols_free(&symbols);
        qkv_words_free(&alphabet);
        qkv_words_free(&words);
    }
}

/* ---- Unigram ---- */

static qkv_status learn_unigram(const qkv_words *words, size_t size, qkv_trained *out) {
    *out = (qkv_trained){0};
    qkv_words alphabet;
    qkv_words_init(&alphabet);
    qkv_words_init(&out->tokens);
    qkv_symbols symbols = {0};
    qkv_status status = qkv_words_add(&out->tokens, "<unk>", 5, 0, true, NULL);
    if (status == QKV_OK) status = qkv_symbols_make(words, &everything, &alphabet, &symbols);
    const qkv_unigram_rule rule = {.size = size, .by_script = true};
    if (status == QKV_OK) status = qkv_train_unigram(&alphabet, &symbols, &rule, out);
    qkv_symbols_free(&symbols);
    qkv_words_free(&alphabet);
    return status;
}

static void unigram_finds_words(void **state) {
    (void)state;
    qkv_words words;
    add_words(
        &words,
        (counted[]){
            {"_cat", 50}, {"_cats", 20}, {"_dog", 40}, {"_dogs", 30}, {"_catdog", 5}, {"_s", 3}},
        6);
    qkv_trained t;
    assert_ok(learn_unigram(&words, 13, &t));
    uint32_t at;
    assert_true(qkv_words_find(&t.tokens, "cat", 3, &at));
    assert_true(qkv_words_find(&t.tokens, "dog", 3, &at));
    assert_true(t.tokens.n >= 11 && t.tokens.n <= 13 && t.capped == (t.tokens.n < 13));
    assert_int_equal(t.scores.n, t.tokens.n);
    double mass = 0;
    for (size_t i = 1; i < t.scores.n; i++) {
        mass += exp(t.scores.at[i]);
        if (i > 1) assert_true(t.scores.at[i] <= t.scores.at[i - 1]);
    }
    assert_true(mass > 0.8 && mass < 1); /* the digamma step keeps a little back */
    qkv_trained_free(&t);
    qkv_words_free(&words);
}

/* A word whose probability is far below the smallest double. */
static void long_words_do_not_underflow(void **state) {
    (void)state;
    static char text[1001];
    for (int i = 0; i < 1000; i++)
        text[i] = (char)('a' + qkv_rng_below((qkv_rng){5, 5}, (uint64_t)i, 26));
    qkv_words words;
    add_words(&words, (counted[]){{text, 1}, {"abc", 2}, {"zebra", 1}}, 3);
    qkv_trained t;
    assert_ok(learn_unigram(&words, 60, &t));
    for (size_t i = 0; i < t.scores.n; i++) assert_true(isfinite(t.scores.at[i]));
    for (size_t i = 1; i < t.tokens.n; i++) assert_true(t.tokens.at[i].count > 0);
    qkv_trained_free(&t);
    qkv_words_free(&words);
}

static void same_for_any_threads(void **state) {
    (void)state;
    qkv_words words;
    random_words(&words, 77, 3000, 9, 14);
    qkv_trained first, t;
    qkv_threads_set(1);
    assert_ok(learn_unigram(&words, 200, &first));
    for (int threads = 2; threads <= 8; threads += threads == 3 ? 5 : 1) {
        qkv_threads_set(threads);
        assert_ok(learn_unigram(&words, 200, &t));
        assert_int_equal(t.tokens.n, first.tokens.n);
        assert_memory_equal(t.scores.at, first.scores.at, t.scores.n * sizeof *t.scores.at);
        for (size_t i = 0; i < t.tokens.n; i++)
            assert_memory_equal(t.tokens.at[i].text, first.tokens.at[i].text, t.tokens.at[i].len);
        qkv_trained_free(&t);
    }
    qkv_threads_set(0);
    qkv_trained_free(&first);
    qkv_words_free(&words);
}

/* ---- counting ---- */

typedef struct lines {
    size_t n, at, words; /* `words` numbers per line; numbers grow */
    char text[256];
} lines;

static bool next_line(void *user, const char **text, size_t *len) {
    lines *l = user;
    if (l->at == l->n) return false;
    size_t n = 0;
    for (size_t k = 0; k < l->words; k++) /* some words often, most once */
        n += (size_t)snprintf(l->text + n, sizeof l->text - n, "w%zu ",
                              k % 2 ? l->at % 7 : l->at * 10 + k);
    l->at++;
    *text = l->text;
    *len = n;
    return true;
}

static qkv_status split_blanks(const void *how, const char *text, size_t len, qkv_word_sink sink,
                               void *user) {
    (void)how;
    for (size_t i = 0, n; i < len; i += n + 1) {
        for (n = 0; i + n < len && text[i + n] != ' ';) n++;
        if (n) sink(user, text + i, n);
    }
    return QKV_OK;
}

static void count(qkv_words *w, const qkv_tok_train *spec, qkv_words_limit limit, size_t n) {
    lines source = {.n = n, .words = 4};
    uint64_t used;
    qkv_words_init(w);
    assert_ok(qkv_words_count(w, spec, (qkv_splitter){split_blanks, NULL}, limit, next_line,
                              &source, &used));
    assert_int_equal(used, spec->sample_lines && spec->sample_lines < n ? spec->sample_lines : n);
}

static void assert_same_words(const qkv_words *a, const qkv_words *b) {
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        assert_int_equal(a->at[i].count, b->at[i].count);
        assert_int_equal(a->at[i].len, b->at[i].len);
        assert_memory_equal(a->at[i].text, b->at[i].text, a->at[i].len);
    }
}

static void counts_for_any_threads(void **state) {
    (void)state;
    static const struct {
        qkv_tok_train spec;
        qkv_words_limit limit;
    } cases[] = {
        {{0}, {1 << 20, 1 << 30}},
        {{.sample_lines = 300, .seed = 4}, {1 << 20, 1 << 30}},
        {{0}, {1000, 1 << 30}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        qkv_words first, w;
        qkv_threads_set(1);
        count(&first, &cases[c].spec, cases[c].limit, 5000);
        for (int threads = 2; threads <= 8; threads += threads == 3 ? 5 : 1) {
            qkv_threads_set(threads);
            count(&w, &cases[c].spec, cases[c].limit, 5000);
            assert_same_words(&w, &first);
            qkv_words_free(&w);
        }
        qkv_words_free(&first);
    }
    qkv_threads_set(0);
}

static void counts_are_right(void **state) {
    (void)state;
    qkv_words w;
    count(&w, &(qkv_tok_train){0}, QKV_TRAIN_LIMIT, 700);
    /* two of w0 … w6 a line, 100 lines each; and w0, w10, … w(10 k), w(10 k + 2), once */
    assert_int_equal(w.at[0].count + w.at[1].count + w.at[2].count + w.at[3].count + w.at[4].count +
                         w.at[5].count + w.at[6].count,
                     1400 + 2 /* w0 and w2 */);
    assert_int_equal(w.n, 7 + 1400 - 2);
    qkv_words_free(&w);
    count(&w, &(qkv_tok_train){0}, (qkv_words_limit){500, 1 << 30}, 700);
    assert_true(w.n <= 500 && w.n > 100);
    assert_int_equal(w.at[0].count, 201); /* the frequent ones stay */
    qkv_words_free(&w);
}

/* Gives one text, then nothing. */
static bool give_once(void *user, const char **text, size_t *len) {
    qkv_text *one = user;
    *text = one->data;
    *len = one->len;
    one->data = NULL;
    return *text;
}

static void long_words_are_cut(void **state) {
    (void)state;
    static char text[17280];
    for (size_t i = 0; i < sizeof text; i += 3) memcpy(text + i, "\xe4\xb8\xad", 3);
    qkv_text one = {text, sizeof text};
    qkv_words w;
    qkv_words_init(&w);
    uint64_t used;
    assert_ok(qkv_words_count(&w, &(qkv_tok_train){0}, (qkv_splitter){split_blanks, NULL},
                              QKV_TRAIN_LIMIT, give_once, &one, &used));
    assert_int_equal(
        w.n, 2); /* four of 4095 bytes, the largest whole number of characters, and a rest */
    assert_int_equal(w.at[0].len, 4095);
    assert_int_equal(w.at[0].count, 4);
    assert_int_equal(w.at[1].len, 17280 - 4 * 4095);
    qkv_words_free(&w);
}

/* ---- no memory ---- */

static qkv_status everything_once(const void *unused) {
    (void)unused;
    static const char *const texts[] = {"low", "lower", "newest", "widest", "lowest"};
    qkv_words words, tokens;
    qkv_words_init(&words);
    qkv_words_init(&tokens);
    qkv_trained merged = {0}, pieces = {0};
    qkv_words_init(&merged.tokens);
    qkv_symbols symbols = {0};
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < 5 && status == QKV_OK; i++)
        status = qkv_words_add(&words, texts[i], strlen(texts[i]), 3 + i, true, NULL);
    if (status == QKV_OK) qkv_words_sort(&words);
    if (status == QKV_OK) status = qkv_symbols_make(&words, &everything, &merged.tokens, &symbols);
    if (status == QKV_OK)
        status = qkv_train_merges(
            &symbols, &(qkv_merge_rule){.size = 40, .min_count = 2, .likelihood = true}, &merged);
    if (status == QKV_OK) status = learn_unigram(&words, 20, &pieces);
    qkv_symbols_free(&symbols);
    qkv_trained_free(&merged);
    qkv_trained_free(&pieces);
    qkv_words_free(&words);
    qkv_words_free(&tokens);
    return status;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    qkv_threads_set(1);
    assert_true(assert_fails_cleanly(everything_once, NULL, 0) >= 50);
    qkv_threads_set(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(toy_corpus),
        cmocka_unit_test(merges_equal_recounting),
        cmocka_unit_test(pieces_stay_short),
        cmocka_unit_test(wordpiece_marks),
        cmocka_unit_test(coverage_drops_the_rarest),
        cmocka_unit_test(scripts),
        cmocka_unit_test(lattice_holds_all_places),
        cmocka_unit_test(unigram_finds_words),
        cmocka_unit_test(long_words_do_not_underflow),
        cmocka_unit_test(same_for_any_threads),
        cmocka_unit_test(counts_for_any_threads),
        cmocka_unit_test(counts_are_right),
        cmocka_unit_test(long_words_are_cut),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
