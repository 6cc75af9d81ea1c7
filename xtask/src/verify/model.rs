//! Placeholder.
use super::*;
pub(super) const CHECK: Check = Check { name: "model", proves: "", how: "", flags: &[], planted: &[Bug::WrongAnswer], prepare };
fn prepare(_: &Common, _: &mut Args) -> Result<Work, Failure> { Err(Failure::broken("")) }
