/* The number type of tensors: float, or double in the build that checks gradients. */
#ifndef QKV_BASE_REAL_H
#define QKV_BASE_REAL_H

#include <stdint.h>

#ifdef QKV_DOUBLE
typedef double real;
#define REAL_MAX 1.7976931348623157e308
#else
typedef float real;
#define REAL_MAX 3.402823466e38f
#endif

#endif
