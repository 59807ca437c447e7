/* qkv embed DIR: lines on stdin, one vector per line on stdout, in order, as they come; or one for
 * each of their words. */
#include "vectors.h"

#include <unistd.h>

static const cli_option options[] = {
    {.name = "digits",
     .kind = CLI_INT,
     .value = "N",
     .initial = "6",
     .min = 1,
     .max = 9,
     .help = "significant digits; 9 give a float back exactly"},
    {.name = "tokens",
     .kind = CLI_FLAG,
     .help = "a vector for each word, behind the word and a TAB; an empty line after each text"},
    {.name = "blanks", .kind = CLI_FLAG, .help = "with --tokens: blanks alone separate words"},
    {.name = "json",
     .kind = CLI_FLAG,
     .help =
         "a JSON array per line; with --tokens an object: words, with text, begin, end, vector"},
    CLI_OPTION_TREES,
    CLI_OPTION_PAIRS,
    CLI_OPTION_MAX_LEN,
    CLI_OPTION_LINES,
    CLI_OPTIONS_MACHINE,
};

static void print_numbers(const cli_args *a, const float *v, size_t width) {
    const bool json = cli_flag(a, "json");
    for (size_t i = 0; i < width; i++)
        printf("%s%.*g",
               i      ? json ? "," : " "
               : json ? "["
                      : "",
               (int)cli_int(a, "digits"), (double)v[i]);
    if (json) putchar(']');
}

static void print_vector(const cli_args *a, const qkv_text_model *m, const qkv_text *line,
                         float *v) {
    (void)line;
    print_numbers(a, v, qkv_embed_width(m));
}

/* ---- words ---- */

static void print_word(const cli_args *a, qkv_text text, qkv_word_place w, const float *v,
                       size_t width, bool first) {
    if (!cli_flag(a, "json")) {
        printf("%.*s\t", (int)(w.end - w.begin), text.data + w.begin);
        print_numbers(a, v, width);
        putchar('\n');
        return;
    }
    fputs(first ? "{\"text\":" : ",{\"text\":", stdout);
    cli_json_string(stdout, text.data + w.begin, w.end - w.begin);
    printf(",\"begin\":%u,\"end\":%u,\"vector\":", w.begin, w.end);
    print_numbers(a, v, width);
    putchar('}');
}

static qkv_status print_words(const cli_args *a, const qkv_text_model *m, const cli_lines *lines) {
    const size_t width = qkv_embed_width(m);
    qkv_word_vectors found;
    const qkv_status status =
        qkv_embed_words(m, lines->line, lines->n, cli_flag(a, "blanks"), &found);
    if (status != QKV_OK) return status;
    for (size_t i = 0; i < found.n; i++) {
        if (cli_flag(a, "json")) fputs("{\"words\":[", stdout);
        for (size_t k = found.first[i]; k < found.first[i + 1]; k++)
            print_word(a, lines->line[i], found.words[k], found.vectors + k * width, width,
                       k == found.first[i]);
        if (cli_flag(a, "json")) fputs("]}", stdout);
        putchar(cli_lines_end(lines));
    }
    fflush(stdout);
    qkv_word_vectors_free(&found);
    return QKV_OK;
}

static int run_words(const cli_args *a, const qkv_text_model *m) {
    cli_lines lines = cli_lines_of(a);
    qkv_status status = QKV_OK;
    while (status == QKV_OK && cli_lines_or_texts(&lines, a, STDIN_FILENO))
        status = print_words(a, m, &lines);
    cli_lines_free(&lines);
    return status == QKV_OK ? 0 : cli_fail(status);
}

static int run(const cli_args *a) {
    cli_use_machine(a);
    qkv_text_model *m;
    const qkv_status status = cli_open_model(a, &m);
    if (status != QKV_OK) return cli_fail(status);
    const cli_vectors vectors = {
        .width = qkv_embed_width(m), .compute = qkv_embed, .print = print_vector};
    const int code = cli_flag(a, "tokens") ? run_words(a, m) : cli_vectors_run(a, m, &vectors);
    qkv_text_model_close(m);
    return code;
}

const cli_command command_embed = {
    .usage = "DIR [TEXT…] [options] < lines",
    .examples = "echo \"a fine film\" | qkv embed reviews\n"
                "qkv embed reviews --json < lines.txt > vectors.jsonl\n"
                "qkv embed reviews --tokens \"a fine film\"\n",
    .about =
        "Prints one vector per line: the pooled output of the encoder (of a language model: the "
        "mean of its\n"
        "last layer), numbers separated by blanks. The same line gives the same vector "
        "whatever stands beside it. (What is nearest to a text, qkv similar says.)",
    CLI_OPTIONS(options),
    .min_rest = 1,
    .max_rest = 100000,
    .run = run,
};
