/* Synthetic reviews: some remarks, then a verdict; the label is the verdict's. Words alone do not
 * tell it: remarks may say the opposite, and a negation turns a word's meaning around. */
#include "data/synthetic.h"

static const char *const things[] = {"the film",  "the plot",       "the acting", "the music",
                                     "the story", "the ending",     "the cast",   "the dialogue",
                                     "the pace",  "the camera work"};
static const char *const words[2][10] = {
    {"dull", "awful", "boring", "weak", "tiresome", "clumsy", "dreadful", "poor", "flat", "silly"},
    {"great", "lovely", "brilliant", "superb", "charming", "moving", "fine", "clever", "fresh",
     "wonderful"}};
static const char *const degrees[] = {"", "very ", "really ", "quite ", "truly ", "rather "};
static const char *const verdicts[] = {"all in all", "in the end", "on the whole", "still"};

/* One remark with this opinion, in one of several turns of phrase. */
static void remark(qkv_dice *d, int opinion, qkv_buf *out) {
    const char *thing = QKV_PICK(d, things), *degree = QKV_PICK(d, degrees);
    const char *same = words[opinion][qkv_draw(d, 10)],
               *opposite = words[!opinion][qkv_draw(d, 10)];
    switch (qkv_draw(d, 5)) {
    case 0:
    case 1:
        qkv_buf_printf(out, "%s was %s%s", thing, degree, same);
        break;
    case 2:
        qkv_buf_printf(out, "%s was not %s%s", thing, degree, opposite);
        break;
    case 3:
        qkv_buf_printf(out, "%s was anything but %s", thing, opposite);
        break;
    default:
        qkv_buf_printf(out, "nobody could call %s %s", thing, opposite);
        break;
    }
}

void qkv_synthetic_review(uint64_t seed, uint64_t i, qkv_buf *out) {
    qkv_dice d = {.rng = qkv_rng_derive((qkv_rng){.seed = seed, .stream = 11}, i, 0)};
    const int label = (int)qkv_draw(&d, 2);
    qkv_buf_printf(out, "%s\t", label ? "good" : "bad");
    for (uint64_t k = 0, n = 1 + qkv_draw(&d, 2); k < n; k++) {
        remark(&d, (int)qkv_draw(&d, 2), out);
        qkv_buf_puts(out, " . ");
    }
    qkv_buf_printf(out, "%s , ", QKV_PICK(&d, verdicts));
    remark(&d, label, out);
    qkv_buf_puts(out, " .\n");
}
