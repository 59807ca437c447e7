"""Tiny models of every family that is read, as transformers saves them, and what it computes with them.

    python make_foreign_golden.py OUT [NAME...]     # needs torch, transformers, safetensors

Each case is a folder: config.json, model.safetensors and reference.safetensors with two sequences (`ids`,
`lengths`), for encoder-decoders what the decoder is given (`target`), for models that tell segments apart
`segments`; and the outputs, padding left out: `rows` (of the encoder), `logits`, and with segments
`logits_segments` or `rows_segments`. Weights are drawn large, so that a wrong one shows."""
import os
import shutil
import sys

import torch
import transformers as T
from safetensors.torch import save_file

VOCAB, WIDTH, FF, LENGTHS, TARGET = 23, 16, 24, (11, 6), 7

ENCODER = dict(vocab_size=VOCAB, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=4,
               intermediate_size=FF, max_position_embeddings=20)
ROBERTA = dict(ENCODER, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1, bos_token_id=0, eos_token_id=2)
DISTIL = dict(vocab_size=VOCAB, dim=WIDTH, n_layers=2, n_heads=4, hidden_dim=FF, max_position_embeddings=20)
DECODER = dict(ENCODER, num_key_value_heads=2, max_position_embeddings=64)
BOTH = dict(vocab_size=VOCAB, d_model=WIDTH, encoder_layers=2, decoder_layers=1, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=FF, decoder_ffn_dim=FF, max_position_embeddings=20)
MARKS = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2)
T5 = dict(vocab_size=VOCAB, d_model=WIDTH, d_kv=8, d_ff=FF, num_layers=1, num_decoder_layers=2, num_heads=2,
          relative_attention_num_buckets=8, relative_attention_max_distance=10, decoder_start_token_id=0)


def sized(base, **more):
    return dict(base, **more)


def rope(kind, **more):
    return dict(rope_type=kind, rope_theta=10000.0, factor=4.0, **more)


# name: (configuration, class)
CASES = {
    'bert': (T.BertConfig(**ENCODER), T.BertModel),
    'bert-mlm': (T.BertConfig(**sized(ENCODER, hidden_act='gelu_new')), T.BertForMaskedLM),
    'bert-classes': (T.BertConfig(num_labels=3, id2label={0: 'no', 1: 'perhaps', 2: 'yes'}, **ENCODER),
                     T.BertForSequenceClassification),
    'bert-tags': (T.BertConfig(num_labels=5, **ENCODER), T.BertForTokenClassification),
    'distilbert-mlm': (T.DistilBertConfig(**DISTIL), T.DistilBertForMaskedLM),
    'distilbert-classes': (T.DistilBertConfig(num_labels=2, **DISTIL), T.DistilBertForSequenceClassification),
    'roberta-mlm': (T.RobertaConfig(**ROBERTA), T.RobertaForMaskedLM),
    'roberta-tags': (T.RobertaConfig(num_labels=3, **ROBERTA), T.RobertaForTokenClassification),
    'xlm-roberta-classes': (T.XLMRobertaConfig(num_labels=3, **ROBERTA), T.XLMRobertaForSequenceClassification),
    'camembert': (T.CamembertConfig(**ROBERTA), T.CamembertModel),
    'gpt2': (T.GPT2Config(vocab_size=VOCAB, n_embd=WIDTH, n_layer=2, n_head=4, n_positions=20), T.GPT2LMHeadModel),
    'llama': (T.LlamaConfig(**DECODER), T.LlamaForCausalLM),
    'llama-biases': (T.LlamaConfig(attention_bias=True, mlp_bias=True, head_dim=6, tie_word_embeddings=True, **DECODER),
                     T.LlamaForCausalLM),
    'mistral': (T.MistralConfig(sliding_window=4, **DECODER), T.MistralForCausalLM),
    'qwen2': (T.Qwen2Config(tie_word_embeddings=True, **DECODER), T.Qwen2ForCausalLM),
    'phi3': (T.Phi3Config(pad_token_id=0, **DECODER), T.Phi3ForCausalLM),
    'gemma': (T.GemmaConfig(head_dim=8, **DECODER), T.GemmaForCausalLM),
    't5': (T.T5Config(**T5), T.T5ForConditionalGeneration),
    't5-gated': (T.T5Config(feed_forward_proj='gated-gelu', tie_word_embeddings=False, **T5),
                 T.T5ForConditionalGeneration),
    't5-encoder': (T.T5Config(**T5), T.T5EncoderModel),
    'bart': (T.BartConfig(**BOTH), T.BartForConditionalGeneration),
    'mbart': (T.MBartConfig(scale_embedding=True, **BOTH), T.MBartForConditionalGeneration),
    'marian': (T.MarianConfig(decoder_start_token_id=22, pad_token_id=22, eos_token_id=0, activation_function='swish',
                              scale_embedding=True, **BOTH), T.MarianMTModel),
    'm2m-100': (T.M2M100Config(scale_embedding=True, activation_function='relu', **BOTH),
                T.M2M100ForConditionalGeneration),
    'electra': (T.ElectraConfig(embedding_size=10, **ENCODER), T.ElectraModel),
    'electra-mlm': (T.ElectraConfig(embedding_size=10, **ENCODER), T.ElectraForMaskedLM),
    'electra-classes': (T.ElectraConfig(embedding_size=16, num_labels=2, **ENCODER),
                        T.ElectraForSequenceClassification),
    'albert-mlm': (T.AlbertConfig(embedding_size=10, **sized(ENCODER, num_hidden_layers=3)), T.AlbertForMaskedLM),
    'albert-classes': (T.AlbertConfig(embedding_size=10, num_labels=3, **ENCODER), T.AlbertForSequenceClassification),
    'mpnet': (T.MPNetConfig(**ENCODER), T.MPNetModel),
    'mpnet-mlm': (T.MPNetConfig(**ENCODER), T.MPNetForMaskedLM),
    'modernbert-mlm': (T.ModernBertConfig(**sized(ENCODER, num_hidden_layers=4, max_position_embeddings=64), local_attention=4,
                                          global_attn_every_n_layers=3, **MARKS), T.ModernBertForMaskedLM),
    'gpt-neo': (T.GPTNeoConfig(vocab_size=VOCAB, hidden_size=WIDTH, num_layers=2, num_heads=4, intermediate_size=FF,
                               attention_types=[[['global', 'local'], 1]], window_size=4, max_position_embeddings=20),
                T.GPTNeoForCausalLM),
    'gpt-neox': (T.GPTNeoXConfig(rotary_pct=0.5, **ENCODER), T.GPTNeoXForCausalLM),
    'gpt-neox-one-by-one': (T.GPTNeoXConfig(rotary_pct=0.5, use_parallel_residual=False, **ENCODER),
                            T.GPTNeoXForCausalLM),
    'llama-linear': (T.LlamaConfig(rope_parameters=rope('linear'), **sized(DECODER, num_hidden_layers=1)),
                     T.LlamaForCausalLM),
    'llama-dynamic': (T.LlamaConfig(rope_parameters=rope('dynamic'), **sized(DECODER, num_hidden_layers=1)),
                      T.LlamaForCausalLM),
    'llama3': (T.LlamaConfig(rope_parameters=rope('llama3', low_freq_factor=1.0, high_freq_factor=4.0,
                                                  original_max_position_embeddings=8), **sized(DECODER, head_dim=8)),
               T.LlamaForCausalLM),
    'llama-yarn': (T.LlamaConfig(rope_parameters=rope('yarn', original_max_position_embeddings=8),
                                 **sized(DECODER, head_dim=8, num_hidden_layers=1)), T.LlamaForCausalLM),
    'qwen3': (T.Qwen3Config(head_dim=6, tie_word_embeddings=True, **DECODER), T.Qwen3ForCausalLM),
    'gemma3': (T.Gemma3TextConfig(head_dim=6, sliding_window=4, query_pre_attn_scalar=9,
                                  layer_types=['sliding_attention', 'sliding_attention', 'full_attention'],
                                  **sized(DECODER, num_hidden_layers=3)), T.Gemma3ForCausalLM),
}


def draw(model, generator):
    """Weights large enough to matter; norms around 1 (Gemma's, which count from 1, around 0)."""
    from_one = model.config.model_type.startswith('gemma')
    seen = set()
    for name, p in model.named_parameters():
        if p.data_ptr() in seen or not p.requires_grad and 'embed_positions' in name:  # Marian's sines
            continue
        seen.add(p.data_ptr())
        z = torch.randn(p.shape, generator=generator) * (0.3 if p.dim() > 1 else 0.1)
        gain = p.dim() == 1 and name.endswith('weight')
        p.copy_(1 + z if gain and not from_one else z)


def packed(x, lengths):
    return torch.cat([x[i, :n] for i, n in enumerate(lengths)]).contiguous()


def reference(model, generator):
    c = model.config
    pad = c.pad_token_id if c.pad_token_id is not None else 0
    ids = torch.randint(4, VOCAB - 1, (2, max(LENGTHS)), generator=generator)
    mask = torch.zeros_like(ids)
    for i, n in enumerate(LENGTHS):
        mask[i, :n], ids[i, n:] = 1, pad
    given = dict(input_ids=ids, attention_mask=mask)
    ref = {'ids': packed(ids, LENGTHS), 'lengths': torch.tensor(LENGTHS)}
    rows = lambda x: packed(x, LENGTHS) if x.dim() == 3 else x.contiguous()
    if hasattr(model, 'get_decoder') and c.is_encoder_decoder and 'Encoder' not in type(model).__name__:
        target = torch.randint(4, VOCAB - 1, (2, TARGET), generator=generator)
        o = model(**given, decoder_input_ids=target)
        ref.update(target=target.flatten(), logits=o.logits.flatten(0, 1).contiguous(),
                   rows=rows(o.encoder_last_hidden_state))
        return ref
    what = 'rows' if type(model).__name__.endswith('Model') and 'LMHead' not in type(model).__name__ else 'logits'
    ref[what] = rows(model(**given)[0])
    if getattr(c, 'type_vocab_size', 0) == 2 and hasattr(c, 'num_labels'):
        segments = torch.zeros_like(ids)
        segments[:, 4:] = 1
        ref['segments'] = packed(segments, LENGTHS)
        ref[what + '_segments'] = rows(model(**given, token_type_ids=segments)[0])
    return ref


def main():
    out, names = sys.argv[1], sys.argv[2:] or CASES
    os.environ['HF_HUB_OFFLINE'] = '1'
    T.logging.set_verbosity_error()
    torch.set_grad_enabled(False)
    for name in names:
        config, cls = CASES[name]
        generator = torch.Generator().manual_seed(5)
        config._attn_implementation = 'eager'
        model = cls(config).eval()
        draw(model, generator)
        folder = os.path.join(out, name)
        shutil.rmtree(folder, ignore_errors=True)
        model.save_pretrained(folder)
        for extra in ('generation_config.json',):
            path = os.path.join(folder, extra)
            if os.path.exists(path):
                os.remove(path)
        save_file(reference(model, generator), os.path.join(folder, 'reference.safetensors'))


if __name__ == '__main__':
    main()
