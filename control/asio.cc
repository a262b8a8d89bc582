// asio's own functions that are no templates, compiled once: each unit would compile those it uses again.
// SPDX-License-Identifier: Apache-2.0
#include <asio/impl/src.hpp>
#include <asio/ssl/impl/src.hpp>
