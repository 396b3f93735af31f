// Tests: tests/models/base_messages_test.cc.
#include "models/base/common_words.h"

#include <algorithm>
#include <array>

namespace paceline {
namespace {

struct CommonWord {
  std::string_view kind;
  std::string_view word;  // or how it begins, where it ends in *
  std::string_view remedy;
};

constexpr std::string_view shardings =
    "give --strategy zero1, zero2, fsdp (ZeRO-3) or hsdp, whose shards are --group ranks";
constexpr std::string_view recomputation = "give --recompute full, per-op, selective or none";
constexpr std::string_view tensor = "give --tensor T";
constexpr std::string_view pipeline = "give --pipeline P";
constexpr std::string_view sixteen_bits =
    "choose mixed: 16-bit computation with FP32 master weights; --wire says the type on the wire";
constexpr std::string_view own_network =
    "give its config.json of Hugging Face, write it as a YAML file (docs/formats.md), or take it "
    "from PyTorch "
    "(docs/python.md); paceline show catalog lists those that are known";

constexpr std::array words = {
    CommonWord{"option", "--sharding", shardings},
    CommonWord{"option", "--fsdp", shardings},
    CommonWord{"option", "--zero*", shardings},
    CommonWord{"option", "--tensor-parallel*", tensor},
    CommonWord{"option", "--pipeline-parallel*", pipeline},
    CommonWord{"option", "--expert-parallel*", "give --expert E"},
    CommonWord{"option", "--context-parallel*", "give --context C"},
    CommonWord{"option", "--tp", tensor},
    CommonWord{"option", "--pp", pipeline},
    CommonWord{"option", "--cp", "give --context C"},
    CommonWord{"option", "--ep", "give --expert E"},
    CommonWord{"option", "--offload*",
               "give --offload optimizer; parameters on the host are not modelled"},
    CommonWord{"option", "--activation-checkpointing", recomputation},
    CommonWord{"option", "--checkpointing", recomputation},
    CommonWord{"option", "--tokens",
               "give --samples of paceline cost: the tokens divided by --sequence"},
    CommonWord{"option", "--gpus", "give --ranks, one for each GPU, or --nodes"},
    CommonWord{"option", "--world-size", "give --ranks"},
    CommonWord{"strategy", "fsdp*", "write fsdp, or hsdp with --group"},
    CommonWord{"strategy", "zero3", "write fsdp, which is ZeRO-3"},
    CommonWord{"strategy", "zero-3", "write fsdp, which is ZeRO-3"},
    CommonWord{"strategy", "deepspeed*", "write zero1, zero2 or fsdp (ZeRO-3)"},
    CommonWord{"strategy", "megatron*", "write zero1, Megatron-LM's distributed optimizer"},
    CommonWord{"strategy", "tp", "give --tensor T beside a strategy"},
    CommonWord{"precision", "bf16", sixteen_bits},
    CommonWord{"precision", "bfloat16", sixteen_bits},
    CommonWord{"precision", "fp16", sixteen_bits},
    CommonWord{"precision", "float16", sixteen_bits},
    CommonWord{"precision", "half", sixteen_bits},
    CommonWord{"precision", "amp", sixteen_bits},
    CommonWord{"network", "llama*", own_network},
    CommonWord{"network", "mistral*", own_network},
    CommonWord{"network", "mixtral*", own_network},
    CommonWord{"network", "qwen*", own_network},
    CommonWord{"network", "gemma*", own_network},
    CommonWord{"network", "gpt3*", own_network},
    CommonWord{"network", "gpt-3*", own_network},
    CommonWord{"network", "deepseek*", own_network},
    CommonWord{"command", "version", "write paceline --version"},
    CommonWord{"command", "help", "write paceline --help"},
};

bool matches(std::string_view pattern, std::string_view word) {
  if (!pattern.ends_with('*')) return word == pattern;
  pattern.remove_suffix(1);
  return word.starts_with(pattern);
}

}  // namespace

std::string common_word_remedy(std::string_view kind, std::string_view word) {
  const auto* const found = std::find_if(words.begin(), words.end(), [&](const CommonWord& common) {
    return common.kind == kind && matches(common.word, word);
  });
  return found == words.end() ? std::string() : std::string(found->remedy);
}

}  // namespace paceline
