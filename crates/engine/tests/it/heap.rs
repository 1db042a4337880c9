//! Counts what the thread of a test holds on the heap. For test programs of their own: it replaces
//! the allocator.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(unsafe_code, reason = "a global allocator cannot be written otherwise")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.get() + layout.size() as isize;
        HELD.set(held);
        MOST.set(MOST.get().max(held));
        CALLS.set(CALLS.get() + 1);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size() as isize);
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// From a point on: bytes held beyond what was held then.
pub struct Heap {
    held: isize,
    calls: u64,
}

impl Heap {
    pub fn new() -> Self {
        MOST.set(HELD.get());
        Self { held: HELD.get(), calls: CALLS.get() }
    }

    /// Bytes held now.
    pub fn held(&self) -> isize {
        HELD.get() - self.held
    }

    /// The most bytes held at any time since.
    pub fn most(&self) -> isize {
        MOST.get() - self.held
    }

    /// Allocations since.
    pub fn calls(&self) -> u64 {
        CALLS.get() - self.calls
    }
}
