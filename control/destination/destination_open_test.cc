// Which files of a receiving end may be open at the dataplane, whose table takes object numbers modulo its
// size.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/destination/destination_files.h"

namespace sluice::transfer {
namespace {

// Ten files of which four may be open, opened for the first time.
class OpenWindow : public testing::Test {
 protected:
  OpenWindow() {
    settings_.open_objects_max = 4;
    std::vector<catalog::File> files;
    TransferOffer offer{.destination = "in/", .into_directory = true};
    for (uint32_t i = 0; i < 10; ++i) {
      const std::string name = "f" + std::to_string(i);
      files.push_back({.name = name, .shown = "in/" + name, .size_bytes = 1});
      offer.files.push_back({.number = i, .name = name, .size_bytes = 1});
    }
    files_ = std::make_unique<DestinationFiles>(settings_, false, 65536, files);
    files_->recover(out_);
    (void)out_.drain();
    EXPECT_TRUE(files_->on(FilesRecovered{Indexed<ObjectId, Recovered>(10, Recovered::kHeld)}, out_));
    EXPECT_TRUE(*files_->take_offer(offer, nullptr));
    files_->prepare(out_);
    while (!files_->prepared() && !HasFailure())
      EXPECT_TRUE(files_->on(ObjectOpened{.object = asked<OpenObject>().object}, out_));
  }
  // The only thing that is asked for now.
  template <typename E>
  E asked() {
    const std::vector<Effect> all = out_.drain();
    EXPECT_EQ(all.size(), 1U);
    if (all.size() == 1 && std::holds_alternative<E>(all[0])) return std::get<E>(all[0]);
    ADD_FAILURE() << "something else was asked for";
    return {};
  }

  Settings settings_;
  Effects out_;
  std::unique_ptr<DestinationFiles> files_;
};

// As a file that is one hole: done before the dataplane has said that it is open. Its number is taken until
// it is closed there.
TEST_F(OpenWindow, OneThatIsDoneWhileItIsBeingOpenedKeepsItsPlace) {
  files_->done(ObjectId(1), out_);
  (void)asked<CloseObject>();
  files_->on(ObjectClosed{ObjectId(1)}, out_);
  EXPECT_EQ(asked<OpenObject>().object, ObjectId(5));
  files_->done(ObjectId(5), out_);
  EXPECT_TRUE(out_.empty());
  files_->growth_noting();
  files_->open_grown(ObjectId(9), out_);
  EXPECT_TRUE(out_.empty()) << "9 has the number of 5, which is being opened";
  ASSERT_TRUE(files_->on(ObjectOpened{.object = ObjectId(5)}, out_));
  EXPECT_EQ(asked<CloseObject>().object, ObjectId(5));
  files_->on(ObjectClosed{ObjectId(5)}, out_);
  EXPECT_EQ(asked<OpenObject>().object, ObjectId(9));
}

}  // namespace
}  // namespace sluice::transfer
