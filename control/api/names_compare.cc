// The API's comparison of a directory of this node, or of another one, with one of a peer.
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <memory>

#include "control/api/names_service.h"
#include "control/names/compare.h"
#include "control/selection/filter.h"
#include "dataplane/base/text.h"

namespace sluice::service {
namespace {

using Side = names::Comparison::Side;

constexpr std::chrono::milliseconds kTellEvery{500};

std::string shown(const std::string& path) { return base::printable(path, 1000); }

void put(const names::Difference& difference, api::NameDifference* to) {
  to->set_kind(static_cast<api::NameDifference::Kind>(static_cast<int>(difference.kind) + 1));
  to->set_path(difference.path);
  to->set_type(static_cast<api::NameEntry::Type>(difference.type));
  to->set_destination_type(static_cast<api::NameEntry::Type>(difference.destination_type));
  to->set_size(difference.size_bytes);
  to->set_error_code(difference.error_code);
  to->set_error(difference.error);
}

void put(const names::ComparisonTotals& totals, bool destination_found, api::CompareTotals* to) {
  to->set_source(totals.source);
  to->set_destination(totals.destination);
  to->set_same(totals.same);
  to->set_missing(totals.missing);
  to->set_different(totals.different);
  to->set_extra(totals.extra);
  to->set_kept(totals.kept);
  to->set_left_out(totals.left_out);
  to->set_source_problems(totals.source_problems);
  to->set_destination_problems(totals.destination_problems);
  to->set_destination_found(destination_found);
}

}  // namespace

class NamesService::Comparing {
 public:
  Comparing(NamesService& service, grpc::ServerContext* context, const api::CompareRequest& request,
            const selection::Filter& filter, grpc::ServerWriter<api::CompareReply>* writer)
      : service_(service),
        context_(context),
        request_(request),
        writer_(writer),
        comparison_(
            [&filter, top = request.top()](const std::string& path, bool is_directory) {
              return filter.takes(top + path, is_directory);
            },
            request.digests()) {}
  ~Comparing() {
    for (QuestionPtr* const question : {&question_, &own_question_})
      if (*question) service_.end_question(question);
  }

  grpc::Status compare() {
    if (const grpc::Status status = begin(); !status.ok()) return status;
    while (const std::optional<Side> side = comparison_.wants()) {
      if (const grpc::Status status = step(*side); !status.ok()) return status;
      if (const grpc::Status status = tell(); !status.ok()) return status;
    }
    api::CompareReply last;
    put(comparison_.totals(), destination_found_, last.mutable_totals());
    return write(last);
  }

 private:
  bool is_own(Side side) const { return (side == Side::kSource) != request_.from_peer(); }
  Side own() const { return request_.from_peer() ? Side::kDestination : Side::kSource; }
  grpc::Status fail(const Error& error) const { return to_grpc(context_, error); }

  bool between_others() const { return !request_.own_node().empty(); }
  const std::string& node_of(Side side) const { return is_own(side) ? request_.own_node() : request_.peer(); }

  grpc::Status begin() {
    if (!between_others()) {
      if (const grpc::Status status = begin_own(); !status.ok()) return status;
    } else if (const grpc::Status status = ask(request_.own_node(), request_.own_path(), &own_question_);
               !status.ok()) {
      return status;
    }
    return ask(request_.peer(), request_.peer_path(), &question_);
  }

  grpc::Status ask(const std::string& node, const std::string& path, QuestionPtr* question) {
    return service_.begin_question(
        context_, node, names::List{.path = path, .recursive = true, .digests = request_.digests()},
        question);
  }

  grpc::Status begin_own() {
    const names::List own_list{.path = request_.own_path(), .recursive = true, .digests = request_.digests()};
    Result<std::unique_ptr<OwnNames>> listed =
        service_.names_.list_own(own_list, own() == Side::kSource ? request_.peer() : "",
                                 [this] { return !service_.wanted(context_).ok(); });
    if (listed) {
      own_names_ = std::move(*listed);
    } else if (!is_nothing(own(), listed.error())) {
      return fail(listed.error());
    } else {
      nothing();
    }
    return grpc::Status::OK;
  }

  // Is what cannot be listed a destination that is not there yet? If it is there and cannot be read, what
  // is sent will find out.
  bool is_nothing(Side side, const Error& error) const {
    return side == Side::kDestination && error.code == ErrorCode::kSourceUnreadable && !anything_;
  }
  void nothing() {
    destination_found_ = false;
    comparison_.end(Side::kDestination);
  }

  grpc::Status step(Side side) {
    if (!is_own(side)) return step_node(side, question_);
    return between_others() ? step_node(side, own_question_) : step_own();
  }

  grpc::Status step_own() {
    if (const grpc::Status status = service_.wanted(context_); !status.ok()) return status;
    Result<names::Page> page = own_names_->next();
    if (!page) return fail(page.error());
    if (page->entries.empty()) {
      comparison_.end(own());
      return grpc::Status::OK;
    }
    return take(own(), std::move(*page));
  }

  grpc::Status step_node(Side side, QuestionPtr& question) {
    Result<NamesQuestion::Answer> answer = NamesQuestion::Answer{};
    if (const grpc::Status status = service_.next_answer(context_, question, &answer); !status.ok())
      return status;
    if (!answer && is_nothing(side, answer.error())) {
      nothing();
    } else if (!answer) {
      return fail(answer.error());
    } else if (answer->page) {
      return take(side, std::move(*answer->page));
    } else {
      comparison_.end(side);
    }
    return grpc::Status::OK;
  }

  grpc::Status take(Side side, names::Page page) {
    if (side == Side::kDestination) anything_ = true;
    for (const names::Entry& entry : page.entries) {
      if (request_.digests() && entry.type == names::Type::kFile && entry.error_code == 0 && !entry.digest)
        return fail(
            {ErrorCode::kIncompatible, shown(entry.path) + ": " + node_of(side) +
                                           " tells no digests, it is older than that: leave out --checksum"});
      if (!entry.path.empty()) continue;
      if (entry.error_code != 0) return fail({static_cast<ErrorCode>(entry.error_code), entry.error});
      const std::string& path = is_own(side) ? request_.own_path() : request_.peer_path();
      const std::string where = node_of(side).empty() ? "" : " at " + node_of(side);
      return fail({side == Side::kSource ? ErrorCode::kUsage : ErrorCode::kDestinationExists,
                   shown(path) + where + ": is no directory; only directories are compared"});
    }
    comparison_.put(side, std::move(page));
    return grpc::Status::OK;
  }

  grpc::Status tell() {
    api::CompareReply part;
    for (const names::Difference& each : comparison_.take()) {
      put(each, part.add_differences());
      if (part.differences_size() < static_cast<int>(names::kEntriesPerPage)) continue;
      if (const grpc::Status status = write(part); !status.ok()) return status;
      part.Clear();
    }
    // Also of what is the same: whoever waits may not want it any more.
    const bool due = std::chrono::steady_clock::now() - told_ >= kTellEvery;
    return part.differences_size() != 0 || due ? write(part) : grpc::Status::OK;
  }

  grpc::Status write(const api::CompareReply& part) {
    told_ = std::chrono::steady_clock::now();
    if (writer_->Write(part)) return grpc::Status::OK;
    return {grpc::StatusCode::CANCELLED, "the client left"};
  }

  NamesService& service_;
  grpc::ServerContext* const context_;
  const api::CompareRequest& request_;
  grpc::ServerWriter<api::CompareReply>* const writer_;
  names::Comparison comparison_;
  std::unique_ptr<OwnNames> own_names_;
  QuestionPtr question_;
  QuestionPtr own_question_;  // of the node in place of this one
  std::chrono::steady_clock::time_point told_ = std::chrono::steady_clock::now();
  bool anything_ = false;  // came of the destination's list
  bool destination_found_ = true;
};

grpc::Status NamesService::Compare(grpc::ServerContext* context, const api::CompareRequest* request,
                                   grpc::ServerWriter<api::CompareReply>* writer) {
  // An empty path would be the list of the exports.
  if (request->own_path().empty() || request->peer_path().empty())
    return to_grpc(context,
                   {ErrorCode::kUsage, "name the directories that are to be compared, beneath an export"});
  if (request->own_node() == request->peer())
    return to_grpc(
        context, {ErrorCode::kUsage, "both directories are at " + request->peer() + ": compare them there"});
  const Result<selection::Filter> filter = selection::Filter::make(selection::rules_of(*request));
  if (!filter) return to_grpc(context, filter.error());
  return Comparing(*this, context, *request, *filter, writer).compare();
}

}  // namespace sluice::service
