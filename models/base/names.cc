#include "models/base/names.h"

#include <algorithm>
#include <cctype>

#include "models/base/common_words.h"

namespace paceline {
namespace {

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

// The optimal string alignment distance of a and b. O(|a| |b|) time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> d((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& { return d[i * width + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = i;
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1;
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + replace});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(b[j - 1])) {
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
      }
    }
  }
  return at(a.size(), b.size());
}

}  // namespace

std::optional<std::string> nearest_name(std::string_view name,
                                        const std::vector<std::string>& known) {
  constexpr std::size_t longest_name = 100;  // beyond that no catalogue name is near
  if (name.size() > longest_name) return std::nullopt;
  std::optional<std::string> best;
  std::size_t best_distance = 0;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance * 3 > std::max(name.size(), candidate.size())) continue;
    if (!best || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  // The beginning of a name, such as "jizhi" for "jizhi-p40".
  constexpr std::size_t shortest_beginning = 3;
  for (const std::string& candidate : known) {
    const bool begins = !best && name.size() >= shortest_beginning &&
                        candidate.size() > name.size() &&
                        edit_distance(name, candidate.substr(0, name.size())) == 0;
    if (begins) best = candidate;
  }
  return best;
}

InputError unknown_name(std::string_view kind, std::string_view name,
                        const std::vector<std::string>& known) {
  const std::string problem = "unknown " + std::string(kind) + " " + in_quotes(name);
  if (std::string remedy = common_word_remedy(kind, name); !remedy.empty())
    return InputError(problem, std::move(remedy));
  if (const auto nearest = nearest_name(name, known)) {
    return InputError(problem, "did you mean '" + *nearest + "'?");
  }
  std::string list;
  constexpr std::size_t most_listed = 400;  // characters: a line of a message
  for (const std::string& candidate : known) {
    if (list.size() + candidate.size() > most_listed)
      return InputError(problem, "known: " + list + ", ...");
    list += (list.empty() ? "" : ", ") + candidate;
  }
  return InputError(problem, "known: " + list);
}

}  // namespace paceline
