/* safetensors: one file, or several that an index names. */
#include "foreign/container.h"

static qkv_status open_file(const char *path, qkv_container *c) {
    qkv_safetensors file;
    QKV_TRY(qkv_safetensors_open(path, &file));
    if (!QKV_PUSH(c->parts, file)) {
        qkv_safetensors_close(&file);
        return QKV_FAILED;
    }
    for (size_t i = 0; i < file.n; i++)
        if (!QKV_PUSH(c->tensors, ((qkv_foreign_tensor){.stored = file.tensors[i]})))
            return QKV_FAILED;
    return QKV_OK;
}

static qkv_status open_index(const char *path, qkv_container *c) {
    return qkv_container_shards(path, c, open_file);
}

const qkv_container_kind qkv_container_safetensors = {
    .name = "safetensors",
    .summary = "a Hugging Face folder with config.json and model.safetensors",
    .file = "model.safetensors",
    .open = open_file,
};

const qkv_container_kind qkv_container_safetensors_shards = {
    .name = "safetensors, in shards",
    .summary = "the same with model.safetensors.index.json and the files that it names",
    .file = "model.safetensors.index.json",
    .open = open_index,
};
