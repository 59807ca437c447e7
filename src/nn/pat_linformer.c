/* Linformer (Wang et al. 2020): keys and values are projected along the sequence from N rows to r,
 * K' = E·K, V' = F·V, and queries attend to those r rows; see nn/multihead.c. E and F are (r,
 * max_len), and a sequence of length n uses their first n columns; one shorter than r uses the
 * first n rows only, so it is never lengthened. With E = F = I and r ≥ n this is full attention.
 * There is no causal form: every projected row mixes all positions. */
#include "nn/mask_pattern.h"

int qkv_spans_linformer(const void *pattern, int32_t n_k, int32_t q0, int32_t q1, qkv_span *out) {
    (void)pattern, (void)q0, (void)q1;
    out[0] = qkv_span_of(0, n_k, -QKV_SPAN_ANY, QKV_SPAN_ANY);
    return 1;
}
