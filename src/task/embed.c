/* embed: an encoder whose pooled rows are the answer. It is used, never trained as such: other
 * tasks leave models that embed too. */
#include "task/task.h"

const qkv_task qkv_task_embed = {
    .name = "embed",
    .shape = {.encoder = true},
    .corpus = QKV_CORPUS_LINES,
    .sides = 1,
};
