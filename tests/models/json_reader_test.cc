#include "models/base/json_reader.h"

#include <gtest/gtest.h>

#include <string>

#include "models/base/names.h"

namespace paceline {
namespace {

// The message of the error that read(document) throws.
template <class F>
std::string error_of(const std::string& text, F read) {
  try {
    const JsonDocument document(text, "f.json", "the document", "give another");
    read(document.root());
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string parse_error(const std::string& text) {
  return error_of(text, [](const JsonValue& /*root*/) {});
}

TEST(JsonReader, PlacesAreThePathToTheValue) {
  const auto read = [](const JsonValue& root) {
    root.at("a").for_each([](const JsonValue& entry) { (void)entry.at("b").at("c").number(); });
  };
  EXPECT_EQ(error_of(R"({"a": [{"b": {"c": 1}}]})", read), "no error");
  EXPECT_EQ(error_of(R"({"a": [{"b": {"c": 1}}, {"b": {"c": "1"}}]})", read),
            "f.json: a[1].b.c: this is no number; write a finite number");
  EXPECT_EQ(error_of(R"({"a": [{"b": {}}]})", read), "f.json: a[0].b: 'c' is missing; add \"c\"");
  EXPECT_EQ(error_of(R"({"a": [{"b": 1}]})", read),
            "f.json: a[0].b: this is no object; write {...}");
  EXPECT_EQ(error_of(R"({"a": {}})", read), "f.json: a: this is no array; write [...]");
  EXPECT_EQ(error_of("[]", read), "f.json: the document: this is no object; write {...}");
}

TEST(JsonReader, ElementsOfTheDocumentHaveAPlace) {
  EXPECT_EQ(error_of("[1, true]",
                     [](const JsonValue& root) {
                       root.for_each([](const JsonValue& entry) { (void)entry.number(); });
                     }),
            "f.json: [1]: this is no number; write a finite number");
}

TEST(JsonReader, BrokenTextNamesLineAndColumn) {
  EXPECT_EQ(parse_error(""), "f.json:1:1: this is not JSON; give another");
  EXPECT_EQ(parse_error("{\n  \"a\" 1}"), "f.json:2:7: this is not JSON; give another");
  EXPECT_EQ(parse_error("{} {}"), "f.json:1:4: this is not JSON; give another");
  EXPECT_EQ(parse_error(std::string("\0", 1)), "f.json:1:1: this is not JSON; give another");
  EXPECT_EQ(parse_error("[1e999]"), "f.json: a number is too large; write finite numbers");
}

TEST(JsonReader, AKeyMayBeThereOnce) {
  EXPECT_EQ(parse_error("{\"a\": 1,\n \"b\": {}, \"a\": 2}"),
            "f.json:2:13: the key 'a' is there twice; leave one out");
  EXPECT_EQ(parse_error(R"([{"a": {"b": 1, "b": 2}}])"),
            "f.json:1:19: the key 'b' is there twice; leave one out");
  EXPECT_EQ(parse_error(R"({"a": {"a": [{"a": 1}, {"a": 2}]}, "b": {"a": 1}})"), "no error");
}

TEST(JsonReader, NestsSixteenDeep) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(parse_error(nested(16)), "no error");
  EXPECT_EQ(parse_error(nested(17)), "f.json:1:17: this nests more than 16 deep; give another");
  EXPECT_EQ(parse_error(std::string(1 << 22, '[')),
            "f.json:1:17: this nests more than 16 deep; give another");
}

// Time that grows with the square of the length would be minutes here.
TEST(JsonReader, LongListsTakeTheTimeOfTheirLength) {
  std::string text = "[{}";
  for (int i = 1; i < 1'000'000; ++i) text += ",{}";
  EXPECT_EQ(parse_error(text + "]"), "no error");
}

TEST(JsonReader, KeysAreKnownOrSuggested) {
  const auto check = [](const JsonValue& root) { root.check_keys({"name", "value"}); };
  EXPECT_EQ(error_of(R"({"value": 1})", check), "no error");
  EXPECT_EQ(error_of(R"({"vlaue": 1})", check),
            "f.json: the document: unknown key 'vlaue'; did you mean 'value'?");
  EXPECT_EQ(error_of("3", check), "f.json: the document: this is no object; write {...}");
}

TEST(JsonReader, ASchemaIsTheOneThatIsRead) {
  const auto check = [](const JsonValue& root) { root.check_schema("a.plan/1", "plan"); };
  EXPECT_EQ(error_of(R"({"schema": "a.plan/1"})", check), "no error");
  EXPECT_EQ(error_of(R"({"schema": "a.plan/2"})", check),
            "f.json: schema: 'a.plan/2' is not what this version reads; give a plan of schema "
            "a.plan/1");
  EXPECT_EQ(error_of("{}", check), "f.json: the document: 'schema' is missing; add \"schema\"");
}

TEST(JsonReader, NullIsThereButIsNoValue) {
  const JsonDocument document(R"({"a": null, "b": 0})", "f.json", "the document", "give another");
  const JsonValue root = document.root();
  EXPECT_TRUE(root.has("a"));
  EXPECT_FALSE(root.has_value("a"));
  EXPECT_TRUE(root.has_value("b"));
  EXPECT_FALSE(root.has("c"));
  EXPECT_FALSE(root.at("b").has("a"));
}

TEST(JsonReader, NumbersAreWithinTheirLimits) {
  const auto number = [](const std::string& text) {
    return error_of(text, [](const JsonValue& root) { (void)root.number(0, 5); });
  };
  EXPECT_EQ(number("0"), "no error");
  EXPECT_EQ(number("5.0"), "no error");
  EXPECT_EQ(number("-1"), "f.json: the document: -1 does not fit; write a number from 0 to 5");
  EXPECT_EQ(number("5.5"), "f.json: the document: 5.5 does not fit; write a number from 0 to 5");
  for (const char* text : {"null", "true", "\"1\"", "[]"})
    EXPECT_EQ(number(text), "f.json: the document: this is no number; write a finite number");
  const auto whole = [](const std::string& text, std::int64_t high = 5) {
    return error_of(text, [=](const JsonValue& root) { (void)root.whole(1, high); });
  };
  EXPECT_EQ(whole("5"), "no error");
  EXPECT_EQ(whole("2.0"), "no error");
  EXPECT_EQ(whole("2.5"), "f.json: the document: 2.5 is not a whole number from 1 to 5");
  EXPECT_EQ(whole("18446744073709551615"),
            "f.json: the document: 1.8446744073709552e+19 is not a whole number from 1 to 5");
  EXPECT_EQ(whole("1", 0), "f.json: the document: the document has nothing of that kind");
}

TEST(JsonReader, TextIsShortAndPlain) {
  const auto text = [](const std::string& written) {
    return error_of(written, [](const JsonValue& root) { (void)root.text(8); });
  };
  EXPECT_EQ(text("\"\u4e2d\u00e9\""), "no error");
  EXPECT_EQ(text("\"123456789\""),
            "f.json: the document: this text is longer than 8 bytes; give a shorter one");
  for (const char* written : {"\"a\\nb\"", "\"\\u001b[2J\"", "\"\\u0000\"", "\"\\u007f\""})
    EXPECT_EQ(text(written),
              "f.json: the document: this text has control characters; leave them out");
  EXPECT_EQ(text("1"), "f.json: the document: this is no text; write \"...\"");
}

TEST(JsonReader, NamesAreSaidToBeUnknownWhereTheyStand) {
  const auto parse = [](const std::string& text) -> int {
    if (text == "one") return 1;
    throw unknown_name("number", text, {"one"});
  };
  EXPECT_EQ(
      error_of(R"({"n": "oen"})", [&](const JsonValue& root) { (void)root.at("n").named(parse); }),
      "f.json: n: unknown number 'oen'; did you mean 'one'?");
}

TEST(JsonReader, ArraysHaveALimit) {
  EXPECT_EQ(error_of("[1, 2, 3]",
                     [](const JsonValue& root) { root.for_each([](const JsonValue&) {}, 2); }),
            "f.json: the document: these are 3; at most 2 are read");
}

TEST(JsonReader, FlagsAreTrueOrFalse) {
  EXPECT_EQ(error_of("1", [](const JsonValue& root) { (void)root.flag(); }),
            "f.json: the document: this is neither true nor false; write true or false");
}

}  // namespace
}  // namespace paceline
