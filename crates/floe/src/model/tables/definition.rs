//! Merges the definitions of all models that share a table, and reports where they disagree.

use std::collections::{BTreeMap, BTreeSet};

use floe_store::limits::{INDEX_PARTITION_ATTRIBUTES_MAX, INDEX_SORT_ATTRIBUTES_MAX};
use floe_store::table::{
    IndexDef, IndexKind, KeyAttribute, KeyKind, KeySchema, Projection, Scaling, StreamView,
};
use floe_store::{Name, TableDef};

use crate::error::{Error, ErrorKind, Result};
use crate::model::keys::{has_number_id, has_sort_key};
use crate::model::schema::{
    FieldKind, FieldSchema, IndexProjection, IndexSchema, PARTITION_ATTRIBUTE, SORT_ATTRIBUTE,
    Schema,
};
use crate::tables::difference::{index_text, key_text};

/// Returns the tables of these models, sorted by name.
///
/// # Errors
///
/// [`Table`](ErrorKind::Table) if models that share a table disagree on its definition, or if the store would reject the
/// table. The message names the models and the differences.
pub fn table_definitions(schemas: &[&Schema]) -> Result<Vec<TableDef>> {
    let mut tables: BTreeMap<&str, Vec<&Schema>> = BTreeMap::new();
    for schema in schemas {
        tables.entry(schema.table).or_default().push(schema);
    }
    let definitions = tables.into_iter().map(|(table, mut models)| {
        models.sort_by_key(|schema| schema.model);
        SharedTable { table, models }.definition()
    });
    definitions.collect()
}

/// The models that share a table.
struct SharedTable<'a> {
    table: &'a str,
    models: Vec<&'a Schema>,
}

impl SharedTable<'_> {
    fn definition(&self) -> Result<TableDef> {
        self.check_keys()?;
        self.check_kinds()?;
        let id = id_kind(self.models.iter().any(|model| has_number_id(model)));
        let expires = self.expires()?;
        let mut builder = TableDef::builder(self.table, PARTITION_ATTRIBUTE, id);
        if self.models.iter().any(|model| has_sort_key(model)) {
            builder = builder.sort_key(SORT_ATTRIBUTE, KeyKind::S);
        }
        for index in self.indexes(expires)? {
            let (key, sort) = (pairs(index.key.partition), pairs(index.key.sort));
            builder = builder.global_index(index.name, key, sort, index.projection);
        }
        if let Some(attribute) = expires {
            builder = builder.ttl(attribute);
        }
        if self.models.iter().any(|model| model.stream) {
            builder = builder.stream(StreamView::NewAndOldImages);
        }
        builder.build().map_err(|error| {
            let models: Vec<&str> = self.models.iter().map(|model| model.model).collect();
            let (table, models) = (self.table, models.join(","));
            let message = format!("{error}: table={table} models={models}");
            Error::new(ErrorKind::Table, message).with_source(error)
        })
    }

    fn check_keys(&self) -> Result<()> {
        let models = self.models.iter();
        let keys = models.map(|model| (model.model, key_text(&key_of(model))));
        self.agree("models of one table have different keys", "", keys)
    }

    /// Checks that an attribute in the key of an index has one type in the whole table. The store rejects items in which
    /// it has another type, even those of models without the index.
    fn check_kinds(&self) -> Result<()> {
        let indexed = self.models.iter().flat_map(|model| {
            let indexes = model.indexes.iter();
            indexes.flat_map(|index| model.index_attributes(index))
        });
        for attribute in indexed.collect::<BTreeSet<_>>() {
            let kinds = self.models.iter().filter_map(|model| {
                let field = stored_field(model, attribute)?;
                Some((model.model, kind_text(field.kind).to_owned()))
            });
            let what = "models of one table declare different types for an index attribute";
            self.agree(what, &format!(" attribute={attribute}"), kinds)?;
        }
        Ok(())
    }

    /// All indexes without duplicates, in the order of the models and their declarations.
    fn indexes(&self, expires: Option<&str>) -> Result<Vec<IndexDef>> {
        let mut indexes: Vec<(&str, IndexDef)> = Vec::new();
        for model in &self.models {
            for schema in model.indexes {
                let index = index(model, schema, expires)?;
                let known = indexes.iter().find(|(_, known)| known.name == index.name);
                let Some((owner, known)) = known else {
                    indexes.push((model.model, index));
                    continue;
                };
                let (known, own) = (index_text(known), index_text(&index));
                let what = "models of one table define an index differently";
                let facts = format!(" index={}", index.name);
                self.agree(what, &facts, [(*owner, known), (model.model, own)])?;
            }
        }
        Ok(indexes.into_iter().map(|(_, index)| index).collect())
    }

    fn expires(&self) -> Result<Option<&'static str>> {
        let models = self.models.iter();
        let mut declared = models.filter_map(|model| Some((model.model, model.expires?)));
        let attributes = declared
            .clone()
            .map(|(model, attribute)| (model, attribute.to_owned()));
        let what = "models of one table have different expiry attributes";
        self.agree(what, "", attributes)?;
        let Some((owner, attribute)) = declared.next() else {
            return Ok(None);
        };
        // The store would delete items of a model that does not declare expiry.
        let affected = self.models.iter().find(|model| {
            let field = stored_field(model, attribute);
            model.expires.is_none() && field.is_some_and(|field| field.kind == FieldKind::Number)
        });
        let Some(model) = affected else {
            return Ok(Some(attribute));
        };
        let message = format!(
            "items of a model would expire by a field that another model of the table \
             declares as expiry: table={} attribute={attribute} declared_by={owner} model={}",
            self.table, model.model
        );
        Err(Error::new(ErrorKind::Table, message))
    }

    /// Checks that all models declare the same value. The error lists the value of each model.
    fn agree<'m>(
        &self,
        what: &str,
        facts: &str,
        values: impl IntoIterator<Item = (&'m str, String)>,
    ) -> Result<()> {
        let values: Vec<_> = values.into_iter().collect();
        let mut pairs = values.windows(2);
        if pairs.all(|pair| matches!(pair, [(_, one), (_, other)] if one == other)) {
            return Ok(());
        }
        let values = values
            .iter()
            .map(|(model, value)| format!("{model}=({value})"));
        let (table, values) = (self.table, values.collect::<Vec<_>>().join(" "));
        let message = format!("{what}: table={table}{facts} {values}");
        Err(Error::new(ErrorKind::Table, message))
    }
}

const fn id_kind(is_number: bool) -> KeyKind {
    if is_number { KeyKind::N } else { KeyKind::S }
}

fn key_of(model: &Schema) -> KeySchema {
    let id = KeyAttribute::new(PARTITION_ATTRIBUTE, id_kind(has_number_id(model)));
    let sort = has_sort_key(model).then(|| KeyAttribute::new(SORT_ATTRIBUTE, KeyKind::S));
    KeySchema {
        partition: vec![id],
        sort: sort.into_iter().collect(),
    }
}

/// The field that is stored in that attribute.
fn stored_field(model: &Schema, attribute: &str) -> Option<&'static FieldSchema> {
    let mut fields = model.fields.iter();
    fields.find(|field| field.attribute == attribute && model.is_stored(field))
}

const fn kind_text(kind: FieldKind) -> &'static str {
    match kind.key_kind() {
        Some(kind) => kind.as_str(),
        None => "other",
    }
}

fn pairs(attributes: Vec<KeyAttribute>) -> impl Iterator<Item = (Name, KeyKind)> {
    let attributes = attributes.into_iter();
    attributes.map(|attribute| (attribute.name, attribute.kind))
}

fn index(model: &Schema, index: &IndexSchema, expires: Option<&str>) -> Result<IndexDef> {
    if index.key.is_empty() {
        let what = "an index has no field in its key";
        return Err(index_error(model, index, what, ""));
    }
    let key = KeySchema {
        partition: index_key(model, index, index.key, INDEX_PARTITION_ATTRIBUTES_MAX)?,
        sort: index_key(model, index, index.sort, INDEX_SORT_ATTRIBUTES_MAX)?,
    };
    Ok(IndexDef {
        name: index.name.to_owned(),
        kind: IndexKind::Global,
        projection: projection(model, index, &key, expires)?,
        key,
        throughput: None,
        scaling: Scaling::default(),
    })
}

fn index_key(
    model: &Schema,
    index: &IndexSchema,
    names: &[&str],
    len_max: usize,
) -> Result<Vec<KeyAttribute>> {
    if names.len() > len_max {
        let facts = format!(" fields={} fields_max={len_max}", names.join(","));
        let what = "an index has too many fields in its key";
        return Err(index_error(model, index, what, &facts));
    }
    let attribute = |name: &&str| {
        let field = index_field(model, index, name)?;
        let kind = field.kind.key_kind().ok_or_else(|| {
            let what =
                "a field that is neither text, number nor bytes cannot be in the key of an index";
            index_error(model, index, what, &format!(" field={name}"))
        })?;
        Ok(KeyAttribute::new(field.attribute, kind))
    };
    names.iter().map(attribute).collect()
}

/// The projection of an index, in an order independent of the declaration. It always includes the keys and the expiry
/// attribute, so that readers of the index can skip expired items.
fn projection(
    model: &Schema,
    index: &IndexSchema,
    key: &KeySchema,
    expires: Option<&str>,
) -> Result<Projection> {
    let names = match index.projection {
        IndexProjection::All => return Ok(Projection::All),
        IndexProjection::Keys => &[],
        IndexProjection::Include(names) => names,
    };
    let expires = expires.filter(|attribute| !key.contains(attribute));
    let mut included: BTreeSet<&str> = expires.into_iter().collect();
    for name in names {
        let field = index_field(model, index, name)?;
        if model.is_stored(field) && !key.contains(field.attribute) {
            included.insert(field.attribute);
        }
    }
    if included.is_empty() {
        return Ok(Projection::KeysOnly);
    }
    let included = included.into_iter().map(Name::from);
    Ok(Projection::Include(included.collect()))
}

fn index_field(model: &Schema, index: &IndexSchema, name: &str) -> Result<&'static FieldSchema> {
    model.field(name).ok_or_else(|| {
        let what = "an index names a field that its model does not have";
        index_error(model, index, what, &format!(" field={name}"))
    })
}

fn index_error(model: &Schema, index: &IndexSchema, what: &str, facts: &str) -> Error {
    let (model, index) = (model.model, index.name);
    let message = format!("{what}: model={model} index={index}{facts}");
    Error::new(ErrorKind::Table, message)
}
