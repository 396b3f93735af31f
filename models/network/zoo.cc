// Tests: tests/models/zoo_test.cc.
#include "models/network/zoo.h"

#include <array>

#include "models/base/names.h"
#include "models/network/zoo/families.h"

namespace paceline::models {
namespace {

constexpr std::array all = {
    ZooEntry{"alexnet", "AlexNet, ungrouped, 227x227 (Krizhevsky 2012; Jizhi Table 3)", alexnet},
    ZooEntry{"alexnet-bn", "AlexNet with batch norm for LRN (You et al. 2017)", alexnet_bn},
    ZooEntry{"alexnet-bn-refined", "AlexNet-BN with a batch norm after pool5 (Jizhi Fig. 3)",
             alexnet_bn_refined},
    ZooEntry{"vgg16", "VGG-16, configuration D (Simonyan & Zisserman 2014)", vgg16},
    ZooEntry{"googlenet", "GoogLeNet with both auxiliary heads (Szegedy 2014; Caffe)", googlenet},
    ZooEntry{"inception-v3", "Inception v3 without auxiliary head, 299x299 (Szegedy 2015)",
             inception_v3},
    ZooEntry{"inception-v4", "Inception v4, 299x299 (Szegedy 2016)", inception_v4},
    ZooEntry{"resnet50", "ResNet-50 v1.5, stride in the 3x3 (He 2015; torchvision)", resnet50},
    ZooEntry{"resnet101", "ResNet-101 v1.5 (He 2015; torchvision)", resnet101},
    ZooEntry{"resnet152", "ResNet-152 v1.5 (He 2015; torchvision)", resnet152},
    ZooEntry{"bert-base", "BERT-base for pretraining, 512 tokens, tied decoder (Devlin 2018)",
             bert_base},
    ZooEntry{"bert-large", "BERT-large for pretraining, 512 tokens, tied decoder (Devlin 2018)",
             bert_large},
    ZooEntry{"gpt2-tiny", "GPT-2 of 4 blocks, 64 bytes, fused attention (nanoGPT, for CPUs)",
             gpt2_tiny},
    ZooEntry{"gpt2-small", "GPT-2 of 12 blocks, 1024 tokens, tied decoder (Radford 2019)",
             gpt2_small},
    ZooEntry{"gpt2-medium", "GPT-2 of 24 blocks, 1024 tokens, tied decoder (Radford 2019)",
             gpt2_medium},
    ZooEntry{"gpt2-large", "GPT-2 of 36 blocks, 1024 tokens, tied decoder (Radford 2019)",
             gpt2_large},
    ZooEntry{"gpt2-xl", "GPT-2 of 48 blocks, 1024 tokens, tied decoder (Radford 2019)", gpt2_xl},
    ZooEntry{"llama-tiny", "Llama of 4 blocks, 64 bytes, grouped queries (for CPUs)", llama_tiny},
    ZooEntry{"llama-2-7b", "Llama 2 7B, 4096 tokens (Touvron 2023)", llama_2_7b},
    ZooEntry{"llama-2-70b", "Llama 2 70B, 4096 tokens, grouped queries (Touvron 2023)",
             llama_2_70b},
    ZooEntry{"llama-3-8b", "Llama 3 8B, 8192 tokens, grouped queries (Grattafiori 2024)",
             llama_3_8b},
    ZooEntry{"llama-3-70b", "Llama 3 70B, 8192 tokens, grouped queries (Grattafiori 2024)",
             llama_3_70b},
    ZooEntry{"llama-3.1-405b", "Llama 3.1 405B, 8192 tokens, grouped queries (Grattafiori 2024)",
             llama_3_1_405b},
    ZooEntry{"mistral-7b", "Mistral 7B v0.1, 8192 tokens in windows of 4096 (Jiang 2023)",
             mistral_7b},
    ZooEntry{"qwen2.5-7b", "Qwen 2.5 7B, 4096 tokens, grouped queries (Yang 2024)", qwen2_5_7b},
    ZooEntry{"qwen2.5-72b", "Qwen 2.5 72B, 4096 tokens, grouped queries (Yang 2024)", qwen2_5_72b},
    ZooEntry{"mixtral-8x7b", "Mixtral 8x7B, 4096 tokens, 2 of 8 experts (Jiang 2024)",
             mixtral_8x7b},
    ZooEntry{"qwen3-30b-a3b", "Qwen 3 30B-A3B, 4096 tokens, 8 of 128 experts (Yang 2025)",
             qwen3_30b},
    ZooEntry{"qwen3-235b-a22b", "Qwen 3 235B-A22B, 4096 tokens, 8 of 128 experts (Yang 2025)",
             qwen3_235b},
    ZooEntry{"deepseek-v3",
             "DeepSeek-V3 671B, 4096 tokens, latent attention, 8 of 256 experts (DeepSeek-AI 2024)",
             deepseek_v3},
    ZooEntry{"gpt3-175b", "GPT-3 175B, 2048 tokens, tied decoder (Brown 2020)", gpt3_175b},
    ZooEntry{"cnn-small", "two convolutions and two full layers for 28x28 images, 10 classes",
             cnn_small},
    ZooEntry{"resnet-small", "ResNet-14 of 16, 32, 64 channels for 28x28 images, 10 classes",
             resnet_small},
};

}  // namespace

std::span<const ZooEntry> zoo() {
  return all;
}

bool is_in_zoo(std::string_view name) {
  for (const ZooEntry& entry : all) {
    if (entry.name == name) return true;
  }
  return false;
}

Network zoo_network(std::string_view name) {
  std::vector<std::string> names;
  for (const ZooEntry& entry : all) {
    if (entry.name == name) return entry.build();
    names.emplace_back(entry.name);
  }
  throw unknown_name("network", name, names);
}

}  // namespace paceline::models
