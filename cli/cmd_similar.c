/* qkv similar DIR --in FILE: the lines of a file that are nearest to each text. */
#include "command.h"
#include "input_lines.h"
#include "terminal.h"

#include <stdlib.h>
#include <unistd.h>

static const cli_option options[] = {
    {.name = "in",
     .kind = CLI_TEXT,
     .value = "FILE",
     .help = "the texts to look among, one per line (.gz, .xz and .zst too)"},
    {.name = "index",
     .kind = CLI_TEXT,
     .value = "FILE",
     .help = "keep the vectors of these texts there, for the next time; they are made again when "
             "the model or the texts are others"},
    {.name = "top",
     .kind = CLI_INT,
     .value = "K",
     .initial = "10",
     .min = 1,
     .max = 1000000,
     .help = "how many of the nearest"},
    {.name = "words",
     .kind = CLI_FLAG,
     .help = "the different words of the file instead of its lines"},
    {.name = "json",
     .kind = CLI_FLAG,
     .help = "one JSON object per text: text, nearest (cosine, line, text)"},
    CLI_OPTION_PAIRS,
    CLI_OPTION_MAX_LEN,
    CLI_OPTION_LINES,
    CLI_OPTIONS_MACHINE,
};

/* On a terminal: how far it is. */
static bool show_progress(void *user, size_t done, size_t all) {
    const bool *shown = user;
    if (*shown) fprintf(stderr, "\rvectors %zu of %zu%s", done, all, done == all ? "\n" : "");
    return true;
}

static void print_nearest(const cli_args *a, qkv_text text, const qkv_neighbour *found,
                          size_t top) {
    const bool json = cli_flag(a, "json");
    if (json) {
        fputs("{\"text\":", stdout);
        cli_json_string(stdout, text.data, text.len);
        fputs(",\"nearest\":[", stdout);
    }
    for (size_t i = 0; i < top && found[i].text.data; i++) {
        const qkv_neighbour *n = &found[i];
        if (json) {
            printf("%s{\"cosine\":%.6g,\"line\":%lld,\"text\":", i ? "," : "", (double)n->cosine,
                   (long long)n->line);
            cli_json_string(stdout, n->text.data, n->text.len);
            putchar('}');
        } else {
            printf("%.4f\t%lld\t", (double)n->cosine, (long long)n->line);
            fwrite(n->text.data, 1, n->text.len, stdout);
            putchar('\n');
        }
    }
    if (json) puts("]}");
}

/* Answers a block of texts; between the answers to two there is an empty line. */
static qkv_status answer(const cli_args *a, const qkv_neighbours *s, const cli_lines *lines,
                         bool *began) {
    const size_t wanted = (size_t)cli_int(a, "top"), all = qkv_neighbours_count(s),
                 top = wanted < all ? wanted : all;
    qkv_neighbour *found = calloc(lines->n * top, sizeof *found);
    if (!found) {
        fputs("qkv: out of memory for the answers\n", stderr);
        exit(qkv_status_exit_code(QKV_FAILED));
    }
    const qkv_status status = qkv_neighbours_find(s, lines->line, lines->n, top, found);
    for (size_t i = 0; i < lines->n && status == QKV_OK; i++) {
        if (*began && !cli_flag(a, "json")) putchar('\n');
        print_nearest(a, lines->line[i], found + i * top, top);
        *began = true;
    }
    fflush(stdout);
    free(found);
    return status;
}

static qkv_status look(const cli_args *a, const qkv_text_model *m) {
    bool shown = isatty(STDERR_FILENO), began = false;
    const qkv_neighbours_request request = {.in = cli_text(a, "in"),
                                            .index = cli_text(a, "index"),
                                            .words = cli_flag(a, "words"),
                                            .progress = show_progress,
                                            .user = &shown};
    qkv_neighbours *s;
    qkv_status status = qkv_neighbours_open(m, &request, &s);
    if (status != QKV_OK) return status;
    cli_lines lines = cli_lines_of(a);
    while (status == QKV_OK && cli_lines_or_texts(&lines, a, STDIN_FILENO))
        status = answer(a, s, &lines, &began);
    cli_lines_free(&lines);
    qkv_neighbours_close(s);
    return status;
}

static int run(const cli_args *a) {
    cli_use_machine(a);
    if (!cli_given(a, "in")) return cli_usage_error("similar needs texts to look among: --in FILE");
    qkv_text_model *m;
    qkv_status status = cli_open_model(a, &m);
    if (status != QKV_OK) return cli_fail(status);
    status = look(a, m);
    if (status == QKV_OK && qkv_text_model_cut(m))
        cli_say(stderr, 5, "qkv: some texts are longer than the model reads and were cut");
    qkv_text_model_close(m);
    return status == QKV_OK ? 0 : cli_fail(status);
}

const cli_command command_similar = {
    .usage = "DIR --in FILE [TEXT…] [options] < lines",
    .examples = "qkv similar reviews --in train.txt \"a fine film\"\n"
                "qkv similar reviews --in archive.txt.gz --index archive.near --top 3 < new.txt\n"
                "qkv similar reviews --in train.txt --words fine\n",
    .about = "Prints cosine<TAB>line number<TAB>text of the lines of FILE whose vectors (qkv "
             "embed) are nearest to each text's, nearest first; an empty line between two "
             "answers. All lines are compared, so nothing is missed.",
    CLI_OPTIONS(options),
    .min_rest = 1,
    .max_rest = 100000,
    .run = run,
};
