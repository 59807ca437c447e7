/* Training from text to a finished tokenizer: which steps stand around the model, and which trainer
 * makes it. A way of splitting is a row of `splits`, a kind of model a row of `kinds`; every
 * combination that makes sense is trained by the same few lines. */
#include "text/train.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <string.h>

typedef struct split_row {
    const char *name;
    const char *normalizer, *lower; /* JSON, NULL: none; without and with lowercasing */
    const char *pretokenizer, *decoder;
    const char *unk; /* what an unknown token is called here */
    qkv_word_marks marks;
    bool bytes; /* words are bytes, written in the byte-level alphabet */
} split_row;

static const split_row splits[QKV_SPLITS] = {
    [QKV_SPLIT_BYTE_LEVEL] =
        {
            .name = "byte-level",
            .lower = "{\"type\":\"Lowercase\"}",
            .pretokenizer = "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
                            "\"trim_offsets\":true,\"use_regex\":true}",
            .decoder = "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
                       "\"trim_offsets\":true,\"use_regex\":true}",
            .unk = "<unk>",
            .bytes = true,
        },
    [QKV_SPLIT_METASPACE] =
        {
            .name = "metaspace",
            .normalizer = "{\"type\":\"NFC\"}",
            .lower = "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},"
                     "{\"type\":\"Lowercase\"}]}",
            .pretokenizer = "{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\","
                            "\"prepend_scheme\":\"always\",\"split\":true}",
            .decoder = "{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\","
                       "\"prepend_scheme\":\"always\",\"split\":true}",
            .unk = "<unk>",
        },
    [QKV_SPLIT_END_OF_WORD] =
        {
            .name = "end-of-word",
            .normalizer = "{\"type\":\"NFC\"}",
            .lower = "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},"
                     "{\"type\":\"Lowercase\"}]}",
            .pretokenizer = "{\"type\":\"WhitespaceSplit\"}",
            .decoder = "{\"type\":\"BPEDecoder\",\"suffix\":\"</w>\"}",
            .unk = "<unk>",
            .marks = {.end = "</w>"},
        },
    [QKV_SPLIT_BERT] =
        {
            .name = "bert",
            .normalizer = "{\"type\":\"BertNormalizer\",\"clean_text\":true,"
                          "\"handle_chinese_chars\":true,\"strip_accents\":null,"
                          "\"lowercase\":false}",
            .lower = "{\"type\":\"BertNormalizer\",\"clean_text\":true,"
                     "\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true}",
            .pretokenizer = "{\"type\":\"BertPreTokenizer\"}",
            .decoder = "{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}",
            .unk = "[UNK]",
            .marks = {.continuing = "##"},
        },
};

/* Characters alone: no words at all, so that blanks and line ends are tokens too. */
static const split_row no_split = {.name = "none",
                                   .lower = "{\"type\":\"Lowercase\"}",
                                   .decoder = "{\"type\":\"Fuse\"}",
                                   .unk = "<unk>"};

/* One training: what all the steps share. */
typedef struct training {
    const qkv_tok_train *spec;
    const split_row *split;
    qkv_words words;
    qkv_trained made;
    const char *unk; /* NULL: nothing can be unknown */
    qkv_tokenizer *tok;
} training;

typedef struct kind_row {
    const char *name;
    unsigned splits; /* bit s: split s makes sense */
    bool exact;      /* byte-level words need no unknown token */
    size_t min_count;
    double coverage;
    qkv_status (*train)(training *t);                           /* fills t->made */
    qkv_status (*install)(training *t, const qkv_text *tokens); /* gives the model to t->tok */
} kind_row;

static const kind_row *kind_of(const training *t);
static size_t min_count(const training *t) {
    return t->spec->min_count ? t->spec->min_count : kind_of(t)->min_count;
}

/* The characters of the words as symbols; `vocab` gets them. */
static qkv_status make_symbols(training *t, const qkv_word_marks *marks, qkv_words *vocab,
                               qkv_symbols *out) {
    const qkv_tok_train *spec = t->spec;
    qkv_buf bytes = {0};
    if (t->split->bytes) {
        char all[256];
        for (int b = 0; b < 256; b++) all[b] = (char)b;
        qkv_byte_level_name(all, sizeof all, &bytes);
        QKV_TRY(bytes.status);
    }
    const qkv_alphabet_rule rule = {
        .marks = *marks,
        .coverage = spec->coverage > 0 ? spec->coverage : kind_of(t)->coverage,
        .max = spec->max_alphabet ? spec->max_alphabet : SIZE_MAX,
        .room = spec->vocab_size - t->made.tokens.n, /* checked: specials leave some */
        .required = bytes.data,
    };
    qkv_status status = qkv_symbols_make(&t->words, &rule, vocab, out);
    qkv_buf_free(&bytes);
    return status;
}

static qkv_status train_merges(training *t) {
    const qkv_tok_train *spec = t->spec;
    qkv_symbols symbols;
    QKV_TRY(make_symbols(t, &t->split->marks, &t->made.tokens, &symbols));
    const qkv_merge_rule rule = {
        .size = spec->vocab_size,
        .min_count = min_count(t),
        .max_piece = spec->max_piece,
        .continuing = t->split->marks.continuing,
        .likelihood = spec->kind == QKV_TOK_WORDPIECE && !spec->by_count,
        .progress = spec->progress,
        .user = spec->user,
    };
    qkv_status status = qkv_train_merges(&symbols, &rule, &t->made);
    qkv_symbols_free(&symbols);
    return status;
}

static qkv_status install_bpe(training *t, const qkv_text *tokens) {
    const qkv_bpe_options options = {
        .unk = t->unk, .prefix = t->split->marks.continuing, .suffix = t->split->marks.end};
    return qkv_tokenizer_set_bpe(t->tok, tokens, t->made.tokens.n, t->made.merges.at,
                                 t->made.merges.n, &options);
}

static qkv_status install_wordpiece(training *t, const qkv_text *tokens) {
    return qkv_tokenizer_set_wordpiece(t->tok, tokens, t->made.tokens.n, t->unk,
                                       t->split->marks.continuing, 100);
}

static qkv_status train_unigram(training *t) {
    const qkv_tok_train *spec = t->spec;
    qkv_words alphabet;
    qkv_words_init(&alphabet);
    qkv_symbols symbols = {0};
    qkv_status status = make_symbols(t, &t->split->marks, &alphabet, &symbols);
    const qkv_unigram_rule rule = {
        .size = spec->vocab_size,
        .max_chars = spec->max_piece,
        .by_script = !t->split->bytes,
        .progress = spec->progress,
        .user = spec->user,
    };
    if (status == QKV_OK) status = qkv_train_unigram(&alphabet, &symbols, &rule, &t->made);
    qkv_symbols_free(&symbols);
    qkv_words_free(&alphabet);
    return status;
}

static qkv_status install_unigram(training *t, const qkv_text *tokens) {
    uint32_t unk = 0;
    bool known = t->unk && qkv_words_find(&t->made.tokens, t->unk, strlen(t->unk), &unk);
    return qkv_tokenizer_set_unigram(t->tok, tokens, t->made.scores.at, t->made.tokens.n,
                                     known ? (int32_t)unk : -1, false);
}

static qkv_status train_characters(training *t) {
    qkv_symbols symbols;
    QKV_TRY(make_symbols(t, &(qkv_word_marks){0}, &t->made.tokens, &symbols));
    qkv_symbols_free(&symbols);
    t->made.capped = t->made.tokens.n < t->spec->vocab_size;
    return QKV_OK;
}

static qkv_status train_words(training *t) {
    for (size_t i = 0; i < t->words.n && t->made.tokens.n < t->spec->vocab_size; i++) {
        const qkv_word *w = &t->words.at[i];
        if (w->count < min_count(t)) break;
        QKV_TRY(qkv_words_add(&t->made.tokens, w->text, w->len, w->count, true, NULL));
    }
    t->made.capped = t->made.tokens.n < t->spec->vocab_size;
    return QKV_OK;
}

static qkv_status install_words(training *t, const qkv_text *tokens) {
    return qkv_tokenizer_set_wordlevel(t->tok, tokens, t->made.tokens.n, t->unk);
}

#define ALL_SPLITS ((1u << QKV_SPLITS) - 1)

static const kind_row kinds[QKV_TOK_KINDS] = {
    [QKV_TOK_BPE] = {"bpe", ALL_SPLITS, true, 2, 1, train_merges, install_bpe},
    /* pieces of words without a marker could not be put together again */
    [QKV_TOK_UNIGRAM] = {"unigram", 1u << QKV_SPLIT_BYTE_LEVEL | 1u << QKV_SPLIT_METASPACE, true, 1,
                         0.9995, train_unigram, install_unigram},
    [QKV_TOK_WORDPIECE] = {"wordpiece", 1u << QKV_SPLIT_BERT, false, 2, 1, train_merges,
                           install_wordpiece},
    /* a BPE that joins nothing */
    [QKV_TOK_CHAR] = {"char", ALL_SPLITS, false, 1, 1, train_characters, install_bpe},
    [QKV_TOK_WORD] = {"word", ALL_SPLITS, false, 1, 1, train_words, install_words},
};

static const kind_row *kind_of(const training *t) {
    return &kinds[t->spec->kind];
}

/* ---- before: what is asked for, the special tokens, the words ---- */

static qkv_status check(const qkv_tok_train *spec) {
    if ((unsigned)spec->kind >= QKV_TOK_KINDS || (unsigned)spec->split >= QKV_SPLITS)
        return qkv_fail(QKV_USAGE, "training a tokenizer: no such kind (%d) or split (%d)",
                        spec->kind, spec->split);
    if (!(kinds[spec->kind].splits >> spec->split & 1))
        return qkv_fail(QKV_USAGE,
                        "a %s tokenizer cannot be trained on %s words: choose another split",
                        kinds[spec->kind].name, splits[spec->split].name);
    if (!(spec->coverage >= 0 && spec->coverage <= 1))
        return qkv_fail(QKV_USAGE, "character coverage is %g: a share from 0 to 1 is needed",
                        spec->coverage);
    return QKV_OK;
}

static qkv_status add_special(training *t, const char *text) {
    size_t before = t->made.tokens.n, len = strlen(text);
    if (len == 0) return qkv_fail(QKV_USAGE, "a special token is empty");
    QKV_TRY(qkv_words_add(&t->made.tokens, text, len, 0, true, NULL));
    if (t->made.tokens.n == before)
        return qkv_fail(QKV_USAGE, "the special token \"%.60s\" is given twice", text);
    return QKV_OK;
}

/* Enters the special tokens, an unknown token among them where the kind needs one. */
static qkv_status add_specials(training *t) {
    static const char *const unknowns[] = {"<unk>", "[UNK]", "<UNK>"};
    const qkv_tok_train *spec = t->spec;
    for (size_t i = 0; i < spec->n_specials; i++) {
        QKV_TRY(add_special(t, spec->specials[i]));
        for (size_t k = 0; k < sizeof unknowns / sizeof *unknowns; k++)
            if (!t->unk && strcmp(spec->specials[i], unknowns[k]) == 0) t->unk = unknowns[k];
    }
    const bool exact = t->split->bytes && kind_of(t)->exact;
    if (!t->unk && !exact) QKV_TRY(add_special(t, t->unk = t->split->unk));
    const size_t least = t->made.tokens.n + (exact ? 256 : 1);
    if (spec->vocab_size < least)
        return qkv_fail(
            QKV_USAGE, "a vocabulary of %zu is too small: %zu special tokens and %s need %zu",
            spec->vocab_size, t->made.tokens.n, exact ? "256 bytes" : "a character", least);
    return QKV_OK;
}

static qkv_status set_stages(training *t) {
    const split_row *s = t->split;
    QKV_TRY(qkv_tokenizer_set_stage(t->tok, QKV_STAGE_NORMALIZER,
                                    t->spec->lowercase ? s->lower : s->normalizer));
    QKV_TRY(qkv_tokenizer_set_stage(t->tok, QKV_STAGE_PRETOKENIZER, s->pretokenizer));
    /* whole words without a mark are joined by blanks, which is what no decoder does */
    const bool plain = t->spec->kind == QKV_TOK_WORD && s->marks.end;
    return qkv_tokenizer_set_stage(t->tok, QKV_STAGE_DECODER, plain ? NULL : s->decoder);
}

/* Splitters run the tokenizer's own first steps, so that training sees what encoding will see. */
static qkv_status split_words(const void *how, const char *text, size_t len, qkv_word_sink sink,
                              void *user) {
    const qkv_tokenizer *tok = how;
    qkv_scratch *scratch = qkv_scratch_take(tok);
    if (!scratch) return QKV_FAILED;
    qkv_status status = qkv_tokenizer_words(tok, scratch, text, len);
    const qkv_draft *work = qkv_scratch_draft(scratch);
    for (size_t i = 0; status == QKV_OK && i < work->pieces.n; i++) {
        const qkv_piece *piece = &work->pieces.at[i];
        sink(user, work->text + piece->begin, piece->end - piece->begin);
    }
    qkv_scratch_give(tok, scratch);
    return status;
}

typedef struct character_sink {
    qkv_word_sink sink;
    void *user;
} character_sink;

static void each_character(void *user, const char *word, size_t len) {
    const character_sink *to = user;
    for (size_t i = 0, n; i < len; i += n) {
        int32_t cp;
        n = (size_t)qkv_utf8_decode(word + i, len - i, &cp);
        to->sink(to->user, word + i, n);
    }
}

/* For the kind without words: they would be as long as the lines, and all different. */
static qkv_status split_characters(const void *how, const char *text, size_t len,
                                   qkv_word_sink sink, void *user) {
    return split_words(how, text, len, each_character, &(character_sink){sink, user});
}

/* Rewrites words of bytes in the byte-level alphabet. */
static qkv_status name_bytes(qkv_words *words) {
    qkv_words named;
    qkv_words_init(&named);
    qkv_buf name = {0};
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < words->n && status == QKV_OK; i++) {
        const qkv_word *w = &words->at[i];
        qkv_buf_clear(&name);
        qkv_byte_level_name(w->text, w->len, &name);
        status = name.status;
        if (status == QKV_OK)
            status = qkv_words_add(&named, name.data, name.len, w->count, true, NULL);
    }
    qkv_buf_free(&name);
    qkv_words_free(words);
    *words = named;
    return status;
}

static qkv_status count_words(training *t, qkv_text_source next, void *user) {
    uint64_t lines = 0;
    const qkv_splitter splitter = {t->split == &no_split ? split_characters : split_words, t->tok};
    QKV_TRY(qkv_words_count(&t->words, t->spec, splitter, QKV_TRAIN_LIMIT, next, user, &lines));
    if (t->words.n == 0)
        return qkv_fail(QKV_USAGE,
                        "nothing to train a tokenizer on: %llu lines, and no word in them",
                        (unsigned long long)lines);
    return t->split->bytes ? name_bytes(&t->words) : QKV_OK;
}

/* ---- after: the parts put together ---- */

/* [CLS] text [SEP] [SEP] pair [SEP], as BERT has it, when the split is BERT's and both tokens are
 * there. */
static qkv_status set_template(training *t) {
    uint32_t cls, sep;
    if (t->split != &splits[QKV_SPLIT_BERT] || !qkv_words_find(&t->made.tokens, "[CLS]", 5, &cls) ||
        !qkv_words_find(&t->made.tokens, "[SEP]", 5, &sep))
        return QKV_OK;
    qkv_buf json = {0};
    qkv_buf_printf(&json,
                   "{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",%u],\"cls\":[\"[CLS]\",%u]}",
                   sep, cls);
    qkv_status status = json.status;
    if (status == QKV_OK)
        status = qkv_tokenizer_set_stage(t->tok, QKV_STAGE_POSTPROCESSOR, json.data);
    qkv_buf_free(&json);
    return status;
}

static qkv_status assemble(training *t, size_t n_specials) {
    const qkv_words *tokens = &t->made.tokens;
    qkv_text *texts;
    QKV_TRY_ALLOC(texts = qkv_zalloc(tokens->n, sizeof *texts));
    for (size_t i = 0; i < tokens->n; i++)
        texts[i] = (qkv_text){tokens->at[i].text, tokens->at[i].len};
    qkv_status status = kind_of(t)->install(t, texts);
    for (size_t i = 0; i < n_specials && status == QKV_OK; i++) {
        const qkv_added added = {
            .text = texts[i].data, .len = texts[i].len, .id = (int32_t)i, .special = true};
        status = qkv_tokenizer_add_token(t->tok, &added);
    }
    qkv_free(texts);
    QKV_TRY(status);
    QKV_TRY(set_template(t));
    return qkv_tokenizer_finish(t->tok);
}

static qkv_status train(training *t, qkv_text_source next, void *user) {
    QKV_TRY(add_specials(t));
    QKV_TRY(qkv_tokenizer_new(&t->tok));
    QKV_TRY(set_stages(t));
    QKV_TRY(count_words(t, next, user));
    const size_t n_specials = t->made.tokens.n;
    QKV_TRY(kind_of(t)->train(t));
    if (t->spec->capped) *t->spec->capped = t->made.capped;
    return assemble(t, n_specials);
}

void qkv_trained_free(qkv_trained *t) {
    qkv_words_free(&t->tokens);
    qkv_free(t->scores.at);
    qkv_free(t->merges.at);
}

qkv_status qkv_tokenizer_train(const qkv_tok_train *spec, qkv_text_source next, void *user,
                               qkv_tokenizer **out) {
    *out = NULL;
    QKV_TRY(check(spec));
    training t = {.spec = spec,
                  .split = spec->kind == QKV_TOK_CHAR ? &no_split : &splits[spec->split]};
    qkv_words_init(&t.words);
    qkv_words_init(&t.made.tokens);
    qkv_status status = train(&t, next, user);
    qkv_words_free(&t.words);
    qkv_trained_free(&t.made);
    if (status == QKV_OK)
        *out = t.tok;
    else
        qkv_tokenizer_free(t.tok);
    return status;
}
