// Reading a schedule: the transfers of one step, or of one rank in one step.
//
// These three functions are the only way in which any reader (verifier, engine, executor,
// exporter, picture) learns what a schedule does. Nothing is materialised: the callback sees
// one transfer at a time. T = std::int64_t enumerates a bucket of whole elements (messages may
// be empty), T = double fractions of a bucket.
#pragma once

#include <algorithm>
#include <type_traits>
#include <variant>

#include "models/collective/schedule.h"

namespace paceline::models {

template <class T>
struct Transfer {
  int from = 0;
  int to = 0;
  Span<T> span;
  bool reduce = false;  // added to what the receiver holds, or put in its place
};

namespace detail {

// How the ranks of an inner schedule are numbered outside of it: as members of a group, or as roles
// that are renumbered, inside the frame of the schedule around it.
struct Frame {
  const Groups* groups = nullptr;
  int group = 0;
  const Renumbered* renumbered = nullptr;
  const Frame* outer = nullptr;

  [[nodiscard]] int rank(int member) const {
    const int outside = groups != nullptr ? groups->rank(group, member) : renumbered->rank(member);
    return outer == nullptr ? outside : outer->rank(outside);
  }
};

[[nodiscard]] inline int outermost(const Frame* frame, int rank) {
  return frame == nullptr ? rank : frame->rank(rank);
}

// The part of a sequence that `step` falls in; makes `step` count from its start.
[[nodiscard]] inline const Schedule& part_at(const Sequence& sequence, int& step) {
  auto part = sequence.parts.begin();
  while (step >= part->steps()) {
    step -= part->steps();
    ++part;
  }
  return *part;
}

template <class T>
[[nodiscard]] Span<T> share_of(const Within& w, int group, Span<T> span) {
  return w.share == Share::own_part ? part(span, group, w.groups.count) : span;
}

// The segments that are under way in `step`.
template <class F>
void for_each_segment(const Pipelined& p, int step, F&& visit) {
  const int last = std::min(step, p.segments - 1);
  for (int segment = std::max(0, step - p.inner.steps() + 1); segment <= last; ++segment)
    visit(segment);
}

template <class T, class F>
void visit_step(const Schedule& schedule, int step, Span<T> span, const Frame* frame, F& sink) {
  std::visit(
      [&](const auto& node) {
        using Node = std::decay_t<decltype(node)>;
        if constexpr (std::is_same_v<Node, Sequence>) {
          int local = step;
          const Schedule& current = part_at(node, local);
          visit_step(current, local, span, frame, sink);
        } else if constexpr (std::is_same_v<Node, Within>) {
          for (int group = 0; group < node.groups.count; ++group) {
            const Frame inner{.groups = &node.groups, .group = group, .outer = frame};
            visit_step(node.inner, step, share_of(node, group, span), &inner, sink);
          }
        } else if constexpr (std::is_same_v<Node, OnPart>) {
          visit_step(node.inner, step, part(span, node.index, node.of), frame, sink);
        } else if constexpr (std::is_same_v<Node, Parallel>) {
          for (const Schedule& part : node.parts) {
            if (step < part.steps()) visit_step(part, step, span, frame, sink);
          }
        } else if constexpr (std::is_same_v<Node, Pipelined>) {
          for_each_segment(node, step, [&](int segment) {
            visit_step(node.inner, step - segment, part(span, segment, node.segments), frame, sink);
          });
        } else if constexpr (std::is_same_v<Node, Renumbered>) {
          const Frame inner{.renumbered = &node, .outer = frame};
          visit_step(node.inner, step, span, &inner, sink);
        } else {
          for_each_message(node, step, span, [&](int from, int to, Span<T> message, bool reduce) {
            sink(Transfer<T>{outermost(frame, from), outermost(frame, to), message, reduce});
          });
        }
      },
      schedule.node());
}

// Calls leaf(primitive, rank in it, step in it, span, frame) where `rank` takes part, if it does.
template <class T, class F>
void descend(const Schedule& schedule, int rank, int step, Span<T> span, const Frame* frame,
             F& leaf) {
  std::visit(
      [&](const auto& node) {
        using Node = std::decay_t<decltype(node)>;
        if constexpr (std::is_same_v<Node, Sequence>) {
          int local = step;
          const Schedule& current = part_at(node, local);
          descend(current, rank, local, span, frame, leaf);
        } else if constexpr (std::is_same_v<Node, Within>) {
          if (const auto place = node.groups.locate(rank)) {
            const Frame inner{.groups = &node.groups, .group = place->group, .outer = frame};
            descend(node.inner, place->member, step, share_of(node, place->group, span), &inner,
                    leaf);
          }
        } else if constexpr (std::is_same_v<Node, OnPart>) {
          descend(node.inner, rank, step, part(span, node.index, node.of), frame, leaf);
        } else if constexpr (std::is_same_v<Node, Parallel>) {
          for (const Schedule& part : node.parts) {
            if (step < part.steps()) descend(part, rank, step, span, frame, leaf);
          }
        } else if constexpr (std::is_same_v<Node, Pipelined>) {
          for_each_segment(node, step, [&](int segment) {
            descend(node.inner, rank, step - segment, part(span, segment, node.segments), frame,
                    leaf);
          });
        } else if constexpr (std::is_same_v<Node, Renumbered>) {
          const Frame inner{.renumbered = &node, .outer = frame};
          descend(node.inner, node.role(rank), step, span, &inner, leaf);
        } else {
          leaf(node, rank, step, span, frame);
        }
      },
      schedule.node());
}

}  // namespace detail

// Every transfer of `step`, 0 <= step < schedule.steps(), as sink(Transfer<T>). O(ranks).
template <class T, class F>
void for_each_transfer(const Schedule& schedule, int step, Span<T> bucket, F&& sink) {
  detail::visit_step(schedule, step, bucket, nullptr, sink);
}

// The transfers that `rank` sends in `step`. O(depth of the schedule + messages).
template <class T, class F>
void for_each_send(const Schedule& schedule, int rank, int step, Span<T> bucket, F&& sink) {
  auto leaf = [&](const auto& primitive, int member, int local, Span<T> span,
                  const detail::Frame* frame) {
    for_each_send(primitive, member, local, span, [&](int to, Span<T> message, bool reduce) {
      sink(Transfer<T>{rank, detail::outermost(frame, to), message, reduce});
    });
  };
  detail::descend(schedule, rank, step, bucket, nullptr, leaf);
}

// The transfers that `rank` receives in `step`, in the order of for_each_transfer: part by part of
// what runs in parallel, and in each part in the order of the senders.
template <class T, class F>
void for_each_receive(const Schedule& schedule, int rank, int step, Span<T> bucket, F&& sink) {
  auto leaf = [&](const auto& primitive, int member, int local, Span<T> span,
                  const detail::Frame* frame) {
    for_each_arrival(primitive, member, local, span, [&](int from, Span<T> message, bool reduce) {
      sink(Transfer<T>{detail::outermost(frame, from), rank, message, reduce});
    });
  };
  detail::descend(schedule, rank, step, bucket, nullptr, leaf);
}

}  // namespace paceline::models
