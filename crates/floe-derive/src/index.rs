//! Indexes: `index(name = "..", key(a, b), sort(c), sparse, project(keys | all | include(d)))`.

use syn::meta::ParseNestedMeta;
use syn::{Error, Ident, LitStr, Result};

use crate::attributes::{Given, Vocabulary, list_of, nested, refused, text};

/// An index as it is written. Its fields are not yet known to exist.
pub(crate) struct IndexDef {
    pub(crate) name: LitStr,
    pub(crate) key: Vec<Ident>,
    pub(crate) sort: Vec<Ident>,
    pub(crate) sparse: bool,
    pub(crate) projection: Projection,
}

/// What an index copies.
pub(crate) enum Projection {
    All,
    Keys,
    Include(Vec<Ident>),
}

const INDEX: Vocabulary = Vocabulary::new("an index", "name key sort sparse project");

const PROJECT: Vocabulary = Vocabulary::new("`project`", "keys all include");

/// The key of an index has at most four fields to part by and four to sort by.
const KEY_FIELDS_MAX: usize = 4;

impl IndexDef {
    pub(crate) fn parse(index: &ParseNestedMeta<'_>) -> Result<Self> {
        let (mut name, mut key, mut sort) = (None, Vec::new(), Vec::new());
        let (mut sparse, mut projection) = (false, Projection::All);
        let mut given = Given::default();
        let message = "an index needs a name and a key: `index(name = \"..\", key(field))`";
        nested(index, message, |meta| {
            match INDEX.word(&meta, &mut given)?.as_str() {
                "name" => name = Some(text(&meta)?),
                "key" => key = fields(&meta)?,
                "sort" => sort = fields(&meta)?,
                "sparse" => sparse = true,
                _ => projection = Projection::parse(&meta)?,
            }
            Ok(())
        })?;
        let missing =
            |what: &str| Error::new_spanned(&index.path, format!("the index has no {what}"));
        let name = name.ok_or_else(|| missing("name: add `name = \"..\"`"))?;
        if key.is_empty() {
            return Err(missing("key: add `key(field)`"));
        }
        Ok(Self {
            name,
            key,
            sort,
            sparse,
            projection,
        })
    }

    /// The fields of the key, those to part by first.
    pub(crate) fn key_fields(&self) -> impl Iterator<Item = &Ident> {
        self.key.iter().chain(&self.sort)
    }

    /// All fields that are named.
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
        let message = "`project` takes one of `keys`, `all` and `include(field, ..)`";
        let mut projections = Vec::new();
        nested(meta, message, |meta| {
            projections.push(match PROJECT.word(&meta, &mut Given::default())?.as_str() {
                "keys" => Self::Keys,
                "all" => Self::All,
                _ => Self::Include(names(&meta)?),
            });
            Ok(())
        })?;
        match (projections.pop(), projections.pop()) {
            (Some(only), None) => Ok(only),
            _ => refused(&meta.path, message),
        }
    }
}

/// The fields of one half of the key.
fn fields(meta: &ParseNestedMeta<'_>) -> Result<Vec<Ident>> {
    let names = names(meta)?;
    match names.get(KEY_FIELDS_MAX) {
        Some(extra) => refused(
            extra,
            format!("the key of an index has too many fields: fields_max={KEY_FIELDS_MAX}"),
        ),
        None => Ok(names),
    }
}

fn names(meta: &ParseNestedMeta<'_>) -> Result<Vec<Ident>> {
    list_of(meta, "no field is named")
}
