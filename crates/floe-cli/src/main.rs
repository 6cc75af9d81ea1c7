//! The program `floe`.

use std::process::ExitCode;

/// A write is read on one thread and committed on another, which frees what the first one allocated. The allocator
/// of the system makes both wait for each other then.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    floe_cli::main()
}
