"""Writes a model of a few hundred KB for llama.cpp, whose answer is known: `python tiny_model.py FILE`.

Its layers add nothing, so the next token depends on the last one only. Every byte of a prompt is followed by the first
word of SAYS, each word by the next, and the last one by the end of the answer. If the server does not allow the end,
because a tool has to be called, CALLS follows.
"""

import sys

import numpy as np
from gguf import GGUFWriter, TokenType

SAYS = ["Hello", "▁from", "▁a", "▁tiny", "▁model", "."]
CALLS = '<tool_call>\n{"name":▁"weather",▁"arguments":▁{"city":▁"Paris"}}\n</tool_call>'
# Calls of tools as Qwen and Hermes write them, which the server reads from the template.
TEMPLATE = (
    "{% if tools %}# Tools\n{{ tools | tojson }}\n{% endif %}"
    "{% for m in messages %}{{ m.role }}: {{ m.content or '' }}"
    "{% for c in m.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}'
    "\n</tool_call>{% endfor %}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
WIDTH, FEED_FORWARD, HEADS = 288, 32, 4
END = 2

tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *SAYS, CALLS]
types = [TokenType.UNKNOWN, TokenType.CONTROL, TokenType.CONTROL] + [TokenType.BYTE] * 256
types += [TokenType.NORMAL] * (len(SAYS) + 1)
CALL = len(tokens) - 1
first = CALL - len(SAYS)


def zeros(*shape):
    return np.zeros(shape, dtype=np.float32)


embedding = zeros(len(tokens), WIDTH)
output = zeros(len(tokens), WIDTH)
for token in range(len(tokens)):
    embedding[token, token] = 1
    is_last = token == CALL - 1
    likely = END if token >= CALL - 1 else token + 1 if token >= first else first
    output[likely, token] = 1
    # The second choice.
    output[CALL if is_last else END, token] = 0.5

writer = GGUFWriter(sys.argv[1], "llama")
writer.add_name("tiny")
writer.add_context_length(4096)
writer.add_embedding_length(WIDTH)
writer.add_block_count(1)
writer.add_feed_forward_length(FEED_FORWARD)
writer.add_head_count(HEADS)
writer.add_head_count_kv(HEADS)
writer.add_rope_dimension_count(WIDTH // HEADS)
writer.add_layer_norm_rms_eps(1e-5)
writer.add_vocab_size(len(tokens))
writer.add_tokenizer_model("llama")
writer.add_token_list(tokens)
writer.add_token_scores([0.0] * len(tokens))
writer.add_token_types(types)
writer.add_unk_token_id(0)
writer.add_bos_token_id(1)
writer.add_eos_token_id(END)
writer.add_add_space_prefix(False)
writer.add_chat_template(TEMPLATE)
writer.add_tensor("token_embd.weight", embedding)
writer.add_tensor("output.weight", output)
writer.add_tensor("output_norm.weight", zeros(WIDTH) + 1)
for name in ["attn_norm", "ffn_norm"]:
    writer.add_tensor(f"blk.0.{name}.weight", zeros(WIDTH) + 1)
for name in ["attn_q", "attn_k", "attn_v", "attn_output"]:
    writer.add_tensor(f"blk.0.{name}.weight", zeros(WIDTH, WIDTH))
for name in ["ffn_gate", "ffn_up"]:
    writer.add_tensor(f"blk.0.{name}.weight", zeros(FEED_FORWARD, WIDTH))
writer.add_tensor("blk.0.ffn_down.weight", zeros(WIDTH, FEED_FORWARD))
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
