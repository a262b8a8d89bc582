# The tools beside which Sluice is measured, each a packaged peer with its server and client.
# SPDX-License-Identifier: Apache-2.0
