// Tests: tests/models/document_test.cc, tests/cli/schemas_test.py.
#include "models/base/document.h"

namespace paceline {
namespace {

Json shapes_json(std::vector<Shape> shapes) {
  Json list = Json::array();
  for (Shape& shape : shapes) list.push_back(std::move(shape.schema));
  return list;
}

}  // namespace

Shape any_text() {
  return {{{"type", "string"}}};
}
Shape any_number() {
  return {{{"type", "number"}}};
}
Shape any_integer() {
  return {{{"type", "integer"}}};
}
Shape positive() {
  return {{{"type", "number"}, {"exclusiveMinimum", 0}}};
}
Shape not_negative() {
  return {{{"type", "number"}, {"minimum", 0}}};
}
Shape at_least(int least) {
  return {{{"type", "integer"}, {"minimum", least}}};
}
Shape always(Json value) {
  return {{{"const", std::move(value)}}};
}
Shape one_of(std::vector<std::string> names) {
  return {{{"enum", names}}};
}
Shape matching(std::string pattern) {
  return {{{"type", "string"}, {"pattern", std::move(pattern)}}};
}
Shape either(std::vector<Shape> shapes) {
  return {{{"anyOf", shapes_json(std::move(shapes))}}};
}
Shape or_null(Shape shape) {
  return either({std::move(shape), {{{"type", "null"}}}});
}
Shape list_of(Shape elements, int least) {
  Shape shape{{{"type", "array"}, {"items", std::move(elements.schema)}}};
  if (least > 0) shape.schema["minItems"] = least;
  return shape;
}
Shape mapping_to(Shape values) {
  return {{{"type", "object"}, {"additionalProperties", std::move(values.schema)}}};
}

namespace detail {

Shape text_shape() {
  return {{{"type", "string"}, {"minLength", 1}}};
}
Shape truth_shape() {
  return {{{"type", "boolean"}}};
}

Shape object_shape(const std::vector<MemberSchema>& members) {
  Json required = Json::array();
  Json properties = Json::object();
  for (const MemberSchema& member : members) {
    if (member.is_required) required.push_back(member.key);
    properties[member.key] = member.shape.schema;
  }
  return {{{"type", "object"},
           {"required", std::move(required)},
           {"properties", std::move(properties)},
           {"additionalProperties", false}}};
}

Json top_schema(std::string_view name, std::string_view description,
                const std::vector<MemberSchema>& members) {
  Json json = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
               {"title", name},
               {"description", description}};
  json.update(object_shape(members).schema);
  return json;
}

}  // namespace detail

const Document<StatedFigure>& stated_figure_document() {
  static const auto document = Document<StatedFigure>()
                                   .add("unit", &StatedFigure::unit)
                                   .add("value", &StatedFigure::value)
                                   .add("low", &StatedFigure::low)
                                   .add("high", &StatedFigure::high)
                                   .add("provenance", &StatedFigure::provenance)
                                   .add("source", &StatedFigure::source, any_text());
  return document;
}

}  // namespace paceline
