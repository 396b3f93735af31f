// All-reduces that somebody measured, as the option --measured has them.
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
                    const models::Cluster& cluster, const models::Profile* profile);

}  // namespace paceline::job
