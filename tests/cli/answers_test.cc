#include "cli/serve/answers.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <deque>
#include <utility>

namespace paceline::serve {
namespace {

Documents documents(std::size_t bytes) {
  return {std::make_shared<const std::string>(bytes, 'x')};
}

TEST(Answers, drop_the_least_recently_used) {
  Answers answers(30);
  answers.keep("a", documents(8));  // 10 bytes each, with the question twice
  answers.keep("b", documents(8));
  answers.keep("c", documents(8));
  EXPECT_TRUE(answers.find("a"));
  answers.keep("d", documents(8));
  EXPECT_FALSE(answers.find("b"));
  EXPECT_TRUE(answers.find("a"));
  EXPECT_TRUE(answers.find("c"));
  EXPECT_TRUE(answers.find("d"));
}

TEST(Answers, keep_nothing_that_is_larger_than_all) {
  Answers answers(30);
  answers.keep("a", documents(8));
  answers.keep("b", documents(29));
  EXPECT_TRUE(answers.find("a"));
  EXPECT_FALSE(answers.find("b"));
}

// Holds the answers against a list that is searched from its front.
RC_GTEST_PROP(Answers, are_those_used_last, ()) {
  constexpr std::size_t most = 100;
  Answers answers(most);
  std::deque<std::pair<std::string, std::size_t>> model;  // the most recently used first
  for (int i = 0; i < 200; ++i) {
    const std::string question(1, *rc::gen::inRange('a', 'j'));
    const auto known = std::find_if(model.begin(), model.end(),
                                    [&](const auto& entry) { return entry.first == question; });
    RC_ASSERT(answers.find(question).has_value() == (known != model.end()));
    if (known != model.end()) {
      const auto entry = *known;
      model.erase(known);
      model.push_front(entry);
      RC_ASSERT(answers.find(question)->front()->size() == entry.second);
      continue;
    }
    const auto bytes = *rc::gen::inRange<std::size_t>(0, 40);
    answers.keep(question, documents(bytes));
    model.emplace_front(question, bytes);
    const auto all = [&] {
      std::size_t sum = 0;
      for (const auto& entry : model) sum += entry.second + 2;
      return sum;
    };
    while (all() > most) model.pop_back();
  }
}

}  // namespace
}  // namespace paceline::serve
