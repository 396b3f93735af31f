// Tests: tests/runtime/channel/job_proof_test.cc.
#include "runtime/transport/job_proof.h"

#include <sodium.h>

#include <cstdint>

#include "models/base/error.h"

namespace paceline::runtime::tcp {
namespace {

static_assert(crypto_hash_sha256_BYTES == sizeof(Digest));
static_assert(crypto_auth_hmacsha256_BYTES == sizeof(Digest));

// May be called at any time, by any thread.
void start_library() {
  if (sodium_init() < 0)
    throw RunError("start libsodium", "this machine has no source of random numbers");
}

unsigned char* bytes_of(Digest& digest) {
  return reinterpret_cast<unsigned char*>(digest.data());
}
const unsigned char* bytes_of(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

Digest digest_of(std::string_view text) {
  start_library();
  Digest digest{};
  crypto_hash_sha256(bytes_of(digest), bytes_of(std::as_bytes(std::span(text))), text.size());
  return digest;
}

Digest random_digest() {
  start_library();
  Digest digest{};
  randombytes_buf(digest.data(), digest.size());
  return digest;
}

Digest keyed_digest(std::span<const std::byte> key, std::string_view purpose,
                    std::initializer_list<std::span<const std::byte>> parts) {
  start_library();
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, bytes_of(key), key.size());
  const auto add = [&](std::span<const std::byte> part) {
    const std::uint64_t size = part.size();
    crypto_auth_hmacsha256_update(&state, bytes_of(std::as_bytes(std::span(&size, 1))),
                                  sizeof size);
    crypto_auth_hmacsha256_update(&state, bytes_of(part), part.size());
  };
  add(std::as_bytes(std::span(purpose)));
  for (const std::span<const std::byte> part : parts) add(part);
  Digest digest{};
  crypto_auth_hmacsha256_final(&state, bytes_of(digest));
  sodium_memzero(&state, sizeof state);
  return digest;
}

bool are_equal(const Digest& a, const Digest& b) {
  return sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace paceline::runtime::tcp
