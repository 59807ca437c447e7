/* Conversations: the chat template makes a prompt of the messages, which the model goes on from
 * until it writes one of the tokens that end an answer. */
#include "base/file.h"
#include "base/mem.h"
#include "chat/jinja.h"
#include "use/textmodel.h"

#include <string.h>

static qkv_status set_template(qkv_text_model *m, const char *text, size_t len) {
    qkv_jinja *t;
    QKV_TRY(qkv_jinja_parse(text, len, &t));
    qkv_jinja_free(m->chat);
    m->chat = t;
    return QKV_OK;
}

qkv_status qkv_text_model_read_template(qkv_text_model *m, const char *path) {
    enum { BYTES = 1 << 20 };
    qkv_file file;
    QKV_TRY(qkv_file_open(path, BYTES, &file));
    const qkv_status status = set_template(m, file.data, file.size);
    qkv_file_close(&file);
    return status == QKV_OK ? QKV_OK : qkv_fail_in(status, "%s", path);
}

qkv_status qkv_text_model_prepare_chat(qkv_text_model *m) {
    if (m->chat) return QKV_OK;
    if (!m->talk.template.len)
        return qkv_fail(QKV_USAGE, "the model has no chat template, so it was hardly trained to "
                                   "converse; name one: --template FILE");
    return set_template(m, m->talk.template.data, m->talk.template.len);
}

/* ---- the context ---- */

/* A special token's text; "" where there is none. */
static qkv_status put_token(qkv_arena *a, const qkv_text_model *m, qkv_jinja_dict *d,
                            const char *name, qkv_special which) {
    const int32_t id = qkv_tokenizer_special(m->tokenizer, which);
    char *text = NULL;
    size_t len = 0;
    if (id >= 0) {
        QKV_TRY(qkv_tokenizer_text(m->tokenizer, &id, 1, true, &text, &len));
        char *copy = qkv_arena_strndup(a, text, len);
        qkv_text_free(text);
        QKV_TRY_ALLOC(text = copy);
    }
    return qkv_jinja_put(a, d, name, qkv_jinja_text(text ? text : "", len)) ? QKV_OK : QKV_FAILED;
}

static qkv_status put_messages(qkv_arena *a, const qkv_chat_message *messages, size_t n,
                               qkv_jinja_dict *out) {
    qkv_jinja_list *list = qkv_arena_zalloc(a, sizeof *list);
    if (!list) return QKV_FAILED;
    QKV_TRY_ALLOC(list->at = qkv_arena_zalloc(a, (n + 1) * sizeof *list->at));
    list->n = n;
    for (size_t i = 0; i < n; i++) {
        const qkv_chat_message *from = &messages[i];
        qkv_jinja_dict *d = qkv_arena_zalloc(a, sizeof *d);
        if (!d || !qkv_jinja_put(a, d, "role", qkv_jinja_text(from->role, strlen(from->role))) ||
            !qkv_jinja_put(a, d, "content", qkv_jinja_text(from->content.data, from->content.len)))
            return QKV_FAILED;
        list->at[i] = (qkv_jinja_value){.type = QKV_JINJA_DICT, .dict = d};
    }
    const qkv_jinja_value value = {.type = QKV_JINJA_LIST, .list = list};
    return qkv_jinja_put(a, out, "messages", value) ? QKV_OK : QKV_FAILED;
}

static qkv_status render(const qkv_text_model *m, const qkv_chat_message *messages, size_t n,
                         qkv_arena *a, qkv_buf *out) {
    qkv_jinja_dict context = {0};
    QKV_TRY(put_messages(a, messages, n, &context));
    QKV_TRY(put_token(a, m, &context, "bos_token", QKV_TOK_BOS));
    QKV_TRY(put_token(a, m, &context, "eos_token", QKV_TOK_EOS));
    if (!qkv_jinja_put(a, &context, "add_generation_prompt", qkv_jinja_truth(true)))
        return QKV_FAILED;
    return qkv_jinja_run(m->chat, &context, out);
}

qkv_status qkv_chat_prompt(const qkv_text_model *m, const qkv_chat_message *messages, size_t n,
                           char **text, size_t *len) {
    *text = NULL;
    if (!m->chat)
        return qkv_fail(QKV_USAGE, "chat: call qkv_text_model_prepare_chat first, and once");
    qkv_arena a;
    qkv_buf out = {0};
    qkv_arena_init(&a);
    qkv_status status = render(m, messages, n, &a, &out);
    qkv_arena_free(&a);
    qkv_buf_puts(&out, "");
    if (status == QKV_OK) status = out.status;
    if (len) *len = out.len;
    if (status == QKV_OK)
        *text = out.data;
    else
        qkv_buf_free(&out);
    return status;
}

qkv_status qkv_chat(const qkv_text_model *m, const qkv_chat_message *messages, size_t n,
                    const qkv_generate_options *options, char **text, qkv_generated *about) {
    char *prompt;
    size_t len;
    qkv_generate_options own = options ? *options : (qkv_generate_options){0};
    own.framed = true;
    if (text) *text = NULL;
    if (about) *about = (qkv_generated){0};
    QKV_TRY(qkv_chat_prompt(m, messages, n, &prompt, &len));
    const qkv_status status = qkv_generate(m, prompt, len, &own, text, about);
    qkv_text_free(prompt);
    return status;
}
