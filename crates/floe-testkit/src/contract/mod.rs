//! The contract suite: behaviour that every engine shares, one file per subject.
//!
//! The tests of an engine pass a function that creates a [`Harness`] to [`contract_suite!`](crate::contract_suite),
//! which expands to one test per case, so a failing test names the violated rule:
//!
//! ```
//! mod contract {
//!     floe_testkit::contract_suite!(|| async { floe_testkit::model::ModelHarness::new(1) });
//! }
//! ```
//!
//! Some cases have requirements: a [capability](floe_store::Engine::capabilities), or a manual
//! [clock](Harness::clock). An engine that does not meet them skips the case, or a part of it. Error messages are
//! compared by the part that identifies the error, because DynamoDB itself wraps them differently.
//!
//! A store that cannot be changed may deviate in ways that its capabilities do not express. List such differences
//! with the observed failure and the reason. A listed case must fail, so that the list stays correct:
//!
//! ```
//! mod contract {
//!     use floe_testkit::contract::Difference;
//!
//!     const DIFFERENCES: &[Difference] = &[Difference {
//!         case: "scan::projects",
//!         message: "left: [{}]",
//!         reason: "the store returns all attributes",
//!     }];
//!
//!     floe_testkit::contract_suite!(
//!         || async { floe_testkit::model::ModelHarness::new(1) },
//!         DIFFERENCES
//!     );
//! }
//! ```
//!
//! Random sequences of operations are not part of this suite; see [`model`](crate::model).

mod bad_input;
mod batch;
mod capacity;
mod concurrency;
mod conditions;
mod delete;
mod fixture;
mod get;
mod indexes;
mod limits;
mod local_indexes;
mod multi_attribute_indexes;
mod paging;
mod put;
mod query;
mod scan;
mod stream_reading;
mod streams;
mod table_changes;
mod tables;
mod tokens;
mod transact;
mod transact_get;
mod ttl;
mod update;
mod update_returns;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::Harness;
use fixture::{Fixture, Need};

/// A rule that every engine follows.
#[derive(Clone, Copy)]
pub struct Case {
    /// The name, as `subject::rule`.
    pub name: &'static str,
    needs: &'static [Need],
    run: fn(&mut Fixture),
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Case").field(&self.name).finish()
    }
}

impl Case {
    /// Runs the case on a new engine, if that meets the requirements of the case.
    ///
    /// # Panics
    ///
    /// If the engine violates the rule.
    pub async fn run(&self, harness: impl Harness + 'static) {
        let Self { needs, run, .. } = *self;
        let mut fixture = Fixture::new(Box::new(harness));
        let case = move || {
            if needs.iter().all(|need| fixture.has(*need)) {
                run(&mut fixture);
            }
        };
        // A case blocks on each operation, so it needs a thread of its own.
        if let Err(error) = tokio::task::spawn_blocking(case).await {
            resume_unwind(error.into_panic());
        }
    }
}

/// A known violation of a rule.
#[derive(Clone, Copy, Debug)]
pub struct Difference {
    /// The name of the case.
    pub case: &'static str,
    /// The message with which the case fails, or a part of it.
    pub message: &'static str,
    /// What the store does, and what it should do.
    pub reason: &'static str,
}

/// Runs the case of this name on an engine created by `make`, on its own runtime.
/// [`contract_suite!`](crate::contract_suite) expands to calls of this function.
///
/// # Panics
///
/// If no case has this name, or if the engine violates the rule.
pub fn run<H, F>(name: &str, make: impl FnOnce() -> F)
where
    H: Harness + 'static,
    F: Future<Output = H>,
{
    let case = cases().into_iter().find(|case| case.name == name);
    let case = case.unwrap_or_else(|| panic!("no such case: name={name}"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = runtime.expect("the runtime starts");
    runtime.block_on(async { case.run(make().await).await });
}

/// As [`run`], but a case listed in `differences` must fail with the given message.
///
/// # Panics
///
/// If no case has this name; if the engine violates a rule that is not listed, or with another message; if it
/// follows a rule that is listed.
pub fn run_with_differences<H, F>(name: &str, make: impl FnOnce() -> F, differences: &[Difference])
where
    H: Harness + 'static,
    F: Future<Output = H>,
{
    let Some(difference) = differences.iter().find(|known| known.case == name) else {
        return run(name, make);
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| run(name, make)));
    let Err(panic) = outcome else {
        panic!(
            "the store follows the rule: remove it from the list of differences: {difference:?}"
        );
    };
    let said = match panic.downcast_ref::<String>() {
        Some(text) => text.as_str(),
        None => panic.downcast_ref::<&str>().copied().unwrap_or_default(),
    };
    assert!(
        said.contains(difference.message),
        "the store violates the rule in another way: message={said:?} {difference:?}"
    );
}

/// Checks that all differences name existing cases.
///
/// # Panics
///
/// If a difference names an unknown case.
pub fn check_names(differences: &[Difference]) {
    let cases = cases();
    for difference in differences {
        let is_case = cases.iter().any(|case| case.name == difference.case);
        assert!(is_case, "no such case: name={}", difference.case);
    }
}

macro_rules! suite {
    ($d:tt $($subject:ident { $($case:ident $(if $($need:ident)&&+)?,)* })*) => {
        /// All cases, by subject.
        pub fn cases() -> Vec<Case> {
            vec![$($(Case {
                name: concat!(stringify!($subject), "::", stringify!($case)),
                needs: &[$($(Need::$need),+)?],
                run: $subject::$case,
            },)*)*]
        }

        /// Expands to one test for each case of the [contract suite](crate::contract).
        ///
        /// Takes a function without arguments that returns a future of a new [`Harness`](crate::Harness), and
        /// optionally the known [differences](crate::contract::Difference).
        #[macro_export]
        macro_rules! contract_suite {
            ($d make:expr) => {
                $crate::contract_suite!($d make, &[]);
            };
            ($d make:expr, $d differences:expr) => {
                #[test]
                fn differences_name_existing_cases() {
                    $crate::contract::check_names($d differences);
                }
                $(
                    mod $subject {
                        #[allow(unused_imports, reason = "the function may use nothing of the parent module")]
                        use super::*;
                        $(
                            #[test]
                            fn $case() {
                                let name = concat!(stringify!($subject), "::", stringify!($case));
                                $crate::contract::run_with_differences(name, $d make, $d differences);
                            }
                        )*
                    }
                )*
            };
        }
    };
}

suite! { $
    put {
        stores_every_type_of_value,
        replaces_the_whole_item,
        stores_items_with_similar_keys_separately,
        number_keys_are_compared_by_value,
        binary_keys_are_supported,
        returns_the_old_item_on_request,
        only_old_return_values_are_allowed,
        writes_only_if_the_condition_is_met,
        failed_condition_returns_the_item_on_request,
        missing_table_is_not_found,
        request_is_validated_before_the_table_is_looked_up,
        item_must_contain_its_key,
    }
    get {
        missing_item_is_not_an_error,
        consistent_and_eventual_reads_are_supported,
        consistent_reads_see_completed_writes,
        returns_only_the_projected_attributes,
        projects_into_documents,
        attribute_names_may_contain_dots,
        key_must_match_the_key_schema,
        projected_paths_must_not_overlap,
        missing_table_is_not_found,
        reserved_words_are_allowed_in_parsed_expressions,
    }
    delete {
        removes_only_the_given_item,
        missing_item_is_not_an_error,
        returns_the_old_item_on_request,
        only_old_return_values_are_allowed,
        removes_only_if_the_condition_is_met,
        missing_item_is_evaluated_as_an_empty_item,
        key_must_match_the_key_schema,
        deleted_item_can_be_put_again,
    }
    update {
        set_adds_and_replaces_attributes,
        set_copies_values_from_before_the_update,
        set_computes_sums_and_differences,
        number_overflow_is_rejected,
        if_not_exists_uses_the_existing_value,
        list_append_accepts_lists_in_either_order,
        set_changes_nested_values,
        remove_deletes_attributes_and_list_elements,
        set_and_remove_use_list_positions_from_before_the_update,
        add_increments_numbers_and_extends_sets,
        delete_removes_elements_from_sets,
        clauses_can_be_combined,
        creates_a_missing_item,
        empty_update_creates_an_item_with_its_key,
        removing_from_a_missing_item_does_not_create_it,
        key_attributes_cannot_be_changed,
        writes_only_if_the_condition_is_met,
        condition_is_checked_before_the_update_is_applied,
        paths_must_not_overlap_or_conflict,
        operands_are_validated_before_the_table_is_looked_up,
        key_must_match_the_key_schema,
    }
    update_returns {
        return_values_select_the_returned_attributes,
        nothing_is_returned_for_missing_attributes,
        returns_only_the_updated_parts_of_documents,
    }
    conditions {
        equality_compares_type_and_value,
        inequality_is_true_for_other_types_and_missing_values,
        ordering_compares_only_values_of_one_type,
        between_includes_both_bounds,
        in_matches_any_listed_value,
        logical_operators_nest,
        attribute_exists_checks_the_path,
        attribute_type_matches_exactly,
        begins_with_supports_strings_and_binary,
        contains_supports_strings_binary_sets_and_lists,
        size_counts_characters_bytes_and_elements,
        missing_item_is_evaluated_as_an_empty_item,
        operand_types_are_validated,
        between_bounds_must_have_one_type_and_be_in_order,
        operands_must_be_distinct,
    }
    query {
        reads_one_partition_in_order,
        reads_backward,
        empty_partition_returns_an_empty_page,
        sort_key_supports_every_operator,
        numbers_are_sorted_by_value,
        strings_are_sorted_by_utf8_bytes,
        binary_is_sorted_as_unsigned_bytes,
        begins_with_selects_a_prefix,
        number_partition_keys_are_compared_by_value,
        table_without_sort_key_can_be_queried,
        filter_is_applied_after_reading,
        filter_may_use_attributes_outside_the_projection,
        filter_must_not_use_key_attributes,
        returns_only_selected_attributes,
        select_must_match_the_request,
        key_condition_must_match_the_key_schema,
        key_values_must_not_be_empty,
        begins_with_rejects_numbers,
        between_bounds_must_be_in_order,
        consistent_reads_see_completed_writes,
        missing_table_or_index_is_reported,
        values_of_every_type_are_returned,
    }
    scan {
        reads_every_item_once,
        pages_contain_every_item_once,
        partitions_are_contiguous_and_sorted,
        empty_table_returns_an_empty_page,
        filter_may_use_key_attributes,
        segments_partition_the_table,
        items_of_a_partition_are_in_one_segment,
        segments_must_be_in_range,
        start_key_must_belong_to_the_segment,
        count_returns_no_items,
        projects,
        deleted_items_are_not_returned,
        consistent_reads_see_completed_writes,
        missing_table_or_index_is_reported,
    }
    paging {
        page_ends_at_the_limit,
        page_that_ends_with_the_last_item_has_a_last_key,
        backward_pages_continue_backward,
        pages_of_a_range_stay_in_the_range,
        start_key_need_not_exist,
        items_may_be_deleted_between_pages,
        start_key_must_match_the_key_schema,
        start_key_must_be_within_the_query,
        limit_is_at_least_one,
        page_ends_after_the_item_that_reaches_a_megabyte,
        page_size_is_counted_before_filter_and_projection,
        large_tables_are_scanned_in_pages_of_a_megabyte,
        query_for_one_row_cannot_be_continued_elsewhere,
        paging_continues_after_reopening,
    }
    indexes {
        global_index_has_its_own_partitions_and_order,
        indexes_are_sparse,
        index_entries_follow_their_items,
        failed_write_does_not_change_the_index,
        index_projections_select_attributes,
        projected_attributes_follow_their_item,
        global_index_returns_only_projected_attributes,
        global_index_rejects_consistent_reads,
        items_may_share_an_index_key,
        last_key_of_an_index_page_contains_both_keys,
        start_key_of_an_index_page_must_contain_both_keys,
        global_index_may_have_no_sort_key,
        index_may_use_table_key_attributes,
        index_key_types_are_validated,
        index_keys_must_not_be_empty,
        filters_and_projections_work_on_indexes,
        indexes_survive_reopening,
        segments_partition_an_index,
    }
    local_indexes {
        sorts_a_partition_by_another_attribute,
        supports_consistent_reads,
        fetches_unprojected_attributes_from_the_table,
    }
    multi_attribute_indexes {
        index_keys_may_have_several_attributes if MultiAttributeKeys,
        conditions_on_several_attributes_must_be_contiguous if MultiAttributeKeys,
        key_attributes_are_compared_separately if MultiAttributeKeys,
    }
    batch {
        get_reads_from_several_tables,
        get_lists_tables_without_results,
        get_supports_a_projection_for_each_table,
        get_rejects_duplicates,
        get_accepts_up_to_a_hundred_keys,
        get_validates_every_key,
        get_returns_keys_beyond_sixteen_megabytes_as_unprocessed,
        write_puts_and_deletes,
        write_rejects_duplicates,
        write_accepts_up_to_25_items,
        write_validates_everything_before_writing,
        write_stores_every_type_of_value,
    }
    transact {
        applies_every_action if Transactions,
        applies_nothing_if_one_condition_fails if Transactions,
        reports_every_failed_condition if Transactions,
        update_errors_are_cancellation_reasons if Transactions,
        exceeded_item_size_is_a_cancellation_reason if Transactions,
        wrong_index_key_type_is_a_cancellation_reason if Transactions,
        duplicate_items_are_rejected if Transactions,
        accepts_up_to_a_hundred_actions if Transactions,
        accepts_up_to_four_megabytes if Transactions,
        invalid_request_is_rejected_before_anything_is_applied if Transactions,
        wrong_key_cancels_the_transaction if Transactions,
        first_invalid_action_is_the_only_reason if Transactions,
        empty_index_key_in_an_update_is_rejected if Transactions,
        indexes_change_with_the_transaction if Transactions,
    }
    transact_get {
        returns_items_in_the_order_of_the_request if Transactions,
        item_without_projected_attributes_is_none if Transactions,
        accepts_up_to_a_hundred_items if Transactions,
        rejects_duplicates_and_missing_tables if Transactions,
        wrong_key_cancels_the_transaction if Transactions,
        reads_up_to_four_megabytes if Transactions,
    }
    tokens {
        put_with_token_is_applied_once if WriteTokens,
        update_with_token_is_applied_once if WriteTokens,
        delete_with_token_is_applied_once if WriteTokens,
        repeated_write_returns_the_same_response if WriteTokens,
        write_tokens_expire_after_half_a_minute if WriteTokens && ManualClock,
        failed_write_does_not_consume_its_token if WriteTokens,
        transaction_with_token_is_applied_once if Transactions,
        transaction_tokens_expire_after_ten_minutes if Transactions && ManualClock,
        canceled_transaction_does_not_consume_its_token if Transactions,
        tokens_have_1_to_36_characters if Transactions,
    }
    tables {
        new_table_is_described,
        descriptions_count_items_and_bytes,
        table_names_are_unique,
        deleting_a_table_deletes_its_items,
        protected_tables_cannot_be_deleted,
        tables_are_listed_in_order_and_pages,
        table_listing_limit_is_1_to_100,
        tables_survive_reopening,
        names_have_3_to_255_characters,
        keys_must_be_well_formed,
        indexes_must_be_well_formed,
        number_of_indexes_is_limited,
        missing_tables_are_reported,
    }
    table_changes {
        added_index_is_backfilled,
        backfill_handles_many_items,
        index_can_be_removed_and_added_again,
        invalid_index_changes_are_rejected,
        billing_and_table_class_can_be_changed,
        tags_can_be_added_and_removed,
    }
    streams {
        records_describe_changes if Streams,
        stream_view_selects_the_images if Streams,
        write_without_change_is_not_recorded if Streams,
        failed_writes_are_not_recorded if Streams,
        batches_and_transactions_are_recorded_for_each_item if Streams,
        repeated_token_is_not_recorded if Streams && Transactions,
        changes_of_an_item_are_recorded_once_and_in_order if Streams,
        stream_is_described if Streams,
        disabled_stream_can_be_read_to_its_end if Streams,
        enabling_again_creates_a_new_stream if Streams,
        stream_cannot_be_enabled_or_disabled_twice if Streams,
        stream_outlives_its_table if Streams,
        images_contain_every_type_of_value if Streams,
    }
    stream_reading {
        sequence_numbers_are_ascending if Streams,
        iterators_start_at_the_requested_position if Streams,
        reading_continues_after_the_last_record if Streams,
        limit_bounds_the_records_of_a_page if Streams,
        streams_are_listed if Streams,
        unknown_streams_and_shards_are_not_found if Streams,
        iterators_expire_after_fifteen_minutes if Streams && ManualClock,
        held_changes_are_not_trimmed if Streams && ChangeHolds && ManualClock,
        consumer_names_have_1_to_255_bytes if Streams && ChangeHolds,
    }
    ttl {
        expired_items_are_removed if Expiry && ManualClock,
        only_timestamps_of_the_last_five_years_expire if Expiry && ManualClock,
        expiry_follows_changes_of_the_item if Expiry && ManualClock,
        expired_items_are_removed_from_indexes if Expiry && ManualClock,
        expiry_is_recorded_in_the_stream if Expiry && Streams && ManualClock,
        enabling_expiry_applies_to_existing_items if Expiry && ManualClock,
        disabled_expiry_removes_nothing if Expiry && ManualClock,
        expiry_cannot_be_enabled_or_disabled_twice if Expiry,
        expiry_removes_many_items if Expiry && ManualClock,
    }
    capacity {
        get_is_charged_per_4_kilobytes,
        projection_does_not_reduce_the_cost,
        writes_are_charged_per_kilobyte,
        updates_are_charged_for_the_whole_item,
        deletes_are_charged_for_the_old_item,
        changed_index_entries_are_charged,
        total_omits_the_costs_of_indexes,
        queries_are_charged_for_everything_read,
        index_reads_are_charged_to_the_index,
        batches_cost_the_sum_of_their_items,
        transactions_cost_double if Transactions,
        indexes_cost_the_same_in_a_transaction if Transactions,
        repeated_transaction_is_charged_as_a_read if Transactions,
        collections_are_measured_with_local_indexes,
    }
    limits {
        items_have_at_most_400_kilobytes,
        update_cannot_exceed_the_item_size,
        partition_keys_have_at_most_2048_bytes,
        sort_keys_have_at_most_1024_bytes,
        index_keys_have_the_same_limits,
        query_keys_have_the_same_limits,
        keys_must_not_be_empty,
        values_nest_at_most_32_levels,
        update_cannot_exceed_the_nesting_limit,
        numbers_have_at_most_38_digits,
        in_accepts_at_most_100_values,
        expressions_have_at_most_300_operators,
        paths_have_at_most_32_steps,
    }
    bad_input {
        malformed_expressions_are_rejected,
        malformed_updates_are_rejected,
        unused_placeholders_are_rejected,
        deep_expressions_do_not_overflow_the_stack,
        malformed_numbers_are_rejected,
        duplicate_set_elements_are_rejected,
        attribute_names_must_not_be_empty,
        attribute_names_in_operands_must_not_be_empty,
        paths_into_keys_are_rejected,
        large_list_indexes_are_rejected,
        wrong_function_operands_are_rejected,
        every_operation_validates_the_table_name,
        wrong_key_types_are_rejected,
        long_attribute_names_are_rejected,
        unusual_strings_are_stored_unchanged,
    }
    concurrency {
        concurrent_increments_are_not_lost,
        one_of_many_conditional_creates_succeeds,
        optimistic_locking_prevents_lost_updates,
        transfers_preserve_the_sum if Transactions,
        swaps_preserve_both_values if Transactions,
        page_of_a_partition_is_a_consistent_snapshot if Transactions,
        token_shared_by_many_clients_is_applied_once if Transactions,
        indexes_and_streams_match_concurrent_writes,
        concurrent_creates_make_one_table,
    }
}
