// Tests: tests/cli/capacity_test.py, tests/python/test_options.py.
#include "cli/planning_options.h"

#include "cli/shared_options.h"
#include "cli/training_run_options.h"

namespace paceline::cli {

void add_capacity_options(Command& command, job::CapacityOptions& capacity) {
  add_field(command, capacity.common, "model")
      .explained("Network: a name of the zoo (paceline show catalog) or a YAML file");
  command
      .add_option("--cluster", capacity.clusters,
                  "Clusters to compare, by commas: names of the catalogue or YAML files")
      .value("NAME|FILE,...");
  command
      .add_option(
          "--nic", capacity.nics,
          "NICs of a node to compare, by commas: the cluster's own, links of the catalogue, "
          "several of one, or what a message gets of each")
      .value("own|LINK|COUNTxLINK|BANDWIDTH,... (own)");
  command
      .add_option("--nodes", capacity.nodes,
                  "Numbers of full nodes to compare: 1,2,4 or 1-64 (doubling) or 1-64:1 (each); by "
                  "default 1, 2, 3, 4, 6, 8, 12, ... up to all, or to 1,024 ranks")
      .value("LIST|RANGE");
  command.add_option("--ranks", capacity.ranks, "Numbers of ranks to compare, in place of --nodes")
      .value("LIST|RANGE");
  command
      .add_option("--batch", capacity.batch,
                  "Samples per rank and iteration, the same on all candidates")
      .value("N (64)");
  command
      .add_option("--global-batch", capacity.global_batch,
                  "Samples of all ranks in an iteration, the same on all candidates, in place of "
                  "--batch")
      .value("N");
  command
      .add_option("--accumulate", capacity.accumulate,
                  "Batches of a rank whose gradients are added up before they travel; auto: the "
                  "batch is cut into the fewest equal parts that fit into memory")
      .value("K|auto (1)");
  command
      .add_option("--within", capacity.within,
                  "Ask for the cheapest candidate that trains in this time, as in 12h or '3 days'")
      .value("TIME");
  command
      .add_option(
          "--budget", capacity.budget,
          "Ask for the fastest candidate that costs at most this much; beside --within, for "
          "the cheapest that does both")
      .value("USD");
  command
      .add_option(
          "--efficiency", capacity.efficiency,
          "Ask for candidates of at least this efficiency, for where efficiency falls below "
          "it, and for the NIC bandwidth that it takes")
      .value("SHARE");
  command.add_flag("--cautious", capacity.cautious,
                   "Limits hold at the bad end of each 90 % interval, too");
  add_training_run_options(command, capacity.run);
  command
      .add_option("--node-price", capacity.run.node_price,
                  "Price of a node in place of the cluster's, one for all or CLUSTER=PRICE by "
                  "commas: '24.48 USD/h', or an offer of the catalogue such as aws-p5-48xlarge")
      .value("PRICE|NAME|CLUSTER=PRICE,...");
  add_node_power_option(command, capacity.run);
  add_field(command, capacity.common, "strategy")
      .explained(
          "Strategies by commas, of which each candidate has the fastest; by default all but "
          "parameter-server and direct-exchange, which take a second a candidate to follow")
      .value("NAME,...|all");
  add_field(command, capacity.common, "placement");
  add_prediction_options(command, capacity.common);
  add_field(command, capacity.common, "ignore-memory");
}

void add_plan_export_options(Command& command, job::PlanExportOptions& plan) {
  command
      .add_option("--model", plan.model,
                  "Network of the plan: a name of the zoo or a YAML file; by default the plan's")
      .value("NAME|FILE");
  add_field_text(command, plan.profile, "profile");
  add_field_text(command, plan.nccl, "nccl");
  command
      .add_option(
          "--measured", plan.measured,
          "All-reduces by NCCL that were measured on this cluster, a small and a large one, "
          "as 64KiB=40us,256MiB=3ms: they calibrate what NCCL takes")
      .value("SIZE=TIME[@RANKS],...");
  command
      .add_option("--batch", plan.batch,
                  "Samples per rank, for --format horovod and ddp; by default the plan's")
      .value("N (64)");
  command
      .add_option("--precision", plan.precision,
                  "Precision of computation, for --format horovod and ddp; by default the plan's")
      .value("fp32|mixed (mixed)");
}

}  // namespace paceline::cli
