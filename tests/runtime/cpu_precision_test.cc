// When mixed precision is said to be slower than FP32, by stated features of a processor.
#include "runtime/network/cpu_precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::runtime {
namespace {

using models::NumberType;
using ::testing::HasSubstr;

TEST(SlowerThanFp32, SaysNothingWhereTheProcessorHasTheArithmetic) {
  EXPECT_EQ(slower_than_fp32(NumberType::bf16, NumberType::bf16, true), "");
  for (const bool has_bf16 : {false, true})
    EXPECT_EQ(slower_than_fp32(NumberType::fp32, NumberType::fp32, has_bf16), "");
}

TEST(SlowerThanFp32, NamesWhatTheProcessorLacks) {
  EXPECT_EQ(
      slower_than_fp32(NumberType::bf16, NumberType::bf16, false),
      "mixed precision is slower than --precision fp32 on this processor: it computes BF16 by "
      "AVX-512 and conversions, without AVX512_BF16 or AMX");
  EXPECT_EQ(slower_than_fp32(NumberType::bf16, NumberType::fp32, false),
            "mixed precision is slower than --precision fp32 on this processor: it computes in "
            "FP32, and rounds each operand and result to BF16");
  EXPECT_THAT(slower_than_fp32(NumberType::fp16, NumberType::fp32, true), HasSubstr("to FP16"));
}

}  // namespace
}  // namespace paceline::runtime
