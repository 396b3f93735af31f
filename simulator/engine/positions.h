// Which ranks stand for all: positions, numbered from 0, with a rank that represents each.
//
// Ranks below a bound are in the position of their number modulo M. Those from the bound on, the
// tail, are in positions of their own: they are the ranks of a last node or switch that is not full.
#pragma once

namespace paceline::simulator {

class Positions {
 public:
  // Every rank by itself.
  explicit Positions(int ranks) : Positions(ranks, ranks, 0) {}
  // `modulus` must divide ranks - tail, and 0 <= tail < ranks.
  Positions(int ranks, int modulus, int tail)
      : ranks_(ranks), modulus_(modulus), whole_(ranks - tail) {}

  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] int count() const { return modulus_ + ranks_ - whole_; }
  [[nodiscard]] bool is_collapsed() const { return modulus_ != whole_; }
  [[nodiscard]] int modulus() const { return modulus_; }
  // Ranks that are not in the tail: 0 to whole() - 1.
  [[nodiscard]] int whole() const { return whole_; }

  [[nodiscard]] int of(int rank) const {
    return rank < whole_ ? rank % modulus_ : modulus_ + rank - whole_;
  }
  // The rank that represents the position: the least one in it.
  [[nodiscard]] int rank(int position) const {
    return position < modulus_ ? position : whole_ + position - modulus_;
  }
  // How many ranks are in the position.
  [[nodiscard]] int size(int position) const { return position < modulus_ ? whole_ / modulus_ : 1; }

 private:
  int ranks_;
  int modulus_;
  int whole_;
};

}  // namespace paceline::simulator
