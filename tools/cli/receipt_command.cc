// sluice receipt: made for whoever wants to know, checked by whoever was given one.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <memory>
#include <ostream>
#include <sstream>

#include "control/identity/hex.h"
#include "tools/cli/app.h"
#include "tools/cli/connect.h"
#include "tools/cli/format.h"
#include "tools/cli/node_files.h"
#include "tools/cli/receipt.h"
#include "tools/cli/receipt_list.h"

namespace sluice::cli {
namespace {

struct ReceiptFlags {
  std::string what;  // a session, or with --check a file
  bool check = false;
  std::string signer;
};

Result<std::string> contents(std::istream& in, const std::string& name) {
  std::string text(kReceiptBytesMax + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  if (in.bad() || text.size() > kReceiptBytesMax)
    return Error{ErrorCode::kUsage, printable(name) + ": cannot be read, or is longer than a receipt can be"};
  return text;
}

Result<std::string> text_at(const Environment& environment, const std::string& name) {
  if (is_standard(name)) return contents(environment.in, name);
  std::ifstream file(environment.working_directory / name, std::ios::binary);
  if (!file) return Error{ErrorCode::kUsage, printable(name) + ": cannot be opened; check the name"};
  return contents(file, name);
}

// A fingerprint, or a certificate's file.
Result<std::string> fingerprint(const Environment& environment, const std::string& given) {
  if (identity::is_fingerprint(given)) return given;
  const Result<std::string> pem = read_certificate((environment.working_directory / given).string());
  if (!pem) return pem.error();
  return identity::fingerprint_of_pem(*pem);
}

std::string receipt_text(const api::Json& statement, const std::string& who, const std::string& signer) {
  const auto field = [&statement](const char* key) {
    const api::Json value = statement.value(key, api::Json());
    return printable(value.is_string() ? value.get<std::string>() : value.dump());
  };
  std::string text = fmt::format("good: signed by {} ({})\n", printable(who), signer);
  const char* const peer = statement.contains("peers") ? "peers" : "peer";  // several sources, or one
  for (const char* key : {"session", "direction", peer, "started", "bytes", "names", "crc", "protection"})
    text += fmt::format("{:<12} {}\n", key, field(key));
  const api::Json missing = statement.value("missing", api::Json());
  for (const api::Json& name : missing.is_array() ? missing : api::Json::array())
    text += fmt::format("{:<12} {}\n", "missing", printable(name.dump()));
  const api::Json files = statement.value("files", api::Json());
  for (const api::Json& file : files.is_array() ? files : api::Json::array())
    text += fmt::format("{:<12} {}\n", "file", printable(file.dump()));
  return text;
}

Result<int> check_it(const Context& context, const ReceiptFlags& flags) {
  const Result<std::string> text = text_at(context.environment, flags.what);
  if (!text) return text.error();
  const Result<CheckedReceipt> receipt = check_receipt(*text);
  if (!receipt) return receipt.error();
  std::string who;
  if (flags.signer.empty()) {
    who = signer_known_as(context, receipt->signer);
    if (who.empty())
      return Error{ErrorCode::kPeerUntrusted,
                   "the signature is good, and is of a key that nobody here knows: " + receipt->signer +
                       "; compare it with what its owner tells you, then give it with --signer"};
  } else {
    const Result<std::string> wanted = fingerprint(context.environment, flags.signer);
    if (!wanted) return wanted.error();
    if (*wanted != receipt->signer)
      return Error{ErrorCode::kPeerUntrusted,
                   "the receipt was signed by " + receipt->signer + ", and not by --signer " + *wanted};
    who = "--signer";
  }
  context.print({{"schema", "sluice.receipt_check.v1"},
                 {"signer", receipt->signer},
                 {"known_as", who},
                 {"statement", receipt->statement}},
                receipt_text(receipt->statement, who, receipt->signer));
  return receipt->statement.contains("missing") ? static_cast<int>(ErrorCode::kPartial) : 0;
}

Result<int> make_it(const Context& context, const ReceiptFlags& flags) {
  if (!flags.signer.empty()) return Error{ErrorCode::kUsage, "--signer: only with --check"};
  auto client = connect_to_node(context.node_directory());
  if (!client) return client.error();
  const auto session = (*client)->show(flags.what);
  if (!session) return session.error();
  const Result<api::Json> receipt = make_receipt(context.node_directory(), *session);
  if (!receipt) return receipt.error();
  context.environment.out << api::to_line(*receipt);
  return 0;
}

}  // namespace

void add_receipt_command(CLI::App& app, Context& context) {
  const auto flags = std::make_shared<ReceiptFlags>();
  CLI::App* command =
      app.add_subcommand("receipt", "Print a signed statement of a session that has succeeded, or check one");
  command
      ->add_option("what", flags->what,
                   "Session; with --check the file of a receipt, - for the standard input")
      ->required()
      ->type_name("ID|FILE");
  command->add_flag("--check", flags->check, "Check a receipt; needs no node");
  command->add_option("--signer", flags->signer, "With --check: who must have signed it")
      ->type_name("FINGERPRINT|CERTIFICATE");
  command->callback([&context, flags] {
    context.action = [&context, flags] {
      return flags->check ? check_it(context, *flags) : make_it(context, *flags);
    };
  });
}

}  // namespace sluice::cli
