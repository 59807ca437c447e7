/* The model that a command names, with the trees that were given beside it. */
#include "command.h"

qkv_status cli_open_model(const cli_args *a, qkv_text_model **m) {
    qkv_status status = qkv_text_model_open(a->rest[0], m);
    if (status == QKV_OK && cli_given(a, "trees"))
        status = qkv_text_model_read_trees(*m, cli_text(a, "trees"));
    if (status == QKV_OK) return QKV_OK;
    qkv_text_model_close(*m);
    *m = NULL;
    return status;
}
