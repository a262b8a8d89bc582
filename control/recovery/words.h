// An array of 64-bit words of which long runs are alike: bitmaps and digests of a file that is mostly holes.
//
// Pure. Memory and the time of fill() grow with what differs, not with the number of words, since that number
// follows from a file's size, which a name or a peer states: a sparse file of 200 TiB has four million words
// and no data. Words lie in pages of 512. A page whose words are all alike keeps that value only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/base/check.h"

namespace sluice::recovery {

class Words {
 public:
  Words() = default;
  explicit Words(uint64_t words) : words_(words), pages_((words + kPageWords - 1) / kPageWords) {}

  uint64_t size() const { return words_; }

  uint64_t operator[](uint64_t index) const {
    DCHECK(index < words_, "a word of this array");
    const Page& page = pages_[index / kPageWords];
    return page.words.empty() ? page.value : page.words[index % kPageWords];
  }

  void set(uint64_t index, uint64_t value) {
    DCHECK(index < words_, "a word of this array");
    Page& page = pages_[index / kPageWords];
    if (page.words.empty() && page.value == value) return;
    if (page.words.empty()) page.words.assign(words_in(index / kPageWords), page.value);
    page.words[index % kPageWords] = value;
  }

  // Sets the words from `first` to before `end`.
  void fill(uint64_t first, uint64_t end, uint64_t value) {
    while (first < end) {
      const uint64_t page = first / kPageWords;
      const uint64_t page_end = page * kPageWords + words_in(page);
      if (first == page * kPageWords && end >= page_end) {
        pages_[page] = {.value = value, .words = {}};
        first = page_end;
      } else {
        set(first++, value);
      }
    }
  }

  // The first index, from `from` on, whose word is not known to be `value` as its whole page is; at most
  // `end`. It lets a search pass over pages that are alike.
  uint64_t skip(uint64_t from, uint64_t end, uint64_t value) const {
    while (from < end) {
      const Page& page = pages_[from / kPageWords];
      if (!page.words.empty() || page.value != value) return from;
      from = (from / kPageWords + 1) * kPageWords;
    }
    return end;
  }

 private:
  static constexpr uint64_t kPageWords = 512;
  struct Page {
    uint64_t value = 0;           // of all its words, if there are none
    std::vector<uint64_t> words;  // empty: they are alike
  };

  size_t words_in(uint64_t page) const {
    return static_cast<size_t>(std::min(kPageWords, words_ - page * kPageWords));
  }

  uint64_t words_ = 0;
  std::vector<Page> pages_;
};

}  // namespace sluice::recovery
