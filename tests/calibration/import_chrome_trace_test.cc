// Strange values in traces: a value where the format has none is left out with all that is in it, or
// it is an error of one line. It never changes what stands beside it.
#include "calibration/import/chrome_trace.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "calibration/import/traced_network.h"
#include "tests/calibration/import_files.h"
#include "tests/support/error_of.h"

namespace paceline::calibration {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

std::string text_of(const TraceEvent& event) {
  std::vector<std::string> arguments;
  for (const TraceArgument& argument : event.arguments)
    arguments.push_back(
        fmt::format("{}={} {}", argument.key, argument.text, argument.number.value_or(-1)));
  std::vector<std::string> shapes;
  for (const std::vector<std::int64_t>& sizes : event.input_sizes)
    shapes.push_back(fmt::format("[{}]", fmt::join(sizes, ",")));
  return fmt::format("{} {} {} {} {} {} {} | {} | {} | {}\n", event.phase, event.name,
                     event.category, event.begin_us, event.duration_us, event.pid, event.tid,
                     fmt::join(arguments, ","), fmt::join(shapes, ","),
                     fmt::join(event.concrete_inputs, ","));
}

// All that is read, as text.
std::string events_of(const std::string& text) {
  std::string events;
  read_chrome_trace(text, "trace.json", EarlyEnd::refused,
                    [&](TraceEvent&& event) { events += text_of(event); });
  return events;
}

std::string error_of_text(const std::string& text) {
  return test::error_of([&] { events_of(text); });
}

TEST(ChromeTrace, AnObjectAmongTheInputsIsRefused) {
  EXPECT_EQ(error_of_text(R"({"traceEvents": [{"args": {"Input Dims": [{"a": 7}]}}]})"),
            "trace.json:1:43: event 1: an input that is an object, in \"Input Dims\"; give a trace "
            "as the tool writes it");
  EXPECT_THAT(error_of_text(R"([{"args": {"Input Dims": [[4, 16], {"a": 7}]}}])"),
              HasSubstr("trace.json:1:36: event 1: an input that is an object"));
  EXPECT_THAT(error_of_text(R"([{"args": {"Input Dims": [[4, {"a": 7}]]}}])"),
              HasSubstr("a size that is an object, in \"Input Dims\""));
  EXPECT_THAT(error_of_text("[{},\n{\"args\": {\"Concrete Inputs\": [\"\", {\"a\": [7]}]}}]"),
              HasSubstr("trace.json:2:35: event 2: an input that is an object, in \"Concrete"));
}

TEST(ChromeTrace, ASizeThatIsNoneIsRefused) {
  for (const std::string size : {"-1", "1e13", "\"16\"", "null"})
    EXPECT_THAT(error_of_text(R"([{"args": {"Input Dims": [[4, )" + size + "]]}}]"),
                HasSubstr("event 1: a size that is no number from 0 to 1e12, in \"Input Dims\""))
        << size;
}

TEST(ChromeTrace, ObjectsAndArraysWithoutAMeaningAreLeftOut) {
  const std::string plain = events_of(R"([{"name": "n", "args": {"b": 2, "Input Dims": [[4]]}}])");
  for (
      const std::string strange :
      {R"([{"ph": {"args": {"b": 3}}, "name": "n", "args": {"b": 2, "Input Dims": [[4]]}}])",
       R"([{"name": "n", "args": {"a": {"Input Dims": [[5]]}, "b": 2, "Input Dims": [[4]]}}])",
       R"([{"name": "n", "args": {"b": 2, "Input Dims": [[4, [[7]]]]}, "cat": [{"args": {"c": 1}}]}])",
       R"([{"name": "n", "args": {"Input Dims": [[9]], "b": 2, "Input Dims": [[4]]}}])",
       R"({"a": {"traceEvents": [{}]}, "traceEvents": [{"name": "n", "args": {"b": 2, "Input Dims": [[4]]}}]})"})
    EXPECT_EQ(events_of(strange), plain) << strange;
  // An input keeps its place, and so do the ones behind it.
  EXPECT_EQ(events_of(R"([{"args": {"Concrete Inputs": ["a", ["b"], "c"]}}])"),
            events_of(R"([{"args": {"Concrete Inputs": ["a", "", "c"]}}])"));
}

// Writes a document with one more value in one of its objects or arrays.
class Insertion {
 public:
  // In the container of that number, in the order of the text; `at` is taken modulo its places.
  Insertion(int container, std::size_t at, std::string in_object, std::string in_array)
      : left_(container),
        at_(at),
        in_object_(std::move(in_object)),
        in_array_(std::move(in_array)) {}

  std::string text(const Json& json) {
    if (!json.is_structured()) return json.dump();
    std::vector<std::string> parts;
    const bool is_here = left_-- == 0;
    for (const auto& [key, value] : json.items())
      parts.push_back(json.is_object() ? Json(key).dump() + ":" + text(value) : text(value));
    if (is_here)
      parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(at_ % (parts.size() + 1)),
                   json.is_object() ? in_object_ : in_array_);
    return fmt::format(fmt::runtime(json.is_object() ? "{{{}}}" : "[{}]"), fmt::join(parts, ","));
  }
  // How many containers there are, once text() has run with a negative number.
  [[nodiscard]] int containers() const { return -1 - left_; }

 private:
  int left_;
  std::size_t at_;
  std::string in_object_;
  std::string in_array_;
};

int containers_of(const Json& json) {
  Insertion none(-1, 0, "", "");
  (void)none.text(json);
  return none.containers();
}

const Json& shaped_trace() {
  static const Json json = Json::parse(golden_import("pytorch/2.5-shapes.json"));
  return json;
}

std::string random_value(int deepest) {
  const int kind = *rc::gen::inRange(0, deepest > 0 ? 8 : 6);
  if (kind < 6)
    return std::vector<std::string>{
        "null", "true", "-1", "7", "\"X\"", "1e300"}[static_cast<std::size_t>(kind)];
  std::string inside;
  const int size = *rc::gen::inRange(0, 4);
  for (int i = 0; i < size; ++i) {
    const std::string key =
        *rc::gen::element<std::string>("args", "Input Dims", "ts", "traceEvents", "name");
    inside += (i == 0 ? "" : ",") + (kind == 6 ? "\"" + key + "\":" : std::string()) +
              random_value(deepest - 1);
  }
  return kind == 6 ? "{" + inside + "}" : "[" + inside + "]";
}

// An unknown key, and an object or an array in a list: as if it were not there, or an error.
RC_GTEST_PROP(ChromeTraceProperty, AStrangeValueChangesNothingBesideIt, ()) {
  static const int containers = containers_of(shaped_trace());
  static const std::string expected = events_of(shaped_trace().dump());
  Insertion insertion(*rc::gen::inRange(0, containers), *rc::gen::inRange<std::size_t>(0, 1000),
                      "\"stranger\":{\"in\":" + random_value(3) + "}",
                      "{\"Input Dims\":" + random_value(3) + "}");
  const std::string text = insertion.text(shaped_trace());
  std::string read;
  const std::string error = test::error_of([&] { read = events_of(text); });
  if (read.empty()) {
    RC_ASSERT(error.find('\n') == std::string::npos);
    RC_ASSERT(error.starts_with("trace.json:1:"));
  } else if (read != expected) {  // an object among the events is one more, without a name
    const std::string more = text_of(TraceEvent{});
    const std::size_t at = read.find(more);
    RC_ASSERT(at != std::string::npos);
    RC_ASSERT(read.erase(at, more.size()) == expected);
  }
}

// Any value at any place, which may have a meaning there: the readers of traces never crash.
RC_GTEST_PROP(ChromeTraceProperty, AnyValueAnywhereIsReadOrRefused, ()) {
  static const int containers = containers_of(shaped_trace());
  const std::string key = *rc::gen::element<std::string>("args", "Input Dims", "Concrete Inputs",
                                                         "ts", "ph", "traceEvents", "name");
  const std::string value = random_value(4);
  Insertion insertion(*rc::gen::inRange(0, containers), *rc::gen::inRange<std::size_t>(0, 1000),
                      "\"" + key + "\":" + value, value);
  const std::string text = insertion.text(shaped_trace());
  const std::string error =
      test::error_of([&] { return traced_network(text, "trace.json", "traced"); });
  RC_ASSERT(error.find('\n') == std::string::npos);
}

}  // namespace
}  // namespace paceline::calibration
