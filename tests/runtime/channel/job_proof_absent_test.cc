// The proofs' twin in a build without libsodium, which is compiled here whether it is there or not.
#include <gmock/gmock.h>

#include "models/base/error.h"
#include "runtime/transport/job_proof.h"

namespace paceline::runtime::tcp {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(WithoutSodium, ARendezvousSaysWhatIsMissing) {
  const auto says_so = ThrowsMessage<UnavailableError>(HasSubstr("install libsodium-dev"));
  EXPECT_THAT([] { (void)digest_of("job"); }, says_so);
  EXPECT_THAT([] { (void)random_digest(); }, says_so);
  EXPECT_THAT([] { (void)keyed_digest({}, "", {}); }, says_so);
  EXPECT_THAT([] { (void)are_equal({}, {}); }, says_so);
}

}  // namespace
}  // namespace paceline::runtime::tcp
