//! The allocator of the commands: when memory runs out, it ends the command as GNU's tools end.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicBool, Ordering};

unsafe extern "C" {
    /// The last component of argv\[0\], which the C library stores before it calls anything else.
    static program_invocation_short_name: *const c_char;
}

/// The system's allocator. If it has no memory left, the command ends with a message and status 1.
///
/// Rust's own handler would end it by SIGABRT, with a core file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator;

// SAFETY: each call is passed on to the system's allocator, with the caller's own promises.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised by the caller.
        or_end(unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised by the caller.
        or_end(unsafe { System.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_bytes: usize) -> *mut u8 {
        // SAFETY: as promised by the caller.
        or_end(unsafe { System.realloc(memory, layout, new_bytes) })
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[inline]
fn or_end(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        end();
    }
    memory
}

/// Ends the process, without allocating.
#[cold]
fn end() -> ! {
    static IS_ENDING: AtomicBool = AtomicBool::new(false);
    while IS_ENDING.swap(true, Ordering::Relaxed) {
        // Another thread is writing the message. It ends this thread, too.
        // SAFETY: the call has no conditions.
        unsafe { libc::pause() };
    }
    // SAFETY: the C library has stored the name, or null, and does not change it.
    let program = unsafe { program_invocation_short_name };
    let program = if program.is_null() {
        c""
    } else {
        // SAFETY: it is a string that stays as long as the process.
        unsafe { CStr::from_ptr(program) }
    };
    for text in [program.to_bytes(), b": memory exhausted\n"] {
        // SAFETY: pointer and length are those of one slice. An error cannot be reported.
        unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
    }
    // SAFETY: the call has no conditions. Exit handlers do not run, because they could allocate.
    unsafe { libc::_exit(1) }
}
