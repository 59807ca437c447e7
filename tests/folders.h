/* Model folders for tests: tiny models of every task,
 * trained for a step or two on synthetic rows in memory. */
#ifndef QKV_TESTS_FOLDERS_H
#define QKV_TESTS_FOLDERS_H

#include "harness.h"

/* Makes folder/<task> for classify, translate or lm;
 * `extra` holds settings ("position=rope", NULL at the end) or is NULL. */
void make_model_folder(const char *folder, const char *task, const char *const *extra);

/* A new temporary folder, and its end. */
void make_temporary(char out[64]);
void remove_temporary(const char *folder);

#endif
