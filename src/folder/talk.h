/* What a folder or file says of conversations: the chat template, and the tokens that end an
 * answer. */
#ifndef QKV_FOLDER_TALK_H
#define QKV_FOLDER_TALK_H

#include "base/buf.h"

enum { QKV_TALK_ENDS = 16 };

typedef struct qkv_talk {
    qkv_buf template;            /* empty: there is none */
    int64_t ends[QKV_TALK_ENDS]; /* as the file says them */
    int n_ends;
} qkv_talk;

/* Ends are those of generation_config.json and config.json (a number or a list), or of a GGUF file;
 * the template that of chat_template.jinja, tokenizer_config.json or a GGUF file. */
qkv_status qkv_talk_read(const char *folder, qkv_talk *out);
void qkv_talk_free(qkv_talk *t);

#endif
