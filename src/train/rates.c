/* Heights come from the names of the parameters: "encoder.layers.3.…" is a layer of its stack. */
#include "train/rates.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char marker[] = ".layers.";

/* The layer that a name speaks of, −1: none. *stack gets the length of the name of its stack. */
static int64_t layer_of(const char *name, size_t *stack) {
    const char *at = strstr(name, marker);
    if (!at) return -1;
    *stack = (size_t)(at - name);
    return strtol(at + strlen(marker), NULL, 10);
}

/* Layers of the stack that `name` begins with. */
static int64_t layers_of(const qkv_params *p, const char *name, size_t stack) {
    int64_t most = 0;
    for (size_t i = 0; i < p->n; i++) {
        size_t length = 0;
        const int64_t layer = layer_of(p->list[i]->name, &length);
        if (layer >= most && length == stack && memcmp(p->list[i]->name, name, stack) == 0)
            most = layer + 1;
    }
    return most;
}

static bool is_input(const char *name) {
    return strstr(name, "embedding") || strstr(name, ".position.") || strstr(name, ".depth.");
}

static void find_heights(const qkv_params *p, int64_t *height) {
    int64_t top = 0;
    for (size_t i = 0; i < p->n; i++) {
        size_t stack = 0;
        const int64_t layer = layer_of(p->list[i]->name, &stack);
        height[i] = layer < 0 ? 0 : layers_of(p, p->list[i]->name, stack) - layer;
        if (height[i] > top) top = height[i];
    }
    for (size_t i = 0; i < p->n; i++)
        if (height[i] == 0 && is_input(p->list[i]->name)) height[i] = top + 1;
}

static bool is_of_head(const char *name) {
    return strncmp(name, "head.", 5) == 0;
}

qkv_status qkv_rates_init(qkv_rates *r, qkv_optim *optim, const qkv_rates_spec *spec) {
    *r = (qkv_rates){.optim = optim, .spec = *spec, .open = -1};
    if (spec->decay == 1 && spec->head == 1 && spec->unfreeze == 0) return QKV_OK;
    const size_t n = optim->params->n;
    r->height = qkv_zalloc(n, sizeof *r->height);
    r->scale = qkv_zalloc(n, sizeof *r->scale);
    if (!r->height || !r->scale) {
        qkv_rates_free(r);
        return QKV_FAILED;
    }
    find_heights(optim->params, r->height);
    return QKV_OK;
}

void qkv_rates_free(qkv_rates *r) {
    if (r->optim && r->scale && r->optim->lr_scale == r->scale) r->optim->lr_scale = NULL;
    qkv_free(r->height);
    qkv_free(r->scale);
    *r = (qkv_rates){0};
}

void qkv_rates_set(qkv_rates *r, int64_t epoch) {
    if (!r->height) return;
    const qkv_rates_spec *s = &r->spec;
    const int64_t open = s->unfreeze ? epoch / s->unfreeze : INT64_MAX;
    if (open == r->open) return;
    qkv_optim_settle(r->optim); /* rows that are behind were so under the old rates */
    r->open = open;
    for (size_t i = 0; i < r->optim->params->n; i++) {
        const double head = is_of_head(r->optim->params->list[i]->name) ? s->head : 1;
        r->scale[i] = r->height[i] > open ? 0 : head * pow(s->decay, (double)r->height[i]);
    }
    r->optim->lr_scale = r->scale;
}
