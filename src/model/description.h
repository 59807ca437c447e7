/* A model described from its declarations alone: shapes, parameters, work and memory, part by part
 * and in all (qkv_description, see qkv.h). */
#ifndef QKV_MODEL_DESCRIBE_H
#define QKV_MODEL_DESCRIBE_H

#include "model/model.h"

/* Freed by qkv_description_free. */
qkv_status qkv_describe_make(const qkv_model *m, int64_t batch, int64_t length,
                             qkv_description *out);
/* The configuration of the model described. */
const qkv_config *qkv_description_config(const qkv_description *d);

/* "201399600" → "201,399,600". */
void qkv_print_grouped(double whole, char out[40]);

#endif
