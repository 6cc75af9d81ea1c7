//! Settings of billing, scaling and encryption, in CreateTable and UpdateTable.

use floe_store::op::{CreateTable, IndexUpdate, ScalingUpdate, UpdateTable};
use floe_store::table::{
    Billing, Encryption, OnDemandThroughput, Scaling, TableClass, TableHistory, Throughput,
};
use floe_store::{Result, TableDef, Timestamp};

use crate::create_table::{UNITS, global, hash, invalid};
use crate::{expect, expect_code, orders, simple};

const WARM: Throughput = Throughput {
    read: 12_000,
    write: 4_000,
};

fn limits(read: u64, write: u64) -> OnDemandThroughput {
    OnDemandThroughput {
        read_max: Some(read),
        write_max: Some(write),
    }
}

fn update(change: impl FnOnce(&mut UpdateTable)) -> UpdateTable {
    let mut update = UpdateTable::new("Simple");
    change(&mut update);
    update
}

fn created(scaling: Scaling, billing: Billing) -> Result<TableDef> {
    let table = CreateTable {
        scaling,
        billing,
        ..CreateTable::from(simple())
    };
    table.definition()
}

#[test]
fn new_table_validates_limits_and_warm_throughput() {
    let provisioned = Billing::Provisioned(UNITS);
    let on_demand = |on_demand| Scaling {
        on_demand,
        warm: None,
    };
    let warm = |read, write| Scaling {
        warm: Some(Throughput { read, write }),
        ..Scaling::default()
    };
    let lower = |units: &str, than: &str| {
        invalid(&format!(
            "Requested {units}UnitsPerSecond for WarmThroughput for table is lower than {than}"
        ))
    };
    let initial = "initial throughput for OnDemand. See: https://docs.aws.amazon.com/amazondynamodb/\
                   latest/developerguide/on-demand-capacity-mode.html#on-demand-capacity-mode-initial";
    for (scaling, billing, expected) in [
        (on_demand(limits(1, 1)), Billing::OnDemand, String::new()),
        (warm(12_000, 4_000), Billing::OnDemand, String::new()),
        (warm(5, 5), provisioned, String::new()),
        (
            on_demand(limits(0, 0)),
            Billing::OnDemand,
            invalid(
                "Requested MaxReadRequestUnits for OnDemandThroughput for table is outside of valid \
                 range",
            ),
        ),
        (
            on_demand(limits(1, 0)),
            Billing::OnDemand,
            invalid(
                "Requested MaxWriteRequestUnits for OnDemandThroughput for table is outside of valid \
                 range",
            ),
        ),
        (
            on_demand(limits(0, 1)),
            provisioned,
            invalid(
                "MaxReadRequestUnits for OnDemandThroughput cannot be specified when table \
                 BillingMode is PROVISIONED.",
            ),
        ),
        (warm(11_999, 1), Billing::OnDemand, lower("Read", initial)),
        (
            warm(12_000, 3_999),
            Billing::OnDemand,
            lower("Write", initial),
        ),
        (
            warm(4, 5),
            provisioned,
            lower("Read", "ReadCapacityUnits of ProvisionedThroughput"),
        ),
    ] {
        expect(created(scaling, billing), &expected);
    }
    let index = floe_store::op::CreateIndex {
        scaling: on_demand(limits(0, 1)),
        ..global("by_id", vec![hash("id")])
    };
    let table = CreateTable {
        indexes: vec![index],
        ..CreateTable::from(simple())
    };
    expect(
        table.definition(),
        &invalid(
            "Requested MaxReadRequestUnits for OnDemandThroughput for index : by_id is outside of \
             valid range",
        ),
    );
}

#[test]
fn on_demand_limits_are_set_and_removed_individually() {
    let scale = |read_max, write_max| {
        update(|u| {
            u.scaling = ScalingUpdate {
                read_max,
                write_max,
                ..ScalingUpdate::default()
            };
        })
    };
    let table = scale(Some(Some(10)), None).apply(&simple()).unwrap();
    assert_eq!(table.scaling.on_demand.read_max, Some(10));
    let table = scale(None, Some(Some(5))).apply(&table).unwrap();
    assert_eq!(table.scaling.on_demand, limits(10, 5));
    let table = scale(Some(None), None).apply(&table).unwrap();
    assert_eq!(table.scaling.on_demand.read_max, None);
    assert_eq!(table.scaling.on_demand.write_max, Some(5));
    expect(
        scale(Some(Some(0)), None).apply(&table),
        &invalid(
            "Requested MaxReadRequestUnits for OnDemandThroughput for table is outside of valid range",
        ),
    );
    let paid = update(|u| u.billing = Some(Billing::Provisioned(UNITS)));
    let paid = paid.apply(&table).unwrap();
    assert_eq!(paid.scaling.on_demand, OnDemandThroughput::default());
    expect(
        scale(None, Some(Some(1))).apply(&paid),
        &invalid(
            "MaxWriteRequestUnits for OnDemandThroughput cannot be specified when the table \
             BillingMode is PROVISIONED",
        ),
    );
}

#[test]
fn warm_throughput_cannot_decrease() {
    let warm = |read, write| {
        update(|u| {
            u.scaling = ScalingUpdate {
                warm_read: read,
                warm_write: write,
                ..ScalingUpdate::default()
            };
        })
    };
    let table = warm(None, Some(5_000)).apply(&simple()).unwrap();
    let effective = |table: &TableDef| table.scaling.warm_throughput(table.billing);
    assert_eq!(
        effective(&table),
        Throughput {
            write: 5_000,
            ..WARM
        }
    );
    expect(
        warm(Some(12_001), Some(4_999)).apply(&table),
        &invalid(
            "Requested WriteUnitsPerSecond for WarmThroughput for table is lower than current \
             WarmThroughput, decreasing WarmThroughput is not supported",
        ),
    );
    // Throughput reached with another billing mode is kept as well.
    let pay =
        |table: &TableDef, billing| update(|u| u.billing = Some(billing)).apply(table).unwrap();
    let paid = pay(&table, Billing::Provisioned(UNITS));
    assert_eq!(
        effective(&paid),
        Throughput {
            write: 5_000,
            ..WARM
        }
    );
    let made = created(Scaling::default(), Billing::Provisioned(UNITS)).unwrap();
    assert_eq!(effective(&made), UNITS);
    let more = pay(
        &made,
        Billing::Provisioned(Throughput { read: 9, write: 1 }),
    );
    assert_eq!(effective(&more), Throughput { read: 9, write: 5 });
    assert_eq!(effective(&pay(&more, Billing::OnDemand)), WARM);
}

#[test]
fn indexes_have_separate_scaling() {
    let scale = |name: &str, scaling| UpdateTable {
        indexes: vec![IndexUpdate::Scale(name.to_owned(), scaling)],
        ..UpdateTable::new("Orders")
    };
    let limit = ScalingUpdate {
        read_max: Some(Some(7)),
        ..ScalingUpdate::default()
    };
    let table = scale("by_product", limit).apply(&orders()).unwrap();
    let index = table.index("by_product").unwrap();
    assert_eq!(index.scaling.on_demand.read_max, Some(7));
    expect_code(
        scale("none", limit).apply(&orders()),
        "ResourceNotFoundException",
        "Requested resource not found: Index none for table Orders",
    );
    let cold = ScalingUpdate {
        warm_read: Some(1),
        ..ScalingUpdate::default()
    };
    expect(
        scale("by_product", cold).apply(&orders()),
        &invalid(
            "Requested ReadUnitsPerSecond for WarmThroughput for index by_product is lower than \
             current WarmThroughput, decreasing WarmThroughput is not supported",
        ),
    );
}

#[test]
fn table_class_is_reported_once_it_was_set() {
    let choose = |class, table: &TableDef| update(|u| u.class = Some(class)).apply(table).unwrap();
    let standard = choose(TableClass::Standard, &simple());
    assert_eq!(standard.class, None);
    let infrequent = choose(TableClass::StandardInfrequentAccess, &standard);
    assert_eq!(infrequent.class, Some(TableClass::StandardInfrequentAccess));
    let back = choose(TableClass::Standard, &infrequent);
    assert_eq!(back.class, Some(TableClass::Standard));
}

#[test]
fn encryption_can_be_changed() {
    let key = |key: Option<&str>| {
        Some(Encryption {
            key: key.map(str::to_owned),
        })
    };
    let switch =
        |encryption, table: &TableDef| update(|u| u.encryption = Some(encryption)).apply(table);
    let managed = switch(key(None), &simple()).unwrap();
    assert_eq!(managed.encryption, key(None));
    let own = switch(key(Some("k")), &managed).unwrap();
    assert_eq!(switch(None, &own).unwrap().encryption, None);
    expect(
        switch(None, &simple()),
        &invalid("Table is already encrypted by default"),
    );
    expect(
        switch(key(Some("k")), &own),
        &invalid(
            "Table is already encrypted with given KMSMasterKeyId. Use KMSMasterKeyId parameter if \
             you want to change Master Key",
        ),
    );
}

#[test]
fn some_settings_must_be_changed_separately() {
    let on_demand = ScalingUpdate {
        read_max: Some(Some(1)),
        ..ScalingUpdate::default()
    };
    let warm = ScalingUpdate {
        warm_read: Some(1),
        ..ScalingUpdate::default()
    };
    let only = |what: &str| invalid(&format!("{what} must be the only operation in the request"));
    for (request, expected) in [
        (
            update(|u| {
                u.encryption = Some(None);
                u.deletion_protection = Some(true);
            }),
            only("Server-Side Encryption modification"),
        ),
        (
            update(|u| {
                u.scaling = on_demand;
                u.deletion_protection = Some(true);
            }),
            only("DeletionProtection modification"),
        ),
        (
            update(|u| {
                u.scaling = warm;
                u.class = Some(TableClass::Standard);
            }),
            only("TableClass modification"),
        ),
        (
            update(|u| {
                u.scaling = warm;
                u.stream = Some(None);
            }),
            only("WarmThroughput"),
        ),
        (
            update(|u| {
                u.scaling = on_demand;
                u.stream = Some(None);
            }),
            invalid(
                "OnDemandThroughput can only be combined with BillingMode in an UpdateTable request",
            ),
        ),
        (
            update(|u| {
                u.scaling = on_demand;
                u.billing = Some(Billing::OnDemand);
            }),
            String::new(),
        ),
    ] {
        expect(request.validate(), &expected);
    }
}

#[test]
fn history_records_changes_of_settings() {
    let units = |read, write| TableDef {
        billing: Billing::Provisioned(Throughput { read, write }),
        ..simple()
    };
    let at = |hours: u64| Timestamp::from_millis(hours * 60 * 60 * 1000);
    let new = TableHistory::for_new_table(&simple(), at(1));
    assert_eq!(new.on_demand, Some(at(1)));
    let paid = TableHistory::for_new_table(&units(5, 5), at(1));
    assert_eq!(paid, TableHistory::default());
    let mixed = paid.after(&units(5, 5), &units(6, 4), at(2));
    assert_eq!((mixed.increase, mixed.decrease), (Some(at(2)), Some(at(2))));
    let lower = mixed.after(&units(6, 4), &units(6, 3), at(3));
    assert_eq!((lower.increase, lower.decrease), (Some(at(2)), Some(at(3))));
    assert_eq!(lower.decreases_on(at(23)), 2);
    assert_eq!(lower.decreases_on(at(24)), 0);
    let next_day = lower.after(&units(6, 3), &units(1, 1), at(25));
    assert_eq!(next_day.decreases_on(at(26)), 1);
    let switched = next_day.after(&units(1, 1), &simple(), at(27));
    assert_eq!(switched.on_demand, Some(at(27)));
}
