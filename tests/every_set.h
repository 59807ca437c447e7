/* For tests that run for every instruction set of this machine: FOR_SETS { … k->… }, and list_sets
 * before all tests. */
#ifndef QKV_TESTS_EVERY_SET_H
#define QKV_TESTS_EVERY_SET_H

#include "kern/kern.h"

static const qkv_kern *const *sets;
static size_t n_sets;
static const qkv_kern *k; /* the set under test */
#define FOR_SETS for (size_t set_ = 0; set_ < n_sets && (k = sets[set_], true); set_++)

static int list_sets(void **state) {
    (void)state;
    n_sets = qkv_kern_list(&sets);
    return 0;
}

#endif
