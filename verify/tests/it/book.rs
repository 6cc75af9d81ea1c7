//! The checks that the README and the book name are there.

use crate::named::check_listed;

#[test]
fn every_check_that_is_named_is_there() {
    for command in ["verify", "interop"] {
        check_listed(command, env!("CARGO_BIN_EXE_floe-verify"), &[command]);
    }
}
