/* Trees: reading CoNLL-U with all its kinds of lines and all its errors, distances and depths,
 * and models with structural positions that see nothing but the tree. */
#include "harness.h"
#include "base/rng.h"
#include "base/tree_measure.h"
#include "data/corpus.h"
#include "data/tokenise.h"
#include "nn/position.h"

#include <stdlib.h>
#include <unistd.h>

static qkv_status parse(qkv_trees *t, const char *content) {
    *t = (qkv_trees){0};
    const qkv_status status = qkv_trees_parse(t, "f", (qkv_text){content, strlen(content)});
    if (status != QKV_OK) qkv_trees_free(t);
    return status;
}

#define W(id, form, head)      id "\t" form "\tl\tu\tx\tf\t" head "\td\t_\t_\n"
#define JOINED(id, form, head) id "\t" form "\tl\tu\tx\tf\t" head "\td\t_\tA=b|SpaceAfter=No\n"

static const char *const sentence =
    "# sent_id = 1\n"
    "# text = Dogs don't  bark.\n"
    "# label = animals\n" W("1", "Dogs", "4") W("2-3", "don't", "_") W("2", "do", "4")
        W("3", "not", "2") W("3.1", "ever", "_") JOINED("4", "bark", "0") W("5", ".", "4") "\n";

static void all_lines(void **state) {
    (void)state;
    qkv_trees t;
    assert_ok(parse(&t, sentence));
    assert_int_equal(t.list.n, 1);
    const qkv_tree *tree = qkv_trees_find(&t, (qkv_text){"  Dogs don't  bark. ", 20});
    assert_non_null(tree);
    assert_null(qkv_trees_find(&t, (qkv_text){"Dogs bark.", 10}));
    assert_int_equal(tree->n, 5);
    assert_int_equal(tree->line, 1);
    assert_memory_equal(tree->label.data, "animals", 7);
    const int32_t heads[] = {-1, 4, 4, 2, 0, 4};
    assert_memory_equal(tree->head, heads, sizeof heads);
    /* "don't" is one place in the text: that of "do", which hangs outside of the range. */
    assert_int_equal(tree->n_spans, 4);
    assert_int_equal(qkv_tree_node(tree, 0, 2), 1);
    assert_int_equal(qkv_tree_node(tree, 2, 4), 1);
    assert_int_equal(qkv_tree_node(tree, 4, 6), 2);   /* " d" */
    assert_int_equal(qkv_tree_node(tree, 8, 10), 2);  /* "'t" */
    assert_int_equal(qkv_tree_node(tree, 10, 12), 0); /* the blanks */
    assert_int_equal(qkv_tree_node(tree, 12, 16), 4);
    assert_int_equal(qkv_tree_node(tree, 16, 17), 5);
    assert_int_equal(qkv_tree_node(tree, 0, 0), 0);
    int32_t depth[6];
    uint8_t distance[36];
    qkv_tree_measure(tree->head, tree->n, depth, distance);
    const int32_t depths[] = {0, 2, 2, 3, 1, 2};
    assert_memory_equal(depth, depths, sizeof depths);
    assert_int_equal(distance[1 * 6 + 3], 3); /* Dogs, bark, do, not */
    assert_int_equal(distance[3 * 6 + 0], 3);
    assert_int_equal(distance[5 * 6 + 5], 0);
    qkv_trees_free(&t);
    /* Without the comment the text is made of the words. */
    assert_ok(parse(&t, W("1", "a", "2") JOINED("2", "b", "0") W("3", "c", "2")));
    assert_memory_equal(t.list.at[0].text.data, "a bc", 5);
    qkv_trees_free(&t);
    assert_ok(parse(&t, "# nothing but a comment\n\n\n"));
    assert_int_equal(t.list.n, 0);
    qkv_trees_free(&t);
}

static void errors(void **state) {
    (void)state;
    qkv_trees t;
    const struct {
        const char *content, *words;
    } cases[] = {
        {"1\ta\n", "line 1: not the ten columns"},
        {"1\ta\t_\t_\t_\t_\t0\t_\t_\t_\t_\n", "not the ten columns"},
        {"1\t\t_\t_\t_\t_\t0\t_\t_\t_\n", "not the ten columns"},
        {W("2", "a", "0"), "word 1 was to come, not \"2\""},
        {W("1x", "a", "0"), "word 1 was to come"},
        {W("99999999999999999999", "a", "0"), "word 1 was to come"},
        {W("1", "a", "_"), "word 1 has no head"},
        {W("1", "a", "-1"), "word 1 has no head"},
        {W("1", "a", "0x"), "word 1 has no head"},
        {W("1", "a", "2") "\n", "line 2: the sentence that ends here has no word 2"},
        {W("1", "a", "1"), "run in a circle"},
        {W("1", "a", "0") W("2", "b", "3") W("3", "c", "4") W("4", "d", "2"), "run in a circle"},
        {W("2-3", "ab", "_"), "makes no sense"},
        {W("1-0", "ab", "_"), "makes no sense"},
        {W("1-2", "ab", "_") W("1-2", "ab", "_"), "makes no sense"},
        {W("1-9999", "ab", "_"), "makes no sense"},
        {W("1-3", "ab", "_") W("1", "a", "0"), "ends before word 3"},
        {"# text = a c\n" W("1", "a", "0") W("2", "b", "1"), "line 3: \"b\" is not the next word"},
        {"# text = a\n" W("1", "abc", "0"), "\"abc\" is not the next word"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_fails(parse(&t, cases[i].content), QKV_BAD_FILE, cases[i].words);
    /* A sentence of more words than are taken. */
    qkv_buf many = {0};
    for (int i = 1; i <= QKV_TREE_WORDS + 1; i++)
        qkv_buf_printf(&many, "%d\tw\t_\t_\t_\t_\t%d\t_\t_\t_\n", i, i - 1);
    assert_fails(parse(&t, many.data), QKV_BAD_FILE, "more than 4096 words");
    qkv_buf_free(&many);
    assert_fails(qkv_trees_read(&t, "nowhere.conllu"), QKV_FAILED, "nowhere");
}

/* Random trees, a chain among them: distances by walking both ways up. */
static int32_t walk(const int32_t *head, const int32_t *depth, int32_t a, int32_t b) {
    int32_t steps = 0;
    while (a != b) {
        int32_t *low = depth[a] > depth[b] ? &a : &b;
        *low = head[*low];
        steps++;
    }
    return steps;
}

static void distances(void **state) {
    (void)state;
    enum { N = 300 };
    static int32_t head[N + 1], depth[N + 1];
    static uint8_t distance[(N + 1) * (N + 1)];
    for (uint64_t seed = 0; seed < 3; seed++) {
        head[0] = -1;
        /* Heads after their words too: a random numbering of a random tree. */
        for (int32_t i = 1; i <= N; i++)
            head[i] = seed == 0
                          ? i - 1
                          : (int32_t)qkv_rng_below((qkv_rng){seed, 1}, (uint64_t)i, (uint64_t)i);
        if (seed % 2) { /* mirrored */
            static int32_t back[N + 1];
            for (int32_t i = 1; i <= N; i++) back[N + 1 - i] = head[i] ? N + 1 - head[i] : 0;
            memcpy(head + 1, back + 1, N * sizeof *head);
        }
        qkv_tree_measure(head, N, depth, distance);
        for (int32_t i = 0; i <= N; i++)
            for (int32_t j = 0; j <= N; j++) {
                const int32_t d = walk(head, depth, i, j);
                assert_int_equal(distance[i * (N + 1) + j], d < 255 ? d : 255);
            }
    }
}

static void write_file(const char *path, const char *content) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(content, f);
    fclose(f);
}

static const char *const path = "test_trees.conllu", *const folder = "test_trees_model";

/* The same words in the same order; only the tree says which class it is. */
static void make_data(void) {
    qkv_buf out = {0};
    for (int i = 0; i < 120; i++) {
        const bool deep = i % 2;
        qkv_buf_printf(&out, "# label = %s\n# text = w%d a b c d\n", deep ? "chain" : "star", i);
        qkv_buf_printf(&out, "1\tw%d\t_\t_\t_\t_\t0\t_\t_\t_\n", i);
        for (int w = 2; w <= 5; w++)
            qkv_buf_printf(&out, "%d\t%c\t_\t_\t_\t_\t%d\t_\t_\t_\n", w, "abcd"[w - 2],
                           deep ? w - 1 : 1);
        qkv_buf_puts(&out, "\n");
    }
    write_file(path, out.data);
    qkv_buf_free(&out);
}

static void learns_the_tree(void **state) {
    (void)state;
    make_data();
    const char *const train[] = {path, NULL};
    const char *const set[] = {"position=structural", "d_model=16", "layers=1", "heads=2",
                               "max_len=32",          "steps=60",   "lr=0.01",  "batch_tokens=400",
                               "tokenizer=char",      "dropout=0",  NULL};
    const qkv_train_request request = {
        .task = "classify", .train = train, .out = folder, .set = set, .overwrite = true};
    assert_ok(qkv_train(&request));
    qkv_text_model *m;
    qkv_evaluation found;
    assert_ok(qkv_text_model_open(folder, &m));
    assert_ok(qkv_evaluate(m, train, NULL, &found));
    assert_true(found.accuracy == 1);
    qkv_evaluation_free(&found);
    /* Lines are found by their text, once trees were read. */
    const qkv_text lines[] = {{"w0 a b c d", 10}, {" w1 a b c d", 11}};
    float p[4];
    assert_fails(qkv_classify(m, lines, 2, p), QKV_BAD_FILE, "no tree for the text \"w0 a b c d\"");
    assert_ok(qkv_text_model_read_trees(m, path));
    assert_ok(qkv_classify(m, lines, 2, p));
    assert_string_equal(qkv_text_model_label(m, 0), "chain");
    assert_true(p[0] < 0.5f && p[2] > 0.5f);
    qkv_text_model_close(m);
    /* A text that is split keeps its tree in all its parts. */
    const char *const parts[] = {
        "position=structural", "d_model=16",     "layers=1", "heads=2", "max_len=4", "steps=2",
        "tokenizer=char",      "too_long=split", NULL};
    qkv_train_request split = {
        .task = "classify", .train = train, .out = folder, .set = parts, .overwrite = true};
    assert_ok(qkv_train(&split));
    /* Rows elsewhere, trees beside them; a row without a tree; no trees at all. */
    write_file("test_trees.tsv", "star\tw0 a b c d\nchain\tw1 a b c d\n");
    const char *const rows[] = {"test_trees.tsv", NULL};
    const char *const beside[] = {"position=structural",
                                  "d_model=16",
                                  "layers=1",
                                  "heads=2",
                                  "max_len=32",
                                  "steps=1",
                                  "tokenizer=char",
                                  "trees=test_trees.conllu",
                                  NULL};
    qkv_train_request other = {
        .task = "classify", .train = rows, .out = folder, .set = beside, .overwrite = true};
    assert_ok(qkv_train(&other));
    write_file("test_trees.tsv", "star\tw0 a b c d\nchain\tw1 a b\n");
    assert_fails(qkv_train(&other), QKV_BAD_FILE, "line 2: no tree");
    other.set = (const char *const[]){"position=structural", "tokenizer=char", NULL};
    assert_fails(qkv_train(&other), QKV_USAGE, "--trees FILE");
}

/* A translator whose source's words say nothing: what it writes is what the tree is. */
static void translates_the_tree(void **state) {
    (void)state;
    make_data();
    qkv_buf from = {0}, to = {0};
    for (int i = 0; i < 120; i++) {
        qkv_buf_printf(&from, "w%d a b c d\n", i);
        qkv_buf_puts(&to, i % 2 ? "x y\n" : "z\n");
    }
    write_file("test_trees.src", from.data);
    write_file("test_trees.tgt", to.data);
    const char *const train[] = {"test_trees.src", "test_trees.tgt", NULL};
    const char *const set[] = {"position=structural",
                               "decoder_position=relative",
                               "d_model=16",
                               "layers=1",
                               "heads=2",
                               "max_len=32",
                               "steps=100",
                               "lr=0.01",
                               "batch_tokens=1200",
                               "tokenizer=char",
                               "dropout=0",
                               "trees=test_trees.conllu",
                               NULL};
    qkv_train_request request = {
        .task = "translate", .train = train, .out = folder, .set = set, .overwrite = true};
    assert_ok(qkv_train(&request));
    qkv_text_model *m;
    assert_ok(qkv_text_model_open(folder, &m));
    const qkv_text lines[] = {{"w0 a b c d", 10}, {"", 0}, {" w1 a b c d", 11}};
    qkv_translations found;
    assert_fails(qkv_translate(m, lines, 3, NULL, &found), QKV_BAD_FILE, "no tree for the text");
    qkv_evaluation score;
    assert_fails(qkv_evaluate(m, train, NULL, &score), QKV_USAGE, "--trees FILE");
    qkv_evaluation_free(&score);
    assert_ok(qkv_text_model_read_trees(m, path));
    assert_ok(qkv_translate(m, lines, 3, NULL, &found));
    assert_string_equal(found.at[0].text, "z");
    assert_string_equal(found.at[1].text, "");
    assert_string_equal(found.at[2].text, "x y");
    qkv_translations_free(&found);
    assert_ok(qkv_evaluate(m, train, NULL, &score));
    assert_true(score.bleu >= 0 && score.chrf2 >= 0 && score.chrf2_plus >= 0);
    qkv_evaluation_free(&score);
    qkv_text_model_close(m);
    /* A decoder with a tree; a source without one. */
    request.set = (const char *const[]){"position=structural", "decoder_position=structural",
                                        "tokenizer=char", "trees=test_trees.conllu", NULL};
    assert_fails(qkv_train(&request), QKV_USAGE, "which a decoder does not have");
    request.set = set;
    qkv_buf_puts(&from, "no tree\n");
    qkv_buf_puts(&to, "z\n");
    write_file("test_trees.src", from.data);
    write_file("test_trees.tgt", to.data);
    assert_fails(qkv_train(&request), QKV_BAD_FILE, "no tree of the CoNLL-U file");
    qkv_buf_free(&from);
    qkv_buf_free(&to);
}

static qkv_status parse_once(const void *text) {
    qkv_trees t;
    const qkv_status status = parse(&t, text);
    if (status == QKV_OK) qkv_trees_free(&t);
    return status;
}

static void allocations_fail(void **state) {
    (void)state;
    assert_fails_cleanly(parse_once, sentence, 0);
}

static int clean(void **state) {
    (void)state;
    unlink(path);
    unlink("test_trees.tsv");
    unlink("test_trees.src");
    unlink("test_trees.tgt");
    return system("rm -rf test_trees_model");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_lines),       cmocka_unit_test(errors),
        cmocka_unit_test(distances),       cmocka_unit_test(allocations_fail),
        cmocka_unit_test(learns_the_tree), cmocka_unit_test(translates_the_tree),
    };
    return cmocka_run_group_tests(tests, NULL, clean);
}
