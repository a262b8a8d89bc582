//! Memory of one call: what the crate allocates lies in bytes that the caller gave.
//!
//! The crate uses `Vec` and `HashSet` freely. Here their memory comes from the arena of the thread's call, if one
//! is active, and from malloc otherwise. An arena grows at its end. What is given back makes room again if it is
//! the last piece, or if it is small: pieces of one size class are kept for the next of that class.
//!
//! SPDX-License-Identifier: Apache-2.0

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::{copy_nonoverlapping, null_mut};

const CLASSES: usize = 12; // of powers of two, from 16 bytes to 32 KiB
const CLASS_MIN: usize = 16;
const CLASS_MAX: usize = CLASS_MIN << (CLASSES - 1);

/// `struct sluice_raptorq_arena` of raptorq_c.h.
#[repr(C)]
pub struct Arena {
    bytes: *mut u8,
    size: usize,
    used_max: usize,
    missed: usize,
}

/// The arena that is active on this thread, and what is free in it.
struct State {
    arena: *mut Arena,
    used: usize,
    free: [*mut u8; CLASSES], // lists; a free piece begins with the address of the next
}

thread_local! {
    static ACTIVE: Cell<*mut State> = const { Cell::new(null_mut()) };
}

/// Runs `work` while what this thread allocates lies in `arena`.
///
/// # Safety
/// The bytes of `arena` outlive the call, and nothing that `work` allocates does.
pub unsafe fn within<T>(arena: *mut Arena, work: impl FnOnce() -> T) -> T {
    struct Active;
    impl Drop for Active {
        fn drop(&mut self) {
            ACTIVE.set(null_mut());
        }
    }
    unsafe {
        (*arena).used_max = 0;
        (*arena).missed = 0;
    }
    let mut state = State { arena, used: 0, free: [null_mut(); CLASSES] };
    ACTIVE.set(&raw mut state);
    let _active = Active;
    work()
}

fn class_of(size: usize) -> Option<usize> {
    let rounded = size.max(CLASS_MIN).next_power_of_two();
    (rounded <= CLASS_MAX).then(|| (rounded / CLASS_MIN).trailing_zeros() as usize)
}

impl State {
    fn bytes_of(size: usize) -> usize {
        match class_of(size) {
            Some(class) => CLASS_MIN << class,
            None => size.next_multiple_of(64),
        }
    }
    unsafe fn contains(&self, p: *const u8) -> bool {
        let arena = unsafe { &*self.arena };
        (p as usize).wrapping_sub(arena.bytes as usize) < arena.size
    }
    unsafe fn take(&mut self, layout: Layout) -> *mut u8 {
        let arena = unsafe { &mut *self.arena };
        let class = class_of(layout.size());
        if let Some(class) = class.filter(|_| layout.align() <= CLASS_MIN) {
            let piece = self.free[class];
            if !piece.is_null() {
                self.free[class] = unsafe { *piece.cast::<*mut u8>() };
                return piece;
            }
        }
        let align = layout.align().max(if class.is_some() { CLASS_MIN } else { 64 });
        let base = arena.bytes as usize;
        let begin = (base + self.used).next_multiple_of(align) - base;
        let end = begin + Self::bytes_of(layout.size());
        if end > arena.size {
            arena.missed += layout.size();
            return null_mut();
        }
        self.used = end;
        arena.used_max = arena.used_max.max(end);
        unsafe { arena.bytes.add(begin) }
    }
    unsafe fn give_back(&mut self, p: *mut u8, layout: Layout) {
        let arena = unsafe { &*self.arena };
        let begin = p as usize - arena.bytes as usize;
        if begin + Self::bytes_of(layout.size()) == self.used {
            self.used = begin;
        } else if let Some(class) = class_of(layout.size()) {
            unsafe { *p.cast::<*mut u8>() = self.free[class] };
            self.free[class] = p;
        }
    }
    /// Lets the last piece grow or shrink where it is.
    unsafe fn resize(&mut self, p: *mut u8, layout: Layout, size: usize) -> bool {
        let arena = unsafe { &mut *self.arena };
        let begin = p as usize - arena.bytes as usize;
        let end = begin + Self::bytes_of(size);
        if Self::bytes_of(size) == Self::bytes_of(layout.size()) {
            return true;
        }
        if begin + Self::bytes_of(layout.size()) != self.used || end > arena.size {
            return false;
        }
        self.used = end;
        arena.used_max = arena.used_max.max(end);
        true
    }
}

pub struct ArenaOrSystem;

#[global_allocator]
static ALLOCATOR: ArenaOrSystem = ArenaOrSystem;

unsafe impl GlobalAlloc for ArenaOrSystem {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let state = ACTIVE.get();
        if !state.is_null() {
            let piece = unsafe { (*state).take(layout) };
            if !piece.is_null() {
                return piece;
            }
        }
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        let state = ACTIVE.get();
        if !state.is_null() && unsafe { (*state).contains(p) } {
            return unsafe { (*state).give_back(p, layout) };
        }
        unsafe { System.dealloc(p, layout) }
    }
    unsafe fn realloc(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let state = ACTIVE.get();
        if state.is_null() || !unsafe { (*state).contains(p) } {
            return unsafe { System.realloc(p, layout, size) };
        }
        if unsafe { (*state).resize(p, layout, size) } {
            return p;
        }
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                copy_nonoverlapping(p, moved, layout.size().min(size));
                self.dealloc(p, layout);
            }
            moved
        }
    }
}
