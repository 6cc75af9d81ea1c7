//! The checks named in the README and the book exist.

use crate::named::check_listed;

#[test]
fn named_checks_exist() {
    for command in ["verify", "interop"] {
        check_listed(command, env!("CARGO_BIN_EXE_floe-verify"), &[command]);
    }
}
