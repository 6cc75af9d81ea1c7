//! The contract suite over HTTP against the Floe server in this process, without and with a table prefix.

mod contract {
    use crate::world::Remote;
    floe_testkit::contract_suite!(Remote::new);
}

mod prefixed {
    use floe_testkit::contract::Difference;

    use crate::world::Remote;

    /// Differences caused by the prefix.
    const DIFFERENCES: &[Difference] = &[
        Difference {
            case: "tables::new_table_is_described",
            message: "table/t.Sorted",
            reason: "the ARN contains the name of the table in the store, because others know it by that ARN",
        },
        Difference {
            case: "tables::names_have_3_to_255_characters",
            message: "xxxxxxxxxx",
            reason: "a name and its prefix share the limit of 255 characters",
        },
    ];

    floe_testkit::contract_suite!(
        || Remote::with(|options| options.table_prefix("t.")),
        DIFFERENCES
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_operations_match_the_model() {
    let make = async |_seed| crate::world::Remote::new().await;
    let report = floe_testkit::model::run_property(make, 1, 1500).await;
    println!("{}", report.unwrap());
}
