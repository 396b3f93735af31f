// Machines from nvidia-smi topo -m, NCCL's topologies and NCCL's logs: what their files say, the
// cluster descriptions that come of it, and what is wrong with such files.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "calibration/import/gpu_names.h"
#include "calibration/import/import_file.h"
#include "calibration/import/machine_cluster.h"
#include "calibration/import/nccl_log.h"
#include "calibration/import/nccl_topology.h"
#include "models/cluster/catalog_parts.h"
#include "models/cluster/yaml.h"
#include "tests/calibration/import_files.h"
#include "tests/support/error_of.h"

namespace paceline::calibration {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Imported parsed(const std::string& file) {
  const std::string text = golden_import(file);
  return import_text(guessed_format(text, file), text, "file", nullptr);
}

ClusterDescription described(const std::string& file, MachineContext context = {}) {
  context.file = "file";
  context.name = "lab";
  context.tool = "tool";
  return cluster_description(*parsed(file).machine, context);
}

models::Cluster cluster(const std::string& file, const MachineContext& context = {}) {
  const ClusterDescription description = described(file, context);
  EXPECT_THAT(description.missing, IsEmpty());
  return models::parse_cluster_yaml(description.yaml, "out.yaml");
}

// The description that an import makes of a matrix, given as text.
ClusterDescription described_matrix(const std::string& text, const std::string& device) {
  const Imported imported = import_text(ImportFormat::nvidia_topology, text, "file", nullptr);
  return cluster_description(*imported.machine, {.file = "file", .name = "lab", .device = device});
}

TEST(NvidiaTopology, CubeMeshOfEarlyDrivers) {
  const models::Cluster dgx = cluster("nvidia_topo/375-dgx1-p100.txt",
                                      {.nodes = 4, .device = "p100", .nic = "infiniband-edr"});
  EXPECT_EQ(dgx.nodes, 4);
  EXPECT_EQ(dgx.ranks_per_node, 8);
  EXPECT_EQ(dgx.device.name, "p100");
  EXPECT_EQ(dgx.intra.name, "nvlink1-mesh");
  EXPECT_EQ(dgx.nic.name, "infiniband-edr");
  EXPECT_EQ(dgx.nics_per_node, 4);
}

TEST(NvidiaTopology, SwitchOfSixteen) {
  const models::Cluster dgx = cluster("nvidia_topo/450-dgx2-v100.txt", {.device = "v100-sxm3"});
  EXPECT_EQ(dgx.nodes, 1);
  EXPECT_EQ(dgx.ranks_per_node, 16);
  EXPECT_EQ(dgx.intra.name, "nvlink2");
}

TEST(NvidiaTopology, NicsHaveTheirNamesAndPlaces) {
  const ImportedMachine machine = *parsed("nvidia_topo/525-a100-nic-legend.txt").machine;
  ASSERT_EQ(machine.nics.size(), 10u);
  EXPECT_EQ(machine.nics[9].name, "mlx5_9");
  EXPECT_TRUE(machine.nics[0].is_beside_gpu());
  EXPECT_FALSE(machine.nics[9].is_beside_gpu());
  EXPECT_EQ(machine.inside, Inside::nvlink);
  EXPECT_EQ(machine.nvlinks_of_pair, 12);
  const models::Cluster dgx = cluster("nvidia_topo/525-a100-nic-legend.txt",
                                      {.nodes = 2, .device = "a100", .nic = "infiniband-hdr"});
  EXPECT_EQ(dgx.nics_per_node, 8);
  EXPECT_EQ(dgx.intra.name, "nvlink3");
}

// A report of the environment around the matrix, whose escapes have lost ESC.
TEST(NvidiaTopology, CopiedOutOfAReport) {
  const ImportedMachine machine = *parsed("nvidia_topo/570-h100-copied-escapes.txt").machine;
  EXPECT_EQ(machine.gpus_per_node, 8);
  EXPECT_EQ(machine.nvlinks_of_pair, 18);
  EXPECT_EQ(machine.device, "h100");
  ASSERT_EQ(machine.nics.size(), 9u);
  EXPECT_EQ(machine.nics[8].name, "mlx5_8");
  EXPECT_FALSE(machine.nics[8].is_beside_gpu());
}

TEST(NvidiaTopology, ColoursAreNoPartOfAName) {
  const std::string text = golden_import("nvidia_topo/550-pcie.txt");
  const std::string coloured =
      with(with(text, "GPU0", "\x1b[1;32mGPU0"), "\nGPU0", "\x1b[m\n\x1b[36mGPU0\x1b[0m");
  const Imported imported =
      import_text(guessed_format(coloured, "file"), coloured, "file", nullptr);
  EXPECT_EQ(imported.machine->gpus_per_node,
            parsed("nvidia_topo/550-pcie.txt").machine->gpus_per_node);
}

TEST(NvidiaTopology, WhatIsNotToldIsLeftOpen) {
  EXPECT_THAT(described("nvidia_topo/550-pcie.txt").missing, ElementsAre("device", "intra"));
  EXPECT_THAT(described("nvidia_topo/550-pcie.txt", {.nodes = 2}).missing,
              ElementsAre("device", "intra", "nic"));
  const ClusterDescription h100 = described("nvidia_topo/570-h100-underlined.txt");
  EXPECT_THAT(h100.missing, ElementsAre("device", "intra"));
  EXPECT_THAT(h100.yaml,
              HasSubstr("# intra:  # NVLink, 18 between every two, and not told of which "
                        "generation"));
  // A device has its generation.
  EXPECT_EQ(cluster("nvidia_topo/570-h100-underlined.txt", {.device = "h100"}).intra.name,
            "nvlink4");
  EXPECT_EQ(cluster("nvidia_topo/570-h100-underlined.txt", {.device = "b200"}).intra.name,
            "nvlink5");
}

TEST(NvidiaTopology, FewerLinksAreAShareOfTheCataloguesLink) {
  std::string text = golden_import("nvidia_topo/525-a100-nic-legend.txt");
  for (std::size_t at; (at = text.find("NV12")) != std::string::npos;) text.replace(at, 4, "NV8");
  const ClusterDescription description = described_matrix(text, "a100-80g");
  const models::Cluster a800 = models::parse_cluster_yaml(description.yaml, "out.yaml");
  const models::Link whole = models::catalog_link("nvlink3");
  EXPECT_NEAR(a800.intra.line_rate.value / whole.line_rate.value, 8.0 / 12, 1e-5);
  EXPECT_NEAR(a800.intra.bandwidth.value / whole.bandwidth.value, 8.0 / 12, 1e-5);
  EXPECT_EQ(a800.intra.bandwidth.provenance, Provenance::assumed);
  EXPECT_EQ(a800.intra.bandwidth.source, "8 of the 12 NVLinks of nvlink3");
}

// Four A100 without a switch: two of them have four of the twelve NVLinks of each between them.
TEST(NvidiaTopology, GpusWithoutASwitchReachEachOtherOverTheLinksBetweenThem) {
  const std::string text =
      "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\n"
      "GPU0\t X \tNV4\tNV4\tNV4\t0-31\nGPU1\tNV4\t X \tNV4\tNV4\t0-31\n"
      "GPU2\tNV4\tNV4\t X \tNV4\t32-63\nGPU3\tNV4\tNV4\tNV4\t X \t32-63\n";
  const ClusterDescription description = described_matrix(text, "a100");
  EXPECT_THAT(description.yaml,
              HasSubstr("12 NVLinks of a GPU, 4 between every two, and no switch"));
  const models::Cluster mesh = models::parse_cluster_yaml(description.yaml, "out.yaml");
  const models::Link whole = models::catalog_link("nvlink3");
  EXPECT_EQ(mesh.intra.line_rate.value, whole.line_rate.value);
  ASSERT_EQ(mesh.intra.bandwidth_by_ranks.size(), 3u);
  for (int ranks = 2; ranks <= 4; ++ranks)
    EXPECT_NEAR(mesh.intra.bandwidth_by_ranks.at(ranks).value / whole.bandwidth.value,
                (ranks - 1) / 3.0, 1e-5);
}

// A DGX Station: one or two of the six NVLinks of each V100 lead to another.
TEST(NvidiaTopology, UnevenMeshesAreAsFastAsTheirLinksBetweenThem) {
  const std::string text =
      "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\n"
      "GPU0\t X \tNV1\tNV1\tNV2\t0-39\nGPU1\tNV1\t X \tNV2\tNV1\t0-39\n"
      "GPU2\tNV1\tNV2\t X \tNV1\t0-39\nGPU3\tNV2\tNV1\tNV1\t X \t0-39\n";
  const models::Cluster station =
      models::parse_cluster_yaml(described_matrix(text, "v100").yaml, "out.yaml");
  const Figure<BytesPerSecond> two = station.intra.bandwidth_by_ranks.at(2);
  const models::Link whole = models::catalog_link("nvlink2");
  EXPECT_NEAR(two.value / whole.bandwidth.value, 1.0 / 6, 1e-5);
  EXPECT_NEAR(two.high / whole.bandwidth.high, 2.0 / 6, 1e-5);
  EXPECT_NEAR(station.intra.bandwidth_by_ranks.at(4).value / whole.bandwidth.value, 4.0 / 6, 1e-5);
}

TEST(NvidiaTopology, ErrorsNameTheLine) {
  const std::string text = golden_import("nvidia_topo/550-pcie.txt");
  const auto error = [](const std::string& bad) {
    return test::error_of(
        [&] { return import_text(ImportFormat::nvidia_topology, bad, "file", nullptr); });
  };
  EXPECT_EQ(error("nothing\n"),
            "file: there is no matrix of nvidia-smi topo -m; its first line is GPU0 GPU1 ... CPU "
            "Affinity");
  EXPECT_EQ(error(text.substr(0, text.find("GPU6\tSYS"))),
            "file: 6 of 8 rows of GPUs; give all of what nvidia-smi topo -m printed");
  EXPECT_EQ(error(with(text, "GPU1\tPHB", "GPU1\tPHX")),
            "file:3: 'PHX' is no path; a cell is X, NV#, PIX, PXB, PHB, NODE or SYS");
  EXPECT_EQ(error(with(text, "GPU1\tPHB", "GPU1\tPIX")),
            "file:3: PIX from GPU1 to GPU0, and another path back; give the matrix as nvidia-smi "
            "prints it");
  EXPECT_EQ(
      error(with(text, "GPU1\tPHB\t X ", "GPU1\tPHB\tPHB")),
      "file:3: 'PHB' in the column of GPU1; X stands for the device itself, and nowhere else");
  EXPECT_EQ(error(with(text, "GPU2\tNODE", "GPU3\tNODE")),
            "file:4: the row of 'GPU3'; that of GPU2 is due here");
  EXPECT_EQ(error("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X\n"),
            "file:2: 1 cells, where the header has 2; give the matrix as nvidia-smi prints it");
}

TEST(NcclTopology, CubeMeshOfInfiniband) {
  const models::Cluster dgx = cluster("nccl_topology/2.8-dgx1-v100.xml", {.nodes = 16});
  EXPECT_EQ(dgx.nodes, 16);
  EXPECT_EQ(dgx.ranks_per_node, 8);
  EXPECT_EQ(dgx.device.name, "v100");
  EXPECT_EQ(dgx.intra.name, "nvlink2-mesh");
  EXPECT_EQ(dgx.nic.name, "infiniband-edr");
  EXPECT_EQ(dgx.nics_per_node, 4);
  EXPECT_TRUE(dgx.gpudirect);
}

TEST(NcclTopology, SwitchesAndTheFastestNics) {
  const Imported imported = parsed("nccl_topology/2.21-dgx-a100.xml");
  EXPECT_EQ(imported.version, "version 1");
  ASSERT_EQ(imported.machine->nics.size(), 9u);
  EXPECT_EQ(imported.machine->nics[8].kind, NicKind::roce);
  const models::Cluster dgx = cluster("nccl_topology/2.21-dgx-a100.xml", {.nodes = 8});
  EXPECT_EQ(dgx.device.name, "a100");
  EXPECT_EQ(dgx.intra.name, "nvlink3");
  EXPECT_EQ(dgx.nic.name, "infiniband-hdr");
  EXPECT_EQ(dgx.nics_per_node, 8);
}

TEST(NcclTopology, PciExpressAndSockets) {
  const ClusterDescription geforce = described("nccl_topology/2.23-pcie-sockets.xml");
  EXPECT_THAT(geforce.missing, ElementsAre());
  EXPECT_THAT(geforce.yaml, HasSubstr("device: rtx-4090"));
  EXPECT_THAT(geforce.yaml,
              HasSubstr("intra: pcie4-staged  # PCI Express, and rtx-4090 have no peer access"));

  std::string text = golden_import("nccl_topology/2.23-pcie-sockets.xml");
  for (std::size_t at; (at = text.find("0x2684")) != std::string::npos;)
    text.replace(at, 6, "0xffff");
  const Imported imported = import_text(ImportFormat::nccl_topology, text, "file", nullptr);
  const ClusterDescription description =
      cluster_description(*imported.machine, {.file = "file", .name = "lab"});
  EXPECT_THAT(description.missing, ElementsAre("device"));
  EXPECT_THAT(description.yaml, HasSubstr("intra: pcie4-x16  #"));
  EXPECT_THAT(description.yaml, HasSubstr("nic: tcp-10g  # 1 NIC (eth0), TCP 10 Gbit/s"));
  EXPECT_THAT(description.yaml, HasSubstr("PCI device 0xffff, which is not in the catalogue"));
}

TEST(NcclTopology, AListOfPciDevicesSaysNothingOfLinks) {
  const Imported imported = parsed("nccl_topology/vm-given-to-nccl.xml");
  EXPECT_EQ(imported.machine->gpus_per_node, 8);
  EXPECT_EQ(imported.machine->inside, Inside::unknown);
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("lists PCI devices for NCCL to look at")));
}

// The list has eight InfiniBand NICs, each beside a GPU; their rate is that of --nic.
TEST(NcclTopology, AListOfPciDevicesHasNicsOfInfiniband) {
  const models::Cluster vm =
      cluster("nccl_topology/vm-given-to-nccl.xml",
              {.nodes = 2, .device = "a100", .nic = "infiniband-hdr", .intra = "nvlink3"});
  EXPECT_EQ(vm.nics_per_node, 8);
  EXPECT_EQ(vm.ranks_per_node, 8);
  EXPECT_TRUE(parsed("nccl_topology/vm-given-to-nccl.xml").machine->nics[0].is_beside_gpu());
}

// The number of compute units is no compute capability, and XGMI is no PCI Express.
TEST(NcclTopology, OfRccl) {
  const Imported imported = parsed("nccl_topology/rccl-2.18-mi300a.xml");
  EXPECT_EQ(imported.machine->gpus_per_node, 4);
  EXPECT_EQ(imported.machine->device, "");
  EXPECT_EQ(imported.machine->device_as_written, "PCI device 0x74a0, gfx942 of AMD");
  EXPECT_EQ(imported.machine->compute_capability, 0);
  EXPECT_EQ(imported.machine->inside, Inside::xgmi);
  ASSERT_EQ(imported.machine->nics.size(), 4u);
  EXPECT_EQ(imported.machine->nics[0].gbit_per_s, 0);
}

TEST(MachineCluster, XgmiIsALinkOfItsDevice) {
  ImportedMachine eight;
  eight.nodes = 1;
  eight.gpus_per_node = 8;
  eight.inside = Inside::xgmi;
  const auto described = [](const ImportedMachine& machine, const std::string& device,
                            const std::string& intra = "") {
    return cluster_description(machine,
                               {.file = "file", .name = "lab", .device = device, .intra = intra})
        .yaml;
  };
  EXPECT_THAT(described(eight, "mi325x"), HasSubstr("intra: xgmi-mi300x"));
  EXPECT_THAT(described(eight, ""), HasSubstr("# intra:  # XGMI joins every two GPUs; give"));
  ImportedMachine four = eight;
  four.gpus_per_node = 4;
  EXPECT_THAT(described(four, "mi300x"), HasSubstr("# intra:  # XGMI joins every two GPUs; give"));
  four.inside = Inside::nvlink;
  EXPECT_THAT(test::error_of([&] { return described(four, "a100", "xgmi-mi300x"); }),
              HasSubstr("xgmi-mi300x, and in file no GPU has XGMI"));
}

// Four EFA NICs of 100 Gbit/s are one link of the catalogue.
TEST(NcclTopology, EfaIsALinkOfAllItsNics) {
  std::string text = golden_import("nccl_topology/2.23-pcie-sockets.xml");
  const std::size_t begin = text.find("<net ");
  ASSERT_NE(begin, std::string::npos);
  const std::size_t end = text.find("/>", begin) + 2;
  std::string nets;
  for (int i = 0; i < 4; ++i)
    nets += fmt::format("<net name=\"rdmap{}s27\" dev=\"{}\" speed=\"100000\" gdr=\"1\"/>", i, i);
  text.replace(begin, end - begin, nets);
  const Imported imported = parse_nccl_topology(text, "file");
  const MachineContext context{.file = "file", .name = "lab", .tool = "tool"};
  EXPECT_THAT(cluster_description(*imported.machine, context).yaml,
              HasSubstr("\nnic: efa-400g  # 4 NICs (rdmap0s27"));
}

TEST(NcclTopology, OtherDocumentsAreNamed) {
  const auto error_of = [](const std::string& text) {
    return test::error_of(
        [&] { (void)import_text(guessed_format(text, "file"), text, "file", nullptr); });
  };
  EXPECT_EQ(error_of("<graphs version=\"1\"><graph id=\"0\"/></graphs>"),
            "file: this is a graph of NCCL, which says how it sends, and not over what; give what "
            "NCCL wrote to NCCL_TOPO_DUMP_FILE");
  EXPECT_EQ(error_of("<?xml version=\"1.0\"?><!DOCTYPE topology SYSTEM \"hwloc2.dtd\">"
                     "<topology version=\"2.0\"/>"),
            "file: this is a topology of hwloc; give what NCCL wrote to NCCL_TOPO_DUMP_FILE");
}

TEST(NcclTopology, ErrorsNameThePlace) {
  const std::string text = golden_import("nccl_topology/2.21-dgx-a100.xml");
  const auto error = [](const std::string& bad) {
    return test::error_of(
        [&] { return import_text(ImportFormat::nccl_topology, bad, "file", nullptr); });
  };
  EXPECT_THAT(error(text.substr(0, text.size() / 2)), HasSubstr("this is not XML: "));
  EXPECT_EQ(error("<other/>"),
            "file: there is no <system>; give what NCCL wrote to NCCL_TOPO_DUMP_FILE");
  EXPECT_EQ(error("<system version=\"1\"/>"),
            "file:1:1: there is no <gpu> in it; give what NCCL wrote to NCCL_TOPO_DUMP_FILE");
  EXPECT_EQ(error(with(text, "sm=\"80\"", "sm=\"eighty\"")),
            "file:5:13: sm of <gpu> is 'eighty'; it is a whole number up to 1000");
  EXPECT_THAT(error(with(text, "speed=\"200000\"", "speed=\"-1\"")),
              HasSubstr("speed of <net> is '-1'; it is a whole number up to 2000000000"));
  EXPECT_THAT(error(with(text, "count=\"2\"", "count=\"9999\"")), HasSubstr("count of <nvlink>"));
  std::string deep = "<system version=\"1\">";
  for (int i = 0; i < 100; ++i) deep += "<pci>";
  for (int i = 0; i < 100; ++i) deep += "</pci>";
  EXPECT_THAT(error(deep + "</system>"), HasSubstr("elements nest more than 64 deep"));
}

TEST(NcclLog, RanksOfSeveralHosts) {
  const Imported imported = parsed("nccl_log/2.10-roce-nccl-tests.log");
  EXPECT_EQ(imported.version, "2.10.3+cuda11.0");
  const models::Cluster two =
      cluster("nccl_log/2.10-roce-nccl-tests.log", {.nic = "roce-100g", .intra = "nvlink3"});
  EXPECT_EQ(two.nodes, 2);
  EXPECT_EQ(two.ranks_per_node, 8);
  EXPECT_EQ(two.device.name, "a100-80g");
  EXPECT_EQ(two.nics_per_node, 2);
  EXPECT_TRUE(two.gpudirect);
}

TEST(NcclLog, OneNodeOfFourWithTheTreeOfDevices) {
  const Imported imported = parsed("nccl_log/2.21-h100-one-node-of-four.log");
  EXPECT_THAT(imported.remarks, Contains("8 of 32 ranks are in this log, which says the rest"));
  const models::Cluster four =
      cluster("nccl_log/2.21-h100-one-node-of-four.log", {.device = "h100"});
  EXPECT_EQ(four.nodes, 4);
  EXPECT_EQ(four.ranks_per_node, 8);
  EXPECT_EQ(four.intra.name, "nvlink4");
  EXPECT_EQ(four.nic.name, "infiniband-ndr");
  EXPECT_EQ(four.nics_per_node, 8);
}

TEST(NcclLog, WithoutGpuDirect) {
  const models::Cluster two =
      cluster("nccl_log/2.4-infiniband-no-gpudirect.log",
              {.device = "v100", .nic = "infiniband-edr", .intra = "nvlink2"});
  EXPECT_EQ(two.nodes, 2);
  EXPECT_EQ(two.ranks_per_node, 4);
  EXPECT_FALSE(two.gpudirect);
}

// The output of pdsh: the plugin of AWS names its NICs, and a network whose name has a blank.
TEST(NcclLog, ElasticFabricAdapters) {
  const Imported imported = parsed("nccl_log/2.10-efa-pdsh.log");
  EXPECT_EQ(imported.version, "2.10.3+cuda11.3");
  EXPECT_EQ(imported.machine->nodes, 2);
  EXPECT_EQ(imported.machine->gpus_per_node, 8);
  EXPECT_EQ(imported.machine->device, "a100");
  EXPECT_THAT(imported.remarks, Contains("messages travel by network AWS Libfabric"));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("4 EFA NICs of a node")));
}

TEST(NcclLog, NicsLineByLineBefore24) {
  const ImportedMachine machine = *parsed("nccl_log/2.3-infiniband-line-by-line.log").machine;
  EXPECT_EQ(machine.nodes, 1);
  EXPECT_EQ(machine.gpus_per_node, 8);
  ASSERT_EQ(machine.nics.size(), 4u);
  EXPECT_EQ(machine.nics[0].name, "mlx5_0");
  EXPECT_EQ(machine.nics[0].kind, NicKind::infiniband);
}

TEST(NcclLog, OfRccl) {
  const Imported imported = parsed("nccl_log/rccl-2.16-sockets.log");
  EXPECT_EQ(imported.version, "2.16.5+hip5.6");
  EXPECT_EQ(imported.machine->nodes, 2);
  EXPECT_EQ(imported.machine->gpus_per_node, 4);
  ASSERT_EQ(imported.machine->nics.size(), 1u);
  EXPECT_EQ(imported.machine->nics[0].kind, NicKind::sockets);
}

// Somebody has cut the hosts off. Two ranks are then no node of two.
TEST(NcclLog, WithoutHostsNothingIsSaidOfNodes) {
  const std::string text =
      "NCCL INFO Using network Socket\n"
      "NCCL INFO comm 0x7f rank 1 nranks 2 cudaDev 0 busId 89000 - Init COMPLETE\n"
      "NCCL INFO comm 0x7e rank 0 nranks 2 cudaDev 0 busId 3d000 - Init COMPLETE\n";
  const Imported imported = import_text(guessed_format(text, "file"), text, "file", nullptr);
  EXPECT_EQ(imported.machine->nodes, 0);
  EXPECT_EQ(imported.machine->gpus_per_node, 0);
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("do not say which ranks are on one node")));
}

TEST(NcclLog, ThroughTheHostsMemory) {
  const Imported imported = parsed("nccl_log/2.27-shared-memory.log");
  EXPECT_EQ(imported.machine->inside, Inside::host_memory);
  EXPECT_EQ(imported.machine->nodes, 1);
  EXPECT_EQ(imported.machine->gpus_per_node, 4);  // four threads of one process
  EXPECT_THAT(imported.remarks, testing::Not(Contains(HasSubstr("process groups"))));
  EXPECT_EQ(imported.machine->nics.at(0).kind, NicKind::sockets);
}

// Ranks on GPUs 4 to 7, whatever CUDA_VISIBLE_DEVICES calls them.
TEST(NcclLog, ACommunicatorOnPartOfAHostIsSaid) {
  std::string text = golden_import("nccl_log/2.27-shared-memory.log");
  const std::string of_host = "nvmlDev ";
  for (std::size_t at = text.find(of_host); at != std::string::npos;
       at = text.find(of_host, at + 1))
    text[at + of_host.size()] = static_cast<char>(text[at + of_host.size()] + 4);
  EXPECT_THAT(parse_nccl_log(text, "job.log").remarks,
              Contains("a rank is on GPU 7 of its host, where this communicator has 4 ranks: the "
                       "hosts have more GPUs than the cluster that is made of it"));
  EXPECT_THAT(parsed("nccl_log/2.27-shared-memory.log").remarks,
              testing::Not(Contains(HasSubstr("more GPUs"))));
}

// The ways in which a matrix is pasted, and what its NICs really are.
std::string matrix(const std::string& header, const std::vector<std::string>& rows) {
  std::string text = header + "\n";
  for (const std::string& row : rows) text += row + "\n";
  return text;
}

ClusterDescription described_text(const std::string& text, MachineContext context = {}) {
  const Imported imported =
      import_text(guessed_format(text, "topo.txt"), text, "topo.txt", nullptr);
  context.file = "topo.txt";
  context.name = "lab";
  context.tool = imported.tool;
  return cluster_description(*imported.machine, context);
}

TEST(NvidiaTopology, NamesThatRanTogetherAreParted) {
  const std::vector<std::string> rows = {"GPU0 X NV18 PIX SYS", "GPU1 NV18 X SYS PIX",
                                         "NIC0 PIX SYS X SYS", "NIC1 SYS PIX SYS X"};
  const std::string apart =
      described_text(matrix("GPU0 GPU1 NIC0 NIC1 CPU Affinity", rows), {.nic = "infiniband-ndr"})
          .yaml;
  EXPECT_THAT(apart, HasSubstr("count: 2"));
  for (const char* header : {"GPU0 GPU1 NIC0NIC1 CPU Affinity", "GPU0GPU1 NIC0 NIC1 CPU Affinity",
                             "GPU0GPU1NIC0NIC1 CPU Affinity"})
    EXPECT_EQ(described_text(matrix(header, rows), {.nic = "infiniband-ndr"}).yaml, apart)
        << header;
}

TEST(NvidiaTopology, RowsOfNicsAreHeldAgainstTheHeader) {
  const auto error = [](const std::string& header, const std::vector<std::string>& rows) {
    return test::error_of([&] { return described_text(matrix(header, rows)); });
  };
  const std::string gpus = "GPU0 X NV18 PIX SYS";
  EXPECT_EQ(error("GPU0 GPU1 NIC0 NIC1 CPU Affinity",
                  {gpus, "GPU1 NV18 X SYS PIX", "NIC0 PIX SYS X SYS"}),
            "topo.txt: 1 rows of NICs, where the header has 2; give all of what nvidia-smi topo -m "
            "printed");
  EXPECT_EQ(error("GPU0 GPU1 NIC0 NIC1 CPU Affinity",
                  {gpus, "GPU1 NV18 X SYS PIX", "NIC0 PIX SYS X SYS", "NIC2 SYS PIX SYS X"}),
            "topo.txt:5: the row of 'NIC2'; that of NIC1 is due here");
  EXPECT_EQ(
      error("GPU0 GPU1 NIC0 CPU Affinity",
            {"GPU0 X NV18 PIX", "GPU1 NV18 X SYS", "NIC0 PIX SYS X", "NIC1 SYS PIX SYS X"}),
      "topo.txt:5: the row of 'NIC1', where the header has 1 NICs; give the matrix as nvidia-smi "
      "prints it");
}

TEST(NvidiaTopology, AGpuWithoutNvlinkIsNamedAndNoOptionHidesIt) {
  const std::string text = matrix("GPU0 GPU1 GPU2 CPU Affinity",
                                  {"GPU0 X NV18 NODE", "GPU1 NV18 X NODE", "GPU2 NODE NODE X"});
  const Imported imported = import_text(ImportFormat::nvidia_topology, text, "topo.txt", nullptr);
  EXPECT_THAT(imported.remarks,
              Contains(HasSubstr("GPU2 has no NVLink, and the other 2 GPUs have")));
  EXPECT_EQ(test::error_of([&] { return described_text(text, {.intra = "nvlink5"}); }),
            "--intra-link: nvlink5, and in topo.txt GPU2 has no NVLink; leave it out");
  EXPECT_THAT(described_text(text, {.intra = "pcie5-x16"}).yaml, HasSubstr("intra: pcie5-x16"));
}

TEST(NvidiaTopology, AnOptionContradictsNoLink) {
  const std::string pcie = matrix("GPU0 GPU1 CPU Affinity", {"GPU0 X SYS", "GPU1 SYS X"});
  EXPECT_EQ(test::error_of([&] { return described_text(pcie, {.intra = "nvlink4"}); }),
            "--intra-link: nvlink4, and in topo.txt no GPU has NVLink; leave it out");
  const std::string nvlink = matrix("GPU0 GPU1 CPU Affinity", {"GPU0 X NV18", "GPU1 NV18 X"});
  EXPECT_EQ(test::error_of([&] { return described_text(nvlink, {.intra = "pcie4-x16"}); }),
            "--intra-link: pcie4-x16, and in topo.txt NVLink joins the GPUs; leave it out");
}

// Functions of one adapter are PIX to each other; two ports of one beside a GPU are two NICs.
TEST(NvidiaTopology, VirtualFunctionsAreOneAdapter) {
  const std::string functions =
      matrix("GPU0 GPU1 mlx5_0 mlx5_1 mlx5_2 CPU Affinity",
             {"GPU0 X SYS NODE NODE NODE", "GPU1 SYS X SYS SYS SYS", "mlx5_0 NODE SYS X PIX PIX",
              "mlx5_1 NODE SYS PIX X PIX", "mlx5_2 NODE SYS PIX PIX X"});
  const std::string yaml = described_text(functions, {.nic = "roce-100g"}).yaml;
  EXPECT_THAT(yaml, HasSubstr("nic: {base: roce-100g, distance: node}  # 1 NIC (mlx5_0)"));
  EXPECT_THAT(yaml, HasSubstr("3 stand behind one PCIe bridge (PIX), and count as 1 adapter"));
  const std::string ports = matrix(
      "GPU0 GPU1 mlx5_0 mlx5_1 CPU Affinity",
      {"GPU0 X SYS PIX PIX", "GPU1 SYS X SYS SYS", "mlx5_0 PIX SYS X PIX", "mlx5_1 PIX SYS PIX X"});
  EXPECT_THAT(described_text(ports, {.nic = "roce-100g"}).yaml, HasSubstr("count: 2"));
}

TEST(RocmSmi, IsNamedAndNotTakenForNvidiasTool) {
  const std::string text =
      "===== ROCm System Management Interface =====\n GPU0 GPU1\nGPU0 0 15\nGPU1 15 0\n";
  EXPECT_THAT(test::error_of([&] { return guessed_format(text, "topo.txt"); }),
              HasSubstr("topo.txt: this is the output of rocm-smi, which is not read here"));
}

std::string log_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string init_line(const std::string& host, int pid, int rank, int ranks, int device,
                      const std::string& id) {
  return fmt::format(
      "{}:{}:{} [{}] NCCL INFO comm 0x1 rank {} nranks {} cudaDev {} busId {}000 commId "
      "{} - Init COMPLETE",
      host, pid, pid, device, rank, ranks, device, device + 1, id);
}

// Two ports of 200 Gbit/s that NCCL makes one NIC of are listed, and their sum beside them.
TEST(NcclLog, MergedNicsCountOnce) {
  const std::string text =
      log_of({"a:1:1 [0] NCCL INFO NET/IB : Made virtual device [2] name=mlx5_0+mlx5_1 "
              "speed=400000 ndevs=2",
              "a:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB "
              "eth0:10.0.0.1<0>",
              "a:1:1 [0] NCCL INFO Using network IB", init_line("a", 1, 0, 2, 0, "0x9"),
              init_line("b", 2, 1, 2, 0, "0x9")});
  const Imported imported = import_text(ImportFormat::nccl_log, text, "file", nullptr);
  ASSERT_EQ(imported.machine->nics.size(), 1u);
  EXPECT_EQ(imported.machine->nics[0].name, "mlx5_0+mlx5_1");
  EXPECT_EQ(imported.machine->nics[0].gbit_per_s, 400);
  EXPECT_EQ(imported.machine->nics[0].kind, NicKind::infiniband);
}

TEST(NcclLog, TunnelsAndWifiAreNoNics) {
  const std::string text =
      log_of({"a:1:1 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0> [1]wlp2s0:10.0.1.1<0> "
              "[2]tun0:10.8.0.1<0>",
              "a:1:1 [0] NCCL INFO Using network Socket", init_line("a", 1, 0, 2, 0, "0x9"),
              init_line("b", 2, 1, 2, 0, "0x9")});
  const Imported imported = import_text(ImportFormat::nccl_log, text, "file", nullptr);
  ASSERT_EQ(imported.machine->nics.size(), 1u);
  EXPECT_EQ(imported.machine->nics[0].name, "eth0");
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("tun0 is Wi-Fi, a tunnel or of containers")));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("wlp2s0 is Wi-Fi")));
}

// Four processes on each of two hosts, of which the log has groups of two.
TEST(NcclLog, ProcessGroupsAloneAreTold) {
  std::vector<std::string> lines;
  for (int rank = 0; rank < 8; ++rank)
    lines.push_back(init_line(rank < 4 ? "a" : "b", 100 + rank, rank % 2, 2, rank % 4,
                              fmt::format("0x{}", rank / 2)));
  const Imported imported = import_text(ImportFormat::nccl_log, log_of(lines), "file", nullptr);
  EXPECT_THAT(imported.remarks,
              Contains(HasSubstr("communicators of up to 2 ranks, and 8 processes")));
  EXPECT_EQ(imported.machine->nodes, 2);
  EXPECT_EQ(imported.machine->gpus_per_node, 4);
}

// 72 ranks on 18 hosts are one node where the switches join them (MNNVL 1), and 18 where they do not.
TEST(NcclLog, AnNvlinkDomainOfSeveralHostsIsOneNode) {
  const auto imported_with = [](int mnnvl) {
    std::vector<std::string> lines;
    for (int rank = 0; rank < 72; ++rank)
      lines.push_back(fmt::format(
          "tray-{0}:1{1}:1 [{2}] NCCL INFO comm 0x1 rank {1} nRanks 72 nNodes {3} localRanks {4} "
          "localRank {5} MNNVL {6}",
          rank / 4, rank, rank % 4, mnnvl == 1 ? 1 : 18, mnnvl == 1 ? 72 : 4,
          mnnvl == 1 ? rank : rank % 4, mnnvl));
    return import_text(ImportFormat::nccl_log, log_of(lines), "file", nullptr);
  };
  const Imported wide = imported_with(1);
  EXPECT_EQ(wide.machine->nodes, 1);
  EXPECT_EQ(wide.machine->gpus_per_node, 72);
  EXPECT_EQ(wide.machine->hosts_per_node, 18);
  EXPECT_EQ(wide.machine->inside, Inside::nvlink);
  const std::string yaml =
      cluster_description(*wide.machine,
                          {.file = "file", .name = "rack", .device = "gb200", .intra = "nvlink5"})
          .yaml;
  EXPECT_THAT(yaml,
              HasSubstr("ranks_per_node: 72\nhosts_per_node: 18  # one NVLink domain (MNNVL)"));
  const Imported apart = imported_with(0);
  EXPECT_EQ(apart.machine->nodes, 18);
  EXPECT_EQ(apart.machine->gpus_per_node, 4);
  EXPECT_EQ(apart.machine->hosts_per_node, 1);
}

TEST(NcclLog, HivesOfXgmiAreNoPciExpress) {
  const auto tree = [](int hive) {
    std::vector<std::string> lines;
    for (int gpu = 0; gpu < 4; ++gpu) {
      lines.push_back(fmt::format("a:1:1 [0] NCCL INFO + PCI[24.0] - GPU/{}000 ({})", gpu, gpu));
      for (int other = gpu / hive * hive; other < gpu / hive * hive + hive; ++other) {
        if (other != gpu)
          lines.push_back(fmt::format("a:1:1 [0] NCCL INFO   + XGMI[24.0] - GPU/{}000", other));
      }
    }
    for (int rank = 0; rank < 4; ++rank) lines.push_back(init_line("a", 1, rank, 8, rank, "0x9"));
    return import_text(ImportFormat::nccl_log, log_of(lines), "file", nullptr);
  };
  const Imported two = tree(2);
  EXPECT_EQ(two.machine->inside, Inside::xgmi_partly);
  EXPECT_THAT(two.remarks,
              Contains("XGMI joins the GPUs in hives of 2, and PCI Express the hives"));
  EXPECT_EQ(tree(4).machine->inside, Inside::xgmi);
  // All of this host's devices are ranks: the job has two such hosts.
  EXPECT_EQ(two.machine->gpus_per_node, 4);
  EXPECT_EQ(two.machine->nodes, 2);
}

TEST(NcclLog, PartOfAJobIsNoCluster) {
  std::string text = golden_import("nccl_log/2.4-infiniband-no-gpudirect.log");
  text.resize(text.find("node1:404:604 [0] NCCL INFO comm"));
  const Imported imported = import_text(ImportFormat::nccl_log, text, "file", nullptr);
  EXPECT_THAT(imported.remarks, Contains("4 of 8 ranks are in this log: give that of all of them"));
  EXPECT_EQ(imported.machine->nodes, 0);
  EXPECT_EQ(imported.machine->gpus_per_node, 0);
}

TEST(NcclLog, ErrorsNameTheLine) {
  const auto error = [](const std::string& bad) {
    return test::error_of(
        [&] { return import_text(ImportFormat::nccl_log, bad, "file", nullptr); });
  };
  EXPECT_EQ(error("a:1:2 [0] NCCL INFO Bootstrap : Using eth0\n"),
            "file: there is no rank of a communicator in this log; run with NCCL_DEBUG=INFO, and "
            "give the output of all ranks");
  EXPECT_EQ(error("\na:1:2 [0] NCCL INFO comm 0x1 rank 9 nranks 8 cudaDev 0 - Init COMPLETE\n"),
            "file:2: rank 9 of 8; ranks are counted from 0, and are up to 1000000");
}

TEST(MachineCluster, WhatTheFileSaysCannotBeContradicted) {
  EXPECT_EQ(test::error_of(
                [] { return described("nccl_topology/2.8-dgx1-v100.xml", {.device = "p100"}); }),
            "--device: p100, and file says v100; leave it out");
  EXPECT_EQ(
      test::error_of([] { return described("nccl_log/2.10-roce-nccl-tests.log", {.nodes = 3}); }),
      "--nodes: 3, and file says 2; leave it out");
  EXPECT_THAT(
      test::error_of([] { return described("nvidia_topo/550-pcie.txt", {.intra = "pcie4"}); }),
      HasSubstr("--intra-link: unknown link 'pcie4'"));
}

// Every name that the tables of other tools' names lead to is one of the catalogue.
TEST(MachineCluster, NamesAreThoseOfTheCatalogue) {
  for (const models::CatalogEntry& entry : models::catalog_devices())
    (void)nvlink_generation(entry.name);
  for (const char* pci : {"0x102d", "0x17fd", "0x17c2", "0x1b38", "0x1b06", "0x15f9", "0x15f8",
                          "0x1db5", "0x1db1", "0x1db4", "0x1db8", "0x1eb8", "0x1e07", "0x1e02",
                          "0x20b2", "0x20b0", "0x20f1", "0x2330", "0x2331", "0x2335", "0x2901"}) {
    SCOPED_TRACE(pci);
    EXPECT_EQ(models::catalog_device(gpu_of_pci_device(pci)).name, gpu_of_pci_device(pci));
  }
  EXPECT_EQ(gpu_of_product("NVIDIA H100 80GB HBM3"), "h100");
  EXPECT_EQ(gpu_of_product("Tesla V100-SXM2-16GB"), "v100");
  EXPECT_EQ(gpu_of_product("NVIDIA GeForce RTX 2080 Ti"), "rtx-2080-ti");
  EXPECT_EQ(gpu_of_product("NVIDIA H20-3e"), "");
}

// Whatever is cut out of a file, or put into it, is a line or a description.
RC_GTEST_PROP(MachineProperty, SurvivesDamage, ()) {
  const std::string file = *rc::gen::element<std::string>(
      "nvidia_topo/525-a100-nic-legend.txt", "nccl_topology/2.21-dgx-a100.xml",
      "nccl_log/2.21-h100-one-node-of-four.log", "nccl_log/2.4-infiniband-no-gpudirect.log");
  std::string text = golden_import(file);
  const ImportFormat format = guessed_format(text, file);
  for (int i = 0; i < 3; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    const auto length = *rc::gen::inRange<std::size_t>(0, 200);
    const std::string put = *rc::gen::element<std::string>("", "\t", "NV99", "-1", "rank 7", "<",
                                                           "[", "1e300", "99999999", "GPU0");
    text.replace(at, length, put);
  }
  const std::string error = test::error_of([&] {
    const Imported imported = import_text(format, text, "file", nullptr);
    return cluster_description(*imported.machine, {.file = "file", .name = "lab", .tool = "tool"});
  });
  RC_ASSERT(error.find('\n') == std::string::npos);
}

}  // namespace
}  // namespace paceline::calibration
