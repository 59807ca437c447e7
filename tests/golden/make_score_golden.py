"""Makes score_golden.h: BLEU and chrF of small texts, as sacrebleu counts them.

Run in tests/golden with sacrebleu installed: python make_score_golden.py > score_golden.h
The texts are our own: several scripts, punctuation against digits and letters, entities, empty lines,
white space of all kinds, lines shorter than the longest n-gram."""
import random
import sacrebleu

HYP = [
    "The lamp by the window was lit at 7.30, not at 8,15.",
    "She paid $4.50 (in coins) for the tea & two rolls.",
    "",
    "nothing here agrees",
    "Der Zug um 12.15 Uhr hält nicht in Köln-Deutz.",
    "Le chat, l’été, dort « là-bas » ; il fait 35°C !",
    "Кошка спит у окна, а дождь идёт с 2015-го года.",
    "三只猫坐在窗边。外面下着雨！",
    "قطة صغيرة تنام قرب النافذة، والمطر يهطل.",
    "&quot;Yes,&quot; he said &amp; left &lt;quietly&gt;... <skipped>then-",
    "a b",
    "x",
    "word-for-word 3-4 5- -6 7.8.9 1,000,000 .5 5. ,",
    "tab\there  two\u00a0spaces\u3000wide \u2003em\u2028line  ",
    "e\u0301tude na\u00efve \U0001f600\U0001f600 €20 ½ Ⅻ ²",
    "the the the the the the the",
    "don't 'quote' \"quote\" [x] {y} a/b c\\d e_f g^h ~i `j` k|l m=n #o @p %q *r +s",
    "(hi) (hi (hi), hi) ... - -- '",
]
REF = [
    "The lamp at the window was lit at 7.30 and not at 8,15.",
    "She paid $4.50 (with coins) for tea & two rolls.",
    "this line was left out",
    "",
    "Der Zug von 12.15 Uhr hält nicht in Köln-Deutz.",
    "Le chat, en été, dort « là-bas » ; il fait 35 °C !",
    "Кошка спит у окна, и дождь идёт с 2015-го года.",
    "三只猫坐在窗子旁边。外面在下雨！",
    "قطة صغيرة تنام بجانب النافذة، والمطر يهطل.",
    "\"Yes,\" he said & left <quietly> ... then-",
    "a b c",
    "x",
    "word for word 3-4 5- -6 7.8.9 1,000,000 .5 5 . ,",
    "tab here two spaces wide em line",
    "étude naïve \U0001f600 € 20 ½ Ⅻ ²",
    "the cat is on the mat",
    "don't \"quote\" 'quote' [x] {y} a / b c\\d e_f g^h ~i `j` k|l m=n #o @p %q *r + s",
    "(hi) (hi) (hi), hi .. -- - '",
]
SECOND = [w[: len(w) * 3 // 4] if i % 3 else w.upper() for i, w in enumerate(REF)]


def quoted(text):
    """As a C string: every byte that is not plain, in octal."""
    return '"' + "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}"
                         for b in text.encode()) + '"'


def texts(name, lines):
    print(f"static const char *const {name}[] = {{")
    for line in lines:
        print(f"    {quoted(line)},")
    print("};")


def figures(hyp, refs):
    bleu = [sacrebleu.metrics.BLEU(tokenize=t).corpus_score(hyp, refs).score
            for t in ("13a", "intl", "char", "none")]
    chrf = [sacrebleu.metrics.CHRF(word_order=w).corpus_score(hyp, refs).score for w in (0, 2)]
    return bleu + chrf


print("/* Made by make_score_golden.py with sacrebleu %s. */" % sacrebleu.__version__)
print("/* clang-format off */")
texts("hyp", HYP)
texts("ref", REF)
texts("second", SECOND)
print("enum { LINES = %d };" % len(HYP))
print("typedef struct golden { int from, n, refs; double figure[6]; } golden;")
print("/* lines from … from + n − 1; BLEU 13a, intl, char, none; chrF2, chrF2++ */")
print("static const golden goldens[] = {")
for refs in (1, 2):
    for first, n in [(0, len(HYP))] + [(i, 1) for i in range(len(HYP))] + [(3, 5), (8, 4), (2, 2)]:
        h, r = HYP[first:first + n], [REF[first:first + n], SECOND[first:first + n]][:refs]
        print("    {%d, %d, %d, {%s}}," % (first, n, refs, ", ".join("%.10g" % f for f in figures(h, r))))
print("};")
