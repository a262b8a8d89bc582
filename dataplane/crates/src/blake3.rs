//! The crate `blake3` behind the C interface of `blake3_c.h`, which documents every function here.
//!
//! SPDX-License-Identifier: Apache-2.0

use ::blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use ::blake3::{Hasher, OUT_LEN};
use std::slice;

#[unsafe(no_mangle)]
pub extern "C" fn sluice_blake3_new() -> *mut Hasher {
    Box::into_raw(Box::new(Hasher::new()))
}

/// # Safety
/// See blake3_c.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_blake3_free(hasher: *mut Hasher) {
    if !hasher.is_null() {
        drop(unsafe { Box::from_raw(hasher) });
    }
}

/// # Safety
/// See blake3_c.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_blake3_update(hasher: *mut Hasher, data: *const u8, bytes: usize) {
    if bytes != 0 {
        unsafe { (*hasher).update(slice::from_raw_parts(data, bytes)) };
    }
}

/// # Safety
/// See blake3_c.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_blake3_finish(hasher: *const Hasher, digest: *mut u8) {
    let hash = unsafe { (*hasher).finalize() };
    unsafe { slice::from_raw_parts_mut(digest, OUT_LEN) }.copy_from_slice(hash.as_bytes());
}

/// # Safety
/// See blake3_c.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_blake3_begin_at(hasher: *mut Hasher, offset: u64) {
    let hasher = unsafe { &mut *hasher };
    *hasher = Hasher::new(); // reset() keeps where it began
    hasher.set_input_offset(offset);
}

/// # Safety
/// See blake3_c.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_blake3_finish_subtree(hasher: *const Hasher, value: *mut u8) {
    let chaining_value = unsafe { (*hasher).finalize_non_root() };
    unsafe { slice::from_raw_parts_mut(value, OUT_LEN) }.copy_from_slice(&chaining_value);
}

/// # Safety
/// See blake3_c.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_blake3_join(
    left: *const u8,
    right: *const u8,
    root: bool,
    value: *mut u8,
) {
    let (left, right) = unsafe { (&*left.cast(), &*right.cast()) };
    let joined = if root {
        *merge_subtrees_root(left, right, Mode::Hash).as_bytes()
    } else {
        merge_subtrees_non_root(left, right, Mode::Hash)
    };
    unsafe { slice::from_raw_parts_mut(value, OUT_LEN) }.copy_from_slice(&joined);
}
