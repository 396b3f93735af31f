// How ranks prove to each other that they are of one job: digests of what a job is, and keyed digests
// of what both sides of a connection have said.
//
// SHA-256, and HMAC-SHA-256 (RFC 2104), by libsodium. Where Paceline was built without it, every
// function throws UnavailableError that says how to get it. Nothing here is encrypted.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>

namespace paceline::runtime::tcp {

using Digest = std::array<std::byte, 32>;

// The SHA-256 of a text.
[[nodiscard]] Digest digest_of(std::string_view text);

// 32 bytes that nobody can foretell.
[[nodiscard]] Digest random_digest();

// The HMAC-SHA-256 of the purpose and the parts, each behind its length in 8 bytes, so that no two
// lists of them say the same bytes. Purposes keep proofs apart that one key makes: a proof for one is
// none for another.
[[nodiscard]] Digest keyed_digest(std::span<const std::byte> key, std::string_view purpose,
                                  std::initializer_list<std::span<const std::byte>> parts);

// Takes the same time whatever the digests are.
[[nodiscard]] bool are_equal(const Digest& a, const Digest& b);

}  // namespace paceline::runtime::tcp
