// The builders of the zoo, one file for each family. Users reach them through zoo.h.
#pragma once

#include "models/network/network.h"

namespace paceline::models {

[[nodiscard]] Network alexnet();
[[nodiscard]] Network alexnet_bn();
[[nodiscard]] Network alexnet_bn_refined();
[[nodiscard]] Network vgg16();
[[nodiscard]] Network googlenet();
[[nodiscard]] Network resnet50();
[[nodiscard]] Network resnet101();
[[nodiscard]] Network resnet152();
[[nodiscard]] Network inception_v3();
[[nodiscard]] Network inception_v4();
[[nodiscard]] Network bert_base();
[[nodiscard]] Network bert_large();
[[nodiscard]] Network gpt2_tiny();
[[nodiscard]] Network llama_tiny();
[[nodiscard]] Network gpt2_small();
[[nodiscard]] Network gpt2_medium();
[[nodiscard]] Network gpt2_large();
[[nodiscard]] Network gpt2_xl();
[[nodiscard]] Network llama_2_7b();
[[nodiscard]] Network llama_2_70b();
[[nodiscard]] Network llama_3_8b();
[[nodiscard]] Network llama_3_70b();
[[nodiscard]] Network llama_3_1_405b();
[[nodiscard]] Network mistral_7b();
[[nodiscard]] Network qwen2_5_7b();
[[nodiscard]] Network qwen2_5_72b();
[[nodiscard]] Network mixtral_8x7b();
[[nodiscard]] Network qwen3_30b();
[[nodiscard]] Network qwen3_235b();
[[nodiscard]] Network deepseek_v3();
[[nodiscard]] Network gpt3_175b();
[[nodiscard]] Network cnn_small();
[[nodiscard]] Network resnet_small();

// ImageNet's training set: about 144 GB of JPEG in 1.281 million images (ILSVRC 2012).
inline constexpr Bytes imagenet_sample{112e3};
// 28x28 grey images, one byte a pixel.
inline constexpr Bytes small_image_sample{784};

}  // namespace paceline::models
