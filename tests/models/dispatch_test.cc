#include "models/plan/dispatch.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace paceline::models {
namespace {

using namespace paceline::literals;

TEST(Horovod, DefaultsOfItsVersions) {
  EXPECT_EQ(horovod_defaults("0.9.1").fusion, 0_B);
  EXPECT_EQ(horovod_defaults("0.9.5").fusion, 64_MiB);
  EXPECT_EQ(horovod_defaults("0.20.3").fusion, 64_MiB);
  EXPECT_EQ(horovod_defaults("0.21").fusion, 128_MiB);
  EXPECT_EQ(horovod_defaults("0.20").cycle, 5_ms);
  EXPECT_EQ(horovod_defaults("0.21").cycle, 1_ms);
  EXPECT_EQ(horovod_defaults("0.13.5").negotiation, Negotiation::messages);
  EXPECT_EQ(horovod_defaults("0.16.1").negotiation, Negotiation::gather);
  EXPECT_EQ(horovod_defaults("0.16.2").negotiation, Negotiation::bits);
}

TEST(Horovod, WhatIsNoVersionIsRefusedInOneLine) {
  for (const char* text : {"", "0", "0.", "0.8", "1.0", "0.-21", "0.21.3.1", "0.21x", "v0.21",
                           "0.99999999999", " 0.21"}) {
    const std::string error = test::error_of([&] { (void)horovod_defaults(text); });
    EXPECT_NE(error.find("is no version of Horovod that is known"), std::string::npos) << text;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

TEST(Negotiation, HasNames) {
  for (const Negotiation negotiation :
       {Negotiation::none, Negotiation::messages, Negotiation::gather, Negotiation::bits})
    EXPECT_EQ(negotiation_from_name(name(negotiation)), negotiation);
  EXPECT_NE(test::error_of([] { (void)negotiation_from_name("bit"); }).find("did you mean 'bits'"),
            std::string::npos);
}

}  // namespace
}  // namespace paceline::models
