/* Weights on disk: every parameter by its name in one safetensors file. */
#ifndef QKV_MODEL_WEIGHTS_H
#define QKV_MODEL_WEIGHTS_H

#include "base/buf.h"
#include "nn/params.h"
#include "store/safetensors.h"

qkv_status qkv_weights_save(const qkv_params *params, const char *path);
/* Every parameter must be there with its shape; a message names the first that is not. */
qkv_status qkv_weights_load(qkv_params *params, const char *path);

/* What was taken from a file, in numbers and (the first few) names. */
typedef struct qkv_weights_taken {
    size_t taken, fresh,
        unused; /* parameters found; not found, or of another shape; tensors that nothing wanted */
    qkv_buf fresh_names, unused_names;
} qkv_weights_taken;

/* Takes what has the same name and shape, as a start for another task.
 * The names in *out are to be freed in any case. */
qkv_status qkv_weights_take(qkv_params *params, const char *path, qkv_weights_taken *out);
void qkv_weights_taken_free(qkv_weights_taken *t);
/* Counts a parameter that was found, or was not. */
void qkv_weights_note(qkv_weights_taken *t, const char *name, bool found);

/* Binds every parameter to the file, which stays open: floats are read where they lie; bf16, int8
 * and int4 matrices as qkv_weights_quantize wrote them; other float types are converted. Nothing is
 * checked but names, types and shapes. */
qkv_status qkv_weights_map(qkv_params *params, const char *path, qkv_safetensors *file);

/* Binds every parameter of `to`, declared as `from` was: to the values of `from`, and where those
 * are quantized to reals of its own. */
qkv_status qkv_weights_plain(const qkv_params *from, qkv_params *to);

/* The same of one parameter and a tensor of floats of its size: where it lies, if it can be read
 * there, else as a copy. The tensor's file must stay open. */
qkv_status qkv_weights_bind(qkv_param *p, const qkv_stored *from);

/* Refuses parameters that are NaN or infinite, by name and element. */
qkv_status qkv_weights_check(const qkv_params *params);

/* Writes the parameters with their matrices quantized: X as BF16, as I8 with X.scale (rows), or
 * as U8 (rows, bytes of a row) with X.scale (rows, groups); base/weight_format.h has the layout.
 * Vectors and small matrices stay F32. A table of n-grams, whose rows are as short as there are
 * classes, is taken as one row of numbers in blocks of QKV_TABLE_BLOCK, the last filled with zeros:
 * I8 (blocks, QKV_TABLE_BLOCK) with X.scale (blocks), for 4 bits too, or BF16. It is floats again
 * once it is opened. */
enum { QKV_TABLE_BLOCK = 64 };
qkv_status qkv_weights_quantize(const qkv_params *params, qkv_weight_format to, const char *path);

#endif
