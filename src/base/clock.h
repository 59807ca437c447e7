/* Wall clock for rates and budgets. */
#ifndef QKV_BASE_CLOCK_H
#define QKV_BASE_CLOCK_H

double qkv_now(void);         /* seconds, monotonic */
double qkv_cpu_seconds(void); /* of processors, that this process has used */

#endif
