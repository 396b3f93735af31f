// Tests: tests/models/utf8_test.cc.
#include "models/base/utf8.h"

namespace paceline {
namespace {

unsigned char byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

// What the first byte says; 0 for bytes that begin no character.
std::size_t length_by_lead(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xc2) return 0;
  if (lead < 0xe0) return 2;
  if (lead < 0xf0) return 3;
  return lead < 0xf5 ? 4 : 0;
}

// The bytes that may follow the first one: fewer where a longer form than needed, a surrogate or what
// is above U+10FFFF would begin so.
bool may_follow(unsigned char lead, unsigned char second) {
  const unsigned char least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned char most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  return second >= least && second <= most;
}

}  // namespace

std::size_t character_length(std::string_view text) {
  if (text.empty()) return 0;
  const unsigned char lead = byte_at(text, 0);
  const std::size_t length = length_by_lead(lead);
  if (text.size() < length) return 0;
  if (length > 1 && !may_follow(lead, byte_at(text, 1))) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte_at(text, i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

char32_t code_point(std::string_view text) {
  const std::size_t length = character_length(text);
  const unsigned char lead = byte_at(text, 0);
  char32_t code = length == 1 ? lead : lead & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) code = (code << 6U) | (byte_at(text, i) & 0x3fU);
  return code;
}

bool is_steering(std::string_view text) {
  const char32_t code = code_point(text);
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e ||
         code == 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace paceline
