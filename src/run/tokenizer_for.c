/* The tokenizer of a training: opened, or trained on the corpus itself. */
#include "use/textmodel.h"

#include <string.h>

typedef struct source {
    const qkv_corpus *corpus;
    size_t at; /* 2·row + side */
} source;

static bool next_text(void *user, const char **text, size_t *len) {
    source *s = user;
    for (; s->at < 2 * s->corpus->n; s->at++) {
        const qkv_row *row = &s->corpus->rows[s->at / 2];
        const qkv_text *t = s->at % 2 ? &row->second : &row->text;
        if (!t->data) continue;
        *text = t->data;
        *len = t->len;
        s->at++;
        return true;
    }
    return false;
}

qkv_status qkv_tokenizer_for(const char *wanted, const qkv_corpus *corpus, const qkv_config *config,
                             bool lowercase, const qkv_tokenizer_telling *telling,
                             qkv_tokenizer **out) {
    static const char *const specials[] = {"<pad>", "<unk>", "<s>", "</s>", "<mask>"};
    static const char *const kinds[QKV_TOK_KINDS] = {"bpe", "unigram", "wordpiece", "char", "word"};
    size_t kind = 0;
    while (kind < QKV_TOK_KINDS && strcmp(kinds[kind], wanted) != 0) kind++;
    if (kind == QKV_TOK_KINDS) return qkv_tokenizer_open(wanted, out);
    const qkv_tok_train spec = {
        .kind = (qkv_tok_kind)kind,
        .vocab_size = (size_t)config->vocab_size,
        .split = qkv_task_of(config)->recipe->byte_level             ? QKV_SPLIT_BYTE_LEVEL
                 : kind == QKV_TOK_WORDPIECE || kind == QKV_TOK_WORD ? QKV_SPLIT_BERT
                                                                     : QKV_SPLIT_METASPACE,
        .specials = specials,
        .n_specials = sizeof specials / sizeof *specials,
        .lowercase = lowercase,
        .progress = telling ? telling->progress : NULL,
        .user = telling ? telling->user : NULL};
    source s = {.corpus = corpus};
    return qkv_tokenizer_train(&spec, next_text, &s, out);
}
