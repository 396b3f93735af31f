// A text of any kind, as a language model reads it: each byte is a token (256 of them), and the label of each is the
// byte behind it.
#pragma once

#include <memory>
#include <string>

#include "runtime/training/data/dataset.h"

namespace paceline::runtime {

// "text:FILE" names the text of a file.
inline constexpr const char* text_prefix = "text:";

// The last tenth of the file is the test part. Sample i of a part is its bytes [i n, (i + 1) n), n being the elements of
// the network's sequence; what is left over at the end of a part is not read. Throws InputError if the file cannot be
// read, has fewer than ten samples or more than 4 GiB, or the network reads no sequence of tokens or tells fewer than
// 256 apart.
[[nodiscard]] std::unique_ptr<Dataset> open_text(const DatasetRequest& request,
                                                 const std::string& file);

}  // namespace paceline::runtime
