#include "why.h"
#include "input_lines.h"
#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct explaining {
    const cli_args *a;
    const qkv_text_model *m;
    qkv_explain_by how;
    size_t before; /* texts explained */
    bool said;     /* that texts were cut */
    /* for the page: all that was found */
    qkv_explanations *found;
    size_t n, cap;
} explaining;

int cli_explain_check(const cli_args *a, const char *const *others) {
    if (!cli_ending_is(cli_text(a, "output"), ".html")) return qkv_status_exit_code(QKV_USAGE);
    for (; cli_flag(a, "explain") && *others; others++)
        if (cli_given(a, *others))
            return cli_usage_error("--explain explains the one answer; it takes no --%s", *others);
    if (cli_flag(a, "explain")) return 0;
    if (cli_given(a, "by")) return cli_usage_error("--by says how to explain: --explain");
    if (cli_given(a, "output"))
        return cli_usage_error("-o writes why an answer was given: --explain");
    return 0;
}

static int out_of_memory(void) {
    fputs("qkv: out of memory for the explanations\n", stderr);
    return qkv_status_exit_code(QKV_FAILED);
}

/* The answers to one text as JSON: the object of a classifier, all words of a tagger in one. */
static int print_json(const qkv_text *text, const qkv_explanations *e) {
    const qkv_explain_style style = {.how = QKV_SHOW_JSON};
    const bool whole = e->n == 1 && e->at[0].begin == 0 && e->at[0].end == text->len;
    if (!whole) {
        fputs("{\"text\":", stdout);
        cli_json_string(stdout, text->data, text->len);
        fputs(",\"answers\":[", stdout);
    }
    for (size_t i = 0; i < e->n; i++) {
        char *json;
        const qkv_status status = qkv_explanations_show(&e->at[i], 1, &style, &json);
        if (status != QKV_OK) return cli_fail(status);
        if (i) putchar(',');
        fwrite(json, 1, strlen(json) - 1, stdout); /* without its line end */
        qkv_text_free(json);
    }
    if (!whole) fputs("]}", stdout);
    return 0;
}

static int print_text(const explaining *x, const qkv_explanations *e) {
    const qkv_explain_style style = {.how = QKV_SHOW_TABLE,
                                     .colour = *cli_style_for(stdout).bold != 0,
                                     .columns = cli_columns(STDOUT_FILENO)};
    char *shown;
    const qkv_status status = qkv_explanations_show(e->at, e->n, &style, &shown);
    if (status != QKV_OK) return cli_fail(status);
    if (x->before) putchar('\n');
    fputs(shown, stdout);
    qkv_text_free(shown);
    return 0;
}

static int keep(explaining *x, const qkv_explanations *e) {
    if (x->n == x->cap) {
        x->cap = x->cap ? 2 * x->cap : 64;
        qkv_explanations *more = realloc(x->found, x->cap * sizeof *more);
        if (!more) return out_of_memory();
        x->found = more;
    }
    x->found[x->n++] = *e;
    return 0;
}

static int explain_text(explaining *x, const qkv_text *text, char end) {
    qkv_explanations e;
    const qkv_status status = qkv_explain(x->m, text, x->how, &e);
    if (status != QKV_OK) return cli_fail(status);
    if (!x->said && qkv_text_model_cut(x->m)) {
        cli_say(stderr, 5, "qkv: some texts are longer than the model reads and were cut");
        x->said = true;
    }
    int code = 0;
    if (cli_given(x->a, "output")) code = keep(x, &e);
    if (code == 0 && cli_flag(x->a, "json")) {
        code = print_json(text, &e);
        putchar(end);
    } else if (code == 0 && !cli_given(x->a, "output")) {
        code = print_text(x, &e);
    }
    fflush(stdout);
    x->before++;
    if (!cli_given(x->a, "output")) qkv_explanations_free(&e);
    return code;
}

static int write_page(explaining *x) {
    size_t n = 0;
    for (size_t i = 0; i < x->n; i++) n += x->found[i].n;
    qkv_explanation *all = calloc(n + 1, sizeof *all), *at = all;
    if (!all) return out_of_memory();
    for (size_t i = 0; i < x->n; at += x->found[i++].n)
        if (x->found[i].n) memcpy(at, x->found[i].at, x->found[i].n * sizeof *at);
    char *page;
    const qkv_explain_style style = {.how = QKV_SHOW_HTML};
    const qkv_status status = qkv_explanations_show(all, n, &style, &page);
    free(all);
    return cli_write_to(cli_text(x->a, "output"), status, page);
}

int cli_explain_run(const cli_args *a, const qkv_text_model *m) {
    explaining x = {.a = a, .m = m};
    if (strcmp(cli_text(a, "by"), "occlusion") == 0) x.how = QKV_EXPLAIN_OCCLUSION;
    cli_lines lines = cli_lines_of(a);
    const char end = cli_lines_end(&lines);
    int code = 0;
    for (size_t i = 1; i < a->n_rest && code == 0; i++)
        code = explain_text(&x, &(qkv_text){a->rest[i], strlen(a->rest[i])}, end);
    while (a->n_rest == 1 && code == 0 && cli_lines_next(&lines, STDIN_FILENO))
        for (size_t i = 0; i < lines.n && code == 0; i++)
            code = explain_text(&x, &lines.line[i], end);
    cli_lines_free(&lines);
    if (code == 0 && cli_given(a, "output")) code = write_page(&x);
    for (size_t i = 0; i < x.n; i++) qkv_explanations_free(&x.found[i]);
    free(x.found);
    return code;
}
