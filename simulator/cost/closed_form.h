// The textbook times of the all-reduce algorithms, for equal ranks that share no link.
//
// alpha, beta and gamma as in the design; full duplex; n bytes over p ranks. The engines are
// held against these (tests/agreement), and people read them. Every function returns 0 for p = 1.
#pragma once

#include "models/base/units.h"

namespace paceline::simulator {

struct AlphaBetaGamma {
  Seconds alpha;         // per message
  SecondsPerByte beta;   // per byte sent
  SecondsPerByte gamma;  // per byte reduced
};

// 2(p-1) alpha + 2(p-1)/p n beta + (p-1)/p n gamma (Hitchhiker V; Patarasuk & Yuan 2009).
[[nodiscard]] Seconds ring_time(const AlphaBetaGamma& link, int ranks, Bytes bytes);

// With q the largest power of two <= p: 2 log2 q alpha + 2(q-1)/q n beta + (q-1)/q n gamma
// (Hitchhiker VI; Thakur 2005), and 2 alpha + 2 n beta + n gamma for the fold where p != q.
[[nodiscard]] Seconds halving_doubling_time(const AlphaBetaGamma& link, int ranks, Bytes bytes);

// With m = p/k: 4(k-1)(alpha + n/k beta) + 2(k-1) n/k gamma + ring_time over m (Jizhi 4.3).
// The paper counts the steps; the chunk n/k of the two intra-group phases is ours.
[[nodiscard]] Seconds hierarchical_time(const AlphaBetaGamma& link, int ranks, int group_size,
                                        Bytes bytes);

}  // namespace paceline::simulator
