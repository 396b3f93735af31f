#include "models/base/xml_text.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(XmlText, LeavesWhatMeansNothingToXml) {
  EXPECT_EQ(xml_text(""), "");
  EXPECT_EQ(xml_text("ring of 4, 'fp16' — 8 µs"), "ring of 4, 'fp16' — 8 µs");
}

TEST(XmlText, NamesWhatXmlWouldRead) {
  EXPECT_EQ(xml_text("<a href=\"b\">&amp;</a>"), "&lt;a href=&quot;b&quot;&gt;&amp;amp;&lt;/a&gt;");
}

TEST(XmlText, MakesSpacesOfControlCharacters) {
  EXPECT_EQ(xml_text(std::string_view("a\nb\tc\0d\x1f", 8)), "a b c d ");
}

}  // namespace
}  // namespace paceline
