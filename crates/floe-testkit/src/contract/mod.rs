//! The contract suite: what every engine answers, one file per subject.
//!
//! An engine's tests hand a [`Harness`] maker to [`contract_suite!`](crate::contract_suite), which
//! expands to one test per case, so that a failure names the rule that was broken:
//!
//! ```
//! mod contract {
//!     floe_testkit::contract_suite!(|| async { floe_testkit::model::ModelHarness::new(1) });
//! }
//! ```
//!
//! Where engines may differ, the list of cases says what a case needs: a
//! [capability](floe_store::Engine::capabilities) or a [clock](Harness::clock) of the test's own. Without it, the case,
//! or a part of it, is left out. Messages are compared
//! by the part that tells the fault, since DynamoDB itself sends them in more than one envelope.
//!
//! A store that is not ours to change may differ where it says nothing about it. What is known is listed, each with
//! what one sees and the reason; a case that is listed and passes fails, so that the list stays true:
//!
//! ```
//! mod contract {
//!     use floe_testkit::contract::Difference;
//!
//!     const DIFFERENCES: &[Difference] = &[Difference {
//!         case: "scan::projects",
//!         seen: "left: [{}]",
//!         reason: "the store answers all attributes",
//!     }];
//!
//!     floe_testkit::contract_suite!(
//!         || async { floe_testkit::model::ModelHarness::new(1) },
//!         DIFFERENCES
//!     );
//! }
//! ```
//!
//! What is not here: random sequences of operations, which the [model](crate::model) judges.

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

/// A rule that every engine keeps.
#[derive(Clone, Copy)]
pub struct Case {
    /// The subject and the rule, as `subject::rule`.
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
    /// Runs the case on a fresh engine, if that has what the case needs.
    ///
    /// # Panics
    ///
    /// When the engine breaks the rule.
    pub async fn run(&self, harness: impl Harness + 'static) {
        let Self { needs, run, .. } = *self;
        let mut fixture = Fixture::new(Box::new(harness));
        let case = move || {
            if needs.iter().all(|need| fixture.has(*need)) {
                run(&mut fixture);
            }
        };
        // A case waits for each operation, which only a thread of its own may do.
        if let Err(error) = tokio::task::spawn_blocking(case).await {
            resume_unwind(error.into_panic());
        }
    }
}

/// A rule that a store is known to break.
#[derive(Clone, Copy, Debug)]
pub struct Difference {
    /// The name of the case.
    pub case: &'static str,
    /// What the case says then, or a part of it.
    pub seen: &'static str,
    /// What the store does, and what it should.
    pub reason: &'static str,
}

/// Runs the case of that name on the engine that `make` makes, on a runtime of its own. What
/// [`contract_suite!`](crate::contract_suite) expands to.
///
/// # Panics
///
/// When there is no such case, or when the engine breaks its rule.
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
    let runtime = runtime.expect("a runtime can be started");
    runtime.block_on(async { case.run(make().await).await });
}

/// As [`run`], but a case that is listed among the differences must fail, as the list says.
///
/// # Panics
///
/// When there is no such case; when the engine breaks a rule that is not listed, or in another way; when it keeps
/// one that is.
pub fn run_but<H, F>(name: &str, make: impl FnOnce() -> F, differences: &[Difference])
where
    H: Harness + 'static,
    F: Future<Output = H>,
{
    let Some(difference) = differences.iter().find(|known| known.case == name) else {
        return run(name, make);
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| run(name, make)));
    let Err(panic) = outcome else {
        panic!("the store keeps the rule by now; take it off the list: {difference:?}");
    };
    let said = match panic.downcast_ref::<String>() {
        Some(text) => text.as_str(),
        None => panic.downcast_ref::<&str>().copied().unwrap_or_default(),
    };
    assert!(
        said.contains(difference.seen),
        "the store breaks the rule in another way: {difference:?}"
    );
}

/// Refuses a list of differences that names what is no case.
///
/// # Panics
///
/// When there is such a name.
pub fn check_names(differences: &[Difference]) {
    let cases = cases();
    for difference in differences {
        let is_case = cases.iter().any(|case| case.name == difference.case);
        assert!(is_case, "no such case: name={}", difference.case);
    }
}

macro_rules! suite {
    ($d:tt $($subject:ident { $($case:ident $(if $($need:ident)&&+)?,)* })*) => {
        /// All cases, subject by subject.
        pub fn cases() -> Vec<Case> {
            vec![$($(Case {
                name: concat!(stringify!($subject), "::", stringify!($case)),
                needs: &[$($(Need::$need),+)?],
                run: $subject::$case,
            },)*)*]
        }

        /// Expands to one test for each case of the [contract suite](crate::contract).
        ///
        /// Takes a function without arguments that returns a future of a fresh
        /// [`Harness`](crate::Harness), and the [differences](crate::contract::Difference) that are known, if
        /// there are any.
        #[macro_export]
        macro_rules! contract_suite {
            ($d make:expr) => {
                $crate::contract_suite!($d make, &[]);
            };
            ($d make:expr, $d differences:expr) => {
                #[test]
                fn differences_are_of_cases() {
                    $crate::contract::check_names($d differences);
                }
                $(
                    mod $subject {
                        #[allow(unused_imports, reason = "the maker may need nothing from around it")]
                        use super::*;
                        $(
                            #[test]
                            fn $case() {
                                let name = concat!(stringify!($subject), "::", stringify!($case));
                                $crate::contract::run_but(name, $d make, $d differences);
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
        keeps_items_of_different_keys_apart,
        number_keys_are_equal_by_value,
        keys_may_be_binary,
        returns_the_old_item_when_asked,
        returns_nothing_but_the_old_item,
        writes_only_if_the_condition_holds,
        a_failed_condition_returns_the_item_when_asked,
        a_missing_table_is_not_found,
        the_request_is_checked_before_the_table_is_looked_up,
        the_item_carries_its_key,
    }
    get {
        a_missing_item_is_no_error,
        reads_consistently_and_eventually,
        sees_every_write_answered_before,
        returns_only_the_projected_attributes,
        projects_into_documents,
        names_with_dots_are_one_attribute,
        the_key_must_be_exactly_the_tables,
        projected_paths_must_not_overlap,
        a_missing_table_is_not_found,
        reserved_words_are_names_like_any_other_in_trees,
    }
    delete {
        removes_the_item_and_no_other,
        a_missing_item_is_no_error,
        returns_the_old_item_when_asked,
        returns_nothing_but_the_old_item,
        removes_only_if_the_condition_holds,
        a_condition_on_a_missing_item_sees_an_empty_one,
        the_key_must_be_exactly_the_tables,
        an_item_can_come_back,
    }
    update {
        set_makes_and_replaces_attributes,
        set_copies_other_attributes_as_they_were,
        set_computes_sums_and_differences,
        sums_must_fit_a_number,
        if_not_exists_takes_the_first_value_there_is,
        list_append_joins_lists_in_either_order,
        set_reaches_into_documents,
        remove_takes_attributes_and_elements_away,
        remove_and_set_on_one_list_use_the_old_positions,
        add_counts_and_unites,
        delete_takes_elements_out_of_sets,
        clauses_combine,
        makes_the_item_if_it_is_not_there,
        an_empty_update_makes_an_item_of_its_key,
        removing_from_a_missing_item_does_not_make_it,
        key_attributes_cannot_be_changed,
        writes_only_if_the_condition_holds,
        the_condition_is_checked_before_the_update_is_applied,
        paths_must_not_overlap_or_conflict,
        operands_are_checked_before_the_table_is_looked_up,
        the_key_must_be_exactly_the_tables,
    }
    update_returns {
        returns_what_was_asked_for,
        returns_nothing_where_there_is_nothing,
        returns_only_the_updated_parts_of_documents,
    }
    conditions {
        equality_is_by_type_and_value,
        inequality_holds_between_types_and_for_missing_values,
        order_is_within_a_type,
        between_includes_both_ends,
        in_is_any_equality,
        logic_nests,
        existence_is_about_the_path,
        attribute_type_is_exact,
        begins_with_takes_text_and_bytes,
        contains_looks_into_text_sets_and_lists,
        size_measures_text_bytes_and_members,
        a_missing_item_is_an_empty_one,
        operands_are_checked_by_type,
        the_bounds_of_between_must_fit_each_other,
        operands_must_be_distinct,
    }
    query {
        reads_one_partition_in_order,
        reads_backward,
        an_empty_partition_is_an_empty_page,
        each_operator_of_the_sort_key,
        numbers_sort_by_value,
        text_sorts_by_its_bytes,
        binary_sorts_as_unsigned_bytes,
        begins_with_reads_a_prefix,
        numbers_and_bytes_part_too,
        a_table_without_sort_key_can_be_queried,
        filters_after_reading,
        filters_see_more_than_the_projection,
        filters_leave_the_key_to_the_key_condition,
        returns_only_what_was_selected,
        selections_must_fit,
        key_conditions_must_fit_the_key,
        key_values_must_not_be_empty,
        begins_with_needs_text_or_bytes,
        bounds_must_be_in_order,
        sees_every_write_answered_before,
        a_missing_table_or_index_is_named,
        values_of_any_type_come_back,
    }
    scan {
        reads_every_item_once,
        pages_hold_every_item_once,
        partitions_come_whole_and_in_order,
        an_empty_table_is_an_empty_page,
        filters_may_use_the_key,
        segments_part_the_table,
        segments_of_one_partition_key_stay_together,
        segments_must_be_in_range,
        a_start_key_must_belong_to_the_segment,
        counts_without_items,
        projects,
        deleted_items_are_gone,
        sees_every_write_answered_before,
        a_missing_table_or_index_is_named,
    }
    paging {
        a_page_ends_at_the_limit,
        a_page_that_ends_with_the_last_item_still_says_where,
        backward_pages_go_on_backward,
        a_page_of_a_range_stays_in_it,
        the_start_key_need_not_exist,
        items_deleted_between_pages_do_not_disturb,
        the_start_key_must_be_a_key,
        the_start_key_must_lie_in_the_query,
        limits_are_at_least_one,
        a_page_ends_with_the_item_that_reaches_a_megabyte,
        the_megabyte_is_counted_before_filter_and_projection,
        large_tables_scan_by_megabytes,
        a_query_of_one_row_ends_with_it,
        pages_go_on_after_reopening,
    }
    indexes {
        a_global_index_has_its_own_partitions_and_order,
        an_index_is_sparse,
        entries_follow_their_items,
        a_failed_write_leaves_the_index_alone,
        projections_copy_what_they_say,
        a_copied_attribute_follows_its_item,
        a_global_index_gives_only_what_it_copies,
        a_global_index_is_read_eventually,
        many_items_may_share_an_index_key,
        the_last_key_of_an_index_page_holds_both_keys,
        the_start_key_of_an_index_page_holds_both_keys,
        a_global_index_need_not_have_a_sort_key,
        an_index_may_use_attributes_of_the_tables_key,
        index_keys_must_have_their_type,
        index_keys_must_not_be_empty,
        filters_and_projections_work_on_indexes,
        indexes_survive_reopening,
        segments_part_an_index_too,
    }
    local_indexes {
        orders_a_partition_anew,
        is_read_consistently_when_asked,
        fetches_what_it_has_not_copied,
    }
    multi_attribute_indexes {
        several_attributes_may_form_an_index_key if MultiAttributeKeys,
        conditions_on_several_attributes_go_left_to_right if MultiAttributeKeys,
        attributes_of_a_key_do_not_run_into_each_other if MultiAttributeKeys,
    }
    batch {
        get_reads_from_several_tables,
        get_names_tables_without_hits,
        get_projects_by_table,
        get_refuses_duplicates,
        get_takes_up_to_a_hundred_keys,
        get_checks_every_key,
        get_leaves_over_what_exceeds_sixteen_megabytes,
        write_puts_and_deletes,
        write_refuses_duplicates,
        write_takes_up_to_25_items,
        write_checks_everything_before_it_writes,
        write_takes_whole_items,
    }
    transact {
        applies_every_action if Transactions,
        applies_nothing_if_one_condition_fails if Transactions,
        names_every_failed_condition if Transactions,
        faults_of_an_action_are_reasons_too if Transactions,
        an_item_grown_too_large_is_a_reason if Transactions,
        index_keys_of_a_wrong_type_are_reasons if Transactions,
        each_item_comes_once if Transactions,
        takes_up_to_a_hundred_actions if Transactions,
        takes_up_to_four_megabytes if Transactions,
        faults_of_the_request_are_found_before_anything if Transactions,
        keys_that_do_not_fit_cancel_it if Transactions,
        the_first_action_that_is_wrong_for_its_table_is_the_only_reason if Transactions,
        an_update_that_empties_an_index_key_refuses_it if Transactions,
        indexes_change_with_the_transaction if Transactions,
    }
    transact_get {
        answers_in_the_order_of_the_request if Transactions,
        an_item_of_which_nothing_is_asked_for_is_none if Transactions,
        takes_up_to_a_hundred_items if Transactions,
        refuses_duplicates_and_missing_tables if Transactions,
        a_wrong_key_cancels_it if Transactions,
        reads_up_to_four_megabytes if Transactions,
    }
    tokens {
        a_put_applies_once if WriteTokens,
        an_update_applies_once if WriteTokens,
        a_delete_applies_once if WriteTokens,
        a_write_is_answered_as_before if WriteTokens,
        tokens_of_writes_are_forgotten_after_half_a_minute if WriteTokens && OwnedTime,
        a_failed_write_does_not_use_up_its_token if WriteTokens,
        a_transaction_applies_once if Transactions,
        tokens_of_transactions_are_forgotten_after_ten_minutes if Transactions && OwnedTime,
        a_canceled_transaction_does_not_use_up_its_token if Transactions,
        tokens_have_1_to_36_characters if Transactions,
    }
    tables {
        a_new_table_is_described,
        descriptions_count_items_and_bytes,
        a_name_is_taken_once,
        a_deleted_table_is_gone_with_its_items,
        protected_tables_are_not_deleted,
        tables_are_listed_in_order_by_pages,
        listings_have_1_to_100_names,
        tables_survive_reopening,
        names_have_3_to_255_characters,
        keys_must_be_well_formed,
        indexes_must_be_well_formed,
        a_table_has_at_most_so_many_indexes,
        missing_tables_are_named,
    }
    table_changes {
        an_index_added_later_is_filled,
        an_index_may_be_filled_with_many_items,
        an_index_can_be_removed_and_added_again,
        index_changes_must_make_sense,
        settings_change,
        tags_come_and_go,
    }
    streams {
        records_tell_what_happened if Streams,
        the_view_says_which_images_there_are if Streams,
        a_write_that_changes_nothing_leaves_no_record if Streams,
        failed_writes_leave_no_record if Streams,
        batches_and_transactions_are_recorded_item_by_item if Streams,
        a_token_seen_before_leaves_no_record if Streams && Transactions,
        changes_of_an_item_come_in_order_and_once if Streams,
        a_stream_is_described if Streams,
        a_switched_off_stream_can_be_read_to_its_end if Streams,
        switching_on_again_makes_a_new_stream if Streams,
        a_stream_is_switched_once if Streams,
        a_stream_outlives_its_table if Streams,
        images_hold_every_type if Streams,
    }
    stream_reading {
        sequence_numbers_grow if Streams,
        iterators_start_where_they_say if Streams,
        reading_goes_on_where_it_stopped if Streams,
        a_limit_bounds_the_records if Streams,
        streams_are_listed if Streams,
        unknown_streams_and_shards_are_not_found if Streams,
        iterators_expire_after_fifteen_minutes if Streams && OwnedTime,
        held_changes_are_kept if Streams && ChangeHolds && OwnedTime,
        consumers_have_names_of_1_to_255_bytes if Streams && ChangeHolds,
    }
    ttl {
        expired_items_are_swept if Expiry && OwnedTime,
        only_numbers_of_the_last_five_years_expire if Expiry && OwnedTime,
        expiry_follows_the_item if Expiry && OwnedTime,
        swept_items_leave_the_indexes if Expiry && OwnedTime,
        sweeping_is_told_in_the_stream if Expiry && Streams && OwnedTime,
        expiry_is_switched_on_for_items_that_are_there if Expiry && OwnedTime,
        switched_off_nothing_expires if Expiry && OwnedTime,
        switching_must_change_something if Expiry,
        sweeping_takes_many_items if Expiry && OwnedTime,
    }
    capacity {
        get_is_charged_by_4_kilobytes,
        a_projection_does_not_lower_the_price,
        writes_are_charged_by_kilobyte,
        updates_are_charged_for_the_whole_item,
        deletes_are_charged_for_what_was_there,
        index_entries_are_charged_as_they_change,
        the_total_alone_hides_the_shares,
        queries_are_charged_for_all_they_read,
        index_reads_are_charged_to_the_index,
        batches_are_the_sum_of_their_items,
        transactions_cost_twice if Transactions,
        indexes_cost_the_same_in_a_transaction if Transactions,
        a_replayed_transaction_is_charged_as_a_read if Transactions,
        collections_are_measured_with_local_indexes,
    }
    limits {
        an_item_weighs_at_most_400_kilobytes,
        an_update_cannot_grow_an_item_beyond,
        a_partition_key_has_at_most_2048_bytes,
        a_sort_key_has_at_most_1024_bytes,
        index_keys_have_the_same_limits,
        queries_ask_for_keys_within_the_limits,
        keys_are_not_empty,
        values_nest_32_levels_deep,
        an_update_cannot_nest_deeper,
        numbers_have_38_digits,
        in_takes_100_values,
        expressions_have_300_operators,
        paths_have_32_steps,
    }
    bad_input {
        malformed_expressions_are_refused,
        malformed_updates_are_refused,
        unused_placeholders_are_refused,
        deep_expressions_do_not_overflow,
        numbers_must_be_numbers,
        sets_hold_each_element_once,
        attribute_names_are_not_empty,
        names_inside_operands_are_not_empty,
        keys_are_scalars,
        huge_positions_are_refused,
        wrong_operands_of_functions_are_refused,
        every_operation_checks_the_tables_name,
        wrong_types_in_keys_are_refused,
        long_names_are_refused,
        odd_texts_are_kept_as_they_are,
    }
    concurrency {
        no_increment_is_lost,
        one_of_many_creators_wins,
        optimistic_locks_hold,
        transfers_keep_the_sum if Transactions,
        swaps_never_lose_a_value if Transactions,
        a_page_of_one_partition_is_never_torn if Transactions,
        one_token_applies_once_from_many_clients if Transactions,
        indexes_and_streams_keep_up,
        tables_are_made_once,
    }
}
