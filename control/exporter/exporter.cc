// SPDX-License-Identifier: Apache-2.0
#include "control/exporter/exporter.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "control/exporter/host_figures.h"
#include "control/metrics/families.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::exporter {
namespace {

// Scrapers, and those that connect and say nothing: each has a thread for at most kRequestTimeoutMs.
constexpr const char* kThreads = "4";
constexpr const char* kRequestTimeoutMs = "5000";
constexpr std::chrono::milliseconds kCallEvery{10};

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
  return ip4 ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

// The library only says that it could not: the reason is found by trying.
int try_to_listen(const addrinfo& found) {
  const UniqueFd probe(::socket(found.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  if (!probe || ::setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(probe.get(), found.ai_addr, found.ai_addrlen) != 0 || ::listen(probe.get(), 1) != 0) {
    return errno;
  }
  return 0;
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

// What a scrape is answered with; called on the library's threads.
class Collector final : public prometheus::Collectable {
 public:
  Collector(asio::io_context& io, Snapshots::Look look, const std::vector<config::Export>& exports)
      : snapshots_(io, std::move(look), {}), spaces_(exports) {}

  void stop() { snapshots_.stop(); }

  std::vector<prometheus::MetricFamily> Collect() const override {
    const Snapshot snapshot = snapshots_.newest();
    const std::vector<metrics::ExportSpace> exports = spaces_.newest();
    const std::lock_guard lock(mutex_);
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
    return families;
  }

 private:
  mutable Snapshots snapshots_;
  mutable ExportSpaces spaces_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const metrics::NodeFigures> last_;
  mutable metrics::Labelled labelled_{metrics::kLabelledMax};
};

class HttpExporter final : public Exporter {
 public:
  HttpExporter(const ListenAddress& address, std::shared_ptr<Collector> collector)
      : address_(address), collector_(std::move(collector)) {
    exposer_.emplace(std::vector<std::string>{"listening_ports", address_.text, "num_threads", kThreads,
                                              "request_timeout_ms", kRequestTimeoutMs});
    exposer_->RegisterCollectable(collector_);
  }
  // The library looks every two seconds whether it is to stop, and after each caller: so it is called, until
  // it has noticed.
  ~HttpExporter() override {
    collector_->stop();
    std::atomic<bool> stopped{false};
    std::thread caller([&] {
      while (!stopped) {
        const UniqueFd call(::socket(address_.raw.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        (void)::connect(call.get(), reinterpret_cast<const sockaddr*>(&address_.raw), address_.raw_bytes);
        std::this_thread::sleep_for(kCallEvery);
      }
    });
    exposer_.reset();
    stopped = true;
    caller.join();
  }

  const std::string& address() const override { return address_.text; }
  void stop_waiting() override { collector_->stop(); }

 private:
  const ListenAddress address_;
  const std::shared_ptr<Collector> collector_;
  std::optional<prometheus::Exposer> exposer_;
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
  if (const int failed = try_to_listen(*found); failed != 0)
    return cannot_listen(listen, std::strerror(failed));
  ListenAddress address{.text = text_of(*found, where->port), .loopback = is_loopback(found->ai_addr)};
  std::memcpy(&address.raw, found->ai_addr, found->ai_addrlen);
  address.raw_bytes = found->ai_addrlen;
  return address;
}

Result<std::unique_ptr<Exporter>> start(asio::io_context& io, const config::Node& node,
                                        Snapshots::Look look) {
  const auto address = find_address(node.metrics_listen);
  if (!address) return address.error();
  std::unique_ptr<Exporter> exporter;
  try {
    exporter = std::make_unique<HttpExporter>(*address,
                                              std::make_shared<Collector>(io, std::move(look), node.exports));
  } catch (const std::exception& e) {
    return cannot_listen(node.metrics_listen, e.what());
  }
  spdlog::info("metrics at http://{}/metrics", address->text);
  if (!address->loopback) {
    spdlog::warn(
        "[control] metrics_listen = {}: whoever reaches that address reads the metrics of this node "
        "(names of peers, sizes and rates of sessions), without TLS and without a password; listen at "
        "127.0.0.1 behind a proxy that asks for one, or let only the monitoring system through the firewall",
        node.metrics_listen);
  }
  return exporter;
}

}  // namespace sluice::exporter
