// Mistakes of dimension, one for each case, that the types of models/base/units.h refuse. Compiled
// with WRONG, a case must fail with its message; without, the control beside it must compile.
#include "models/base/units.h"

namespace paceline {

struct Link {
  Seconds alpha;
  SecondsPerByte beta;
};

#ifdef WRONG
#define EITHER(wrong, right) wrong
#else
#define EITHER(wrong, right) right
#endif

constexpr Seconds alpha{1e-6};
constexpr SecondsPerByte beta{1e-10};
constexpr BytesPerSecond bandwidth{1e10};
constexpr Bytes n{4096};
constexpr Flops work{1e9};

#if CASE == 1  // a time and a size do not add
constexpr auto result = EITHER(alpha + n, alpha + alpha);
#elif CASE == 2  // alpha + n, where alpha + n beta is meant
constexpr Seconds result = EITHER(alpha + n, alpha + n * beta);
#elif CASE == 3  // a bandwidth in the place of beta
constexpr Link result{alpha, EITHER(bandwidth, 1 / bandwidth)};
#elif CASE == 4  // alpha and beta the wrong way round
constexpr Link result = EITHER((Link{beta, alpha}), (Link{alpha, beta}));
#elif CASE == 5  // a number without a unit
constexpr Seconds result = EITHER(1e-6, Seconds{1e-6});
#elif CASE == 6  // a time that is taken for a number
constexpr double result = EITHER(alpha, alpha.value());
#elif CASE == 7  // a time beside a size
constexpr bool result = EITHER(alpha < n, alpha < n * beta);
#elif CASE == 8  // work over a bandwidth is no time
constexpr Seconds result = EITHER(work / bandwidth, n / bandwidth);
#endif

}  // namespace paceline
