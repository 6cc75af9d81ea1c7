//! `floe table create`: makes a table.

use clap::{Args, ValueEnum};
use floe_store::TableDef;
use floe_store::table::{KeyKind, Projection, StreamView};

use super::describe;
use crate::{Failure, IfMissing, Result, StoreArgs};

/// Make a table, with its key, its indexes, its change stream and its expiry
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe table create orders --key customer:S --sort placed:N --data ./shop
  floe table create orders --key id:S --index by_product=product:S,quantity:N \\
      --stream new-and-old-images --endpoint http://127.0.0.1:8000
  floe table create sessions --key id:S --expires until --data ./shop --new

The types of keys are S (text), N (number) and B (bytes). An index holds all attributes; the first attribute of its key \
is the partition, the second, if there is one, the order. Tables are paid for by the request. Amazon DynamoDB takes some \
seconds to make one: `floe table describe` tells when it is active.")]
pub(super) struct Create {
    /// The table
    table: String,

    /// The partition key and its type
    #[arg(long, value_name = "NAME:TYPE", value_parser = parse_attribute)]
    key: Attribute,

    /// The sort key and its type
    #[arg(long, value_name = "NAME:TYPE", value_parser = parse_attribute)]
    sort: Option<Attribute>,

    /// A global index and its key; may be given several times
    #[arg(long, value_name = "INDEX=NAME:TYPE[,NAME:TYPE]", value_parser = parse_index)]
    index: Vec<Index>,

    /// A local index and its sort key; may be given several times
    #[arg(long, value_name = "INDEX=NAME:TYPE", value_parser = parse_local_index)]
    local_index: Vec<Index>,

    /// Keep a change stream with these images
    #[arg(long, value_name = "IMAGES", value_enum)]
    stream: Option<View>,

    /// Remove items when the moment in this attribute has come, in seconds since 1970
    #[arg(long, value_name = "NAME")]
    expires: Option<String>,

    /// Make the directory a store, if there is none in it
    #[arg(long, requires = "data")]
    new: bool,

    #[command(flatten)]
    at: StoreArgs,
}

/// An attribute of a key, and its type.
type Attribute = (String, KeyKind);

/// An index: its name, and the attributes of its key.
#[derive(Clone, Debug)]
struct Index {
    name: String,
    partition: Attribute,
    sort: Option<Attribute>,
}

/// Which images a change stream keeps.
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
        let missing = IfMissing::made(self.new);
        self.at.store.run_or(missing, async |opened| {
            let table = opened.engine().create_table(definition.into()).await?;
            describe::print_table(self.at.output, opened, &table);
            Ok(())
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

/// An attribute of a key: `placed:N`.
fn parse_attribute(text: &str) -> Result<Attribute, String> {
    let (name, kind) = text.rsplit_once(':').unwrap_or((text, ""));
    let kind = KeyKind::from_name(kind).filter(|_| !name.is_empty());
    kind.map(|kind| (name.to_owned(), kind))
        .ok_or_else(|| "not a name and a type, such as id:S (S, N or B)".to_owned())
}

/// An index: `by_product=product:S,quantity:N`.
fn parse_index(text: &str) -> Result<Index, String> {
    let (name, key) = text.split_once('=').unwrap_or(("", text));
    let (partition, sort) = match key.split_once(',') {
        Some((partition, sort)) => (partition, Some(sort)),
        None => (key, None),
    };
    if name.is_empty() {
        return Err("not an index and its key, such as by_product=product:S,quantity:N".to_owned());
    }
    Ok(Index {
        name: name.to_owned(),
        partition: parse_attribute(partition)?,
        sort: sort.map(parse_attribute).transpose()?,
    })
}

/// A local index: `by_total=total:N`.
fn parse_local_index(text: &str) -> Result<Index, String> {
    let index = parse_index(text)?;
    match index.sort {
        None => Ok(index),
        Some(_) => Err("a local index has a sort key alone, such as by_total=total:N".to_owned()),
    }
}
