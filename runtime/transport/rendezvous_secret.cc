// Tests: tests/runtime/channel/tcp_handshake_test.cc.
#include "runtime/transport/rendezvous_secret.h"

#include <fmt/format.h>

#include <utility>

#include "models/base/error.h"

namespace paceline::runtime {

RendezvousSecret::RendezvousSecret(std::string text) : text_(std::move(text)) {
  if (text_.size() < fewest_bytes)
    throw InputError(
        {secret_variable},
        fmt::format("a secret of {} byte{}", text_.size(), text_.size() == 1 ? "" : "s"),
        fmt::format("give at least {}, such as those of openssl rand -hex 32", fewest_bytes));
}

}  // namespace paceline::runtime
