//! Random tables and changes of tables.

use floe_store::op::*;
use floe_store::table::StreamView::{KeysOnly, NewAndOldImages, NewImage, OldImage};
use floe_store::table::{
    Billing, IndexKind, KeyKind, Projection, Scaling, StreamView, TableBuilder, TableClass,
    TableDef, Throughput,
};

use super::super::step::Step;
use super::Generator;

/// Names of tables: few, so that tables are deleted and created again under the same name.
const NAMES: [&str; 4] = ["Plain", "Sorted", "Binary", "Numbers"];

const VIEWS: [StreamView; 4] = [KeysOnly, NewImage, OldImage, NewAndOldImages];

/// The table to use if the generator has none.
pub(super) fn default_table() -> TableDef {
    let plain = TableDef::builder("Plain", "pk", KeyKind::S).build();
    plain.unwrap_or_else(|_| unreachable!("the definition is constant and valid"))
}

impl Generator {
    pub(super) fn create_table(&mut self) -> Step {
        let name = self.random.text(&NAMES);
        let Ok(table) = self.table_builder(name).build() else {
            return Step::DescribeTable(name.to_owned());
        };
        if !self.tables.iter().any(|other| other.name == table.name) {
            self.tables.push(table.clone());
        }
        let mut create = CreateTable::from(table);
        create.deletion_protection = self.random.chance(5);
        if self.random.rarely(60) {
            self.invalidate_table(&mut create);
        }
        Step::CreateTable(create)
    }

    /// A table of this name with random features.
    fn table_builder(&self, name: &str) -> TableBuilder {
        use KeyKind::{B, N, S};
        let none: [(&str, KeyKind); 0] = [];
        let copied = || self.projection();
        let mut table = match name {
            "Plain" => {
                let table = TableDef::builder(name, "pk", S);
                table.global_index("by_n", [("n", N)], none, copied())
            }
            "Sorted" => TableDef::builder(name, "pk", S)
                .sort_key("sk", N)
                .local_index("by_l", "l", S, copied())
                .global_index("by_g", [("g", S)], [("h", N)], copied()),
            "Binary" => {
                let (partition, sort) = ([("g", S), ("k", N)], [("h", N), ("b", B)]);
                TableDef::builder(name, "pk", B)
                    .sort_key("sk", B)
                    .global_index("multi", partition, sort, copied())
            }
            _ => TableDef::builder(name, "pk", N)
                .sort_key("sk", S)
                .local_index("by_h", "h", N, copied())
                .global_index("by_sk", [("sk", S)], [("pk", N)], copied())
                .global_index("by_b", [("b", B)], none, copied()),
        };
        if self.random.chance(75) {
            table = table.stream(self.view());
        }
        if self.random.chance(50) {
            table = table.ttl("expires");
        }
        table
    }

    fn projection(&self) -> Projection {
        match self.random.below(3) {
            0 => Projection::All,
            1 => Projection::KeysOnly,
            _ => Projection::Include(vec!["v".into(), "n".into()]),
        }
    }

    fn view(&self) -> StreamView {
        self.random.one_of(&VIEWS)
    }

    fn invalidate_table(&self, create: &mut CreateTable) {
        match self.random.below(5) {
            0 => create.table_name = "x".to_owned(),
            1 => create.key_schema.reverse(),
            2 => create
                .attribute_definitions
                .push(("unused".into(), KeyKind::S)),
            3 => drop(create.attribute_definitions.pop()),
            _ => create.billing = Billing::Provisioned(Throughput { read: 0, write: 1 }),
        }
    }

    pub(super) fn describe(&self) -> Step {
        Step::DescribeTable(self.random.text(&NAMES).to_owned())
    }

    pub(super) fn delete_table(&mut self) -> Step {
        let name = self.random.text(&NAMES).to_owned();
        self.tables.retain(|table| table.name != name);
        Step::DeleteTable(name)
    }

    /// The name of a table with this probability in percent.
    fn some_name(&self, percent: usize) -> Option<String> {
        let random = &self.random;
        random
            .chance(percent)
            .then(|| random.text(&NAMES).to_owned())
    }

    pub(super) fn list_tables(&self) -> Step {
        Step::ListTables(ListTables {
            start_after: self.some_name(40),
            limit: self.random.chance(50).then(|| self.random.below(4)),
        })
    }

    pub(super) fn list_streams(&self) -> Step {
        let limits = [1, 2, 100, 0, 101];
        Step::ListStreams(ListStreams {
            table_name: self.some_name(50),
            start_after: None,
            limit: self.random.chance(60).then(|| self.random.one_of(&limits)),
        })
    }

    pub(super) fn update_ttl(&mut self) -> Step {
        let table = self.table();
        let attribute = if self.random.chance(85) {
            "expires"
        } else {
            "n"
        };
        let enabled = if self.random.chance(85) {
            table.ttl_attribute.is_none()
        } else {
            self.random.chance(50)
        };
        let switch = UpdateTimeToLive {
            table_name: table.name.clone(),
            attribute: attribute.into(),
            enabled,
        };
        self.track(switch.apply(&table));
        Step::UpdateTimeToLive(switch)
    }

    pub(super) fn change_tags(&self) -> Step {
        let tag = || self.random.text(&["team", "env", "cost"]).to_owned();
        let count = self.random.below(3);
        Step::UpdateTags(UpdateTags {
            table_name: self.random.text(&NAMES).to_owned(),
            add: (0..count).map(|n| (tag(), n.to_string())).collect(),
            remove: (0..self.random.below(2)).map(|_| tag()).collect(),
        })
    }

    pub(super) fn change_table(&mut self) -> Step {
        let table = self.table();
        let mut update = UpdateTable::new(table.name.clone());
        match self.random.below(10) {
            0..3 => self.add_index(&table, &mut update),
            3..5 => {
                let names: Vec<String> = table.global_indexes().map(|i| i.name.clone()).collect();
                let name = self.random.pick(&names).cloned();
                let name = name.unwrap_or_else(|| "none".to_owned());
                update.indexes = vec![IndexUpdate::Delete(name)];
            }
            5..8 => {
                let on = if self.random.chance(85) {
                    table.stream.is_none()
                } else {
                    self.random.chance(50)
                };
                update.stream = Some(on.then(|| self.view()));
            }
            8 => update.deletion_protection = Some(self.random.chance(30)),
            _ => update.class = Some(TableClass::StandardInfrequentAccess),
        }
        self.track(update.apply(&table));
        Step::UpdateTable(update)
    }

    fn add_index(&self, table: &TableDef, update: &mut UpdateTable) {
        let (attribute, kind) = match self.random.below(3) {
            0 => ("w", KeyKind::S),
            1 => ("n", KeyKind::N),
            _ => ("b", KeyKind::B),
        };
        // The attribute may already be a key of another index, with another type.
        let indexes = table.indexes.iter();
        let mut taken = indexes.flat_map(|index| index.key.attributes());
        let taken = taken.find(|a| a.name == *attribute).map(|a| a.kind);
        update.attribute_definitions = vec![(attribute.into(), taken.unwrap_or(kind))];
        update.indexes = vec![IndexUpdate::Create(CreateIndex {
            name: format!("by_{attribute}_later"),
            kind: IndexKind::Global,
            key_schema: vec![KeySchemaElement {
                name: attribute.into(),
                role: KeyRole::Hash,
            }],
            projection: self.projection(),
            throughput: None,
            scaling: Scaling::default(),
        })];
    }

    /// Tracks the changed definition of a table.
    fn track(&mut self, changed: floe_store::Result<TableDef>) {
        if let Ok(changed) = changed {
            let mut tables = self.tables.iter_mut();
            if let Some(known) = tables.find(|table| table.name == changed.name) {
                *known = changed;
            }
        }
    }
}
