// Tests: tests/models/json_test.cc.
#include "models/base/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/base/error.h"

namespace paceline {

// Makes nlohmann's value of ours, for it to print.
class Json::Printer {
 public:
  static std::string print(const Json& json, int indent) {
    return std::visit(Printer{}, json.value_)
        .dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  }

  template <class T>
  nlohmann::ordered_json operator()(const T& value) const {
    return value;
  }
  nlohmann::ordered_json operator()(const Array& elements) const {
    nlohmann::ordered_json::array_t array;
    array.reserve(elements.size());
    for (const Json& element : elements) array.push_back(std::visit(*this, element.value_));
    return array;
  }
  nlohmann::ordered_json operator()(const Object& members) const {
    nlohmann::ordered_json::object_t object;
    object.reserve(members.size());
    for (const auto& [key, value] : members)
      object.emplace_back(key, std::visit(*this, value.value_));
    return object;
  }
};

Json::Json() noexcept = default;
Json::Json(std::nullptr_t) noexcept {}
Json::Json(bool truth) : value_(truth) {}
Json::Json(int number) : value_(std::int64_t{number}) {}
Json::Json(std::int64_t number) : value_(number) {}
Json::Json(std::uint64_t number) : value_(number) {}
Json::Json(double number) : value_(number) {}
Json::Json(const char* text) : value_(std::string(text)) {}
Json::Json(std::string_view text) : value_(std::string(text)) {}
Json::Json(std::string text) : value_(std::move(text)) {}

Json::Json(std::initializer_list<Member> members) {
  Object& object = value_.emplace<Object>();
  object.reserve(members.size());
  for (const Member& member : members) object.emplace_back(member.key, std::move(member.value));
}

Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(Json other) noexcept {
  value_ = std::move(other.value_);
  return *this;
}
Json::~Json() = default;

Json Json::array() {
  Json json;
  json.value_.emplace<Array>();
  return json;
}

Json Json::object() {
  Json json;
  json.value_.emplace<Object>();
  return json;
}

Json& Json::push_back(Json element) {
  Array* const array = std::get_if<Array>(&value_);
  PACELINE_ASSERT(array != nullptr, "elements are added to an array");
  return array->emplace_back(std::move(element));
}

Json& Json::operator[](std::string_view key) {
  Object* const object = std::get_if<Object>(&value_);
  PACELINE_ASSERT(object != nullptr, "keys are of an object");
  const auto known = std::find_if(object->begin(), object->end(),
                                  [key](const auto& member) { return member.first == key; });
  return known != object->end() ? known->second : object->emplace_back(key, Json()).second;
}

void Json::update(Json object) {
  Object* const members = std::get_if<Object>(&object.value_);
  PACELINE_ASSERT(members != nullptr, "members are of an object");
  for (auto& [key, value] : *members) (*this)[key] = std::move(value);
}

void Json::sort_keys() {
  if (Array* const array = std::get_if<Array>(&value_)) {
    for (Json& element : *array) element.sort_keys();
  }
  if (Object* const object = std::get_if<Object>(&value_)) {
    std::sort(object->begin(), object->end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [key, value] : *object) value.sort_keys();
  }
}

std::string Json::indented() const {
  return Printer::print(*this, 2);
}

std::string Json::in_one_line() const {
  return Printer::print(*this, -1);
}

}  // namespace paceline
