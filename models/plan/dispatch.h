// What lies between a gradient that is there and its bucket's way, in systems other than ours.
//
// Our runtime sends a bucket as soon as its last gradient is there. Horovod looks for gradients every
// few milliseconds and agrees on them with all ranks first; ByteScheduler hands over parts of tensors
// while this many bytes are on their way and no more; MPI on the host moves buckets through the memory
// of the host. A plan says that a system does so (Plan::dispatch), and the simulator how long it takes
// (simulator/cost/dispatch_cost.h). The runtime runs no such plan.
#pragma once

#include <optional>
#include <string_view>

#include "models/base/units.h"

namespace paceline::models {

// How ranks agree, before each cycle, on the gradients that all of them have (Horovod).
enum class Negotiation {
  none,
  messages,  // each rank sends to rank 0, which answers each: up to 0.13.5
  gather,    // MPI_Gather, MPI_Gatherv and two MPI_Bcast: 0.13.8 to 0.16.1
  bits,      // a bit for each known tensor, by small all-reduces: from 0.16.2
};

// As documents have it: "none", "messages", "gather", "bits".
[[nodiscard]] std::string_view name(Negotiation negotiation);
// Throws InputError that suggests the nearest name.
[[nodiscard]] Negotiation negotiation_from_name(std::string_view text);

struct Dispatch {
  // The system looks for gradients that are there once in so long; 0: it takes them at once.
  Seconds cycle{0};
  Negotiation negotiation = Negotiation::none;
  // A bucket is handed over while those that were handed over before it and are not done hold fewer
  // bytes on the wire than this; without a credit, as soon as it is there.
  std::optional<Bytes> credit = {};
  // A bucket is copied to the host, summed by one core of a CPU for each rank, and copied back, one
  // after the other.
  bool through_host = false;

  bool operator==(const Dispatch&) const = default;
};

// A version of Horovod, "0.21" or "0.13.5", as far as its defaults differ.
struct HorovodDefaults {
  Seconds cycle;  // 5 ms, and 1 ms from 0.21
  Bytes fusion;   // 64 MiB, 128 MiB from 0.21; 0 before 0.9.5, which fuses nothing
  Negotiation negotiation = Negotiation::bits;
};

// Sources: operations.cc, mpi_ops.cc and controller.cc of tags 0.9.0 to 0.28.1 (key "Horovod" in
// docs/sources.md). Throws InputError for what is no version from 0.9 on.
[[nodiscard]] HorovodDefaults horovod_defaults(std::string_view version);

}  // namespace paceline::models
