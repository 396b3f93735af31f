// Every reader of other tools' output is given files that are cut, that have other line ends, and whose
// numbers are none: it gives samples that can be used, or one line that says what is wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "calibration/import/import_file.h"
#include "models/network/yaml.h"
#include "tests/calibration/import_files.h"
#include "tests/support/error_of.h"
#include "tests/support/source_tree.h"

namespace paceline::calibration {
namespace {

namespace fs = std::filesystem;

struct Golden {
  std::string name;  // "osu/5.6.2-bw.txt"
  std::string text;
};

std::vector<Golden> golden_files() {
  std::vector<Golden> files;
  const fs::path root = test::golden_path("imports");
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file() || entry.path().parent_path() == root) continue;
    const std::string name = fs::relative(entry.path(), root).string();
    files.push_back({name, golden_import(name)});
  }
  std::sort(files.begin(), files.end(),
            [](const Golden& a, const Golden& b) { return a.name < b.name; });
  return files;
}

const models::Network& network_of(const Golden& file) {
  static const auto read = [](const std::string& name) {
    std::ifstream in(test::source_path("docs/examples/" + name));
    return models::parse_network_yaml(std::string{std::istreambuf_iterator<char>(in), {}}, name);
  };
  static const models::Network net = read("tiny-net.yaml");
  static const models::Network encoder = read("tiny-encoder.yaml");
  return file.name.find("transformer") != std::string::npos ? encoder : net;
}

Imported imported(const Golden& file, const std::string& text) {
  return import_text(guessed_format(text, "file"), text, "file", &network_of(file));
}

// The error in one line, or "no error".
void expect_one_line(const Golden& file, const std::string& text, const std::string& what) {
  const std::string error = test::error_of([&] { return imported(file, text); });
  EXPECT_EQ(error.find('\n'), std::string::npos) << file.name << " " << what << ": " << error;
  EXPECT_LT(error.size(), 400u) << file.name << " " << what << ": " << error;
}

TEST(ImportDamage, EveryFileIsReadAsItIs) {
  const std::vector<Golden> files = golden_files();
  EXPECT_GE(files.size(), 40u);
  for (const Golden& file : files)
    EXPECT_EQ(test::error_of([&] { return imported(file, file.text); }), "no error") << file.name;
}

TEST(ImportDamage, CutAnywhere) {
  constexpr std::size_t cuts = 150;
  for (const Golden& file : golden_files()) {
    const std::size_t step = std::max<std::size_t>(1, file.text.size() / cuts);
    for (std::size_t length = 0; length < file.text.size(); length += step)
      expect_one_line(file, file.text.substr(0, length), "cut at " + std::to_string(length));
  }
}

TEST(ImportDamage, LineEndsOfWindowsChangeNothing) {
  for (const Golden& file : golden_files()) {
    std::string text;
    for (const char c : file.text) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
    const Imported expected = imported(file, file.text);
    const Imported found = imported(file, text);
    EXPECT_EQ(found.remarks, expected.remarks) << file.name;
    ASSERT_EQ(found.curves.size(), expected.curves.size()) << file.name;
    for (std::size_t i = 0; i < found.curves.size(); ++i)
      EXPECT_EQ(found.curves[i].samples.size(), expected.curves[i].samples.size()) << file.name;
    EXPECT_EQ(found.layers.size(), expected.layers.size()) << file.name;
    EXPECT_EQ(found.tensors.size(), expected.tensors.size()) << file.name;
    EXPECT_EQ(found.throughputs.size(), expected.throughputs.size()) << file.name;
    EXPECT_EQ(found.machine.has_value(), expected.machine.has_value()) << file.name;
  }
}

TEST(ImportDamage, NumbersThatAreNone) {
  constexpr std::size_t places = 40;
  for (const Golden& file : golden_files()) {
    const std::size_t step = std::max<std::size_t>(1, file.text.size() / places);
    for (std::size_t from = 0; from < file.text.size(); from += step) {
      const std::size_t begin = file.text.find_first_of("0123456789", from);
      if (begin == std::string::npos) break;
      const std::size_t end =
          std::min(file.text.find_first_not_of("0123456789.", begin), file.text.size());
      for (const char* const put : {"nan", "inf", "-1", "1e999", "99999999999999999999", "0", ""})
        expect_one_line(file, std::string(file.text).replace(begin, end - begin, put),
                        std::string(put) + " at " + std::to_string(begin));
    }
  }
}

TEST(ImportDamage, WhatIsNoTextOfATool) {
  const auto error = [](const std::string& text) {
    return test::error_of([&] { return guessed_format(text, "file"); });
  };
  EXPECT_EQ(error(""), "file: there is nothing in this file; give what the tool printed");
  EXPECT_EQ(error(" \r\n\t"), "file: there is nothing in this file; give what the tool printed");
  EXPECT_EQ(error("\xef\xbb\xbf"),
            "file: there is nothing in this file; give what the tool printed");
}

}  // namespace
}  // namespace paceline::calibration
