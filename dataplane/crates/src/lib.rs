//! The crates that Sluice uses, each behind a C interface. The header beside this folder documents its functions.
//!
//! SPDX-License-Identifier: Apache-2.0

#[cfg(feature = "raptorq")]
mod arena;
#[cfg(feature = "blake3")]
mod blake3;
#[cfg(feature = "raptorq")]
mod raptorq;
