// The twin of http_server.cc in a build without Boost.
#include "cli/serve/http_server.h"

#include "models/base/error.h"

namespace paceline::serve {
namespace {

[[noreturn]] void fail() {
  throw UnavailableError("built without Boost: install libboost-dev, and configure again");
}

}  // namespace

bool is_loopback(const std::string& /*address*/) {
  fail();
}

void serve_http(const HttpServerOptions& /*options*/, const HttpHandler& /*handler*/,
                const std::function<void(const std::string& url)>& /*started*/) {
  fail();
}

}  // namespace paceline::serve
