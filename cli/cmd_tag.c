/* qkv tag DIR: lines on stdin, their words with labels on stdout, in order, as they come. */
#include "command.h"
#include "why.h"
#include "input_lines.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const cli_option options[] = {
    {.name = "inline",
     .kind = CLI_FLAG,
     .help = "the line itself, with its spans in brackets (or word/label)"},
    {.name = "json",
     .kind = CLI_FLAG,
     .help = "an object per line: text, spans, words; places are bytes of the line"},
    {.name = "words",
     .kind = CLI_FLAG,
     .help = "blanks alone separate words: the text is cut already"},
    CLI_OPTION_EXPLAIN,
    CLI_OPTION_LINES,
    CLI_OPTION_MAX_LEN,
    CLI_OPTIONS_MACHINE,
};

/* One text and its answer. */
typedef struct tagged {
    const qkv_text_model *m;
    qkv_text text;
    const qkv_tag_word *words;
    size_t n;
    qkv_tag_span *spans; /* room for n; those found */
    size_t n_spans;
} tagged;

static const char *label_of(const tagged *t, size_t i) {
    return qkv_text_model_label(t->m, (size_t)t->words[i].label);
}

static void put(const tagged *t, uint32_t begin, uint32_t end) {
    fwrite(t->text.data + begin, 1, end - begin, stdout);
}

static void print_conll(const tagged *t) {
    for (size_t i = 0; i < t->n; i++) {
        put(t, t->words[i].begin, t->words[i].end);
        printf("\t%s\n", label_of(t, i));
    }
}

/* The text with its spans in brackets: [John Smith PER] lives in [Paris LOC]. */
static void print_spans(const tagged *t) {
    uint32_t at = 0;
    for (size_t i = 0; i < t->n_spans; i++) {
        const qkv_tag_span *s = &t->spans[i];
        put(t, at, s->begin);
        putchar('[');
        put(t, s->begin, s->end);
        printf(" %s]", s->type);
        at = s->end;
    }
    put(t, at, (uint32_t)t->text.len);
}

static void print_words(const tagged *t) {
    for (size_t i = 0; i < t->n; i++) {
        if (i) putchar(' ');
        put(t, t->words[i].begin, t->words[i].end);
        printf("/%s", label_of(t, i));
    }
}

static void json_item(const tagged *t, size_t i, bool span) {
    const uint32_t begin = span ? t->spans[i].begin : t->words[i].begin,
                   end = span ? t->spans[i].end : t->words[i].end;
    const char *label = span ? t->spans[i].type : label_of(t, i);
    printf("%s{\"text\":", i ? "," : "");
    cli_json_string(stdout, t->text.data + begin, end - begin);
    fputs(",\"label\":", stdout);
    cli_json_string(stdout, label, strlen(label));
    printf(",\"begin\":%u,\"end\":%u,\"probability\":%.6g}", begin, end,
           (double)(span ? t->spans[i].probability : t->words[i].probability));
}

static void print_json(const tagged *t) {
    const bool spans = qkv_tags_are_spans(t->m);
    fputs("{\"text\":", stdout);
    cli_json_string(stdout, t->text.data, t->text.len);
    fputs(",\"spans\":[", stdout);
    for (size_t i = 0; i < (spans ? t->n_spans : t->n); i++) json_item(t, i, spans);
    fputs("],\"words\":[", stdout);
    for (size_t i = 0; i < t->n; i++) json_item(t, i, false);
    fputs("]}", stdout);
}

static void print(const cli_args *a, const tagged *t) {
    if (cli_flag(a, "json"))
        print_json(t);
    else if (!cli_flag(a, "inline"))
        print_conll(t);
    else if (qkv_tags_are_spans(t->m))
        print_spans(t);
    else
        print_words(t);
}

/* Answers the lines of a block. */
static qkv_status answer(const cli_args *a, const qkv_text_model *m, const cli_lines *lines) {
    qkv_tags found;
    qkv_status status = qkv_tag(m, lines->line, lines->n, cli_flag(a, "words"), &found);
    if (status != QKV_OK) return status;
    qkv_tag_span *spans = malloc((found.first[found.n] + 1) * sizeof *spans);
    for (size_t i = 0; i < lines->n && spans; i++) {
        tagged t = {.m = m,
                    .text = lines->line[i],
                    .words = found.words + found.first[i],
                    .n = found.first[i + 1] - found.first[i],
                    .spans = spans};
        if (qkv_tags_are_spans(m)) t.n_spans = qkv_tag_spans(m, t.words, t.n, spans);
        print(a, &t);
        putchar(cli_lines_end(lines));
    }
    fflush(stdout);
    if (!spans) fputs("qkv: out of memory for the spans\n", stderr);
    free(spans);
    qkv_tags_free(&found);
    return QKV_OK;
}

static int run(const cli_args *a) {
    cli_use_machine(a);
    static const char *const answers[] = {"inline", "words", NULL};
    const int refused = cli_explain_check(a, answers);
    if (refused) return refused;
    qkv_text_model *m;
    qkv_status status = cli_open_model(a, &m);
    if (status != QKV_OK) return cli_fail(status);
    if (cli_flag(a, "explain")) {
        qkv_tags none;
        status = qkv_tag(m, NULL, 0, false, &none); /* is it a tagger? */
        const int code = status == QKV_OK ? cli_explain_run(a, m) : cli_fail(status);
        if (status == QKV_OK) qkv_tags_free(&none);
        qkv_text_model_close(m);
        return code;
    }
    cli_lines lines = cli_lines_of(a);
    while (status == QKV_OK && cli_lines_next(&lines, STDIN_FILENO)) status = answer(a, m, &lines);
    cli_lines_free(&lines);
    qkv_text_model_close(m);
    return status == QKV_OK ? 0 : cli_fail(status);
}

const cli_command command_tag = {
    .usage = "DIR [options] < lines",
    .examples = "echo \"John Smith lives in Paris\" | qkv tag names\n"
                "qkv tag names --json < lines.txt > spans.jsonl\n"
                "echo \"John Smith lives in Paris\" | qkv tag names --explain\n",
    .about =
        "Prints word<TAB>label for each word of a line, and an empty line after it. Words are\n"
        "cut at blanks and punctuation.",
    CLI_OPTIONS(options),
    .min_rest = 1,
    .max_rest = 1,
    .run = run,
};
