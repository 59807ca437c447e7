/* The model that a command names, with the trees that were given beside it, and as a reader of pairs
 * where that is asked for. */
#include "command.h"

#include <string.h>

/* Not every command that has trees has pairs. */
static bool asks_for_pairs(const cli_args *a) {
    for (size_t i = 0; i < a->n_options; i++)
        if (strcmp(a->options[i].name, "pairs") == 0) return cli_flag(a, "pairs");
    return false;
}

void cli_use_machine(const cli_args *a) {
    if (cli_given(a, "threads")) qkv_threads_set((int)cli_int(a, "threads"));
    if (cli_flag(a, "no-mmap")) qkv_mapping_set(false);
}

qkv_status cli_open_model(const cli_args *a, qkv_text_model **m) {
    qkv_status status = qkv_text_model_open(a->rest[0], m);
    if (status == QKV_OK && cli_given(a, "trees"))
        status = qkv_text_model_read_trees(*m, cli_text(a, "trees"));
    if (status == QKV_OK && asks_for_pairs(a)) status = qkv_text_model_read_pairs(*m);
    if (status == QKV_OK) return QKV_OK;
    qkv_text_model_close(*m);
    *m = NULL;
    return status;
}
