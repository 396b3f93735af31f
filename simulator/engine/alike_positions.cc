// Tests: tests/simulator/alike_positions_test.cc; tests/agreement/flow_agreement_test.cc holds merged
// runs against enumerated ones.
#include "simulator/engine/alike_positions.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "models/base/to_size.h"

namespace paceline::simulator {
namespace {

using Colour = std::uint64_t;

// The finaliser of SplitMix64 (Steele, Lea & Flood 2014), over both values.
Colour mixed(Colour a, Colour b) {
  Colour hash = a * 0x9e3779b97f4a7c15 + b;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
  return hash ^ (hash >> 31);
}

Colour bits(double value) {
  return std::bit_cast<Colour>(value);
}

std::size_t distinct(std::vector<Colour> colours) {
  std::sort(colours.begin(), colours.end());
  return to_size(std::unique(colours.begin(), colours.end()) - colours.begin());
}

class Refinement {
 public:
  Refinement(const RunsOfSchedules& schedules, const Routes& routes, const Positions& positions)
      : schedules_(schedules), routes_(routes), positions_(to_size(positions.count())) {
    for (int position = 0; position < positions.count(); ++position)
      positions_[to_size(position)] = static_cast<Colour>(positions.size(position));
    LinkNumbers numbers(routes, positions);
    for_each_run([&](const PreparedRun& run, std::size_t, Colour number) {
      for (const PreparedRun::Participant& p : run.participants)
        positions_[to_size(p.position)] += mixed(number, bits(p.reduced));
      for (const int link : run.links) numbers_.push_back(numbers.of(link));
    });
    for (const int link : numbers.links()) links_.push_back(static_cast<Colour>(routes.rate(link)));
  }

  [[nodiscard]] std::size_t colours_of_positions() const { return distinct(positions_); }
  [[nodiscard]] std::size_t colours_of_links() const { return distinct(links_); }

  // One round.
  void refine() {
    std::vector<Colour> next = positions_;
    std::vector<Colour> next_of_links = links_;
    for_each_run([&](const PreparedRun& run, std::size_t first_number, Colour run_number) {
      for (const PreparedRun::Message& m : run.messages) {
        const Colour colour = mixed(colour_of(run, first_number, m), run_number);
        constexpr Colour sent = 1;
        constexpr Colour received = 2;
        next[to_size(m.from)] += mixed(colour, sent);
        next[to_size(m.to)] += mixed(colour, received);
        for (std::size_t i = m.first_link; i < m.end_link; ++i)
          next_of_links[to_size(numbers_[first_number + i])] += mixed(colour, bits(run.weights[i]));
      }
    });
    positions_ = std::move(next);
    links_ = std::move(next_of_links);
  }

  [[nodiscard]] AlikePositions result() const {
    AlikePositions alike;
    std::unordered_map<Colour, int> known;
    std::vector<int> first;  // position of each class
    for (std::size_t position = 0; position < positions_.size(); ++position) {
      const auto [entry, is_new] = known.try_emplace(positions_[position], alike.classes);
      if (is_new) {
        first.push_back(static_cast<int>(position));
        ++alike.classes;
      }
      alike.class_of.push_back(entry->second);
    }
    std::unordered_map<Colour, std::size_t> first_links;
    std::vector<std::size_t> standing;  // number of the link that stands for each
    for (std::size_t link = 0; link < links_.size(); ++link)
      standing.push_back(first_links.try_emplace(links_[link], link).first->second);
    alike.runs.resize(schedules_.size());
    std::size_t first_number = 0;
    for (std::size_t s = 0; s < schedules_.size(); ++s) {
      for (const PreparedRun& run : schedules_[s]) {
        alike.runs[s].push_back(merged(run, first_number, alike.class_of, first, standing));
        first_number += run.links.size();
      }
    }
    return alike;
  }

 private:
  // Calls use(run, place of its first link in numbers_, number of the run).
  template <class F>
  void for_each_run(F use) const {
    std::size_t first_number = 0;
    Colour number = 0;
    for (const std::vector<PreparedRun>& runs : schedules_) {
      for (const PreparedRun& run : runs) {
        use(run, first_number, number++);
        first_number += run.links.size();
      }
    }
  }

  // The links of a way count in any order.
  [[nodiscard]] Colour colour_of(const PreparedRun& run, std::size_t first_number,
                                 const PreparedRun::Message& m) const {
    Colour links = 0;
    for (std::size_t i = m.first_link; i < m.end_link; ++i)
      links += mixed(links_[to_size(numbers_[first_number + i])], bits(run.weights[i]));
    Colour colour = mixed(positions_[to_size(m.from)], positions_[to_size(m.to)]);
    colour = mixed(colour, bits(m.fraction));
    colour = mixed(colour, static_cast<Colour>(m.count));
    colour = mixed(colour, static_cast<Colour>(m.distance.hops));
    colour = mixed(colour, bits(m.distance.alpha_s));
    return mixed(colour, links);
  }

  // A class of messages has one that its first sender sends: every sender has as many of them. That one
  // stands for the others, so that what stands for two classes and joins the same two ranks has one way.
  [[nodiscard]] PreparedRun merged(const PreparedRun& run, std::size_t first_number,
                                   const std::vector<int>& class_of, const std::vector<int>& first,
                                   const std::vector<std::size_t>& standing) const {
    struct Weight {
      std::size_t number;  // of a link that stands for others
      int link;
      double weight;
    };
    struct Kind {
      int message = -1;  // that stands for the others
      std::vector<Weight> weights;
    };
    const auto stands_for_class = [&](int position) {
      return first[to_size(class_of[to_size(position)])] == position;
    };
    std::unordered_map<Colour, Kind> kinds;
    std::vector<Colour> order;
    for (std::size_t i = 0; i < run.messages.size(); ++i) {
      const PreparedRun::Message& m = run.messages[i];
      const Colour colour = colour_of(run, first_number, m);
      Kind& kind = kinds[colour];
      if (kind.message < 0 && stands_for_class(m.from)) {
        kind.message = static_cast<int>(i);
        order.push_back(colour);
      }
      for (std::size_t l = m.first_link; l < m.end_link; ++l) {
        const auto number = to_size(numbers_[first_number + l]);
        if (standing[number] != number) continue;
        const auto known = std::ranges::find(kind.weights, number, &Weight::number);
        if (known == kind.weights.end())
          kind.weights.push_back({number, run.links[l], run.weights[l]});
        else if (routes_.is_shared(known->link))
          known->weight += run.weights[l];
      }
    }
    PreparedRun result;
    result.repeats = run.repeats;
    for (const Colour colour : order) {
      Kind& kind = kinds.at(colour);
      std::ranges::sort(kind.weights, {}, &Weight::number);
      PreparedRun::Message m = run.messages[to_size(kind.message)];
      m.from = class_of[to_size(m.from)];
      m.to = class_of[to_size(m.to)];
      m.first_link = result.links.size();
      for (const Weight& weight : kind.weights) {
        result.links.push_back(weight.link);
        result.weights.push_back(weight.weight);
      }
      m.end_link = result.links.size();
      result.messages.push_back(m);
    }
    result.shifts.resize(result.links.size(), 0);
    for (const PreparedRun::Participant& p : run.participants)
      if (stands_for_class(p.position))
        result.participants.push_back({class_of[to_size(p.position)], p.reduced});
    return result;
  }

  const RunsOfSchedules& schedules_;
  const Routes& routes_;
  std::vector<Colour> positions_;
  std::vector<Colour> links_;  // by their numbers
  std::vector<int> numbers_;   // of the links of all runs, one run after the other
};

}  // namespace

std::optional<AlikePositions> alike_positions(const RunsOfSchedules& schedules,
                                              const Routes& routes, const Positions& positions) {
  constexpr int most_rounds = 16;
  Refinement refinement(schedules, routes, positions);
  std::size_t before = 0;
  for (int round = 0; round < most_rounds; ++round) {
    const std::size_t classes = refinement.colours_of_positions();
    if (4 * classes > 3 * to_size(positions.count())) return std::nullopt;
    const std::size_t colours = classes + refinement.colours_of_links();
    if (colours == before) return refinement.result();
    before = colours;
    refinement.refine();
  }
  return std::nullopt;
}

}  // namespace paceline::simulator
