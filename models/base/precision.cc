#include "models/base/precision.h"

#include "models/base/names.h"

namespace paceline::models {

std::string_view name(Precision precision) {
  return precision == Precision::fp32 ? "fp32" : "mixed";
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
  for (const Precision p : {Precision::fp32, Precision::mixed}) {
    if (name(p) == text) return p;
  }
  throw unknown_name("precision", text, {"fp32", "mixed"});
}

WireType wire_type_from_name(std::string_view text) {
  for (const WireType t : {WireType::fp32, WireType::fp16, WireType::bf16}) {
    if (name(t) == text) return t;
  }
  throw unknown_name("wire type", text, {"fp32", "fp16", "bf16"});
}

}  // namespace paceline::models
