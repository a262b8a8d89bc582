// A few plain files of a receiving end, an offer of them, and what they ask for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "control/destination/destination_files.h"

namespace sluice::transfer {

inline constexpr uint32_t kFilesExtent = 65536;

inline std::vector<catalog::File> known_files(size_t count) {
  std::vector<catalog::File> files;
  for (size_t i = 0; i < count; ++i) {
    files.push_back({.name = "f" + std::to_string(i), .shown = "in/f" + std::to_string(i), .size_bytes = 1});
  }
  return files;
}

inline TransferOffer offer_of(size_t count) {
  TransferOffer offer{.destination = "in/", .into_directory = true};
  for (size_t i = 0; i < count; ++i) {
    offer.files.push_back(
        {.number = static_cast<uint32_t>(i), .name = "f" + std::to_string(i), .size_bytes = 1});
  }
  return offer;
}

// Files of which at most four are open at a time, and what they ask for.
class DestinationFilesTest : public testing::Test {
 protected:
  DestinationFilesTest() { settings_.open_objects_max = 4; }

  void known(size_t count, bool discard = false) {
    files_ = std::make_unique<DestinationFiles>(settings_, discard, kFilesExtent, known_files(count));
  }
  // The only thing that is asked for now.
  template <typename E>
  E asked() {
    std::vector<Effect> all = out_.drain();
    std::erase_if(all, [](const Effect& effect) { return std::holds_alternative<Log>(effect); });
    EXPECT_EQ(all.size(), 1U);
    if (all.size() == 1 && std::holds_alternative<E>(all[0])) return std::get<E>(all[0]);
    ADD_FAILURE() << "something else was asked for";
    return {};
  }
  uint32_t open_all() {
    uint32_t opened = 0;
    for (; !files_->prepared() && !HasFailure(); ++opened)
      EXPECT_TRUE(files_->on(ObjectOpened{.object = asked<OpenObject>().object}, out_));
    return opened;
  }

  Settings settings_;
  Effects out_;
  std::unique_ptr<DestinationFiles> files_ =
      std::make_unique<DestinationFiles>(settings_, false, kFilesExtent, known_files(0));
};

}  // namespace sluice::transfer
