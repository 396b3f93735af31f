#include "models/cluster/simgrid_xml.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/error_of.h"

namespace paceline::models {
namespace {

Platform parsed(const std::string& body) {
  return parse_simgrid_xml("<platform version=\"4.1\">\n" + body + "\n</platform>\n", "p.xml");
}
std::string error_of(const std::string& body) {
  return test::error_of([&] { return parsed(body); });
}
// A full zone with hosts a and b. The parts begin in line 3 of the file, after two blanks.
std::string zone(const std::string& parts) {
  return "<zone id=\"z\" routing=\"Full\"><host id=\"a\" speed=\"1Gf\"/><host id=\"b\" "
         "speed=\"1Gf\"/>\n  " +
         parts + "</zone>";
}
std::string zone_error(const std::string& parts) {
  return error_of(zone(parts));
}
std::string cluster(const std::string& radical, const std::string& more = "") {
  return "<cluster id=\"c\" prefix=\"n\" suffix=\".x\" radical=\"" + radical +
         "\" speed=\"1Gf\" bw=\"125MBps\" lat=\"50us\" " + more + "/>";
}

std::vector<std::string> route(const Platform& platform, int from, int to) {
  std::vector<std::string> names;
  for (const int link : platform.route(from, to))
    names.push_back(platform.links[static_cast<std::size_t>(link)].name);
  return names;
}
using Names = std::vector<std::string>;

TEST(SimGridXml, ReadsAFullZone) {
  const Platform platform = parse_simgrid_xml(
      "<?xml version='1.0'?>\n"
      "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
      "<platform version=\"4.1\">\n"
      "  <!-- three hosts -->\n"
      "  <zone id=\"lab\" routing=\"Full\">\n"
      "    <host id=\"a\" speed=\"1Gf\" core=\"4\"><prop id=\"x\" value=\"y\"/></host>\n"
      "    <host id=\"b\" speed=\"98.095Mf\"/>\n"
      "    <host id=\"c\" speed=\"1Gf\"/>\n"
      "    <link id=\"ab\" bandwidth=\"10Gbps\" latency=\"2us\"/>\n"
      "    <link id=\"s\" bandwidth=\"1GiBps\" latency=\"1ms\" sharing_policy=\"SPLITDUPLEX\"/>\n"
      "    <link id=\"fat\" bandwidth=\"2e9Bps\" sharing_policy=\"FATPIPE\"/>\n"
      "    <route src=\"a\" dst=\"b\"><link_ctn id=\"ab\"/></route>\n"
      "    <route src=\"a\" dst=\"c\"><link_ctn id=\"ab\"/><link_ctn id=\"s\" "
      "direction=\"UP\"/></route>\n"
      "    <route src=\"b\" dst=\"c\" symmetrical=\"NO\"><link_ctn id=\"fat\"/></route>\n"
      "    <route src=\"c\" dst=\"b\" symmetrical=\"no\"><link_ctn id=\"s\" "
      "direction=\"DOWN\"/></route>\n"
      "  </zone>\n"
      "</platform>\n",
      "p.xml");
  EXPECT_EQ(platform.name, "lab");
  EXPECT_EQ(platform.hosts, (Names{"a", "b", "c"}));
  ASSERT_EQ(platform.links.size(), 4u);
  EXPECT_DOUBLE_EQ(platform.links[0].bandwidth.value(), 1.25e9);
  EXPECT_DOUBLE_EQ(platform.links[0].latency.value(), 2e-6);
  EXPECT_DOUBLE_EQ(platform.links[1].bandwidth.value(), 1024.0 * 1024 * 1024);
  EXPECT_TRUE(platform.links[2].is_shared);
  EXPECT_FALSE(platform.links[3].is_shared);
  EXPECT_EQ(route(platform, 0, 1), (Names{"ab"}));
  EXPECT_EQ(route(platform, 1, 0), (Names{"ab"}));
  EXPECT_EQ(route(platform, 0, 2), (Names{"ab", "s_UP"}));
  EXPECT_EQ(route(platform, 2, 0), (Names{"s_DOWN", "ab"})) << "backward, other directions";
  EXPECT_EQ(route(platform, 1, 2), (Names{"fat"}));
  EXPECT_EQ(route(platform, 2, 1), (Names{"s_DOWN"}));
}

TEST(SimGridXml, ReadsFlatClusters) {
  const Platform crossbar = parsed(cluster("0-2,7"));
  EXPECT_EQ(crossbar.hosts, (Names{"n0.x", "n1.x", "n2.x", "n7.x"}));
  EXPECT_EQ(route(crossbar, 0, 3), (Names{"c_link_0_UP", "c_link_7_DOWN"}));
  const Platform backbone =
      parsed("<zone id=\"all\" routing=\"Floyd\">" +
             cluster("5",
                     "sharing_policy=\"SHARED\" bb_bw=\"1GBps\" bb_lat=\"1us\" "
                     "bb_sharing_policy=\"FATPIPE\" loopback_bw=\"1GBps\" loopback_lat=\"0\"") +
             "</zone>");
  EXPECT_EQ(backbone.name, "c");
  ASSERT_EQ(backbone.links.size(), 2u);
  EXPECT_FALSE(backbone.links[1].is_shared);
  const Platform shared = parsed(cluster("1-2", "sharing_policy=\"SHARED\" bb_bw=\"1GBps\""));
  EXPECT_EQ(route(shared, 0, 1), (Names{"c_link_1", "c_backbone", "c_link_2"}));
  EXPECT_EQ(route(shared, 1, 0), (Names{"c_link_2", "c_backbone", "c_link_1"}));
}

TEST(SimGridXml, FaultsOfTheFile) {
  const auto whole = [](const std::string& text) {
    return test::error_of([&] { return parse_simgrid_xml(text, "p.xml"); });
  };
  EXPECT_EQ(whole(""), "p.xml:1:1: this is not XML: no document element found");
  EXPECT_EQ(whole("<platform version=\"4.1\">\n<zone></platform>"),
            "p.xml:2:9: this is not XML: start-end tags mismatch");
  EXPECT_EQ(whole(std::string("<platform\0/>", 12)), "p.xml:1:10: this is not XML: a zero byte");
  EXPECT_EQ(whole("<topology/>"),
            "p.xml:1:1: the root is <topology>; write <platform version=\"4.1\">");
  EXPECT_EQ(whole("<platform version=\"3\"/>"),
            "p.xml:1:1: version '3' of the format; write 4.1; simgrid_update_xml converts older "
            "files");
  EXPECT_EQ(whole("<platform version=\"4.1\"/>"),
            "p.xml:1:1: <platform> is empty; add a <zone> or a <cluster>");
  EXPECT_EQ(error_of("<config id=\"General\"/>"),
            "p.xml:1:1: <platform> is empty; add a <zone> or a <cluster>");
  EXPECT_EQ(
      error_of("<config><prop id=\"network/latency-factor\" value=\"2\"/></config>\n" +
               cluster("0")),
      "p.xml:2:9: the setting 'network/latency-factor' changes what links carry; remove it, and "
      "write the bandwidths and latencies that messages get");
  EXPECT_EQ(
      error_of(
          "<zone id=\"z\" routing=\"Full\">\n<host id=\"a\" speed=\"1f\" state=\"OFF\"/></zone>"),
      "p.xml:3:1: a <host> that is not all there; leave it out: platforms are constant here");
  EXPECT_EQ(error_of(cluster("0") + "\n" + cluster("1")),
            "p.xml:3:1: more than one part in <platform>; nested zones are not supported: write "
            "one zone of routing Full");
}

TEST(SimGridXml, FaultsOfZones) {
  EXPECT_EQ(error_of("<zone id=\"z\" routing=\"Dijkstra\"/>"),
            "p.xml:2:1: routing 'Dijkstra' is not supported; write routing=\"Full\" with a <route> "
            "between every two hosts");
  EXPECT_EQ(error_of("<zone id=\"z\" routing=\"Full\"/>"),
            "p.xml:2:1: the zone has no hosts; add <host> elements");
  EXPECT_EQ(zone_error("<router id=\"r\"/>"),
            "p.xml:3:3: <router> in <zone> is not supported; write one zone of routing Full with "
            "<host>, <link> and <route>, or one flat <cluster>");
  EXPECT_EQ(zone_error("words"), "p.xml:2:80: text in <zone>; remove it");
  EXPECT_EQ(zone_error("<host id=\"a\" speed=\"1Gf\"/>"),
            "p.xml:3:3: host 'a' stands twice; rename one of them");
  EXPECT_EQ(zone_error("<host id=\"d\" sped=\"1Gf\"/>"),
            "p.xml:3:3: unknown attribute of <host> 'sped'; did you mean 'speed'?");
  EXPECT_EQ(zone_error("<host id=\"\" speed=\"1Gf\"/>"),
            "p.xml:3:3: '' is no name; choose 1 to 200 printable characters");
  EXPECT_EQ(zone_error("<link id=\"l\" bandwidth=\"1GBps\" state_file=\"x\"/>"),
            "p.xml:3:3: state_file makes <link> change with time; leave it out: platforms are "
            "constant here");
  EXPECT_EQ(zone_error(""),
            "p.xml:2:1: no route from 'a' to 'b'; add a <route> between every two hosts");
}

TEST(SimGridXml, FaultsOfQuantities) {
  const std::string units =
      " is no number with a unit; write Bps, kBps, ..., TBps, KiBps, ..., TiBps, or bps, ..., "
      "Tbps, as in 12.5GBps";
  const auto bandwidth = [](const std::string& text) {
    return zone_error("<link id=\"l\" bandwidth=\"" + text + "\"/>");
  };
  for (const char* text : {"10", "10 GBps", "GBps", "10GBPS", "10Gbit/s", "1e400GBps", "0x10GBps"})
    EXPECT_EQ(bandwidth(text), "p.xml:3:3: bandwidth: '" + std::string(text) + "'" + units);
  for (const char* text : {"0", "-1GBps", "infGBps", "nanBps", "1e300GBps"})
    EXPECT_EQ(bandwidth(text), "p.xml:3:3: bandwidth: '" + std::string(text) +
                                   "' is out of range; write 1 B/s to 1000 TB/s");
  EXPECT_EQ(zone_error("<link id=\"l\" bandwidth=\"1GBps\" latency=\"1fs\"/>"),
            "p.xml:3:3: latency: '1fs' is no number with a unit; write s, ms, us, ns, ps, m, h, d "
            "or w, as in 1.5us");
  EXPECT_EQ(zone_error("<link id=\"l\" bandwidth=\"1GBps\" sharing_policy=\"WIFI\"/>"),
            "p.xml:3:3: unknown sharing_policy 'WIFI'; known: SHARED, FATPIPE, SPLITDUPLEX");
}

TEST(SimGridXml, FaultsOfRoutes) {
  const std::string links =
      "<link id=\"l\" bandwidth=\"1GBps\"/><link id=\"s\" bandwidth=\"1GBps\" "
      "sharing_policy=\"SPLITDUPLEX\"/>\n";
  const auto fault = [&](const std::string& routes) { return zone_error(links + routes); };
  const std::string good = "<route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/></route>\n";
  EXPECT_EQ(fault(good), "no error");
  EXPECT_EQ(fault(good + "<route src=\"b\" dst=\"a\"><link_ctn id=\"l\"/></route>"),
            "p.xml:5:1: a second route from 'b' to 'a'; routes are symmetrical unless they say NO; "
            "keep one of them");
  EXPECT_EQ(fault("<route src=\"a\" dst=\"x\"><link_ctn id=\"l\"/></route>"),
            "p.xml:4:1: no host 'x' stands in the zone; name a <host> of this zone");
  EXPECT_EQ(fault("<route src=\"a\" dst=\"b\"/>"),
            "p.xml:4:1: the route has no links; add <link_ctn id=\"...\"/> elements");
  EXPECT_EQ(fault("<route src=\"a\" dst=\"b\"><link_ctn id=\"x\"/></route>"),
            "p.xml:4:24: no link 'x' stands in the zone; name a <link> of this zone");
  EXPECT_EQ(fault("<route src=\"a\" dst=\"b\"><link_ctn id=\"s\"/></route>"),
            "p.xml:4:24: link 's' is SPLITDUPLEX and no direction says which; add "
            "direction=\"UP\" or \"DOWN\"");
  EXPECT_EQ(fault("<route src=\"a\" dst=\"b\"><link_ctn id=\"l\" direction=\"UP\"/></route>"),
            "p.xml:4:24: link 'l' has no directions; leave out the direction, or make the link "
            "SPLITDUPLEX");
  EXPECT_EQ(fault("<route src=\"a\" dst=\"b\"><link_ctn id=\"l\"/><link_ctn id=\"l\"/></route>"),
            "p.xml:4:42: the route passes a link twice; keep one of them");
  EXPECT_EQ(fault("<route src=\"a\" dst=\"b\" symmetrical=\"maybe\"/>"),
            "p.xml:4:1: symmetrical: 'maybe' is neither; write YES or NO");
  EXPECT_EQ(zone_error("<link id=\"l_UP\" bandwidth=\"1GBps\"/><link id=\"l\" bandwidth=\"1GBps\" "
                       "sharing_policy=\"SPLITDUPLEX\"/>"),
            "p.xml:3:38: link 'l_UP' stands twice; rename one of them");
}

TEST(SimGridXml, FaultsOfClusters) {
  const auto radical = [](const std::string& text) {
    const std::string error = error_of(cluster(text));
    return error.substr(0, error.find(';'));
  };
  EXPECT_EQ(radical("0-4000000000"),
            "p.xml:2:1: radical '0-4000000000': '4000000000' is not a whole number from 0 to "
            "2147483647");
  EXPECT_EQ(radical("0-2000000000"), "p.xml:2:1: radical '0-2000000000': more than 2048 hosts");
  EXPECT_EQ(radical("0-1500,2000-3000"),
            "p.xml:2:1: radical '0-1500,2000-3000': more than 2048 hosts");
  EXPECT_EQ(radical("3-1"), "p.xml:2:1: radical '3-1': a range that ends before it begins");
  EXPECT_EQ(radical("0-1-2"),
            "p.xml:2:1: radical '0-1-2': '1-2' is not a whole number from 0 to 2147483647");
  EXPECT_EQ(radical("0,0"), "p.xml:2:1: host 'n0.x' stands twice");
  EXPECT_EQ(error_of(cluster("0-3", "topology=\"TORUS\" topo_parameters=\"2,2\"")),
            "p.xml:2:1: topology 'TORUS' is not supported; write FLAT, or describe it as a fabric "
            "of a cluster file (docs/formats.md)");
  EXPECT_EQ(error_of(cluster("0-3", "bb_lat=\"1us\"")),
            "p.xml:2:1: a backbone with a latency and no bandwidth; add bb_bw=\"...\"");
  EXPECT_EQ(error_of(cluster("0-3", "limiter_link=\"1GBps\"")),
            "p.xml:2:1: limiter_link is not supported; leave it out");
  EXPECT_EQ(error_of("<cluster id=\"c\" prefix=\"n&#1;\" suffix=\"\" radical=\"0\" speed=\"1Gf\" "
                     "bw=\"1GBps\" lat=\"0\"/>"),
            "p.xml:2:1: 'n?0' is no name; choose 1 to 200 printable characters");
  EXPECT_EQ(parsed(cluster("0-2047")).hosts.size(), 2048u);
}

TEST(SimGridXml, NamesAreEscaped) {
  Platform platform{.name = "a<b&\"c\"",
                    .hosts = {"x&1", "y\"2"},
                    .links = {{"<l>", BytesPerSecond{0.1 + 0.2 + 1}, Seconds{1e-7 / 3}, false}},
                    .first_of_route = {0, 0, 1, 2, 2},
                    .route_links = {0, 0}};
  const Platform read = parse_simgrid_xml(simgrid_xml(platform), "p.xml");
  EXPECT_EQ(read.name, platform.name);
  EXPECT_EQ(read.hosts, platform.hosts);
  EXPECT_EQ(read.links[0].name, "<l>");
  EXPECT_EQ(read.links[0].bandwidth, platform.links[0].bandwidth);
  EXPECT_EQ(read.links[0].latency, platform.links[0].latency);
  EXPECT_FALSE(read.links[0].is_shared);
}

}  // namespace
}  // namespace paceline::models
