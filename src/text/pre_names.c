/* How vocabularies of GGUF files split text: tokenizer.ggml.pre names it. Each is one or several
 * regular expressions, each of which cuts what the one before it left; a name that is not known is
 * refused, since with another expression most texts would still be cut alike, and some not. */
#include "text/reader.h"
#include "text/scan.h"

enum { STEPS = 6 };

#define GPT2   "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define SUFFIX "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define UPPER  "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER  "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define LEAD   "[^\\r\\n\\p{L}\\p{N}]?"
#define BLANKS "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LLAMA3(digits)                                                                             \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|" LEAD "\\p{L}+|" digits "| "                                    \
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" BLANKS
#define HAN "[\\x{4e00}-\\x{9fa5}\\x{0800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"

static const struct {
    const char *names; /* separated by blanks */
    bool whole, bos;   /* see qkv_pre_facts */
    const char *steps[STEPS];
} rows[] = {
    {"gpt-2 phi-2 olmo mpt jina-es jina-de jina-v1-en jina-v2-es jina-v2-de jina-v2-en "
     "jina-v2-code roberta-bpe modern-bert",
     false,
     false,
     {GPT2}},
    /* files from before there were names */
    {"default", false, false, {"[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}},
    {"llama3 llama-v3 llama-bpe falcon3 lfm2", true, true, {LLAMA3("\\p{N}{1,3}")}},
    {"smaug-bpe dbrx", false, false, {LLAMA3("\\p{N}{1,3}")}},
    {"qwen2 deepseek-r1-qwen stablelm2 hunyuan", false, false, {LLAMA3("\\p{N}")}},
    {"qwen35",
     false,
     false,
     {SUFFIX "|" LEAD "[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" BLANKS}},
    /* each digit alone, then GPT-2's */
    {"smollm starcoder refact command-r", false, false, {"\\p{N}", GPT2}},
    {"falcon", false, false, {"[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, "[0-9][0-9][0-9]"}},
    {"tekken",
     true,
     true,
     {LEAD UPPER "*" LOWER "+|" LEAD UPPER "+" LOWER
                 "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" BLANKS}},
    {"gpt-4o",
     false,
     false,
     {LEAD UPPER "*" LOWER "+" SUFFIX "?|" LEAD UPPER "+" LOWER "*" SUFFIX
                 "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" BLANKS}},
    {"deepseek-coder", false, false, {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", HAN, "\\p{N}"}},
    {"deepseek-v3",
     false,
     false,
     {"\\p{N}{1,3}", "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+",
      "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?"
      "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" BLANKS}},
};

static bool is_listed(const char *names, qkv_text name) {
    for (const char *at = names; *at;) {
        const size_t n = strcspn(at, " ");
        if (n == name.len && !memcmp(at, name.data, n)) return true;
        at += n + strspn(at + n, " ");
    }
    return false;
}

qkv_status qkv_pre_named(qkv_text name, qkv_pre_facts *out) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (is_listed(rows[i].names, name)) {
            *out = (qkv_pre_facts){rows[i].steps, rows[i].whole, rows[i].bos};
            return QKV_OK;
        }
    return qkv_fail(QKV_BAD_FILE,
                    "tokenizer.ggml.pre is \"%.*s\": how that splits texts is not known",
                    (int)(name.len < 60 ? name.len : 60), name.data);
}
