//! The reference model passes the contract suite, and the property run finds planted bugs with it.

use floe_testkit::model::{Bug, ModelHarness, MutantHarness, run_property};

mod contract {
    floe_testkit::contract_suite!(|| async { floe_testkit::model::ModelHarness::new(1) });
}

#[tokio::test]
async fn model_matches_itself() {
    let report = run_property(async |seed| ModelHarness::new(seed), 1, 2000).await;
    let report = report.unwrap();
    println!("{report}");
    assert_eq!(report.operations, 2000);
    assert!(report.errors > 200 && report.errors < 1000, "{report}");
}

#[tokio::test]
async fn every_planted_bug_is_found() {
    const OPERATIONS: usize = 4000;
    for bug in Bug::ALL {
        let make = async |seed| MutantHarness::new(ModelHarness::new(seed), bug);
        let found = run_property(make, 1, OPERATIONS).await;
        let mismatch =
            found.expect_err(&format!("{bug:?} is found within {OPERATIONS} operations"));
        println!(
            "{bug:?}: operations={} steps={}",
            mismatch.operations,
            mismatch.steps.len()
        );
        assert!(
            mismatch.steps.len() <= 12,
            "{bug:?} is reduced to a few steps: {mismatch}"
        );
    }
}

#[tokio::test]
async fn mismatch_displays_its_seed_and_steps() {
    let bug = Bug::ConditionIgnoredOnDelete;
    let make = async |seed| MutantHarness::new(ModelHarness::new(seed), bug);
    let mismatch = run_property(make, 3, 4000)
        .await
        .expect_err("the bug is found");
    let text = mismatch.to_string();
    assert!(
        text.starts_with("the engine differs from the model: seed=3 "),
        "{text}"
    );
    assert!(text.contains("delete "), "{text}");
    assert!(
        text.contains("\n  expected: ") && text.contains("\n  actual: "),
        "{text}"
    );
}
