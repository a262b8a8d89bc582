//! The crate `raptorq` behind the C interface of `raptorq_c.h`, which documents every function here.
//!
//! SPDX-License-Identifier: Apache-2.0

use crate::arena;
use ::raptorq::{
    EncodingPacket, ObjectTransmissionInformation, PayloadId, SourceBlockDecoder,
    SourceBlockEncoder, SourceBlockEncodingPlan,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;
use std::sync::Once;

const DONE: i32 = 0;
const NEEDS_MORE: i32 = 1;
const REFUSED: i32 = 2;
const SOURCE_SYMBOLS_MAX: u32 = 56403; // RFC 6330, 5.1.2
const ENCODING_SYMBOLS_MAX: u32 = 1 << 24; // of the number of a symbol

pub struct Plan {
    source_symbols: u32,
    plan: SourceBlockEncodingPlan,
}

#[repr(C)]
pub struct Block {
    source_symbols: u32,
    symbol_bytes: u32,
    source_count: u32,
    source: *const *const u8,
}

impl Block {
    fn is_valid(&self) -> bool {
        (1..=SOURCE_SYMBOLS_MAX).contains(&self.source_symbols)
            && (1..=self.source_symbols).contains(&self.source_count)
            && (1..=u32::from(u16::MAX)).contains(&self.symbol_bytes)
            && !self.source.is_null()
    }
    fn config(&self) -> ObjectTransmissionInformation {
        let bytes = u64::from(self.source_symbols) * u64::from(self.symbol_bytes);
        ObjectTransmissionInformation::new(bytes, self.symbol_bytes as u16, 1, 1, 1)
    }
    /// The source symbols that the caller has places for; None: it is missing.
    unsafe fn symbols(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let pointers = unsafe { slice::from_raw_parts(self.source, self.source_count as usize) };
        pointers.iter().map(move |&p| {
            (!p.is_null())
                .then(|| unsafe { slice::from_raw_parts(p, self.symbol_bytes as usize) })
        })
    }
}

/// Runs `work` with what it allocates in the arena. Nothing of it outlives the call, a panic's message included.
unsafe fn in_arena(arena: *mut arena::Arena, work: impl FnOnce() -> i32) -> i32 {
    let caught = || catch_unwind(AssertUnwindSafe(work)).unwrap_or(REFUSED);
    unsafe { arena::within(arena, caught) }
}

#[unsafe(no_mangle)]
pub extern "C" fn sluice_raptorq_plan_new(source_symbols: u32) -> *mut Plan {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    if !(1..=SOURCE_SYMBOLS_MAX).contains(&source_symbols) {
        return std::ptr::null_mut();
    }
    catch_unwind(|| {
        let plan = SourceBlockEncodingPlan::generate(source_symbols as u16);
        Box::into_raw(Box::new(Plan { source_symbols, plan }))
    })
    .unwrap_or(std::ptr::null_mut())
}

/// # Safety
/// See raptorq_c.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_raptorq_plan_free(plan: *mut Plan) {
    if !plan.is_null() {
        drop(unsafe { Box::from_raw(plan) });
    }
}

/// # Safety
/// See raptorq_c.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_raptorq_encode(
    plan: *const Plan,
    block: *const Block,
    first_id: u32,
    repair: *const *mut u8,
    repair_count: u32,
    arena: *mut arena::Arena,
) -> i32 {
    let (plan, block) = unsafe { (&*plan, &*block) };
    if !block.is_valid()
        || plan.source_symbols != block.source_symbols
        || !ids_exist(block, first_id, repair_count)
    {
        return REFUSED;
    }
    let encode = || {
        let t = block.symbol_bytes as usize;
        let mut data = vec![0u8; block.source_symbols as usize * t];
        for (symbol, place) in unsafe { block.symbols() }.zip(data.chunks_exact_mut(t)) {
            let Some(symbol) = symbol else {
                return REFUSED;
            };
            place.copy_from_slice(symbol);
        }
        let encoder = SourceBlockEncoder::with_encoding_plan(0, &block.config(), &data, &plan.plan);
        drop(data);
        for i in 0..repair_count {
            let packets = encoder.repair_packets(first_id + i, 1);
            let place = unsafe { slice::from_raw_parts_mut(*repair.add(i as usize), t) };
            place.copy_from_slice(packets[0].data());
        }
        DONE
    };
    unsafe { in_arena(arena, encode) }
}

/// # Safety
/// See raptorq_c.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_raptorq_decode(
    block: *const Block,
    out: *const *mut u8,
    repair_ids: *const u32,
    repair: *const *const u8,
    repair_count: u32,
    arena: *mut arena::Arena,
) -> i32 {
    let block = unsafe { &*block };
    if !block.is_valid() {
        return REFUSED;
    }
    let decode = || {
        let t = block.symbol_bytes as usize;
        let (k, real) = (block.source_symbols, block.source_count);
        let packet = |id: u32, bytes: Vec<u8>| EncodingPacket::new(PayloadId::new(0, id), bytes);
        let mut packets = Vec::with_capacity((k + repair_count) as usize);
        for (i, symbol) in unsafe { block.symbols() }.enumerate() {
            packets.extend(symbol.map(|bytes| packet(i as u32, bytes.to_vec())));
        }
        packets.extend((real..k).map(|i| packet(i, vec![0; t])));
        for i in 0..repair_count as usize {
            let id = unsafe { *repair_ids.add(i) };
            if !ids_exist(block, id, 1) {
                return REFUSED;
            }
            let bytes = unsafe { slice::from_raw_parts(*repair.add(i), t) };
            packets.push(packet(k + id, bytes.to_vec()));
        }
        let length = u64::from(k) * t as u64;
        let mut decoder = SourceBlockDecoder::new(0, &block.config(), length);
        let Some(data) = decoder.decode(packets) else {
            return NEEDS_MORE;
        };
        for (i, symbol) in unsafe { block.symbols() }.enumerate() {
            if symbol.is_none() {
                let place = unsafe { slice::from_raw_parts_mut(*out.add(i), t) };
                place.copy_from_slice(&data[i * t..(i + 1) * t]);
            }
        }
        DONE
    };
    unsafe { in_arena(arena, decode) }
}

fn ids_exist(block: &Block, first_id: u32, count: u32) -> bool {
    let first = block.source_symbols.checked_add(first_id);
    first
        .and_then(|first| first.checked_add(count))
        .is_some_and(|end| end <= ENCODING_SYMBOLS_MAX)
}
