/* The model that a command names, with the trees that were given beside it, as a reader of pairs
 * or of longer texts where that is asked for. */
#include "command.h"

#include <string.h>

/* Not every command has every option. */
static bool has(const cli_args *a, const char *name) {
    for (size_t i = 0; i < a->n_options; i++)
        if (strcmp(a->options[i].name, name) == 0) return cli_given(a, name);
    return false;
}

void cli_use_machine(const cli_args *a) {
    if (cli_given(a, "threads")) qkv_threads_set((int)cli_int(a, "threads"));
    if (cli_flag(a, "no-mmap")) qkv_mapping_set(false);
}

qkv_status cli_open_model(const cli_args *a, qkv_text_model **m) {
    qkv_status status = qkv_text_model_open(a->rest[0], m);
    if (status == QKV_OK && has(a, "trees"))
        status = qkv_text_model_read_trees(*m, cli_text(a, "trees"));
    if (status == QKV_OK && has(a, "pairs")) status = qkv_text_model_read_pairs(*m);
    if (status == QKV_OK && has(a, "max-len"))
        status = qkv_text_model_set_max_len(*m, cli_int(a, "max-len"));
    if (status == QKV_OK) return QKV_OK;
    qkv_text_model_close(*m);
    *m = NULL;
    return status;
}
