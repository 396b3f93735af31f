// The events of an engine in order of time: a 4-ary heap of slots. A slot is in the heap at most
// once, and can be moved and taken out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "models/base/to_size.h"

namespace paceline::simulator {

class EventHeap {
 public:
  // Slots are numbered from 0.
  void add_slots(int count) { places_.resize(places_.size() + to_size(count), -1); }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] double earliest() const { return entries_.front().time; }
  [[nodiscard]] bool contains(int slot) const { return places_[to_size(slot)] >= 0; }
  // The time of a slot that is in the heap.
  [[nodiscard]] double time(int slot) const {
    return entries_[to_size(places_[to_size(slot)])].time;
  }

  // Puts the slot into the heap, or moves it.
  void set(int slot, double time) {
    int& place = places_[to_size(slot)];
    if (place < 0) {
      entries_.push_back({time, slot});
      rise(entries_.size() - 1, {time, slot});
      return;
    }
    const std::size_t at = to_size(place);
    if (time < entries_[at].time) {
      rise(at, {time, slot});
    } else {
      sink(at, {time, slot});
    }
  }
  int pop() {
    const int slot = entries_.front().slot;
    places_[to_size(slot)] = -1;
    const Entry last = entries_.back();
    entries_.pop_back();
    if (!entries_.empty()) sink(0, last);
    return slot;
  }
  void delay_all(double by) {
    for (Entry& entry : entries_) entry.time += by;
  }
  void clear() {
    for (const Entry& entry : entries_) places_[to_size(entry.slot)] = -1;
    entries_.clear();
  }

 private:
  struct Entry {
    double time;
    int slot;
  };
  static constexpr std::size_t arity = 4;

  void put(std::size_t at, Entry entry) {
    entries_[at] = entry;
    places_[to_size(entry.slot)] = static_cast<int>(at);
  }
  void rise(std::size_t at, Entry entry) {
    while (at > 0) {
      const std::size_t parent = (at - 1) / arity;
      if (entries_[parent].time <= entry.time) break;
      put(at, entries_[parent]);
      at = parent;
    }
    put(at, entry);
  }
  void sink(std::size_t at, Entry entry) {
    for (;;) {
      const std::size_t first = arity * at + 1;
      if (first >= entries_.size()) break;
      const std::size_t end = std::min(first + arity, entries_.size());
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (entries_[child].time < entries_[least].time) least = child;
      }
      if (entries_[least].time >= entry.time) break;
      put(at, entries_[least]);
      at = least;
    }
    put(at, entry);
  }

  std::vector<Entry> entries_;
  std::vector<int> places_;  // of each slot; -1 if it is not in the heap
};

}  // namespace paceline::simulator
