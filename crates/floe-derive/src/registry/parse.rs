//! Parses a struct into the checked description of a registry. Reports all errors together.

use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::{DeriveInput, Error, Ident, LitStr, Result, parse_quote};

use super::checks;
use super::definition::{IndexDef, RegistryAttributes, RegistryDef};
use super::template::Template;
use crate::attributes::{
    Errors, KnownAttributes, SeenAttributes, crate_path, error_at, for_each, nested,
    reject_generics, text,
};
use crate::stored::{FieldAttributes, StoredField, named_fields};

const STRUCT: KnownAttributes = KnownAttributes::repeating(
    "index",
    "a registry",
    "table pk sk latest version published deleted status expires retention index \
     legacy_keys crate",
);

const INDEX: KnownAttributes = KnownAttributes::new("an index", "name key");

const FIELDS: FieldAttributes = FieldAttributes {
    derive: "registry",
    words: KnownAttributes::new("a field", "rename default serde hash"),
    mark: "hash",
    rename: attribute,
};

const NO_STRUCT: [&str; 3] = ["`Registry` can only be derived for structs with named fields"; 3];

impl RegistryDef {
    pub(super) fn parse(input: &DeriveInput) -> Result<Self> {
        reject_generics(
            &input.generics,
            "`Registry` cannot be derived for a generic struct\nhelp: write a struct for each type",
        )?;
        let fields = named_fields(input, NO_STRUCT)?;
        let mut errors = Errors::default();
        let mut words = RegistryAttributes::new();
        errors.note(for_each("registry", &input.attrs, |meta| words.take(meta)));
        let fields = StoredField::all(&FIELDS, fields, &mut errors);
        let words = errors.finish(words)?;
        let keys = checks::keys(&input.ident, &words, &fields)?;
        let def = Self {
            ident: input.ident.clone(),
            vis: input.vis.clone(),
            words,
            keys,
            fields,
        };
        checks::registry(&def)?;
        Ok(def)
    }
}

impl RegistryAttributes {
    fn new() -> Self {
        Self {
            krate: parse_quote!(::floe),
            table: None,
            pk: None,
            sk: None,
            latest: None,
            version: "version".to_owned(),
            published: "published_date".to_owned(),
            deleted: "deleted_date".to_owned(),
            status: None,
            expires: None,
            retention_secs: None,
            indexes: Vec::new(),
            legacy_keys: false,
            seen: SeenAttributes::default(),
        }
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let word = STRUCT.word(meta, &mut self.seen)?;
        match word.as_str() {
            "table" => {
                self.table = Some(crate::checks::resource_name("table", &text(meta)?)?);
            }
            "pk" => self.pk = Some(Template::parse(text(meta)?)?),
            "sk" => self.sk = Some(Template::parse(text(meta)?)?),
            "latest" => self.latest = Some(text(meta)?),
            "version" => self.version = attribute(meta)?,
            "published" => self.published = attribute(meta)?,
            "deleted" => self.deleted = attribute(meta)?,
            "status" => self.status = Some(attribute(meta)?),
            "expires" => self.expires = Some(attribute(meta)?),
            "retention" => self.retention_secs = Some(duration_secs(&text(meta)?)?),
            "index" => self.indexes.push(IndexDef::parse(meta)?),
            "legacy_keys" => self.legacy_keys = true,
            _ => self.krate = crate_path(meta)?,
        }
        Ok(())
    }
}

fn attribute(meta: &ParseNestedMeta<'_>) -> Result<String> {
    crate::checks::attribute_name(&text(meta)?)
}

/// Parses a duration such as `30d` to seconds.
fn duration_secs(literal: &LitStr) -> Result<u64> {
    let text = literal.value();
    let split = text.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = text.split_at(split.unwrap_or(text.len()));
    let unit = match unit {
        "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3600),
        "d" => Some(86_400),
        _ => None,
    };
    let number: Option<u64> = number.parse().ok();
    let secs = number.zip(unit).and_then(|(n, unit)| n.checked_mul(unit));
    secs.filter(|secs| *secs > 0).ok_or_else(|| {
        let message = "invalid retention\nhelp: write a number of days, hours, minutes or seconds: `30d`, `12h`, `90m`, `45s`";
        Error::new_spanned(literal, message)
    })
}

impl IndexDef {
    fn parse(meta: &ParseNestedMeta<'_>) -> Result<Self> {
        const SHAPE: &str = "an index of a registry requires a name and a group field\nhelp: write `index(name = \"..\", key = field)`";
        let (mut name, mut key, mut seen) = (None, None, SeenAttributes::default());
        nested(meta, SHAPE, |meta| {
            match INDEX.word(&meta, &mut seen)?.as_str() {
                "name" => {
                    let literal = text(&meta)?;
                    crate::checks::resource_name("index", &literal)?;
                    name = Some(literal);
                }
                _ => key = Some(meta.value()?.call(Ident::parse_any)?),
            }
            Ok(())
        })?;
        match (name, key) {
            (Some(name), Some(key)) => Ok(Self { name, key }),
            _ => error_at(&meta.path, SHAPE),
        }
    }
}
