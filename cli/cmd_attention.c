/* qkv attention DIR TEXT: what every layer and head looks at. */
#include "command.h"
#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const cli_option options[] = {
    {.name = "output",
     .letter = 'o',
     .kind = CLI_TEXT,
     .value = "FILE",
     .help = "write here: .svg is a picture, .html a page to point at, .json and .txt as printed"},
    CLI_OPTION_TREES,
    CLI_OPTION_PAIRS,
    CLI_OPTION_MAX_LEN,
    CLI_OPTION_JSON,
    CLI_OPTIONS_MACHINE,
};

static int show(const cli_args *a, const qkv_attention_parts *parts) {
    const char *path = cli_text(a, "output");
    char *text = NULL;
    qkv_attention_style style = {.how = QKV_SHOW_TABLE};
    if (cli_flag(a, "json") || (path && cli_ends_in(path, ".json"))) style.how = QKV_SHOW_JSON;
    if (path && cli_ends_in(path, ".svg")) style.how = QKV_SHOW_SVG;
    if (path && cli_ends_in(path, ".html")) style.how = QKV_SHOW_HTML;
    if (!path) {
        style.colour = *cli_style_for(stdout).bold != 0;
        style.columns = cli_columns(STDOUT_FILENO);
        if (style.how == QKV_SHOW_TABLE) {
            cli_say(stdout, 2, "%s", parts->title);
            cli_say(stdout, 2, "%s\n", parts->subtitle);
        }
    }
    const qkv_status status = qkv_attention_show(parts, &style, &text);
    return path ? cli_write_to(path, status, text) : cli_print(status, text);
}

static int run(const cli_args *a) {
    cli_use_machine(a);
    qkv_text_model *m;
    qkv_attention_parts parts;
    if (!cli_ending_is(cli_text(a, "output"), ".svg .html .json .txt"))
        return qkv_status_exit_code(QKV_USAGE);
    qkv_status status = cli_open_model(a, &m);
    if (status != QKV_OK) return cli_fail(status);
    const qkv_text text = {a->rest[1], strlen(a->rest[1])};
    const qkv_text target = {a->n_rest > 2 ? a->rest[2] : "",
                             a->n_rest > 2 ? strlen(a->rest[2]) : 0};
    status = qkv_attention_of(m, &text, a->n_rest > 2 ? &target : NULL, &parts);
    if (status == QKV_OK && qkv_text_model_cut(m))
        cli_say(stderr, 5, "qkv: the text is longer than the model reads and was cut");
    qkv_text_model_close(m);
    if (status != QKV_OK) return cli_fail(status);
    const int code = show(a, &parts);
    qkv_attention_free(&parts);
    return code;
}

const cli_command command_attention = {
    .usage = "DIR TEXT [TARGET] [options]",
    .examples = "qkv attention reviews \"a fine film\"\n"
                "qkv attention reviews \"a fine film\" -o attention.html\n"
                "qkv attention translator \"two men\" \"zwei Männer\" -o attention.svg\n",
    .about = "Shows the attention weights of every layer and head over a text; for a translator "
             "also over its\n"
             "target (without one: over what it translates the text to). Rows look at columns.",
    CLI_OPTIONS(options),
    .min_rest = 2,
    .max_rest = 3,
    .run = run,
};
