/* Wall clock for rates and budgets. */
#ifndef QKV_BASE_CLOCK_H
#define QKV_BASE_CLOCK_H

double qkv_now(void); /* seconds, monotonic */

#endif
