"""A linear SVM on tf-idf with scikit-learn, as many people would write it: words 1-2 beside characters 2-5 within
words, sublinear counts, C 0.5.

    svm.py TRAIN.tsv TEST.tsv [C] -> accuracy, core-minutes of reading, counting and fitting (imports are left out)
"""
import sys
import time

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.svm import LinearSVC


def read(path):
    with open(path, encoding="utf-8", newline="\n") as file:
        rows = [row.split("\t", 1) for row in file.read().split("\n") if row]
    return [text for _, text in rows], [label for label, _ in rows]


def main():
    cost = float(sys.argv[3]) if len(sys.argv) > 3 else 0.5
    begin = time.process_time()
    texts, labels = read(sys.argv[1])
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    chars = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    model = make_pipeline(make_union(words, chars), LinearSVC(C=cost)).fit(texts, labels)
    minutes = (time.process_time() - begin) / 60
    texts, labels = read(sys.argv[2])
    print(f"{model.score(texts, labels):.4f} {minutes:.2f}")


main()
