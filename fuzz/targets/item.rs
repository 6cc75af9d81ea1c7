//! The codecs of what is stored: any bytes decode or are refused, and what decodes encodes to them.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| floe_local::fuzzing::item(data));
