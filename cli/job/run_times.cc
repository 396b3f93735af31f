// Tests: tests/cli/what_if_test.py (end to end).
#include "cli/job/run_times.h"

#include <iterator>
#include <span>
#include <vector>

#include "runtime/channel/messages.h"
#include "runtime/exchange/recorder.h"

namespace paceline::job {

models::RunTimes gather_run_times(runtime::Channel& channel, const models::TracedTimeline& own) {
  if (std::ssize(own.job.layers) * channel.ranks() > most_rank_layers) return {};
  const std::vector<float> numbers =
      models::packed(models::rank_record(own), own.job, runtime::recorded_iterations);
  const std::vector<float> all = runtime::gather(channel, numbers);
  if (channel.rank() != 0) return {};
  std::vector<models::RankRecord> records;
  for (std::size_t at = 0; at < all.size(); at += numbers.size())
    records.push_back(models::unpacked(std::span(all).subspan(at, numbers.size()), own.job));
  return models::run_times(records);
}

}  // namespace paceline::job
