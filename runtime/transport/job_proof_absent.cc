// Takes the place of job_proof.cc where Paceline is built without libsodium.
#include "models/base/error.h"
#include "runtime/transport/job_proof.h"

namespace paceline::runtime::tcp {
namespace {

[[noreturn]] void refuse() {
  throw UnavailableError(
      "this paceline was built without libsodium, by which the ranks of a rendezvous know each "
      "other: install libsodium-dev and build it again");
}

}  // namespace

Digest digest_of(std::string_view /*text*/) {
  refuse();
}

Digest random_digest() {
  refuse();
}

Digest keyed_digest(std::span<const std::byte> /*key*/, std::string_view /*purpose*/,
                    std::initializer_list<std::span<const std::byte>> /*parts*/) {
  refuse();
}

bool are_equal(const Digest& /*a*/, const Digest& /*b*/) {
  refuse();
}

}  // namespace paceline::runtime::tcp
