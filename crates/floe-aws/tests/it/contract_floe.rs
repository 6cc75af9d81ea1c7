//! The contract, over HTTP, against the Floe server in this process: as it is, and with a prefix before the names of
//! all tables.

mod contract {
    use crate::world::Remote;
    floe_testkit::contract_suite!(Remote::new);
}

mod prefixed {
    use floe_testkit::contract::Difference;

    use crate::world::Remote;

    /// What a prefix changes, by its nature.
    const DIFFERENCES: &[Difference] = &[
        Difference {
            case: "tables::a_new_table_is_described",
            seen: "table/t.Sorted",
            reason: "the resource name is that of the table in the store, by which others know it too",
        },
        Difference {
            case: "tables::names_have_3_to_255_characters",
            seen: "xxxxxxxxxx",
            reason: "a name and its prefix share 255 characters",
        },
    ];

    floe_testkit::contract_suite!(
        || Remote::with(|options| options.table_prefix("t.")),
        DIFFERENCES
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_operations_are_answered_as_the_model_answers() {
    let make = async |_seed| crate::world::Remote::new().await;
    let report = floe_testkit::model::run_property(make, 1, 1500).await;
    println!("{}", report.unwrap());
}
