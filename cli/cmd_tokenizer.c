/* qkv tokenizer: text to ids and back, and what a tokenizer file is. Training and explaining:
 * cmd_tokenizer_train.c. */
#include "command.h"
#include "input_lines.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- encode ---- */

static const cli_option encode_options[] = {
    {.name = "no-special",
     .kind = CLI_FLAG,
     .help = "without the tokens that the tokenizer adds around a text"},
    {.name = "offsets", .kind = CLI_FLAG, .help = "print id:begin-end, in bytes of the line"},
    {.name = "characters",
     .kind = CLI_FLAG,
     .help = "print id:begin-end, in characters of the line"},
    {.name = "dropout",
     .kind = CLI_REAL,
     .value = "P",
     .initial = "0",
     .min = 0,
     .max = 1000,
     .help = "BPE: skip merges with this probability; Unigram: sample at this inverse temperature"},
    {.name = "seed", .kind = CLI_INT, .value = "N", .initial = "1", .help = "of the dropout"},
    {.name = "max-tokens",
     .kind = CLI_INT,
     .value = "N",
     .initial = "0",
     .min = 0,
     .max = 1e9,
     .help = "cut a line after N tokens (0: no limit)"},
    {.name = "pad",
     .kind = CLI_INT,
     .value = "N",
     .initial = "0",
     .min = 0,
     .max = 1e9,
     .help = "fill a line up to N tokens with the padding token"},
    {.name = "mask",
     .kind = CLI_FLAG,
     .help = "after a TAB, 1 for each token and 0 for each padding"},
    {.name = "json",
     .kind = CLI_FLAG,
     .help = "one JSON object per line: ids; begin, end, mask where asked for; cut"},
    {.name = "explain",
     .kind = CLI_FLAG,
     .help = "tell step by step how each line becomes tokens, instead of printing ids"},
    CLI_OPTIONS_MACHINE,
};

/* How an encoding is printed. */
typedef struct encoding_form {
    bool json, mask;
} encoding_form;

static void print_array(const char *name, const qkv_encoding *e, const uint32_t *values) {
    if (!values) return;
    printf(",\"%s\":[", name);
    for (size_t i = 0; i < e->n; i++) printf("%s%u", i ? "," : "", (unsigned)values[i]);
    putchar(']');
}

static void print_mask(const qkv_encoding *e, const char *between) {
    for (size_t i = 0; i < e->n; i++) printf("%s%d", i ? between : "", !e->mask || e->mask[i]);
}

static void print_json(const qkv_encoding *e, bool mask) {
    fputs("{\"ids\":[", stdout);
    for (size_t i = 0; i < e->n; i++) printf("%s%d", i ? "," : "", e->ids[i]);
    putchar(']');
    print_array("begin", e, e->begin);
    print_array("end", e, e->end);
    if (mask) fputs(",\"mask\":[", stdout), print_mask(e, ","), putchar(']');
    printf(",\"cut\":%s}\n", e->cut ? "true" : "false");
}

static void print_encoding(const qkv_encoding *e, bool mask) {
    char text[64];
    for (size_t i = 0; i < e->n; i++) {
        const int n = e->begin ? snprintf(text, sizeof text, "%s%d:%u-%u", i ? " " : "", e->ids[i],
                                          e->begin[i], e->end[i])
                               : snprintf(text, sizeof text, "%s%d", i ? " " : "", e->ids[i]);
        fwrite(text, 1, (size_t)n, stdout);
    }
    if (mask) putchar('\t'), print_mask(e, " ");
    putchar('\n');
}

static qkv_status encode_block(const qkv_tokenizer *tok, const qkv_encode_options *options,
                               encoding_form form, const cli_lines *l, qkv_encoding **out,
                               size_t *n_out) {
    if (*n_out < l->n) {
        qkv_encoding *grown = realloc(*out, l->n * sizeof *grown);
        if (!grown) return QKV_FAILED;
        memset(grown + *n_out, 0, (l->n - *n_out) * sizeof *grown);
        *out = grown;
        *n_out = l->n;
    }
    const qkv_status status = qkv_tokenizer_encode_batch(tok, l->line, l->n, options, *out);
    for (size_t i = 0; i < l->n && status == QKV_OK; i++)
        if (form.json)
            print_json(*out + i, form.mask);
        else
            print_encoding(*out + i, form.mask);
    fflush(stdout);
    return status;
}

static qkv_status explain_block(const qkv_tokenizer *tok, const cli_lines *l) {
    for (size_t i = 0; i < l->n; i++) {
        char *text;
        const qkv_status status =
            qkv_tokenizer_explain(tok, l->line[i].data, l->line[i].len, &text);
        if (status != QKV_OK) return status;
        fputs(text, stdout);
        putchar('\n');
        qkv_text_free(text);
    }
    fflush(stdout);
    return QKV_OK;
}

static int run_encode(const cli_args *a) {
    qkv_tokenizer *tok;
    qkv_status status = qkv_tokenizer_open(a->rest[0], &tok);
    if (status != QKV_OK) return cli_fail(status);
    cli_use_machine(a);
    qkv_encode_options options = {.no_special = cli_flag(a, "no-special"),
                                  .offsets = cli_flag(a, "offsets"),
                                  .characters = cli_flag(a, "characters"),
                                  .pad_to = (size_t)cli_int(a, "pad"),
                                  .dropout = cli_real(a, "dropout"),
                                  .seed = (uint64_t)cli_int(a, "seed"),
                                  .max_tokens = (size_t)cli_int(a, "max-tokens")};
    const encoding_form form = {.json = cli_flag(a, "json"),
                                .mask = cli_flag(a, "mask") ||
                                        (cli_flag(a, "json") && cli_given(a, "pad"))};
    cli_lines lines = {0};
    qkv_encoding *out = NULL;
    size_t n = 0;
    while (status == QKV_OK && cli_lines_next(&lines, STDIN_FILENO)) {
        status = cli_flag(a, "explain") ? explain_block(tok, &lines)
                                        : encode_block(tok, &options, form, &lines, &out, &n);
        options.stream++; /* each block has random numbers of its own */
    }
    for (size_t i = 0; i < n; i++) qkv_encoding_free(&out[i]);
    free(out);
    cli_lines_free(&lines);
    qkv_tokenizer_free(tok);
    return status == QKV_OK ? 0 : cli_fail(status);
}

static const cli_command command_encode = {
    .usage = "TOK [options]  (lines on standard input)",
    .examples = "echo 'Hello world' | qkv tokenizer encode tokenizer.json\n"
                "echo 'unrelated' | qkv tokenizer encode tokenizer.json --explain\n",
    .about = "Prints the ids of each line, separated by blanks. TOK is a tokenizer.json, a model "
             "folder, a SentencePiece\n"
             ".model, a vocab.txt, a tiktoken rank file or a GGUF file.",
    CLI_OPTIONS(encode_options),
    .min_rest = 1,
    .max_rest = 1,
    .run = run_encode,
};

/* ---- decode ---- */

static const cli_option decode_options[] = {
    {.name = "keep-special", .kind = CLI_FLAG, .help = "also print special tokens"},
};

/* The ids of one line, in *ids; false after a message. */
static bool parse_ids(const qkv_text *line, size_t number, int32_t **ids, size_t *cap, size_t *n) {
    const char *at = line->data, *const end = at + line->len;
    for (*n = 0;;) {
        while (at < end && (*at == ' ' || *at == '\t' || *at == ',')) at++;
        if (at == end) return true;
        int64_t id = 0;
        const char *const first = at;
        for (; at < end && *at >= '0' && *at <= '9' && id < INT32_MAX; at++)
            id = 10 * id + (*at - '0');
        if (at == first || id > INT32_MAX ||
            (at < end && *at != ' ' && *at != '\t' && *at != ',')) {
            cli_usage_error("line %zu, column %zu: ids are whole numbers separated by blanks",
                            number, (size_t)(first - line->data) + 1);
            return false;
        }
        if (*n == *cap) {
            const size_t more = *cap ? 2 * *cap : 256;
            int32_t *grown = realloc(*ids, more * sizeof *grown);
            if (!grown) return false;
            *ids = grown;
            *cap = more;
        }
        (*ids)[(*n)++] = (int32_t)id;
    }
}

/* Ids that no token has are refused, not left out. */
static bool check_ids(const qkv_tokenizer *tok, const int32_t *ids, size_t n, size_t number) {
    const size_t size = qkv_tokenizer_size(tok);
    for (size_t i = 0; i < n; i++)
        if ((size_t)ids[i] >= size) {
            cli_usage_error("line %zu: there is no token %d; the tokenizer's ids are 0 to %zu",
                            number, (int)ids[i], size - 1);
            return false;
        }
    return true;
}

static int run_decode(const cli_args *a) {
    qkv_tokenizer *tok;
    qkv_status status = qkv_tokenizer_open(a->rest[0], &tok);
    if (status != QKV_OK) return cli_fail(status);
    cli_lines lines = {0};
    int32_t *ids = NULL;
    size_t cap = 0, n, number = 0;
    bool ok = true;
    while (ok && status == QKV_OK && cli_lines_next(&lines, STDIN_FILENO)) {
        for (size_t i = 0; i < lines.n && ok && status == QKV_OK; i++) {
            char *text;
            size_t len;
            if (!(ok = parse_ids(&lines.line[i], ++number, &ids, &cap, &n))) break;
            if (!(ok = check_ids(tok, ids, n, number))) break;
            status = qkv_tokenizer_text(tok, ids, n, cli_flag(a, "keep-special"), &text, &len);
            if (status != QKV_OK) break;
            fwrite(text, 1, len, stdout);
            putchar('\n');
            qkv_text_free(text);
        }
        fflush(stdout);
    }
    free(ids);
    cli_lines_free(&lines);
    qkv_tokenizer_free(tok);
    return !ok ? 2 : status == QKV_OK ? 0 : cli_fail(status);
}

static const cli_command command_decode = {
    .usage = "TOK [options]  (lines of ids on standard input)",
    .examples = "echo '15496 995' | qkv tokenizer decode tokenizer.json\n",
    .about = "Prints the text of each line of ids. Byte-level tokenizers give back exactly the "
             "bytes that were encoded.",
    CLI_OPTIONS(decode_options),
    .min_rest = 1,
    .max_rest = 1,
    .run = run_decode,
};

/* ---- info ---- */

static const cli_option info_options[] = {CLI_OPTION_JSON};

static int run_info(const cli_args *a) {
    qkv_tokenizer *tok;
    qkv_status status = qkv_tokenizer_open(a->rest[0], &tok);
    if (status != QKV_OK) return cli_fail(status);
    cli_files f = {.names = a->rest + 1};
    char *text = NULL;
    qkv_tokenizer_facts found;
    status = qkv_tokenizer_info(tok, a->n_rest > 1 ? cli_files_next : NULL, &f, &found);
    if (status == QKV_OK) status = qkv_tokenizer_facts_show(&found, cli_show(a), &text);
    qkv_tokenizer_facts_free(&found);
    qkv_tokenizer_free(tok);
    const int code = cli_files_close(&f);
    if (code) {
        qkv_text_free(text);
        return code;
    }
    return cli_print(status, text);
}

static const cli_command command_info = {
    .usage = "TOK [FILE…] [options]",
    .examples = "qkv tokenizer info tokenizer.json reviews.txt\n",
    .about = "What the tokenizer is made of; with text files, how it does on their lines: tokens a "
             "word, bytes per token,\n"
             "unknown tokens.",
    CLI_OPTIONS(info_options),
    .min_rest = 1,
    .max_rest = 1000,
    .run = run_info,
};

extern const cli_command command_tokenizer_train;

static const cli_entry subcommands[] = {
    {"train", "learn a vocabulary from text files", &command_tokenizer_train},
    {"encode", "lines of text to ids", &command_encode},
    {"decode", "lines of ids to text", &command_decode},
    {"info", "what a tokenizer is, and how it does on text", &command_info},
};

const cli_command command_tokenizer = {
    .usage = "train|encode|decode|info …",
    .examples = "qkv tokenizer train --kind bpe --vocab-size 8000 -o tokenizer.json reviews.txt\n"
                "echo 'Hello world' | qkv tokenizer encode tokenizer.json\n",
    CLI_SUBCOMMANDS(subcommands),
};
