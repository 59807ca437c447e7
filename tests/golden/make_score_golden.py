"""Makes score_golden.h: BLEU, chrF and TER of small texts, and a paired bootstrap, as sacrebleu counts them.

Run in tests/golden with sacrebleu installed: python make_score_golden.py > score_golden.h
The texts are our own: several scripts, punctuation against digits and letters, entities, empty lines,
white space of all kinds, lines shorter than the longest n-gram."""
import random
import sacrebleu
from sacrebleu.significance import PairedTest

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
            for t in ("13a", "intl", "char", "zh", "none")]
    chrf = [sacrebleu.metrics.CHRF(word_order=w).corpus_score(hyp, refs).score for w in (0, 2)]
    return bleu + chrf + [sacrebleu.metrics.TER().corpus_score(hyp, refs).score]


def moved(seed, n):
    """A line of n words of few kinds, and the same with phrases moved, words lost, put in and changed."""
    rng = random.Random(seed)
    kinds = ["w%d" % i for i in range(rng.choice((4, 12, 40, 200)))]
    ref = [rng.choice(kinds) for _ in range(n)]
    hyp = list(ref)
    for _ in range(rng.randrange(8)):
        at, long, to = rng.randrange(n), rng.randrange(1, 13), rng.randrange(n)
        phrase = hyp[at:at + long]
        hyp[at:at + long] = []
        hyp[to:to] = phrase
    for _ in range(rng.randrange(1 + n // 4)):
        at = rng.randrange(n)
        hyp[at:at + rng.randrange(2)] = [rng.choice(kinds)] * rng.randrange(2)
    if seed % 5 == 0:
        hyp = hyp[:n // 3]
    if seed % 7 == 0:
        hyp = hyp + hyp[: n // 2] + hyp
    return " ".join(hyp), " ".join(ref)


def bootstrap():
    metrics = {"BLEU": sacrebleu.metrics.BLEU(references=[REF]), "chrF2": sacrebleu.metrics.CHRF(references=[REF]),
               "chrF2++": sacrebleu.metrics.CHRF(word_order=2, references=[REF]),
               "TER": sacrebleu.metrics.TER(references=[REF])}
    _, results = PairedTest([("hyp", HYP), ("second", SECOND)], metrics, None, "bs")()
    return [v for k, v in results.items() if k != "System"]


print("/* Made by make_score_golden.py with sacrebleu %s. */" % sacrebleu.__version__)
print("/* clang-format off */")
texts("hyp", HYP)
texts("ref", REF)
texts("second", SECOND)
print("enum { LINES = %d };" % len(HYP))
print("typedef struct golden { int from, n, refs; double figure[8]; } golden;")
print("/* lines from … from + n − 1; BLEU 13a, intl, char, zh, none; chrF2, chrF2++; TER */")
print("static const golden goldens[] = {")
for refs in (1, 2):
    for first, n in [(0, len(HYP))] + [(i, 1) for i in range(len(HYP))] + [(3, 5), (8, 4), (2, 2)]:
        h, r = HYP[first:first + n], [REF[first:first + n], SECOND[first:first + n]][:refs]
        print("    {%d, %d, %d, {%s}}," % (first, n, refs, ", ".join("%.10g" % f for f in figures(h, r))))
print("};")
pairs = [moved(seed, n) for seed, n in enumerate([1, 2, 3, 5, 8, 13, 20, 30, 30, 30, 40, 60, 60, 90, 130, 130, 200])]
pairs += [("", "a b"), ("a b", ""), ("ΟΔΟΣ ΟΔΟΣ. İx STRASSE ẞ", "οδος οδος. i\u0307x strasse ß")]
texts("moved_hyp", [h for h, _ in pairs])
texts("moved_ref", [r for _, r in pairs])
print("/* TER of each of these lines */")
print("static const double moved_ter[] = {%s};" % ", ".join(
    "%.10g" % sacrebleu.metrics.TER().corpus_score([h], [[r]]).score for h, r in pairs))
print("/* paired bootstrap of `second` against `hyp`: mean and half of the interval of either, p; by figure */")
print("static const double paired[4][5] = {")
for base, system in bootstrap():
    print("    {%s}," % ", ".join("%.10g" % x for x in (base.mean, base.ci, system.mean, system.ci, system.p_value)))
print("};")
