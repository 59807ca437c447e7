#!/usr/bin/env python3
"""The class of each line on standard input, from Python, with nothing but the shared library.

    python3 classify.py libqkv.so FOLDER < lines
"""
import ctypes
import sys


class Text(ctypes.Structure):
    """qkv_text: bytes and their number."""
    _fields_ = [("data", ctypes.c_char_p), ("len", ctypes.c_size_t)]


class Classifier:
    def __init__(self, library, folder):
        self.lib = ctypes.CDLL(library)
        self.lib.qkv_error.restype = ctypes.c_char_p
        self.lib.qkv_text_model_label.restype = ctypes.c_char_p
        self.lib.qkv_text_model_label.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self.lib.qkv_text_model_close.argtypes = [ctypes.c_void_p]
        self.lib.qkv_classify.argtypes = [ctypes.c_void_p, ctypes.POINTER(Text), ctypes.c_size_t,
                                          ctypes.POINTER(ctypes.c_float)]
        self.model = ctypes.c_void_p()
        self.check(self.lib.qkv_text_model_open(folder.encode(), ctypes.byref(self.model)))
        self.labels = []
        while (name := self.lib.qkv_text_model_label(self.model, len(self.labels))) is not None:
            self.labels.append(name.decode())

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.lib.qkv_error().decode())

    def __call__(self, lines):
        """A (label, probability) for each line."""
        raw = [line.encode() for line in lines]
        texts = (Text * len(raw))(*[Text(r, len(r)) for r in raw])
        p = (ctypes.c_float * (len(raw) * len(self.labels)))()
        self.check(self.lib.qkv_classify(self.model, texts, len(raw), p))
        n = len(self.labels)
        for i in range(len(raw)):
            row = p[i * n:(i + 1) * n]
            yield self.labels[row.index(max(row))], max(row)

    def close(self):
        self.lib.qkv_text_model_close(self.model)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: classify.py libqkv.so FOLDER < lines")
    classify = Classifier(sys.argv[1], sys.argv[2])
    for label, probability in classify(sys.stdin.read().splitlines()):
        print(f"{label}\t{probability:.3f}")
    classify.close()
