// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/daemon/daemon.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <system_error>
#include <utility>

#include "dataplane/base/arguments/arguments.h"
#include "dataplane/base/daemon/journal_sink.h"
#include "dataplane/base/text.h"
#include "dataplane/base/version.h"

namespace sluice::daemon {
namespace {

// Names of files and the words of peers stand in the log: whatever is in them, a message is one line, and
// steers no terminal.
class PrintableMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& out) override {
    const std::string text = base::printable({message.payload.data(), message.payload.size()});
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<PrintableMessage>();
  }
};

}  // namespace

void add_options(CLI::App& app, const Program& program, Options& options) {
  app.add_option("--node", options.node, "Directory of the node")
      ->type_name("DIR")
      ->envname("SLUICE_NODE")
      ->default_str(options.node.string());
  app.add_option("--log-level", options.log_level, "Instead of log_level in node.toml")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "critical", "off"}));
  app.set_version_flag("--version", program.name + " " SLUICE_VERSION, "Print the version");
}

Result<std::optional<Options>> parse(const Program& program, int argc, const char* const* argv) {
  Options options;
  CLI::App app(program.about, program.name);
  add_options(app, program, options);
  const auto parsed = arguments::parse(app, {argv + std::min(argc, 1), argv + argc}, std::cout);
  if (!parsed) return parsed.error();
  if (!*parsed) return std::optional<Options>();
  std::error_code ignored;
  options.node = std::filesystem::absolute(options.node, ignored);
  if (!options.node.has_filename()) options.node = options.node.parent_path();
  return std::optional(std::move(options));
}

void start_log(const std::string& program, std::span<const char* const> components, const LevelOf& level_of) {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  spdlog::sink_ptr sink;
  if (is_journal_stream(stream != nullptr ? stream : "", STDERR_FILENO)) {
    sink = std::make_shared<JournalSink>(program);
  } else {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<PrintableMessage>('*').set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %*");
    sink->set_formatter(std::move(formatter));
  }
  spdlog::drop_all();
  for (const char* const component : components) {
    auto logger = std::make_shared<spdlog::logger>(component, sink);
    logger->set_level(spdlog::level::from_str(level_of(component)));
    logger->flush_on(spdlog::level::trace);
    spdlog::register_logger(logger);
    if (component == components.front()) spdlog::set_default_logger(std::move(logger));
  }
}

}  // namespace sluice::daemon
