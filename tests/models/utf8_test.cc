// What is a character of UTF-8, and what of it a terminal would act on.
#include "models/base/utf8.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "models/base/error.h"
#include "models/base/xml_text.h"

namespace paceline {
namespace {

// The bytes of a code point of any size by the scheme of UTF-8, in `length` bytes.
std::string bytes_of(std::uint32_t code, std::size_t length) {
  if (length == 1) return {static_cast<char>(code)};
  std::string bytes;
  for (std::size_t i = 1; i < length; ++i) {
    bytes.insert(bytes.begin(), static_cast<char>(0x80 | (code & 0x3f)));
    code >>= 6;
  }
  const auto lead = static_cast<unsigned char>(0xf00 >> length);
  return static_cast<char>(lead | code) + bytes;
}

std::size_t shortest(std::uint32_t code) {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

TEST(Utf8, HasEveryCodePointInItsShortestFormAlone) {
  for (std::uint32_t code = 0; code < 0x120000; ++code) {
    const bool is_character = code < 0xd800 || (code > 0xdfff && code < 0x110000);
    for (std::size_t length = shortest(code); length <= 4; ++length) {
      const std::string bytes = bytes_of(code, length) + "x";
      const bool is_valid = is_character && length == shortest(code);
      ASSERT_EQ(character_length(bytes), is_valid ? length : 0)
          << std::hex << code << " " << length;
      if (is_valid) {
        ASSERT_EQ(static_cast<std::uint32_t>(code_point(bytes)), code);
      }
    }
  }
}

TEST(Utf8, WhatIsCutIsNoCharacter) {
  for (const std::string text : {"", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\x80", "\xff"})
    EXPECT_EQ(character_length(text), 0u) << text;
}

TEST(Utf8, KnowsWhatSteersATerminal) {
  for (const std::uint32_t code :
       {0x0, 0x1b, 0x7f, 0x80, 0x9b, 0x9f, 0x200e, 0x202a, 0x202e, 0x2066, 0x2069, 0x2028, 0x61c})
    EXPECT_TRUE(is_steering(bytes_of(code, shortest(code)))) << std::hex << code;
  for (const std::uint32_t code : {0x20, 0x7e, 0xa0, 0xb5, 0x2027, 0x202f, 0x2588, 0x1f600})
    EXPECT_FALSE(is_steering(bytes_of(code, shortest(code)))) << std::hex << code;
}

// All that makes messages and documents of a user's text.
TEST(Utf8, NoSurrogateOrOverrideReachesAMessage) {
  EXPECT_EQ(in_quotes("\xed\xa0\x80"
                      "1"),
            "'?\?\?1'");
  EXPECT_EQ(in_quotes("\xe0\x80\xaf \xf0\x80\x80\xaf \xf4\x90\x80\x80"), "'?\?\? ?\?\?\? ?\?\?\?'");
  EXPECT_EQ(in_quotes("a\xe2\x80\xae"
                      "b"),
            "'a?\?\?b'");
  EXPECT_EQ(std::string(InputError({"\xed\xa0\x80.txt"}, "p\xed\xbf\xbf", "r").what()),
            "???.txt: p???; r");
  EXPECT_EQ(xml_text("<\xed\xa0\x80 \xff \xc2\xb5>"), "&lt;??? ? \xc2\xb5&gt;");
}

}  // namespace
}  // namespace paceline
