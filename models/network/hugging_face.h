// Reads the configuration that Hugging Face's Transformers publishes with a network (config.json), of
// decoder-only transformers: Llama, Mistral, Mixtral, Qwen 2 and 3 (also with experts), DeepSeek 2 and 3, GPT-2,
// GPT-NeoX, Falcon and MPT, each with the defaults of its class where a key is absent, because files leave out what
// equals them. Of DeepSeek 3, the module that predicts one more token is left out.
//
// A sample has as many elements as the network has positions, and 8,192 where it has more: what
// --sequence says otherwise. The mapping, with its sources and counts, is that of Transformers' classes
// (src/transformers/models/*/configuration_*.py at 008e5743).
#pragma once

#include <string>
#include <string_view>

#include "models/network/network.h"

namespace paceline::models {

// Whether a text is such a configuration, of whatever architecture, and no description in YAML.
[[nodiscard]] bool looks_like_hugging_face(std::string_view text);

// Throws InputError (with the file and the key) if the text is no JSON, a value is out of range, the
// configuration has quantised weights, or its "model_type" is not among those above.
[[nodiscard]] Network parse_hugging_face(std::string_view text, const std::string& file);

}  // namespace paceline::models
