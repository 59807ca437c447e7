"""CTranslate2 and libqkv on a translator of ours: exports the folder's weights and times either's search.

    python translate_ct2.py DIR --who qkv|ct2 --source FILE [--beam 5] [--single] [--type float32|int8] [--threads 2] [--length N]

DIR must be a pre- or post-norm Transformer with LayerNorm, ReLU or GELU, and sinusoidal positions (what its converter has). With --length
every translation has N tokens, so that models with random weights can be compared. Prints one JSON object; a word is a
token of the output.
"""
import argparse
import ctypes
import json
import os
import sys
import tempfile
import time

import numpy as np


def positions(config, n):
    d, base = config["d_model"], config["sinusoidal_base"]
    angle = np.arange(n)[:, None] / base ** (np.arange(0, d, 2)[None] / d)
    parts = [np.sin(angle), np.cos(angle)]
    table = np.stack(parts, -1).reshape(n, d) if config["sinusoidal_pairing"] == "adjacent" else np.concatenate(parts, 1)
    return table.astype(np.float32)


def export(folder, tokens, special, out):
    from ctranslate2.specs import common_spec, transformer_spec
    from safetensors.numpy import load_file
    config = json.load(open(os.path.join(folder, "config.json")))
    w = load_file(os.path.join(folder, "model.safetensors"))
    layers = (config["encoder_layers"] or config["layers"], config["decoder_layers"] or config["layers"])
    activation = {"relu": common_spec.Activation.RELU, "gelu": common_spec.Activation.GELU}[config["activation"]]
    spec = transformer_spec.TransformerSpec.from_config(layers, config["heads"], pre_norm=config["norm"] == "pre",
                                                        activation=activation)

    def linear(to, name):
        to.weight = w[name + ".weight"]
        if name + ".bias" in w:
            to.bias = w[name + ".bias"]

    def norm(to, name):
        to.gamma, to.beta = w[name + ".weight"], w[name + ".bias"]

    def side(to, name, n):
        embedding = to.embeddings[0] if isinstance(to.embeddings, list) else to.embeddings
        embedding.weight = w.get("embedding.weight", w.get(name + ".embedding.weight"))
        to.scale_embeddings = config["embedding_scale"]
        to.position_encodings.encodings = positions(config, 512)
        if config["norm"] == "pre":
            norm(to.layer_norm, name + ".norm")
        for i, layer in enumerate(to.layer):
            at = f"{name}.layers.{i}."
            norm(layer.self_attention.layer_norm, at + "attention_norm")
            linear(layer.self_attention.linear[0], at + "attention.qkv")
            linear(layer.self_attention.linear[1], at + "attention.out")
            if name == "decoder":
                norm(layer.attention.layer_norm, at + "cross_norm")
                linear(layer.attention.linear[0], at + "cross.q")
                linear(layer.attention.linear[1], at + "cross.kv")
                linear(layer.attention.linear[2], at + "cross.out")
            norm(layer.ffn.layer_norm, at + "ffn_norm")
            linear(layer.ffn.linear_0, at + "ffn.in")
            linear(layer.ffn.linear_1, at + "ffn.out")

    side(spec.encoder, "encoder", layers[0])
    side(spec.decoder, "decoder", layers[1])
    spec.decoder.projection.weight = spec.decoder.embeddings.weight if config["tie"] else w["head.weight"]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = special
    spec.config.decoder_start_token = special[0]
    spec.config.add_source_eos = False  # done below
    spec.validate()
    spec.optimize()
    os.makedirs(out)
    spec.save(out)


class Text(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("len", ctypes.c_size_t)]


class Options(ctypes.Structure):
    """qkv_translate_options, of which only these are used."""
    _fields_ = [("beam", ctypes.c_int32), ("nbest", ctypes.c_int32), ("penalty", ctypes.c_int), ("alpha", ctypes.c_double),
                ("coverage", ctypes.c_double), ("min_tokens", ctypes.c_int32), ("max_tokens", ctypes.c_int32),
                ("rest", ctypes.c_byte * 64)]


class Translation(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char_p), ("len", ctypes.c_size_t), ("score", ctypes.c_double),
                ("log_prob", ctypes.c_double), ("ids", ctypes.c_void_p), ("log_probs", ctypes.c_void_p),
                ("n", ctypes.c_size_t), ("links", ctypes.c_void_p), ("n_links", ctypes.c_size_t),
                ("source_cut", ctypes.c_bool), ("cut", ctypes.c_bool)]


class Translations(ctypes.Structure):
    _fields_ = [("at", ctypes.POINTER(Translation)), ("n", ctypes.c_size_t), ("nbest", ctypes.c_size_t),
                ("memory", ctypes.c_void_p)]


def qkv(a, lines):
    """A function of a list of places in `lines`: texts in, texts out; returns tokens and texts."""
    lib = ctypes.CDLL(a.library)
    lib.qkv_error.restype = ctypes.c_char_p
    lib.qkv_threads_set(a.threads)
    model = ctypes.c_void_p()
    if lib.qkv_text_model_open(a.folder.encode(), ctypes.byref(model)):
        sys.exit(lib.qkv_error().decode())
    options = Options(beam=a.beam, min_tokens=a.length, max_tokens=a.length or a.most)
    raw = [line.encode() for line in lines]

    def run(places):
        texts = (Text * len(places))(*[Text(raw[i], len(raw[i])) for i in places])
        out = Translations()
        if lib.qkv_translate(model, texts, ctypes.c_size_t(len(places)), ctypes.byref(options), ctypes.byref(out)):
            sys.exit(lib.qkv_error().decode())
        result = [(out.at[i].n, out.at[i].text.decode()) for i in range(out.n)]
        lib.qkv_translations_free(ctypes.byref(out))
        return result
    return run


def ct2(a, lines):
    """The same with CTranslate2; it gets tokens."""
    import ctranslate2
    from tokenizers import Tokenizer
    tok = Tokenizer.from_file(os.path.join(a.folder, "tokenizer.json"))
    by_id = [tok.id_to_token(i) for i in range(tok.get_vocab_size())]
    special = [next((t for t in names if t in by_id), None) for names in
               (("<s>", "[CLS]"), ("</s>", "[SEP]"), ("<unk>", "[UNK]", "<pad>", "</s>"))]
    folder = os.path.join(tempfile.mkdtemp(), "model")
    export(a.folder, by_id, special, folder)
    model = ctranslate2.Translator(folder, device="cpu", compute_type=a.type, inter_threads=a.workers,
                                   intra_threads=max(1, a.threads // a.workers))
    source = [tok.encode(line, add_special_tokens=False).tokens + [special[1]] for line in lines]
    options = dict(beam_size=a.beam, max_batch_size=a.batch, batch_type="tokens", return_scores=False)
    options["max_decoding_length"] = a.length or a.most
    if a.length:
        options["min_decoding_length"] = a.length

    def run(places):
        found = model.translate_batch([source[i] for i in places], **options)
        return [(len(r.hypotheses[0]), r.hypotheses[0]) for r in found]
    run.text = lambda tokens: tok.decode([tok.token_to_id(t) for t in tokens])
    return run


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("--who", choices=["qkv", "ct2"], default="ct2")
    p.add_argument("--library", default="build/libqkv.so")
    p.add_argument("--source", required=True)
    p.add_argument("--beam", type=int, default=5)
    p.add_argument("--lines", type=int, default=0, help="only the first N")
    p.add_argument("--single", action="store_true", help="one sentence at a time")
    p.add_argument("--batch", type=int, default=2048, help="tokens, for CTranslate2")
    p.add_argument("--workers", type=int, default=1, help="CTranslate2: batches at once, which share the threads")
    p.add_argument("--type", default="float32", help="for CTranslate2; qkv's folder has its own")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--length", type=int, default=0)
    p.add_argument("--most", type=int, default=80, help="tokens of a translation, for both")
    p.add_argument("--repeat", type=int, default=1)
    p.add_argument("--out", help="write the translations here")
    a = p.parse_args()
    lines = [line.rstrip("\n") for line in open(a.source)][:a.lines or None]
    run = (qkv if a.who == "qkv" else ct2)(a, lines)
    groups = [[i] for i in range(len(lines))] if a.single else [list(range(len(lines)))]
    run(list(range(min(16, len(lines)))))
    best, words, answers = float("inf"), 0, []
    for _ in range(a.repeat):
        start = time.perf_counter()
        answers = [r for g in groups for r in run(g)]
        best = min(best, time.perf_counter() - start)
        words = sum(n for n, _ in answers)
    if a.out:
        with open(a.out, "w") as f:
            for _, text in answers:
                f.write((text if a.who == "qkv" else run.text(text)) + "\n")
    print(json.dumps({"words_per_s": round(words / best, 1), "sentence_ms": round(1e3 * best / len(lines), 3),
                      "words": words, "beam": a.beam, "single": a.single, "type": a.type, "threads": a.threads,
                      "who": a.who}))


main()
