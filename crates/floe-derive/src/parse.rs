//! Parses a struct into the checked description of a model. Reports all errors together.

use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, DeriveInput, Field, Result, parse_quote};

use crate::attributes::{
    Errors, KnownAttributes, SeenAttributes, crate_path, error_at, for_each, reject_generics, text,
};
use crate::checks;
use crate::constraint::Constraint;
use crate::definition::{FieldDef, ModelDef, Role};
use crate::index::IndexDef;
use crate::shape::Shape;
use crate::stored::{StoredField, named_fields};

const MODEL: KnownAttributes = KnownAttributes::repeating(
    "index",
    "a model",
    "table sort_key sort_key_encoding exactly_once stream index crate",
);

const FIELD: KnownAttributes = KnownAttributes::new(
    "a field",
    "key sort_key default read_only min max length pattern one_of custom json_schema \
     expires serde rename",
);

const NO_STRUCT: [&str; 3] = ["`Model` can only be derived for structs with named fields"; 3];

impl ModelDef {
    pub(crate) fn parse(input: &DeriveInput) -> Result<Self> {
        reject_generics(
            &input.generics,
            "`Model` cannot be derived for a generic struct\nhelp: write a struct for each type",
        )?;
        let fields = named_fields(input, NO_STRUCT)?;
        let mut errors = Errors::default();
        let mut model = Self::without_fields(input);
        let mut seen = SeenAttributes::default();
        errors.note(for_each("model", &input.attrs, |meta| {
            match MODEL.word(meta, &mut seen)?.as_str() {
                "table" => model.table = checks::resource_name("table", &text(meta)?)?,
                "sort_key" => model.sort_constant = Some(checks::sort_constant(&text(meta)?)?),
                "sort_key_encoding" => {
                    model.json_sort_key = checks::is_json_encoding(&text(meta)?)?;
                }
                "exactly_once" => model.exactly_once = true,
                "stream" => model.stream = true,
                "crate" => model.krate = crate_path(meta)?,
                _ => model.indexes.push(IndexDef::parse(meta)?),
            }
            Ok(())
        }));
        if !seen.has("table") {
            errors.note(checks::default_table(&input.ident));
        }
        let fields = fields.iter();
        let fields = fields.filter_map(|field| errors.note(FieldDef::parse(field)?));
        model.fields = fields.collect();
        // A missing attribute may be on a field that could not be parsed, so check only without errors.
        let mut model = errors.finish(model)?;
        model.choose_key();
        checks::model(&model)?;
        Ok(model)
    }

    fn without_fields(input: &DeriveInput) -> Self {
        Self {
            vis: input.vis.clone(),
            ident: input.ident.clone(),
            krate: parse_quote!(::floe),
            table: input.ident.unraw().to_string(),
            sort_constant: None,
            json_sort_key: false,
            exactly_once: false,
            stream: false,
            indexes: Vec::new(),
            fields: Vec::new(),
        }
    }

    /// If no field is marked as key, a field `id: Uuid` is the key.
    fn choose_key(&mut self) {
        if self.with_role(Role::Partition).next().is_none() {
            let mut fields = self.fields.iter_mut();
            let id = fields.find(|field| {
                field.name == "id" && field.role == Role::Plain && field.shape() == Shape::Uuid
            });
            if let Some(id) = id {
                id.role = Role::Partition;
            }
        }
    }
}

impl FieldDef {
    /// Parses a field; `None` for a field without a name.
    fn parse(field: &Field) -> Option<Result<Self>> {
        let def = Self {
            stored: StoredField::new(field)?,
            role: Role::Plain,
            read_only: false,
            expires: false,
            constraints: Vec::new(),
        };
        Some(def.with_attributes(&field.attrs))
    }

    fn with_attributes(mut self, attributes: &[Attribute]) -> Result<Self> {
        for_each("model", attributes, |meta| self.take(meta))?;
        checks::field(&self)?;
        Ok(self)
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let word = FIELD.word(meta, &mut self.stored.seen)?;
        if let Some(constraint) = Constraint::parse(&word, meta)? {
            self.constraints.push(constraint);
            return Ok(());
        }
        match word.as_str() {
            "key" | "sort_key" => self.role = self.role_of(&word, meta)?,
            "read_only" => self.read_only = true,
            "expires" => self.expires = true,
            "rename" => self.stored.attribute = checks::attribute_name(&text(meta)?)?,
            word => self.stored.take(word, meta)?,
        }
        Ok(())
    }

    fn role_of(&self, word: &str, meta: &ParseNestedMeta<'_>) -> Result<Role> {
        match (self.role, word) {
            (Role::Plain, "key") => Ok(Role::Partition),
            (Role::Plain, _) => Ok(Role::Sort),
            _ => error_at(
                &meta.path,
                "a field can be part of the partition key or of the sort key, not both",
            ),
        }
    }
}
