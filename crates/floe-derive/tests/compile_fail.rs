//! Mistakes that the compiler refuses, with the messages that it gives. `TRYBUILD=overwrite` writes them
//! anew.

#[test]
fn mistakes_are_refused_with_a_message_that_helps() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
