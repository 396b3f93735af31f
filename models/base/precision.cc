#include "models/base/precision.h"

#include "models/base/error.h"
#include "models/base/names.h"

namespace paceline::models {

std::string_view name(Precision precision) {
  return name_in(precisions, precision);
}

std::string_view name(NumberType type) {
  switch (type) {
    case NumberType::fp32:
      return "fp32";
    case NumberType::fp16:
      return "fp16";
    case NumberType::bf16:
      return "bf16";
  }
  return "unknown";
}

Precision precision_from_name(std::string_view text) {
  return value_named(precisions, "precision", text);
}

Precision computed_precision_from_name(std::string_view text) {
  const Precision precision = precision_from_name(text);
  if (precision == Precision::fp8)
    throw InputError("fp8 is predicted, and not computed here", "write mixed, or fp32");
  return precision;
}

WireType wire_type_from_name(std::string_view text) {
  for (const WireType t : {WireType::fp32, WireType::fp16, WireType::bf16}) {
    if (name(t) == text) return t;
  }
  throw unknown_name("wire type", text, {"fp32", "fp16", "bf16"});
}

}  // namespace paceline::models
