// Before anything was agreed upon, a source offers nothing that an agreement could change.
// SPDX-License-Identifier: Apache-2.0
#include "control/source/offer.h"

#include <gtest/gtest.h>

#include <functional>

namespace sluice::transfer {
namespace {

catalog::File plain_file() {
  return {.name = "f", .shown = "/d/f", .path = "/d/f", .size_bytes = 5, .mode = 0640, .mtime_ns = 7};
}
Request plain_request() { return {.source_paths = {"/d/f"}, .destination = "data/"}; }

TEST(OfferAhead, IsWhatIsOfferedOnceThatIsAgreedUpon) {
  catalog::Catalog catalog;
  catalog.add(plain_file());
  const Request request = plain_request();
  const std::optional<TransferOffer> ahead = offer_ahead({plain_file()}, request);
  ASSERT_TRUE(ahead);
  for (const bool digests_agreed : {false, true})
    EXPECT_EQ(std::vector{*ahead}, offer_of(catalog, &request, digests_agreed));
  EXPECT_EQ(ahead->files.size(), 1U);
  EXPECT_EQ(ahead->destination, "data/");
}

TEST(OfferAhead, IsNothingWhereAnAgreementDecides) {
  const std::vector<std::function<void(catalog::File&)>> changes = {
      [](catalog::File& f) { f.kind = catalog::FileKind::kPack; },
      [](catalog::File& f) { f.list = catalog::ListState::kGrowing; },
      [](catalog::File& f) { f.holes = {{.offset = 0, .length = 4}}; },
      [](catalog::File& f) { f.keep.owner = true; },
      [](catalog::File& f) { f.attributes.user = "ada"; },
      [](catalog::File& f) { f.part = {.what = selection::FilePart::What::kRange, .whole_bytes = 9}; },
      [](catalog::File& f) { f.size_bytes = 0; },  // the destination would be done
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    catalog::File file = plain_file();
    changes[i](file);
    EXPECT_FALSE(offer_ahead({plain_file(), file}, plain_request())) << i;
  }
  Request digests = plain_request();
  digests.options.digests = 1;
  EXPECT_FALSE(offer_ahead({plain_file()}, digests));
  EXPECT_FALSE(offer_ahead({}, plain_request()));
  EXPECT_FALSE(offer_ahead(std::vector<catalog::File>(65, plain_file()), plain_request()));
}

}  // namespace
}  // namespace sluice::transfer
