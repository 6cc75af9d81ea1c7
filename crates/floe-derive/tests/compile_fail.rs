//! Programs that must not compile, with the expected compiler output. `TRYBUILD=overwrite` updates it.

#[test]
fn invalid_programs_are_rejected_with_helpful_messages() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
