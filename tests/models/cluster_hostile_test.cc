// Cluster files that are wrong by accident or on purpose: one InputError each, on one line.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "models/base/error.h"
#include "models/cluster/yaml.h"

namespace paceline::models {
namespace {

const std::string head =
    "cluster: lab\n"
    "nodes: 4\n"
    "ranks_per_node: 2\n"
    "device: v100\n"
    "intra: nvlink2\n";
const std::string good = head + "nic: {base: roce-25g, count: 2, latency: 3 us, use: striped}\n";

std::string error_of(const std::string& text) {
  try {
    (void)parse_cluster_yaml(text, "f");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}
std::string nic_error(const std::string& nic) {
  return error_of(head + "nic: " + nic + "\n");
}
std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}
bool is_one_line(const std::string& text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20; });
}

TEST(ClusterYaml, FiguresWithoutASourceNameTheirOwnLine) {
  const Cluster cluster = parse_cluster_yaml(
      "cluster: lab\nnodes: 4\nranks_per_node: 2\n"
      "device:\n  base: v100\n  fp32: 14 TFLOP/s\n  memory:\n    value: 32 GB\n"
      "intra:\n  base: nvlink2\n  source: the switch's manual\n  provenance: published\n  latency: "
      "2 us\n  bandwidth: {value: 140 GB/s, source: our run, provenance: measured}\n"
      "nic: roce-25g\nstorage: 2 GB/s\n",
      "dir/lab.yaml");
  EXPECT_EQ(cluster.device.fp32.source, "dir/lab.yaml:6");
  EXPECT_EQ(cluster.device.memory.source, "dir/lab.yaml:8") << "the mapping starts there";
  EXPECT_EQ(cluster.device.fp32.provenance, Provenance::datasheet);
  EXPECT_EQ(cluster.intra.latency.source, "the switch's manual");
  EXPECT_EQ(cluster.intra.latency.provenance, Provenance::published);
  EXPECT_EQ(cluster.intra.bandwidth.source, "our run");
  EXPECT_EQ(cluster.intra.bandwidth.provenance, Provenance::measured);
  EXPECT_EQ(cluster.storage->source, "dir/lab.yaml:16");
  EXPECT_EQ(cluster.source, "dir/lab.yaml");
  EXPECT_EQ(cluster.nics_per_node, 1);
  EXPECT_EQ(cluster.nic_use, NicUse::striped);
  EXPECT_EQ(cluster.fabric, Fabric{});
  EXPECT_FALSE(cluster.decode_per_node);
}

TEST(ClusterYaml, FiguresNoMachineHasAreRefused) {
  EXPECT_EQ(nic_error("{base: roce-25g, bandwidth: 1e-300 B/s}"),
            "f:6:34: bandwidth: '1e-300 B/s' is out of range; write 1 B/s to 1000 TB/s");
  EXPECT_EQ(nic_error("{base: roce-25g, bandwidth: 1e200 GB/s}"),
            "f:6:34: bandwidth: '1e200 GB/s' is out of range; write 1 B/s to 1000 TB/s");
  EXPECT_EQ(nic_error("{base: roce-25g, latency: 1e300 s}"),
            "f:6:32: latency: '1e300 s' is out of range; write 0 s to 1000 s");
  EXPECT_EQ(nic_error("{base: roce-25g, count: 257}"),
            "f:6:30: count: '257' is not a whole number from 1 to 256");
  EXPECT_EQ(nic_error("{base: roce-25g, count: 0}"),
            "f:6:30: count: '0' is not a whole number from 1 to 256");
  EXPECT_EQ(error_of(good + "decode: 1e12 images/s\n"),
            "f:7:9: decode: '1e12 images/s' is out of range; write 0.001 samples/s to 1000000000 "
            "samples/s");
  const auto device_error = [](const std::string& figure) {
    return error_of(
        "cluster: lab\nnodes: 4\nranks_per_node: 2\nintra: nvlink2\nnic: roce-25g\ndevice: {base: "
        "v100, " +
        figure + "}\n");
  };
  EXPECT_EQ(device_error("compute_efficiency: 0"),
            "f:6:42: compute_efficiency: '0' is not a number from 0.001 to 1");
  EXPECT_EQ(device_error("compute_efficiency: 1.5"),
            "f:6:42: compute_efficiency: '1.5' is not a number from 0.001 to 1");
  EXPECT_EQ(device_error("roofline_efficiency: 0"),
            "f:6:43: roofline_efficiency: '0' is not a number from 0.001 to 100");
  EXPECT_EQ(device_error("roofline_efficiency_mixed: 101"),
            "f:6:49: roofline_efficiency_mixed: '101' is not a number from 0.001 to 100");
  EXPECT_EQ(device_error("fp32: 1e30 TFLOP/s"),
            "f:6:28: fp32: '1e30 TFLOP/s' is out of range; write 1 FLOP/s to 1000 PFLOP/s");
  EXPECT_EQ(device_error("memory: 0 B"), "f:6:30: memory: '0 B' is not more than 0");
  EXPECT_EQ(
      device_error("name: \"a\\e[31mb\""),
      "f:6:28: 'a?[31mb' is no name for a device; choose another, up to 60 printable characters");
}

TEST(ClusterYaml, IntervalsMustHoldTheirValue) {
  const std::string problem =
      "latency: its value is not between low and high; write low <= value <= high";
  EXPECT_EQ(nic_error("{base: roce-25g, latency: {value: 3 us, high: 2 us}}"),
            "f:6:32: " + problem);
  EXPECT_EQ(nic_error("{base: roce-25g, latency: {value: 3 us, low: 3.1 us, high: 9 us}}"),
            "f:6:32: " + problem);
  EXPECT_EQ(nic_error("{base: roce-25g, latency: {low: 3 us}}"),
            "f:6:32: figure latency has no 'value'; add value: ...");
  EXPECT_EQ(nic_error("{base: roce-25g, latency: {value: 3 us, hgih: 4 us}}"),
            "f:6:46: unknown key 'hgih'; did you mean 'high'?");
  EXPECT_EQ(nic_error("{base: roce-25g, latency: {value: 3 us, provenance: guess}}"),
            "f:6:58: provenance: unknown provenance 'guess'; known: measured, calibrated, "
            "predicted, datasheet, published, assumed");
}

TEST(ClusterYaml, WrongShapesAreNamed) {
  EXPECT_EQ(error_of("just text"),
            "f:1:1: the file is no mapping; write keys and values, as in docs/formats.md");
  EXPECT_EQ(error_of("- a\n- b\n"),
            "f:1:1: the file is no mapping; write keys and values, as in docs/formats.md");
  EXPECT_EQ(error_of("# nothing\n\n"),
            "f:1:1: the file is empty; write a description (docs/formats.md)");
  EXPECT_EQ(nic_error("[roce-25g]"), "f:6:6: nic is no single value; write nic: value");
  EXPECT_EQ(nic_error("{base: [a]}"), "f:6:13: base is no single value; write base: value");
  EXPECT_EQ(nic_error("{latency: 3 us}"), "f:6:6: nic has no 'line_rate'; add line_rate: ...");
  EXPECT_EQ(nic_error("~"), "f:1:1: the cluster has no 'nic'; add nic: ...");
  EXPECT_EQ(nic_error("{base: roce-25g, use: stripped}"),
            "f:6:28: use: unknown use of NICs 'stripped'; did you mean 'striped'?");
  EXPECT_EQ(nic_error("{base: roce-25gg}"),
            "f:6:13: base: unknown link 'roce-25gg'; did you mean 'roce-25g'?");
  EXPECT_EQ(nic_error("*nowhere"), "f:6:6: this is not YAML: the referenced anchor is not defined");
  EXPECT_EQ(error_of(good + "? [a, b]\n: c\n").substr(0, 25), "f:7:3: unknown key ''; kn");
  EXPECT_EQ(error_of(good + "<<: {nodes: 3}\n").substr(0, 21), "f:7:1: unknown key '<");
  EXPECT_EQ(error_of("nodes: 4\n"), "f:1:1: the cluster has no 'cluster'; add cluster: ...");
  EXPECT_EQ(error_of("cluster: \"\"\n"),
            "f:1:10: '' is no name for a cluster; choose another, up to 60 printable characters");
}

TEST(ClusterYaml, ASecondDocumentIsNoticed) {
  EXPECT_EQ(error_of(good + "---\ncluster: other\n"),
            "f:7:1: a second document starts here; write one document in each file");
  EXPECT_EQ(error_of("# mine\n---\n" + good), "no error");
  EXPECT_EQ(error_of("%YAML 1.2\n---\n" + good), "no error");
  EXPECT_EQ(error_of(good + "description: a --- b\n"), "no error");
  EXPECT_EQ(error_of(good + "description: |\n  ---\n"), "no error");
  // YAML::LoadAll of yaml-cpp 0.7 never returns from this.
  EXPECT_NE(error_of("cluster: lab\n}\n"), "no error");
}

TEST(ClusterYaml, MessagesStayShortAndOnOneLine) {
  EXPECT_EQ(nic_error("{base: roce-25g, latency: \"3\\n us\"}"),
            "f:6:32: latency: '? us' is no unit of a time; write one of s, ms, us, ns, as in 2 us");
  EXPECT_EQ(nic_error("{base: roce-25g, latency: " + std::string(1 << 20, 'x') + "}"),
            "f:6:32: latency: '" + std::string(60, 'x') +
                "...' is not a time; write a number and its unit, such as 2 us");
  EXPECT_LT(nic_error(std::string(1 << 20, 'x')).size(), 500u);
  EXPECT_EQ(nic_error("\"nvlink2\\u0007\""),
            "f:6:6: nic: unknown link 'nvlink2?'; did you mean 'nvlink2'?");
  EXPECT_TRUE(is_one_line(error_of(std::string("clu\0ster: \xff\xfe\x01\n", 14))));
}

TEST(ClusterYaml, HugeAndDeepFilesAreRefusedWithoutHarm) {
  const std::string deep =
      "the file is nested deeper than 64 levels; descriptions are flatter than that";
  EXPECT_EQ(error_of(std::string((16u << 20) + 1, ' ')),
            "f: the file is larger than 16 MiB; give a description, not data");
  EXPECT_EQ(error_of("cluster: " + std::string(1 << 20, '[')), "f:1: " + deep);
  EXPECT_EQ(error_of("cluster: " + repeated("{a: ", 1 << 18)), "f:1: " + deep);
  EXPECT_EQ(error_of(repeated("- ", 1 << 18)), "f:1: " + deep);
  EXPECT_EQ(error_of(repeated("? ", 1 << 18)), "f:1: " + deep);
  std::string stairs;
  for (int i = 0; i < 2000; ++i) stairs += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  for (const std::string& text :
       {stairs, repeated(": ", 1 << 18), repeated("?\n", 1 << 14), repeated("a: ", 1 << 18),
        repeated("!a ", 1 << 18), repeated("&a ", 1 << 18), repeated("\"", 1 << 18),
        std::string(1 << 20, '\n'), std::string(1 << 20, '\t'), std::string(1 << 18, '\0')}) {
    const std::string error = error_of(text);
    EXPECT_NE(error, "no error");
    EXPECT_TRUE(is_one_line(error));
    EXPECT_LT(error.size(), 500u);
  }
}

TEST(ClusterYaml, GarbageNeverCrashesIt) {
  std::mt19937 random(20261120);
  const auto pick = [&random](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::vector<std::string> pieces = {
      "---\n",   "...\n", "? ", ": ",    "- ",      "&a ",  "*a",  "!!str ", "|\n", ">-\n",
      "\"",      "'",     "{",  "}",     "[",       "]",    "#",   "%",      "\t",  "\r\n",
      "\\x1b",   "~",     "<<", "1e999", "-1 GB/s", "0 us", "nan", "\xff",   ",",   "\xef\xbb\xbf",
      "nodes: ", "\n"};
  for (int trial = 0; trial < 4000; ++trial) {
    std::string text = good;
    for (std::size_t change = 1 + pick(6); change > 0; --change) {
      const std::size_t at = pick(text.size());
      switch (pick(4)) {
        case 0:
          text.insert(at, pieces[pick(pieces.size())]);
          break;
        case 1:
          text.erase(at, 1 + pick(12));
          break;
        case 2:
          text.insert(at, text.substr(pick(text.size()), pick(30)));
          break;
        default:
          text[at] = static_cast<char>(pick(256));
      }
      if (text.empty()) text = "a";
    }
    const std::string error = error_of(text);  // anything but InputError ends the test
    EXPECT_TRUE(is_one_line(error)) << text;
    EXPECT_LT(error.size(), 700u) << text;
  }
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text(pick(200), ' ');
    for (char& c : text) c = static_cast<char>(pick(256));
    EXPECT_TRUE(is_one_line(error_of(text)));
  }
}

}  // namespace
}  // namespace paceline::models
