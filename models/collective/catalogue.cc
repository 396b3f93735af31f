// Tests: tests/models/algorithms_test.cc.
#include "models/collective/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "models/base/names.h"
#include "models/collective/algorithms.h"

namespace paceline::models {
namespace {

using Options = ScheduleOptions;

int or_default(int asked, int otherwise) {
  return asked == 0 ? otherwise : asked;
}

constexpr std::array<std::pair<Collective, std::string_view>, 9> collectives = {
    {{Collective::all_reduce, "all-reduce"},
     {Collective::reduce_scatter, "reduce-scatter"},
     {Collective::all_gather, "all-gather"},
     {Collective::broadcast, "broadcast"},
     {Collective::reduce, "reduce"},
     {Collective::gather, "gather"},
     {Collective::scatter, "scatter"},
     {Collective::all_to_all, "all-to-all"},
     {Collective::neighbour_exchange, "neighbour-exchange"}}};

const std::array catalogue = {
    CollectiveAlgorithm{
        .name = "ring",
        .summary = "reduce-scatter and all-gather around one ring",
        .source = "Hitchhiker V; Patarasuk & Yuan 2009",
        .steps = "2(p-1)",
        .bytes = "2(p-1)/p n",
        .time = "2(p-1) alpha + 2(p-1)/p n beta + (p-1)/p n gamma",
        .exact = "every p",
        .build = [](const Options& o) { return ring_all_reduce(o.ranks); },
        .closed_form = [](const Options& o) { return std::optional(ring_form(o.ranks)); }},
    CollectiveAlgorithm{
        .name = "bidirectional-ring",
        .summary = "half of the bucket around the ring in each direction",
        .source = "Jain & Sabharwal 2010; Jouppi 2023 (TPU v4)",
        .steps = "2(p-1)",
        .bytes = "2(p-1)/p n",
        .time = "2(p-1) alpha + 2(p-1)/p n beta + (p-1)/p n gamma; half the beta where the two "
                "directions have links of their own",
        .exact = "every p, where a rank has one port for both directions",
        .build = [](const Options& o) { return bidirectional_ring_all_reduce(o.ranks); },
        .closed_form = [](const Options& o) { return std::optional(ring_form(o.ranks)); }},
    CollectiveAlgorithm{
        .name = "multi-ring",
        .summary = "a share of the bucket around each of several disjoint rings",
        .source = "Cho 2017 (PowerAI DDL)",
        .steps = "2(p-1)",
        .bytes = "2(p-1)/p n",
        .time = "2(p-1) alpha + 2(p-1)/p n beta + (p-1)/p n gamma; less beta where the rings "
                "have links of their own",
        .exact = "every p and k, where a rank has one port for all rings",
        .takes_group = true,
        .takes_rings = true,
        .build =
            [](const Options& o) {
              return multi_ring_all_reduce(o.ranks, o.rings, or_default(o.group_size, 1));
            },
        .closed_form = [](const Options& o) { return std::optional(ring_form(o.ranks)); }},
    CollectiveAlgorithm{
        .name = "recursive-doubling",
        .summary = "all of the bucket with a partner at twice the distance each step; folds where "
                   "p is no power of two",
        .source = "Thakur 2005, 4.1",
        .steps = "log2 q, q = 2^floor(log2 p), and 2 more where p != q",
        .bytes = "log2 q n; where p != q, a rank that folds n, and its neighbour n more",
        .time = "log2 q (alpha + n beta + n gamma), and 2 alpha + 2 n beta + n gamma where p != q",
        .exact = "every p",
        .build = [](const Options& o) { return recursive_doubling_all_reduce(o.ranks); },
        .closed_form =
            [](const Options& o) { return std::optional(recursive_doubling_form(o.ranks)); }},
    CollectiveAlgorithm{
        .name = "halving-doubling",
        .summary = "recursive halving, then doubling; folds where p is no power of two",
        .source = "Hitchhiker VI; Thakur 2005",
        .steps = "2 log2 q, q = 2^floor(log2 p), and 2 more where p != q",
        .bytes = "2(q-1)/q n; where p != q, a rank that folds n, and its neighbour n more",
        .time = "2 log2 q alpha + 2(q-1)/q n beta + (q-1)/q n gamma, and 2 alpha + 2 n beta + n "
                "gamma where p != q",
        .exact = "every p",
        .build = [](const Options& o) { return halving_doubling_all_reduce(o.ranks); },
        .closed_form =
            [](const Options& o) { return std::optional(halving_doubling_form(o.ranks)); }},
    CollectiveAlgorithm{
        .name = "binary-blocks",
        .summary = "halving-doubling in blocks of powers of two, chained from small to large",
        .source = "Hitchhiker VII; Rabenseifner 2004",
        .steps = "2 log2 q + 2 (blocks - 1), q = 2^floor(log2 p)",
        .bytes = "2(p-1)/p n where p = q; else 2 n - n/q in the largest block, 2 n between, and 2 "
                 "n - n/b in the smallest, of b ranks",
        .time = "2 log2 p alpha + 2(p-1)/p n beta + (p-1)/p n gamma",
        .exact = "p a power of two, where it is halving-doubling; else the blocks overlap in time, "
                 "and which of them is last depends on alpha, beta and gamma",
        .build = [](const Options& o) { return binary_blocks_all_reduce(o.ranks); },
        .closed_form =
            [](const Options& o) {
              return std::has_single_bit(static_cast<unsigned>(o.ranks))
                         ? std::optional(halving_doubling_form(o.ranks))
                         : std::nullopt;
            }},
    CollectiveAlgorithm{
        .name = "hierarchical",
        .summary = "reduce in groups of k, ring over the masters, broadcast in groups",
        .source = "Jizhi 4.3",
        .steps = "4(k-1) + 2(p/k-1)",
        .bytes = "a master 2(m-1)/m n, m = p/k, and n more where k > 1; other ranks 2 n, the last "
                 "of a chain n",
        .time = "4(k-1)(alpha + n/k beta) + 2(k-1) n/k gamma + 2(m-1)(alpha + n/m beta) + (m-1) "
                "n/m gamma, m = p/k",
        .exact = "every p and k",
        .takes_group = true,
        .build =
            [](const Options& o) {
              return hierarchical_all_reduce(o.ranks,
                                             or_default(o.group_size, default_group_size(o.ranks)));
            },
        .closed_form =
            [](const Options& o) {
              return std::optional(hierarchical_form(
                  o.ranks, or_default(o.group_size, default_group_size(o.ranks))));
            }},
    CollectiveAlgorithm{
        .name = "hierarchical-scatter",
        .summary = "reduce-scatter in groups of k, halving-doubling across by each member, "
                   "all-gather in groups",
        .source = "Goyal 2017, 3.2, above 256 KB; NCCL",
        .steps = "2(k-1) + steps of halving-doubling over p/k",
        .bytes = "2(k-1)/k n, and 1/k of what halving-doubling over p/k sends",
        .time = "2(k-1)(alpha + n/k beta) + (k-1) n/k gamma + halving-doubling of n/k over p/k",
        .exact = "every p and k",
        .takes_group = true,
        .build =
            [](const Options& o) {
              return hierarchical_scatter_all_reduce(
                  o.ranks, or_default(o.group_size, default_row_length(o.ranks)));
            },
        .closed_form =
            [](const Options& o) {
              return std::optional(hierarchical_scatter_form(
                  o.ranks, or_default(o.group_size, default_row_length(o.ranks))));
            }},
    CollectiveAlgorithm{
        .name = "hierarchical-direct",
        .summary = "all of a group's buckets straight to its master, halving-doubling over the "
                   "masters, and straight back",
        .source = "Goyal 2017, 3.2, up to 256 KB",
        .steps = "2 + steps of halving-doubling over p/k",
        .bytes = "a master (k-1) n and what halving-doubling over p/k sends; other ranks n",
        .time = "2 alpha + 2(k-1) n beta + (k-1) n gamma + halving-doubling over p/k",
        .exact = "every p and k",
        .takes_group = true,
        .build =
            [](const Options& o) {
              return hierarchical_direct_all_reduce(
                  o.ranks, or_default(o.group_size, default_row_length(o.ranks)));
            },
        .closed_form =
            [](const Options& o) {
              return std::optional(hierarchical_direct_form(
                  o.ranks, or_default(o.group_size, default_row_length(o.ranks))));
            }},
    CollectiveAlgorithm{
        .name = "torus-2d",
        .summary = "rows of k: reduce-scatter along them, ring along the columns, all-gather",
        .source = "Mikami 2018 (Sony), 2.2",
        .steps = "2(k-1) + 2(p/k-1)",
        .bytes = "2(p-1)/p n",
        .time = "2(k-1)(alpha + n/k beta) + (k-1) n/k gamma + ring of n/k over p/k",
        .exact = "every p and k",
        .takes_group = true,
        .build =
            [](const Options& o) {
              return torus_all_reduce(o.ranks,
                                      or_default(o.group_size, default_row_length(o.ranks)));
            },
        .closed_form =
            [](const Options& o) {
              return std::optional(
                  torus_form(o.ranks, or_default(o.group_size, default_row_length(o.ranks))));
            }},
    CollectiveAlgorithm{
        .name = "double-binary-tree",
        .summary = "half of the bucket up and down each of two trees, in segments; inner ranks of "
                   "one are leaves of the other",
        .source = "Sanders 2009; NCCL 2.4",
        .steps = "2 ceil(log2 p) + S - 1",
        .bytes = "at most 2 n",
        .exact = "ranks have from none to two children in each tree, and which "
                 "port is the busiest changes from step to step",
        .takes_segments = true,
        .build =
            [](const Options& o) {
              return double_binary_tree_all_reduce(o.ranks,
                                                   or_default(o.segments, default_tree_segments));
            },
        .closed_form = [](const Options&) -> std::optional<ClosedForm> { return std::nullopt; }},
    CollectiveAlgorithm{
        .name = "direct-exchange",
        .summary =
            "each rank sends each other rank its part, and each sends back the sum of its own",
        .source = "Hitchhiker IV, all-to-all",
        .steps = "2",
        .bytes = "2(p-1)/p n",
        .time = "2 alpha + 2(p-1)/p n beta + (p-1)/p n gamma",
        .exact = "every p",
        .build = [](const Options& o) { return parameter_server(o.ranks, o.ranks, 0); },
        .closed_form =
            [](const Options& o) {
              return std::optional(parameter_server_form(o.ranks, o.ranks));
            }},
    CollectiveAlgorithm{
        .name = "parameter-server",
        .summary = "push to s servers among the ranks, a part of the bucket each, and pull",
        .source = "Li 2014; PAISoar 2; Hitchhiker IV",
        .steps = "2",
        .bytes = "a worker n; a server n - n/s, and (p-1)/s n back",
        .time = "2 alpha + 2(p-1) n/s beta + (p-1) n/s gamma",
        .exact = "every p and s",
        .takes_servers = true,
        .build =
            [](const Options& o) {
              return parameter_server(o.ranks, or_default(o.servers, 1), o.first_server);
            },
        .closed_form =
            [](const Options& o) {
              return std::optional(parameter_server_form(o.ranks, or_default(o.servers, 1)));
            }},
    CollectiveAlgorithm{
        .name = "reduce-scatter",
        .summary = "around a ring",
        .source = "Patarasuk & Yuan 2009",
        .steps = "p-1",
        .bytes = "(p-1)/p n",
        .time = "(p-1)(alpha + n/p beta + n/p gamma)",
        .exact = "every p",
        .collective = Collective::reduce_scatter,
        .build = [](const Options& o) { return ring_reduce_scatter(o.ranks); },
        .closed_form =
            [](const Options& o) { return std::optional(half_ring_form(o.ranks, true)); }},
    CollectiveAlgorithm{
        .name = "all-gather",
        .summary = "around a ring",
        .source = "Patarasuk & Yuan 2009",
        .steps = "p-1",
        .bytes = "(p-1)/p n",
        .time = "(p-1)(alpha + n/p beta)",
        .exact = "every p",
        .collective = Collective::all_gather,
        .build = [](const Options& o) { return ring_all_gather(o.ranks); },
        .closed_form =
            [](const Options& o) { return std::optional(half_ring_form(o.ranks, false)); }},
    CollectiveAlgorithm{
        .name = "bruck-reduce-scatter",
        .summary = "half of what is left to a partner at half the distance each step, for any p",
        .source = "Bruck 1997, reversed",
        .steps = "ceil(log2 p)",
        .bytes = "(p-1)/p n",
        .time = "ceil(log2 p) alpha + (p-1)/p n beta + (p-1)/p n gamma",
        .exact = "every p",
        .collective = Collective::reduce_scatter,
        .build = [](const Options& o) { return bruck_reduce_scatter(o.ranks); },
        .closed_form = [](const Options& o) { return std::optional(bruck_form(o.ranks, true)); }},
    CollectiveAlgorithm{
        .name = "direct-reduce-scatter",
        .summary = "each part straight to the rank that sums it",
        .source = "Hitchhiker IV",
        .steps = "1",
        .bytes = "(p-1)/p n",
        .time = "alpha + (p-1)/p n beta + (p-1)/p n gamma",
        .exact = "every p",
        .collective = Collective::reduce_scatter,
        .build = [](const Options& o) { return direct_reduce_scatter(o.ranks); },
        .closed_form = [](const Options& o) { return std::optional(direct_form(o.ranks, true)); }},
    CollectiveAlgorithm{
        .name = "halving-reduce-scatter",
        .summary =
            "recursive halving, the furthest partner first; Bruck's where p is no power of two",
        .source = "Thakur 2005, 3.3",
        .steps = "ceil(log2 p)",
        .bytes = "(p-1)/p n",
        .time = "ceil(log2 p) alpha + (p-1)/p n beta + (p-1)/p n gamma",
        .exact = "every p",
        .collective = Collective::reduce_scatter,
        .build = [](const Options& o) { return halving_reduce_scatter(o.ranks); },
        .closed_form = [](const Options& o) { return std::optional(bruck_form(o.ranks, true)); }},
    CollectiveAlgorithm{
        .name = "pat-reduce-scatter",
        .summary = "a binomial tree for each part, all at once; few bytes go far, and most to the "
                   "neighbour",
        .source = "Jeaugey 2025 (PAT, NCCL 2.23)",
        .steps = "ceil(log2 p)",
        .bytes = "(p-1)/p n",
        .time = "ceil(log2 p) alpha + (p-1)/p n beta + (p-1)/p n gamma",
        .exact = "every p",
        .collective = Collective::reduce_scatter,
        .build = [](const Options& o) { return pat_reduce_scatter(o.ranks); },
        .closed_form = [](const Options& o) { return std::optional(bruck_form(o.ranks, true)); }},
    CollectiveAlgorithm{
        .name = "hierarchical-reduce-scatter",
        .summary =
            "rings inside groups, then a ring of each rank with its like in the other groups",
        .source = "Träff & Hunold 2020; Patarasuk & Yuan 2009",
        .steps = "k + p/k - 2",
        .bytes = "(p-1)/p n",
        .time = "(k + p/k - 2) alpha + (p-1)/p n beta + (p-1)/p n gamma",
        .exact = "every p and k",
        .collective = Collective::reduce_scatter,
        .takes_group = true,
        .build =
            [](const Options& o) {
              return hierarchical_reduce_scatter(
                  o.ranks, or_default(o.group_size, default_row_length(o.ranks)));
            },
        .closed_form =
            [](const Options& o) {
              return std::optional(hierarchical_ring_form(
                  o.ranks, or_default(o.group_size, default_row_length(o.ranks)), true));
            }},
    CollectiveAlgorithm{
        .name = "bruck-all-gather",
        .summary = "all that a rank has to a partner at twice the distance each step, for any p",
        .source = "Bruck 1997; Thakur 2005, 3.1",
        .steps = "ceil(log2 p)",
        .bytes = "(p-1)/p n",
        .time = "ceil(log2 p) alpha + (p-1)/p n beta",
        .exact = "every p",
        .collective = Collective::all_gather,
        .build = [](const Options& o) { return bruck_all_gather(o.ranks); },
        .closed_form = [](const Options& o) { return std::optional(bruck_form(o.ranks, false)); }},
    CollectiveAlgorithm{
        .name = "direct-all-gather",
        .summary = "each part straight to all other ranks",
        .source = "Hitchhiker IV",
        .steps = "1",
        .bytes = "(p-1)/p n",
        .time = "alpha + (p-1)/p n beta",
        .exact = "every p",
        .collective = Collective::all_gather,
        .build = [](const Options& o) { return direct_all_gather(o.ranks); },
        .closed_form = [](const Options& o) { return std::optional(direct_form(o.ranks, false)); }},
    CollectiveAlgorithm{
        .name = "doubling-all-gather",
        .summary =
            "recursive doubling, the nearest partner first; Bruck's where p is no power of two",
        .source = "Thakur 2005, 3.1",
        .steps = "ceil(log2 p)",
        .bytes = "(p-1)/p n",
        .time = "ceil(log2 p) alpha + (p-1)/p n beta",
        .exact = "every p",
        .collective = Collective::all_gather,
        .build = [](const Options& o) { return doubling_all_gather(o.ranks); },
        .closed_form = [](const Options& o) { return std::optional(bruck_form(o.ranks, false)); }},
    CollectiveAlgorithm{
        .name = "pat-all-gather",
        .summary = "a binomial tree for each part, all at once; few bytes go far, and most to the "
                   "neighbour",
        .source = "Jeaugey 2025 (PAT, NCCL 2.23)",
        .steps = "ceil(log2 p)",
        .bytes = "(p-1)/p n",
        .time = "ceil(log2 p) alpha + (p-1)/p n beta",
        .exact = "every p",
        .collective = Collective::all_gather,
        .build = [](const Options& o) { return pat_all_gather(o.ranks); },
        .closed_form = [](const Options& o) { return std::optional(bruck_form(o.ranks, false)); }},
    CollectiveAlgorithm{
        .name = "hierarchical-all-gather",
        .summary =
            "a ring of each rank with its like in the other groups, then rings inside groups",
        .source = "Träff & Hunold 2020; Patarasuk & Yuan 2009",
        .steps = "k + p/k - 2",
        .bytes = "(p-1)/p n",
        .time = "(k + p/k - 2) alpha + (p-1)/p n beta",
        .exact = "every p and k",
        .collective = Collective::all_gather,
        .takes_group = true,
        .build =
            [](const Options& o) {
              return hierarchical_all_gather(o.ranks,
                                             or_default(o.group_size, default_row_length(o.ranks)));
            },
        .closed_form =
            [](const Options& o) {
              return std::optional(hierarchical_ring_form(
                  o.ranks, or_default(o.group_size, default_row_length(o.ranks)), false));
            }},
    CollectiveAlgorithm{
        .name = "broadcast",
        .summary = "down a binomial tree, in segments",
        .source = "Thakur 2005, 3.2",
        .steps = "ceil(log2 p) + S - 1",
        .bytes = "the root ceil(log2 p) n, a rank with c children c n",
        .time = "(ceil(log2 p) + S - 1) alpha + ceil(log2 p) n beta",
        .exact = "every p and S",
        .collective = Collective::broadcast,
        .takes_segments = true,
        .build =
            [](const Options& o) { return binomial_broadcast(o.ranks, or_default(o.segments, 1)); },
        .closed_form =
            [](const Options& o) {
              return std::optional(binomial_broadcast_form(o.ranks, or_default(o.segments, 1)));
            }},
    CollectiveAlgorithm{.name = "chain-broadcast",
                        .summary = "along a chain of ranks, in segments",
                        .source = "Patarasuk & Yuan 2009; NCCL's rings",
                        .steps = "p + S - 2",
                        .bytes = "n",
                        .time = "(p + S - 2)(alpha + n/S beta)",
                        .exact = "every p and S",
                        .collective = Collective::broadcast,
                        .takes_segments = true,
                        .build =
                            [](const Options& o) {
                              return chain_broadcast(o.ranks,
                                                     or_default(o.segments, default_tree_segments));
                            },
                        .closed_form =
                            [](const Options& o) {
                              return std::optional(chain_form(
                                  o.ranks, or_default(o.segments, default_tree_segments), false));
                            }},
    CollectiveAlgorithm{.name = "hierarchical-broadcast",
                        .summary = "down a binomial tree of the first ranks of groups, then down "
                                   "one in each group, in segments",
                        .source = "Karonis 2000 (MPICH-G2)",
                        .steps = "ceil(log2 p/k) + ceil(log2 k) + 2 (S - 1)",
                        .bytes = "the root (ceil(log2 p/k) + ceil(log2 k)) n",
                        .time = "(ceil(log2 p/k) + ceil(log2 k) + 2 (S - 1)) alpha + (ceil(log2 "
                                "p/k) + ceil(log2 k)) n beta",
                        .exact = "every p, k and S, where both trees have edges",
                        .collective = Collective::broadcast,
                        .takes_group = true,
                        .takes_segments = true,
                        .build =
                            [](const Options& o) {
                              return hierarchical_broadcast(
                                  o.ranks, or_default(o.group_size, default_row_length(o.ranks)),
                                  or_default(o.segments, 1));
                            },
                        .closed_form =
                            [](const Options& o) {
                              return std::optional(hierarchical_broadcast_form(
                                  o.ranks, or_default(o.group_size, default_row_length(o.ranks)),
                                  or_default(o.segments, 1)));
                            }},
    CollectiveAlgorithm{
        .name = "all-to-all",
        .summary = "pairwise exchange",
        .source = "Thakur 2005, 3.4",
        .steps = "p-1",
        .bytes = "(p-1)/p^2 n",
        .time = "(p-1)(alpha + n/p^2 beta)",
        .exact = "every p",
        .collective = Collective::all_to_all,
        .build = [](const Options& o) { return pairwise_all_to_all(o.ranks); },
        .closed_form =
            [](const Options& o) { return std::optional(pairwise_all_to_all_form(o.ranks)); }},
    CollectiveAlgorithm{
        .name = "direct-all-to-all",
        .summary = "each block straight to its rank, all at once",
        .source = "NCCL",
        .steps = "1",
        .bytes = "(p-1)/p^2 n",
        .time = "alpha + (p-1)/p^2 n beta",
        .exact = "every p",
        .collective = Collective::all_to_all,
        .build = [](const Options& o) { return direct_all_to_all(o.ranks); },
        .closed_form =
            [](const Options& o) { return std::optional(direct_all_to_all_form(o.ranks)); }},
    CollectiveAlgorithm{
        .name = "bruck-all-to-all",
        .summary = "a block goes 2^s ranks on for each bit s of the way that it has to go",
        .source = "Bruck 1997; Thakur 2005, 3.4",
        .steps = "ceil(log2 p)",
        .bytes = "sum over steps s of b(s)/p^2 n, b(s) the numbers below p that have bit s",
        .time = "ceil(log2 p) alpha + the same n beta",
        .exact = "every p",
        .collective = Collective::all_to_all,
        .build = [](const Options& o) { return bruck_all_to_all(o.ranks); },
        .closed_form =
            [](const Options& o) { return std::optional(bruck_all_to_all_form(o.ranks)); }},
    CollectiveAlgorithm{
        .name = "neighbour-exchange",
        .summary = "each rank's part to the next rank in a ring",
        .source = "NCCL (sendrecv_perf)",
        .steps = "1",
        .bytes = "n/p",
        .time = "alpha + n/p beta",
        .exact = "every p",
        .collective = Collective::neighbour_exchange,
        .build = [](const Options& o) { return neighbour_exchange(o.ranks); },
        .closed_form =
            [](const Options& o) { return std::optional(neighbour_exchange_form(o.ranks)); }},
    CollectiveAlgorithm{
        .name = "reduce",
        .summary = "up a binomial tree, in segments",
        .source = "Thakur 2005, 4",
        .steps = "ceil(log2 p) + S - 1",
        .bytes = "every rank but the root n",
        .time = "ceil(log2 p)(alpha + n beta + n gamma), in one segment",
        .exact = "every p, where S = 1; else a rank sums segments of several children at a time",
        .collective = Collective::reduce,
        .takes_segments = true,
        .build =
            [](const Options& o) { return binomial_reduce(o.ranks, or_default(o.segments, 1)); },
        .closed_form =
            [](const Options& o) {
              return or_default(o.segments, 1) == 1 ? std::optional(binomial_reduce_form(o.ranks))
                                                    : std::nullopt;
            }},
    CollectiveAlgorithm{.name = "chain-reduce",
                        .summary = "along a chain of ranks, in segments",
                        .source = "Patarasuk & Yuan 2009; NCCL's rings",
                        .steps = "p + S - 2",
                        .bytes = "every rank but the root n",
                        .time = "(p + S - 2)(alpha + n/S beta + n/S gamma)",
                        .exact = "every p and S",
                        .collective = Collective::reduce,
                        .takes_segments = true,
                        .build =
                            [](const Options& o) {
                              return chain_reduce(o.ranks,
                                                  or_default(o.segments, default_tree_segments));
                            },
                        .closed_form =
                            [](const Options& o) {
                              return std::optional(chain_form(
                                  o.ranks, or_default(o.segments, default_tree_segments), true));
                            }},
    CollectiveAlgorithm{
        .name = "gather",
        .summary = "up a binomial tree, whose ranks send what they have gathered",
        .source = "Thakur 2005, 3",
        .steps = "ceil(log2 p)",
        .bytes = "rank r the parts from its own to that of its last child",
        .time = "ceil(log2 p) alpha + (p-1)/p n beta",
        .exact = "every p",
        .collective = Collective::gather,
        .build = [](const Options& o) { return binomial_gather(o.ranks); },
        .closed_form = [](const Options& o) { return std::optional(bruck_form(o.ranks, false)); }},
    CollectiveAlgorithm{
        .name = "scatter",
        .summary = "down a binomial tree, whose ranks pass on what is behind them",
        .source = "Thakur 2005, 3",
        .steps = "ceil(log2 p)",
        .bytes = "the root (p-1)/p n",
        .time = "ceil(log2 p) alpha + (p-1)/p n beta",
        .exact = "every p",
        .collective = Collective::scatter,
        .build = [](const Options& o) { return binomial_scatter(o.ranks); },
        .closed_form = [](const Options& o) { return std::optional(bruck_form(o.ranks, false)); }},
};

}  // namespace

std::string_view name(Collective collective) {
  return name_in(collectives, collective);
}

std::string names_of_collectives() {
  std::string names;
  for (const auto& [collective, text] : collectives)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", text);
  return names;
}

bool reduces(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
         collective == Collective::reduce;
}

Collective collective_from_name(std::string_view text) {
  return value_named(collectives, "collective", text);
}

std::span<const CollectiveAlgorithm> collective_catalogue() {
  return catalogue;
}

std::span<const CollectiveAlgorithm> all_reduce_catalogue() {
  const auto end =
      std::find_if(catalogue.begin(), catalogue.end(), [](const CollectiveAlgorithm& algorithm) {
        return algorithm.collective != Collective::all_reduce;
      });
  return {catalogue.begin(), end};
}

}  // namespace paceline::models
