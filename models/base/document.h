// Documents as tables: what a JSON document says of a value is a table of members, which writes the document
// and its JSON Schema (2020-12). A member is stated once, with its key and where it is in the value.
//
//   const Document<Row>& row_document() {
//     static const Document<Row> document =
//         Document<Row>()
//             .add("name", &Row::name)
//             .add("iteration_s", &Row::iteration, positive())
//             .add("buckets", [](const Row& row) { return row.plan.buckets.size(); }, at_least(1))
//             .add("memory", &Row::memory, memory_document())
//             .add_if_any("k_fac", &Row::k_fac, k_fac_document());
//     return document;
//   }
//
// The type of a member says what the schema allows: a text, a truth value, a whole number that is not
// negative, a number, an enumeration by name(), null where an optional is empty, a list of a range. A Quantity
// is written in its coherent unit, which the key must end with, and is not negative. A `Shape` states a
// narrower limit.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "models/base/figure.h"
#include "models/base/json.h"
#include "models/base/units.h"

namespace paceline {

// What a value of a document may be.
struct Shape {
  Json schema;
};

[[nodiscard]] Shape any_text();  // may be empty, where the shape of a text may not
[[nodiscard]] Shape any_number();
[[nodiscard]] Shape any_integer();
[[nodiscard]] Shape positive();           // a number above 0
[[nodiscard]] Shape not_negative();       // a number of at least 0
[[nodiscard]] Shape at_least(int least);  // a whole number
[[nodiscard]] Shape always(Json value);   // this value and no other
[[nodiscard]] Shape one_of(std::vector<std::string> names);
template <class E>
[[nodiscard]] Shape name_of();                      // one of the names of an enumeration
[[nodiscard]] Shape matching(std::string pattern);  // a text, by a regular expression
[[nodiscard]] Shape either(std::vector<Shape> shapes);
[[nodiscard]] Shape or_null(Shape shape);
[[nodiscard]] Shape list_of(Shape elements, int least = 0);
[[nodiscard]] Shape mapping_to(Shape values);  // an object whose keys are no part of the table

template <class T>
class Document;

namespace detail {

template <class T>
concept IsQuantity = requires(const T& value) {
  { value.value() } -> std::same_as<double>;
}
&&std::is_trivially_copyable_v<T>;

template <class T>
concept IsText = std::convertible_to<T, std::string_view>;

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

// Whether a value may be absent: an optional, or a pointer that is not a text.
template <class T>
concept IsMaybe = is_optional<T> ||(std::is_pointer_v<T> && !IsText<T>);

// A map, or a list of pairs of a text and a value, whose order an object then has.
template <class T>
concept IsMapping = std::ranges::range<T> &&(
    requires { typename T::mapped_type; } ||
    requires(const std::ranges::range_value_t<T>& entry) {
      { entry.first } -> IsText;
      entry.second;
    });

template <class T>
concept IsList = std::ranges::range<T> && !IsText<T> && !IsMapping<T>;

[[nodiscard]] Shape text_shape();
[[nodiscard]] Shape truth_shape();

// The names of an enumeration whose values count from 0, up to the first value for which name() repeats
// itself or returns "unknown".
template <class E>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (int i = 0; i < 64; ++i) {
    const std::string_view text = name(static_cast<E>(i));
    if (text == "unknown" || std::ranges::find(names, text) != names.end()) break;
    names.emplace_back(text);
  }
  return names;
}

// The shape of any value of a type.
template <class T>
Shape shape_of() {
  using V = std::remove_cvref_t<T>;
  if constexpr (IsMaybe<V>)
    return or_null(shape_of<decltype(*std::declval<const V&>())>());
  else if constexpr (std::is_same_v<V, bool>)
    return truth_shape();
  else if constexpr (std::is_integral_v<V>)
    return at_least(0);
  else if constexpr (std::is_floating_point_v<V>)
    return any_number();
  else if constexpr (std::is_enum_v<V>)
    return one_of(names_of<V>());
  else if constexpr (IsText<V>)
    return text_shape();
  else if constexpr (IsMapping<V>) {
    Shape mapping = mapping_to(shape_of<decltype(std::ranges::range_value_t<V>::second)>());
    if constexpr (std::is_integral_v<
                      std::remove_cvref_t<decltype(std::ranges::range_value_t<V>::first)>>)
      mapping.schema["propertyNames"] = {{"pattern", "^[0-9]+$"}};
    return mapping;
  } else if constexpr (IsList<V>)
    return list_of(shape_of<std::ranges::range_value_t<V>>());
  else {
    static_assert(IsQuantity<V>, "a value is written with a Document of its own, or is a quantity");
    return not_negative();
  }
}

// A value as JSON; `write` makes that of what is inside optionals and lists.
template <class T, class Write>
Json json_with(const T& value, const Write& write) {
  if constexpr (std::invocable<const Write&, const T&>)
    return write(value);
  else if constexpr (IsMaybe<T>)
    return value ? json_with(*value, write) : Json(nullptr);
  else {
    Json list = Json::array();
    for (const auto& element : value) list.push_back(json_with(element, write));
    return list;
  }
}

template <class T>
Json plain_json(const T& value) {
  if constexpr (IsMaybe<T>)
    return value ? plain_json(*value) : Json(nullptr);
  else if constexpr (std::is_same_v<T, bool>)
    return value;
  else if constexpr (std::is_unsigned_v<T>)
    return static_cast<std::uint64_t>(value);
  else if constexpr (std::is_integral_v<T>)
    return static_cast<std::int64_t>(value);
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<double>(value);
  else if constexpr (std::is_enum_v<T>)
    return name(value);
  else if constexpr (IsText<T>)
    return std::string_view(value);
  else if constexpr (IsMapping<T>) {
    Json json = Json::object();
    for (const auto& [key, inner] : value) {
      if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(key)>>)
        json[std::to_string(key)] = plain_json(inner);
      else
        json[key] = plain_json(inner);
    }
    return json;
  } else if constexpr (IsList<T>) {
    Json list = Json::array();
    for (const auto& element : value) list.push_back(plain_json(element));
    return list;
  } else {
    return value.value();
  }
}

// A member of a document, and how the values inside it are written.
struct MemberSchema {
  std::string key;
  Shape shape;
  bool is_required = true;
};
[[nodiscard]] Shape object_shape(const std::vector<MemberSchema>& members);
[[nodiscard]] Json top_schema(std::string_view name, std::string_view description,
                              const std::vector<MemberSchema>& members);

}  // namespace detail

template <class E>
Shape name_of() {
  return one_of(detail::names_of<E>());
}

template <class T>
class Document {
 public:
  // A part of other documents.
  Document() = default;
  // A document that is written by itself. Its first member is "schema" with the name:
  // "paceline.cost/1". The description says which command writes it and what it says.
  Document(std::string name, std::string description)
      : name_(std::move(name)), description_(std::move(description)) {
    add_constant("schema", name_);
  }

  // Adds a member. `get` is a pointer to a member of T or a function of it.
  template <class Get>
  Document& add(std::string key, Get get) {
    return add(std::move(key), std::move(get), detail::shape_of<Got<Get>>());
  }
  // The same, where the values of the schema are narrower, or wider, than the type says.
  template <class Get>
  Document& add(std::string key, Get get, Shape shape) {
    return add_member(std::move(key), std::move(shape), true, [get](const T& value, Json& json) {
      return json = detail::plain_json(std::invoke(get, value)), true;
    });
  }
  // A member that is the same in every document.
  Document& add_constant(std::string key, std::string text) {
    Shape shape = always(text);
    return add(
        std::move(key), [text = std::move(text)](const T&) { return text; }, shape);
  }
  // A member that is a document, or null where an optional or a pointer is empty, or a list of documents.
  template <class Get, class U>
  Document& add(std::string key, Get get, const Document<U>& document, int least = 0) {
    return add_member(std::move(key), shape_with<Got<Get>>(document, least), true,
                      [get, &document](const T& value, Json& json) {
                        return json = written(std::invoke(get, value), document), true;
                      });
  }
  // A member that is an object of documents, by keys that are no part of the table. `get` returns pairs of a key
  // and a value.
  template <class Get, class U>
  Document& add_mapping(std::string key, Get get, const Document<U>& document) {
    return add_member(std::move(key), mapping_to(document.shape()), true,
                      [get, &document](const T& value, Json& json) {
                        json = Json::object();
                        for (const auto& [name, part] : std::invoke(get, value))
                          json[name] = document.json(part);
                        return true;
                      });
  }
  // A member that is left out where the optional or the pointer is empty.
  template <class Get>
  Document& add_if_any(std::string key, Get get) {
    return add_if_any(std::move(key), get, detail::shape_of<Inner<Get>>());
  }
  template <class Get>
  Document& add_if_any(std::string key, Get get, Shape shape) {
    return add_member(std::move(key), std::move(shape), false, [get](const T& value, Json& json) {
      const auto& maybe = std::invoke(get, value);
      if (maybe) json = detail::plain_json(*maybe);
      return static_cast<bool>(maybe);
    });
  }
  template <class Get, class U>
  Document& add_if_any(std::string key, Get get, const Document<U>& document, int least = 0) {
    return add_member(std::move(key), shape_with<Inner<Get>>(document, least), false,
                      [get, &document](const T& value, Json& json) {
                        const auto& maybe = std::invoke(get, value);
                        if (maybe) json = written(*maybe, document);
                        return static_cast<bool>(maybe);
                      });
  }
  // "time_s", "time_low_s" and "time_high_s" for the name "time" and the unit "s"; "efficiency_low" where there
  // is no unit. `get` returns a Figure. Where it returns an optional that is empty, the first is null and the
  // other two are left out.
  template <class Get>
  Document& add_interval(std::string_view name, std::string_view unit, Get get,
                         Shape shape = not_negative()) {
    using Maybe = Got<Get>;
    const std::string ending = unit.empty() ? "" : "_" + std::string(unit);
    const auto end = [get](auto member) {
      return [get, member](const T& value) {
        if constexpr (detail::IsMaybe<Maybe>) {
          const auto& figure = std::invoke(get, value);
          return figure ? std::optional(std::invoke(member, *figure)) : std::nullopt;
        } else {
          return std::invoke(member, std::invoke(get, value));
        }
      };
    };
    const auto value_of = [](const auto& figure) { return figure.value; };
    const auto low_of = [](const auto& figure) { return figure.low; };
    const auto high_of = [](const auto& figure) { return figure.high; };
    const std::string base(name);
    if constexpr (detail::IsMaybe<Maybe>) {
      add(base + ending, end(value_of), or_null(shape));
      add_if_any(base + "_low" + ending, end(low_of), shape);
      return add_if_any(base + "_high" + ending, end(high_of), shape);
    } else {
      add(base + ending, end(value_of), shape);
      add(base + "_low" + ending, end(low_of), shape);
      return add(base + "_high" + ending, end(high_of), shape);
    }
  }
  // The members of another document, here. Where `get` returns an optional or a pointer that is empty, they are
  // left out.
  template <class Get, class U>
  Document& include(Get get, const Document<U>& document) {
    for (std::size_t i = 0; i < document.members_.size(); ++i) {
      constexpr bool is_maybe = detail::IsMaybe<Got<Get>>;
      const auto& member = document.members_[i];
      add_member(member.key, member.shape, member.is_required && !is_maybe,
                 [get, write = document.writers_[i]](const T& value, Json& json) {
                   const auto& part = std::invoke(get, value);
                   if constexpr (detail::IsMaybe<Got<Get>>)
                     return part && write(*part, json);
                   else
                     return write(part, json);
                 });
    }
    return *this;
  }
  template <class U>
  Document& include(const Document<U>& document) {
    return include([](const T& value) -> const U& { return value; }, document);
  }

  [[nodiscard]] Json json(const T& value) const {
    Json json = Json::object();
    for (std::size_t i = 0; i < members_.size(); ++i) {
      Json member;
      if (writers_[i](value, member)) json[members_[i].key] = std::move(member);
    }
    return json;
  }
  [[nodiscard]] std::string text(const T& value) const { return json(value).indented(); }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& description() const { return description_; }
  [[nodiscard]] Shape shape() const { return detail::object_shape(members_); }
  // The schema of a document that is written by itself.
  [[nodiscard]] Json schema() const { return detail::top_schema(name_, description_, members_); }

 private:
  template <class U>
  friend class Document;

  using Writer = std::function<bool(const T& value, Json& json)>;  // false: it is left out

  template <class Get>
  using Got = std::remove_cvref_t<std::invoke_result_t<const Get&, const T&>>;
  template <class Get>
  using Inner = std::remove_cvref_t<decltype(*std::declval<const Got<Get>&>())>;

  template <class V, class U>
  static Shape shape_with(const Document<U>& document, int least) {
    if constexpr (std::is_convertible_v<const V&, const U&>)
      return document.shape();
    else if constexpr (detail::IsMaybe<V>)
      return or_null(
          shape_with<std::remove_cvref_t<decltype(*std::declval<const V&>())>>(document, least));
    else
      return list_of(shape_with<std::ranges::range_value_t<V>>(document, 0), least);
  }
  template <class V, class U>
  static Json written(const V& value, const Document<U>& document) {
    return detail::json_with(value, [&](const U& inner) { return document.json(inner); });
  }

  Document& add_member(std::string key, Shape shape, bool is_required, Writer writer) {
    members_.push_back({std::move(key), std::move(shape), is_required});
    writers_.push_back(std::move(writer));
    return *this;
  }

  std::string name_;
  std::string description_;
  std::vector<detail::MemberSchema> members_;
  std::vector<Writer> writers_;
};

// The text, or nothing if it is empty: for members that are then null or left out.
[[nodiscard]] inline std::optional<std::string> non_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

// A getter of a member of a member: second(first(value)), as in
// add("compute_s", through(&Row::spent, &TimeSpent::compute)).
template <class First, class Second>
[[nodiscard]] auto through(First first, Second second) {
  return
      [first, second](const auto& value) { return std::invoke(second, std::invoke(first, value)); };
}

// A figure that is stated, with its unit and what it rests on.
struct StatedFigure {
  std::string unit;
  double value = 0;
  double low = 0;
  double high = 0;
  Provenance provenance = Provenance::datasheet;
  std::string source;
};
[[nodiscard]] const Document<StatedFigure>& stated_figure_document();

template <class Q>
[[nodiscard]] StatedFigure stated(const Figure<Q>& figure, std::string unit) {
  const auto number = [](const auto& value) {
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(value)>>)
      return static_cast<double>(value);
    else
      return value.value();
  };
  return {std::move(unit),     number(figure.value), number(figure.low),
          number(figure.high), figure.provenance,    figure.source};
}
template <class Q>
[[nodiscard]] std::optional<StatedFigure> stated(const std::optional<Figure<Q>>& figure,
                                                 std::string unit) {
  return figure ? std::optional(stated(*figure, std::move(unit))) : std::nullopt;
}

}  // namespace paceline
