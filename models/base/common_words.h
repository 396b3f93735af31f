// Words that people of the field try, and that this program does not know: what to do in their place.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// What to write, or that it is not modelled yet; empty for a word that is not in the table. `kind` is
// what the word was taken for: "option", "strategy", "precision", "network", "command".
[[nodiscard]] std::string common_word_remedy(std::string_view kind, std::string_view word);

}  // namespace paceline
