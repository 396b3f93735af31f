"""Transformers in plain PyTorch, as people write them: a GPT, a BERT, one of Llama's layers, and PyTorch's own."""

import math

import torch
from torch import nn


class CausalAttention(nn.Module):
    def __init__(self, length, features, heads):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(features, 3 * features), nn.Linear(features, features)
        self.attn_drop, self.drop, self.heads = nn.Dropout(0.1), nn.Dropout(0.1), heads
        self.register_buffer("bias", torch.tril(torch.ones(length, length)).view(1, 1, length, length))

    def forward(self, x):
        samples, length, features = x.size()
        q, k, v = (part.view(samples, length, self.heads, features // self.heads).transpose(1, 2)
                   for part in self.c_attn(x).split(features, dim=2))
        scores = (q @ k.transpose(-2, -1)) * (1 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.bias[:, :, :length, :length] == 0, float("-inf"))
        x = self.attn_drop(torch.softmax(scores, dim=-1)) @ v
        return self.drop(self.c_proj(x.transpose(1, 2).contiguous().view(samples, length, features)))


class GptBlock(nn.Module):
    def __init__(self, length, features, heads):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(features), CausalAttention(length, features, heads)
        self.ln_2, self.fc = nn.LayerNorm(features), nn.Linear(features, 4 * features)
        self.proj, self.drop = nn.Linear(4 * features, features), nn.Dropout(0.1)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        y = self.fc(self.ln_2(x))
        y = 0.5 * y * (1 + torch.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * torch.pow(y, 3.0))))
        return x + self.drop(self.proj(y))


class Gpt(nn.Module):
    def __init__(self, length=16, features=32, heads=4, words=50, layers=2):
        super().__init__()
        self.wte, self.wpe, self.drop = nn.Embedding(words, features), nn.Embedding(length, features), nn.Dropout(0.1)
        self.h = nn.ModuleList([GptBlock(length, features, heads) for _ in range(layers)])
        self.ln_f, self.lm_head = nn.LayerNorm(features), nn.Linear(features, words, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, x):
        samples, length = x.size()
        x = self.drop(self.wte(x) + self.wpe(torch.arange(0, length, device=x.device).unsqueeze(0)))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class BertAttention(nn.Module):
    def __init__(self, features, heads):
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(features, features) for _ in range(4))
        self.norm, self.drop, self.heads = nn.LayerNorm(features, eps=1e-12), nn.Dropout(0.1), heads

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, -1).permute(0, 2, 1, 3)

    def forward(self, x):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        weights = nn.functional.softmax(torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.size(-1)), dim=-1)
        y = torch.matmul(self.drop(weights), v).permute(0, 2, 1, 3).contiguous()
        return self.norm(self.drop(self.output(y.view(y.size(0), y.size(1), -1))) + x)


class Bert(nn.Module):
    def __init__(self, length=16, features=32, heads=4, words=50, layers=2):
        super().__init__()
        self.word, self.position = nn.Embedding(words, features), nn.Embedding(length, features)
        self.segment, self.norm, self.drop = nn.Embedding(2, features), nn.LayerNorm(features), nn.Dropout(0.1)
        self.register_buffer("places", torch.arange(length).unsqueeze(0))
        self.register_buffer("kinds", torch.zeros(1, length, dtype=torch.long))
        self.attention = nn.ModuleList([BertAttention(features, heads) for _ in range(layers)])
        self.up = nn.ModuleList([nn.Linear(features, 4 * features) for _ in range(layers)])
        self.down = nn.ModuleList([nn.Linear(4 * features, features) for _ in range(layers)])
        self.norms = nn.ModuleList([nn.LayerNorm(features) for _ in range(layers)])
        self.pooler, self.classes = nn.Linear(features, features), nn.Linear(features, 2)

    def forward(self, x):
        y = self.drop(self.norm(self.word(x) + self.segment(self.kinds) + self.position(self.places)))
        for attention, up, down, norm in zip(self.attention, self.up, self.down, self.norms):
            y = attention(y)
            y = norm(down(nn.functional.gelu(up(y))) + y)
        return self.classes(torch.tanh(self.pooler(y[:, 0])))


class Encoder(nn.Module):
    """PyTorch's own."""

    def __init__(self, norm_first=False, batch_first=True):
        super().__init__()
        self.tokens, self.batch_first = nn.Embedding(100, 32), batch_first
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=batch_first, activation="gelu", norm_first=norm_first)
        self.encoder, self.head = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(32)), nn.Linear(32, 100, bias=False)

    def forward(self, x):
        y = self.tokens(x)
        return self.head(self.encoder(y) if self.batch_first else self.encoder(y.transpose(0, 1)).transpose(0, 1))


class RootMeanSquare(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Llama(nn.Module):
    def __init__(self, features=32, heads=4):
        super().__init__()
        self.tokens, self.heads = nn.Embedding(50, features), heads
        self.norm1, self.norm2, self.norm3 = (RootMeanSquare(features) for _ in range(3))
        self.q, self.k, self.v, self.o = (nn.Linear(features, features, bias=False) for _ in range(4))
        self.gate, self.up = nn.Linear(features, 88, bias=False), nn.Linear(features, 88, bias=False)
        self.down, self.head = nn.Linear(88, features, bias=False), nn.Linear(features, 50, bias=False)

    def forward(self, x):
        x = self.tokens(x)
        y = self.norm1(x)
        q, k, v = (part(y).view(*y.shape[:2], self.heads, -1).transpose(1, 2) for part in (self.q, self.k, self.v))
        y = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(q.size(-1)), dim=-1) @ v
        x = x + self.o(y.transpose(1, 2).reshape(x.shape))
        y = self.norm2(x)
        x = x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))
        return self.head(self.norm3(x))
