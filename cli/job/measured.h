// All-reduces and throughputs that somebody measured, as the options --measured of time and scale have
// them.
#pragma once

#include <string>
#include <vector>

#include "models/cluster/cluster.h"
#include "models/profile/profile.h"
#include "simulator/iteration/measured_all_reduce.h"

namespace paceline::job {

// "64B=40.5us,1GiB=11.1ms@16": size, time and, after an @, the ranks, else `ranks`. None for an
// empty text. Throws InputError that names the option.
[[nodiscard]] std::vector<simulator::MeasuredAllReduce> parse_measured(
    const std::string& text, int ranks, const models::Cluster& cluster);

// Throws InputError that names the option if one of them took less time than the links allow at twice
// the fast end of their bandwidth (simulator::least_time). `profile` may be null.
void check_possible(const std::vector<simulator::MeasuredAllReduce>& measured,
                    models::Collective collective, const models::Cluster& cluster,
                    const models::Profile* profile);

struct MeasuredThroughput {
  int ranks = 1;
  PerSecond samples;  // of all ranks
};

// "8=1710images/s,64=13200images/s": ranks of the cluster, and samples per second of all of them. None for
// an empty text. Throws InputError that names the option.
[[nodiscard]] std::vector<MeasuredThroughput> parse_measured_throughputs(
    const std::string& text, const models::Cluster& cluster);

}  // namespace paceline::job
