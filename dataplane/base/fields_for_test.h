// Plain data of ours, looked at field by field: what tests and fuzzers of codecs compare with.
//
// A codec that forgets a field is found only if the test sets that field and compares it. So a type names how
// many fields it has (Count), which the compiler checks, and `all_set` says whether a sample leaves any of
// them as it is by default. Whoever adds a field has to come by here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <tuple>
#include <type_traits>

namespace sluice::fields {

// Specialised for each such type: `template <> struct Count<T> : Fields<3> {};`
template <typename T>
struct Count;
template <size_t kFields>
struct Fields {
  static constexpr size_t kValue = kFields;
};

template <typename T>
concept Counted = requires {
  Count<T>::kValue;
};
template <typename T>
concept Optional = requires(const T& value) {
  value.has_value();
};
template <typename T>
concept List = !std::is_convertible_v<T, std::string_view> && requires(const T& list) {
  list.begin();
  list.end();
};

template <typename T>
concept Pointer = requires {
  typename T::element_type;
}
&&requires(const T& p) { p.use_count(); };

template <Counted T>
auto tie(const T& of) {
  constexpr size_t kFields = Count<T>::kValue;
  static_assert(kFields <= 24, "add a line below");
  // clang-format off
  if constexpr (kFields == 0) { return std::tuple<>(); }
  if constexpr (kFields == 1) { const auto& [a] = of; return std::tie(a); }
  if constexpr (kFields == 2) { const auto& [a, b] = of; return std::tie(a, b); }
  if constexpr (kFields == 3) { const auto& [a, b, c] = of; return std::tie(a, b, c); }
  if constexpr (kFields == 4) { const auto& [a, b, c, d] = of; return std::tie(a, b, c, d); }
  if constexpr (kFields == 5) { const auto& [a, b, c, d, e] = of; return std::tie(a, b, c, d, e); }
  if constexpr (kFields == 6) { const auto& [a, b, c, d, e, f] = of; return std::tie(a, b, c, d, e, f); }
  if constexpr (kFields == 7) {
    const auto& [a, b, c, d, e, f, g] = of;
    return std::tie(a, b, c, d, e, f, g);
  }
  if constexpr (kFields == 8) {
    const auto& [a, b, c, d, e, f, g, h] = of;
    return std::tie(a, b, c, d, e, f, g, h);
  }
  if constexpr (kFields == 9) {
    const auto& [a, b, c, d, e, f, g, h, i] = of;
    return std::tie(a, b, c, d, e, f, g, h, i);
  }
  if constexpr (kFields == 10) {
    const auto& [a, b, c, d, e, f, g, h, i, j] = of;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  }
  if constexpr (kFields == 11) {
    const auto& [a, b, c, d, e, f, g, h, i, j, k] = of;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k);
  }
  if constexpr (kFields == 12) {
    const auto& [a, b, c, d, e, f, g, h, i, j, k, l] = of;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
  }
  if constexpr (kFields == 13) {
    const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = of;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m);
  }
  if constexpr (kFields == 14) {
    const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = of;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  }
  if constexpr (kFields == 15) {
    const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = of;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
  }
  if constexpr (kFields == 16) {
    const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = of;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
  }
  if constexpr (kFields == 17) {
    const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q] = of;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q);
  }
  if constexpr (kFields == 18) {
    const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r] = of;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r);
  }
  if constexpr (kFields == 19) {
    const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s] = of;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s);
  }
  if constexpr (kFields == 20) {
    const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t] = of;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t);
  }
  if constexpr (kFields == 21) {
    const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u] = of;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u);
  }
  if constexpr (kFields == 22) {
    const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v] = of;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v);
  }
  if constexpr (kFields == 23) {
    const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w] = of;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w);
  }
  if constexpr (kFields == 24) {
    const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x] = of;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x);
  }
  // clang-format on
}

// Calls `what` with every field of both, as long as it says true.
template <Counted T, typename What>
bool each(const T& one, const T& other, What what) {
  return std::apply(
      [&](const auto&... a) {
        return std::apply([&](const auto&... b) { return (what(a, b) && ...); }, tie(other));
      },
      tie(one));
}

template <typename T>
bool equal(const T& one, const T& other) {
  if constexpr (Counted<T>) {
    return each(one, other, [](const auto& a, const auto& b) { return equal(a, b); });
  } else if constexpr (Optional<T>) {
    return one.has_value() == other.has_value() && (!one.has_value() || equal(*one, *other));
  } else if constexpr (Pointer<T>) {
    return (one == nullptr) == (other == nullptr) && (one == nullptr || equal(*one, *other));
  } else if constexpr (List<T>) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                      [](const auto& a, const auto& b) { return equal(a, b); });
  } else {
    return one == other;
  }
}

// No field, and no field of what is in it, is as it is by default; nothing is empty.
template <typename T>
bool all_set(const T& sample) {
  if constexpr (Counted<T>) {
    return each(sample, T(), [](const auto& a, const auto& unset) { return !equal(a, unset) && all_set(a); });
  } else if constexpr (Optional<T>) {
    return sample.has_value() && all_set(*sample);
  } else if constexpr (Pointer<T>) {
    return sample != nullptr && all_set(*sample);
  } else if constexpr (List<T>) {
    return sample.begin() != sample.end() &&
           std::all_of(sample.begin(), sample.end(), [](const auto& a) { return all_set(a); });
  } else {
    return true;
  }
}

}  // namespace sluice::fields
