//! Indexes: `index(name = "..", key(a, b), sort(c), sparse, project(keys | all | include(d)))`.

use syn::meta::ParseNestedMeta;
use syn::{Error, Ident, LitStr, Result};

use crate::attributes::{KnownAttributes, SeenAttributes, error_at, list_of, nested, text};

/// A parsed index. Its fields have not been checked.
pub(crate) struct IndexDef {
    pub(crate) name: LitStr,
    pub(crate) key: Vec<Ident>,
    pub(crate) sort: Vec<Ident>,
    pub(crate) sparse: bool,
    pub(crate) projection: Projection,
}

/// The attributes that an index contains.
pub(crate) enum Projection {
    All,
    Keys,
    Include(Vec<Ident>),
}

const INDEX: KnownAttributes = KnownAttributes::new("an index", "name key sort sparse project");

const PROJECT: KnownAttributes = KnownAttributes::new("`project`", "keys all include");

/// Maximum number of partition key fields and of sort key fields of an index.
const KEY_FIELDS_MAX: usize = 4;

impl IndexDef {
    pub(crate) fn parse(index: &ParseNestedMeta<'_>) -> Result<Self> {
        let (mut name, mut key, mut sort) = (None, Vec::new(), Vec::new());
        let (mut sparse, mut projection) = (false, Projection::All);
        let mut seen = SeenAttributes::default();
        let message =
            "an index requires a name and a key\nhelp: write `index(name = \"..\", key(field))`";
        nested(index, message, |meta| {
            match INDEX.word(&meta, &mut seen)?.as_str() {
                "name" => name = Some(text(&meta)?),
                "key" => key = fields(&meta)?,
                "sort" => sort = fields(&meta)?,
                "sparse" => sparse = true,
                _ => projection = Projection::parse(&meta)?,
            }
            Ok(())
        })?;
        let missing = |what: &str| Error::new_spanned(&index.path, format!("missing index {what}"));
        let name = name.ok_or_else(|| missing("name\nhelp: add `name = \"..\"`"))?;
        if key.is_empty() {
            return Err(missing("key\nhelp: add `key(field)`"));
        }
        Ok(Self {
            name,
            key,
            sort,
            sparse,
            projection,
        })
    }

    /// The key fields, partition key first.
    pub(crate) fn key_fields(&self) -> impl Iterator<Item = &Ident> {
        self.key.iter().chain(&self.sort)
    }

    /// All fields that the index uses.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &Ident> {
        let included: &[Ident] = match &self.projection {
            Projection::Include(fields) => fields,
            Projection::All | Projection::Keys => &[],
        };
        self.key_fields().chain(included)
    }
}

impl Projection {
    fn parse(meta: &ParseNestedMeta<'_>) -> Result<Self> {
        let message = "`project` requires exactly one of `keys`, `all` and `include(field, ..)`";
        let mut projections = Vec::new();
        nested(meta, message, |meta| {
            projections.push(
                match PROJECT
                    .word(&meta, &mut SeenAttributes::default())?
                    .as_str()
                {
                    "keys" => Self::Keys,
                    "all" => Self::All,
                    _ => Self::Include(names(&meta)?),
                },
            );
            Ok(())
        })?;
        match (projections.pop(), projections.pop()) {
            (Some(only), None) => Ok(only),
            _ => error_at(&meta.path, message),
        }
    }
}

/// The fields of the partition key or of the sort key.
fn fields(meta: &ParseNestedMeta<'_>) -> Result<Vec<Ident>> {
    let names = names(meta)?;
    match names.get(KEY_FIELDS_MAX) {
        Some(extra) => error_at(
            extra,
            format!("too many fields in the index key: fields_max={KEY_FIELDS_MAX}"),
        ),
        None => Ok(names),
    }
}

fn names(meta: &ParseNestedMeta<'_>) -> Result<Vec<Ident>> {
    list_of(meta, "expected at least one field")
}
