//! `floe table create`: creates a table.

use clap::{Args, ValueEnum};
use floe_store::TableDef;
use floe_store::table::{KeyKind, Projection, StreamView};

use super::describe;
use crate::{Failure, IfMissing, Result, StoreArgs};

/// Create a table with its key, indexes, change stream and expiry
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe table create orders --key customer:S --sort placed:N --data ./shop
  floe table create orders --key id:S --index by_product=product:S,quantity:N \\
      --stream new-and-old-images --endpoint http://127.0.0.1:8000
  floe table create sessions --key id:S --expires until --data ./shop --new

Key types are S (text), N (number) and B (bytes). The first attribute of an index key is the partition key, the optional second \
the sort key. Indexes project all attributes. Tables use on-demand billing. Amazon DynamoDB takes some seconds to create a \
table: `floe table describe` prints its status.")]
pub(super) struct Create {
    /// Name of the table
    table: String,

    /// Partition key and its type
    #[arg(long, value_name = "NAME:TYPE", value_parser = parse_attribute)]
    key: Attribute,

    /// Sort key and its type
    #[arg(long, value_name = "NAME:TYPE", value_parser = parse_attribute)]
    sort: Option<Attribute>,

    /// Global index and its key; can be repeated
    #[arg(long, value_name = "INDEX=NAME:TYPE[,NAME:TYPE]", value_parser = parse_index)]
    index: Vec<Index>,

    /// Local index and its sort key; can be repeated
    #[arg(long, value_name = "INDEX=NAME:TYPE", value_parser = parse_local_index)]
    local_index: Vec<Index>,

    /// Enable a change stream with these images
    #[arg(long, value_name = "IMAGES", value_enum)]
    stream: Option<View>,

    /// Attribute with the expiry time of items, in seconds since 1970
    #[arg(long, value_name = "NAME")]
    expires: Option<String>,

    /// Create a store if the directory holds none
    #[arg(long, requires = "data")]
    new: bool,

    #[command(flatten)]
    target: StoreArgs,
}

/// A key attribute and its type.
type Attribute = (String, KeyKind);

/// An index: its name, and its key attributes. The partition of a local index is its sort key.
#[derive(Clone, Debug)]
struct Index {
    name: String,
    partition: Attribute,
    sort: Option<Attribute>,
}

/// The images in a change stream.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum View {
    /// Only the key
    KeysOnly,
    /// The item after the change
    NewImage,
    /// The item before the change
    OldImage,
    /// Both
    NewAndOldImages,
}

impl Create {
    pub(super) fn run(&self) -> Result {
        let definition = self.definition()?;
        let missing = IfMissing::create_if(self.new);
        self.target.store.run_or(missing, async |opened| {
            let table = opened.engine().create_table(definition.into()).await?;
            describe::print_table(self.target.output, opened, &table)
        })
    }

    fn definition(&self) -> Result<TableDef> {
        let (key, kind) = &self.key;
        let mut table = TableDef::builder(self.table.as_str(), key.as_str(), *kind);
        if let Some((sort, kind)) = &self.sort {
            table = table.sort_key(sort.as_str(), *kind);
        }
        for index in &self.index {
            let (name, sort) = (index.name.as_str(), index.sort.iter().cloned());
            let partition = [index.partition.clone()];
            table = table.global_index(name, partition, sort, Projection::All);
        }
        for index in &self.local_index {
            let (sort, kind) = &index.partition;
            let name = index.name.as_str();
            table = table.local_index(name, sort.as_str(), *kind, Projection::All);
        }
        if let Some(view) = self.stream {
            table = table.stream(match view {
                View::KeysOnly => StreamView::KeysOnly,
                View::NewImage => StreamView::NewImage,
                View::OldImage => StreamView::OldImage,
                View::NewAndOldImages => StreamView::NewAndOldImages,
            });
        }
        if let Some(attribute) = &self.expires {
            table = table.ttl(attribute.as_str());
        }
        table.build().map_err(Failure::usage)
    }
}

/// Parses a key attribute: `placed:N`.
fn parse_attribute(text: &str) -> Result<Attribute, String> {
    let (name, kind) = text.rsplit_once(':').unwrap_or((text, ""));
    let kind = KeyKind::from_name(kind).filter(|_| !name.is_empty());
    kind.map(|kind| (name.to_owned(), kind))
        .ok_or_else(|| "expected a name and a type (S, N or B), such as id:S".to_owned())
}

/// Parses an index: `by_product=product:S,quantity:N`.
fn parse_index(text: &str) -> Result<Index, String> {
    let (name, key) = text.split_once('=').unwrap_or(("", text));
    let (partition, sort) = match key.split_once(',') {
        Some((partition, sort)) => (partition, Some(sort)),
        None => (key, None),
    };
    if name.is_empty() {
        return Err(
            "expected an index and its key, such as by_product=product:S,quantity:N".to_owned(),
        );
    }
    Ok(Index {
        name: name.to_owned(),
        partition: parse_attribute(partition)?,
        sort: sort.map(parse_attribute).transpose()?,
    })
}

/// Parses a local index: `by_total=total:N`.
fn parse_local_index(text: &str) -> Result<Index, String> {
    let index = parse_index(text)?;
    match index.sort {
        None => Ok(index),
        Some(_) => Err("a local index has only a sort key, such as by_total=total:N".to_owned()),
    }
}
