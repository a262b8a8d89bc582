# `./dev lab seeds`: every table and figure of the five papers (docs/SOURCES.md) beside this product's own.
# SPDX-License-Identifier: Apache-2.0
