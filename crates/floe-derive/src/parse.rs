//! From the tokens of a struct to the checked description of a model. All errors are told at once.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Data, DeriveInput, Error, Expr, Fields, Ident, Path, Result, Type, Visibility, parse_quote,
};

use crate::attributes::{Errors, Given, Vocabulary, for_each, optional_expression, text};
use crate::checks;
use crate::constraint::Constraint;
use crate::index::IndexDef;
use crate::shape::{Shape, option_of};

/// A model whose parts fit together.
pub(crate) struct ModelDef {
    pub(crate) vis: Visibility,
    pub(crate) ident: Ident,
    pub(crate) krate: Path,
    pub(crate) table: String,
    pub(crate) sort_constant: Option<String>,
    pub(crate) json_sort_key: bool,
    pub(crate) exactly_once: bool,
    pub(crate) stream: bool,
    pub(crate) indexes: Vec<IndexDef>,
    /// In the order of the struct.
    pub(crate) fields: Vec<FieldDef>,
}

/// A field of a model.
pub(crate) struct FieldDef {
    pub(crate) vis: Visibility,
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    /// The name in the struct.
    pub(crate) name: String,
    /// The name in the store.
    pub(crate) attribute: String,
    pub(crate) role: Role,
    pub(crate) default: Option<Default>,
    pub(crate) read_only: bool,
    pub(crate) expires: bool,
    pub(crate) is_serde: bool,
    pub(crate) constraints: Vec<Constraint>,
    pub(crate) given: Given,
}

/// The part of a field in the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Partition,
    Sort,
    Plain,
}

/// What a field is without a value.
pub(crate) enum Default {
    /// The default of its type.
    OfType,
    Value(Box<Expr>),
}

const MODEL: Vocabulary = Vocabulary {
    place: "a model",
    known: &[
        "table",
        "sort_key",
        "sort_key_encoding",
        "exactly_once",
        "stream",
        "index",
        "crate",
    ],
    repeated: &["index"],
};

const FIELD: Vocabulary = Vocabulary {
    place: "a field",
    known: &[
        "key",
        "sort_key",
        "default",
        "read_only",
        "min",
        "max",
        "length",
        "pattern",
        "one_of",
        "custom",
        "json_schema",
        "expires",
        "serde",
        "rename",
    ],
    repeated: &[],
};

impl ModelDef {
    pub(crate) fn parse(input: &DeriveInput) -> Result<Self> {
        checks::generics(&input.generics)?;
        let named = named_fields(input)?;
        let mut errors = Errors::default();
        let mut model = Self::without_fields(input);
        let mut given = Given::default();
        errors.note(for_each("model", &input.attrs, |meta| {
            match MODEL.word(meta, &mut given)?.as_str() {
                "table" => model.table = checks::resource_name("table", &text(meta)?)?,
                "sort_key" => model.sort_constant = Some(checks::sort_constant(&text(meta)?)?),
                "sort_key_encoding" => {
                    model.json_sort_key = checks::is_json_encoding(&text(meta)?)?;
                }
                "exactly_once" => model.exactly_once = true,
                "stream" => model.stream = true,
                "crate" => model.krate = text(meta)?.parse_with(Path::parse_mod_style)?,
                _ => model.indexes.push(IndexDef::parse(meta)?),
            }
            Ok(())
        }));
        if !given.has("table") {
            errors.note(checks::default_table(&input.ident));
        }
        let fields = named.named.iter();
        model.fields = fields
            .filter_map(|field| errors.note(FieldDef::parse(field)))
            .collect();
        // What is missing may be in a field that could not be read.
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

    /// Without any key, a field `id: Uuid` is the key.
    fn choose_key(&mut self) {
        if self.partition().next().is_none() {
            let mut fields = self.fields.iter_mut();
            let id = fields.find(|field| {
                field.name == "id" && field.role == Role::Plain && field.shape() == Shape::Uuid
            });
            if let Some(id) = id {
                id.role = Role::Partition;
            }
        }
    }

    pub(crate) fn field(&self, name: &Ident) -> Option<&FieldDef> {
        self.fields.iter().find(|field| field.ident == *name)
    }

    pub(crate) fn partition(&self) -> impl Iterator<Item = &FieldDef> {
        self.fields.iter().filter(|f| f.role == Role::Partition)
    }

    pub(crate) fn sort(&self) -> impl Iterator<Item = &FieldDef> {
        self.fields.iter().filter(|f| f.role == Role::Sort)
    }

    pub(crate) fn plain(&self) -> impl Iterator<Item = &FieldDef> {
        self.fields.iter().filter(|f| f.role == Role::Plain)
    }

    /// The components of the key in the order in which they are given: the partition key, then the sort
    /// key, each in the order of the struct.
    pub(crate) fn components(&self) -> Vec<&FieldDef> {
        self.partition().chain(self.sort()).collect()
    }

    /// Whether the field is an attribute of its own: every plain field, and components of the key that an
    /// index needs.
    pub(crate) fn is_stored(&self, field: &FieldDef) -> bool {
        let mut indexed = self.indexes.iter().flat_map(IndexDef::key_fields);
        field.role == Role::Plain || indexed.any(|name| *name == field.ident)
    }
}

fn named_fields(input: &DeriveInput) -> Result<&syn::FieldsNamed> {
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(named) => Ok(named),
            Fields::Unnamed(_) | Fields::Unit => Err(Error::new_spanned(
                &input.ident,
                "a model is a struct with named fields",
            )),
        },
        Data::Enum(data) => Err(not_a_struct(data.enum_token.span)),
        Data::Union(data) => Err(not_a_struct(data.union_token.span)),
    }
}

fn not_a_struct(span: Span) -> Error {
    Error::new(span, "a model is a struct with named fields")
}

impl FieldDef {
    fn parse(field: &syn::Field) -> Result<Self> {
        let ident = field
            .ident
            .clone()
            .ok_or_else(|| not_a_struct(field.span()))?;
        let name = ident.unraw().to_string();
        let mut def = Self {
            vis: field.vis.clone(),
            ty: field.ty.clone(),
            attribute: name.clone(),
            name,
            ident,
            role: Role::Plain,
            default: None,
            read_only: false,
            expires: false,
            is_serde: false,
            constraints: Vec::new(),
            given: Given::default(),
        };
        for_each("model", &field.attrs, |meta| def.take(meta))?;
        checks::field(&def)?;
        Ok(def)
    }

    fn take(&mut self, meta: &syn::meta::ParseNestedMeta<'_>) -> Result<()> {
        let word = FIELD.word(meta, &mut self.given)?;
        if let Some(constraint) = Constraint::parse(&word, meta)? {
            self.constraints.push(constraint);
            return Ok(());
        }
        match word.as_str() {
            "key" | "sort_key" => self.role = self.role_of(&word, meta)?,
            "default" => {
                let value = optional_expression(meta)?;
                self.default =
                    Some(value.map_or(Default::OfType, |value| Default::Value(Box::new(value))));
            }
            "read_only" => self.read_only = true,
            "expires" => self.expires = true,
            "serde" => self.is_serde = true,
            _ => self.attribute = checks::attribute_name(&text(meta)?)?,
        }
        Ok(())
    }

    fn role_of(&self, word: &str, meta: &syn::meta::ParseNestedMeta<'_>) -> Result<Role> {
        match (self.role, word) {
            (Role::Plain, "key") => Ok(Role::Partition),
            (Role::Plain, _) => Ok(Role::Sort),
            _ => Err(Error::new_spanned(
                &meta.path,
                "a field is part of the partition key or of the sort key, not of both",
            )),
        }
    }

    pub(crate) fn is_optional(&self) -> bool {
        option_of(&self.ty).is_some()
    }

    /// The type of the values: of an `Option`, what is inside.
    pub(crate) fn value_type(&self) -> &Type {
        option_of(&self.ty).unwrap_or(&self.ty)
    }

    /// The shape of the values.
    pub(crate) fn shape(&self) -> Shape {
        if self.is_serde {
            return Shape::Unknown;
        }
        Shape::of(self.value_type())
    }
}
