// Tests: tests/simulator/plan_search_test.cc.
#include "simulator/iteration/plan_search.h"

#include <algorithm>
#include <utility>

#include "models/base/to_size.h"
#include "models/plan/tuned.h"

namespace paceline::simulator {
namespace {

constexpr double gain_of_a_step = 1e-6;

int first_of(const std::vector<int>& ends, std::size_t bucket) {
  return bucket == 0 ? 0 : ends[bucket - 1];
}

// Large plans have this many neighbours that each bucket has few.
constexpr std::size_t many_buckets = 24;

}  // namespace

PlanSearch::PlanSearch(const TuningJob& job, const Candidates& candidates,
                       std::span<const std::string> only, Seconds least, Judge judge)
    : job_(job),
      least_(least),
      judge_(std::move(judge)),
      library_(candidates.library),
      sums_(element_sums(job.planning.network.gradients)),
      element_bytes_(models::element_size(job.planning.wire).value()),
      cost_(sums_, element_bytes_, candidates.least, job.planning.aside, job.planning.slows,
            job.planning.clock.load),
      nearest_(job.planning, job.timers, only) {
  for (const models::PlannedSchedule& schedule : candidates.schedules)
    all_reduces_.push_back(&schedule);
  alone_s_.resize(all_reduces_.size());
}

std::int64_t PlanSearch::elements(int first, int end) const {
  return sums_[to_size(end)] - sums_[to_size(first)];
}

PlanSearch::Cut PlanSearch::with_candidates(const std::vector<int>& ends) const {
  Cut cut{ends, {}};
  for (std::size_t i = 0; i < ends.size(); ++i)
    cut.which.push_back(cost_.which(first_of(ends, i), ends[i]));
  return cut;
}

models::Plan PlanSearch::plan_of_ends(const std::vector<int>& ends) const {
  return plan_of(with_candidates(ends));
}

models::Plan PlanSearch::plan_of(const Cut& cut) const {
  models::Plan plan{.strategy = {},
                    .ranks = job_.planning.ranks,
                    .wire = job_.planning.wire,
                    .overlap = job_.overlap,
                    .streams = job_.streams,
                    .schedules = {},
                    .buckets = {},
                    .dispatch = {}};
  std::map<int, int> index;  // of all-reduces in the plan's schedules
  for (std::size_t i = 0; i < cut.ends.size(); ++i) {
    const auto [in_plan, is_new] =
        index.try_emplace(cut.which[i], static_cast<int>(plan.schedules.size()));
    if (is_new) plan.schedules.push_back(*all_reduces_[to_size(cut.which[i])]);
    const int first = first_of(cut.ends, i);
    plan.buckets.push_back({.first_gradient = first,
                            .gradient_count = cut.ends[i] - first,
                            .elements = elements(first, cut.ends[i]),
                            .schedule = in_plan->second});
  }
  plan.strategy = models::strategy_of(plan.schedules);
  return plan;
}

int PlanSearch::index_of(const models::PlannedSchedule& all_reduce) {
  const auto found = std::find_if(all_reduces_.begin(), all_reduces_.end(),
                                  [&](const auto* known) { return *known == all_reduce; });
  const auto index = static_cast<int>(found - all_reduces_.begin());
  if (found == all_reduces_.end()) {
    all_reduces_.push_back(&all_reduce);
    alone_s_.emplace_back();
  }
  return index;
}

// The candidate by the curve, and the fastest by the step engine.
const std::vector<int>& PlanSearch::choices(int first, int end) {
  const auto [entry, is_new] = choices_.try_emplace(elements(first, end));
  std::vector<int>& which = entry->second;
  if (!is_new) return which;
  constexpr std::size_t tried = 4;
  which = {cost_.which(first, end)};
  if (job_.planning.ranks == 1) return which;
  const Bytes bytes{static_cast<double>(elements(first, end)) * element_bytes_};
  for (const models::PlannedSchedule* other : nearest_.fastest(bytes, tried)) {
    const int index = index_of(*other);
    if (std::find(which.begin(), which.end(), index) == which.end()) which.push_back(index);
  }
  return which;
}

double PlanSearch::alone_s(int which, std::int64_t elements) {
  const auto [entry, is_new] = alone_s_[to_size(which)].try_emplace(elements);
  if (is_new)
    entry->second = job_.timers.search
                        .time(*all_reduces_[to_size(which)],
                              Bytes{static_cast<double>(elements) * element_bytes_})
                        .value();
  return entry->second;
}

// The period by a clock for which buckets have their streams by turns, and what their bytes take is
// behind that of the buckets before.
double PlanSearch::estimate_s(const Cut& cut) {
  const StreamClock& clock = job_.planning.clock;
  const std::size_t count = cut.ends.size();
  const auto streams = to_size(job_.streams);
  std::vector<double> stream_s(streams, 0);  // when each stream is done
  std::vector<double> taken_s(streams, 0);   // how long each is taken
  double links_s = 0;
  double bytes_s = 0;
  double traffic_s = 0;
  double circle_s = 0;  // from a layer's forward pass to its next, with priorities
  for (std::size_t i = 0; i < count; ++i) {
    const int end = cut.ends[i];
    const int first = first_of(cut.ends, i);
    const std::int64_t all = elements(first, end);
    const double time_s = alone_s(cut.which[i], all);
    const double latency_s = alone_s(cut.which[i], 1);
    const double bucket_s = time_s + job_.planning.aside.at(all, end - first);
    const double ready_s = clock.ready_s[to_size(end - 1)] + clock.slowing * traffic_s;
    const double moves_s = std::max(0.0, time_s - latency_s);
    links_s = std::max(links_s, ready_s) + moves_s;
    double& stream = stream_s[i % streams];
    stream = std::max(std::max(stream, ready_s) + bucket_s, links_s);
    taken_s[i % streams] += bucket_s;
    bytes_s += moves_s;
    if (job_.planning.slows)
      traffic_s += clock.load.full_s(static_cast<double>(all) * element_bytes_,
                                     streams == 1 ? time_s : moves_s);
    circle_s = std::max(
        circle_s, clock.ready_s[to_size(end - 1)] - clock.forward_s[to_size(end - 1)] + bucket_s);
  }
  const double computed_s = clock.computed_s + clock.slowing * traffic_s;
  const double busiest_s = std::max(bytes_s, *std::max_element(taken_s.begin(), taken_s.end()));
  if (job_.overlap == models::Overlap::double_buffered)
    return std::max(computed_s + clock.update_s, busiest_s);
  if (job_.overlap == models::Overlap::priority)
    return std::max({computed_s, circle_s + clock.slowing * traffic_s,
                     busiest_s + clock.update_s / job_.streams});
  const double done_s = *std::max_element(stream_s.begin(), stream_s.end());
  return std::max(done_s, computed_s) + clock.update_s;
}

double PlanSearch::judge(const Cut& cut) {
  const auto [entry, is_new] = judged_s_.try_emplace(cut);
  if (is_new) entry->second = judge_.period(plan_of(cut)).value();
  if (entry->second < best_s_) {
    best_s_ = entry->second;
    best_ = cut;
  }
  return entry->second;
}

void PlanSearch::descend_from(const std::vector<int>& ends) {
  descend(with_candidates(ends));
}

void PlanSearch::descend_from(const models::Plan& plan) {
  if (plan.overlap != job_.overlap || plan.streams != job_.streams || plan.is_of_other_system())
    return;
  Cut cut;
  for (const models::Bucket& bucket : plan.buckets) {
    const models::PlannedSchedule& schedule = plan.schedules[to_size(bucket.schedule)];
    const int first = cut.ends.empty() ? 0 : cut.ends.back();
    const int end = bucket.first_gradient + bucket.gradient_count;
    const bool can_move = library_ ? schedule.library() == library_ : schedule.has_steps();
    if (!can_move || bucket.first_gradient != first || end <= first ||
        bucket.elements != elements(first, end))
      return;
    cut.ends.push_back(end);
    cut.which.push_back(index_of(schedule));
  }
  if (!cut.ends.empty() && to_size(cut.ends.back()) + 1 == sums_.size()) descend(std::move(cut));
}

std::vector<int> PlanSearch::even_ends(int buckets) const {
  const auto all = static_cast<double>(sums_.back());
  std::vector<int> ends;
  for (std::size_t end = 1; end < sums_.size(); ++end) {
    const double share = static_cast<double>(sums_[end]) / all;
    if (share * buckets >= static_cast<double>(ends.size() + 1) || end + 1 == sums_.size())
      ends.push_back(static_cast<int>(end));
  }
  return ends;
}

void PlanSearch::descend_from_even_cuts() {
  Cut best;
  double least_s = 1e300;
  constexpr int most = 16;
  for (int buckets = 1; buckets <= most; ++buckets) {
    if (judge_.is_over()) return;
    Cut even = with_candidates(even_ends(buckets));
    const double period_s = judge(even);
    if (period_s >= least_s) continue;
    least_s = period_s;
    best = std::move(even);
  }
  descend(std::move(best));
}

void PlanSearch::descend(Cut cut) {
  if (judge_.is_over()) return;
  double period_s = judge(cut);
  for (bool is_better = true; is_better;) {
    is_better = false;
    const double loses_s = std::max(period_s, estimate_s(cut)) - std::min(period_s, least_.value());
    constexpr double worth_judging = 2;
    constexpr std::size_t always_judged = 24;
    std::vector<Move> moves;
    for (Cut& other : neighbours(cut)) {
      if (judged_s_.contains(other) && judged_s_.at(other) >= (1 - gain_of_a_step) * period_s)
        continue;
      const double estimate = estimate_s(other);
      moves.push_back({estimate, std::move(other)});
    }
    std::stable_sort(moves.begin(), moves.end(),
                     [](const Move& a, const Move& b) { return a.estimate_s < b.estimate_s; });
    std::size_t tried = 0;
    for (Move& move : moves) {
      const bool is_worth_judging = move.estimate_s - least_.value() <= worth_judging * loses_s;
      if (!is_worth_judging && ++tried > always_judged) break;
      if (judge_.is_over()) return;
      const double other_s = judge(move.cut);
      if (other_s >= (1 - gain_of_a_step) * period_s) continue;
      period_s = other_s;
      cut = std::move(move.cut);
      is_better = true;
      break;
    }
  }
}

void PlanSearch::escape() {
  constexpr int most_escapes = 4;
  constexpr int moves_away = 3;
  if (best_.ends.empty() || best_.ends.size() > many_buckets) return;
  std::mt19937 random(19);
  double before_s = best_s_;
  for (int left = most_escapes; left > 0 && !judge_.is_over(); --left) {
    Cut cut = best_;
    for (int i = 0; i < moves_away; ++i) {
      std::vector<Cut> all = neighbours(cut);
      if (!all.empty()) cut = std::move(all[random() % all.size()]);
    }
    descend(std::move(cut));
    if (best_s_ < (1 - gain_of_a_step) * before_s) left = most_escapes;
    before_s = best_s_;
  }
}

std::vector<PlanSearch::Cut> PlanSearch::neighbours(const Cut& cut) {
  std::set<Cut> found;
  for (std::size_t i = 0; i < cut.ends.size(); ++i) {
    add_all_reduces(cut, i, found);
    if (i + 1 < cut.ends.size()) {
      add_ends(cut, i, found);
      add_merged(cut, i, found);
    }
    add_cuts(cut, i, found);
  }
  const std::set<int> used(cut.which.begin(), cut.which.end());
  std::set<int> tried = used;
  for (std::size_t i = 0; i < cut.ends.size(); ++i)
    for (const int which : choices(first_of(cut.ends, i), cut.ends[i])) tried.insert(which);
  if (cut.ends.size() > many_buckets) tried = used;
  for (const int which : tried) found.insert({cut.ends, std::vector(cut.ends.size(), which)});
  found.erase(cut);
  return {found.begin(), found.end()};
}

void PlanSearch::add_all_reduces(const Cut& cut, std::size_t bucket, std::set<Cut>& found) {
  const auto take = [&](int which) {
    Cut other = cut;
    other.which[bucket] = which;
    found.insert(std::move(other));
  };
  for (const int which : choices(first_of(cut.ends, bucket), cut.ends[bucket])) take(which);
  if (cut.ends.size() > many_buckets) return;
  for (const int which : std::set<int>(cut.which.begin(), cut.which.end())) take(which);
}

// The end between a bucket and the next.
void PlanSearch::add_ends(const Cut& cut, std::size_t bucket, std::set<Cut>& found) {
  const int first = first_of(cut.ends, bucket);
  const int last = cut.ends[bucket + 1];
  for (const int by : {-1, 1, -2, 2, -4, 4, -8, 8}) {
    const int end = cut.ends[bucket] + by;
    if (end <= first || end >= last) continue;
    Cut other = cut;
    other.ends[bucket] = end;
    found.insert(other);
    other.which[bucket] = cost_.which(first, end);
    other.which[bucket + 1] = cost_.which(end, last);
    found.insert(std::move(other));
  }
}

void PlanSearch::add_merged(const Cut& cut, std::size_t bucket, std::set<Cut>& found) {
  Cut merged = cut;
  const auto place = static_cast<std::ptrdiff_t>(bucket);
  merged.ends.erase(merged.ends.begin() + place);
  merged.which.erase(merged.which.begin() + place);
  std::vector<int> all = {cut.which[bucket], cut.which[bucket + 1]};
  for (const int which : choices(first_of(merged.ends, bucket), merged.ends[bucket]))
    if (all.size() < 4 || which == cost_.which(first_of(merged.ends, bucket), merged.ends[bucket]))
      all.push_back(which);
  for (const int which : all) {
    merged.which[bucket] = which;
    found.insert(merged);
  }
}

// In the middle, by gradients and by elements, and behind the first and before the last gradient.
void PlanSearch::add_cuts(const Cut& cut, std::size_t bucket, std::set<Cut>& found) {
  const int first = first_of(cut.ends, bucket);
  const int end = cut.ends[bucket];
  if (end - first < 2) return;
  const auto half = std::lower_bound(sums_.begin() + first + 1, sums_.begin() + end - 1,
                                     sums_[to_size(first)] + elements(first, end) / 2);
  std::set<int> middles = {(first + end) / 2, static_cast<int>(half - sums_.begin()), first + 1,
                           end - 1};
  for (const int middle : middles) {
    Cut other = cut;
    const auto place = static_cast<std::ptrdiff_t>(bucket);
    other.ends.insert(other.ends.begin() + place, middle);
    other.which.insert(other.which.begin() + place, cut.which[bucket]);
    found.insert(other);
    const int small = cost_.which(first, middle);
    const int large = cost_.which(middle, end);
    for (const auto& [before, behind] :
         {std::pair(small, large), std::pair(small, cut.which[bucket]),
          std::pair(cut.which[bucket], large)}) {
      other.which[bucket] = before;
      other.which[bucket + 1] = behind;
      found.insert(other);
    }
  }
}

}  // namespace paceline::simulator
