// What is written is JSON that nlohmann and json_reader.h read back as it was meant.
#include "models/base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace paceline {
namespace {

TEST(Json, ADocumentIsWrittenAsItLooks) {
  const std::string name = "ring";
  const Json json = {{"name", name},
                     {"ranks", 8},
                     {"is_proved", true},
                     {"fault", nullptr},
                     {"sizes", std::vector<int>{1, 2}},
                     {"nic", {{"latency_s", 0.5}, {"lanes", std::size_t{4}}}}};
  EXPECT_EQ(json.in_one_line(),
            R"({"name":"ring","ranks":8,"is_proved":true,"fault":null,"sizes":[1,2],)"
            R"("nic":{"latency_s":0.5,"lanes":4}})");
  EXPECT_EQ(json.indented(),
            "{\n  \"name\": \"ring\",\n  \"ranks\": 8,\n  \"is_proved\": true,\n"
            "  \"fault\": null,\n  \"sizes\": [\n    1,\n    2\n  ],\n"
            "  \"nic\": {\n    \"latency_s\": 0.5,\n    \"lanes\": 4\n  }\n}");
}

TEST(Json, WithoutAnythingItIsNull) {
  EXPECT_EQ(Json().in_one_line(), "null");
  EXPECT_EQ(Json::array().indented(), "[]");
  EXPECT_EQ(Json::object().indented(), "{}");
}

TEST(Json, NumbersComeBackAsTheyWere) {
  using Limits = std::numeric_limits<double>;
  for (const double number : {0.1, 1.0, -0.0, 1e-300, Limits::max(), Limits::denorm_min(), 1e15})
    EXPECT_EQ(nlohmann::json::parse(Json(number).in_one_line()).get<double>(), number);
  EXPECT_EQ(Json(3.0).in_one_line(), "3.0");
  EXPECT_EQ(Json(std::numeric_limits<std::int64_t>::min()).in_one_line(), "-9223372036854775808");
  EXPECT_EQ(Json(std::numeric_limits<std::uint64_t>::max()).in_one_line(), "18446744073709551615");
  EXPECT_EQ(Json(std::nan("")).in_one_line(), "null");
  EXPECT_EQ(Json(Limits::infinity()).in_one_line(), "null");
}

TEST(Json, TextsAreEscapedAndUtf8) {
  EXPECT_EQ(Json("a\"b\\c\n\x1b").in_one_line(), R"("a\"b\\c\n\u001b")");
  EXPECT_EQ(Json("\u4e2d").in_one_line(), "\"\u4e2d\"");
  EXPECT_EQ(Json("a\xff").in_one_line(), "\"a\ufffd\"");
}

TEST(Json, KeysKeepTheirOrder) {
  Json json = Json::object();
  json["b"] = 1;
  json["a"] = "x";
  json["b"] = 2;
  json.update({{"a", 3}, {"c", Json::array()}});
  json["c"].push_back({{"d", 4}}).update({{"e", 5}});
  EXPECT_EQ(json.in_one_line(), R"({"b":2,"a":3,"c":[{"d":4,"e":5}]})");
}

TEST(Json, KeysAreSortedAtEveryDepth) {
  Json json = {{"b", std::vector{Json{{"d", 1}, {"c", 2}}}}, {"a", {{"f", 3}, {"e", 4}}}};
  json.sort_keys();
  EXPECT_EQ(json.in_one_line(), R"({"a":{"e":4,"f":3},"b":[{"c":2,"d":1}]})");
}

TEST(Json, ACopyIsAValueOfItsOwn) {
  Json json = {{"a", {{"b", 1}}}};
  const Json copy = json;
  json["a"]["b"] = 2;
  EXPECT_EQ(copy.in_one_line(), R"({"a":{"b":1}})");
  const Json moved = std::move(json);
  EXPECT_EQ(moved.in_one_line(), R"({"a":{"b":2}})");
}

}  // namespace
}  // namespace paceline
