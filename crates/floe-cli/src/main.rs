//! The program `floe`.

use std::process::ExitCode;

/// A write is read on one thread and committed on another, which frees the memory that the first allocated. With the
/// system allocator, the two threads contend for its lock.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    floe_cli::main()
}
