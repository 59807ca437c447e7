/* qkv chat DIR: a conversation, on a terminal with the answer as it comes; through a pipe a message
 * a line. */
#include "command.h"
#include "terminal.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static const cli_option options[] = {
    {.name = "system",
     .letter = 's',
     .kind = CLI_TEXT,
     .value = "TEXT",
     .help = "what the model is told before the conversation"},
    {.name = "template",
     .kind = CLI_TEXT,
     .value = "FILE",
     .help = "a chat template (Jinja) instead of the model's own"},
    {.name = "tokens",
     .letter = 'n',
     .kind = CLI_INT,
     .value = "N",
     .initial = "1024",
     .min = 1,
     .max = 1e9,
     .help = "tokens of an answer at most"},
    {.name = "temperature",
     .kind = CLI_REAL,
     .value = "X",
     .initial = "0.7",
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
     .initial = "0.95",
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
     .help = "the same seed, the same answers (default: a fresh one)"},
    {.name = "json",
     .kind = CLI_FLAG,
     .help = "one JSON object an answer: text, prompt_tokens, tokens, end"},
    CLI_OPTIONS_MACHINE,
};

/* ---- Ctrl-C: stops the answer, and between answers the program ---- */

static volatile sig_atomic_t stop;

static void on_interrupt(int number) {
    (void)number;
    stop = 1;
}

static void catch_interrupt(bool on) {
    struct sigaction action = {.sa_handler = on ? on_interrupt : SIG_DFL};
    sigaction(SIGINT, &action, NULL);
}

/* ---- the conversation ---- */

typedef struct talk {
    const qkv_text_model *model;
    qkv_generate_options options;
    bool json, terminal;
    size_t kept; /* messages that /reset leaves: the system's */
    qkv_chat_message *messages;
    size_t n, cap;
} talk;

static bool add(talk *t, const char *role, const char *text, size_t len) {
    if (t->n == t->cap) {
        const size_t cap = t->cap ? 2 * t->cap : 16;
        qkv_chat_message *more = realloc(t->messages, cap * sizeof *more);
        if (!more) return false;
        t->messages = more;
        t->cap = cap;
    }
    char *copy = malloc(len + 1);
    if (!copy) return false;
    memcpy(copy, text, len);
    copy[len] = 0;
    t->messages[t->n++] = (qkv_chat_message){role, {copy, len}};
    return true;
}

static void drop(talk *t, size_t down_to) {
    while (t->n > down_to) free((char *)t->messages[--t->n].content.data);
}

static bool print_piece(void *user, const char *text, size_t len) {
    const talk *t = user;
    if (t->json) return !stop;
    fwrite(text, 1, len, stdout);
    return fflush(stdout) == 0 && !stop;
}

static void print_json(const char *text, const qkv_generated *g) {
    static const char *const ends[] = {"tokens", "text", "stop", "callback"};
    printf("{\"text\":");
    cli_json_string(stdout, text, strlen(text));
    printf(",\"prompt_tokens\":%zu,\"tokens\":%zu,\"end\":\"%s\"}\n", g->prompt_tokens, g->tokens,
           ends[g->end]);
    fflush(stdout);
}

/* Answers a message. An answer that was stopped is part of the conversation as far as it came. */
static qkv_status answer(talk *t, const char *message, size_t len) {
    char *text = NULL;
    qkv_generated about;
    const size_t before = t->n;
    if (!add(t, "user", message, len)) return QKV_FAILED;
    stop = 0;
    catch_interrupt(true);
    qkv_status status = qkv_chat(t->model, t->messages, t->n, &t->options, &text, &about);
    catch_interrupt(false);
    if (status == QKV_OK && t->json) print_json(text, &about);
    if (status == QKV_OK && !t->json) {
        fputs(stop ? " …\n" : "\n", stdout);
        fflush(stdout);
    }
    if (status == QKV_OK && !add(t, "assistant", text, strlen(text))) status = QKV_FAILED;
    if (status != QKV_OK) drop(t, before);
    t->options.seed++;
    qkv_text_free(text);
    return status;
}

/* ---- messages ---- */

/* One line; false: there are no more. */
static bool next_message(const talk *t, char **line, size_t *cap, size_t *len) {
    if (t->terminal) {
        fputs("> ", stderr);
        fflush(stderr);
    }
    const ssize_t n = getline(line, cap, stdin);
    if (n < 0) return false;
    *len = (size_t)n;
    while (*len && ((*line)[*len - 1] == '\n' || (*line)[*len - 1] == '\r')) --*len;
    (*line)[*len] = 0;
    return true;
}

static int converse(talk *t) {
    char *line = NULL;
    size_t cap = 0, len = 0;
    int code = 0;
    while (code == 0 && next_message(t, &line, &cap, &len)) {
        if (!strcmp(line, "/exit") || !strcmp(line, "/quit")) break;
        if (!strcmp(line, "/reset")) {
            drop(t, t->kept);
            if (t->terminal) cli_say(stderr, 0, "(a new conversation)");
            continue;
        }
        if (len == 0 && t->terminal) continue;
        const qkv_status status = answer(t, line, len);
        if (status != QKV_OK) code = cli_fail(status);
        if (status != QKV_OK && t->terminal) code = 0; /* the next message may do better */
    }
    if (t->terminal) fputs("\n", stderr);
    free(line);
    return code;
}

/* ---- the command ---- */

static uint64_t fresh_seed(void) {
    uint32_t seed = 0;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) seed = (uint32_t)time(NULL);
    return seed;
}

static qkv_status open_model(const cli_args *a, qkv_text_model **out) {
    const char *template = cli_text(a, "template");
    qkv_status status = qkv_text_model_open(a->rest[0], out);
    if (status == QKV_OK && template) status = qkv_text_model_read_template(*out, template);
    return status == QKV_OK ? qkv_text_model_prepare_chat(*out) : status;
}

static int run(const cli_args *a) {
    cli_use_machine(a);
    qkv_text_model *m = NULL;
    talk t = {.json = cli_flag(a, "json"),
              .terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)};
    t.options = (qkv_generate_options){.repetition = cli_real(a, "repetition"),
                                       .temperature = cli_real(a, "temperature"),
                                       .top_k = (int32_t)cli_int(a, "top-k"),
                                       .top_p = cli_real(a, "top-p"),
                                       .min_p = cli_real(a, "min-p"),
                                       .seed = cli_given(a, "seed") ? (uint64_t)cli_int(a, "seed")
                                                                    : fresh_seed(),
                                       .tokens = (int32_t)cli_int(a, "tokens"),
                                       .write = print_piece,
                                       .user = &t};
    const qkv_status status = open_model(a, &m);
    int code = status == QKV_OK ? 0 : cli_fail(status);
    const char *system = cli_text(a, "system");
    if (code == 0 && system && !add(&t, "system", system, strlen(system)))
        code = cli_usage_error("out of memory");
    t.model = m;
    t.kept = t.n;
    if (code == 0 && t.terminal)
        cli_say(stderr, 0, "/reset begins anew, Ctrl-C stops an answer, Ctrl-D leaves");
    if (code == 0) code = converse(&t);
    drop(&t, 0);
    free(t.messages);
    qkv_text_model_close(m);
    return code;
}

const cli_command command_chat = {
    .usage = "DIR [options]",
    .examples = "qkv chat SmolLM2-135M-Instruct.Q4_1.gguf\n"
                "qkv chat my-model --system \"Answer in one sentence.\" --temperature 0\n"
                "echo \"What is the capital of France?\" | qkv chat my-model\n",
    .about =
        "A conversation with a language model that was trained to converse, by the chat template\n"
        "in its files. On a terminal answers come as they are written; /reset begins a new\n"
        "conversation, Ctrl-C stops an answer. Through a pipe each line is a message.",
    CLI_OPTIONS(options),
    .min_rest = 1,
    .max_rest = 1,
    .run = run,
};
