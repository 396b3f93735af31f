#include "runtime/transport/job_proof.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <string>

namespace paceline::runtime::tcp {
namespace {

std::string hex(const Digest& digest) {
  std::string text;
  for (const std::byte byte : digest) text += fmt::format("{:02x}", static_cast<int>(byte));
  return text;
}

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// FIPS 180-2, appendix B.1.
TEST(JobProof, DigestsAreSha256) {
  EXPECT_EQ(hex(digest_of("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

// Python: hmac.new(b"key", struct.pack("<Q", 1) + b"a" + struct.pack("<Q", 2) + b"bc", "sha256").
TEST(JobProof, KeyedDigestsAreHmacSha256OfPartsBehindTheirLengths) {
  EXPECT_EQ(hex(keyed_digest(bytes("key"), "a", {bytes("bc")})),
            "732a3d11f8aa359c8f01a8e2a3c240e35e35a71da6686a8cab3eee8b1cbcca6c");
}

TEST(JobProof, KeyedDigestsTellKeysPurposesAndPartsApart) {
  const Digest one = keyed_digest(bytes("key"), "a", {bytes("bc"), bytes("d")});
  EXPECT_TRUE(are_equal(one, keyed_digest(bytes("key"), "a", {bytes("bc"), bytes("d")})));
  EXPECT_FALSE(are_equal(one, keyed_digest(bytes("kex"), "a", {bytes("bc"), bytes("d")})));
  EXPECT_FALSE(are_equal(one, keyed_digest(bytes("key"), "b", {bytes("bc"), bytes("d")})));
  EXPECT_FALSE(are_equal(one, keyed_digest(bytes("key"), "a", {bytes("b"), bytes("cd")})));
  EXPECT_FALSE(are_equal(one, keyed_digest(bytes("key"), "a", {bytes("bcd")})));
}

TEST(JobProof, RandomDigestsDiffer) {
  EXPECT_FALSE(are_equal(random_digest(), random_digest()));
}

}  // namespace
}  // namespace paceline::runtime::tcp
