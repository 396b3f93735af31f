// Proves a ring over four ranks, through the installed headers and library.
#include <iostream>
#include <variant>

#include "models/collective/algorithms.h"
#include "models/collective/verify.h"

int main() {
  const auto ring = paceline::models::ring_all_reduce(4);
  const auto verdict = paceline::models::verify_all_reduce(ring, 4);
  const bool is_proved = std::holds_alternative<paceline::models::Proof>(verdict);
  std::cout << ring.steps() << " steps, " << (is_proved ? "proved" : "refuted") << '\n';
  return is_proved ? 0 : 1;
}
