// The secret that the ranks of one job share, by which they know each other at a rendezvous.
#pragma once

#include <string>

namespace paceline::runtime {

// The variable of the environment that users set it by.
inline constexpr char secret_variable[] = "PACELINE_RENDEZVOUS_SECRET";

class RendezvousSecret {
 public:
  static constexpr std::size_t fewest_bytes = 16;

  // None.
  RendezvousSecret() = default;
  // Throws InputError if the text is shorter than fewest_bytes. No error says any of it.
  explicit RendezvousSecret(std::string text);

  [[nodiscard]] bool is_set() const { return !text_.empty(); }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace paceline::runtime
