"""One-vs-rest logistic regression on tf-idf of words and pairs of words, on files in fastText's form: train, test."""
import sys
import time

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer


def read(path):
    labels, texts = [], []
    with open(path, encoding="utf-8", newline="\n") as file:
        for line in file:
            words = line.rstrip("\n").split(" ")
            n = next((i for i, word in enumerate(words) if not word.startswith("__label__")), len(words))
            labels.append(words[:n])
            texts.append(" ".join(words[n:]))
    return labels, texts


train, texts = read(sys.argv[1])
test, others = read(sys.argv[2])
names = MultiLabelBinarizer().fit(train)
truth = names.transform([[label for label in row if label in names.classes_] for row in test])
for words in ((1, 1), (1, 2)):
    vectors = TfidfVectorizer(ngram_range=words)
    features, unseen = vectors.fit_transform(texts), vectors.transform(others)
    for c in (1.0, 10.0, 100.0):  # 1 is scikit-learn's own
        begin = time.process_time()
        model = OneVsRestClassifier(LogisticRegression(C=c, solver="liblinear")).fit(features, names.transform(train))
        found = model.predict(unseen)
        print(f"one-vs-rest, words {words[0]}-{words[1]}, C {c:g}: micro F1 {f1_score(truth, found, average='micro'):.4f}   "
              f"macro F1 {f1_score(truth, found, average='macro', zero_division=0):.4f}   "
              f"exact match {100 * accuracy_score(truth, found):.2f} %   "
              f"{(time.process_time() - begin) / 60:.2f} core-minutes", flush=True)
