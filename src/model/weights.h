/* Weights on disk: every parameter by its name in one safetensors file. */
#ifndef QKV_MODEL_WEIGHTS_H
#define QKV_MODEL_WEIGHTS_H

#include "nn/params.h"

qkv_status qkv_weights_save(const qkv_params *params, const char *path);
/* Every parameter must be there with its shape; a message names the first that is not. */
qkv_status qkv_weights_load(qkv_params *params, const char *path);

/* Takes what has the same name and shape, as a start for another task; *taken counts the parameters that were found. */
qkv_status qkv_weights_take(qkv_params *params, const char *path, size_t *taken);

#endif
