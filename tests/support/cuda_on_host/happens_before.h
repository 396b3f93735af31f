// Which operations are ordered, by vector clocks, and a report for two that touch the same memory and
// are not: "race: A writes what B reads, not ordered".
//
// Orders are the stream's own, events, the legacy stream's, edges of graphs, and the host's waits. The
// check is done when an operation is issued, so that it does not depend on the schedule.
//
// The host counts as one thread: what one host thread has waited for, all have. So a missing lock
// between two host threads is not seen, unless the seed lets the second one come first.
//
// Accesses are forgotten once the host has waited for them, or once a later and ordered access covers
// them: whoever is not ordered with the first is not ordered with the second either.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/support/cuda_on_host/world.h"

namespace cuda_on_host {

// Adds what happens before `earlier`, and it, to the clock.
void join(Clock& clock, const Operation& earlier);
// Holds the operation's accesses against those before it, and remembers them.
void check_races(const Operation& operation);
// The host has waited for the operation.
void host_waited_for(const Operation& operation);
[[nodiscard]] bool host_has_waited_for(const Operation& operation);
// The host itself touches memory, here and now. Returns whether it is ordered after what operations do
// there, and reports a race if not.
bool host_touches(const Access& access, const std::string& what);
// What touches this memory and the host has not waited for: of each access its range and whether it
// writes.
[[nodiscard]] std::vector<Access> pending_accesses(const std::byte* first, std::size_t bytes);
// Memory was given back: nobody can race on it any more.
void forget_accesses(const std::byte* first, std::size_t bytes);
[[nodiscard]] const std::vector<std::string>& found_races();
[[nodiscard]] std::size_t known_accesses();
void forget_all_accesses();

}  // namespace cuda_on_host
