// SPDX-License-Identifier: Apache-2.0
#include "control/exporter/exporter.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "control/exporter/host_figures.h"
#include "control/exporter/http_server.h"
#include "control/metrics/families.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::exporter {
namespace {

constexpr int kBacklog = 128;

Error cannot_listen(const std::string& listen, const std::string& reason) {
  return {ErrorCode::kConfiguration,
          fmt::format("cannot serve metrics at {}: {}; change [control] metrics_listen in node.toml, or stop "
                      "what uses it",
                      listen, reason)};
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* ip4 = reinterpret_cast<const sockaddr_in*>(address);
    return ntohl(ip4->sin_addr.s_addr) >> 24 == 127;
  }
  const auto* ip6 = reinterpret_cast<const sockaddr_in6*>(address);
  if (IN6_IS_ADDR_V4MAPPED(&ip6->sin6_addr)) return ip6->sin6_addr.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&ip6->sin6_addr);
}

std::string text_of(const addrinfo& found, uint16_t port) {
  char host[INET6_ADDRSTRLEN] = {};
  const bool ip4 = found.ai_family == AF_INET;
  const void* raw = ip4 ? static_cast<const void*>(&reinterpret_cast<sockaddr_in*>(found.ai_addr)->sin_addr)
                        : &reinterpret_cast<sockaddr_in6*>(found.ai_addr)->sin6_addr;
  ::inet_ntop(found.ai_family, raw, host, sizeof host);
  if (ip4) return fmt::format("{}:{}", host, port);
  const uint32_t zone = reinterpret_cast<sockaddr_in6*>(found.ai_addr)->sin6_scope_id;
  return zone == 0 ? fmt::format("[{}]:{}", host, port) : fmt::format("[{}%{}]:{}", host, zone, port);
}

// A socket that listens there; invalid: errno says why not.
UniqueFd listen_at(const sockaddr* address, socklen_t bytes) {
  UniqueFd listening(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  if (listening && ::setsockopt(listening.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
      ::bind(listening.get(), address, bytes) == 0 && ::listen(listening.get(), kBacklog) == 0)
    return listening;
  return {};
}

prometheus::MetricFamily converted(const metrics::Family& family) {
  const metrics::MetricInfo& info = *family.info;
  const bool counter = info.type == metrics::Type::kCounter;
  prometheus::MetricFamily out{
      .name = info.name,
      .help = info.help,
      .type = counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge,
      .metric = {}};
  for (const metrics::Sample& sample : family.samples) {
    prometheus::ClientMetric& metric = out.metric.emplace_back();
    for (size_t i = 0; i < sample.labels.size(); ++i)
      metric.label.push_back({.name = info.labels[i], .value = sample.labels[i]});
    (counter ? metric.counter.value : metric.gauge.value) = sample.value;
  }
  return out;
}

// What a scrape is answered with; called on the server's thread.
class Collector {
 public:
  Collector(asio::io_context& io, Snapshots::Look look, const std::vector<config::Export>& exports)
      : snapshots_(io, std::move(look), {}), spaces_(exports) {}

  void stop() { snapshots_.stop(); }

  std::string text() {
    const Snapshot snapshot = snapshots_.newest();
    const std::vector<metrics::ExportSpace> exports = spaces_.newest();
    if (snapshot.figures && snapshot.figures != last_) {
      last_ = snapshot.figures;
      labelled_.update(last_->sessions);
    }
    const std::chrono::duration<double> age = std::chrono::steady_clock::now() - snapshot.taken;
    std::vector<prometheus::MetricFamily> families;
    for (const metrics::Family& family : metrics::families_of({.node = last_.get(),
                                         .labelled = &labelled_,
                                         .node_age_s = age.count(),
                                         .exports = exports,
                                         .process = process_figures()})) {
      families.push_back(converted(family));
    }
    return prometheus::TextSerializer().Serialize(families);
  }

 private:
  Snapshots snapshots_;
  ExportSpaces spaces_;
  std::shared_ptr<const metrics::NodeFigures> last_;
  metrics::Labelled labelled_{metrics::kLabelledMax};
};

class HttpExporter final : public Exporter {
 public:
  HttpExporter(std::string address, std::shared_ptr<Collector> collector, std::unique_ptr<HttpServer> server)
      : address_(std::move(address)), collector_(std::move(collector)), server_(std::move(server)) {}
  ~HttpExporter() override { collector_->stop(); }

  const std::string& address() const override { return address_; }
  void stop_waiting() override { collector_->stop(); }

 private:
  const std::string address_;
  const std::shared_ptr<Collector> collector_;
  const std::unique_ptr<HttpServer> server_;
};

}  // namespace

Result<ListenAddress> find_address(const std::string& listen) {
  const auto where = config::parse_host_port(listen);
  if (!where) return where.error();
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(where->port);
  if (const int failed = ::getaddrinfo(where->host.c_str(), port.c_str(), &hints, &found); failed != 0)
    return cannot_listen(listen, ::gai_strerror(failed));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  UniqueFd listening = listen_at(found->ai_addr, found->ai_addrlen);
  if (!listening) return cannot_listen(listen, std::strerror(errno));
  return ListenAddress{.text = text_of(*found, where->port),
                       .loopback = is_loopback(found->ai_addr),
                       .listening = std::move(listening)};
}

Result<std::unique_ptr<Exporter>> start(asio::io_context& io, const config::Node& node,
                                        Snapshots::Look look) {
  auto address = find_address(node.metrics_listen);
  if (!address) return address.error();
  auto collector = std::make_shared<Collector>(io, std::move(look), node.exports);
  auto server =
      HttpServer::start(std::move(address->listening), [collector] { return collector->text(); }, {});
  if (!server) return server.error();
  auto exporter = std::make_unique<HttpExporter>(address->text, std::move(collector), std::move(*server));
  spdlog::info("metrics at http://{}/metrics", address->text);
  if (!address->loopback) {
    spdlog::warn(
        "[control] metrics_listen = {}: whoever reaches that address reads the metrics of this node "
        "(names of peers, sizes and rates of sessions), without TLS and without a password; listen at "
        "127.0.0.1 behind a proxy that asks for one, or let only the monitoring system through the firewall",
        node.metrics_listen);
  }
  return Result<std::unique_ptr<Exporter>>(std::move(exporter));
}

}  // namespace sluice::exporter
