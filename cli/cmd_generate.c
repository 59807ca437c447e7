/* qkv generate DIR --prompt TEXT: what the model writes after the prompt, as it comes. */
#include "command.h"
#include "input_lines.h"
#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static const cli_option options[] = {
    {.name = "prompt",
     .letter = 'p',
     .kind = CLI_TEXT,
     .value = "TEXT",
     .help = "goes on from here (default: each line on stdin is a prompt)"},
    {.name = "tokens",
     .letter = 'n',
     .kind = CLI_INT,
     .value = "N",
     .initial = "256",
     .min = 1,
     .max = 1e9,
     .help = "tokens to write at most"},
    {.name = "temperature",
     .kind = CLI_REAL,
     .value = "X",
     .initial = "0.8",
     .min = 0,
     .max = 1000,
     .help = "below 1 surer, above 1 wilder; 0: always the likeliest token"},
    {.name = "top-k",
     .kind = CLI_INT,
     .value = "K",
     .initial = "0",
     .min = 0,
     .max = 1e9,
     .help = "only the K likeliest tokens; 0: all"},
    {.name = "top-p",
     .kind = CLI_REAL,
     .value = "P",
     .initial = "1",
     .min = 0,
     .max = 1,
     .help = "only the likeliest tokens that together have probability P"},
    {.name = "min-p",
     .kind = CLI_REAL,
     .value = "P",
     .initial = "0",
     .min = 0,
     .max = 1,
     .help = "only tokens with at least P times the probability of the likeliest"},
    {.name = "typical",
     .kind = CLI_REAL,
     .value = "P",
     .initial = "1",
     .min = 0,
     .max = 1,
     .help = "only the tokens nearest to the expected surprise that together have probability P"},
    {.name = "repetition",
     .kind = CLI_REAL,
     .value = "X",
     .initial = "1",
     .min = 0,
     .max = 100,
     .help = "above 1 tokens that occurred become less likely"},
    {.name = "seed",
     .kind = CLI_INT,
     .value = "S",
     .help = "the same seed, the same text (default: a fresh one, said on stderr)"},
    {.name = "samples",
     .kind = CLI_INT,
     .value = "N",
     .initial = "1",
     .min = 1,
     .max = 1e6,
     .help = "texts for a prompt, an empty line between; the seeds are S, S + 1, …"},
    {.name = "min-tokens",
     .kind = CLI_INT,
     .value = "N",
     .min = 0,
     .max = 1e9,
     .help = "tokens to write at least"},
    {.name = "window",
     .kind = CLI_INT,
     .value = "N",
     .min = 2,
     .max = 1e9,
     .help = "tokens that the model sees (default: as many as in training); slides when full"},
    {.name = "stop",
     .kind = CLI_EACH,
     .value = "TEXT",
     .help = "end before this text; may be given many times"},
    {.name = "forbid",
     .kind = CLI_EACH,
     .value = "WORD",
     .help = "a word that must not occur; may be given many times"},
    {.name = "echo", .kind = CLI_FLAG, .help = "print the prompt first"},
    {.name = "json",
     .kind = CLI_FLAG,
     .help = "one JSON object a text: text, tokens, log_prob, end, rates, seed"},
    CLI_OPTION_LINES,
    CLI_OPTION_MAX_LEN,
    CLI_OPTIONS_MACHINE,
};

static bool print_piece(void *user, const char *text, size_t len) {
    (void)user;
    fwrite(text, 1, len, stdout);
    return fflush(stdout) == 0; /* nobody reads any more: stop */
}

static void print_json(const char *text, const qkv_generated *g, uint64_t seed) {
    static const char *const ends[] = {"tokens", "text", "stop", "callback"};
    const double rest = g->seconds - g->prompt_seconds;
    printf("{\"text\":");
    cli_json_string(stdout, text, strlen(text));
    printf(",\"prompt_tokens\":%zu,\"tokens\":%zu,\"log_prob\":%.6g,\"end\":\"%s\"",
           g->prompt_tokens, g->tokens, g->log_prob, ends[g->end]);
    printf(",\"prompt_tokens_per_s\":%.6g,\"tokens_per_s\":%.6g",
           g->prompt_seconds > 0 ? (double)g->prompt_tokens / g->prompt_seconds : 0,
           rest > 0 && g->tokens > 1 ? (double)(g->tokens - 1) / rest : 0);
    printf(",\"seed\":%llu}", (unsigned long long)seed);
}

/* A seed short enough to be typed, drawn where nothing repeats. */
static uint64_t fresh_seed(void) {
    uint32_t seed = 0;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) seed = (uint32_t)time(NULL);
    return seed % 1000000000;
}

static qkv_status answer(const qkv_text_model *m, qkv_text prompt, qkv_generate_options *o,
                         const cli_args *a, char end) {
    const bool json = cli_flag(a, "json");
    char *text = NULL;
    qkv_generated about;
    if (!json && cli_flag(a, "echo")) fwrite(prompt.data, 1, prompt.len, stdout);
    const qkv_status status =
        qkv_generate(m, prompt.data, prompt.len, o, json ? &text : NULL, &about);
    if (status == QKV_OK && json) print_json(text, &about, o->seed);
    if (status == QKV_OK || (!json && about.tokens)) putchar(end);
    fflush(stdout);
    qkv_text_free(text);
    return status;
}

/* As many texts as were asked for, each with a seed of its own. */
static qkv_status answer_each(const qkv_text_model *m, qkv_text prompt,
                              const qkv_generate_options *o, const cli_args *a, char end) {
    const int64_t samples = cli_int(a, "samples");
    qkv_generate_options own = *o;
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < samples && status == QKV_OK; i++) {
        if (i && end == '\n' && !cli_flag(a, "json")) putchar(end);
        own.seed = o->seed + (uint64_t)i;
        status = answer(m, prompt, &own, a, end);
    }
    return status;
}

static int answer_all(const qkv_text_model *m, qkv_generate_options *o, const cli_args *a) {
    cli_lines lines = cli_lines_of(a);
    const char *prompt = cli_text(a, "prompt");
    qkv_status status = QKV_OK;
    if (prompt)
        status = answer_each(m, (qkv_text){prompt, strlen(prompt)}, o, a, cli_lines_end(&lines));
    while (!prompt && status == QKV_OK && cli_lines_next(&lines, STDIN_FILENO))
        for (size_t i = 0; i < lines.n && status == QKV_OK; i++)
            status = answer_each(m, lines.line[i], o, a, cli_lines_end(&lines));
    cli_lines_free(&lines);
    return status == QKV_OK ? 0 : cli_fail(status);
}

/* The values of an option that may be given many times. */
static size_t collect(const cli_args *a, const char *name, qkv_text *out) {
    size_t n = 0, cursor = 0;
    for (const char *text; (text = cli_next(a, name, &cursor));)
        out[n++] = (qkv_text){text, strlen(text)};
    return n;
}

static int run(const cli_args *a) {
    cli_use_machine(a);
    qkv_text *words = calloc(2 * (a->n_given + 1), sizeof *words), *stops = words + a->n_given + 1;
    if (!words) return cli_usage_error("out of memory");
    qkv_generate_options o = {.repetition = cli_real(a, "repetition"),
                              .temperature = cli_real(a, "temperature"),
                              .top_k = (int32_t)cli_int(a, "top-k"),
                              .typical = cli_real(a, "typical"),
                              .top_p = cli_real(a, "top-p"),
                              .min_p = cli_real(a, "min-p"),
                              .seed = (uint64_t)cli_int(a, "seed"),
                              .tokens = (int32_t)cli_int(a, "tokens"),
                              .min_tokens = (int32_t)cli_int(a, "min-tokens"),
                              .window = (int32_t)cli_int(a, "window"),
                              .stop = stops,
                              .n_stop = collect(a, "stop", stops),
                              .forbidden = words,
                              .n_forbidden = collect(a, "forbid", words),
                              .write = cli_flag(a, "json") ? NULL : print_piece};
    qkv_text_model *m;
    const qkv_status status = cli_open_model(a, &m);
    int code = status == QKV_OK ? 0 : cli_fail(status);
    if (status == QKV_OK) {
        const bool fresh = !cli_given(a, "seed");
        if (fresh) o.seed = fresh_seed();
        code = answer_all(m, &o, a);
        if (fresh && code == 0 && o.temperature > 0)
            cli_say(stderr, 5, "qkv: --seed %u repeats this", (unsigned)o.seed);
        qkv_text_model_close(m);
    }
    free(words);
    return code;
}

const cli_command command_generate = {
    .usage = "DIR --prompt TEXT [options]",
    .examples = "qkv generate bard --prompt \"ROMEO:\" --tokens 200\n"
                "qkv generate bard --prompt \"ROMEO:\" --samples 5 --seed 1\n"
                "qkv generate bard --prompt \"ROMEO:\" --temperature 0 --stop JULIET\n",
    .about = "Writes text that goes on from the prompt, as it comes.",
    CLI_OPTIONS(options),
    .min_rest = 1,
    .max_rest = 1,
    .run = run,
};
