// The two directories that `--sync` compares, and the request of a transfer between them. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>

#include "control/client/client.h"
#include "dataplane/base/path.h"
#include "tools/cli/names_format.h"
#include "tools/cli/sync_plan.h"

namespace sluice::cli {

struct Sides {
  std::string peer;
  std::string own;  // the node in place of this one; empty: this one
  bool from_peer = false;
  std::string source;
  std::string destination;
  std::string name;  // under which the source arrives; empty: what is in it arrives

  explicit Sides(const api::TransferRequest& request) {
    if (const auto* const send = std::get_if<api::SendRequest>(&request)) {
      own = send->from();
      set(send->peer(), send->sources(0), send->destination());
    } else {
      const auto& get = std::get<api::GetRequest>(request);
      from_peer = true;
      set(get.peer(), get.sources(0), get.destination());
    }
  }
  // Of these names alone, or of all.
  api::TransferRequest request_of(const api::TransferRequest& all, const SyncPlan::List* names) const {
    api::TransferRequest request = all;
    std::visit(
        [&](auto& one) {
          one.mutable_options()->set_overwrite(true);
          one.mutable_options()->set_top(true);
          if (names == nullptr) return;
          one.mutable_options()->clear_rules();  // the comparison has judged by them
          if (names->empty()) {                  // the directory itself, and nothing in it
            api::Rule* const rule = one.mutable_options()->add_rules();
            rule->set_pattern("*");
          }
          for (const std::string& each : *names) one.mutable_options()->add_names(each);
          one.set_sources(0, path_beneath(source, ""));
          one.set_destination(path_beneath(destination, ""));
        },
        request);
    return request;
  }

 private:
  void set(const std::string& node, const std::string& from, const std::string& to) {
    peer = node;
    source = from;
    name = base::arriving_name(source);
    if (source.ends_with("/.")) source.pop_back();
    destination = name.empty() ? to : path_beneath(to, name);
  }
};

}  // namespace sluice::cli
