// Answers by the question that they are of, the least recently used of which go first.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace paceline::serve {

// The documents that answer a question: of each kind of question as many as it has.
using Documents = std::vector<std::shared_ptr<const std::string>>;

// Not for several threads at a time.
class Answers {
 public:
  explicit Answers(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  // Nothing if they are not kept.
  [[nodiscard]] std::optional<Documents> find(const std::string& question);
  // Keeps the documents, unless they alone are more than all that may be kept.
  void keep(const std::string& question, const Documents& documents);

 private:
  struct Entry {
    std::string question;
    Documents documents;
    std::size_t bytes = 0;
  };

  std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  std::list<Entry> entries_;  // the most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_question_;
};

}  // namespace paceline::serve
