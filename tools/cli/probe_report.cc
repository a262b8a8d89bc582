// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/probe_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <vector>

#include "dataplane/base/counted.h"
#include "tools/cli/format.h"

namespace sluice::cli {
namespace {

constexpr size_t kRunsKept = 16;      // of the damage of one datagram
constexpr size_t kFaultsShown = 100;  // as text; --json and the state have more
constexpr uint32_t kBarsMax = 16;

std::string hex_of(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

void note_bytes(const api::EchoFault& fault, ProbeState* state) {
  for (size_t i = 0; i < std::min(fault.sent().size(), fault.came().size()); ++i) {
    const auto sent = static_cast<uint8_t>(fault.sent()[i]);
    const auto came = static_cast<uint8_t>(fault.came()[i]);
    if (sent == came) continue;
    ++state->positions[fault.offset() + static_cast<uint32_t>(i)];
    state->bits_set += static_cast<uint64_t>(std::popcount(static_cast<uint8_t>(came & ~sent)));
    state->bits_cleared += static_cast<uint64_t>(std::popcount(static_cast<uint8_t>(sent & ~came)));
  }
}

std::string what_is(const ProbeState& state, uint64_t number) {
  return base::counted(number, state.kind == kPackets ? "datagram" : "transfer");
}

double bits_moved(const ProbeState& state) { return static_cast<double>(state.bytes_moved) * 8; }

double wrong_share(const ProbeState& state) { return share_at_most(state.wrong, state.came()); }

// One that is wrong has one wrong bit at least: so of the bits no bound is lower.
double wrong_bit_share(const ProbeState& state) {
  return wrong_share(state) / (static_cast<double>(state.bytes) * 8);
}

std::string fault_line(const ProbeState& state, const api::Json& fault) {
  std::string line = fmt::format("  {} {}: ", state.kind == kPackets ? "datagram" : "transfer",
                                 fault.value("number", uint64_t{0}));
  if (state.kind != kPackets)
    return line +
           fmt::format("{}; made {}, source {}, destination {}\n", printable(fault.value("problem", "")),
                       printable(fault.value("digest_made", "")), printable(fault.value("digest_source", "")),
                       printable(fault.value("digest_destination", "")));
  std::string runs;
  for (const api::Json& run : fault.value("runs", api::Json::array()))
    runs += fmt::format("{}at {} sent {} came {}", runs.empty() ? "" : "; ", run.value("offset", uint64_t{0}),
                        printable(run.value("sent", "")), printable(run.value("came", "")));
  return line + runs + "\n";
}

// Where in the payload the wrong bytes stood.
std::string positions_text(const ProbeState& state) {
  if (state.positions.empty()) return "";
  const uint32_t width =
      std::max<uint32_t>(8, static_cast<uint32_t>((state.bytes + kBarsMax - 1) / kBarsMax));
  std::map<uint32_t, uint64_t> bars;
  uint64_t highest = 0;
  for (const auto& [offset, count] : state.positions)
    highest = std::max(highest, bars[offset / width] += count);
  std::string out = "  wrong bytes by their place in the payload:\n";
  for (const auto& [bar, count] : bars)
    out += fmt::format("  {:>7}-{:<7} {:>8} {}\n", bar * width,
                       std::min<uint64_t>((bar + 1) * width, state.bytes) - 1, count,
                       std::string(std::max<uint64_t>(1, count * 40 / highest), '#'));
  return out;
}

std::string way_text(const ProbeState& state) {
  if (state.kind == kPackets)
    return fmt::format("  {} did not come back, {} came back once more; UDP checksum {}\n", state.lost,
                       base::counted(state.copies, "copy", "copies"),
                       state.udp_checksum ? "computed" : "zero");
  const std::string again = fmt::format("{} lost, {} sent again\n", state.lost, state.resent);
  if (state.protection == "crc")
    return fmt::format("  datagrams on the way: {} damaged, ", state.crc_errors) + again;
  return "  datagrams on the way, where damaged ones count as lost: " + again;
}

}  // namespace

std::string take_transfer(const std::string& made, const api::Session& session, int64_t unix_ns,
                          ProbeState* state) {
  ++state->done;
  state->bytes_moved += state->bytes;
  state->crc_errors += session.crc_errors();
  state->lost += session.lost();
  state->resent += session.retransmits();
  state->protection = session.protection();
  std::string source;
  std::string destination;
  if (session.files_size() == 1) {
    source = session.files(0).digest_source();
    destination = session.files(0).digest_destination();
  }
  std::string problem;
  if (session.state() != api::Session::SUCCEEDED) {
    problem = session.error().empty() ? "the digests differ" : session.error();
  } else if (source != made) {
    problem = "the source has read other bytes than were written into its file";
  } else if (destination != made) {
    problem = "the destination has received other bytes than were sent";
  }
  if (problem.empty()) return "";
  ++state->wrong;
  state->add_fault({{"number", state->done},
                    {"unix_ns", unix_ns},
                    {"session", session.id()},
                    {"problem", problem},
                    {"digest_made", made},
                    {"digest_source", source},
                    {"digest_destination", destination}});
  return problem;
}

uint64_t take_echoes(const api::Session& session, int64_t unix_ns, ProbeState* state) {
  const api::Echoes& echoes = session.echoes();
  const uint64_t before = state->done;
  state->done += echoes.sent();
  state->lost += echoes.sent() - std::min(echoes.sent(), echoes.came());
  state->wrong += std::min(echoes.wrong(), echoes.came());
  state->wrong_bytes += echoes.wrong_bytes();
  state->copies += echoes.copies();
  state->bytes_moved += 2 * state->bytes * echoes.came();  // there and back
  state->udp_checksum |= echoes.udp_checksum();
  std::map<uint32_t, api::Json> runs;
  for (const api::EchoFault& fault : echoes.faults()) {
    note_bytes(fault, state);
    api::Json& of_one = runs.emplace(fault.number(), api::Json::array()).first->second;
    if (of_one.size() < kRunsKept)
      of_one.push_back(
          {{"offset", fault.offset()}, {"sent", hex_of(fault.sent())}, {"came", hex_of(fault.came())}});
  }
  for (auto& [number, of_one] : runs)
    state->add_fault({{"number", before + number},
                      {"unix_ns", unix_ns},
                      {"session", session.id()},
                      {"runs", std::move(of_one)}});
  return echoes.wrong();
}

std::string probe_progress(const ProbeState& state, uint64_t asked, uint64_t under_way) {
  return fmt::format("{} of {}, {} wrong, {}", state.done + under_way, what_is(state, asked),
                     state.wrong == 0 ? "none" : std::to_string(state.wrong),
                     format_bytes(state.bytes_moved));
}

std::string probe_text(const ProbeState& state, uint64_t asked) {
  std::string out = fmt::format("{} of {} {} {}, {} wrong\n", state.done, what_is(state, asked),
                                state.kind == kPackets ? "reflected by" : "to", printable(state.peer),
                                state.wrong == 0 ? "none" : std::to_string(state.wrong));
  out += fmt::format("  {} each, {} in all, {:.4g} Tbit, in {}\n", format_bytes(state.bytes),
                     format_bytes(state.bytes_moved), bits_moved(state) * 1e-12,
                     format_duration(state.elapsed_s));
  out += way_text(state);
  if (state.tried_again > 0)
    out += fmt::format("  {} that came to no end of their own do not count\n",
                       base::counted(state.tried_again, "session"));
  if (state.came() > 0)
    out += fmt::format("  with 95 % confidence at most {:.3g} of the {}s are wrong, and {:.3g} of the bits\n",
                       wrong_share(state), state.kind == kPackets ? "datagram" : "transfer",
                       wrong_bit_share(state));
  if (state.wrong_bytes > 0)
    out += fmt::format("  {} wrong, of whose bits {} were set and {} cleared on the way\n",
                       base::counted(state.wrong_bytes, "byte"), state.bits_set, state.bits_cleared);
  for (size_t i = 0; i < std::min(state.faults.size(), kFaultsShown); ++i)
    out += fault_line(state, state.faults[i]);
  if (state.wrong > std::min(state.faults.size(), kFaultsShown))
    out += fmt::format("  and {} more\n", state.wrong - std::min(state.faults.size(), kFaultsShown));
  return out + positions_text(state);
}

api::Json probe_json(const ProbeState& state, uint64_t asked) {
  api::Json out{{"schema", "sluice.integrity.v1"},
                {"asked", asked},
                {"tbit_moved", bits_moved(state) * 1e-12},
                {"wrong_share_at_most", wrong_share(state)},
                {"wrong_bit_share_at_most", wrong_bit_share(state)}};
  put_found(state, &out);
  return out;
}

}  // namespace sluice::cli
