"""Ridge regression on tf-idf of words and pairs of words, on files of number<TAB>text: train, test."""
import sys
import time

import numpy
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge


def read(path):
    with open(path, encoding="utf-8", newline="\n") as file:
        rows = [line.rstrip("\n").split("\t", 1) for line in file]
    return numpy.array([float(number) for number, _ in rows]), [text for _, text in rows]


truth, texts = read(sys.argv[1])
wanted, others = read(sys.argv[2])
for sublinear in (False, True):
    vectors = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=sublinear)
    features, unseen = vectors.fit_transform(texts), vectors.transform(others)
    for alpha in (0.3, 1.0):  # 1 is scikit-learn's own
        begin = time.process_time()
        found = Ridge(alpha=alpha, solver="sparse_cg").fit(features, truth).predict(unseen)
        off = found - wanted
        print(f"ridge, alpha {alpha}{', sublinear' if sublinear else ''}: mse {numpy.mean(off ** 2):.4f}   "
              f"mae {numpy.mean(abs(off)):.4f}   pearson {numpy.corrcoef(found, wanted)[0, 1]:.4f}   "
              f"spearman {spearmanr(found, wanted)[0]:.4f}   {(time.process_time() - begin) / 60:.2f} core-minutes", flush=True)
