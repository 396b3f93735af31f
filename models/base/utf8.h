// The characters of a text that may be no UTF-8, or that a terminal would act on.
#pragma once

#include <cstddef>
#include <string_view>

namespace paceline {

// Counts the bytes of the character that begins the text; 0 if there is none (RFC 3629: no
// surrogates, nothing above U+10FFFF, and each character in its shortest form).
[[nodiscard]] std::size_t character_length(std::string_view text);

// Whether the character that begins the text steers what shows it, rather than being shown: controls
// (U+0000 to U+001F, U+007F to U+009F), line and paragraph separators, and marks, embeddings,
// overrides and isolates of the direction of writing, by which a text can be shown as another.
// The text begins with a character.
[[nodiscard]] bool is_steering(std::string_view text);

// The code point of the character that begins the text.
[[nodiscard]] char32_t code_point(std::string_view text);

}  // namespace paceline
