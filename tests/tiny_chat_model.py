"""A chat model of random weights that loads in milliseconds: for what does not hang on a model's wits."""

from pathlib import Path

import torch


def save_tiny_chat_model(folder: Path, *, context: int = 64) -> Path:
    """One layer; a token is a byte; the template writes `s:…<end>u:…<end>a:`, and refuses assistants."""
    from tokenizers import Tokenizer
    from tokenizers.decoders import ByteLevel as Decoder
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    letters = sorted(ByteLevel.alphabet())
    core = Tokenizer(BPE(vocab={letter: row for row, letter in enumerate(letters)}, merges=[]))
    core.pre_tokenizer, core.decoder = ByteLevel(add_prefix_space=False), Decoder()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<end>", pad_token="<end>")
    tokenizer.chat_template = (
        "{% for m in messages %}"
        "{% if m.role == 'assistant' %}{{ raise_exception('no assistants') }}{% endif %}"
        "{{ m.role[0] }}:{{ m.content }}<end>{% endfor %}{{ suffix | default('a:') }}"
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(5)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=context,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder
