// Random schedules, groups and clusters for property tests (RapidCheck). Every drawn value is valid,
// and shrinks towards fewer ranks and simpler parts. The same seed draws the same values.
#pragma once

#include <rapidcheck.h>

#include <iosfwd>
#include <vector>

#include "models/cluster/placement.h"
#include "models/collective/schedule.h"
#include "simulator/cost/communication_cost.h"

// RapidCheck calls these functions when it prints a counterexample.
namespace paceline::models {

void showValue(const Schedule& schedule, std::ostream& out);
void showValue(const Groups& groups, std::ostream& out);

}  // namespace paceline::models

namespace paceline::simulator {

void showValue(const CommunicationCost& cost, std::ostream& out);

}  // namespace paceline::simulator

namespace paceline::test {

// Draws an integer from low to high, both included.
int drawn(int low, int high);

// Draws a number from 0 to high; one in eight is 0 itself.
double drawn_up_to(double high);

// Draws one of the divisors of value.
int drawn_divisor(int value);

// Draws an order of the integers from 0 to size - 1.
std::vector<int> drawn_permutation(int size);

// Returns one group of all ranks, whose member i is rank order[i].
models::Groups in_order(const std::vector<int>& order);

// Draws disjoint groups of at most about 60 ranks: blocks, interleaved or scattered, with gaps.
rc::Gen<models::Groups> groups();

// Draws an all-reduce over p ranks from all primitives and combinators, at most `depth` combinators
// deep.
models::Schedule drawn_all_reduce(int p, int depth);

// Draws all-reduce schedules over 1 to most_ranks ranks.
rc::Gen<models::Schedule> all_reduce_schedules(int most_ranks);

// Draws the rates of a cluster with g ranks per node on a flat fabric. Every latency and the time to
// reduce may be 0; bandwidths are finite.
simulator::CommunicationCost drawn_flat_cost(int g);

// Draws 1, 2, 3, 4, 6 or 8 ranks per node.
int drawn_ranks_per_node();

// Draws clusters of 1 to 8 ranks per node on a flat fabric, with one or several NICs per node. Each
// node is a switch.
rc::Gen<simulator::CommunicationCost> flat_costs();

// Draws a fabric for at least `nodes` nodes into the cost. A torus most often has exactly that many.
void draw_fabric(simulator::CommunicationCost& cost, int nodes);

// Draws a cluster of whole nodes of g ranks. If `alike`, no node is slow and ranks are placed node by
// node.
simulator::CommunicationCost drawn_cost(int g, int nodes, bool alike);

// Draws clusters for up to `ranks` ranks, of all fabrics, kinds of nodes, placements and slow nodes.
rc::Gen<simulator::CommunicationCost> communication_costs(int ranks = 64);

}  // namespace paceline::test
