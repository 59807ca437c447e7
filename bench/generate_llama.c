/* llama.cpp on a GGUF file of generate_gguf.py: tokens per second of a prompt and after it, through
 * its C interface.
 *
 *     generate_llama MODEL.gguf LIBRARIES [prompt 256] [tokens 32] [threads 2] [repeat 3]
 *
 * bench/generate.sh builds and runs it. LIBRARIES is the folder with llama.cpp's shared libraries,
 * where it finds the one for this CPU. The ids are those of `qkv bench generate`, and the likeliest
 * token follows, as there. Prints one JSON object. */
#include <ggml-backend.h>
#include <llama.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void quiet(enum ggml_log_level level, const char *text, void *user) {
    (void)user;
    if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

static llama_token likeliest(struct llama_context *c, int vocab) {
    const float *x = llama_get_logits_ith(c, -1);
    int best = 0;
    for (int i = 1; i < vocab; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

int main(int argc, char **argv) {
    const int prompt = argc > 3 ? atoi(argv[3]) : 256, tokens = argc > 4 ? atoi(argv[4]) : 32;
    const int threads = argc > 5 ? atoi(argv[5]) : 2, repeat = argc > 6 ? atoi(argv[6]) : 3;
    if (argc < 3 || prompt < 1 || tokens < 1) return 2;
    llama_log_set(quiet, NULL);
    ggml_backend_load_all_from_path(argv[2]);
    struct llama_model_params mp = llama_model_default_params();
    mp.n_gpu_layers = 0;
    struct llama_model *m = llama_model_load_from_file(argv[1], mp);
    if (!m) return 1;
    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = 1024, cp.n_batch = cp.n_ubatch = 512;
    cp.n_threads = cp.n_threads_batch = threads;
    struct llama_context *c = llama_init_from_model(m, cp);
    const int vocab = llama_vocab_n_tokens(llama_model_get_vocab(m));
    llama_token *ids = malloc((size_t)prompt * sizeof *ids);
    if (!c || !ids) return 1;
    double first = 1e30, after = 1e30;
    for (int r = 0; r <= repeat; r++) { /* the first one warms up */
        llama_memory_clear(llama_get_memory(c), true);
        for (int i = 0; i < prompt; i++) ids[i] = (i * 7919 + 13) % 31000;
        const double start = now();
        if (llama_decode(c, llama_batch_get_one(ids, prompt))) return 1;
        llama_token next = likeliest(c, vocab);
        const double begun = now();
        for (int i = 0; i < tokens; i++) {
            if (llama_decode(c, llama_batch_get_one(&next, 1))) return 1;
            next = likeliest(c, vocab);
        }
        const double end = now();
        if (r > 0 && begun - start < first) first = begun - start;
        if (r > 0 && end - begun < after) after = end - begun;
    }
    printf("{\"prompt_tokens_per_s\":%.2f,\"tokens_per_s\":%.2f,\"threads\":%d}\n", prompt / first,
           tokens / after, threads);
    return 0;
}
