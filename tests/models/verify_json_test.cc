#include "models/collective/verify_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::models {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(VerifyJson, AProofSaysWhatWasProven) {
  const std::string text = proof_document().text(ScheduleProof{
      .schedule = "ring", .ranks = 4, .steps = 6, .chunk_counts = {4, 5, 2}, .transfers = 24});
  EXPECT_THAT(text, HasSubstr("\"proved\": true"));
  EXPECT_THAT(text, HasSubstr("\"transfers\": 24"));
  EXPECT_THAT(text, Not(HasSubstr("counterexample")));
}

TEST(VerifyJson, AFaultTakesThePlaceOfTheTransfers) {
  ScheduleProof proof{
      .schedule = "ring", .ranks = 4, .steps = 6, .chunk_counts = {4}, .transfers = 24};
  proof.fault = Counterexample{
      .fault = Fault::race, .step = 2, .rank = 1, .chunk = 3, .why = "a chunk is replaced"};
  proof.fault_chunks = 4;
  const std::string text = proof_document().text(proof);
  EXPECT_THAT(text, HasSubstr("\"proved\": false"));
  EXPECT_THAT(text,
              HasSubstr("\"step\": 2,\n    \"rank\": 1,\n    \"chunk\": 3,\n    \"chunks\": 4"));
  EXPECT_THAT(text, HasSubstr("\"why\": \"a chunk is replaced\""));
  EXPECT_THAT(text, Not(HasSubstr("transfers")));
}

}  // namespace
}  // namespace paceline::models
