/* A GGUF file as a model: what src/folder asks when it is given a file instead of a folder.
 *
 *   entries of the header ─► configuration        \  by the rows of a family (gguf_families.h)
 *   named tensors         ─► parameters, in place /
 *
 * Matrices are used in the file's blocks where they lie (kern/isa/gemm_block.h). An architecture,
 * entry, tensor or type that no row knows is refused by its name. */
#ifndef QKV_FOREIGN_GGUF_MODEL_H
#define QKV_FOREIGN_GGUF_MODEL_H

#include "model/model.h"

/* Is this a regular file that begins as a GGUF file does? */
bool qkv_is_gguf_file(const char *path);
/* The configuration that the entries of the file stand for. */
qkv_status qkv_gguf_configure(const char *path, qkv_config *config);
/* Binds every parameter of a model of this configuration to the file, which stays open with it. */
qkv_status qkv_gguf_bind(const char *path, qkv_model *m);

#endif
