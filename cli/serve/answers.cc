// Tests: tests/cli/answers_test.cc.
#include "cli/serve/answers.h"

namespace paceline::serve {

std::optional<Documents> Answers::find(const std::string& question) {
  const auto found = by_question_.find(question);
  if (found == by_question_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->documents;
}

void Answers::keep(const std::string& question, const Documents& documents) {
  Entry entry{question, documents, 2 * question.size()};
  for (const auto& document : documents) entry.bytes += document->size();
  if (entry.bytes > most_bytes_ || by_question_.contains(question)) return;
  bytes_ += entry.bytes;
  entries_.push_front(std::move(entry));
  by_question_.emplace(question, entries_.begin());
  while (bytes_ > most_bytes_) {
    bytes_ -= entries_.back().bytes;
    by_question_.erase(entries_.back().question);
    entries_.pop_back();
  }
}

}  // namespace paceline::serve
