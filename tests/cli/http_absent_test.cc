// The server's twin in a build without Boost, which is compiled here whether Boost is there or not.
#include <gmock/gmock.h>

#include "cli/serve/http_server.h"
#include "models/base/error.h"

namespace paceline::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(WithoutBoost, TheServerSaysWhatIsMissing) {
  const auto says_so = ThrowsMessage<UnavailableError>(HasSubstr("install libboost-dev"));
  EXPECT_THAT([] { (void)is_loopback("127.0.0.1"); }, says_so);
  EXPECT_THAT([] { serve_http({}, {}, {}); }, says_so);
}

}  // namespace
}  // namespace paceline::serve
