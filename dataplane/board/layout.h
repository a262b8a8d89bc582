// For the structs that two programs share: where each field lies is held by the compiler.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <type_traits>

// In a static_assert: Struct is laid out as C would, and has so many bytes; `field` begins at byte `at` of
// it.
#define SLUICE_BYTES(Struct, bytes) (std::is_standard_layout_v<Struct> && sizeof(Struct) == (bytes))
#define SLUICE_AT(Struct, field, at) (offsetof(Struct, field) == (at))
