// What the what-if page asks: predictions, curves and timelines, as the documents that the command
// prints, and the page itself. Only names of the catalogue, and files that were read before the first
// request, are known here; no file is read for a request.
//
//   /            the page; /page.css and /page.js are its style and its script
//   /choices     what its lists offer (paceline.choices/1)
//   /predict     what `paceline predict --json` prints with these options
//   /timeline    what `paceline predict --timeline` writes
//   /scale       what `paceline scale --json` prints
//
// The query has options of the command by their names: /predict?model=resnet50&cluster=jizhi-p40&ranks=64.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "cli/serve/choices.h"
#include "cli/serve/http_server.h"

namespace paceline::serve {

struct WhatIfLimits {
  int threads = 2;                         // that predict
  std::size_t most_waiting = 256;          // predictions that wait for a thread; more are refused
  std::size_t most_kept_bytes = 64 << 20;  // of answers that are kept for the next who asks
  std::size_t most_query_bytes = 2048;
  std::size_t most_points = 32;  // of a curve
  // Iterations times ranks that stragglers are drawn for.
  double most_draws = 4e6;
  // After which a question that is asked is given up, between one strategy and the next.
  std::chrono::milliseconds most_time{10'000};
};

class WhatIfService {
 public:
  // `own` networks and clusters may be asked for beside those of the catalogue.
  explicit WhatIfService(const WhatIfLimits& limits, OwnFiles own = {});
  WhatIfService(const WhatIfService&) = delete;
  WhatIfService& operator=(const WhatIfService&) = delete;
  ~WhatIfService();

  // Answers at once what is known, and else from another thread. Any thread may call it.
  void answer(const HttpRequest& request, Reply reply);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace paceline::serve
